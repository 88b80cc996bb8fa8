"use strict";

/* The body of tools/verify-svg. Speaks the DevTools protocol over two pipes, so that it needs nothing but node. */

const { spawn, execFileSync } = require("child_process");
const fs = require("fs");
const os = require("os");
const path = require("path");

const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--no-default-browser-check",
	"--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
	"--remote-debugging-pipe"];

class Browser {
	constructor(program, folder) {
		this.calls = new Map();
		this.last = 0;
		this.listeners = [];
		this.process = spawn(program, [...FLAGS, "--user-data-dir=" + folder], { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
		let rest = Buffer.alloc(0);
		this.process.stdio[4].on("data", (bytes) => {
			rest = Buffer.concat([rest, bytes]);
			for (let end; (end = rest.indexOf(0)) >= 0; rest = rest.subarray(end + 1)) {
				this.receive(JSON.parse(rest.subarray(0, end).toString()));
			}
		});
	}

	receive(message) {
		const call = this.calls.get(message.id);
		if (call) {
			this.calls.delete(message.id);
			(message.error ? call.reject : call.resolve)(message.error ? new Error(message.error.message) : message.result);
		} else {
			this.listeners.forEach((listener) => listener(message));
		}
	}

	call(method, params, sessionId) {
		const id = ++this.last;
		return new Promise((resolve, reject) => {
			this.calls.set(id, { resolve, reject });
			this.process.stdio[3].write(JSON.stringify({ id, method, params, sessionId }) + "\0");
		});
	}

	async close() {
		const ended = new Promise((resolve) => this.process.once("exit", resolve));
		this.call("Browser.close").catch(() => {});
		await ended;
	}
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/* One tab. troubles gathers what must never happen: exceptions, console messages, dialogs, requests to other places. */
class Page {
	static async open(browser, { width = 1200, height = 760, dark = false, scripts = true } = {}) {
		const page = new Page();
		const { targetId } = await browser.call("Target.createTarget", { url: "about:blank" });
		const { sessionId } = await browser.call("Target.attachToTarget", { targetId, flatten: true });
		page.send = (method, params = {}) => browser.call(method, params, sessionId);
		page.targetId = targetId;
		page.browser = browser;
		page.scripts = scripts;
		page.troubles = [];
		browser.listeners.push((message) => message.sessionId === sessionId && page.hear(message));
		for (const domain of ["Page", "Runtime", "Network", "Log"]) {
			await page.send(domain + ".enable");
		}
		await page.send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false });
		await page.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }] });
		await page.send("Emulation.setScriptExecutionDisabled", { value: !scripts });
		return page;
	}

	hear({ method, params }) {
		if (method === "Runtime.exceptionThrown") {
			this.troubles.push("exception: " + JSON.stringify(params.exceptionDetails));
		} else if (method === "Runtime.consoleAPICalled" || method === "Log.entryAdded") {
			this.troubles.push("console: " + JSON.stringify(params));
		} else if (method === "Page.javascriptDialogOpening") {
			this.troubles.push("dialog: " + params.message);
			this.send("Page.handleJavaScriptDialog", { accept: false });
		} else if (method === "Network.requestWillBeSent" && !params.request.url.startsWith("file:")) {
			this.troubles.push("request: " + params.request.url);
		} else if (method === "Page.loadEventFired" && this.loaded) {
			this.loaded();
		}
	}

	async go(url) {
		const done = new Promise((resolve) => { this.loaded = resolve; });
		await this.send("Page.navigate", { url: "about:blank" });
		await done;
		const loaded = new Promise((resolve) => { this.loaded = resolve; });
		this.troubles.length = 0;
		const before = Date.now();
		await this.send("Page.navigate", { url });
		await loaded;
		await this.frame();
		return Date.now() - before;
	}

	/* Until the page has drawn. */
	frame() {
		return this.scripts ? this.run("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)))") : pause(300);
	}

	async run(expression) {
		const answer = await this.send("Runtime.evaluate", { expression, returnByValue: true, awaitPromise: true });
		if (answer.exceptionDetails) {
			throw new Error(JSON.stringify(answer.exceptionDetails));
		}
		return answer.result.value;
	}

	text(selector) {
		return this.run(`document.querySelector(${JSON.stringify(selector)}).textContent`);
	}

	/* The place of the frame with that label, relative to the graph: [left, width, top] in pixels. */
	place(name) {
		return this.run(`(function () {
			const graph = document.querySelector(".pf-graph").getBoundingClientRect();
			const found = [...document.querySelectorAll(".pf-frame")].filter((f) => f.textContent === ${JSON.stringify(name)});
			if (found.length !== 1) { return null; }
			const box = found[0].getBoundingClientRect();
			return [box.left - graph.left, box.width, box.top - graph.top, box.left + Math.min(box.width / 2, 20), box.top + 8];
		})()`);
	}

	async mouse(name, click) {
		const at = await this.place(name);
		const point = { x: at[3], y: at[4], button: "none", clickCount: 0 };
		await this.send("Input.dispatchMouseEvent", { ...point, type: "mouseMoved" });
		if (click) {
			await this.send("Input.dispatchMouseEvent", { ...point, type: "mousePressed", button: "left", clickCount: 1 });
			await this.send("Input.dispatchMouseEvent", { ...point, type: "mouseReleased", button: "left", clickCount: 1 });
		}
		await this.frame();
	}

	async key(key, modifiers = 0) {
		const text = key.length === 1 && !modifiers ? key : key === "Enter" ? "\r" : undefined;
		await this.send("Input.dispatchKeyEvent", { type: text ? "keyDown" : "rawKeyDown", key, text, modifiers });
		await this.send("Input.dispatchKeyEvent", { type: "keyUp", key, modifiers });
		await this.frame();
	}

	async type(text) {
		await this.send("Input.insertText", { text });
		await this.frame();
	}

	async shot(file) {
		if (shots) {
			const { data } = await this.send("Page.captureScreenshot");
			fs.writeFileSync(path.join(shots, file), Buffer.from(data, "base64"));
		}
	}

	close() {
		return this.browser.call("Target.closeTarget", { targetId: this.targetId });
	}
}

let number = 0;
let failed = 0;
let shots = null;

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
	equal(await found(), "matched 100.00% (1)", "the share is that of the zoomed frame");
	await page.mouse("multiply", true);
	equal(await found(), "matched 100.00% (1)", "ancestors of the zoomed frame do not count");
	await page.key("Escape");
	await page.key("f", 2);
	equal(await page.run("document.activeElement.tagName"), "input", "Ctrl-F goes to the search box");
	await page.type("VFS_");
	equal(await found(), "matched 0.00% (0)", "capitals make the search exact");
	await page.key("/");
	await page.run(`document.querySelector("input").select()`);
	await page.type("write(");
	equal(await found(), "matched 0.00% (0)", "what is no regular expression is looked for as it stands");
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
	const label = await page.run(`(function () {
		const id = document.querySelector("[role=tree]").getAttribute("aria-activedescendant");
		return document.getElementById(id).getAttribute("aria-label");
	})()`);
	equal(label, "all, 400 samples \u00b7 100.00% of all \u00b7 self 0 (0.00%)", "screen readers hear the current frame");
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
		equal(await page.run(lowestContrast), true, "labels have a contrast of 4.5 and more" + (dark ? " in the dark" : ""));
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
	await page.shot("torture.png");
	quiet(page, "torture");
	await page.close();
}

async function checkEmpty(browser, url) {
	const page = await Page.open(browser, { dark: true });
	await page.go(url);
	equal(await page.text(".pf-empty"), "no samples", "an empty profile says so");
	await page.shot("empty.png");
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
	check(/^[\d,]+ frames below [\d,]+ samples are summed up/.test(await page.text(".pf-cut")), "what was left out is told");
	const before = Date.now();
	await page.mouse("main", true);
	await page.key("Escape");
	const zoom = Date.now() - before;
	check(load < 5000 && zoom < 3000, "a large file opens and zooms without a wait", [load, zoom]);
	console.log(`# large: opened in ${load} ms, zoom and reset in ${zoom} ms`);
	await page.shot("large.png");
	quiet(page, "large");
	await page.close();
}

async function checkStatic(browser, url) {
	const page = await Page.open(browser, { scripts: false });
	await page.go(url);
	await page.shot("static.png");
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

async function shootAll(browser, files) {
	for (const file of files) {
		for (const [width, dark, scripts] of [[1200, false, true], [1200, true, true], [400, false, true], [400, true, true], [1200, false, false]]) {
			const page = await Page.open(browser, { width, height: width < 600 ? 700 : 760, dark, scripts });
			await page.go("file://" + path.resolve(file));
			await page.shot(`${path.basename(file, ".svg")}-${width}${dark ? "-dark" : ""}${scripts ? "" : "-static"}.png`);
			await page.close();
		}
	}
}

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
		await checkNarrow(browser, url("plain"));
		await checkHostile(browser, url("torture"));
		await checkEmpty(browser, url("empty"));
		await checkDeep(browser, url("deep"));
		await checkLarge(browser, url("large"));
		await checkStatic(browser, url("plain"));
		await checkInlined(browser, folder);
		await shootAll(browser, shots ? [path.join(folder, "plain.svg"), ...args.slice(1)] : []);
	} finally {
		await browser.close();
		fs.rmSync(folder, { recursive: true, force: true });
	}
	console.log("1.." + number);
	process.exitCode = failed > 0 ? 1 : 0;
}

main(process.argv.slice(2)).catch((error) => {
	console.log("Bail out! " + error.stack);
	process.exitCode = 1;
});
