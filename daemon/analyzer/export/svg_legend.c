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

/* The kernel is no file among others. */
static bool has_image(uint8_t kind, uint32_t image)
{
	return image != 0 && kind != TREE_KERNEL && kind != TREE_NEUTRAL;
}

/* The kinds in their order, of those frames that are coloured by kind. */
static void add_kinds(struct svg_legend *legend, const struct tree *tree)
{
	uint64_t self[TREE_KINDS] = {0};
	bool occurs[TREE_KINDS] = {false};
	size_t count;
	const struct tree_node *nodes = tree_nodes(tree, &count);

	for (size_t i = 1; i < count; i++) {
		if (legend->colors == SVG_COLORS_KIND || !has_image(nodes[i].kind, nodes[i].image)) {
			occurs[nodes[i].kind] = true;
			self[nodes[i].kind] += nodes[i].self;
		}
	}
	for (uint8_t kind = 0; kind < TREE_NEUTRAL; kind++) {
		if (occurs[kind]) {
			legend->items[legend->count++] =
				(struct svg_legend_item){.name = bytes_text_of(svg_legend_kind(kind)),
					.colour = svg_palette_kind(kind, SVG_SHADES / 2),
					.self = self[kind]};
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

		if (!has_image(nodes[i].kind, image.name)) {
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

/* The heaviest one left, taken out of the list; equal weights keep the order of the tree. */
static struct image take_heaviest(image_list *images)
{
	size_t best = 0;

	for (size_t i = 1; i < images->len; i++) {
		best = images->items[i].self > images->items[best].self ? i : best;
	}
	const struct image image = images->items[best];

	for (size_t i = best + 1; i < images->len; i++) {
		images->items[i - 1] = images->items[i];
	}
	images->len--;
	return image;
}

/* A file keeps its hue from one capture to another, as long as no heavier one has it. */
static unsigned free_hue(struct bytes_text name, bool is_taken[SVG_IMAGE_HUES])
{
	unsigned hue = (unsigned)(map_hash_bytes(name.data, name.len) % SVG_IMAGE_HUES);

	while (is_taken[hue]) {
		hue = (hue + 1) % SVG_IMAGE_HUES;
	}
	is_taken[hue] = true;
	return hue;
}

static void add_heaviest(struct svg_legend *legend, const struct tree *tree, image_list *images)
{
	bool is_taken[SVG_IMAGE_HUES] = {false};

	while (legend->count < SVG_IMAGE_HUES && images->len > 0) {
		struct image image = take_heaviest(images);
		struct bytes_text name = strings_text(tree_names(tree), image.name);

		legend->items[legend->count++] = (struct svg_legend_item){
			name, svg_palette_image(free_hue(name, is_taken)), image.self, image.name};
	}
	legend->images = legend->count;
	if (images->len > 0) {
		struct svg_legend_item *others = &legend->items[legend->count++];

		*others = (struct svg_legend_item){
			.name = bytes_text_of("other files"), .colour = svg_palette_other()};
		for (size_t i = 0; i < images->len; i++) {
			others->self += images->items[i].self;
		}
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
	*legend = (struct svg_legend){.colors = colors};
	if (colors == SVG_COLORS_NAME) {
		return true;
	}
	if (colors == SVG_COLORS_IMAGE && !add_images(legend, tree)) {
		return false;
	}
	add_kinds(legend, tree);
	return true;
}

static struct svg_colour image_colour(const struct svg_legend *legend, uint32_t image)
{
	for (size_t i = 0; i < legend->images; i++) {
		if (legend->items[i].image == image) {
			return legend->items[i].colour;
		}
	}
	return svg_palette_other();
}

struct svg_colour svg_legend_colour(
	const struct svg_legend *legend, uint8_t kind, struct bytes_text name, uint32_t image)
{
	if (legend->colors == SVG_COLORS_NAME && kind != TREE_NEUTRAL) {
		return svg_palette_name(name);
	}
	if (legend->colors == SVG_COLORS_IMAGE && has_image(kind, image)) {
		return image_colour(legend, image);
	}
	return svg_palette_kind(kind, svg_palette_shade(name));
}
