/*
 * Regular expressions that cannot freeze the page: those of the browser try one way after the other, and "(.*)*$" has so many that one
 * long name takes minutes. Here an expression becomes a program of steps, all places in it that a name could have reached are followed at
 * once, a character at a time, and each set of places is worked out once (Thompson 1968). What is an expression and what a single character
 * matches is asked of the browser, so that both are as usual, but that \p{L} is a Unicode class without a flag. Look-around and back
 * references can not be searched for in this way.
 */

const STEPS_MOST = 2000; // of a program
const NESTED_MOST = 200; // parentheses within each other
const SETS_MOST = 500; // kept; then all are forgotten

/* The program: a step goes on to those in next; with a test it takes a character, with an assertion it needs a place. Throws what is wrong. */
function compile(source, flags) {
	const steps = [];
	let pos = 0;
	let nested = 0;

	function put(step) {
		if (steps.length >= STEPS_MOST) {
			throw new Error("too large an expression");
		}
		step.next = step.next || [steps.length + 1];
		steps.push(step);
		return step;
	}

	function take(pattern) {
		pattern.lastIndex = pos;
		const found = pattern.exec(source);
		pos = found ? pattern.lastIndex : pos;
		return found;
	}

	// What is parsed becomes a function that puts its steps: repetitions call it several times.
	function alternatives() {
		const all = [sequence()];
		while (take(/\|/y)) {
			all.push(sequence());
		}
		return all.length === 1 ? all[0] : () => putAny(all);
	}

	function putAny(all) {
		const ends = all.map(function (each, i) {
			const fork = i + 1 < all.length ? put({}) : null;
			each();
			const end = put({});
			if (fork) {
				fork.next.push(steps.length);
			}
			return end;
		});
		ends.forEach((end) => { end.next = [steps.length]; });
	}

	function sequence() {
		const all = [];
		while (pos < source.length && source[pos] !== "|" && source[pos] !== ")") {
			all.push(repeated(item()));
		}
		return () => all.forEach((each) => each());
	}

	function item() {
		if (take(/\((\?:|\?<(?![=!])[^>]*>)?(?!\?)/y)) {
			if (++nested > NESTED_MOST) {
				throw new Error("nested too deeply");
			}
			const inner = alternatives();
			nested--;
			pos++; // the closing one
			return inner;
		}
		const place = take(/\^|\$|\\[bB]/y);
		if (place) {
			return () => put({ assertion: place[0] });
		}
		const atom = take(/\[(?:[^\]\\]|\\[^])*\]|\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\c[a-zA-Z]|\\0(?![0-9])|\\[pP]\{[^}]*\}|\\[^0-9ck]|[^\\(]/y);
		if (!atom) {
			throw new Error(take(/\(\?<?[=!]|\\[1-9k]/y) ? "look-around or back references" : "a group or an escape that is not known");
		}
		const test = characterTest(atom[0], flags);
		return () => put({ test: test, known: new Map() });
	}

	function repeated(inner) {
		const found = take(/([*+?])\??|\{(\d+)(,(\d*))?\}\??/y);
		if (!found) {
			return inner;
		}
		const [, sign, least, comma, most] = found;
		const from = sign ? (sign === "+" ? 1 : 0) : Number(least);
		const to = sign === "?" ? 1 : sign || (comma && !most) ? Infinity : Number(comma ? most : least);
		return () => putRepeated(inner, from, to);
	}

	function putRepeated(inner, from, to) {
		const forks = [];
		for (let i = 0; i < from; i++) {
			put({}); // so that nothing, repeated, is too large some time too
			inner();
		}
		for (let i = from; i < to && (to < Infinity || i === from); i++) {
			forks.push(put({}));
			inner();
		}
		if (to === Infinity) {
			put({ next: [steps.indexOf(forks[0])] });
		}
		forks.forEach((fork) => fork.next.push(steps.length));
	}

	alternatives()();
	put({ isMatch: true });
	return steps;
}

/* Of a single character: a class, an escape, or itself. */
function characterTest(atom, flags) {
	const isUnicode = /\\[pP]\{/.test(atom);
	try {
		return new RegExp("^(?:" + (/^[{}\]]$/.test(atom) ? "\\" : "") + atom + ")$", isUnicode ? flags + "u" : flags);
	} catch (error) {
		throw isUnicode ? new Error("a Unicode class that is not known") : error;
	}
}

const MATCHED = {};

function isWord(character) {
	return character >= 0 && /\w/.test(String.fromCharCode(character));
}

/* Throws, when it has to look up something after the deadline. */
function expression(source, flags) {
	const steps = compile(source, flags);
	const sets = new Map();
	let first = null;

	// atStart, afterWord: what assertions ask of the place.
	function keep(places, atStart, afterWord) {
		const key = places.join() + (atStart ? "^" : "") + (afterWord ? "w" : "");
		if (!sets.has(key)) {
			if (sets.size >= SETS_MOST) {
				sets.clear();
				first = null;
			}
			sets.set(key, { places: places, atStart: atStart, afterWord: afterWord, near: new Array(129), far: new Map() });
		}
		return sets.get(key);
	}

	function holds(assertion, set, character) {
		if (assertion === "^") {
			return set.atStart;
		}
		return assertion === "$" ? character < 0 : (set.afterWord !== isWord(character)) === (assertion === "\\b");
	}

	function accepts(step, character) {
		if (!step.known.has(character)) {
			step.known.set(character, step.test.test(String.fromCharCode(character)));
		}
		return step.known.get(character);
	}

	// A match may begin at every character: the first step is in each set.
	function follow(set, character) {
		const after = new Set([0]);
		const seen = new Uint8Array(steps.length);
		const open = set.places.slice();
		while (open.length > 0) {
			const at = open.pop();
			const step = steps[at];
			if (step.isMatch) {
				return MATCHED;
			}
			if (step.test) {
				if (character >= 0 && accepts(step, character)) {
					after.add(at + 1);
				}
			} else if (!seen[at] && (!step.assertion || holds(step.assertion, set, character))) {
				open.push(...step.next);
			}
			seen[at] = 1;
		}
		return keep([...after].sort((a, b) => a - b), false, isWord(character));
	}

	function lookUp(set, character, deadline) {
		if (performance.now() > deadline) {
			throw new Error("too slow an expression");
		}
		const to = follow(set, character);
		if (character < 128) {
			set.near[character + 1] = to;
		} else {
			set.far.set(character, to);
		}
		return to;
	}

	return function (text, deadline) {
		first = first || keep([0], true, false);
		let set = first;
		for (let i = 0; i <= text.length && set !== MATCHED; i++) {
			const character = i < text.length ? text.charCodeAt(i) : -1;
			const to = character < 128 ? set.near[character + 1] : set.far.get(character);
			set = to || lookUp(set, character, deadline);
		}
		return set === MATCHED;
	};
}
