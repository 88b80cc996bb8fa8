"use strict";

/* Searches that are hard: expressions against the browser's own, and those that take long. */

const fs = require("fs");
const path = require("path");

const { Page } = require("./browser.js");
const { check, equal, quiet } = require("./verify-svg-tap.js");

const EXPRESSION = path.join(__dirname, "../daemon/analyzer/export/flamegraph/expression.js");
const PIECES = ["a", "b", "c", "A", ".", "\\d", "\\w", "\\b", "\\B", "^", "$", "[ab]", "[^a]", "[a-c\\]]", "(", "(?:", ")", "|", "*", "+", "?", "*?", "{2}",
	"{1,2}", "{0,}", "{", "}", "]", "\\x61", "\\u0062", "\\.", "\\(", "::", "\\t", "\u00e9", "(?<n>", "\\s", "\\0", "-", "\\ca"];
const LETTERS = ["a", "b", "c", "A", "B", "1", " ", "_", ":", "\n", ".", "(", "\u00e9", "\u00c9", "{", "]", "-"];

/* The page's own expressions find what the browser's find. */
function checkExpressions() {
	const { expression } = new Function(fs.readFileSync(EXPRESSION, "utf8") + "\nreturn { expression };")();
	const wrong = [];
	const found = [0, 0];
	let seed = 1;
	const any = (list) => list[((seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) >>> 16) % list.length];
	const some = (list, most) => Array.from({ length: any([...Array(most).keys()]) }, () => any(list)).join("");
	for (let i = 0; i < 20000; i++) {
		const [source, flags] = [some(PIECES, 8), any(["", "i"])];
		let known = null;
		try {
			known = new RegExp(source, flags);
		} catch (error) {
			continue;
		}
		const own = expression(source, flags);
		for (const text of Array.from({ length: 6 }, () => some(LETTERS, 9))) {
			found[known.test(text) ? 1 : 0]++;
			if (known.test(text) !== own(text, Infinity)) {
				wrong.push([source, flags, text, known.test(text)]);
			}
		}
	}
	check(wrong.length === 0 && found[0] > 10000 && found[1] > 10000, "expressions match what the browser's do", [found, wrong.slice(0, 5)]);
}

/* Unicode classes, which the browser's own expressions know with a flag only. */
function checkClasses() {
	const { expression } = new Function(fs.readFileSync(EXPRESSION, "utf8") + "\nreturn { expression };")();
	const wrong = [];
	for (const source of ["\\p{L}+x", "^\\P{L}+$", "[\\p{Lu}_]\\d", "\\p{Script=Greek}{2}", "(\\p{Nd}|b)$"]) {
		for (const text of ["x", "\u00e9x", "1x", "1 .", "A1", "_2", "-3", "\u03b1\u03b2", "\u03b1b", "7", "a7b"]) {
			if (expression(source, "")(text, Infinity) !== new RegExp(source, "u").test(text)) {
				wrong.push([source, text]);
			}
		}
	}
	check(wrong.length === 0, "and Unicode classes are those of the browser", wrong);
}

/* What was told of one search is not told of the next. */
async function checkSaid(browser, url) {
	const page = await Page.open(browser);
	const said = () => page.text(".pf-said");
	await page.go(url);
	await page.key("/");
	await page.type("read");
	await page.key("Enter");
	check((await said()).startsWith("match 1 of 1"), "screen readers hear the match", await said());
	await page.type("ing nothing");
	equal(await said(), "", "but not of a search before");
	await page.key("Enter");
	equal(await said(), "no match", "and that there is none");
	await page.key("Escape");
	equal(await said(), "", "until the search is cleared");
	await page.close();
}

/* Longest of these: 1,000 ms for an expression, and what the browser needs besides. */
async function checkCostly(browser, url) {
	const page = await Page.open(browser);
	const all = "matched 100.00% (1)"; // the thread, outermost
	const none = "matched 0.00% (0)";
	for (const [query, expected] of [[".*a.*b.*c.*d$", none], ["(.*)*$", all], ["(.*.*.*)*z", none], ["a(?=b)", none + ", look-around or back references: as text"],
		["a".repeat(40000), none], ["(a{2}){2}".repeat(400), none + ", too large an expression: as text"],
		["(".repeat(20000) + "a" + ")".repeat(20000), none + ", nested too deeply: as text"], ["\\p{Letter}+", all],
		["\\p{Rubbish}", none + ", a Unicode class that is not known: as text"], ["(a)\\1", none + ", look-around or back references: as text"],
		["((a{1000}){1000}){1000}", none + ", too large an expression: as text"]]) {
		const before = Date.now();
		await page.go(url + "#s=" + encodeURIComponent(query));
		equal(await page.text(".pf-found"), expected, `a link with ${query.slice(0, 30)} is answered`);
		await page.key("/");
		await page.run(`document.querySelector("input").select()`);
		await page.type(query);
		equal(await page.text(".pf-found"), expected, "and so is the search");
		check(Date.now() - before < 4000, "without a wait", Date.now() - before);
	}
	quiet(page, "costly");
	await page.close();
}

/* Whose sets of places are others after nearly every character: no short cut helps, and it ends after a second. */
async function checkSlow(browser, url) {
	const page = await Page.open(browser);
	await page.go(url);
	await page.key("/");
	const before = Date.now();
	await page.type("a.{400}y");
	const took = Date.now() - before;
	equal(await page.text(".pf-found"), "matched 0.00% (0), too slow an expression: as text", "an expression that takes too long is given up");
	check(took < 2500, "in time", took);
	quiet(page, "slow");
	await page.close();
}

module.exports = { checkExpressions, checkClasses, checkSaid, checkCostly, checkSlow };
