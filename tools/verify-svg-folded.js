"use strict";

/* The call tree of folded stacks, counted without the picture. */

const fs = require("fs");

function emptyFolded(name) {
	return { name: name, total: 0, self: 0, children: new Map() };
}

/*
 * The numbers of frames and searches, counted anew from the folded stacks: each line is split and summed here, siblings in the order of
 * their bytes.
 */
function readFolded(file) {
	const root = emptyFolded("all");
	for (const line of fs.readFileSync(file, "utf8").split("\n").filter((text) => text)) {
		const [, stack, count] = /^(.*) ([1-9][0-9]*)$/.exec(line);
		let node = root;
		node.total += Number(count);
		for (const frame of stack.split(";")) {
			if (!node.children.has(frame)) {
				node.children.set(frame, emptyFolded(frame.replace(/_\[k\]$/, "")));
			}
			node = node.children.get(frame);
			node.total += Number(count);
		}
		node.self += Number(count);
	}
	return root;
}

function listFrames(node, depth, start, list) {
	list.push({ ...node, depth, start });
	let next = start;
	for (const [, child] of [...node.children].sort((a, b) => Buffer.compare(Buffer.from(a[0]), Buffer.from(b[0])))) {
		listFrames(child, depth + 1, next, list);
		next += child.total;
	}
	return list;
}

/* The weight of the stacks below the frame in which some frame matches, each once. */
function matched(node, test) {
	return test(node.name) ? node.total : [...node.children.values()].reduce((sum, child) => sum + matched(child, test), 0);
}

/* Adds the frames below one to those below another. */
function graft(onto, node) {
	onto.total += node.total;
	onto.self += node.self;
	for (const [name, child] of node.children) {
		if (!onto.children.has(name)) {
			onto.children.set(name, emptyFolded(child.name));
		}
		graft(onto.children.get(name), child);
	}
}

const grouped = (number) => number.toLocaleString("en-US");
const samples = (number) => grouped(number) + (number === 1 ? " sample" : " samples");
const share = (part, whole) => (part > 0 && part * 10000 < whole ? "<0.01%" : (part * 100 / whole).toFixed(2) + "%");

module.exports = { readFolded, emptyFolded, listFrames, matched, graft, grouped, samples, share };
