/* What is told of one frame, and which one is under the mouse. */

function numbers(frame) {
	const total = tree.total[frame];
	const symbol = tree.symbol[frame];
	const place = [data.kinds[tree.kinds[symbol]], data.images[tree.images[symbol]]].filter((text) => text !== "").join(" ");
	const parts = [group(total) + " " + data.unit, percent(total, tree.total[0]) + " of all"];
	if (state.zoom !== 0 && within(frame, state.zoom)) {
		parts.push(percent(total, tree.total[state.zoom]) + " of zoom");
	}
	parts.push("self " + group(tree.self[frame]) + " (" + percent(tree.self[frame], tree.total[0]) + ")");
	if (place) {
		parts.push(place);
	}
	return parts.join(" \u00b7 ");
}

function tell(frame) {
	ui.name.textContent = name(frame);
	ui.numbers.textContent = numbers(frame);
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
	const frame = frameUnder(event);
	if (frame < 0) {
		onLeave();
		return;
	}
	if (ui.hover) {
		place(ui.hover, frame);
	}
	tell(frame);
}

function onLeave() {
	if (ui.hover) {
		ui.hover.hidden = true;
	}
	tell(state.current);
}
