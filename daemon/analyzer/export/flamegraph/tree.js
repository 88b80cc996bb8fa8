/*
 * The tree that stands in the file as data (svg_pack.h), as typed arrays; frames are numbers in preorder. Names come from the
 * profiled program: they reach the page as text only, never as markup.
 */

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

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
		colours: new Uint32Array(names.length),
		images: new Uint32Array(names.length),
	};
	const symbols = reader(packed.symbols);
	for (let i = 0; i < names.length; i++) {
		t.kinds[i] = symbols.next();
		t.colours[i] = symbols.next();
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
