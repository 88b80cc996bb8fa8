#include "analyzer/export/svg_palette.h"

#include "analyzer/tree/tree.h"
#include "base/map.h"

#define HUE_SPREAD   12 /* degrees over all shades */
#define LIGHT_SPREAD 4  /* percent */

/* Hue in degrees, saturation and lightness in percent. */
struct tone {
	unsigned hue, saturation, lightness;
};

struct palette {
	struct tone light, dark;
	bool is_even; /* no shades */
};

static const struct palette kinds[TREE_KINDS] = {
	[TREE_THREAD] = {{210, 28, 81}, {225, 31, 24}, false},
	[TREE_PROGRAM] = {{23, 83, 64}, {7, 72, 24}, false},
	[TREE_LIBRARY] = {{50, 84, 74}, {41, 98, 24}, false},
	[TREE_KERNEL] = {{230, 71, 73}, {222, 82, 45}, false},
	[TREE_JIT] = {{149, 31, 48}, {142, 71, 26}, false},
	[TREE_INTERPRETED] = {{283, 35, 68}, {285, 31, 45}, false},
	[TREE_INLINED] = {{348, 50, 75}, {325, 30, 44}, false},
	[TREE_MARKER] = {{266, 8, 55}, {52, 8, 38}, true},
	[TREE_UNKNOWN] = {{60, 25, 70}, {31, 20, 22}, false},
	[TREE_NEUTRAL] = {{220, 5, 91}, {220, 5, 27}, true},
};

static const uint8_t image_kinds[SVG_IMAGE_HUES] = {
	TREE_PROGRAM, TREE_LIBRARY, TREE_JIT, TREE_INTERPRETED, TREE_INLINED};

/* Orange to yellow, as flame graphs have always been. */
static const struct tone name_tones[2] = {{30, 85, 68}, {26, 70, 23}};
#define NAME_HUE_SPREAD   50
#define NAME_LIGHT_SPREAD 12

/* CSS Color Module Level 4, section 7.1: hue, and saturation and lightness from 0 to 1, to 0xRRGGBB. */
static uint32_t to_rgb(double hue, double saturation, double light)
{
	double reach = saturation * (light < 0.5 ? light : 1 - light);
	uint32_t rgb = 0;

	for (unsigned i = 0; i < 3; i++) {
		double k = (i == 0 ? 0 : i == 1 ? 8 : 4) + hue / 30;

		k = k >= 12 ? k - 12 : k;
		double slope = k - 3 < 9 - k ? k - 3 : 9 - k;

		slope = slope < -1 ? -1 : slope > 1 ? 1 : slope;
		rgb = rgb << 8 | (uint32_t)((light - reach * slope) * 255 + 0.5);
	}
	return rgb;
}

/* turn and lift from -0.5 to 0.5: the place in the spreads of hue and lightness. */
static uint32_t mix(
	const struct tone *tone, double turn, double hue_spread, double lift, double light_spread)
{
	double hue = tone->hue + turn * hue_spread + 360;

	return to_rgb(hue >= 360 ? hue - 360 : hue, tone->saturation / 100.0,
		(tone->lightness + lift * light_spread) / 100);
}

uint8_t svg_palette_shade(struct bytes_text name)
{
	return (uint8_t)(map_hash_bytes(name.data, name.len) % SVG_SHADES);
}

struct svg_colour svg_palette_kind(uint8_t kind, uint8_t shade)
{
	const struct palette *palette = &kinds[kind < TREE_KINDS ? kind : TREE_UNKNOWN];
	double turn = palette->is_even ? 0 : shade / (SVG_SHADES - 1.0) - 0.5;
	double lift = palette->is_even ? 0 : shade % 4 / 3.0 - 0.5;

	return (struct svg_colour){mix(&palette->light, turn, HUE_SPREAD, lift, LIGHT_SPREAD),
		mix(&palette->dark, turn, HUE_SPREAD, lift, LIGHT_SPREAD)};
}

struct svg_colour svg_palette_image(unsigned hue)
{
	return svg_palette_kind(image_kinds[hue % SVG_IMAGE_HUES], SVG_SHADES / 2);
}

struct svg_colour svg_palette_other(void)
{
	return svg_palette_kind(TREE_UNKNOWN, SVG_SHADES / 2);
}

struct svg_colour svg_palette_name(struct bytes_text name)
{
	uint64_t hash = map_hash_bytes(name.data, name.len);
	double turn = (double)(hash & 63) / 63 - 0.5, lift = (double)(hash >> 6 & 7) / 7 - 0.5;

	return (struct svg_colour){mix(&name_tones[0], turn, NAME_HUE_SPREAD, lift, NAME_LIGHT_SPREAD),
		mix(&name_tones[1], turn, NAME_HUE_SPREAD, lift, NAME_LIGHT_SPREAD / 2.0)};
}
