/* The search, and the matches. */

// A query without capitals ignores case. What is no regular expression is looked for as it stands.
function matcher(query) {
	const flags = query === query.toLowerCase() ? "i" : "";
	try {
		return { regex: new RegExp(query, flags), literal: false };
	} catch (error) {
		return { regex: new RegExp(query.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), flags), literal: true };
	}
}

function find(query) {
	state.query = query;
	search.active = query !== "";
	search.list = [];
	ui.search.classList.remove("pf-literal");
	if (search.active) {
		const match = matcher(query);
		search.symbols = Uint8Array.from(data.names, (text) => (match.regex.test(text) ? 1 : 0));
		ui.search.classList.toggle("pf-literal", match.literal);
	}
	count();
	draw();
	save();
}

// The outermost matches from the zoomed frame on: their weights can be added, nothing is counted twice.
function count() {
	search.list = [];
	search.weight = 0;
	for (let i = state.zoom; search.active && i < tree.end[state.zoom];) {
		if (search.symbols[tree.symbol[i]] === 1) {
			search.list.push(i);
			search.weight += tree.total[i];
			i = tree.end[i];
		} else {
			i++;
		}
	}
	const share = percent(search.weight, tree.total[state.zoom]);
	ui.found.textContent = search.active ? "matched " + share + " (" + group(search.list.length) + ")" : "";
	ui.next.disabled = ui.previous.disabled = search.list.length === 0;
}

function step(direction) {
	const list = search.list;
	if (list.length === 0) {
		return;
	}
	let at = list.findIndex((frame) => (direction > 0 ? frame > state.current : frame >= state.current));
	if (direction > 0) {
		at = at < 0 ? 0 : at;
	} else {
		at = at <= 0 ? list.length - 1 : at - 1;
	}
	select(list[at]);
}
