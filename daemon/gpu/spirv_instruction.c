#include "gpu/spirv_instruction.h"

#include <string.h>

bool spirv_malformed(struct error *err, size_t word, const char *what)
{
	return error_set(err, ERROR_PARSE, "it is no SPIR-V: word %zu %s", word, what);
}

bool spirv_instruction_next(
	struct bytes *words, struct spirv_instruction *instruction, struct error *err)
{
	size_t at = words->pos / SPIRV_WORD_BYTES;
	if (bytes_left(words) == 0) {
		return false;
	}
	uint32_t first = bytes_u32(words), count = first >> 16;
	size_t len = count > 0 ? (size_t)(count - 1) * SPIRV_WORD_BYTES : 0;
	const uint8_t *operands = count > 0 ? bytes_take(words, len) : NULL;
	if (operands == NULL) {
		words->bad = true;
		return spirv_malformed(
			err, at, count == 0 ? "is an instruction of no words" : "reaches beyond the end");
	}
	*instruction = (struct spirv_instruction){
		.opcode = first & 0xffff, .at = at, .operands = bytes_of(operands, len)};
	return true;
}

struct bytes_text spirv_take_text(struct bytes *operands)
{
	size_t left = bytes_left(operands);
	const uint8_t *at = operands->data + operands->pos;
	const uint8_t *end = left > 0 ? memchr(at, '\0', left) : NULL;
	if (operands->bad || end == NULL) {
		operands->bad = true;
		return (struct bytes_text){0};
	}
	size_t len = (size_t)(end - at);
	bytes_take(operands, (len / SPIRV_WORD_BYTES + 1) * SPIRV_WORD_BYTES);
	return (struct bytes_text){(const char *)at, len};
}

struct bytes_text spirv_take_last_text(struct bytes *operands)
{
	struct bytes_text text = spirv_take_text(operands);
	operands->bad |= bytes_left(operands) != 0;
	return text;
}
