/* The address: #z=DEPTH.START&s=QUERY&up=1 (or 0, when it is not as the file was made), below which a frame is found again whatever the width. */

function save() {
	if (!alone) {
		return;
	}
	const parts = [];
	if (state.zoom !== 0) {
		parts.push("z=" + tree.depth[state.zoom] + "." + tree.start[state.zoom]);
	}
	if (state.query) {
		parts.push("s=" + encodeURIComponent(state.query));
	}
	if (state.up !== (data.layout === "flame")) {
		parts.push("up=" + (state.up ? 1 : 0));
	}
	try {
		window.history.replaceState(null, "", parts.length ? "#" + parts.join("&") : "#");
	} catch (error) {
		// Some places, such as sandboxed frames, have no history: the graph works without.
	}
}

function restore() {
	const known = new Map();
	if (alone) {
		window.location.hash.slice(1).split("&").forEach(function (part) {
			const at = part.indexOf("=");
			known.set(part.slice(0, at), part.slice(at + 1));
		});
	}
	const place = /^(\d+)\.(\d+)$/.exec(known.get("z") || "");
	state.zoom = 0;
	const frame = place ? frameAt(Number(place[1]), Number(place[2])) : 0;
	let query = "";
	try {
		query = decodeURIComponent(known.get("s") || "");
	} catch (error) {
		query = ""; // a broken escape in an address typed by hand
	}
	state.up = known.has("up") ? known.get("up") === "1" : data.layout === "flame";
	state.zoom = state.current = Math.max(frame, 0);
	ui.search.value = query;
	layout();
	ui.view.scrollTop = state.up ? ui.view.scrollHeight : 0;
	scrollTo(state.zoom);
	find(query);
	tell(state.zoom);
}
