/* The page around the graph: elements, texts, colours. */

const XHTML = "http://www.w3.org/1999/xhtml";
const SHADES = 32;
// Hue, spread, saturation, lightness by kind, as in svg.c; then saturation and lightness in the dark.
const PALETTES = [
	[205, 16, 26, 76, 20, 31], // thread
	[14, 38, 88, 70, 58, 27], // native
	[222, 30, 72, 79, 42, 36], // kernel
	[88, 50, 46, 70, 38, 26], // interpreted
	[286, 26, 46, 80, 30, 34], // marker
	[34, 14, 22, 76, 12, 31], // unknown
	[220, 1, 8, 82, 6, 30], // neutral
];

function element(tag, className, parent, text) {
	const made = document.createElementNS(XHTML, tag);
	if (className) {
		made.setAttribute("class", className);
	}
	if (text !== undefined) {
		made.textContent = text;
	}
	if (parent) {
		parent.appendChild(made);
	}
	return made;
}

function button(parent, text, label, action) {
	const made = element("button", "", parent, text);
	made.setAttribute("type", "button");
	made.setAttribute("aria-label", label);
	made.setAttribute("title", label);
	made.addEventListener("click", action);
	return made;
}

function build() {
	const u = {};
	u.app = element("div", "pf-app");
	const head = element("div", "pf-head", u.app);
	const names = element("div", "pf-names", head);
	u.title = element("div", "pf-title", names, data.title);
	u.title.setAttribute("title", data.title);
	if (data.subtitle) {
		element("div", "pf-subtitle", names, data.subtitle).setAttribute("title", data.subtitle);
	}
	buildTools(u, element("div", "pf-tools", head));
	element("div", "pf-note", head, cutNote());
	u.view = element("div", "pf-view", u.app);
	u.view.setAttribute("tabindex", "0");
	u.view.setAttribute("role", "tree");
	u.view.setAttribute("aria-label", "Flame graph. Arrow keys walk, Enter zooms, Escape resets, slash searches, C copies the name.");
	u.graph = element("div", "pf-graph", u.view);
	u.graph.setAttribute("role", "presentation");
	u.canvas = element("canvas", "pf-paint");
	u.canvas.setAttribute("aria-hidden", "true");
	const details = element("div", "pf-details", u.app);
	u.name = element("div", "pf-name", details);
	u.numbers = element("div", "pf-numbers", details);
	return u;
}

function buildTools(u, tools) {
	tools.setAttribute("role", "search");
	u.search = element("input", "", tools);
	u.search.setAttribute("type", "search");
	u.search.setAttribute("placeholder", "Search (/)");
	u.search.setAttribute("aria-label", "Search frames by name, a regular expression");
	u.search.setAttribute("spellcheck", "false");
	u.search.setAttribute("autocomplete", "off");
	u.previous = button(tools, "\u2039", "Previous match (Shift+N)", () => step(-1));
	u.next = button(tools, "\u203a", "Next match (N)", () => step(1));
	u.reset = button(tools, "Reset zoom", "Reset zoom (Escape)", () => zoomTo(0));
	u.flip = button(tools, "Flip", "Draw upwards or downwards (I)", flip);
	u.found = element("span", "pf-found", tools);
	u.found.setAttribute("role", "status");
}

function cutNote() {
	if (data.cut <= 1) {
		return "";
	}
	const left = data.all - data.frames;
	return group(left) + " frames below " + group(data.cut) + " " + data.unit +
		" are summed up as \u201c(smaller frames)\u201d to keep this file small.";
}

function group(number) {
	return String(number).replace(/\B(?=(\d{3})+$)/g, ",");
}

function percent(part, whole) {
	return whole > 0 ? (part * 100 / whole).toFixed(2) + "%" : "0%";
}

function mixColours(isDark) {
	return PALETTES.map(function (p) {
		const mixed = [];
		for (let shade = 0; shade < SHADES; shade++) {
			const hue = p[0] + Math.floor(p[1] * shade / SHADES);
			const light = isDark ? p[5] + shade % 4 : p[3] + shade % 4 * 2;
			mixed.push("hsl(" + hue + "," + (isDark ? p[4] : p[2]) + "%," + light + "%)");
		}
		return mixed;
	});
}
