#include "analyzer/export/svg_legend.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/vec.h"

static const char *const kind_names[TREE_KINDS] = {
	[TREE_THREAD] = "thread",
	[TREE_PROGRAM] = "program",
	[TREE_LIBRARY] = "library",
	[TREE_KERNEL] = "kernel",
	[TREE_JIT] = "JIT",
	[TREE_INTERPRETED] = "interpreted",
	[TREE_INLINED] = "inlined",
	[TREE_MARKER] = "marker",
	[TREE_UNKNOWN] = "unknown",
	[TREE_NEUTRAL] = "",
};

struct image {
	uint32_t name;
	uint64_t self;
};

typedef VEC(struct image) image_list;

const char *svg_legend_kind(uint8_t kind)
{
	return kind_names[kind < TREE_KINDS ? kind : TREE_UNKNOWN];
}

/* The kinds in their order, of those frames that are coloured by kind. */
static void add_kinds(struct svg_legend *legend, const struct tree *tree, enum svg_colors colors)
{
	uint64_t self[TREE_KINDS] = {0};
	bool occurs[TREE_KINDS] = {false};
	size_t count;
	const struct tree_node *nodes = tree_nodes(tree, &count);

	for (size_t i = 1; i < count; i++) {
		if (colors == SVG_COLORS_KIND || nodes[i].image == 0) {
			occurs[nodes[i].kind] = true;
			self[nodes[i].kind] += nodes[i].self;
		}
	}
	for (uint8_t kind = 0; kind < TREE_NEUTRAL; kind++) {
		if (occurs[kind]) {
			legend->items[legend->count++] =
				(struct svg_legend_item){bytes_text_of(svg_legend_kind(kind)),
					svg_palette_kind(kind, SVG_SHADES / 2), self[kind]};
		}
	}
}

static bool sum_images(image_list *images, struct map *places, const struct tree *tree)
{
	size_t count;
	const struct tree_node *nodes = tree_nodes(tree, &count);

	for (size_t i = 1; i < count; i++) {
		const struct image image = {nodes[i].image, 0};
		const uint64_t *known = map_get(places, image.name);

		if (image.name == 0) {
			continue;
		}
		if (known == NULL &&
			(!map_put(places, image.name, images->len) || !VEC_PUSH(images, image))) {
			return false;
		}
		images->items[known == NULL ? images->len - 1 : *known].self += nodes[i].self;
	}
	return true;
}

/* Images come in the order of the tree, which equal weights keep. */
static void add_heaviest(struct svg_legend *legend, const struct tree *tree, image_list *images)
{
	for (size_t chosen = 0; chosen < SVG_LEGEND_IMAGES && chosen < images->len; chosen++) {
		struct image *best = &images->items[0];

		for (size_t i = 1; i < images->len; i++) {
			bool is_better = images->items[i].name != 0 && images->items[i].self > best->self;

			best = best->name == 0 || is_better ? &images->items[i] : best;
		}
		struct bytes_text name = strings_text(tree_names(tree), best->name);

		legend->items[legend->count++] =
			(struct svg_legend_item){name, svg_palette_image(name), best->self};
		*best = (struct image){0};
	}
}

static bool add_images(struct svg_legend *legend, const struct tree *tree)
{
	image_list images = {0};
	struct map places = {0};
	bool done = sum_images(&images, &places, tree);

	if (done) {
		add_heaviest(legend, tree, &images);
	}
	VEC_FINISH(&images);
	map_finish(&places);
	return done;
}

bool svg_legend_init(struct svg_legend *legend, const struct tree *tree, enum svg_colors colors)
{
	legend->count = 0;
	if (colors == SVG_COLORS_NAME) {
		return true;
	}
	if (colors == SVG_COLORS_IMAGE && !add_images(legend, tree)) {
		return false;
	}
	add_kinds(legend, tree, colors);
	return true;
}
