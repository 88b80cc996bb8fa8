"use strict";

/* Windows with little room: rows are seen, and what was asked for too. */

const path = require("path");

const { Page, pause } = require("./browser.js");
const { check, equal, quiet } = require("./verify-svg-tap.js");

const SIZES = [[320, 250], [200, 300], [600, 200], [1200, 160]];

/* How much of the graph one sees in short windows, and the tools beside each other in narrow ones. */
async function checkShort(browser, url, shots) {
	for (const [width, height] of SIZES) {
		const page = await Page.open(browser, { width, height });
		await page.go(url("random"));
		await pause(100);
		const seen = await page.run(`(function () {
			const box = document.querySelector(".pf-view").getBoundingClientRect();
			const middle = document.elementFromPoint(box.left + 5, box.top + 10);
			return [Math.min(box.bottom, innerHeight) - box.top, middle !== null && middle.closest(".pf-view") !== null, document.documentElement.scrollWidth <= innerWidth];
		})()`);
		check(seen[0] >= 54 && seen[1] && seen[2], `three rows and more are seen of ${width} by ${height} pixels`, seen);
		await page.shot(shots && path.join(shots, `short-${width}-${height}.png`));
		quiet(page, "short");
		await page.close();
	}
	const page = await Page.open(browser, { width: 320, height: 700 });
	await page.go(url("random"));
	const tops = await page.run(`[...document.querySelectorAll(".pf-tools input, .pf-tools button")].map((e) => e.offsetTop)`);
	check(new Set(tops).size === 1, "at 320 pixels the tools stand in one line", tops);
	await page.send("Emulation.setDeviceMetricsOverride", { width: 1200, height: 700, deviceScaleFactor: 1, mobile: false });
	await pause(200);
	const blank = await page.run(`innerWidth - document.querySelector(".pf-tools button:last-of-type").getBoundingClientRect().right`);
	check(blank < 30, "and nothing is left free on their right", blank);
	await page.close();
}

/* What of the page cannot be seen: elements by selector that lie outside of the window or below something else, wholly or in part. */
const hidden = (selectors) => `${JSON.stringify(selectors)}.filter(function (selector) {
	const seen = document.querySelector(selector);
	const box = seen.getBoundingClientRect();
	const corners = [[box.left + 2, box.top + 2], [box.right - 2, box.bottom - 2]];
	return box.width < 5 || !corners.every(([x, y]) => seen.contains(document.elementFromPoint(x, y)));
})`;

/* Lines of the notes and the legend that are seen in part. */
const cutLines = `[...document.querySelectorAll(".pf-note, .pf-legend, .pf-subtitle")].flatMap(function (outer) {
	const box = outer.getBoundingClientRect();
	const lines = document.createRange();
	lines.selectNodeContents(outer);
	return [...lines.getClientRects()].filter((line) => line.top < Math.min(box.bottom, innerHeight) - 2 && line.bottom > Math.min(box.bottom, innerHeight) + 2).map(() => outer.textContent);
})`;

/* Whether some words of the note are in sight. */
const isNoted = (words) => `(function () {
	const note = document.querySelector(".pf-note");
	const range = document.createRange();
	const at = note.textContent.indexOf(${JSON.stringify(words)});
	range.setStart(note.firstChild, at);
	range.setEnd(note.firstChild, at + ${words.length});
	const [inner, box] = [range.getBoundingClientRect(), note.getBoundingClientRect()];
	return at >= 0 && inner.bottom <= box.bottom + 1 && inner.right <= box.right + 1 && box.bottom <= innerHeight;
})()`;

const tools = ["input", ...["Previous", "Next", "Reset", "Root", "Keys"].map((label) => `[aria-label^="${label}"]`)];
const details = [".pf-name", ".pf-numbers", `[aria-label^="Copy"]`];

async function checkShortTexts(browser, url, shots) {
	for (const name of ["random", "merged"]) {
		for (const [width, height] of SIZES) {
			const page = await Page.open(browser, { width, height });
			await page.go(url(name));
			await pause(100);
			equal(await page.run(isNoted("stacks cut")), true, `${name} by ${width} by ${height} pixels: what the samples lack is seen`);
			equal(await page.run(cutLines), [], "and no line is cut through");
			await page.key("/");
			await page.type("a(?=b)");
			equal(await page.run(hidden([".pf-found", ...tools, ...details])), [], "so are what a search found, all tools, and the frame's numbers");
			await checkShortHelp(page);
			await page.shot(shots && path.join(shots, `${name}-found-${width}-${height}.png`));
			quiet(page, "short");
			await page.close();
		}
	}
	await checkHelp(browser, url("merged"));
}

async function checkShortHelp(page) {
	await page.run(`document.querySelector(".pf-view").focus()`);
	await page.key("?");
	equal(await page.run(hidden([".pf-help dt", ".pf-help dd", ...tools])), [], "the keys are seen when asked for");
	for (let i = 0; i < 20; i++) {
		await page.key("ArrowDown");
	}
	equal(await page.run(hidden([".pf-legend"])), [], "and to their end, and what else there was no room for");
	await page.key("Escape");
	equal(await page.run(hidden([".pf-frame"])), [], "then the graph again");
}

/* Where there is room the help stands above the graph and changes nothing else; where there is less than that, it lies over it. */
async function checkHelp(browser, url) {
	const all = [".pf-title", ".pf-note", ".pf-legend", ".pf-help div:last-child", ".pf-frame", ...details];
	for (const [width, height, isOver] of [[1200, 760, false], [360, 760, false], [600, 430, true], [360, 570, true]]) {
		const page = await Page.open(browser, { width, height });
		await page.go(url);
		await page.key("?");
		const [first, ...rest] = await page.run(hidden(all));
		equal([first, rest.length > 0], isOver ? [".pf-frame", true] : [undefined, false], `help in ${width} by ${height} pixels leaves what there is room for`);
		equal(await page.run(hidden([".pf-help div:first-child", ".pf-help div:last-child", ...tools])), [], "and is seen");
		await page.key("?");
		equal(await page.run(hidden([".pf-title", ".pf-frame", ...details])), [], "and goes");
		quiet(page, "help");
		await page.close();
	}
}

module.exports = { checkShort, checkShortTexts };
