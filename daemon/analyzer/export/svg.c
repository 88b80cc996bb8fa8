#include "analyzer/export/svg.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/export/flamegraph.h"
#include "analyzer/export/markup.h"
#include "analyzer/export/svg_pack.h"

/* The picture that is seen while scripts are off: the widest frames only, so that its size does not follow the profile's. */
#define STATIC_FRAMES 2000
#define WIDTH         1200
#define MARGIN        10
#define SPAN          (WIDTH - 2 * MARGIN) /* what the root is wide */
#define TOP           84                   /* above the root's row */
#define ROW           18
#define CHAR_WIDTH    7.3 /* of a monospaced font of 12 pixels, rounded up */
#define NAME_CHARS    200 /* of a frame's tooltip */
#define TITLE_CHARS   150

#define FILE_BYTES        (4 * 1024 * 1024) /* what browsers open at once */
#define FEWEST_TREE_BYTES (512 * 1024)

struct picture {
	struct markup markup;
	const struct tree *tree;
	const struct tree_node *nodes;
	size_t count;
	const struct svg_options *options;
	uint64_t total;
	uint64_t widest;      /* frames with more are drawn, */
	size_t at_widest;     /* and so many of those with exactly this */
	uint64_t *next_start; /* owned; per depth: where the open frame's next child begins */
};

/* Hue, its spread, saturation and lightness of a kind of frame; flamegraph/page.js has the same table. */
struct palette {
	unsigned hue, spread, saturation, lightness;
};

static const struct palette palettes[] = {
	[TREE_THREAD] = {205, 16, 26, 76},
	[TREE_NATIVE] = {14, 38, 88, 70},
	[TREE_KERNEL] = {222, 30, 72, 79},
	[TREE_INTERPRETED] = {88, 50, 46, 70},
	[TREE_MARKER] = {286, 26, 46, 80},
	[TREE_UNKNOWN] = {34, 14, 22, 76},
	[SVG_KIND_NEUTRAL] = {220, 1, 8, 82},
};

/* From hue, saturation and lightness to red, green and blue: simple viewers know no hsl(). */
static void write_colour(struct markup *markup, uint8_t kind, uint8_t shade)
{
	const struct palette *palette = &palettes[kind <= SVG_KIND_NEUTRAL ? kind : TREE_UNKNOWN];
	unsigned hue = palette->hue + palette->spread * shade / SVG_SHADES;
	double light = (palette->lightness + shade % 4 * 2) / 100.0;
	double reach = palette->saturation / 100.0 * (light < 0.5 ? light : 1 - light);
	unsigned rgb[3];
	for (unsigned i = 0; i < 3; i++) {
		/* CSS Color Module Level 4, section 7.1 */
		double k = (double)((hue + (i == 0 ? 0 : i == 1 ? 240 : 120)) % 360) / 30;
		double slope = k - 3 < 9 - k ? k - 3 : 9 - k;
		slope = slope < -1 ? -1 : slope > 1 ? 1 : slope;
		rgb[i] = (unsigned)((light - reach * slope) * 255 + 0.5);
	}
	markup_printf(markup, "#%02x%02x%02x", rgb[0], rgb[1], rgb[2]);
}

static void write_title(struct picture *picture)
{
	struct markup *markup = &picture->markup;
	const struct svg_options *options = picture->options;
	markup_printf(markup, "<text x=\"%d\" y=\"28\" class=\"pf-ink\" font-size=\"17\">", MARGIN);
	markup_text(markup, options->title, strlen(options->title), 115);
	markup_printf(markup, "</text>\n");
	if (options->subtitle != NULL) {
		markup_printf(markup, "<text x=\"%d\" y=\"49\" class=\"pf-dim\">", MARGIN);
		markup_text(markup, options->subtitle, strlen(options->subtitle), TITLE_CHARS);
		markup_printf(markup, "</text>\n");
	}
}

static void write_note(struct picture *picture, size_t drawn)
{
	struct markup *markup = &picture->markup;
	markup_printf(markup, "<text x=\"%d\" y=\"70\" class=\"pf-dim\">", MARGIN);
	if (drawn < picture->count) {
		markup_grouped(markup, picture->count - drawn);
		markup_printf(markup, " narrow frames not drawn. ");
	}
	markup_printf(markup, "Open this file in a browser to zoom and search.</text>\n");
}

static void write_empty(struct picture *picture)
{
	struct markup *markup = &picture->markup;
	markup_printf(markup, "<text x=\"%d\" y=\"%d\" class=\"pf-ink\" font-size=\"17\">no ", MARGIN,
		TOP + 2 * ROW);
	markup_text(markup, picture->options->unit, strlen(picture->options->unit), 40);
	markup_printf(markup, "</text>\n");
}

static void write_label(
	struct picture *picture, struct bytes_text name, double x, uint64_t y, double width)
{
	struct markup *markup = &picture->markup;
	size_t chars = width > 6 ? (size_t)((width - 6) / CHAR_WIDTH) : 0;
	if (chars >= 3) {
		markup_printf(markup, "<text x=\"");
		markup_fixed(markup, x + 3);
		markup_printf(markup, "\" y=\"%" PRIu64 "\">", y + 13);
		markup_text(markup, name.data, name.len, chars);
		markup_printf(markup, "</text>");
	}
}

static void write_frame(struct picture *picture, const struct tree_node *node, uint64_t start)
{
	struct markup *markup = &picture->markup;
	struct bytes_text name = svg_pack_name(picture->tree, node);
	double scale = (double)SPAN / (double)picture->total;
	double x = MARGIN + (double)start * scale, width = (double)node->total * scale;
	uint64_t y = TOP + (uint64_t)node->depth * ROW;
	markup_printf(markup, "<g><title>");
	markup_text(markup, name.data, name.len, NAME_CHARS);
	markup_printf(markup, " (");
	markup_grouped(markup, node->total);
	markup_printf(markup, " ");
	markup_text(markup, picture->options->unit, strlen(picture->options->unit), 40);
	markup_printf(markup, ", ");
	markup_fixed(markup, (double)node->total * 100 / (double)picture->total);
	markup_printf(markup, "%%)</title><rect x=\"");
	markup_fixed(markup, x);
	markup_printf(markup, "\" y=\"%" PRIu64 "\" width=\"", y);
	markup_fixed(markup, width);
	markup_printf(markup, "\" height=\"%d\" fill=\"", ROW - 1);
	write_colour(markup, node->depth == 0 ? SVG_KIND_NEUTRAL : node->kind,
		svg_pack_shade(name.data, name.len));
	markup_printf(markup, "\"/>");
	write_label(picture, name, x, y, width);
	markup_printf(markup, "</g>\n");
}

/* Parents are never narrower than their children and come before them, so what is drawn always stands on something. */
static bool is_drawn(struct picture *picture, const struct tree_node *node)
{
	if (node->total == picture->widest && picture->at_widest > 0) {
		picture->at_widest--;
		return true;
	}
	return node->total > picture->widest;
}

/* Which frames are drawn: how many, and the deepest. */
static size_t choose_frames(struct picture *picture, uint32_t *depth)
{
	size_t above = 0, equal = 0, at_widest, drawn = 0;
	picture->widest = svg_pack_nth_total(picture->nodes, picture->count, STATIC_FRAMES);
	for (size_t i = 0; i < picture->count; i++) {
		above += picture->nodes[i].total > picture->widest;
		equal += picture->nodes[i].total == picture->widest && picture->widest > 0;
	}
	at_widest = above + equal > STATIC_FRAMES ? STATIC_FRAMES - above : equal;
	picture->at_widest = at_widest;
	for (size_t i = 0; i < picture->count; i++) {
		if (is_drawn(picture, &picture->nodes[i])) {
			drawn++;
			*depth = picture->nodes[i].depth > *depth ? picture->nodes[i].depth : *depth;
		}
	}
	picture->at_widest = at_widest;
	return drawn;
}

static void write_frames(struct picture *picture)
{
	for (size_t i = 0; i < picture->count && !picture->markup.failed;) {
		const struct tree_node *node = &picture->nodes[i];
		uint64_t start = node->depth == 0 ? 0 : picture->next_start[node->depth - 1];
		if (node->depth > 0) {
			picture->next_start[node->depth - 1] += node->total;
		}
		picture->next_start[node->depth] = start;
		if (is_drawn(picture, node)) {
			write_frame(picture, node, start);
			i++;
		} else {
			i = node->end;
		}
	}
}

static void write_head(struct picture *picture, uint64_t height)
{
	struct markup *markup = &picture->markup;
	const struct svg_options *options = picture->options;
	markup_printf(markup,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%" PRIu64
		"\" viewBox=\"0 0 %d %" PRIu64
		"\" class=\"pf\" role=\"img\" font-family=\"ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,"
		"monospace\" font-size=\"12\" aria-label=\"",
		WIDTH, height, WIDTH, height);
	markup_text(markup, options->title, strlen(options->title), TITLE_CHARS);
	markup_printf(markup, "\">\n<title>");
	markup_text(markup, options->title, strlen(options->title), TITLE_CHARS);
	markup_printf(markup, "</title>\n<style><![CDATA[\n");
	markup_raw(markup, flamegraph_style, sizeof(flamegraph_style));
	markup_printf(markup, "]]></style>\n");
}

static void write_static(struct picture *picture)
{
	struct markup *markup = &picture->markup;
	uint32_t depth = 0;
	size_t drawn = picture->total > 0 ? choose_frames(picture, &depth) : picture->count;
	uint64_t rows = picture->total > 0 ? (uint64_t)depth + 1 : 6;
	write_head(picture, TOP + rows * ROW + MARGIN);
	markup_printf(markup,
		"<g class=\"pf-static\">\n<rect class=\"pf-page\" width=\"100%%\" height=\"100%%\" "
		"fill=\"#ffffff\"/>\n");
	write_title(picture);
	if (picture->total == 0) {
		write_empty(picture);
	} else {
		write_note(picture, drawn);
		write_frames(picture);
	}
	markup_printf(markup, "</g>\n");
}

static void write_data(struct picture *picture)
{
	struct markup *markup = &picture->markup;
	const struct svg_options *options = picture->options;
	const char *texts[] = {options->title, options->subtitle, options->unit};
	static const char *const names[] = {"title", "subtitle", "unit"};
	markup_printf(markup, "<script type=\"application/json\" class=\"pf-data\">{");
	for (size_t i = 0; i < 3; i++) {
		const char *text = texts[i] != NULL ? texts[i] : "";
		markup_printf(markup, "\"%s\":", names[i]);
		markup_json(markup, text, strlen(text), 4096);
		markup_raw(markup, ",\n", 2);
	}
	size_t used = markup->out->len + sizeof(flamegraph_script);
	size_t room = used + FEWEST_TREE_BYTES < FILE_BYTES ? FILE_BYTES - used : FEWEST_TREE_BYTES;
	markup->failed = markup->failed || !svg_pack_write(markup->out, picture->tree, room - 64);
	markup_printf(markup, "}</script>\n");
}

static void write_script(struct markup *markup)
{
	markup_printf(markup, "<script><![CDATA[\n");
	markup_raw(markup, flamegraph_script, sizeof(flamegraph_script));
	markup_printf(markup, "]]></script>\n</svg>\n");
}

bool svg_write(struct buffer *out, const struct tree *tree, const struct svg_options *options)
{
	struct picture picture = {
		.markup = {.out = out}, .tree = tree, .options = options, .total = tree_total(tree)};
	picture.nodes = tree_nodes(tree, &picture.count);
	picture.next_start = calloc((size_t)tree_max_depth(tree) + 1, sizeof(*picture.next_start));
	if (picture.next_start == NULL) {
		return false;
	}
	write_static(&picture);
	write_data(&picture);
	write_script(&picture.markup);
	free(picture.next_start);
	return !picture.markup.failed;
}
