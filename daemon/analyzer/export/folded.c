#include "analyzer/export/folded.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/vec.h"
#include "protocol/text.h"

#define LINE_BYTES   65536 /* a line with its line end stays below */
#define COUNT_BYTES  24    /* blank, number, line end */
#define FRAME_BYTES  8192  /* a longer name is cut */
#define ELIDED_BYTES 48
#define HEAD_BYTES   (24 * 1024) /* of an elided line */

/* One line: a stack and its count. Texts stand in one buffer, which moves while it grows. */
struct line {
	size_t at, len; /* of the stack's text */
	uint64_t count;
};

/* A line whose text stands still, to be sorted. */
struct sorted_line {
	const uint8_t *text;
	size_t len;
	uint64_t count;
};

struct folder {
	const struct tree *tree;
	struct buffer path;     /* frames of the node and those above it, with ';' between them */
	VEC(size_t) frame_ends; /* in path, by depth - 1 */
	struct buffer texts;
	VEC(struct line) lines;
	VEC(struct sorted_line) sorted;
	struct map clean; /* name id -> place of its clean form in clean_texts << 16 | length */
	struct buffer clean_texts;
};

static void finish(struct folder *folder)
{
	buffer_finish(&folder->path);
	VEC_FINISH(&folder->frame_ends);
	buffer_finish(&folder->texts);
	VEC_FINISH(&folder->lines);
	VEC_FINISH(&folder->sorted);
	map_finish(&folder->clean);
	buffer_finish(&folder->clean_texts);
}

static bool is_blank(uint32_t c)
{
	return c == ' ' || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x202f ||
		   c == 0x205f || c == 0x3000;
}

/* What stands for a character: itself, or one that no reader of the format stumbles over. */
static const char *replacement(uint32_t c)
{
	if (c == ';') {
		return ":";
	}
	if (c == '\n' || c == '\r' || c == 0x85 || c == 0x2028 || c == 0x2029) {
		return " ";
	}
	return c < 0x20 || (c >= 0x7f && c < 0xa0) ? "\xef\xbf\xbd" : NULL;
}

/* Appends the characters; *end is behind the last one that is no blank. */
static bool append_clean(struct buffer *out, struct bytes_text text, size_t *end)
{
	size_t begin = out->len;
	size_t used;

	*end = begin;
	for (size_t at = 0; at < text.len && out->len - begin < FRAME_BYTES; at += used) {
		uint32_t c = 0xfffd;
		size_t len = text_decode(text.data + at, text.len - at, &c);
		const char *other = len == 0 ? "\xef\xbf\xbd" : replacement(c);

		used = len == 0 ? 1 : len;
		bool blank = (len > 0 && is_blank(c)) || (other != NULL && other[0] == ' ');

		if (blank && out->len == begin) {
			continue;
		}
		if (!(other != NULL ? buffer_text(out, other) : buffer_append(out, text.data + at, used))) {
			return false;
		}
		*end = blank ? *end : out->len;
	}
	return true;
}

static bool ends_in_number(const uint8_t *text, size_t len)
{
	size_t at = len;

	while (at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9') {
		at--;
	}
	return at < len && at > 0 && text[at - 1] == ' ';
}

/* Some readers take a number of its own at the end of a stack for a second count. */
static bool append_number_end(struct buffer *out, size_t begin)
{
	return !ends_in_number(out->data + begin, out->len - begin) || buffer_byte(out, '_');
}

/* Appends the form of a name that every reader takes alike: no blanks at its ends, and never empty. */
static bool make_clean(struct buffer *out, struct bytes_text name)
{
	size_t begin = out->len;
	size_t end;

	if (!append_clean(out, name, &end)) {
		return false;
	}
	out->len = end;
	return end > begin || buffer_text(out, "[unknown]");
}

/* Names occur in many nodes, and are cleaned once. */
static bool append_name(struct folder *folder, uint32_t name)
{
	const uint64_t *known = map_get(&folder->clean, name);
	uint64_t place;

	if (known != NULL) {
		place = *known;
	} else {
		size_t at = folder->clean_texts.len;

		if (!make_clean(&folder->clean_texts, strings_text(tree_names(folder->tree), name))) {
			return false;
		}
		place = (uint64_t)at << 16 | (folder->clean_texts.len - at);
		if (!map_put(&folder->clean, name, place)) {
			return false;
		}
	}
	return buffer_append(
		&folder->path, folder->clean_texts.data + (place >> 16), (size_t)(place & 0xffff));
}

static bool enter(struct folder *folder, const struct tree_node *node)
{
	struct buffer *path = &folder->path;

	folder->frame_ends.len = node->depth - 1;
	path->len = node->depth > 1 ? folder->frame_ends.items[node->depth - 2] : 0;
	size_t begin = path->len;

	if ((begin > 0 && !buffer_byte(path, ';')) || !append_name(folder, node->name) ||
		(node->kind == TREE_KERNEL && !buffer_text(path, "_[k]")) ||
		(node->kind != TREE_THREAD && !append_number_end(path, begin))) {
		return false;
	}
	if (path->data[0] == '#' || path->data[0] == '{') {
		path->data[0] = '_'; /* a line that begins so is taken for a comment or for JSON */
	}
	return VEC_PUSH(&folder->frame_ends, path->len);
}

/* The outer frames that fit HEAD_BYTES, a frame that says how many are missing, and the inner frames that fit the rest. */
static bool append_elided(struct folder *folder)
{
	size_t count = folder->frame_ends.len;
	const size_t *ends = folder->frame_ends.items;
	size_t head = 1;
	size_t tail = count - 1; /* the first frame behind the gap */

	while (head < tail && ends[head] <= HEAD_BYTES) {
		head++;
	}
	size_t room = LINE_BYTES - COUNT_BYTES - ELIDED_BYTES - ends[head - 1];

	while (tail > head && folder->path.len - ends[tail - 2] <= room) {
		tail--;
	}
	return buffer_append(&folder->texts, folder->path.data, ends[head - 1]) &&
		   buffer_printf(&folder->texts, ";[... %zu frames elided]", tail - head) &&
		   buffer_append(&folder->texts, folder->path.data + ends[tail - 1],
			   folder->path.len - ends[tail - 1]);
}

static bool add_line(struct folder *folder, uint64_t count)
{
	struct line line = {.at = folder->texts.len, .count = count};
	bool done = folder->path.len + COUNT_BYTES < LINE_BYTES
					? buffer_append(&folder->texts, folder->path.data, folder->path.len)
					: append_elided(folder);

	done = done && append_number_end(&folder->texts, line.at);
	line.len = folder->texts.len - line.at;
	return done && VEC_PUSH(&folder->lines, line);
}

static bool gather(struct folder *folder)
{
	size_t count;
	const struct tree_node *nodes = tree_nodes(folder->tree, &count);

	for (size_t i = 1; i < count; i++) {
		if (!enter(folder, &nodes[i]) || (nodes[i].self > 0 && !add_line(folder, nodes[i].self))) {
			return false;
		}
	}
	return true;
}

static int compare_bytes(const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len)
{
	int order = memcmp(a, b, a_len < b_len ? a_len : b_len);

	if (order != 0) {
		return order;
	}
	return a_len < b_len ? -1 : a_len > b_len;
}

static int compare_stacks(const void *left, const void *right)
{
	const struct sorted_line *a = left;
	const struct sorted_line *b = right;

	return compare_bytes(a->text, a->len, b->text, b->len);
}

/* By the bytes of whole lines: where one stack begins like another, the other goes on against " count\n". */
static int compare_lines(const void *left, const void *right)
{
	const struct sorted_line *a = left;
	const struct sorted_line *b = right;
	size_t shared = a->len < b->len ? a->len : b->len;
	int order = memcmp(a->text, b->text, shared);
	char count[COUNT_BYTES + 1];

	if (order != 0 || a->len == b->len) {
		return order;
	}
	const struct sorted_line *shorter = a->len < b->len ? a : b;
	const struct sorted_line *longer = a->len < b->len ? b : a;
	size_t len =
		(size_t)snprintf(count, sizeof(count), " %llu\n", (unsigned long long)shorter->count);

	/* The longer one ends in " count\n" too, but it cannot be met: a stack never ends in a number of its own. */
	order = compare_bytes((const uint8_t *)count, len, longer->text + shared, longer->len - shared);
	return shorter == a ? order : -order;
}

/* Names that differ may be equal when they are clean: their counts are added. */
static void merge(struct folder *folder)
{
	size_t count = 0;

	for (size_t i = 0; i < folder->sorted.len; i++) {
		struct sorted_line *line = &folder->sorted.items[i];
		struct sorted_line *last = count > 0 ? &folder->sorted.items[count - 1] : NULL;

		if (last != NULL && compare_stacks(last, line) == 0) {
			last->count =
				line->count > UINT64_MAX - last->count ? UINT64_MAX : last->count + line->count;
		} else {
			folder->sorted.items[count++] = *line;
		}
	}
	folder->sorted.len = count;
}

static bool sort(struct folder *folder)
{
	for (size_t i = 0; i < folder->lines.len; i++) {
		const struct line *line = &folder->lines.items[i];
		const struct sorted_line sorted = {folder->texts.data + line->at, line->len, line->count};

		if (!VEC_PUSH(&folder->sorted, sorted)) {
			return false;
		}
	}
	if (folder->sorted.len > 0) {
		qsort(folder->sorted.items, folder->sorted.len, sizeof(*folder->sorted.items),
			compare_stacks);
		merge(folder);
		qsort(
			folder->sorted.items, folder->sorted.len, sizeof(*folder->sorted.items), compare_lines);
	}
	return true;
}

static bool write_lines(const struct folder *folder, struct buffer *out)
{
	if (!buffer_reserve(out, folder->texts.len + folder->sorted.len * COUNT_BYTES)) {
		return false;
	}
	for (size_t i = 0; i < folder->sorted.len; i++) {
		const struct sorted_line *line = &folder->sorted.items[i];

		if (!buffer_append(out, line->text, line->len) ||
			!buffer_printf(out, " %llu\n", (unsigned long long)line->count)) {
			return false;
		}
	}
	return true;
}

bool folded_write(struct buffer *out, const struct tree *tree, size_t *stacks)
{
	struct folder folder = {.tree = tree};
	bool done = gather(&folder) && sort(&folder) && write_lines(&folder, out);

	if (done && stacks != NULL) {
		*stacks = folder.sorted.len;
	}
	finish(&folder);
	return done;
}
