#include "analyzer/symbol/kallsyms.h"

#include <stdlib.h>
#include <string.h>

/* Sizes are not told. No function of the kernel is so long: what lies further is a hole between modules. */
#define MAX_FUNCTION_BYTES (256 * 1024)

/* Digits at *at up to a blank; false when there are none, or too many. */
static bool read_hex(const char **at, const char *end, uint64_t *value)
{
	const char *begin = *at;

	*value = 0;
	for (; *at < end && **at != ' '; (*at)++) {
		char c = **at;
		unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
						 : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
												: 16;

		if (digit == 16) {
			return false;
		}
		*value = *value << 4 | digit;
	}
	return *at > begin && *at - begin <= 16;
}

static uint8_t rank_of(char type)
{
	switch (type) {
	case 'T':
		return TABLE_RANK_FUNCTION + 3;
	case 'W':
	case 'w':
		return TABLE_RANK_FUNCTION + 2;
	case 't':
		return TABLE_RANK_FUNCTION + 1;
	default:
		return 0;
	}
}

/* One line. False: memory is out. */
static bool add_line(struct kallsyms *kallsyms, const char *line, const char *end)
{
	const char *at = line;
	uint64_t address;

	if (!read_hex(&at, end, &address) || end - at < 4 || at[0] != ' ' || at[2] != ' ') {
		return true;
	}
	uint8_t rank = rank_of(at[1]);
	size_t name = (size_t)(at + 3 - (const char *)kallsyms->text.data);

	kallsyms->is_hidden &= address == 0;
	if (rank == 0 || address == 0 || name > UINT32_MAX) {
		return true;
	}
	const struct table_symbol symbol = {
		.start = address,
		.limit =
			address > UINT64_MAX - MAX_FUNCTION_BYTES ? UINT64_MAX : address + MAX_FUNCTION_BYTES,
		.name = (uint32_t)name,
		.rank = rank,
	};

	return table_add(&kallsyms->table, &symbol);
}

static bool add_lines(struct kallsyms *kallsyms)
{
	if (kallsyms->text.len == 0) {
		return true;
	}
	const char *at = (const char *)kallsyms->text.data;
	const char *end = at + kallsyms->text.len;

	kallsyms->is_hidden = true;
	while (at < end) {
		const char *line_end = memchr(at, '\n', (size_t)(end - at));

		line_end = line_end == NULL ? end : line_end;
		if (!add_line(kallsyms, at, line_end)) {
			return false;
		}
		at = line_end + 1;
	}
	return true;
}

struct kallsyms *kallsyms_create(struct buffer *text)
{
	struct kallsyms *kallsyms = calloc(1, sizeof(*kallsyms));

	if (kallsyms == NULL) {
		return NULL;
	}
	kallsyms->text = *text;
	*text = (struct buffer){0};
	if (!add_lines(kallsyms) || !table_seal(&kallsyms->table)) {
		kallsyms_destroy(kallsyms);
		return NULL;
	}
	return kallsyms;
}

void kallsyms_destroy(struct kallsyms *kallsyms)
{
	if (kallsyms == NULL) {
		return;
	}
	table_finish(&kallsyms->table);
	buffer_finish(&kallsyms->text);
	free(kallsyms);
}

static size_t read_name(void *self, const struct table_symbol *symbol, char *name, size_t room)
{
	const struct kallsyms *kallsyms = self;
	const char *text = (const char *)kallsyms->text.data + symbol->name;
	size_t left = kallsyms->text.len - symbol->name;
	size_t len = 0;

	while (len < left && len < room && text[len] != '\t' && text[len] != '\n' && text[len] != ' ') {
		len++;
	}
	memcpy(name, text, len);
	return len;
}

static void destroy(void *self)
{
	kallsyms_destroy(self);
}

const struct source_ops kallsyms_source = {"kallsyms", read_name, destroy};
