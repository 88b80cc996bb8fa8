#!/usr/bin/env node
"use strict";

/*
 * What a flame graph costs in Chromium: opening it, zooming, resetting, searching, in milliseconds, the slowest and the median of some rounds.
 *
 *   tools/bench/picture.js FILE.svg…      those of bench-picture
 */

const fs = require("fs");
const os = require("os");
const path = require("path");

const { Browser, Page } = require("../browser.js");

const ROUNDS = 5;
const PROGRAMS = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

async function timed(times, name, action) {
	const before = performance.now();
	await action();
	(times[name] = times[name] || []).push(performance.now() - before);
}

/* One that is wide enough to be met and has others below it: the middle one of those with a name. */
function middle(page) {
	return page.run(`(function () {
		const frames = [...document.querySelectorAll(".pf-frame")].filter((frame) => frame.offsetTop > 60 && frame.offsetWidth > 60);
		const box = frames[Math.floor(frames.length / 2)].getBoundingClientRect();
		return [box.left + 30, box.top + 8];
	})()`);
}

async function click(page, [x, y]) {
	const point = { x, y, button: "left", clickCount: 1 };
	await page.send("Input.dispatchMouseEvent", { ...point, type: "mousePressed" });
	await page.send("Input.dispatchMouseEvent", { ...point, type: "mouseReleased" });
	await page.frame();
}

async function measure(browser, file) {
	const times = {};
	for (let round = 0; round < ROUNDS; round++) {
		const page = await Page.open(browser, { width: 1400, height: 900 });
		await timed(times, "open", () => page.go("file://" + path.resolve(file)));
		const at = await middle(page);
		await timed(times, "zoom", () => click(page, at));
		await timed(times, "reset", () => page.key("Escape"));
		await page.key("/");
		await timed(times, "search", () => page.type("parser"));
		await timed(times, "next", () => page.key("Enter"));
		if (page.troubles.length > 0) {
			throw new Error(page.troubles[0]);
		}
		await page.close();
	}
	const median = (list) => list.sort((a, b) => a - b)[Math.floor(list.length / 2)];
	console.log(path.basename(file) + ", " + (fs.statSync(file).size / 1e6).toFixed(2) + " MB: " + Object.entries(times)
		.map(([name, list]) => `${name} ${Math.round(median(list))} ms (at most ${Math.round(list[list.length - 1])})`).join(", "));
}

async function main(files) {
	const program = PROGRAMS.find((each) => fs.existsSync(each));
	if (!program || files.length === 0) {
		console.error("usage: tools/bench/picture.js FILE.svg…   (needs Chromium)");
		process.exit(2);
	}
	const folder = fs.mkdtempSync(path.join(os.tmpdir(), "bench-picture-"));
	const browser = new Browser(program, folder);
	try {
		for (const file of files) {
			await measure(browser, file);
		}
	} finally {
		await browser.close();
		fs.rmSync(folder, { recursive: true, force: true });
	}
}

main(process.argv.slice(2)).catch((error) => {
	console.error(error.stack);
	process.exit(1);
});
