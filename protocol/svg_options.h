#ifndef PROTOCOL_SVG_OPTIONS_H
#define PROTOCOL_SVG_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

/*
 * StartSamplingProfile's svg: how the flame graph looks. The daemon checks the members and keeps them with the capture, the analyzer
 * obeys them, and profctl takes them as --svg KEY=VALUE.
 */
#define SVG_OPTION_TITLE     "title"
#define SVG_OPTION_WIDTH     "width_px"
#define SVG_OPTION_MIN_SHARE "min_share_ppm"
#define SVG_OPTION_ORDER     "order"
#define SVG_OPTION_LAYOUT    "layout"
#define SVG_OPTION_COLORS    "colors"
#define SVG_OPTION_THREADS   "threads"

#define SVG_OPTION_TITLE_BYTES   256
#define SVG_OPTION_WIDTH_LEAST   200
#define SVG_OPTION_WIDTH_MOST    20000
#define SVG_OPTION_MIN_SHARE_PPM 1000000

/* What some may be: lists that end with NULL, the first being what holds when nothing is said. */
extern const char *const svg_option_orders[];  /* "name", "weight" */
extern const char *const svg_option_layouts[]; /* "icicle", "flame" */
extern const char *const svg_option_colors[];  /* "kind", "image", "name" */
extern const char *const svg_option_threads[]; /* "separate", "merged" */

/* One member: a number when max is not 0, one of choices when there are some, else a text. */
struct svg_option {
	const char *name;
	int64_t min, max;
	const char *const *choices;
};

/* All of them, in the order above; ends with a NULL name. */
extern const struct svg_option svg_options[];

/* NULL: there is none of this name; len: of the name. */
const struct svg_option *svg_option_find(const char *name, size_t len);
/* The place of text in the list; 0, what holds when nothing is said, also for NULL and what is not in it. */
unsigned svg_option_choice(const char *const *choices, const char *text);

#endif
