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

static void plain(struct picture *picture)
{
	picture_add_plain(picture);
	picture_write(picture, "plain", "400 samples of main and worker");
}

static void empty(struct picture *picture)
{
	picture_write(picture, "empty", "the process was idle");
}

static void large(struct picture *picture)
{
	picture_large(picture, 60000);
}

int picture_write_samples(const char *folder)
{
	static const struct {
		const char *name;
		void (*make)(struct picture *);
	} samples[] = {{"plain", plain}, {"torture", picture_torture}, {"empty", empty},
		{"deep", picture_deep}, {"large", large}};
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		char path[4096];
		void *picture;
		picture_set_up(&picture);
		samples[i].make(picture);
		snprintf(path, sizeof(path), "%s/%s.svg", folder, samples[i].name);
		picture_save(picture, path);
		picture_tear_down(&picture);
	}
	return 0;
}
