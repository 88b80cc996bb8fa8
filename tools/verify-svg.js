"use strict";

/* The body of tools/verify-svg. */

const { execFileSync } = require("child_process");
const fs = require("fs");
const os = require("os");
const path = require("path");

const { Browser, Page, pause } = require("./browser.js");
const { readFolded, emptyFolded, listFrames, matched, graft, grouped, samples, share } = require("./verify-svg-folded.js");
const { checkExpressions, checkClasses, checkSaid, checkCostly, checkSlow } = require("./verify-svg-search.js");
const { checkPrinted } = require("./verify-svg-print.js");
const { checkShort, checkShortTexts } = require("./verify-svg-short.js");
const { checkThin } = require("./verify-svg-thin.js");
const { check, equal, near, quiet, finish } = require("./verify-svg-tap.js");

let shots = null;

function shot(name) {
	return shots && path.join(shots, name);
}

/* The numbers are those of picture_add_plain in tests/support/picture_samples.c: main 200 (compute 150 with multiply 120, read 50), worker 200. */
async function checkPlain(browser, url) {
	const page = await Page.open(browser);
	await page.go(url);
	await near(page, "all", 0, 1, "the root is as wide as the window");
	await near(page, "compute", 0, 0.375, "a frame is as wide as its share");
	await near(page, "worker", 0.5, 0.5, "a sibling stands beside it");
	await page.mouse("compute");
	equal(await page.text(".pf-name"), "compute", "hovering shows the name");
	equal(await page.text(".pf-numbers"), "150 samples \u00b7 37.50% of all \u00b7 self 30 (7.50%) \u00b7 program", "hovering shows the numbers");
	await page.mouse("write");
	check((await page.text(".pf-numbers")).endsWith("library /lib/libc.so.6"), "hovering shows kind and image");
	await checkZoom(page);
	await checkSearch(page);
	await checkKeys(page);
	await checkAddress(page, url);
	quiet(page, "plain");
	await page.close();
}

async function checkZoom(page) {
	await page.mouse("compute", true);
	await near(page, "compute", 0, 1, "a click zooms");
	await near(page, "multiply", 0, 0.8, "children keep their share of the zoomed frame");
	await near(page, "main", 0, 1, "ancestors stay above it");
	equal(await page.place("worker"), null, "the rest is gone");
	await page.mouse("multiply");
	check((await page.text(".pf-numbers")).includes("30.00% of all \u00b7 80.00% of zoom"), "the share of the zoomed frame is told");
	await page.mouse("main", true);
	await near(page, "main", 0, 1, "a click on an ancestor zooms out to it");
	await near(page, "read", 0.75, 0.25, "and its children return");
	await page.key("Escape");
	await near(page, "main", 0, 0.5, "Escape resets the zoom");
}

async function checkSearch(page) {
	const found = () => page.text(".pf-found");
	await page.key("/");
	equal(await page.run("document.activeElement.tagName"), "input", "slash goes to the search box");
	await page.type("compute|multiply|read");
	equal(await found(), "matched 50.00% (2)", "only outermost matches count");
	equal(await page.run(`document.querySelectorAll(".pf-hit").length`), 3, "all matches are marked");
	await page.key("Enter");
	equal(await page.text(".pf-name"), "compute", "Enter goes to the first match");
	await page.key("Enter");
	equal(await page.text(".pf-name"), "read", "and to the next");
	await page.mouse("compute", true);
	equal(await found(), "matched 100.00% (1 of 2)", "the share is that of the zoomed frame");
	await page.mouse("multiply", true);
	equal(await found(), "matched 100.00% (1 of 3)", "ancestors of the zoomed frame do not count");
	await page.key("n");
	equal(await page.text(".pf-name"), "read", "the next match is found outside of the zoomed frame");
	await near(page, "main", 0, 1, "for which the zoom goes out no further than needed");
	equal(await found(), "matched 100.00% (2)", "and the share follows");
	check((await page.text(".pf-said")).startsWith("match 2 of 2: read, level 2, 50 samples"), "screen readers hear the match");
	await page.key("N");
	equal(await page.text(".pf-name"), "compute", "back to the match before");
	await page.key("Escape");
	await page.key("f", 2);
	equal(await page.run("document.activeElement.tagName"), "input", "Ctrl-F goes to the search box");
	await page.type("VFS_");
	equal(await found(), "matched 0.00% (0)", "capitals make the search exact");
	await page.key("/");
	await page.run(`document.querySelector("input").select()`);
	await page.type("write(");
	equal(await found(), "matched 0.00% (0), no regular expression: as text", "what is no regular expression is looked for as it stands");
	await page.run(`document.querySelector("input").select()`);
	await page.type("a");
	equal(await found(), "matched 50.00% (1)", "the root is no function and no match");
	await page.key("Escape");
	equal([await found(), await page.run(`document.querySelector("input").value`)], ["", ""], "Escape clears the search");
}

async function checkKeys(page) {
	const walk = async (...keys) => {
		for (const key of keys) {
			await page.key(key);
		}
		return page.text(".pf-name");
	};
	await page.key("Escape");
	equal(await walk("ArrowDown", "ArrowDown"), "compute", "down goes to the widest child");
	equal(await walk("ArrowRight"), "read", "right goes to the next sibling");
	equal(await walk("ArrowRight"), "write", "and on to a cousin");
	equal(await walk("ArrowUp"), "worker", "up goes to the caller");
	await page.key("Enter");
	await near(page, "worker", 0, 1, "Enter zooms");
	await page.key("Backspace");
	await near(page, "worker", 0.5, 0.5, "Backspace zooms out by one");
	equal(await page.text(".pf-said"), "everything: all, level 0, 400 samples \u00b7 100.00% of all \u00b7 self 0 (0.00%)", "screen readers hear the zoom");
	await walk("ArrowDown");
	equal(await page.text(".pf-said"), "main, level 1, 200 samples \u00b7 50.00% of all \u00b7 self 0 (0.00%) \u00b7 thread", "and the current frame");
	const before = await page.place("all");
	await page.key("i");
	check((await page.place("all"))[2] > (await page.place("main"))[2] && before[2] < 10, "I turns the graph over");
	await page.key("i");
}

async function checkAddress(page, url) {
	await page.mouse("compute", true);
	await page.key("/");
	await page.type("multi.*y");
	await page.key("Enter");
	const address = await page.run("location.href");
	equal(address, url + "#z=2.0&s=multi.*y", "zoom and search stand in the address");
	await page.go(address);
	await near(page, "multiply", 0, 0.8, "the address brings the zoom back");
	equal(await page.text(".pf-found"), "matched 80.00% (1)", "and the search");
	await page.go(url + "#z=99.99&s=%E0%A4%A");
	await near(page, "main", 0, 0.5, "an address that fits no frame is ignored");
	await page.run(`location.hash = "#z=2.0"`);
	await page.frame();
	await near(page, "multiply", 0, 0.8, "a new address is followed");
}

async function checkNarrow(browser, url) {
	for (const dark of [false, true]) {
		const page = await Page.open(browser, { width: 400, height: 700, dark });
		await page.go(url);
		await near(page, "worker", 0.5, 0.5, "the graph follows a narrow window");
		equal(await page.run("document.documentElement.scrollWidth <= 400"), true, "nothing sticks out of it");
		await page.send("Emulation.setDeviceMetricsOverride", { width: 900, height: 700, deviceScaleFactor: 1, mobile: false });
		await pause(200);
		equal(await page.run(`document.querySelector(".pf-graph").clientWidth`), 900, "and a window that grows");
		await near(page, "worker", 0.5, 0.5, "with its frames");
		await page.key("/");
		await page.type("compute");
		equal(await page.run(lowestContrast), true, "labels have a contrast of 4.5 and more" + (dark ? " in the dark" : ""));
		equal(await page.run(dimTexts), [], "and so have the texts around them");
		quiet(page, "narrow");
		await page.close();
	}
}

/* WCAG 2.1, 1.4.3: every label against its frame. Colours arrive as rgb(). */
const lowestContrast = `(function () {
	const light = (text) => {
		const [r, g, b] = text.match(/[\\d.]+/g).map((c) => c / 255).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	return [...document.querySelectorAll(".pf-frame")].every((frame) => {
		const style = getComputedStyle(frame);
		const pair = [light(style.color), light(style.backgroundColor)].sort((a, b) => a - b);
		return (pair[1] + 0.05) / (pair[0] + 0.05) >= 4.5;
	});
})()`;

/* The same for the texts around the graph: those that are below 4.5. What is disabled may be dim. */
const dimTexts = `(function () {
	const light = (text) => {
		const [r, g, b] = text.match(/[\\d.]+/g).map((c) => c / 255).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const ground = (at) => (getComputedStyle(at).backgroundColor === "rgba(0, 0, 0, 0)" ? ground(at.parentElement) : getComputedStyle(at).backgroundColor);
	return [...document.querySelectorAll(".pf-head *, .pf-details *, .pf-empty")].filter((e) => e.children.length === 0 && e.textContent && !e.disabled).filter((e) => {
		const pair = [light(getComputedStyle(e).color), light(ground(e))].sort((a, b) => a - b);
		return (pair[1] + 0.05) / (pair[0] + 0.05) < 4.5;
	}).map((e) => e.textContent);
})()`;

async function checkHostile(browser, url) {
	const page = await Page.open(browser);
	await page.go(url);
	await near(page, "<main>", 0, 1, "names with markup are text");
	equal(await page.run(`document.title.startsWith("]]></title><script>")`), true, "so is the title");
	equal(await page.run(`document.querySelectorAll("script").length`), 2, "no script came from a name");
	await page.key("/");
	await page.type("^<script>alert");
	equal(await page.text(".pf-found"), "matched 0.37% (1)", "such a name is found");
	equal(await page.run(lowestContrast), true, "labels have a contrast of 4.5 and more");
	await page.shot(shot("torture.png"));
	quiet(page, "torture");
	await page.close();
}

async function checkHostileFiles(browser, url) {
	const page = await Page.open(browser);
	await page.go(url);
	check((await page.text(".pf-note")).startsWith("<script>alert(1)</script>]]>"), "a hostile note is text");
	equal(await page.run(`document.querySelectorAll("script").length`), 2, "no script came from a file's name");
	equal(await page.run(`document.querySelectorAll(".pf-kind").length`), 7, "hostile files have colours and a legend");
	quiet(page, "torture_images");
	await page.close();
}

async function checkControls(browser, url) {
	const page = await Page.open(browser);
	const labels = ["all", "\u2423\u2423\u2423\u2423", "a b c", "abc\ufffdxyz", "q\ufffdr\ufffd[31ms"];
	await page.go(url);
	equal(await page.run(`[...document.querySelectorAll(".pf-frame")].map((f) => f.textContent)`), labels, "labels have no controls, and go on behind line breaks");
	equal(await page.text(".pf-title"), "title\ufffd", "nor has the title");
	await page.run(`Object.defineProperty(navigator, "clipboard", { configurable: true, value: { writeText: (text) => { window.copied = text; return Promise.resolve(); } } })`);
	await page.mouse(labels[3]);
	equal(await page.text(".pf-name"), labels[3], "nor have the details");
	await page.key("c");
	equal(await page.run("window.copied"), "abc\u202exyz", "but the copied name is the true one");
	await page.run(`Object.defineProperty(navigator, "clipboard", { configurable: true, value: undefined })`);
	await page.key("c");
	equal(await page.run(`(function () {
		const event = new ClipboardEvent("copy", { bubbles: true, cancelable: true, clipboardData: new DataTransfer() });
		document.querySelector(".pf-name").dispatchEvent(event);
		return event.clipboardData.getData("text/plain");
	})()`), "abc\u202exyz", "also when it is copied by hand");
	quiet(page, "controls");
	await page.close();
}

async function checkEmpty(browser, url) {
	const page = await Page.open(browser, { dark: true });
	await page.go(url);
	equal(await page.text(".pf-empty"), "no samples", "an empty profile says so");
	await page.shot(shot("empty.png"));
	quiet(page, "empty");
	await page.close();
}

async function checkDeep(browser, url) {
	const page = await Page.open(browser);
	await page.go(url + "#z=4990.0");
	equal(await page.text(".pf-numbers"), "7 samples \u00b7 87.50% of all \u00b7 100.00% of zoom \u00b7 self 0 (0.00%) \u00b7 program", "a frame 4990 deep can be zoomed to");
	const count = await page.run(`document.querySelectorAll(".pf-frame").length`);
	check(count > 20 && count < 200, "only what can be seen is drawn", count);
	await page.run(`document.querySelector(".pf-view").scrollTop = 9000`);
	await pause(100);
	const seen = await page.run(`(function () {
		const view = document.querySelector(".pf-view").getBoundingClientRect();
		const under = document.elementFromPoint(600, view.top + view.height / 2);
		return under.className;
	})()`);
	check(seen.includes("pf-frame"), "scrolling draws what comes into sight", seen);
	quiet(page, "deep");
	await page.close();
}

async function checkLarge(browser, url) {
	const page = await Page.open(browser);
	const load = await page.go(url);
	check(/^[\d,]+ frames below [\d,]+ samples \((0\.\d\d|<0.01)%\) are summed up/.test(await page.text(".pf-cut")), "what was left out is told");
	const before = Date.now();
	await page.mouse("main", true);
	await page.key("Escape");
	const zoom = Date.now() - before;
	check(load < 5000 && zoom < 3000, "a large file opens and zooms without a wait", [load, zoom]);
	console.log(`# large: opened in ${load} ms, zoom and reset in ${zoom} ms`);
	await page.shot(shot("large.png"));
	quiet(page, "large");
	await page.close();
}

async function checkStatic(browser, url) {
	const page = await Page.open(browser, { scripts: false });
	await page.go(url);
	await page.shot(shot("static.png"));
	await page.send("Emulation.setScriptExecutionDisabled", { value: false });
	const labels = await page.run(`[...document.querySelectorAll("g.pf-static g text")].map((t) => t.textContent).join(" ")`);
	equal(labels, "all main compute multiply read worker write vfs_write", "without scripts the picture is there, with its labels");
	equal(await page.run(`document.querySelector(".pf-app")`), null, "and nothing else");
	quiet(page, "static");
	await page.close();
}

/* Two pictures in one page of HTML keep out of each other's way. */
async function checkInlined(browser, folder) {
	const svg = (name) => fs.readFileSync(path.join(folder, name + ".svg"), "utf8").replace(/^<\?xml.*\n/, "");
	const file = path.join(folder, "two.html");
	fs.writeFileSync(file, `<!DOCTYPE html><meta charset="utf-8"><body>${svg("plain")}${svg("deep")}</body>`);
	const page = await Page.open(browser);
	await page.go("file://" + file);
	equal(await page.run(`document.querySelectorAll(".pf-app").length`), 2, "two pictures live in one page");
	await page.mouse("compute", true);
	await near(page, "multiply", 0, 0.8, "each zooms for itself");
	equal(await page.run("location.hash"), "", "and leaves the page's address alone");
	quiet(page, "inlined");
	await page.close();
}

async function checkFolded(browser, folder) {
	const page = await Page.open(browser);
	const frames = listFrames(readFolded(path.join(folder, "random.folded")), 0, 0, []);
	const all = frames[0].total;
	let wrong = [];
	await page.go("file://" + path.join(folder, "random.svg"));
	for (let i = 1; i < frames.length; i += 37) {
		const frame = frames[i];
		await page.run(`location.hash = "#z=${frame.depth}.${frame.start}"`);
		await page.frame();
		const seen = [await page.text(".pf-name"), await page.text(".pf-numbers")];
		const numbers = `${samples(frame.total)} \u00b7 ${share(frame.total, all)} of all \u00b7 100.00% of zoom \u00b7 ` +
			`self ${grouped(frame.self)} (${share(frame.self, all)})`;
		if (seen[0] !== frame.name || !seen[1].startsWith(numbers)) {
			wrong.push([seen, frame.name, numbers]);
		}
	}
	check(wrong.length === 0, `the numbers of ${Math.ceil(frames.length / 37)} frames are those of the folded stacks`, wrong.slice(0, 3));
	wrong = [];
	for (const frame of [frames[0], frames[1], frames.find((each) => each.depth === 3 && each.total > 100)]) {
		for (const [query, test] of [["memcpy", (name) => name.includes("memcpy")], ["operator()", (name) => name.includes("operator")],
			["vec.*push|hash", (name) => /vec.*push|hash/i.test(name)], ["std::sort|^a$", (name) => /std::sort|^a$/.test(name)]]) {
			await page.run(`location.hash = "#z=${frame.depth}.${frame.start}&s=${encodeURIComponent(query)}"`);
			await page.frame();
			const seen = await page.text(".pf-found");
			const expected = `matched ${share(matched(frame, test), frame.total)} (`;
			if (!seen.startsWith(expected)) {
				wrong.push([query, frame.name, seen, expected]);
			}
		}
	}
	check(wrong.length === 0, "matched shares are those of the folded stacks, each stack counted once", wrong);
	quiet(page, "folded");
	await page.close();
}

async function checkAccess(browser, url) {
	const page = await Page.open(browser);
	await page.go(url);
	const { nodes } = await page.send("Accessibility.getFullAXTree");
	const seen = nodes.filter((node) => !node.ignored).map((node) => `${node.role.value}: ${node.name ? node.name.value : ""}`);
	for (const role of ["heading: program", "searchbox: Search frames by name: text or a regular expression", "button: Next match (N)",
		"button: Previous match (Shift+N)", "button: Reset zoom (Escape)", "button: Root at the top or at the bottom (I)",
		"button: Keys (?)", "button: Copy the name (C)"]) {
		check(seen.includes(role), "a screen reader finds " + role, seen);
	}
	check(seen.some((role) => role.startsWith("application: program. Arrow keys walk")), "and the graph with its keys", seen);
	const stops = [];
	await page.key("/");
	await page.type("main");
	for (let i = 0; i < 6; i++) {
		await page.key("Tab");
		stops.push(await page.run(`(function () {
			const at = document.activeElement;
			const style = getComputedStyle(at);
			const marked = at.className === "pf-view pf-keys" && getComputedStyle(document.querySelector(".pf-current")).boxShadow !== "none";
			return (at.getAttribute("aria-label") || at.tagName).split(" ")[0] + (style.outlineStyle !== "none" || marked ? "" : " without a mark");
		})()`));
	}
	equal(stops, ["Previous", "Next", "Root", "Keys", "program.", "Copy"], "Tab goes through everything, and one sees where it is");
	await page.key("?");
	check(await page.run(`getComputedStyle(document.querySelector(".pf-help")).display !== "none"`), "the question mark lists the keys");
	quiet(page, "access");
	await page.close();
}

async function checkCopy(browser, url) {
	const page = await Page.open(browser);
	await page.go(url);
	await page.run(`Object.defineProperty(navigator, "clipboard", { configurable: true, value: { writeText: (text) => { window.copied = text; return Promise.resolve(); } } })`);
	await page.mouse("compute");
	await page.key("c");
	equal([await page.run("window.copied"), await page.text(".pf-found")], ["compute", "name copied"], "C copies the name under the mouse");
	await page.key("ArrowDown");
	await page.key("c");
	equal(await page.run("window.copied"), "main", "or of the frame that was walked to since");
	for (const clipboard of ["undefined", "{ writeText: () => Promise.reject(new Error()) }"]) {
		await page.run(`Object.defineProperty(navigator, "clipboard", { configurable: true, value: ${clipboard} })`);
		await page.mouse("multiply");
		await page.key("c");
		equal(await page.run("getSelection().toString()"), "multiply", "without a clipboard the name is selected");
		check((await page.text(".pf-found")).includes("Ctrl+C"), "and the way to copy it is told");
	}
	quiet(page, "copy");
	await page.close();
}

async function checkLayouts(browser, url, folder) {
	const page = await Page.open(browser);
	await page.go(url("flame"));
	const root = await page.place("all");
	equal([root[0], root[1] > 890 && root[1] < 900], [0, true], "the picture is as wide as was asked for");
	const leaf = (await page.run(`[...document.querySelectorAll(".pf-frame")].map((f) => f.offsetTop)`)).filter((top) => top > root[2]);
	equal(leaf, [], "a flame has its root at the bottom");
	const bottom = await page.run(`(function () {
		const box = (name) => document.querySelector(name).getBoundingClientRect();
		return Math.abs(box(".pf-graph").bottom - box(".pf-view").bottom);
	})()`);
	check(bottom < 1, "of the window", bottom);
	await page.key("i");
	check((await page.run("location.hash")) === "#up=0" && (await page.place("all"))[2] < 10, "and can be turned over");
	quiet(page, "flame");
	await page.go(url("merged"));
	equal(await page.run(`[...document.querySelectorAll(".pf-frame")].slice(1, 4).map((f) => f.textContent)`).then((names) => names[0]), "main", "merged threads begin with the frames");
	const threads = readFolded(path.join(folder, "merged.folded")).children;
	const merged = emptyFolded("all");
	threads.forEach((thread) => graft(merged, thread));
	const small = listFrames(merged, 0, 0, []).filter((frame) => frame.total * 1000 < merged.total * 5).length;
	check((await page.text(".pf-cut")).startsWith(grouped(small) + " frames below 41 samples (0.51%)"), "what is below the least share is told", [small, await page.text(".pf-cut")]);
	quiet(page, "merged");
	await page.close();
}

/* Texts that lie on each other, or that are cut off without an ellipsis. */
const collisions = `(function () {
	const texts = [...document.querySelectorAll(".pf-head *, .pf-details *")].filter((e) => e.children.length === 0 && e.textContent && e.offsetWidth > 0);
	const boxes = texts.map((e) => e.getBoundingClientRect());
	const found = [];
	texts.forEach((e, i) => {
		const style = getComputedStyle(e);
		if (e.scrollWidth > e.clientWidth + 1 && style.display !== "inline" && style.textOverflow !== "ellipsis") { found.push("cut: " + e.textContent); }
		for (let j = 0; j < i; j++) {
			const [a, b] = [boxes[i], boxes[j]];
			if (a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1) { found.push(texts[j].textContent + " on " + e.textContent); }
		}
	});
	return found;
})()`;

async function checkFit(browser, url) {
	for (const name of ["plain", "random", "flame", "merged", "names", "torture", "torture_images", "large", "empty", "deep500"]) {
		for (const width of [360, 1200]) {
			const page = await Page.open(browser, { width, height: 700 });
			await page.go(url(name));
			equal(await page.run(collisions), [], `${name}, ${width} pixels wide: no text on another`);
			await page.close();
		}
	}
}

/* In an <img>, as on GitHub and in mail, there is no script. */
async function checkImage(browser, folder) {
	const file = path.join(folder, "image.html");
	fs.writeFileSync(file, `<!DOCTYPE html><body style="margin:0"><img src="random.svg"></body>`);
	const page = await Page.open(browser, { height: 500 });
	await page.go("file://" + file);
	const size = await page.run(`[document.images[0].complete, document.images[0].naturalWidth]`);
	equal(size, [true, 1200], "an image shows the picture");
	await page.shot(shot("image.png"));
	quiet(page, "image");
	await page.close();
}

async function checkPrint(browser, folder) {
	for (const [name, dark, zoom] of [["random", true, ""], ["deep500", false, ""], ["plain", false, "#z=2.0"]]) {
		const page = await Page.open(browser, { dark });
		await page.go("file://" + path.join(folder, name + ".svg") + zoom);
		const before = await page.run(`[document.querySelector(".pf-graph").clientWidth, document.documentElement.getAttribute("height")]`);
		const file = path.join(folder, name + ".pdf");
		fs.writeFileSync(file, await page.print());
		equal(await page.run(`[document.querySelector(".pf-graph").clientWidth, document.documentElement.getAttribute("height")]`), before, name + ": the screen is as it was after printing");
		if (shots) {
			fs.copyFileSync(file, path.join(shots, name + ".pdf"));
		}
		checkPaper(name, file);
		quiet(page, "print");
		await page.close();
	}
}

/* What the paper says, by another reader. */
function checkPaper(name, file) {
	let text;
	try {
		text = execFileSync("pdftotext", ["-layout", file, "-"]).toString();
	} catch (error) {
		check(true, name + ": print # SKIP needs pdftotext (apt-get install poppler-utils)");
		return;
	}
	check(!/Search|Reset zoom|Copy/.test(text), name + ": no tools on paper", text);
	if (name === "deep500") {
		const levels = new Set(text.match(/level_\d+/g));
		check(levels.size > 440 && levels.has("level_450"), "all levels of a deep graph are on paper, with their names", levels.size);
	} else if (name === "plain") {
		check(text.includes("multiply") && !/^ *worker/m.test(text), "the zoomed view is on paper, and nothing else", text);
	} else {
		check(text.includes("12 samples lost") && text.includes("interpreted 8.25%") && text.includes("parse<std::v"), "the head and the frames are on paper", text);
	}
}

async function shootAll(browser, files) {
	for (const file of files) {
		for (const [width, dark, scripts] of [[1200, false, true], [1200, true, true], [360, false, true], [360, true, true], [1200, false, false]]) {
			const page = await Page.open(browser, { width, height: width < 600 ? 700 : 760, dark, scripts });
			await page.go("file://" + path.resolve(file));
			await page.shot(shot(`${path.basename(file, ".svg")}-${width}${dark ? "-dark" : ""}${scripts ? "" : "-static"}.png`));
			await page.close();
		}
	}
}

const SHOWN = ["plain", "random", "flame", "merged", "names", "deep500", "torture", "torture_images", "empty"];

async function main([program, ...args]) {
	if (args[0] === "--shots") {
		shots = args[1];
		fs.mkdirSync(shots, { recursive: true });
		args = args.slice(2);
	}
	const folder = fs.mkdtempSync(path.join(os.tmpdir(), "verify-svg-"));
	execFileSync(path.join(args[0], "tests/unit/test_svg"), ["--write", folder]);
	const browser = new Browser(program, path.join(folder, "browser"));
	const url = (name) => "file://" + path.join(folder, name + ".svg");
	try {
		await checkPlain(browser, url("plain"));
		checkExpressions();
		checkClasses();
		await checkSaid(browser, url("plain"));
		await checkCostly(browser, url("costly"));
		await checkSlow(browser, url("costly"));
		await checkNarrow(browser, url("plain"));
		await checkHostile(browser, url("torture"));
		await checkHostileFiles(browser, url("torture_images"));
		await checkControls(browser, url("controls"));
		await checkEmpty(browser, url("empty"));
		await checkDeep(browser, url("deep"));
		await checkLarge(browser, url("large"));
		await checkStatic(browser, url("plain"));
		await checkInlined(browser, folder);
		await checkFolded(browser, folder);
		await checkThin(browser, folder, shot("thin.png"));
		await checkAccess(browser, url("random"));
		await checkCopy(browser, url("plain"));
		await checkLayouts(browser, url, folder);
		await checkFit(browser, url);
		await checkShort(browser, url, shots);
		await checkShortTexts(browser, url, shots);
		await checkImage(browser, folder);
		await checkPrint(browser, folder);
		await checkPrinted(browser, folder);
		await shootAll(browser, shots ? [...SHOWN.map((name) => path.join(folder, name + ".svg")), ...args.slice(1)] : []);
	} finally {
		await browser.close();
		fs.rmSync(folder, { recursive: true, force: true });
	}
	finish();
}

main(process.argv.slice(2)).catch((error) => {
	console.log("Bail out! " + error.stack);
	process.exitCode = 1;
});
