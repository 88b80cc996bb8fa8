/* What can be seen of the tree: elements for frames with a name, a canvas for those too narrow for one. */

const ROW = 18;
const TEXT_FROM = 22; // pixels: narrower frames carry no name and are painted, not made elements
const THIN = 1.5; // pixels: narrower ones are painted together (texture.js)
const NARROW = 600; // pixels: below it the texts around the graph have more lines
const SHORT = 420; // pixels: in windows lower than that they have less room, so that rows are seen
const SHORT_NARROW = 560; // pixels: and in narrow ones, where they have more lines
const TINY = 320; // pixels: below it the title, the tools and the note are left, and the rest comes with the help
const ROWS_LEAST = 4; // that help leaves room for, or it lies over them
const OVERSCAN = 12; // rows drawn outside of the visible part
const SHARP_PIXELS = 30000; // of a printed canvas, which has no more than 32,767
const SCALE_STEP = 64; // of a printed canvas: browsers round its scale down to 64ths

function top(depth) {
	const row = state.up ? state.rows - 1 - depth : depth;
	return row * ROW + 4;
}

function schedule() {
	if (!pending) {
		pending = window.requestAnimationFrame(function () {
			pending = 0;
			draw();
		});
	}
}

// The depths whose rows can be seen, with some to spare.
function visibleDepths() {
	if (state.printing) {
		return [0, Math.min(state.rows, PRINT_ROWS) - 1];
	}
	const first = Math.floor(ui.view.scrollTop / ROW) - OVERSCAN;
	const last = Math.ceil((ui.view.scrollTop + ui.view.clientHeight) / ROW) + OVERSCAN;
	return state.up ? [state.rows - 1 - last, state.rows - 1 - first] : [first, last];
}

function isLowerThan(height) {
	return alone && !state.printing && ui.app.clientHeight < height;
}

function fitHelp() {
	ui.head.classList.remove("pf-over");
	if (alone && !state.printing && !ui.help.hidden) {
		const room = ui.app.clientHeight - ui.head.offsetHeight - ui.details.offsetHeight;
		ui.head.classList.toggle("pf-over", room < ROWS_LEAST * ROW);
	}
}

function draw() {
	const width = state.printing ? PRINT_WIDTH : ui.graph.clientWidth;
	ui.app.classList.toggle("pf-narrow", width < NARROW);
	ui.app.classList.toggle("pf-short", isLowerThan(width < NARROW ? SHORT_NARROW : SHORT));
	ui.app.classList.toggle("pf-tiny", isLowerThan(TINY));
	fitHelp();
	if (tree.total[0] <= 0 || width <= 0) {
		return;
	}
	[state.first, state.last] = visibleDepths();
	state.width = width;
	state.scale = width / tree.total[state.zoom];
	const pieces = document.createDocumentFragment();
	const context = paper(pieces);
	drawAncestors(pieces);
	drawBelow(pieces, context);
	ui.hover = element("div", "pf-mark pf-hover");
	ui.hover.hidden = true;
	pieces.appendChild(ui.hover);
	ui.current = element("div", "pf-mark pf-current");
	pieces.appendChild(ui.current);
	ui.graph.replaceChildren(pieces);
	place(ui.current, state.current);
}

function drawAncestors(pieces) {
	for (let frame = state.zoom; frame !== 0;) {
		frame = tree.parent[frame];
		if (tree.depth[frame] >= state.first && tree.depth[frame] <= state.last) {
			drawFrame(pieces, frame, 0, state.width).classList.add("pf-above");
		}
	}
}

// The canvas for the narrow frames lies under the drawn rows and scrolls with them.
function paper(pieces) {
	const first = Math.max(state.first, 0);
	const last = Math.min(state.last, state.rows - 1);
	const y = top(state.up ? last : first);
	const height = Math.max(last - first + 1, 1) * ROW;
	const sharp = state.printing ? printedSharpness(height) : window.devicePixelRatio || 1;
	ui.canvas.width = Math.ceil(state.width * sharp);
	ui.canvas.height = Math.ceil(height * sharp);
	pieces.appendChild(state.printing ? stretched(ui.canvas, y, height, sharp) : spread(ui.canvas, y, height));
	const context = ui.canvas.getContext("2d");
	context.setTransform(sharp, 0, 0, sharp, 0, -y * sharp);
	return context;
}

function spread(sheet, y, height) {
	sheet.style.top = y + "px";
	sheet.style.width = "100%";
	sheet.style.height = height + "px";
	return sheet;
}

function printedSharpness(height) {
	return SCALE_STEP / Math.ceil(SCALE_STEP / Math.min(2, SHARP_PIXELS / height));
}

/* On a page, whose width nobody knows yet, the canvas keeps its size, and so its true scale; what is around it is stretched. */
function stretched(canvas, y, height, sharp) {
	const around = svgElement("svg", { "class": "pf-paint", viewBox: "0 0 " + state.width + " " + height, preserveAspectRatio: "none" });
	const inside = svgElement("foreignObject", { width: canvas.width / sharp, height: canvas.height / sharp });
	canvas.style.top = "0";
	canvas.style.width = canvas.width / sharp + "px";
	canvas.style.height = canvas.height / sharp + "px";
	around.appendChild(inside);
	inside.appendChild(canvas);
	return spread(around, y, height);
}

/* Every frame in the rows is looked at, however narrow: together they can fill a row. Matches are painted last and never too narrow to be seen. */
function drawBelow(pieces, context) {
	const texture = makeTexture(Math.max(state.first, 0), Math.min(state.last, state.rows - 1), ui.canvas.width, ui.canvas.width / state.width);
	const hits = [];
	const origin = tree.start[state.zoom];
	for (let i = state.zoom; i < tree.end[state.zoom];) {
		const width = tree.total[i] * state.scale;
		const depth = tree.depth[i];
		const left = (tree.start[i] - origin) * state.scale;
		if (depth >= state.first && depth <= state.last) {
			if (width >= TEXT_FROM || i === state.zoom) {
				drawFrame(pieces, i, left, width);
			} else if (width < THIN) {
				addToTexture(texture, depth, left, width, tree.colours[tree.symbol[i]], isHit(i));
			} else if (isHit(i)) {
				hits.push([left, depth, Math.max(width, 2)]);
			} else {
				paint(context, i, left, width);
			}
		}
		i = depth >= state.last ? tree.end[i] : i + 1;
	}
	const match = window.getComputedStyle(ui.app).getPropertyValue("--hit").trim();
	paintTexture(context, texture, isDark() ? data.dark : data.light, match);
	context.fillStyle = match;
	hits.forEach((hit) => context.fillRect(hit[0], top(hit[1]), hit[2], ROW - 1));
}

function isHit(frame) {
	return search.active && search.symbols[tree.symbol[frame]] === 1;
}

// What is left between neighbours: a line as long as the frames are wide enough for one.
function shown(width) {
	return Math.max(width - (width > 4 ? 1 : 0), 0.5);
}

function colour(frame) {
	return (isDark() ? data.dark : data.light)[tree.colours[tree.symbol[frame]]];
}

function paint(context, frame, left, width) {
	context.fillStyle = colour(frame);
	context.fillRect(left, top(tree.depth[frame]), shown(width), ROW - 1);
}

function drawFrame(pieces, frame, left, width) {
	const hit = isHit(frame);
	const made = element("div", hit ? "pf-frame pf-hit" : "pf-frame", pieces, legible(name(frame)));
	const style = made.style;
	// In shares of the width, so that it fits on a page too.
	style.left = (left * 100 / state.width).toFixed(4) + "%";
	style.top = top(tree.depth[frame]) + "px";
	style.width = "calc(" + (width * 100 / state.width).toFixed(4) + "% - " + (width - shown(width)) + "px)";
	style.backgroundColor = hit ? "var(--hit)" : colour(frame);
	return made;
}

function place(mark, frame) {
	const above = frame !== state.zoom && within(state.zoom, frame);
	const inside = within(frame, state.zoom);
	const left = above ? 0 : (tree.start[frame] - tree.start[state.zoom]) * state.scale;
	const width = above ? state.width : tree.total[frame] * state.scale;
	mark.hidden = !above && !inside;
	mark.style.left = left + "px";
	mark.style.top = top(tree.depth[frame]) + "px";
	mark.style.width = Math.max(shown(width), 3) + "px";
}
