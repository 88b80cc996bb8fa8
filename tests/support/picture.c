#include "support/picture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "analyzer/export/folded.h"

int picture_set_up(void **state)
{
	struct picture *picture = calloc(1, sizeof(*picture));
	picture->names = strings_create();
	picture->tree = tree_create(picture->names);
	*state = picture;
	return 0;
}

int picture_tear_down(void **state)
{
	struct picture *picture = *state;
	buffer_finish(&picture->svg);
	tree_destroy(picture->tree);
	strings_destroy(picture->names);
	free(picture->facts);
	free(picture);
	return 0;
}

struct tree_frame picture_frame(struct picture *picture, const char *name, size_t len, uint8_t kind)
{
	uint32_t id = strings_intern(picture->names, name, len, NULL);
	assert_true(id > 0);
	return (struct tree_frame){.name = id, .kind = kind};
}

void picture_add(struct picture *picture, const char *stack, uint64_t weight)
{
	struct tree_frame frames[8];
	size_t count = 0;
	for (const char *at = stack; *at != '\0';) {
		size_t len = strcspn(at, ";");
		frames[count] = picture_frame(picture, at, len, count == 0 ? TREE_THREAD : TREE_PROGRAM);
		count++;
		at += len + (at[len] == ';');
	}
	assert_true(tree_add(picture->tree, frames, count, weight));
}

void picture_write(struct picture *picture, const char *title, const char *subtitle)
{
	picture->options.title = title;
	picture->options.subtitle = subtitle;
	picture->options.unit = "samples";
	assert_true(tree_finish(picture->tree));
	struct tree *shaped = shape_apply(&picture->shape, picture->tree);
	assert_non_null(shaped);
	assert_true(svg_write(&picture->svg, shape_is_plain(&picture->shape) ? picture->tree : shaped,
		&picture->options));
	tree_destroy(shaped);
}

static void save(const struct buffer *bytes, const char *path)
{
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes->data, 1, bytes->len, file), bytes->len);
	assert_int_equal(fclose(file), 0);
}

void picture_save(const struct picture *picture, const char *path)
{
	save(&picture->svg, path);
}

void picture_save_folded(const struct picture *picture, const char *path)
{
	struct buffer folded = {0};
	size_t stacks;
	assert_true(folded_write(&folded, picture->tree, &stacks));
	assert_true(buffer_reserve(&folded, 1));
	save(&folded, path);
	buffer_finish(&folded);
}

static char *read_all(FILE *stream)
{
	struct buffer all = {0};
	char part[4096];
	size_t len;
	while ((len = fread(part, 1, sizeof(part), stream)) > 0) {
		assert_true(buffer_append(&all, part, len));
	}
	assert_true(buffer_byte(&all, 0));
	return (char *)all.data;
}

void picture_read(struct picture *picture)
{
	char svg[] = "/tmp/test_svg.XXXXXX";
	char command[sizeof(SVG_READER) + 64];
	if (picture->facts != NULL) {
		return;
	}
	close(mkstemp(svg));
	picture_save(picture, svg);
	/* Without the packages of the system: they take longer than the reading. */
	snprintf(command, sizeof(command), "python3 -IS '%s' %s", SVG_READER, svg);
	FILE *stream = popen(command, "r");
	assert_non_null(stream);
	picture->facts = read_all(stream);
	int status = pclose(stream);
	unlink(svg);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
		print_message("# python3 is missing: nothing here can parse the picture\n");
		skip();
	}
	assert_int_equal(status, 0);
}

/* Whether one of the reader's lines is exactly this. */
static bool is_fact(const struct picture *picture, const char *line)
{
	size_t len = strlen(line);
	for (const char *at = picture->facts; (at = strstr(at, line)) != NULL; at += len) {
		if ((at == picture->facts || at[-1] == '\n') && at[len] == '\n') {
			return true;
		}
	}
	return false;
}

void picture_assert_fact(const struct picture *picture, const char *line)
{
	if (!is_fact(picture, line)) {
		print_message("# not found: %s\n", line);
		fail();
	}
}

size_t picture_count_facts(const struct picture *picture, const char *kind)
{
	size_t count = 0, len = strlen(kind);
	for (const char *at = picture->facts; at != NULL && *at != '\0'; at = strchr(at, '\n') + 1) {
		count += strncmp(at, kind, len) == 0 && at[len] == ' ';
	}
	return count;
}

bool picture_holds(const struct picture *picture, const char *text)
{
	return memmem(picture->svg.data, picture->svg.len, text, strlen(text)) != NULL;
}
