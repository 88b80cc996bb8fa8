/* The page around the graph: elements, texts, colours. */

const XHTML = "http://www.w3.org/1999/xhtml";
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
	u.head = element("div", "pf-head", u.app);
	const names = element("div", "pf-names", u.head);
	u.title = element("div", "pf-title", names, data.title);
	u.title.setAttribute("title", data.title);
	if (data.subtitle) {
		element("div", "pf-subtitle", names, data.subtitle).setAttribute("title", data.subtitle);
	}
	buildTools(u, element("div", "pf-tools", u.head));
	element("div", "pf-note", u.head, data.note);
	element("div", "pf-note pf-cut", u.head, cutNote());
	u.legend = element("div", "pf-legend", u.head);
	u.legend.setAttribute("role", "note");
	u.legend.setAttribute("aria-label", "What the colours mean");
	u.view = element("div", "pf-view", u.app);
	u.view.setAttribute("tabindex", "0");
	u.view.setAttribute("role", "tree");
	u.view.setAttribute("aria-label", "Flame graph. Arrow keys walk, Enter zooms, Escape resets, slash searches, C copies the name.");
	u.graph = element("div", "pf-graph", u.view);
	u.graph.setAttribute("role", "presentation");
	u.canvas = element("canvas", "pf-paint");
	u.canvas.setAttribute("aria-hidden", "true");
	u.details = element("div", "pf-details", u.app);
	u.name = element("div", "pf-name", u.details);
	u.numbers = element("div", "pf-numbers", u.details);
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

/* What the colours mean: a swatch, a name, and the share of the samples that were in such frames themselves. */
function drawLegend() {
	ui.legend.replaceChildren();
	data.legend.forEach(function ([name, light, dark, self]) {
		const item = element("span", "pf-kind", ui.legend);
		element("span", "pf-swatch", item).style.backgroundColor = isDark() ? dark : light;
		element("span", "", item, self > 0 ? name + " " + percent(self, tree.total[0]) : name);
	});
}
