/* The page around the graph: elements, texts, colours. */

const XHTML = "http://www.w3.org/1999/xhtml";
const TURNS = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const KEYS = [
	["arrows", "walk to the caller, the widest callee, the neighbours"],
	["Enter", "zoom to the frame"],
	["Backspace", "zoom out by one"],
	["Escape", "reset the zoom"],
	["/", "search"],
	["N, Shift+N", "next match, previous match"],
	["I", "root at the top or at the bottom"],
	["C", "copy the name"],
	["?", "show and hide this list"],
];

/*
 * How a name or another text from outside is shown: on one line, without controls and what turns the direction of text (UAX 9), which
 * would change what stands beside it. Names of nothing but blanks are seen too. Copies have the true text.
 */
function legible(text) {
	const line = text.replace(/[\t\n\r\u2028\u2029]/g, " ").replace(TURNS, "\ufffd");
	return /^[\s\u200b-\u200d\u2060]+$/.test(line) ? line.replace(/[^]/g, "\u2423") : line;
}

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

function svgElement(tag, attributes) {
	const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
	Object.keys(attributes).forEach((key) => made.setAttribute(key, attributes[key]));
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
	buildNames(element("div", "pf-names", u.head));
	buildTools(u, element("div", "pf-tools", u.head));
	element("div", "pf-note", u.head, legible(data.note));
	element("div", "pf-note pf-cut", u.head, cutNote());
	u.legend = element("div", "pf-legend", u.head);
	u.legend.setAttribute("role", "note");
	u.legend.setAttribute("aria-label", "What the colours mean");
	buildHelp(u);
	buildView(u);
	buildDetails(u);
	return u;
}

function buildNames(names) {
	const title = element("div", "pf-title", names, legible(data.title));
	title.setAttribute("title", legible(data.title));
	title.setAttribute("role", "heading");
	title.setAttribute("aria-level", "1");
	if (data.subtitle) {
		element("div", "pf-subtitle", names, legible(data.subtitle)).setAttribute("title", legible(data.subtitle));
	}
}

function buildTools(u, tools) {
	tools.setAttribute("role", "search");
	u.search = element("input", "", tools);
	u.search.setAttribute("type", "search");
	u.search.setAttribute("placeholder", "Search (/)");
	u.search.setAttribute("aria-label", "Search frames by name: text or a regular expression");
	u.search.setAttribute("spellcheck", "false");
	u.search.setAttribute("autocomplete", "off");
	u.previous = button(tools, "\u2039", "Previous match (Shift+N)", () => step(-1));
	u.next = button(tools, "\u203a", "Next match (N)", () => step(1));
	u.reset = button(tools, "Reset", "Reset zoom (Escape)", () => zoomTo(0));
	u.flip = button(tools, "Flip", "Root at the top or at the bottom (I)", flip);
	u.ask = button(tools, "?", "Keys (?)", toggleHelp);
	u.ask.setAttribute("aria-expanded", "false");
	u.found = element("span", "pf-found", tools);
	u.found.setAttribute("role", "status");
}

function buildHelp(u) {
	u.help = element("dl", "pf-help", u.head);
	u.help.setAttribute("aria-label", "Keys");
	u.help.hidden = true;
	KEYS.forEach(function ([key, what]) {
		const row = element("div", "", u.help);
		element("dt", "", row, key);
		element("dd", "", row, what);
	});
}

/* A screen reader leaves the keys to an application, and reads what is said in the live region. */
function buildView(u) {
	u.view = element("div", "pf-view", u.app);
	u.view.setAttribute("tabindex", "0");
	u.view.setAttribute("role", "application");
	u.view.setAttribute("aria-roledescription", "flame graph");
	u.view.setAttribute("aria-label", legible(data.title) + ". Arrow keys walk, Enter zooms, Escape resets, slash searches, C copies the name, question mark lists the keys.");
	u.graph = element("div", "pf-graph", u.view);
	u.graph.setAttribute("role", "presentation");
	u.canvas = element("canvas", "pf-paint");
	u.canvas.setAttribute("aria-hidden", "true");
	u.said = element("div", "pf-said", u.app);
	u.said.setAttribute("aria-live", "polite");
}

function buildDetails(u) {
	u.details = element("div", "pf-details", u.app);
	const texts = element("div", "pf-texts", u.details);
	u.name = element("div", "pf-name", texts);
	u.name.addEventListener("copy", onCopy);
	u.numbers = element("div", "pf-numbers", texts);
	u.copy = button(u.details, "Copy", "Copy the name (C)", copyName);
}

function cutNote() {
	if (data.cut <= 1 || data.all <= data.frames) {
		return "";
	}
	const sums = tree.symbol.reduce((count, symbol) => count + (data.kinds[tree.kinds[symbol]] === "" ? 1 : 0), -1); // less the root
	const left = data.all - data.frames + sums;
	return counted(left, "frames") + " below " + counted(data.cut, data.unit) + " (" + percent(data.cut, tree.total[0]) +
		(left === 1 ? ") is" : ") are") + " summed up as \u201c(smaller frames)\u201d.";
}

function group(number) {
	return String(number).replace(/\B(?=(\d{3})+$)/g, ",");
}

/* "1 sample", "2,000 samples": the unit is a plural that ends in s. */
function counted(number, unit) {
	return group(number) + " " + (number === 1 ? unit.replace(/s$/, "") : unit);
}

function percent(part, whole) {
	if (!(whole > 0)) {
		return "0%";
	}
	const share = part * 100 / whole;
	return share > 0 && share < 0.01 ? "<0.01%" : share.toFixed(2) + "%";
}

function isDark() {
	return dark.matches && !state.printing;
}

/* What the colours mean: a swatch, a name, and the share of the samples that were in such frames themselves. */
function drawLegend() {
	ui.legend.replaceChildren();
	data.legend.forEach(function ([name, light, dark, self]) {
		const item = element("span", "pf-kind", ui.legend);
		element("span", "pf-swatch", item).style.backgroundColor = isDark() ? dark : light;
		element("span", "", item, legible(name) + (self > 0 ? " " + percent(self, tree.total[0]) : ""));
	});
}

function toggleHelp() {
	ui.help.hidden = !ui.help.hidden;
	fitHelp();
	ui.head.scrollTop = 0;
	ui.ask.setAttribute("aria-expanded", String(!ui.help.hidden));
}

function say(text) {
	ui.said.textContent = text;
}
