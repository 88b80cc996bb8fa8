#include "gpu/spirv_texts.h"

#include <stdlib.h>

#include "gpu/spirv_instruction.h"

struct wanted {
	uint32_t id;
	struct bytes_text *text;
};

static int compare_wanted(const void *a, const void *b)
{
	uint32_t one = ((const struct wanted *)a)->id, two = ((const struct wanted *)b)->id;
	return one < two ? -1 : one > two;
}

/* All texts that are wanted, by id; owned (free). */
static struct wanted *list_wanted(struct spirv *spirv, size_t *count)
{
	struct wanted *wanted = calloc(spirv->piece_count + SPIRV_SOURCES, sizeof(*wanted));
	size_t len = 0;
	for (size_t i = 0; wanted != NULL && i < spirv->piece_count; i++) {
		if (spirv->pieces[i].id != 0) {
			wanted[len++] = (struct wanted){spirv->pieces[i].id, &spirv->pieces[i].text};
		}
	}
	for (size_t i = 0; wanted != NULL && i < spirv->source_count; i++) {
		if (spirv->sources[i].name_id != 0) {
			wanted[len++] = (struct wanted){spirv->sources[i].name_id, &spirv->sources[i].name};
		}
	}
	if (wanted != NULL) {
		qsort(wanted, len, sizeof(*wanted), compare_wanted);
	}
	*count = len;
	return wanted;
}

/* The place of the first that wants this id, or a later one. */
static size_t find_wanted(const struct wanted *wanted, size_t count, uint32_t id)
{
	size_t low = 0, high = count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (wanted[middle].id < id) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low;
}

/* An id has one string: of several, which no good module has, the first. So each place is filled once. */
static void give_text(struct wanted *wanted, size_t count, uint32_t id, struct bytes_text text)
{
	for (size_t i = find_wanted(wanted, count, id); i < count && wanted[i].id == id; i++) {
		if (wanted[i].text->data != NULL) {
			return;
		}
		*wanted[i].text = text;
	}
}

static void give_language(struct spirv *spirv, uint32_t id, uint32_t value)
{
	for (size_t i = 0; i < spirv->source_count; i++) {
		if (spirv->sources[i].language_id == id && id != 0) {
			spirv->sources[i].language = value;
		}
	}
}

static void look_up(struct spirv *spirv, struct bytes words, struct wanted *wanted, size_t count)
{
	struct spirv_instruction instruction;
	while (spirv_instruction_next(&words, &instruction, NULL)) {
		struct bytes *operands = &instruction.operands;
		if (instruction.opcode == SPIRV_OP_STRING) {
			uint32_t id = bytes_u32(operands);
			struct bytes_text text = spirv_take_last_text(operands);
			if (!operands->bad) {
				give_text(wanted, count, id, text);
			}
		} else if (instruction.opcode == SPIRV_OP_CONSTANT) {
			bytes_u32(operands); /* the type */
			uint32_t id = bytes_u32(operands);
			give_language(spirv, id, bytes_u32(operands));
		}
	}
}

/* No module that anybody made says one text twice; of one that does, little bytes would make much text. */
static bool check_sizes(const struct spirv *spirv, size_t len, struct error *err)
{
	size_t bytes = 0;
	for (size_t i = 0; i < spirv->source_count; i++) {
		bytes += spirv->sources[i].bytes;
	}
	return bytes <= len ||
		   error_set(err, ERROR_PARSE, "it is no SPIR-V: %zu bytes of it say %zu bytes of source",
			   len, bytes);
}

bool spirv_find_texts(struct spirv *spirv, struct bytes words, struct error *err)
{
	size_t count;
	struct wanted *wanted = list_wanted(spirv, &count);
	if (wanted == NULL) {
		return error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for the names of its sources");
	}
	look_up(spirv, words, wanted, count);
	free(wanted);
	for (size_t i = 0; i < spirv->source_count; i++) {
		struct spirv_source *source = &spirv->sources[i];
		source->bytes = 0;
		for (size_t j = 0; j < source->count; j++) {
			source->bytes += spirv->pieces[source->first + j].text.len;
		}
	}
	return check_sizes(spirv, words.len, err);
}
