/* The search, and the matches. */

/*
 * Text or a regular expression: a name matches when it contains the query as it stands, or as an expression. Without capitals case does not
 * matter. What is no expression is looked for as text, and that is said.
 */
function matcher(query) {
	const folds = query === query.toLowerCase();
	let regex = null;
	try {
		regex = new RegExp(query, folds ? "i" : "");
	} catch (error) {
		regex = null;
	}
	return {
		literal: regex === null,
		test: (text) => (regex !== null && regex.test(text)) || (folds ? text.toLowerCase() : text).includes(query),
	};
}

function find(query) {
	state.query = query;
	search.active = query !== "";
	search.literal = false;
	if (search.active) {
		const match = matcher(query);
		search.symbols = Uint8Array.from(data.names, (text) => (match.test(text) ? 1 : 0));
		search.literal = match.literal;
	}
	ui.search.classList.toggle("pf-literal", search.literal);
	count();
	draw();
	save();
}

/*
 * The share is of the outermost matches from the zoomed frame on: their weights can be added, nothing is counted twice. The list,
 * which next and previous walk, has the outermost ones of the rest of the tree too, and those around the zoomed frame.
 */
function count() {
	search.list = [];
	search.here = search.weight = 0;
	for (let i = 0; search.active && i < tree.count;) {
		const isAround = i !== state.zoom && within(state.zoom, i);
		const isMatch = search.symbols[tree.symbol[i]] === 1;
		if (isMatch) {
			search.list.push(i);
		}
		if (isMatch && within(i, state.zoom)) {
			search.here++;
			search.weight += tree.total[i];
		}
		i = isMatch && !isAround ? tree.end[i] : i + 1;
	}
	ui.found.textContent = foundText();
	ui.next.disabled = ui.previous.disabled = search.list.length === 0;
}

function foundText() {
	if (!search.active) {
		return "";
	}
	const all = search.list.length;
	return "matched " + percent(search.weight, tree.total[state.zoom]) + " (" + group(search.here) +
		(search.here < all ? " of " + group(all) : "") + ")" + (search.literal ? ", no regular expression: as text" : "");
}

/* Zooms out as far as it must to show the match. */
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
	ui.view.classList.add("pf-keys");
	announce(state.current, "match " + (search.list.indexOf(state.current) + 1) + " of " + search.list.length + ": ");
}
