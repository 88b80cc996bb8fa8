/* The search, and the matches. */

const SEARCH_MS = 1000; // longer than this no expression is tried
const SIGNS = /[\\^$.*+?()[\]{}|]/; // without any of them an expression is nothing but text

/*
 * Text or a regular expression: a name matches when it contains the query as it stands, or as an expression. Without capitals case does not
 * matter. What is no expression, or none that can be searched for in time, is looked for as text, and that is said. The root and sums of smaller
 * frames are no functions and never match.
 */
function matches(query) {
	const folds = query === query.toLowerCase();
	const found = Uint8Array.from(data.names, (text, symbol) => (isFunction(symbol) && (folds ? text.toLowerCase() : text).includes(query) ? 1 : 0));
	if (!SIGNS.test(query)) {
		return { symbols: found, literal: "" };
	}
	try {
		return { symbols: found.map(expressed(query, folds ? "i" : "")), literal: "" };
	} catch (error) {
		return { symbols: found, literal: error instanceof SyntaxError ? "no regular expression" : error.message };
	}
}

/* Whether a name is found already, or matches the expression. */
function expressed(query, flags) {
	const deadline = performance.now() + SEARCH_MS;
	const test = expression(query, flags); // before the browser's, which has no words for what is too large
	new RegExp(query, flags); // what is none is refused here
	return (isFound, symbol) => (isFound || (isFunction(symbol) && test(data.names[symbol], deadline)) ? 1 : 0);
}

function isFunction(symbol) {
	return data.kinds[tree.kinds[symbol]] !== "";
}

function find(query) {
	state.query = query;
	search.active = query !== "";
	search.literal = "";
	if (search.active) {
		const match = matches(query);
		search.symbols = match.symbols;
		search.literal = match.literal;
	}
	ui.search.classList.toggle("pf-literal", search.literal !== "");
	say(""); // it was about the search before
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
		(search.here < all ? " of " + group(all) : "") + ")" + (search.literal ? ", " + search.literal + ": as text" : "");
}

/* Zooms out as far as it must to show the match. */
function step(direction) {
	const list = search.list;
	if (list.length === 0) {
		say(search.active ? "no match" : "");
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
