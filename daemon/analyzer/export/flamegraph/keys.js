/* The keys. */

function onKey(event) {
	const typing = event.target === ui.search;
	const ctrl = event.ctrlKey || event.metaKey;
	let known = true;
	if (ctrl && event.key === "f" && !event.altKey && !event.shiftKey) {
		// The second Ctrl-F is the browser's own.
		known = !typing;
	} else if (ctrl || event.altKey) {
		known = false;
	} else if (typing) {
		known = searchKey(event.key, event.shiftKey);
	} else if (event.target.tagName === "button") {
		known = event.key !== "Enter" && event.key !== " " && graphKey(event.key);
	} else {
		known = graphKey(event.key);
	}
	if (known && (ctrl || event.key === "/") && !typing) {
		ui.search.focus();
		ui.search.select();
	}
	ui.view.classList.add("pf-keys");
	if (known) {
		event.preventDefault();
	}
}

function searchKey(key, backwards) {
	if (key === "Escape") {
		ui.search.value = "";
		find("");
		ui.view.focus();
		return true;
	}
	if (key === "Enter") {
		step(backwards ? -1 : 1);
		return true;
	}
	return false;
}

function zoomAndSay(frame) {
	zoomTo(frame);
	announce(frame, frame === 0 ? "everything: " : "zoomed to ");
}

function graphKey(key) {
	if (key.startsWith("Arrow") && ui.head.classList.contains("pf-over")) {
		ui.head.scrollTop += key === "ArrowDown" ? 2 * ROW : key === "ArrowUp" ? -2 * ROW : 0;
	} else if (key.startsWith("Arrow")) {
		walk(key);
	} else if (key === "Enter" || key === " ") {
		zoomAndSay(state.current);
	} else if (key === "Escape" && !ui.help.hidden) {
		toggleHelp();
	} else if (key === "Escape" || key === "0") {
		zoomAndSay(0);
	} else if (key === "Backspace") {
		zoomAndSay(tree.parent[state.zoom]);
	} else if (key === "n" || key === "N") {
		step(key === "n" ? 1 : -1);
	} else if (key === "i") {
		flip();
	} else if (key === "c") {
		copyName();
	} else if (key === "?") {
		toggleHelp();
	} else {
		return key === "/";
	}
	return true;
}
