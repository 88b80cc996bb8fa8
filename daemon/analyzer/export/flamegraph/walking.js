/* The zoomed frame, the current one, and the ways from one to another. */

function layout() {
	state.rows = deepest(state.zoom) + 1;
	ui.graph.style.height = state.rows * ROW + 8 + "px";
	ui.reset.disabled = state.zoom === 0;
	ui.app.classList.toggle("pf-up", state.up);
}

function scrollTo(frame) {
	const y = top(tree.depth[frame]);
	const height = ui.view.clientHeight;
	if (y < ui.view.scrollTop || y + ROW > ui.view.scrollTop + height) {
		ui.view.scrollTop = Math.max(0, y - height / 2);
	}
}

function zoomTo(frame) {
	state.zoom = frame;
	state.current = frame;
	state.hover = -1; // what is under the mouse now is another frame
	layout();
	if (state.up) {
		ui.view.scrollTop = ui.view.scrollHeight;
	}
	scrollTo(frame);
	count();
	draw();
	tell(frame);
	save();
}

function select(frame) {
	if (!within(frame, state.zoom) && !within(state.zoom, frame)) {
		zoomTo(commonAncestor(frame, state.zoom));
	}
	state.current = frame;
	state.hover = -1;
	scrollTo(frame);
	draw();
	tell(frame);
}

function widestChild(frame) {
	let widest = -1;
	for (let i = frame + 1; i < tree.end[frame]; i = tree.end[i]) {
		if (widest < 0 || tree.total[i] > tree.total[widest]) {
			widest = i;
		}
	}
	return widest;
}

// The next frame of the same depth to the right (1) or left (-1) within the zoomed one.
function neighbour(frame, direction) {
	for (let i = frame + direction; within(i, state.zoom); i += direction) {
		if (tree.depth[i] === tree.depth[frame]) {
			return i;
		}
	}
	return -1;
}

function walk(key) {
	const frame = state.current;
	const inwards = state.up ? "ArrowUp" : "ArrowDown";
	let to = -1;
	if (key === "ArrowLeft" || key === "ArrowRight") {
		to = neighbour(frame, key === "ArrowRight" ? 1 : -1);
	} else if (key === inwards) {
		to = within(frame, state.zoom) ? widestChild(frame) : ancestor(state.zoom, tree.depth[frame] + 1);
	} else if (frame !== 0) {
		to = tree.parent[frame];
	}
	if (to >= 0) {
		select(to);
		announce(to, "");
	}
}

function flip() {
	state.up = !state.up;
	layout();
	say(state.up ? "root at the bottom" : "root at the top");
	ui.view.scrollTop = state.up ? ui.view.scrollHeight : 0;
	scrollTo(state.current);
	draw();
	save();
}
