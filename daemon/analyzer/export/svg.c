#include "analyzer/export/svg.h"

#include <inttypes.h>
#include <string.h>

#include "analyzer/export/flamegraph.h"
#include "analyzer/export/markup.h"
#include "analyzer/export/svg_legend.h"
#include "analyzer/export/svg_pack.h"
#include "analyzer/export/svg_static.h"

#define TITLE_CHARS       150
#define TEXT_CHARS        4096
#define FILE_BYTES        (4 * 1024 * 1024) /* what browsers open at once */
#define FEWEST_TREE_BYTES (512 * 1024)

static void write_head(
	struct markup *markup, const struct svg_static *picture, const struct svg_options *options)
{
	uint64_t height = svg_static_height(picture);
	markup_printf(markup,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%" PRIu32 "\" height=\"%" PRIu64
		"\" viewBox=\"0 0 %" PRIu32 " %" PRIu64
		"\" class=\"pf\" role=\"img\" font-family=\"ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,"
		"monospace\" font-size=\"12\" aria-label=\"",
		picture->width, height, picture->width, height);
	markup_text(markup, options->title, strlen(options->title), TITLE_CHARS);
	markup_printf(markup, "\">\n<title>");
	markup_text(markup, options->title, strlen(options->title), TITLE_CHARS);
	markup_printf(markup, "</title>\n<style><![CDATA[\n");
	markup_raw(markup, flamegraph_style, sizeof(flamegraph_style));
	markup_printf(markup, "]]></style>\n");
}

static void write_texts(struct markup *markup, const struct svg_options *options)
{
	const char *texts[] = {options->title, options->subtitle, options->note, options->unit};
	static const char *const names[] = {"title", "subtitle", "note", "unit"};
	for (size_t i = 0; i < 4; i++) {
		const char *text = texts[i] != NULL ? texts[i] : "";
		markup_printf(markup, "\"%s\":", names[i]);
		markup_json(markup, text, strlen(text), TEXT_CHARS);
		markup_raw(markup, ",\n", 2);
	}
	markup_printf(markup, "\"width\":%" PRIu32 ",\"layout\":\"%s\",\n", options->width_px,
		options->layout == SVG_FLAME ? "flame" : "icicle");
}

/* "legend":[["program","#f2a05c","#8a2b12",self],…] */
static void write_legend(struct markup *markup, const struct svg_legend *legend)
{
	markup_printf(markup, "\"legend\":[");
	for (size_t i = 0; i < legend->count; i++) {
		const struct svg_legend_item *item = &legend->items[i];
		markup_printf(markup, "%s[", i > 0 ? "," : "");
		markup_json(markup, item->name.data, item->name.len, TEXT_CHARS);
		markup_printf(markup, ",\"#%06" PRIx32 "\",\"#%06" PRIx32 "\",%" PRIu64 "]",
			item->colour.light, item->colour.dark, item->self);
	}
	markup_printf(markup, "],\n\"kinds\":[");
	for (uint8_t kind = 0; kind < TREE_KINDS; kind++) {
		markup_printf(markup, "%s\"%s\"", kind > 0 ? "," : "", svg_legend_kind(kind));
	}
	markup_printf(markup, "],\n");
}

static void write_data(struct markup *markup, const struct tree *tree,
	const struct svg_options *options, const struct svg_legend *legend)
{
	markup_printf(markup, "<script type=\"application/json\" class=\"pf-data\">{");
	write_texts(markup, options);
	write_legend(markup, legend);
	size_t used = markup->out->len + sizeof(flamegraph_script);
	size_t room = used + FEWEST_TREE_BYTES < FILE_BYTES ? FILE_BYTES - used : FEWEST_TREE_BYTES;
	markup->failed = markup->failed || !svg_pack_write(markup->out, tree, legend, room - 64);
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
	struct markup markup = {.out = out};
	struct svg_legend legend;
	struct svg_static picture = {0};
	bool done = svg_legend_init(&legend, tree, options->colors) &&
				svg_static_init(&picture, tree, options, &legend);
	if (done) {
		write_head(&markup, &picture, options);
		svg_static_write(&picture, &markup);
		write_data(&markup, tree, options, &legend);
		write_script(&markup);
	}
	svg_static_finish(&picture);
	return done && !markup.failed;
}
