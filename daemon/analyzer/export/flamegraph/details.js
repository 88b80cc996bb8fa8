/* What is told of one frame, and which one is under the mouse. */

function numbers(frame) {
	const total = tree.total[frame];
	const symbol = tree.symbol[frame];
	const kind = data.kinds[tree.kinds[symbol]];
	const image = data.images[tree.images[symbol]];
	const parts = [counted(total, data.unit), percent(total, tree.total[0]) + " of all"];
	if (state.zoom !== 0 && within(frame, state.zoom)) {
		parts.push(percent(total, tree.total[state.zoom]) + " of zoom");
	}
	parts.push("self " + group(tree.self[frame]) + " (" + percent(tree.self[frame], tree.total[0]) + ")");
	if (kind) {
		parts.push(image && image !== kind ? kind + " " + legible(image) : kind);
	}
	return parts.join(" \u00b7 ");
}

function tell(frame) {
	state.told = frame;
	ui.name.textContent = legible(name(frame));
	ui.numbers.textContent = numbers(frame);
}

/* For those who do not see where the current frame is. */
function announce(frame, before) {
	say(before + legible(name(frame)) + ", level " + tree.depth[frame] + ", " + numbers(frame));
}

function frameUnder(event) {
	const box = ui.graph.getBoundingClientRect();
	const row = Math.floor((event.clientY - box.top - 4) / ROW);
	const depth = state.up ? state.rows - 1 - row : row;
	if (row < 0 || depth < 0 || !(state.scale > 0)) {
		return -1;
	}
	if (depth < tree.depth[state.zoom]) {
		return ancestor(state.zoom, depth);
	}
	return frameAt(depth, tree.start[state.zoom] + (event.clientX - box.left) / state.scale);
}

function onHover(event) {
	state.hover = frameUnder(event);
	if (state.hover < 0) {
		onLeave();
		return;
	}
	if (ui.hover) {
		place(ui.hover, state.hover);
	}
	tell(state.hover);
}

function onLeave() {
	state.hover = -1;
	if (ui.hover) {
		ui.hover.hidden = true;
	}
	tell(state.current);
}

/* Of the frame under the mouse, else of the current one. */
function copyName() {
	const frame = state.hover >= 0 ? state.hover : state.current;
	const done = () => { ui.found.textContent = "name copied"; };
	tell(frame);
	if (navigator.clipboard && navigator.clipboard.writeText) {
		navigator.clipboard.writeText(name(frame)).then(done, selectName);
	} else {
		selectName();
	}
}

/* Where there is no clipboard: what is selected can be copied by hand. */
function selectName() {
	const range = document.createRange();
	const selection = window.getSelection();
	range.selectNodeContents(ui.name);
	selection.removeAllRanges();
	selection.addRange(range);
	ui.found.textContent = "name selected: Ctrl+C copies it";
}

/* The whole name in the details is shown otherwise than it is, if it has controls. */
function onCopy(event) {
	if (window.getSelection().toString() === ui.name.textContent) {
		event.clipboardData.setData("text/plain", name(state.told));
		event.preventDefault();
	}
}
