/* Printing: the whole current view, not only what is scrolled into sight, in light colours. */

const PRINT_ROWS = 1600; // a canvas has no more than 32,767 pixels
const PRINT_WIDTH = 1000; // pixels, that the page's width is taken for, whatever the window's is: about that of common paper

function beginPrint() {
	if (tree.total[0] <= 0 || state.printing) {
		return;
	}
	state.printing = true;
	state.screenHeight = root.getAttribute("height");
	ui.app.classList.add("pf-printing");
	drawLegend();
	draw();
	// What is in the head takes more lines on a narrow page than on the screen.
	root.setAttribute("height", String(ui.graph.offsetHeight + 2 * ui.head.offsetHeight + 40));
}

function endPrint() {
	if (!state.printing) {
		return;
	}
	state.printing = false;
	root.setAttribute("height", state.screenHeight);
	ui.app.classList.remove("pf-printing");
	drawLegend();
	draw();
}
