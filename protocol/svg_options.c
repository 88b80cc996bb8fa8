#include "protocol/svg_options.h"

#include <string.h>

const char *const svg_option_orders[] = {"name", "weight", NULL};
const char *const svg_option_layouts[] = {"icicle", "flame", NULL};
const char *const svg_option_colors[] = {"kind", "image", "name", NULL};
const char *const svg_option_threads[] = {"separate", "merged", NULL};

const struct svg_option svg_options[] = {
	{.name = SVG_OPTION_TITLE},
	{SVG_OPTION_WIDTH, SVG_OPTION_WIDTH_LEAST, SVG_OPTION_WIDTH_MOST, NULL},
	{SVG_OPTION_MIN_SHARE, 0, SVG_OPTION_MIN_SHARE_PPM, NULL},
	{.name = SVG_OPTION_ORDER, .choices = svg_option_orders},
	{.name = SVG_OPTION_LAYOUT, .choices = svg_option_layouts},
	{.name = SVG_OPTION_COLORS, .choices = svg_option_colors},
	{.name = SVG_OPTION_THREADS, .choices = svg_option_threads},
	{.name = NULL},
};

const struct svg_option *svg_option_find(const char *name, size_t len)
{
	for (const struct svg_option *option = svg_options; option->name != NULL; option++) {
		if (strlen(option->name) == len && memcmp(option->name, name, len) == 0) {
			return option;
		}
	}
	return NULL;
}

unsigned svg_option_choice(const char *const *choices, const char *text)
{
	for (unsigned i = 0; text != NULL && choices[i] != NULL; i++) {
		if (strcmp(choices[i], text) == 0) {
			return i;
		}
	}
	return 0;
}
