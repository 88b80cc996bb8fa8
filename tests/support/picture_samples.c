#include "support/picture_samples.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void picture_add_plain(struct picture *picture)
{
	picture_add(picture, "main;compute", 30);
	picture_add(picture, "main;compute;multiply", 120);
	picture_add(picture, "main;read", 50);
	struct tree_frame frames[] = {picture_frame(picture, "worker", 6, TREE_THREAD),
		picture_frame(picture, "write", 5, TREE_LIBRARY),
		picture_frame(picture, "vfs_write", 9, TREE_KERNEL)};
	frames[1].image = strings_intern(picture->names, "/lib/libc.so.6", 14, NULL);
	assert_true(tree_add(picture->tree, frames, 3, 200));
}

/* The names that the torture tree holds, one by one. */
static size_t torture_name(size_t i, char *name)
{
	static const char *const texts[PICTURE_TORTURES] = {"<script>alert(1)</script>", "]]><!--",
		"</title></svg>", "&amp;&nbsp;", "\" onload=\"alert(1)", "' onload='alert(1)",
		"\xed\xa0\x80", "\xc0\xaf", "\xf4\x90\x80\x80", "\xe2\x80\xa8line\xe2\x80\xa9",
		"\xef\xbf\xbe\xef\xbf\xbf", "\xf0\x9f\x94\xa5", "\xe2\x82", "\\u0041\\", "<?xml?>",
		"\xc2\x85\xc2\xa0"};
	if (i < 256) {
		name[0] = 'a';
		name[1] = (char)i;
		name[2] = 'z';
		return 3;
	}
	if (i == 256) {
		memset(name, '<', 5000);
		return 5000;
	}
	if (i - 257 < PICTURE_TORTURES) {
		strcpy(name, texts[i - 257]);
		return strlen(texts[i - 257]);
	}
	return 0;
}

void picture_torture(struct picture *picture)
{
	char name[5000];
	size_t len;
	for (size_t i = 0; (len = torture_name(i, name)) > 0; i++) {
		struct tree_frame frames[] = {picture_frame(picture, "<main>", 6, TREE_THREAD),
			picture_frame(picture, name, len, TREE_PROGRAM)};
		assert_true(tree_add(picture->tree, frames, 2, 1));
	}
	picture_write(picture, "]]></title><script>alert(1)</script>\xff\x1b", "\"'<&>\x01\xc3");
}

void picture_deep(struct picture *picture)
{
	struct tree_frame *frames = calloc(5000, sizeof(*frames));
	assert_non_null(frames);
	for (size_t i = 0; i < 5000; i++) {
		frames[i] = picture_frame(picture, i % 2 ? "even" : "odd", i % 2 ? 4 : 3, TREE_PROGRAM);
	}
	assert_true(tree_add(picture->tree, frames, 5000, 7));
	assert_true(tree_add(picture->tree, frames, 4000, 1));
	free(frames);
	picture_write(picture, "deep", NULL);
}

void picture_large(struct picture *picture, unsigned leaves)
{
	char name[256];
	for (unsigned i = 0; i < leaves; i++) {
		unsigned parent = i % 10;
		snprintf(name, sizeof(name), "main;parent_%u;%0190u", parent, i);
		picture_add(picture, name, i < 20 ? 1000000 : i % 50 + 1);
	}
	picture_write(picture, "large", NULL);
}

void picture_torture_images(struct picture *picture)
{
	char name[5000];
	size_t len;
	picture->options.colors = SVG_COLORS_IMAGE;
	picture->options.note = "<script>alert(1)</script>]]>\xff\x1b";
	for (size_t i = 0; (len = torture_name(i, name)) > 0; i++) {
		struct tree_frame frames[] = {picture_frame(picture, "main", 4, TREE_THREAD),
			picture_frame(picture, name, len, TREE_LIBRARY)};
		frames[1].image = frames[1].name;
		assert_true(tree_add(picture->tree, frames, 2, 1 + i));
	}
	picture_write(picture, "hostile files", NULL);
}

static void plain(struct picture *picture)
{
	picture_add_plain(picture);
	picture_write(picture, "plain", "400 samples of main and worker");
}

/* On which expressions that try one way after the other take minutes. */
static void costly(struct picture *picture)
{
	char name[8192];
	uint32_t seed = 1;
	for (unsigned i = 0; i < 100; i++) {
		for (size_t j = 0; j < sizeof(name); j++) {
			seed = seed * 1664525 + 1013904223;
			name[j] = "abcx"[seed >> 30];
		}
		snprintf(name + sizeof(name) - 8, 8, "%u", i);
		struct tree_frame frames[] = {picture_frame(picture, "main", 4, TREE_THREAD),
			picture_frame(picture, name, strlen(name), TREE_PROGRAM)};
		assert_true(tree_add(picture->tree, frames, 2, 1));
	}
	picture_write(picture, "long names", NULL);
}

/* Line breaks, an override of the direction, an isolate, an escape, and a name of blanks. */
static void controls(struct picture *picture)
{
	static const char *const texts[] = {
		"a\nb\rc", "abc\xe2\x80\xaexyz", "q\xe2\x81\xa6r\x1b[31ms", "  \xe2\x80\xa8 "};
	for (size_t i = 0; i < 4; i++) {
		struct tree_frame frame = picture_frame(picture, texts[i], strlen(texts[i]), TREE_THREAD);
		assert_true(tree_add(picture->tree, &frame, 1, 1));
	}
	picture_write(picture, "title\xe2\x80\xae", NULL);
}

/* Random calls through 8 functions, 8 to 20 deep: from the fifth row on no frame is as wide as a pixel, and together they fill the rows. */
static void thin(struct picture *picture)
{
	struct tree_frame functions[8], frames[20];
	uint32_t seed = 1;
	char name[32];
	for (unsigned i = 0; i < 8; i++) {
		int len = snprintf(name, sizeof(name), "function_%u", i);
		functions[i] = picture_frame(picture, name, (size_t)len, TREE_PROGRAM);
	}
	frames[0] = picture_frame(picture, "main", 4, TREE_THREAD);
	for (unsigned i = 0; i < 10000; i++) {
		size_t depth = i % 4 > 0 ? 20 : 8 + i % 12;
		for (size_t j = 1; j < depth; j++) {
			seed = seed * 1664525 + 1013904223;
			frames[j] = functions[seed >> 29];
		}
		assert_true(tree_add(picture->tree, frames, depth, 1));
	}
	picture_add(picture, "main;rare", 1);
	picture_write(picture, "thin", NULL);
}

/* A row of 1,000 functions that are all too narrow for a name and nearly as wide together as the picture, and 1,000 calls beside them. */
static void many(struct picture *picture)
{
	struct tree_frame frames[1001];
	char stack[32];
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(stack, sizeof(stack), "main;function_%03u", i);
		picture_add(picture, stack, 3);
	}
	frames[0] = picture_frame(picture, "deep", 4, TREE_THREAD);
	for (size_t i = 1; i <= 999; i++) {
		frames[i] = picture_frame(picture, "call", 4, TREE_PROGRAM);
	}
	frames[1000] = picture_frame(picture, "bottom", 6, TREE_PROGRAM);
	assert_true(tree_add(picture->tree, frames, 1001, 1));
	picture_write(picture, "many", NULL);
}

static void empty(struct picture *picture)
{
	picture_write(picture, "empty", "the process was idle");
}

static void large(struct picture *picture)
{
	picture_large(picture, 60000);
}

static const char *const random_names[] = {"main", "run",
	"parse<std::vector<int>, char>(char const*)", "operator()", "hash_bytes",
	"alloc::vec::Vec<T>::push", "memcpy", "std::sort", "a", "do_syscall_64"};

/* A few hundred stacks of all kinds of frames, the same each time. */
static void add_random(struct picture *picture)
{
	static const uint8_t kinds[] = {TREE_PROGRAM, TREE_PROGRAM, TREE_PROGRAM, TREE_LIBRARY,
		TREE_PROGRAM, TREE_JIT, TREE_LIBRARY, TREE_INTERPRETED, TREE_INLINED, TREE_KERNEL};
	static const char *const images[] = {"program", "libc.so.6", "libm.so.6"};
	uint32_t seed = 1;
	for (unsigned i = 0; i < 400; i++) {
		struct tree_frame frames[16];
		size_t depth = 3 + i % 13;
		for (size_t j = 0; j < depth; j++) {
			seed = seed * 1664525 + 1013904223;
			size_t which = (seed >> 20) % (j < 3 ? 3 : 10);
			frames[j] = picture_frame(
				picture, random_names[which], strlen(random_names[which]), kinds[which]);
			const char *image = images[which % 3];
			frames[j].image = strings_intern(picture->names, image, strlen(image), NULL);
		}
		frames[0] = picture_frame(
			picture, seed & 1 << 30 ? "main" : "worker", seed & 1 << 30 ? 4 : 6, TREE_THREAD);
		assert_true(tree_add(picture->tree, frames, depth, 1 + (seed >> 16) % 40));
	}
}

static const char full_note[] = "12 samples lost \xc2\xb7 340 stacks cut (5.74%) \xc2\xb7 1.25 s "
								"of CPU time are not in the samples (29.4%): the "
								"kernel may not be sampled";

static void write_random(struct picture *picture, const char *title)
{
	add_random(picture);
	picture->options.note = full_note;
	picture_write(picture, title,
		"/usr/local/bin/program (pid 4711) \xc2\xb7 999 Hz \xc2\xb7 3.01 s \xc2\xb7 7,777 samples");
}

static void random_stacks(struct picture *picture)
{
	write_random(picture, "program");
}

static void flame(struct picture *picture)
{
	picture->options.layout = SVG_FLAME;
	picture->options.width_px = 900;
	write_random(picture, "flame of 900 pixels");
}

static void merged(struct picture *picture)
{
	picture->shape = (struct tree_shape){TREE_BY_WEIGHT, true, 5000};
	picture->options.colors = SVG_COLORS_IMAGE;
	write_random(picture, "merged, by weight, from 0.5%, colours of images");
}

static void names(struct picture *picture)
{
	picture->options.colors = SVG_COLORS_NAME;
	picture->options.width_px = 200;
	write_random(picture, "colours of names, 200 pixels");
}

static void deep500(struct picture *picture)
{
	struct tree_frame frames[500];
	char name[32];
	for (size_t i = 0; i < 500; i++) {
		int len = snprintf(name, sizeof(name), "level_%zu", i);
		frames[i] = picture_frame(picture, name, (size_t)len, i == 0 ? TREE_THREAD : TREE_PROGRAM);
		assert_true(tree_add(picture->tree, frames, i + 1, 1));
	}
	picture_write(picture, "500 levels", NULL);
}

int picture_write_samples(const char *folder)
{
	static const struct {
		const char *name;
		void (*make)(struct picture *);
	} samples[] = {{"plain", plain}, {"torture", picture_torture},
		{"torture_images", picture_torture_images}, {"empty", empty}, {"deep", picture_deep},
		{"large", large}, {"random", random_stacks}, {"flame", flame}, {"merged", merged},
		{"names", names}, {"deep500", deep500}, {"costly", costly}, {"controls", controls},
		{"thin", thin}, {"many", many}};
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		char path[4096];
		void *picture;
		picture_set_up(&picture);
		samples[i].make(picture);
		snprintf(path, sizeof(path), "%s/%s.svg", folder, samples[i].name);
		picture_save(picture, path);
		snprintf(path, sizeof(path), "%s/%s.folded", folder, samples[i].name);
		picture_save_folded(picture, path);
		picture_tear_down(&picture);
	}
	return 0;
}
