#ifndef GPU_SPIRV_H
#define GPU_SPIRV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "protocol/error.h"

/*
 * What a SPIR-V module (Khronos SPIR-V specification, version 1.6) says about itself: its entry points, what it was written in, and its source
 * where it carries that, by OpSource or by NonSemantic.Shader.DebugInfo.100. Nothing else of it is looked at, and nothing is run. The bytes
 * may be anybody's: each read is checked, time and memory are linear in their length,
 * and the sources together are not larger. Pure; any thread.
 */
#define SPIRV_ENTRIES 64   /* that are kept; the rest is counted */
#define SPIRV_SOURCES 32   /* files of source that are kept */
#define SPIRV_PIECES  4096 /* that their text may come in */

struct spirv_entry {
	const char *stage; /* static: vertex, fragment, compute, …, other */
	struct bytes_text name;
};

/* A piece of source text. */
struct spirv_piece {
	uint32_t id; /* of the OpString that has it; 0: it came directly */
	struct bytes_text text;
};

struct spirv_source {
	uint32_t language;                 /* the specification's number (section 3.2); 0: not said */
	struct bytes_text name;            /* of the file; len 0: not said */
	size_t first, count;               /* of spirv->pieces */
	size_t bytes;                      /* of its text; 0: the module does not carry it */
	uint32_t id, name_id, language_id; /* for the reader */
};

/* Texts are borrowed from the bytes. */
struct spirv {
	uint32_t version;   /* 0x00010300: 1.3 */
	uint16_t generator; /* what made it, by Khronos' registry of tools */
	uint64_t lines;     /* records of source lines */
	struct spirv_entry entries[SPIRV_ENTRIES];
	size_t entry_count; /* of those kept */
	uint64_t entries_in_all;
	struct spirv_source sources[SPIRV_SOURCES];
	size_t source_count;
	struct spirv_piece *pieces; /* owned */
	size_t piece_count, piece_capacity;
};

/* False: err is parse, with where it is no SPIR-V, or limit_exceeded; spirv needs no finish then. */
bool spirv_read(const void *bytes, size_t len, struct spirv *spirv, struct error *err);
void spirv_finish(struct spirv *spirv);

/* The source that the module carries; NULL: none. */
const struct spirv_source *spirv_first_source(const struct spirv *spirv);

/* The makers that are known to leave sources out, by the registry. */
enum spirv_generator {
	SPIRV_BY_GLSLANG = 8,
	SPIRV_BY_SHADERC = 13,
	SPIRV_BY_DXC = 14,
	SPIRV_BY_TINT = 23,
	SPIRV_BY_NAGA = 28,
};

#endif
