#ifndef TESTS_SUPPORT_PICTURE_H
#define TESTS_SUPPORT_PICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyzer/export/svg.h"
#include "analyzer/tree/shape.h"
#include "base/strings.h"

/*
 * Flame graphs, and what an independent reader (support/svg_reader.py, which says what its lines are) finds in the file. Whatever goes
 * wrong fails the test; without python3 a case that reads is skipped.
 */
struct picture {
	struct strings *names;
	struct tree *tree;
	struct svg_options options; /* title, subtitle and unit are set by picture_write */
	struct tree_shape shape;
	struct buffer svg;
	char *facts; /* what the reader printed; NULL until picture_read */
};

/* cmocka's. */
int picture_set_up(void **state);
int picture_tear_down(void **state);

struct tree_frame picture_frame(
	struct picture *picture, const char *name, size_t len, uint8_t kind);
/* A stack as "main;outer;inner"; the first frame is a thread. */
void picture_add(struct picture *picture, const char *stack, uint64_t weight);
/* Behind what svg holds. */
void picture_write(struct picture *picture, const char *title, const char *subtitle);
void picture_save(const struct picture *picture, const char *path);
/* The same tree, not shaped, as folded stacks. */
void picture_save_folded(const struct picture *picture, const char *path);

/* Runs the reader over the file, once. Fails the test when it finds the file broken. */
void picture_read(struct picture *picture);
/* One of the reader's lines is exactly this. */
void picture_assert_fact(const struct picture *picture, const char *line);
/* How many of its lines begin with this word. */
size_t picture_count_facts(const struct picture *picture, const char *kind);
/* The file has these bytes. */
bool picture_holds(const struct picture *picture, const char *text);

#endif
