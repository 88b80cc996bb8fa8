#include "analyzer/export/svg_palette.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "analyzer/tree/tree.h"

/*
 * How far colours are from each other for people of four kinds of sight. The matrices (linear RGB to linear RGB, complete
 * loss of one kind of cone) are those of Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation of Color Vision
 * Deficiency", IEEE TVCG 15 (6), 2009, severity 1.0. Distances are CIE 1976 (L*a*b*), where 2.3 is just noticeable.
 */
#define LEAST_DISTANCE 8.0
#define LEAST_CONTRAST 4.5 /* WCAG 2.1, 1.4.3 */

static const double sights[4][3][3] = {
	{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
	{{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216},
		{-0.003882, -0.048116, 1.051998}}, /* protanopia */
	{{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413},
		{-0.011820, 0.042940, 0.968881}}, /* deuteranopia */
	{{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602},
		{0.004733, 0.691367, 0.303900}}, /* tritanopia */
};

static void linear(uint32_t rgb, double out[3])
{
	for (int i = 0; i < 3; i++) {
		double c = (rgb >> (16 - 8 * i) & 255) / 255.0;
		out[i] = c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4);
	}
}

static double luminance(uint32_t rgb)
{
	double c[3];
	linear(rgb, c);
	return 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2];
}

static double contrast(uint32_t a, uint32_t b)
{
	double first = luminance(a), second = luminance(b);
	return (fmax(first, second) + 0.05) / (fmin(first, second) + 0.05);
}

static double bend(double t)
{
	return t > 0.008856 ? cbrt(t) : 7.787 * t + 16.0 / 116;
}

/* What somebody of that sight sees, as L*, a*, b* (D65). */
static void seen(uint32_t rgb, int sight, double lab[3])
{
	double c[3], s[3];
	linear(rgb, c);
	for (int i = 0; i < 3; i++) {
		const double *row = sights[sight][i];
		s[i] = fmin(1, fmax(0, row[0] * c[0] + row[1] * c[1] + row[2] * c[2]));
	}
	double x = bend((0.4124564 * s[0] + 0.3575761 * s[1] + 0.1804375 * s[2]) / 0.95047);
	double y = bend(0.2126729 * s[0] + 0.7151522 * s[1] + 0.0721750 * s[2]);
	double z = bend((0.0193339 * s[0] + 0.1191920 * s[1] + 0.9503041 * s[2]) / 1.08883);
	lab[0] = 116 * y - 16;
	lab[1] = 500 * (x - y);
	lab[2] = 200 * (y - z);
}

/* L*a*b* of every kind, shade, page (light, dark) and sight. */
static double colours[TREE_KINDS][SVG_SHADES][2][4][3];

static int look(void **state)
{
	(void)state;
	for (uint8_t kind = 0; kind < TREE_KINDS; kind++) {
		for (uint8_t shade = 0; shade < SVG_SHADES; shade++) {
			struct svg_colour colour = svg_palette_kind(kind, shade);
			for (int sight = 0; sight < 4; sight++) {
				seen(colour.light, sight, colours[kind][shade][0][sight]);
				seen(colour.dark, sight, colours[kind][shade][1][sight]);
			}
		}
	}
	return 0;
}

static double nearest(int a, int b, int page, int sight)
{
	double least = INFINITY;
	for (int i = 0; i < SVG_SHADES; i++) {
		for (int j = 0; j < SVG_SHADES; j++) {
			const double *p = colours[a][i][page][sight], *q = colours[b][j][page][sight];
			double square = (p[0] - q[0]) * (p[0] - q[0]) + (p[1] - q[1]) * (p[1] - q[1]) +
							(p[2] - q[2]) * (p[2] - q[2]);
			least = fmin(least, square);
		}
	}
	return sqrt(least);
}

static void the_colour_blind_tell_every_two_kinds_apart(void **state)
{
	static const char *const names[] = {"all", "no red", "no green", "no blue"};
	(void)state;
	for (int page = 0; page < 2; page++) {
		for (int sight = 0; sight < 4; sight++) {
			double least = INFINITY;
			for (int a = 0; a < TREE_KINDS; a++) {
				for (int b = a + 1; b < TREE_KINDS; b++) {
					least = fmin(least, nearest(a, b, page, sight));
				}
			}
			print_message("# %s, who see %s: the nearest kinds are %.1f apart\n",
				page == 0 ? "light" : "dark", names[sight], least);
			assert_true(least >= LEAST_DISTANCE);
		}
	}
}

static void assert_legible(struct svg_colour colour)
{
	assert_true(contrast(colour.light, SVG_INK) >= LEAST_CONTRAST);
	assert_true(contrast(colour.dark, SVG_INK_LIGHT) >= LEAST_CONTRAST);
}

static void text_on_every_colour_is_legible(void **state)
{
	(void)state;
	for (uint8_t kind = 0; kind < TREE_KINDS; kind++) {
		for (uint8_t shade = 0; shade < SVG_SHADES; shade++) {
			assert_legible(svg_palette_kind(kind, shade));
		}
	}
	for (unsigned i = 0; i < 5000; i++) {
		char name[16];
		snprintf(name, sizeof(name), "name_%u", i);
		assert_legible(svg_palette_name(bytes_text_of(name)));
	}
}

/* The colours of one kind differ, so that neighbours do. */
static void names_of_one_kind_have_many_shades(void **state)
{
	unsigned met[SVG_SHADES] = {0};
	(void)state;
	for (unsigned i = 0; i < 32000; i++) {
		char name[16];
		snprintf(name, sizeof(name), "name_%u", i);
		met[svg_palette_shade(bytes_text_of(name))]++;
	}
	for (unsigned i = 0; i < SVG_SHADES; i++) {
		assert_in_range(met[i], 800, 1200);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_colour_blind_tell_every_two_kinds_apart),
		cmocka_unit_test(text_on_every_colour_is_legible),
		cmocka_unit_test(names_of_one_kind_have_many_shades),
	};
	return cmocka_run_group_tests(tests, look, NULL);
}
