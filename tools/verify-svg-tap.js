"use strict";

/* Checks of pages (browser.js), told as TAP. */

let number = 0;
let failed = 0;

function check(good, name, seen) {
	number++;
	failed += good ? 0 : 1;
	console.log((good ? "ok " : "not ok ") + number + " - " + name);
	if (!good) {
		console.log("# seen: " + JSON.stringify(seen));
	}
}

function equal(seen, expected, name) {
	check(JSON.stringify(seen) === JSON.stringify(expected), name, seen);
}

async function near(page, frame, left, width, name) {
	const span = await page.run(`document.querySelector(".pf-graph").clientWidth`);
	const at = await page.place(frame);
	check(at !== null && Math.abs(at[0] - left * span) < 1.6 && Math.abs(at[1] - width * span) < 1.6, name, at);
}

function quiet(page, name) {
	equal(page.troubles, [], name + ": no exception, console message, dialog or request");
}

/* After the last: the plan, and the exit status. */
function finish() {
	console.log("1.." + number);
	process.exitCode = failed > 0 ? 1 : 0;
}

module.exports = { check, equal, near, quiet, finish };
