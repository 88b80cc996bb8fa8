"use strict";

/* Frames narrower than a pixel, as they are painted. */

const path = require("path");

const { Page } = require("./browser.js");
const { readFolded, listFrames } = require("./verify-svg-folded.js");
const { check, equal, quiet } = require("./verify-svg-tap.js");

/* For each row of the canvas: its mean opacity, how often the colour changes from one pixel to the next, and the pixels in the colour of matches. */
const painted = `(function () {
	const canvas = document.querySelector(".pf-paint").cloneNode();
	const context = canvas.getContext("2d", { willReadFrequently: true });
	context.drawImage(document.querySelector(".pf-paint"), 0, 0);
	return Array.from({ length: Math.floor(canvas.height / 18) }, function (none, row) {
		const { data } = context.getImageData(0, row * 18 + 8, canvas.width, 1);
		let sum = 0;
		let changes = 0;
		let marks = 0;
		for (let i = 0; i < data.length; i += 4) {
			sum += data[i + 3] / 255;
			marks += data[i] === 0xea && data[i + 1] === 0x6d && data[i + 2] === 0xf2 ? 1 : 0;
			changes += i > 0 && (data[i] !== data[i - 4] || data[i + 1] !== data[i - 3]) ? 1 : 0;
		}
		return [sum / canvas.width, changes, marks];
	});
})()`;

/* Rows of frames that are all narrower than a pixel are as full as their frames are wide together, by the folded stacks. */
async function checkThin(browser, folder, shot) {
	const page = await Page.open(browser, { width: 600, height: 700 });
	await page.go("file://" + path.join(folder, "thin.svg"));
	const frames = listFrames(readFolded(path.join(folder, "thin.folded")), 0, 0, []);
	const rows = await page.run(painted);
	const wrong = [];
	for (let depth = 6; depth <= 20; depth++) {
		const covered = frames.filter((frame) => frame.depth === depth).reduce((sum, frame) => sum + frame.total, 0) / frames[0].total;
		// Every other pixel has four fifths of its colour.
		if (!(Math.abs(rows[depth][0] / 0.9 - covered) < 0.02) || rows[depth][1] < 100) {
			wrong.push([depth, covered, rows[depth]]);
		}
	}
	check(wrong.length === 0, "what narrow frames fill looks full, and like many", wrong);
	await page.key("/");
	await page.type("function_3");
	const share = frames.filter((frame) => frame.depth === 12 && frame.name === "function_3").reduce((sum, frame) => sum + frame.total, 0) / frames[0].total;
	const marked = (await page.run(painted))[12][2] / 600;
	check(Math.abs(marked - share) < 0.03, "matches among them have their share of the row", [marked, share]);
	await page.run(`document.querySelector("input").select()`);
	await page.type("rare");
	equal((await page.run(painted)).map((row) => row[2]).filter((marks) => marks > 0), [2], "and one alone is seen");
	await page.shot(shot);
	quiet(page, "thin");
	await page.close();
}

module.exports = { checkThin };
