"use strict";

/*
 * A headless browser and its tabs, by the DevTools protocol over two pipes: nothing but node is needed. Used by tools/verify-svg.js and
 * tools/bench/picture.js.
 */

const { spawn } = require("child_process");
const fs = require("fs");

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
		if (file) {
			const { data } = await this.send("Page.captureScreenshot");
			fs.writeFileSync(file, Buffer.from(data, "base64"));
		}
	}

	/* The page as it is printed on A4. */
	async print() {
		const { data } = await this.send("Page.printToPDF", { paperWidth: 8.27, paperHeight: 11.69 });
		return Buffer.from(data, "base64");
	}

	close() {
		return this.browser.call("Target.closeTarget", { targetId: this.targetId });
	}
}

module.exports = { Browser, Page, pause };
