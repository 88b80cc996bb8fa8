"use strict";

/* The picture on paper: where frames lie, by the pixels of the rendered page, and how many pages there are. */

const { execFileSync } = require("child_process");
const fs = require("fs");
const path = require("path");

const { Page } = require("./browser.js");
const { check, quiet } = require("./verify-svg-tap.js");

const RESOLUTION = 96; // a pixel of the rendered page is one of the browser's
const MARGIN = 0.4; // inches, Chromium's own
const RENDERED_MOST = 1 << 28; // bytes

function hasPoppler() {
	try {
		execFileSync("pdftoppm", ["-v"], { stdio: "ignore" });
		return true;
	} catch (error) {
		return false;
	}
}

/* The first page: width, and for each row of pixels a view of its bytes, three to a pixel. */
function render(file) {
	const bytes = execFileSync("pdftoppm", ["-r", String(RESOLUTION), "-l", "1", file], { maxBuffer: RENDERED_MOST });
	const [head, width, height] = /^P6\s(\d+)\s(\d+)\s255\s/.exec(bytes.subarray(0, 40).toString("latin1"));
	const span = 3 * Number(width);
	return Array.from({ length: Number(height) }, (none, y) => bytes.subarray(head.length + y * span, head.length + (y + 1) * span));
}

/* Where the first pixel is that looks so, and where the last one ends. */
function extent(row, isSeen) {
	let [first, last] = [-1, -1];
	for (let x = 0; 3 * x < row.length; x++) {
		if (isSeen(row[3 * x], row[3 * x + 1], row[3 * x + 2])) {
			first = first < 0 ? x : first;
			last = x;
		}
	}
	return [first, last + 1];
}

const isColoured = (r, g, b) => Math.max(r, g, b) - Math.min(r, g, b) > 12;
const isMatch = (r, g, b) => b > g + 60 && r > g + 60;

async function printed(page, folder, paper) {
	const file = path.join(folder, "page.pdf");
	const { data } = await page.send("Page.printToPDF", { printBackground: true, ...paper });
	fs.writeFileSync(file, Buffer.from(data, "base64"));
	return file;
}

/*
 * The sample "many": 1,000 calls of one sample, one below the other, and beside them main, which has the other 3,000 samples: its 1,000
 * functions 3 each, in the order of their names. On the page, which is so high that all rows are on it, a row is 18 pixels high.
 */
async function checkPlaces(browser, folder) {
	for (const width of [600, 1200, 1900]) {
		const page = await Page.open(browser, { width, height: 800 });
		await page.go("file://" + path.join(folder, "many.svg") + "#s=function_500%7Cbottom");
		const rows = render(await printed(page, folder, { paperWidth: 8.5, paperHeight: 195 }));
		const left = Math.round(MARGIN * RESOLUTION);
		const span = rows[0].length / 3 - 2 * left;
		const marks = rows.map((row) => extent(row, isMatch)).map((at, y) => [y, ...at]).filter((at) => at[1] >= 0);
		const narrow = marks[0] ? extent(rows[marks[0][0] + 8], isColoured) : [];
		check(Math.abs(narrow[0] - left) < 3 && Math.abs(narrow[1] - left - span) < 3,
			`printed from ${width} pixels narrow frames fill their row`, [narrow, span]);
		const [up, down] = [marks[0], marks[marks.length - 1]];
		check(up && Math.abs(up[1] - left - span * 1501 / 3001) < 3, "one among them lies where it is", [up, span]);
		check(down && Math.abs(down[0] - up[0] - 999 * 18 - 16) < 4 && Math.abs(down[1] - left) < 3, "and so does the last of a thousand rows", [up, down, span]);
		quiet(page, "many");
		await page.close();
	}
}

const pages = (file) => Number(/Pages:\s+(\d+)/.exec(execFileSync("pdfinfo", [file]).toString())[1]);

/* A picture that just fits on a page needs one, and one that does not has two; the page is as wide as its paper less the margins. */
async function checkPages(browser, folder) {
	for (const name of ["flame", "random", "plain"]) {
		for (const inches of [5, 8.27, 11]) {
			const width = Math.round((inches - 2 * MARGIN) * RESOLUTION);
			const page = await Page.open(browser, { width, height: 800 });
			await page.go("file://" + path.join(folder, name + ".svg"));
			await page.run(`document.documentElement.setAttribute("width", "100%")`);
			await page.run(`window.dispatchEvent(new Event("beforeprint"))`);
			const height = await page.run(`document.querySelector(".pf-head").offsetHeight + document.querySelector(".pf-graph").offsetHeight`);
			await page.run(`window.dispatchEvent(new Event("afterprint"))`);
			await page.send("Emulation.setDeviceMetricsOverride", { width: 1200, height: 800, deviceScaleFactor: 1, mobile: false });
			await page.frame();
			const seen = [];
			for (const room of [24, -24]) {
				seen.push(pages(await printed(page, folder, { paperWidth: inches, paperHeight: (height + room) / RESOLUTION + 2 * MARGIN })));
			}
			check(seen[0] === 1 && seen[1] === 2, `${name} on paper ${inches} inches wide has no empty page`, [seen, height]);
			await page.close();
		}
	}
}

async function checkPrinted(browser, folder) {
	if (!hasPoppler()) {
		check(true, "frames on paper # SKIP needs pdftoppm (apt-get install poppler-utils)");
		return;
	}
	await checkPlaces(browser, folder);
	await checkPages(browser, folder);
}

module.exports = { checkPrinted };
