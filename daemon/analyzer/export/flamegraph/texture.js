/*
 * Frames narrower than about a pixel, which can be thousands in a row: what they cover of each pixel is summed up, so that a row that they
 * fill looks full and one that they thin out in looks thin. A pixel has the colour of the widest frame in it; every other pixel column is
 * weaker, so that many frames do not look like a wide one. Matches have their share of a row's pixels, and one alone is seen however narrow
 * it is.
 */

const WEAKER = 0.8;
const MARK = 2; // pixels of the page: as wide is a match's mark
const LONELY = 16; // so many marks further on a match is marked even if it is less

/* For the rows of the depths first to last, columns pixels wide; scale: pixels of it in one of the page. */
function makeTexture(first, last, columns, scale) {
	const size = Math.max(last - first + 1, 0) * columns;
	return {
		first: first,
		last: last,
		columns: columns,
		scale: scale,
		covered: new Float32Array(size),
		widest: new Float32Array(size),
		colours: new Uint32Array(size),
		matched: new Float32Array(size),
	};
}

/* left and width in pixels of the page. */
function addToTexture(texture, depth, left, width, colour, isMatch) {
	const row = (depth - texture.first) * texture.columns;
	const right = (left + width) * texture.scale;
	let at = left * texture.scale;
	for (let column = Math.floor(at); at < right && column < texture.columns; column++) {
		const part = Math.min(right, column + 1) - at;
		texture.covered[row + column] += part;
		texture.matched[row + column] += isMatch ? part : 0;
		if (part > texture.widest[row + column]) {
			texture.widest[row + column] = part;
			texture.colours[row + column] = colour;
		}
		at = column + 1;
	}
}

/* "#rrggbb" */
function channels(colour) {
	const value = parseInt(colour.slice(1), 16);
	return [value >> 16, value >> 8 & 255, value & 255];
}

/* A pixel high for each row, to be stretched. palette: colours as "#rrggbb", by index. */
function textureImage(texture, palette, match) {
	const image = new ImageData(texture.columns, texture.last - texture.first + 1);
	const known = palette.map(channels);
	for (let i = 0; i < texture.covered.length; i++) {
		if (texture.covered[i] > 0) {
			image.data.set(known[texture.colours[i]], 4 * i);
			image.data[4 * i + 3] = Math.round(255 * Math.min(texture.covered[i], 1) * (i % texture.columns % 2 ? WEAKER : 1));
		}
	}
	for (let row = 0; row < texture.covered.length; row += texture.columns) {
		markRow(texture, image, row, [...channels(match), 255]);
	}
	return image;
}

/* What is matched adds up from left to right until it is worth a mark. */
function markRow(texture, image, row, colour) {
	const width = Math.ceil(MARK * texture.scale);
	let end = -LONELY * width;
	let owed = 0;
	for (let column = 0; column < texture.columns; column++) {
		const matched = texture.matched[row + column];
		owed += matched;
		if (matched > 0 && column >= end && (owed >= width || column - end >= LONELY * width)) {
			end = Math.min(column + width, texture.columns);
			owed = Math.max(owed - width, 0);
			for (let marked = Math.max(end - width, 0); marked < end; marked++) {
				image.data.set(colour, 4 * (row + marked));
			}
		}
	}
}

function paintTexture(context, texture, palette, match) {
	if (texture.covered.length === 0) {
		return;
	}
	const narrow = element("canvas");
	narrow.width = texture.columns;
	narrow.height = texture.last - texture.first + 1;
	narrow.getContext("2d").putImageData(textureImage(texture, palette, match), 0, 0);
	context.imageSmoothingEnabled = false;
	for (let depth = texture.first; depth <= texture.last; depth++) {
		context.drawImage(narrow, 0, depth - texture.first, texture.columns, 1,
			0, top(depth), texture.columns / texture.scale, ROW - 1);
	}
}
