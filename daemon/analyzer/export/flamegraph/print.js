/* Printing: the whole current view, not only what is scrolled into sight, in light colours. */

const PRINT_ROWS = 1600; // a canvas has no more than 32,767 pixels

const PRINT_WIDTH = 1000; // pixels, that the page's width is taken for, whatever the window's is: about that of common paper
const PAPER_LEAST = 200; // pixels: no page is narrower
const PAPER_MOST = 4000; // nor wider: A0
const PAPER_STEP = 20;

function beginPrint() {
	if (tree.total[0] <= 0 || state.printing) {
		return;
	}
	state.printing = true;
	state.screenHeight = root.getAttribute("height");
	ui.app.classList.add("pf-printing");
	drawLegend();
	draw();
	// In somebody's page nobody knows how wide the picture will be: what is in the head can take more lines than on the screen.
	root.setAttribute("height", String(ui.graph.offsetHeight + (alone ? 1 : 2) * ui.head.offsetHeight + (alone ? 0 : 40)));
	if (alone) {
		ui.paper = svgElement("style", {});
		ui.paper.textContent = heightsOnPaper();
		root.appendChild(ui.paper);
	}
}

/* As high as what is in it, or an empty page would follow: by the width of the page, which nobody knows before it is printed, as the head has more lines on a narrow one. */
function heightsOnPaper() {
	const head = ui.app.appendChild(ui.head.cloneNode(true));
	const rules = [];
	let height = 0;
	head.style.position = "absolute";
	for (let width = PAPER_LEAST; width <= PAPER_MOST; width += PAPER_STEP) {
		head.style.width = width + "px";
		if (head.offsetHeight !== height) {
			height = head.offsetHeight;
			rules.push("@media print and (min-width: " + width + "px) { svg.pf { height: " + (height + ui.graph.offsetHeight) + "px; } }");
		}
	}
	head.remove();
	return rules.join("\n");
}

function endPrint() {
	if (!state.printing) {
		return;
	}
	state.printing = false;
	root.setAttribute("height", state.screenHeight);
	if (ui.paper) {
		ui.paper.remove();
	}
	ui.app.classList.remove("pf-printing");
	drawLegend();
	draw();
}
