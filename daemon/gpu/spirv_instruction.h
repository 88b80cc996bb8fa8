#ifndef GPU_SPIRV_INSTRUCTION_H
#define GPU_SPIRV_INSTRUCTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "protocol/error.h"

/* The instructions of a SPIR-V module, one after the other (Khronos SPIR-V specification, version 1.6, section 2.3). Pure; texts are borrowed from the bytes. */
#define SPIRV_WORD_BYTES 4

/* Instructions (section 3.52), and those of NonSemantic.Shader.DebugInfo.100. */
enum {
	SPIRV_OP_SOURCE_CONTINUED = 2,
	SPIRV_OP_SOURCE = 3,
	SPIRV_OP_STRING = 7,
	SPIRV_OP_LINE = 8,
	SPIRV_OP_EXT_INST_IMPORT = 11,
	SPIRV_OP_EXT_INST = 12,
	SPIRV_OP_ENTRY_POINT = 15,
	SPIRV_OP_CONSTANT = 43,
	SPIRV_DEBUG_COMPILATION_UNIT = 1,
	SPIRV_DEBUG_SOURCE = 35,
	SPIRV_DEBUG_SOURCE_CONTINUED = 102,
	SPIRV_DEBUG_LINE = 103,
};

struct spirv_instruction {
	uint32_t opcode;
	size_t at;             /* where it is, in words */
	struct bytes operands; /* behind the first word */
};

/* False: there is none, or it is malformed (err, when it is not NULL). */
bool spirv_instruction_next(
	struct bytes *words, struct spirv_instruction *instruction, struct error *err);

/* A string's bytes without its NUL; it takes whole words. Not NUL-terminated: bad. */
struct bytes_text spirv_take_text(struct bytes *operands);
/* A string that is the last operand. */
struct bytes_text spirv_take_last_text(struct bytes *operands);

/* Returns false. */
bool spirv_malformed(struct error *err, size_t word, const char *what);

#endif
