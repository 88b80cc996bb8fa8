#include "analyzer/export/svg_pack.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/export/markup.h"
#include "analyzer/tree/shape.h"
#include "base/map.h"
#include "base/vec.h"

#define SMALLEST_FRAME_BYTES 2 /* of one frame in the data */
#define VISIBLE_SHARE                                                                              \
	10000 /* frames above total / this should not be cut for the sake of long names */

/* What frames have in common: equal names of different images are different symbols. */
struct symbol {
	uint32_t name, image; /* string ids */
	uint8_t kind;
	uint32_t id;     /* place in "names" */
	uint32_t colour; /* place in "light" and "dark" */
	uint64_t uses;
};

struct rank {
	uint64_t uses;
	uint32_t symbol;
};

typedef VEC(struct svg_colour) colour_list;

struct pack {
	const struct tree *tree;       /* borrowed */
	const struct tree_node *nodes; /* borrowed */
	size_t count;
	VEC(struct symbol) symbols;
	uint32_t *symbol_of;  /* owned; per node */
	uint64_t *cut_below;  /* owned; per depth: the weight cut from the open frame there */
	struct rank *ranking; /* owned; the used symbols, the most frequent first */
	size_t used;
	uint64_t cut;                    /* frames lighter than this are left out */
	size_t name_chars;               /* names longer than this are cut */
	const struct svg_legend *legend; /* borrowed */
};

static void finish(struct pack *pack)
{
	VEC_FINISH(&pack->symbols);
	free(pack->symbol_of);
	free(pack->cut_below);
	free(pack->ranking);
}

struct bytes_text svg_pack_name(const struct tree *tree, const struct tree_node *node)
{
	if (node->depth == 0) {
		return bytes_text_of("all");
	}
	struct bytes_text text = strings_text(tree_names(tree), node->name);
	return text.len > 0 ? text : bytes_text_of("(unnamed)");
}

/* A radix selection, from the highest byte down: of the totals that agree in the bytes fixed so far, count each next byte. */
uint64_t svg_pack_nth_total(const struct tree_node *nodes, size_t count, size_t rank)
{
	uint64_t fixed = 0;
	if (rank == 0 || rank > count) {
		return 0;
	}
	for (unsigned shift = 56;; shift -= 8) {
		size_t totals[256] = {0};
		for (size_t i = 0; i < count; i++) {
			if (shift == 56 || nodes[i].total >> (shift + 8) == fixed) {
				totals[nodes[i].total >> shift & 255]++;
			}
		}
		unsigned byte = 255;
		for (; totals[byte] < rank; byte--) {
			rank -= totals[byte];
		}
		fixed = fixed << 8 | byte;
		if (shift == 0) {
			return fixed;
		}
	}
}

/* One number for name, image and kind. More than 2^28 strings cannot be in memory; then the image is dropped. */
static uint64_t symbol_key(const struct tree_node *node)
{
	uint64_t image = node->image < 1u << 28 ? node->image : 0;
	return (uint64_t)node->name << 32 | image << 4 | (node->kind & 15);
}

static bool collect_symbol(struct pack *pack, struct map *ids, uint32_t node)
{
	const struct tree_node *from = &pack->nodes[node];
	uint64_t *known = map_get(ids, symbol_key(from));
	if (known != NULL) {
		pack->symbol_of[node] = (uint32_t)*known;
		return true;
	}
	struct symbol symbol = {.name = from->name, .image = from->image, .kind = from->kind};
	pack->symbol_of[node] = (uint32_t)pack->symbols.len;
	return map_put(ids, symbol_key(from), pack->symbols.len) && VEC_PUSH(&pack->symbols, symbol);
}

/* Symbol 0 is the root's, 1 that of the smaller frames. */
static bool collect_symbols(struct pack *pack)
{
	struct symbol neutral = {.kind = TREE_NEUTRAL};
	bool good = VEC_PUSH(&pack->symbols, neutral) && VEC_PUSH(&pack->symbols, neutral);
	struct map ids = {0};
	pack->symbol_of[0] = 0;
	for (size_t i = 1; i < pack->count && good; i++) {
		good = collect_symbol(pack, &ids, (uint32_t)i);
	}
	map_finish(&ids);
	return good;
}

static bool init(struct pack *pack, const struct tree *tree)
{
	*pack = (struct pack){.tree = tree};
	pack->nodes = tree_nodes(tree, &pack->count);
	pack->symbol_of = calloc(pack->count, sizeof(*pack->symbol_of));
	pack->cut_below = calloc((size_t)tree_max_depth(tree) + 1, sizeof(*pack->cut_below));
	if (pack->symbol_of == NULL || pack->cut_below == NULL || !collect_symbols(pack)) {
		return false;
	}
	pack->ranking = calloc(pack->symbols.len, sizeof(*pack->ranking));
	return pack->ranking != NULL;
}

static bool kept(const struct pack *pack, size_t node)
{
	const struct tree_node *at = &pack->nodes[node];
	return node == 0 || (at->total >= pack->cut && at->kind != TREE_NEUTRAL);
}

/* The uses of each symbol at this cut, and how many frames are kept. */
static size_t count_uses(struct pack *pack)
{
	size_t frames = 0;
	bool any_cut = false;
	for (size_t i = 0; i < pack->symbols.len; i++) {
		pack->symbols.items[i].uses = 0;
	}
	for (size_t i = 0; i < pack->count;) {
		if (kept(pack, i)) {
			pack->symbols.items[pack->symbol_of[i]].uses++;
			frames++;
			i++;
		} else {
			any_cut = true;
			i = pack->nodes[i].end;
		}
	}
	pack->symbols.items[1].uses = any_cut;
	return frames;
}

static int by_uses(const void *a, const void *b)
{
	const struct rank *left = a, *right = b;
	if (left->uses != right->uses) {
		return left->uses > right->uses ? -1 : 1;
	}
	return left->symbol < right->symbol ? -1 : 1;
}

/* Frequent symbols get small numbers, which take fewer digits. */
static void rank_symbols(struct pack *pack)
{
	pack->used = 0;
	for (uint32_t i = 0; i < pack->symbols.len; i++) {
		if (pack->symbols.items[i].uses > 0) {
			pack->ranking[pack->used++] = (struct rank){pack->symbols.items[i].uses, i};
		}
	}
	qsort(pack->ranking, pack->used, sizeof(*pack->ranking), by_uses);
	for (uint32_t i = 0; i < pack->used; i++) {
		pack->symbols.items[pack->ranking[i].symbol].id = i;
	}
}

static struct bytes_text symbol_name(const struct pack *pack, uint32_t symbol)
{
	if (symbol == 0) {
		return bytes_text_of("all");
	}
	if (symbol == 1) {
		return bytes_text_of(SHAPE_SMALLER);
	}
	struct bytes_text text = strings_text(tree_names(pack->tree), pack->symbols.items[symbol].name);
	return text.len > 0 ? text : bytes_text_of("(unnamed)");
}

static void write_names(const struct pack *pack, struct markup *markup, size_t end)
{
	markup_printf(markup, ",\n\"names\":[");
	for (size_t i = 0; i < pack->used && markup->out->len <= end; i++) {
		struct bytes_text name = symbol_name(pack, pack->ranking[i].symbol);
		markup_raw(markup, ",", i > 0);
		markup_json(markup, name.data, name.len, pack->name_chars);
	}
	markup_printf(markup, "]");
}

/* Writes images in the order of their first use; ids receives string id → index. */
static bool write_images(const struct pack *pack, struct markup *markup, struct map *ids)
{
	bool good = map_put(ids, 0, 0);
	markup_printf(markup, ",\n\"images\":[\"\"");
	for (size_t i = 0; i < pack->used && good; i++) {
		uint32_t image = pack->symbols.items[pack->ranking[i].symbol].image;
		if (map_get(ids, image) == NULL) {
			struct bytes_text name = strings_text(tree_names(pack->tree), image);
			good = map_put(ids, image, ids->len);
			markup_raw(markup, ",", 1);
			markup_json(markup, name.data, name.len, pack->name_chars);
		}
	}
	markup_printf(markup, "]");
	return good;
}

/* Numbers the colours in the order of their first use; list receives each once. */
static bool number_colours(struct pack *pack, colour_list *list)
{
	struct map places = {0};
	bool good = true;
	for (size_t i = 0; i < pack->used && good; i++) {
		struct symbol *symbol = &pack->symbols.items[pack->ranking[i].symbol];
		struct bytes_text name = symbol_name(pack, pack->ranking[i].symbol);
		struct svg_colour colour =
			svg_legend_colour(pack->legend, symbol->kind, name, symbol->image);
		uint64_t key = (uint64_t)colour.light << 32 | colour.dark;
		const uint64_t *known = map_get(&places, key);
		symbol->colour = (uint32_t)(known != NULL ? *known : list->len);
		good = known != NULL || (map_put(&places, key, list->len) && VEC_PUSH(list, colour));
	}
	map_finish(&places);
	return good;
}

static bool write_colours(struct pack *pack, struct markup *markup)
{
	colour_list list = {0};
	bool good = number_colours(pack, &list);
	markup_printf(markup, ",\n\"light\":[");
	for (size_t i = 0; i < list.len && good; i++) {
		markup_printf(markup, "%s\"#%06" PRIx32 "\"", i > 0 ? "," : "", list.items[i].light);
	}
	markup_printf(markup, "],\n\"dark\":[");
	for (size_t i = 0; i < list.len && good; i++) {
		markup_printf(markup, "%s\"#%06" PRIx32 "\"", i > 0 ? "," : "", list.items[i].dark);
	}
	markup_printf(markup, "]");
	VEC_FINISH(&list);
	return good;
}

static bool write_symbols(struct pack *pack, struct markup *markup)
{
	struct map images = {0};
	bool good = write_colours(pack, markup) && write_images(pack, markup, &images);
	markup_printf(markup, ",\n\"symbols\":\"");
	for (size_t i = 0; i < pack->used && good; i++) {
		const struct symbol *symbol = &pack->symbols.items[pack->ranking[i].symbol];
		markup_vlq(markup, symbol->kind);
		markup_vlq(markup, symbol->colour);
		markup_vlq(markup, *map_get(&images, symbol->image));
	}
	markup_printf(markup, "\"");
	map_finish(&images);
	return good;
}

/* Where the writing of the tree stands: how many levels are open, and how many were at the last frame. */
struct cursor {
	struct markup *markup;
	size_t open, last, frames;
};

static void write_frame(
	const struct pack *pack, struct cursor *at, size_t depth, uint32_t symbol, uint64_t self)
{
	markup_vlq(at->markup, (at->last - depth) << 1 | (self > 0));
	markup_vlq(at->markup, pack->symbols.items[symbol].id);
	if (self > 0) {
		markup_vlq(at->markup, self);
	}
	at->last = depth + 1;
	at->frames++;
}

/* Closes the open frames at depth and below; what was cut from each becomes its last child. */
static void close_frames(const struct pack *pack, struct cursor *at, size_t depth)
{
	for (; at->open > depth; at->open--) {
		uint64_t cut = pack->cut_below[at->open - 1];
		if (cut > 0) {
			write_frame(pack, at, at->open, 1, cut);
		}
	}
}

static size_t write_tree(const struct pack *pack, struct markup *markup, size_t end)
{
	struct cursor at = {.markup = markup};
	markup_printf(markup, ",\n\"tree\":\"");
	for (size_t i = 0; i < pack->count && markup->out->len <= end && !markup->failed;) {
		const struct tree_node *node = &pack->nodes[i];
		close_frames(pack, &at, node->depth);
		if (kept(pack, i)) {
			write_frame(pack, &at, node->depth, pack->symbol_of[i], node->self);
			pack->cut_below[node->depth] = 0;
			at.open = (size_t)node->depth + 1;
			i++;
		} else {
			pack->cut_below[node->depth - 1] += node->total;
			i = node->end;
		}
	}
	close_frames(pack, &at, 0);
	markup_printf(markup, "\"");
	return at.frames;
}

enum attempt { ATTEMPT_FITS, ATTEMPT_TOO_LONG, ATTEMPT_FAILED };

static bool write_all(struct pack *pack, struct markup *markup, size_t end)
{
	rank_symbols(pack);
	uint64_t least = tree_least(pack->tree);
	markup_printf(markup, "\"v\":2,\"cut\":%" PRIu64 ",\"all\":%zu",
		least > pack->cut ? least : pack->cut, tree_whole_count(pack->tree));
	write_names(pack, markup, end);
	if (markup->out->len <= end && !write_symbols(pack, markup)) {
		return false;
	}
	size_t frames = write_tree(pack, markup, end);
	markup_printf(markup, ",\n\"frames\":%zu", frames);
	return !markup->failed;
}

/* Writes everything at this cut; takes it back when it is too long. What is left when only the root is kept always fits. */
static enum attempt attempt(struct pack *pack, struct buffer *out, size_t limit, size_t *frames)
{
	struct markup markup = {.out = out};
	size_t start = out->len;
	bool smallest = pack->cut > pack->nodes[0].total;
	*frames = count_uses(pack);
	if (*frames > limit / SMALLEST_FRAME_BYTES && !smallest) {
		return ATTEMPT_TOO_LONG;
	}
	if (!write_all(pack, &markup, smallest ? SIZE_MAX : start + limit)) {
		return ATTEMPT_FAILED;
	}
	if (out->len - start > limit && !smallest) {
		out->len = start;
		return ATTEMPT_TOO_LONG;
	}
	return ATTEMPT_FITS;
}

/* Raises the cut until everything fits, each time leaving out a fifth of the frames; gives up above highest. */
static enum attempt raise_cut(struct pack *pack, struct buffer *out, size_t limit, uint64_t highest)
{
	size_t frames;
	enum attempt result;
	pack->cut = 1;
	while ((result = attempt(pack, out, limit, &frames)) == ATTEMPT_TOO_LONG) {
		size_t most = limit / SMALLEST_FRAME_BYTES;
		size_t fewer = frames > most ? most : frames - frames / 5 - 1;
		uint64_t cut = svg_pack_nth_total(pack->nodes, pack->count, fewer);
		cut = fewer == 0 ? pack->nodes[0].total + 1 : cut;
		pack->cut = cut > pack->cut ? cut : pack->cut + 1;
		if (pack->cut > highest) {
			return ATTEMPT_TOO_LONG;
		}
	}
	return result;
}

bool svg_pack_write(
	struct buffer *out, const struct tree *tree, const struct svg_legend *legend, size_t limit)
{
	static const size_t name_chars[] = {64 * 1024, 400, 100};
	const size_t last = sizeof(name_chars) / sizeof(*name_chars) - 1;
	struct pack pack;
	enum attempt result = ATTEMPT_FAILED;
	if (init(&pack, tree)) {
		pack.legend = legend;
		result = ATTEMPT_TOO_LONG;
		for (size_t i = 0; i <= last && result == ATTEMPT_TOO_LONG; i++) {
			uint64_t visible = pack.nodes[0].total / VISIBLE_SHARE;
			pack.name_chars = name_chars[i];
			result = raise_cut(&pack, out, limit, i == last ? UINT64_MAX : visible);
		}
	}
	finish(&pack);
	return result == ATTEMPT_FITS;
}
