(function () {
	"use strict";

	/*
	 * The live flame graph: reads the tree that stands in the file as data (svg_pack.h) and draws what can be seen of it.
	 * Names come from the profiled program: they reach the page as text only, never as markup.
	 */
	const ROW = 18;
	const TEXT_FROM = 22; // pixels: narrower frames carry no name and are painted, not made elements
	const THIN = 1.5; // pixels: neighbours narrower than this are painted as one block
	const SKIP = 0.1; // pixels: what stands on a narrower frame is not looked at
	const OVERSCAN = 12; // rows drawn outside of the visible part
	const XHTML = "http://www.w3.org/1999/xhtml";
	const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
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

	const script = document.currentScript;
	const root = script && script.closest("svg.pf");
	const source = root && root.querySelector("script.pf-data");
	if (!source) {
		return;
	}
	const alone = document.documentElement === root; // not part of somebody's page
	const data = JSON.parse(source.textContent);
	const tree = unpack(data);
	const state = { zoom: 0, current: 0, up: false, query: "", first: 0, last: -1 };
	const search = { active: false, symbols: null, list: [], weight: 0 };
	const ui = build();
	const dark = window.matchMedia("(prefers-color-scheme: dark)");
	let colours = mixColours(dark.matches);
	let pending = 0;

	start();

	// ---- the tree

	function reader(text) {
		const digits = new Uint8Array(128);
		for (let i = 0; i < 64; i++) {
			digits[ALPHABET.charCodeAt(i)] = i;
		}
		let pos = 0;
		return {
			more: () => pos < text.length,
			// Not with shifts: weights may have up to 53 bits.
			next: function () {
				let value = 0;
				let scale = 1;
				for (;;) {
					const digit = digits[text.charCodeAt(pos++)];
					value += (digit & 31) * scale;
					if (digit < 32) {
						return value;
					}
					scale *= 32;
				}
			},
		};
	}

	function unpack(packed) {
		const count = packed.frames;
		const names = packed.names;
		const t = {
			count: count,
			symbol: new Uint32Array(count),
			parent: new Uint32Array(count),
			depth: new Uint32Array(count),
			end: new Uint32Array(count),
			self: new Float64Array(count),
			total: new Float64Array(count),
			start: new Float64Array(count),
			kinds: new Uint8Array(names.length),
			shades: new Uint8Array(names.length),
			images: new Uint32Array(names.length),
		};
		const symbols = reader(packed.symbols);
		for (let i = 0; i < names.length; i++) {
			t.kinds[i] = symbols.next();
			t.shades[i] = symbols.next();
			t.images[i] = symbols.next();
		}
		unpackFrames(t, reader(packed.tree));
		sumUp(t);
		return t;
	}

	function unpackFrames(t, frames) {
		const open = []; // the frame open at each depth
		let depth = 0;
		for (let i = 0; i < t.count; i++) {
			const head = frames.next();
			t.symbol[i] = frames.next();
			t.self[i] = head % 2 ? frames.next() : 0;
			depth -= Math.floor(head / 2);
			t.depth[i] = depth;
			t.parent[i] = depth > 0 ? open[depth - 1] : 0;
			open[depth] = i;
			depth++;
		}
	}

	// Totals and ends from the back, where children come before parents; starts from the front.
	function sumUp(t) {
		for (let i = t.count - 1; i >= 0; i--) {
			t.total[i] += t.self[i];
			t.end[i] = Math.max(t.end[i], i + 1);
			if (i > 0) {
				const up = t.parent[i];
				t.total[up] += t.total[i];
				t.end[up] = Math.max(t.end[up], t.end[i]);
			}
		}
		const next = new Float64Array(t.count);
		for (let i = 1; i < t.count; i++) {
			const up = t.parent[i];
			t.start[i] = t.start[up] + next[up];
			next[up] += t.total[i];
		}
	}

	function name(frame) {
		return data.names[tree.symbol[frame]];
	}

	function within(frame, outer) {
		return frame >= outer && frame < tree.end[outer];
	}

	function ancestor(frame, depth) {
		while (tree.depth[frame] > depth) {
			frame = tree.parent[frame];
		}
		return frame;
	}

	function commonAncestor(a, b) {
		while (!within(a, b)) {
			b = tree.parent[b];
		}
		return b;
	}

	function deepest(outer) {
		let depth = tree.depth[outer];
		for (let i = outer; i < tree.end[outer]; i++) {
			depth = Math.max(depth, tree.depth[i]);
		}
		return depth;
	}

	// The frame of that depth at a weight from the left, below the zoomed one; -1 where there is none.
	function frameAt(depth, weight) {
		let frame = state.zoom;
		while (tree.depth[frame] < depth) {
			let child = frame + 1;
			while (child < tree.end[frame] && tree.start[child] + tree.total[child] <= weight) {
				child = tree.end[child];
			}
			if (child >= tree.end[frame] || tree.start[child] > weight) {
				return -1;
			}
			frame = child;
		}
		return frame;
	}

	// ---- the page

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

	// ---- drawing

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
		const first = Math.floor(ui.view.scrollTop / ROW) - OVERSCAN;
		const last = Math.ceil((ui.view.scrollTop + ui.view.clientHeight) / ROW) + OVERSCAN;
		return state.up ? [state.rows - 1 - last, state.rows - 1 - first] : [first, last];
	}

	function draw() {
		const width = ui.graph.clientWidth;
		if (tree.total[0] <= 0 || width <= 0) {
			return;
		}
		[state.first, state.last] = visibleDepths();
		state.width = width;
		state.scale = width / tree.total[state.zoom];
		const pieces = document.createDocumentFragment();
		pieces.appendChild(ui.canvas);
		drawAncestors(pieces);
		drawBelow(pieces, paper());
		ui.hover = element("div", "pf-mark pf-hover");
		ui.hover.hidden = true;
		pieces.appendChild(ui.hover);
		ui.current = element("div", "pf-mark pf-current");
		ui.current.setAttribute("role", "treeitem");
		ui.current.setAttribute("id", ui.currentId);
		pieces.appendChild(ui.current);
		ui.graph.replaceChildren(pieces);
		markCurrent();
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
	function paper() {
		const first = Math.max(state.first, 0);
		const last = Math.min(state.last, state.rows - 1);
		const y = top(state.up ? last : first);
		const height = Math.max(last - first + 1, 1) * ROW;
		const sharp = window.devicePixelRatio || 1;
		ui.canvas.width = Math.ceil(state.width * sharp);
		ui.canvas.height = Math.ceil(height * sharp);
		ui.canvas.style.top = y + "px";
		ui.canvas.style.width = state.width + "px";
		ui.canvas.style.height = height + "px";
		const context = ui.canvas.getContext("2d");
		context.setTransform(sharp, 0, 0, sharp, 0, -y * sharp);
		return context;
	}

	/*
	 * Preorder goes from left to right in every row, so that a row's thinnest frames can be gathered into one block
	 * while they touch each other. Matches are painted last and never too narrow to be seen.
	 */
	function drawBelow(pieces, context) {
		const blocks = new Map(); // by depth
		const hits = [];
		const origin = tree.start[state.zoom];
		for (let i = state.zoom; i < tree.end[state.zoom];) {
			const width = tree.total[i] * state.scale;
			const depth = tree.depth[i];
			const left = (tree.start[i] - origin) * state.scale;
			if (depth >= state.first && depth <= state.last) {
				if (width >= TEXT_FROM || i === state.zoom) {
					drawFrame(pieces, i, left, width);
				} else if (isHit(i)) {
					hits.push([left, depth, Math.max(width, 2)]);
				} else if (width >= THIN) {
					paint(context, i, left, width);
				} else {
					gather(context, blocks, i, left, width);
				}
			}
			i = depth >= state.last || width < SKIP ? tree.end[i] : i + 1;
		}
		blocks.forEach((block) => paint(context, block.frame, block.left, block.right - block.left));
		context.fillStyle = window.getComputedStyle(ui.app).getPropertyValue("--hit");
		hits.forEach((hit) => context.fillRect(hit[0], top(hit[1]), hit[2], ROW - 1));
	}

	function isHit(frame) {
		return search.active && search.symbols[tree.symbol[frame]] === 1;
	}

	function gather(context, blocks, frame, left, width) {
		const block = blocks.get(tree.depth[frame]);
		if (block && left - block.right < 0.5) {
			block.right = left + width;
			return;
		}
		if (block) {
			paint(context, block.frame, block.left, block.right - block.left);
		}
		blocks.set(tree.depth[frame], { frame: frame, left: left, right: left + width });
	}

	// What is left between neighbours: a line as long as the frames are wide enough for one.
	function shown(width) {
		return Math.max(width - (width > 4 ? 1 : 0), 0.5);
	}

	function colour(frame) {
		const symbol = tree.symbol[frame];
		return colours[tree.kinds[symbol]][tree.shades[symbol]];
	}

	function paint(context, frame, left, width) {
		context.fillStyle = colour(frame);
		context.fillRect(left, top(tree.depth[frame]), shown(width), ROW - 1);
	}

	function drawFrame(pieces, frame, left, width) {
		const hit = isHit(frame);
		const made = element("div", hit ? "pf-frame pf-hit" : "pf-frame", pieces, name(frame));
		const style = made.style;
		style.left = left.toFixed(2) + "px";
		style.top = top(tree.depth[frame]) + "px";
		style.width = shown(width).toFixed(2) + "px";
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

	function markCurrent() {
		const frame = state.current;
		place(ui.current, frame);
		ui.current.setAttribute("aria-level", String(tree.depth[frame] + 1));
		ui.current.setAttribute("aria-label", name(frame) + ", " + numbers(frame));
		ui.view.setAttribute("aria-activedescendant", ui.currentId);
	}

	// ---- details

	function numbers(frame) {
		const total = tree.total[frame];
		const image = data.images[tree.images[tree.symbol[frame]]];
		const parts = [group(total) + " " + data.unit, percent(total, tree.total[0]) + " of all"];
		if (state.zoom !== 0 && within(frame, state.zoom)) {
			parts.push(percent(total, tree.total[state.zoom]) + " of zoom");
		}
		parts.push("self " + group(tree.self[frame]) + " (" + percent(tree.self[frame], tree.total[0]) + ")");
		if (image) {
			parts.push(image);
		}
		return parts.join(" \u00b7 ");
	}

	function tell(frame) {
		ui.name.textContent = name(frame);
		ui.numbers.textContent = numbers(frame);
	}

	function frameUnder(event) {
		const box = ui.graph.getBoundingClientRect();
		const row = Math.floor((event.clientY - box.top - 4) / ROW);
		const depth = state.up ? state.rows - 1 - row : row;
		if (row < 0 || depth < 0 || !(state.scale > 0)) {
			return -1;
		}
		if (depth < tree.depth[state.zoom]) {
			return ancestor(state.zoom, depth);
		}
		return frameAt(depth, tree.start[state.zoom] + (event.clientX - box.left) / state.scale);
	}

	function onHover(event) {
		const frame = frameUnder(event);
		if (frame < 0) {
			onLeave();
			return;
		}
		if (ui.hover) {
			place(ui.hover, frame);
		}
		tell(frame);
	}

	function onLeave() {
		if (ui.hover) {
			ui.hover.hidden = true;
		}
		tell(state.current);
	}

	// ---- zoom and walking

	function layout() {
		state.rows = deepest(state.zoom) + 1;
		ui.graph.style.height = state.rows * ROW + 8 + "px";
		ui.reset.disabled = state.zoom === 0;
	}

	function scrollTo(frame) {
		const y = top(tree.depth[frame]);
		const height = ui.view.clientHeight;
		if (y < ui.view.scrollTop || y + ROW > ui.view.scrollTop + height) {
			ui.view.scrollTop = Math.max(0, y - height / 2);
		}
	}

	function zoomTo(frame) {
		state.zoom = frame;
		state.current = frame;
		layout();
		if (state.up) {
			ui.view.scrollTop = ui.view.scrollHeight;
		}
		scrollTo(frame);
		count();
		draw();
		tell(frame);
		save();
	}

	function select(frame) {
		if (!within(frame, state.zoom) && !within(state.zoom, frame)) {
			zoomTo(commonAncestor(frame, state.zoom));
		}
		state.current = frame;
		scrollTo(frame);
		draw();
		tell(frame);
	}

	function widestChild(frame) {
		let widest = -1;
		for (let i = frame + 1; i < tree.end[frame]; i = tree.end[i]) {
			if (widest < 0 || tree.total[i] > tree.total[widest]) {
				widest = i;
			}
		}
		return widest;
	}

	// The next frame of the same depth to the right (1) or left (-1) within the zoomed one.
	function neighbour(frame, direction) {
		for (let i = frame + direction; within(i, state.zoom); i += direction) {
			if (tree.depth[i] === tree.depth[frame]) {
				return i;
			}
		}
		return -1;
	}

	function walk(key) {
		const frame = state.current;
		const inwards = state.up ? "ArrowUp" : "ArrowDown";
		let to = -1;
		if (key === "ArrowLeft" || key === "ArrowRight") {
			to = neighbour(frame, key === "ArrowRight" ? 1 : -1);
		} else if (key === inwards) {
			to = within(frame, state.zoom) ? widestChild(frame) : ancestor(state.zoom, tree.depth[frame] + 1);
		} else if (frame !== 0) {
			to = tree.parent[frame];
		}
		if (to >= 0) {
			select(to);
		}
	}

	function flip() {
		state.up = !state.up;
		ui.view.scrollTop = state.up ? ui.view.scrollHeight : 0;
		scrollTo(state.current);
		draw();
		save();
	}

	function copyName() {
		if (navigator.clipboard) {
			navigator.clipboard.writeText(name(state.current)).then(
				() => { ui.found.textContent = "name copied"; },
				() => { ui.found.textContent = "copying is not allowed here"; });
		}
	}

	// ---- search

	// A query without capitals ignores case. What is no regular expression is looked for as it stands.
	function matcher(query) {
		const flags = query === query.toLowerCase() ? "i" : "";
		try {
			return { regex: new RegExp(query, flags), literal: false };
		} catch (error) {
			return { regex: new RegExp(query.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), flags), literal: true };
		}
	}

	function find(query) {
		state.query = query;
		search.active = query !== "";
		search.list = [];
		ui.search.classList.remove("pf-literal");
		if (search.active) {
			const match = matcher(query);
			search.symbols = Uint8Array.from(data.names, (text) => (match.regex.test(text) ? 1 : 0));
			ui.search.classList.toggle("pf-literal", match.literal);
		}
		count();
		draw();
		save();
	}

	// The outermost matches from the zoomed frame on: their weights can be added, nothing is counted twice.
	function count() {
		search.list = [];
		search.weight = 0;
		for (let i = state.zoom; search.active && i < tree.end[state.zoom];) {
			if (search.symbols[tree.symbol[i]] === 1) {
				search.list.push(i);
				search.weight += tree.total[i];
				i = tree.end[i];
			} else {
				i++;
			}
		}
		const share = percent(search.weight, tree.total[state.zoom]);
		ui.found.textContent = search.active ? "matched " + share + " (" + group(search.list.length) + ")" : "";
		ui.next.disabled = ui.previous.disabled = search.list.length === 0;
	}

	function step(direction) {
		const list = search.list;
		if (list.length === 0) {
			return;
		}
		let at = list.findIndex((frame) => (direction > 0 ? frame > state.current : frame >= state.current));
		if (direction > 0) {
			at = at < 0 ? 0 : at;
		} else {
			at = at <= 0 ? list.length - 1 : at - 1;
		}
		select(list[at]);
	}

	// ---- the address: #z=DEPTH.START&s=QUERY&up=1, below which a frame is found again whatever the width

	function save() {
		if (!alone) {
			return;
		}
		const parts = [];
		if (state.zoom !== 0) {
			parts.push("z=" + tree.depth[state.zoom] + "." + tree.start[state.zoom]);
		}
		if (state.query) {
			parts.push("s=" + encodeURIComponent(state.query));
		}
		if (state.up) {
			parts.push("up=1");
		}
		try {
			window.history.replaceState(null, "", parts.length ? "#" + parts.join("&") : "#");
		} catch (error) {
			// Some places, such as sandboxed frames, have no history: the graph works without.
		}
	}

	function restore() {
		const known = new Map();
		if (alone) {
			window.location.hash.slice(1).split("&").forEach(function (part) {
				const at = part.indexOf("=");
				known.set(part.slice(0, at), part.slice(at + 1));
			});
		}
		const place = /^(\d+)\.(\d+)$/.exec(known.get("z") || "");
		state.zoom = 0;
		const frame = place ? frameAt(Number(place[1]), Number(place[2])) : 0;
		let query = "";
		try {
			query = decodeURIComponent(known.get("s") || "");
		} catch (error) {
			query = ""; // a broken escape in an address typed by hand
		}
		state.up = known.get("up") === "1";
		state.zoom = state.current = Math.max(frame, 0);
		ui.search.value = query;
		layout();
		ui.view.scrollTop = state.up ? ui.view.scrollHeight : 0;
		scrollTo(state.zoom);
		find(query);
		tell(state.zoom);
	}

	// ---- keys

	function onKey(event) {
		const typing = event.target === ui.search;
		const ctrl = event.ctrlKey || event.metaKey;
		let known = true;
		if (ctrl && event.key === "f" && !event.altKey && !event.shiftKey) {
			// The second Ctrl-F is the browser's own.
			known = !typing;
		} else if (ctrl || event.altKey) {
			known = false;
		} else if (typing) {
			known = searchKey(event.key, event.shiftKey);
		} else if (event.target.tagName === "button") {
			known = event.key !== "Enter" && event.key !== " " && graphKey(event.key);
		} else {
			known = graphKey(event.key);
		}
		if (known && (ctrl || event.key === "/") && !typing) {
			ui.search.focus();
			ui.search.select();
		}
		if (known) {
			ui.view.classList.add("pf-keys");
			event.preventDefault();
		}
	}

	function searchKey(key, backwards) {
		if (key === "Escape") {
			ui.search.value = "";
			find("");
			ui.view.focus();
			return true;
		}
		if (key === "Enter") {
			step(backwards ? -1 : 1);
			return true;
		}
		return false;
	}

	function graphKey(key) {
		if (key.startsWith("Arrow")) {
			walk(key);
		} else if (key === "Enter" || key === " ") {
			zoomTo(state.current);
		} else if (key === "Escape" || key === "0") {
			zoomTo(0);
		} else if (key === "Backspace") {
			zoomTo(tree.parent[state.zoom]);
		} else if (key === "n" || key === "N") {
			step(key === "n" ? 1 : -1);
		} else if (key === "i") {
			flip();
		} else if (key === "c") {
			copyName();
		} else {
			return key === "/";
		}
		return true;
	}

	// ---- start

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
		new ResizeObserver(schedule).observe(ui.view);
		dark.addEventListener("change", function () {
			colours = mixColours(dark.matches);
			schedule();
		});
	}

	function start() {
		ui.currentId = "pf-" + Math.random().toString(36).slice(2);
		const picture = root.querySelector("g.pf-static");
		const frame = document.createElementNS("http://www.w3.org/2000/svg", "foreignObject");
		frame.setAttribute("width", "100%");
		frame.setAttribute("height", "100%");
		frame.appendChild(ui.app);
		root.removeAttribute("viewBox");
		root.removeAttribute("role");
		root.setAttribute("width", "100%");
		if (alone) {
			root.setAttribute("height", "100%");
		}
		root.replaceChild(frame, picture);
		if (tree.total[0] <= 0) {
			ui.graph.remove();
			element("div", "pf-empty", ui.view, "no " + data.unit);
			ui.search.disabled = ui.reset.disabled = ui.flip.disabled = ui.next.disabled = ui.previous.disabled = true;
			return;
		}
		listen();
		restore();
		if (alone) {
			ui.view.focus();
		}
	}
})();
