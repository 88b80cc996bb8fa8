/* The beginning: what all parts share, and the listeners. */

const script = document.currentScript;
const root = script && script.closest("svg.pf");
const source = root && root.querySelector("script.pf-data");
if (!source) {
	return;
}
const alone = document.documentElement === root; // not part of somebody's page
const data = JSON.parse(source.textContent);
const tree = unpack(data);
const state = { zoom: 0, current: 0, hover: -1, told: 0, up: false, query: "", first: 0, last: -1, printing: false };
const search = { active: false, literal: "", symbols: null, list: [], here: 0, weight: 0 };
const ui = build();
const dark = window.matchMedia("(prefers-color-scheme: dark)");
let pending = 0;

start();

function listen() {
	ui.graph.addEventListener("mousemove", onHover);
	ui.graph.addEventListener("mouseleave", onLeave);
	ui.graph.addEventListener("click", function (event) {
		const frame = frameUnder(event);
		ui.view.classList.remove("pf-keys");
		if (frame >= 0) {
			zoomTo(frame);
		}
	});
	ui.search.addEventListener("input", () => find(ui.search.value));
	ui.view.addEventListener("scroll", function () {
		const depths = visibleDepths();
		if (depths[0] + OVERSCAN < state.first + 2 || depths[1] - OVERSCAN > state.last - 2) {
			schedule();
		}
	}, { passive: true });
	(alone ? document : ui.app).addEventListener("keydown", onKey);
	if (alone) {
		window.addEventListener("hashchange", restore);
	}
	window.addEventListener("beforeprint", beginPrint);
	window.addEventListener("afterprint", endPrint);
	new ResizeObserver(schedule).observe(ui.view);
	dark.addEventListener("change", function () {
		drawLegend();
		schedule();
	});
}

/* In somebody's page the picture is as high as what it holds: head and foot have other heights than those of the static one. */
function makeRoom() {
	if (!alone) {
		const height = ui.head.offsetHeight + ui.graph.offsetHeight + ui.details.offsetHeight;
		root.setAttribute("height", String(Math.max(height, root.getAttribute("height"))));
	}
}

function start() {
	const picture = root.querySelector("g.pf-static");
	const frame = svgElement("foreignObject", { width: "100%", height: "100%" });
	frame.appendChild(ui.app);
	root.removeAttribute("viewBox");
	root.removeAttribute("role");
	root.setAttribute("width", data.width > 0 ? String(data.width) : "100%");
	if (alone) {
		root.setAttribute("height", "100%");
	}
	root.replaceChild(frame, picture);
	if (tree.total[0] <= 0) {
		ui.graph.remove();
		element("div", "pf-empty", ui.view, "no " + data.unit);
		[ui.search, ui.previous, ui.next, ui.reset, ui.flip, ui.copy].forEach((tool) => { tool.disabled = true; });
		return;
	}
	drawLegend();
	listen();
	restore();
	makeRoom();
	if (alone) {
		ui.view.focus();
	}
}
