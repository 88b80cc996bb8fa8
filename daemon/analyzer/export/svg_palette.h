#ifndef ANALYZER_EXPORT_SVG_PALETTE_H
#define ANALYZER_EXPORT_SVG_PALETTE_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

/*
 * The colours of frames. Each kind of frame (enum tree_kind) has a hue of its own, which varies a little with the name: one function has one
 * colour in every capture. Kinds are told apart by people who see no red, no green or no blue too (tests/unit/test_svg_palette.c
 * has the numbers), and text on every colour has a contrast of 4.5 and more.
 */
#define SVG_SHADES    32
#define SVG_INK       0x141414 /* text on frames of a light page */
#define SVG_INK_LIGHT 0xf4f3f0 /* and of a dark one */

/* 0xRRGGBB, on a light page and on a dark one. */
struct svg_colour {
	uint32_t light, dark;
};

/* 0 to SVG_SHADES - 1. */
uint8_t svg_palette_shade(struct bytes_text name);
/* kind: enum tree_kind. */
struct svg_colour svg_palette_kind(uint8_t kind, uint8_t shade);
/* Colours for files: SVG_IMAGE_HUES that say nothing about kinds. */
#define SVG_IMAGE_HUES 5
struct svg_colour svg_palette_image(unsigned hue);
/* For the files that have none of these. */
struct svg_colour svg_palette_other(void);
/* A colour for each name, whatever its kind: the classic flame graph. */
struct svg_colour svg_palette_name(struct bytes_text name);
#endif
