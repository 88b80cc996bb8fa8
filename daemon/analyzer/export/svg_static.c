#include "analyzer/export/svg_static.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/export/svg_pack.h"
#include "protocol/text.h"

#define MARGIN     10
#define ROW        18
#define TITLE_LINE 28  /* the title's baseline */
#define LINE       20  /* from one line of text below it to the next */
#define CHAR_WIDTH 7.3 /* of a monospaced font of 12 pixels, rounded up */
#define TITLE_CHAR 10.4
#define NAME_CHARS 200 /* of a frame's tooltip */
#define SWATCH     12
#define EMPTY_ROWS 6
#define HINT_BYTES SVG_STATIC_HINT_BYTES

static uint64_t total_of(const struct svg_static *picture)
{
	return picture->nodes[0].total;
}

static size_t chars_in(const struct svg_static *picture, double char_width)
{
	double room = picture->width - 2.0 * MARGIN;
	return room > 4 * char_width ? (size_t)(room / char_width) : 4;
}

/* --- which frames --- */

/* Parents are never narrower than their children and come before them, so what is drawn always stands on something. */
static bool is_drawn(struct svg_static *picture, const struct tree_node *node)
{
	if (node->total == picture->widest && picture->at_widest > 0) {
		picture->at_widest--;
		return true;
	}
	return node->total > picture->widest;
}

/* How many frames are drawn, and how many rows that takes. */
static void choose_frames(struct svg_static *picture)
{
	size_t above = 0, equal = 0;
	picture->widest = svg_pack_nth_total(picture->nodes, picture->count, SVG_STATIC_FRAMES);
	for (size_t i = 0; i < picture->count; i++) {
		above += picture->nodes[i].total > picture->widest;
		equal += picture->nodes[i].total == picture->widest && picture->widest > 0;
	}
	size_t at_widest = above + equal > SVG_STATIC_FRAMES ? SVG_STATIC_FRAMES - above : equal;
	picture->at_widest = at_widest;
	for (size_t i = 0; i < picture->count; i++) {
		if (is_drawn(picture, &picture->nodes[i])) {
			uint32_t rows = picture->nodes[i].depth + 1;
			picture->drawn++;
			picture->rows = rows > picture->rows ? rows : picture->rows;
		}
	}
	picture->at_widest = at_widest;
}

/* --- the legend, in as many lines as it needs --- */

static double item_width(const struct svg_legend_item *item)
{
	size_t chars = item->name.len < NAME_CHARS ? item->name.len : NAME_CHARS;
	return SWATCH + 6 + (double)(chars + (item->self > 0 ? 8 : 0) + 2) * CHAR_WIDTH;
}

/* Where the item stands; x, line: of the item before it. */
static void place_item(
	const struct svg_static *picture, const struct svg_legend_item *item, double *x, uint32_t *line)
{
	if (*x > 0 && *x + item_width(item) > picture->width - 2 * MARGIN) {
		*x = 0;
		(*line)++;
	}
}

static uint32_t legend_lines(const struct svg_static *picture)
{
	double x = 0;
	uint32_t line = 0;
	for (size_t i = 0; i < picture->legend->count; i++) {
		place_item(picture, &picture->legend->items[i], &x, &line);
		x += item_width(&picture->legend->items[i]);
	}
	return picture->legend->count > 0 ? line + 1 : 0;
}

static void write_rgb(struct markup *markup, uint32_t rgb)
{
	markup_printf(markup, "#%06" PRIx32, rgb);
}

static void write_item(struct svg_static *picture, struct markup *markup,
	const struct svg_legend_item *item, double x, uint32_t y)
{
	markup_printf(markup, "<rect class=\"pf-swatch\" x=\"");
	markup_fixed(markup, MARGIN + x);
	markup_printf(markup, "\" y=\"%" PRIu32 "\" width=\"%d\" height=\"%d\" fill=\"", y - SWATCH + 2,
		SWATCH, SWATCH);
	write_rgb(markup, item->colour.light);
	markup_printf(markup, "\"/><text class=\"pf-dim\" x=\"");
	markup_fixed(markup, MARGIN + x + SWATCH + 6);
	markup_printf(markup, "\" y=\"%" PRIu32 "\">", y);
	markup_text(markup, item->name.data, item->name.len, NAME_CHARS);
	if (item->self > 0) {
		markup_printf(markup, " ");
		markup_share(markup, (double)item->self, (double)total_of(picture), "&lt;");
	}
	markup_printf(markup, "</text>\n");
}

static void write_legend(struct svg_static *picture, struct markup *markup, uint32_t y)
{
	double x = 0;
	uint32_t line = 0;
	for (size_t i = 0; i < picture->legend->count; i++) {
		const struct svg_legend_item *item = &picture->legend->items[i];
		place_item(picture, item, &x, &line);
		write_item(picture, markup, item, x, y + line * LINE);
		x += item_width(item);
	}
}

/* --- the lines above the frames --- */

static bool has(const char *text)
{
	return text != NULL && text[0] != '\0';
}

/* How much of the text fits into a line, ended at a blank where there is one; *skip: what follows it and is not shown. */
static size_t line_of(const char *text, size_t chars, size_t *skip)
{
	size_t len = strlen(text);
	*skip = 0;
	if (len <= chars) {
		return len;
	}
	for (size_t end = chars; end > chars / 2; end--) {
		if (text[end] == ' ') {
			*skip = 1;
			return end;
		}
	}
	size_t cut = text_cut(text, chars);
	return cut > 0 ? cut : chars;
}

static uint32_t lines_of(const struct svg_static *picture, const char *text)
{
	uint32_t lines = 0;
	while (has(text)) {
		size_t skip;
		text += line_of(text, chars_in(picture, CHAR_WIDTH), &skip);
		text += skip;
		lines++;
	}
	return lines;
}

/* In as many lines as it needs. Returns the last one's baseline. */
static uint32_t write_lines(
	const struct svg_static *picture, struct markup *markup, const char *text, uint32_t y)
{
	while (has(text)) {
		size_t skip, len = line_of(text, chars_in(picture, CHAR_WIDTH), &skip);
		y += LINE;
		markup_printf(markup, "<text x=\"%d\" y=\"%" PRIu32 "\" class=\"pf-dim\">", MARGIN, y);
		markup_text(markup, text, len, len);
		markup_printf(markup, "</text>\n");
		text += len + skip;
	}
	return y;
}

/* Without those that stand for what was summed up. */
static size_t count_frames(const struct svg_static *picture)
{
	size_t frames = 1; /* the root, which is neutral too */
	for (size_t i = 1; i < picture->count; i++) {
		frames += picture->nodes[i].kind != TREE_NEUTRAL;
	}
	return frames;
}

static void make_hint(const struct svg_static *picture, char hint[HINT_BYTES])
{
	struct buffer text = {0};
	struct markup line = {.out = &text};
	size_t left = tree_whole_count(picture->tree) - count_frames(picture);
	if (left > 0) {
		markup_grouped(&line, left);
		markup_printf(&line, left == 1 ? " frame below " : " frames below ");
		markup_count(&line, tree_least(picture->tree), picture->options->unit);
		markup_printf(&line, " summed up. ");
	}
	if (picture->drawn < picture->count) {
		markup_count(&line, picture->count - picture->drawn, "narrow frames");
		markup_printf(&line, " not drawn. ");
	}
	markup_printf(&line, "Open this file in a browser to zoom and search.");
	snprintf(hint, HINT_BYTES, "%.*s", (int)text.len, line.failed ? "" : (char *)text.data);
	buffer_finish(&text);
}

/* Below the title, each on its own if there is something to say. The frames begin below the legend. */
static void write_head(struct svg_static *picture, struct markup *markup)
{
	const struct svg_options *options = picture->options;
	uint32_t y = TITLE_LINE;
	markup_printf(
		markup, "<text x=\"%d\" y=\"%" PRIu32 "\" class=\"pf-ink\" font-size=\"17\">", MARGIN, y);
	markup_text(markup, options->title, strlen(options->title), chars_in(picture, TITLE_CHAR));
	markup_printf(markup, "</text>\n");
	y = write_lines(picture, markup, options->subtitle, y);
	y = write_lines(picture, markup, options->note, y);
	y = write_lines(picture, markup, picture->hint, y);
	write_legend(picture, markup, y + LINE);
}

static uint32_t head_height(const struct svg_static *picture)
{
	const struct svg_options *options = picture->options;
	uint32_t lines = lines_of(picture, options->subtitle) + lines_of(picture, options->note) +
					 lines_of(picture, picture->hint) + legend_lines(picture);
	return TITLE_LINE + lines * LINE + MARGIN;
}

static void write_empty(struct svg_static *picture, struct markup *markup)
{
	markup_printf(markup, "<text x=\"%d\" y=\"%" PRIu32 "\" class=\"pf-ink\" font-size=\"17\">no ",
		MARGIN, picture->top + 2 * ROW);
	markup_text(markup, picture->options->unit, strlen(picture->options->unit), 40);
	markup_printf(markup, "</text>\n");
}

/* --- the frames --- */

static void write_label(
	struct markup *markup, struct bytes_text name, double x, uint64_t y, double width)
{
	size_t chars = width > 6 ? (size_t)((width - 6) / CHAR_WIDTH) : 0;
	if (chars >= 3) {
		markup_printf(markup, "<text x=\"");
		markup_fixed(markup, x + 3);
		markup_printf(markup, "\" y=\"%" PRIu64 "\">", y + 13);
		markup_text(markup, name.data, name.len, chars);
		markup_printf(markup, "</text>");
	}
}

static void write_tooltip(struct svg_static *picture, struct markup *markup,
	const struct tree_node *node, struct bytes_text name)
{
	markup_printf(markup, "<title>");
	markup_text(markup, name.data, name.len, NAME_CHARS);
	markup_printf(markup, " (");
	markup_count(markup, node->total, picture->options->unit);
	markup_printf(markup, ", ");
	markup_share(markup, (double)node->total, (double)total_of(picture), "&lt;");
	markup_printf(markup, ")</title>");
}

static void write_frame(
	struct svg_static *picture, struct markup *markup, const struct tree_node *node, uint64_t start)
{
	struct bytes_text name = svg_pack_name(picture->tree, node);
	double scale = (picture->width - 2.0 * MARGIN) / (double)total_of(picture);
	double x = MARGIN + (double)start * scale, width = (double)node->total * scale;
	uint64_t row =
		picture->options->layout == SVG_FLAME ? picture->rows - 1 - node->depth : node->depth;
	uint64_t y = picture->top + row * ROW;
	markup_printf(markup, "<g>");
	write_tooltip(picture, markup, node, name);
	markup_printf(markup, "<rect x=\"");
	markup_fixed(markup, x);
	markup_printf(markup, "\" y=\"%" PRIu64 "\" width=\"", y);
	markup_fixed(markup, width);
	markup_printf(markup, "\" height=\"%d\" fill=\"", ROW - 1);
	write_rgb(markup, svg_legend_colour(picture->legend, node->kind, name, node->image).light);
	markup_printf(markup, "\"/>");
	write_label(markup, name, x, y, width);
	markup_printf(markup, "</g>\n");
}

static void write_frames(struct svg_static *picture, struct markup *markup)
{
	for (size_t i = 0; i < picture->count && !markup->failed;) {
		const struct tree_node *node = &picture->nodes[i];
		uint64_t start = node->depth == 0 ? 0 : picture->next_start[node->depth - 1];
		if (node->depth > 0) {
			picture->next_start[node->depth - 1] += node->total;
		}
		picture->next_start[node->depth] = start;
		if (is_drawn(picture, node)) {
			write_frame(picture, markup, node, start);
			i++;
		} else {
			i = node->end;
		}
	}
}

/* --- the whole --- */

bool svg_static_init(struct svg_static *picture, const struct tree *tree,
	const struct svg_options *options, const struct svg_legend *legend)
{
	*picture = (struct svg_static){.tree = tree, .options = options, .legend = legend};
	picture->nodes = tree_nodes(tree, &picture->count);
	picture->next_start = calloc((size_t)tree_max_depth(tree) + 1, sizeof(*picture->next_start));
	picture->width = options->width_px > 0 ? options->width_px : SVG_STATIC_WIDTH;
	picture->rows = EMPTY_ROWS;
	if (total_of(picture) > 0) {
		picture->rows = 0;
		choose_frames(picture);
		make_hint(picture, picture->hint);
	}
	picture->top = head_height(picture);
	return picture->next_start != NULL;
}

void svg_static_finish(struct svg_static *picture)
{
	free(picture->next_start);
	*picture = (struct svg_static){0};
}

uint64_t svg_static_height(const struct svg_static *picture)
{
	return picture->top + (uint64_t)picture->rows * ROW + MARGIN;
}

void svg_static_write(struct svg_static *picture, struct markup *markup)
{
	markup_printf(markup,
		"<g class=\"pf-static\">\n<rect class=\"pf-page\" width=\"100%%\" height=\"100%%\" "
		"fill=\"#ffffff\"/>\n");
	write_head(picture, markup);
	if (total_of(picture) == 0) {
		write_empty(picture, markup);
	} else {
		write_frames(picture, markup);
	}
	markup_printf(markup, "</g>\n");
}
