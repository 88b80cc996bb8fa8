#include "gpu/spirv.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "gpu/spirv_instruction.h"
#include "gpu/spirv_texts.h"

#define MAGIC        0x07230203u
#define HEADER_WORDS 5
#define DEBUG_INFO   "NonSemantic.Shader.DebugInfo."

struct reader {
	struct spirv *spirv;
	struct spirv_source *current; /* that is continued; NULL: none is kept */
	uint32_t debug_set; /* the id of the debug information's instructions; 0: not imported */
	bool has_ids;       /* something is said by an id that has to be looked up */
	struct error *err;
};

static const char *stage_name(uint32_t model)
{
	switch (model) {
	case 0:
		return "vertex";
	case 1:
		return "tess_control";
	case 2:
		return "tess_evaluation";
	case 3:
		return "geometry";
	case 4:
		return "fragment";
	case 5:
		return "compute";
	case 5267:
	case 5364:
		return "task";
	case 5268:
	case 5365:
		return "mesh";
	default:
		return "other";
	}
}

/* What each instruction says. What lacks operands is bad. */

static void read_entry(struct reader *reader, struct bytes *operands)
{
	struct spirv *spirv = reader->spirv;
	struct spirv_entry entry = {.stage = stage_name(bytes_u32(operands))};
	bytes_u32(operands); /* the function */
	entry.name = spirv_take_text(operands);
	spirv->entries_in_all++;
	if (spirv->entry_count < SPIRV_ENTRIES) {
		spirv->entries[spirv->entry_count++] = entry;
	}
}

static bool add_piece(struct reader *reader, struct spirv_piece piece)
{
	struct spirv *spirv = reader->spirv;
	struct spirv_source *source = reader->current;
	if (source == NULL) {
		return true;
	}
	if (spirv->piece_count == SPIRV_PIECES) {
		return error_set(reader->err, ERROR_LIMIT_EXCEEDED,
			"its source comes in more than %d pieces", SPIRV_PIECES);
	}
	if (spirv->piece_count == spirv->piece_capacity &&
		!vec_grow(&spirv->pieces, &spirv->piece_capacity, spirv->piece_count + 1, sizeof(piece))) {
		return error_set(reader->err, ERROR_LIMIT_EXCEEDED, "no memory for its source");
	}
	/* Pieces of one source follow each other: another one begins only when nothing can be added to the last. */
	spirv->pieces[spirv->piece_count++] = piece;
	source->count++;
	source->bytes += piece.text.len;
	reader->has_ids |= piece.id != 0;
	return true;
}

/* The new source is the one that is continued; NULL when there are too many. */
static struct spirv_source *add_source(struct reader *reader)
{
	struct spirv *spirv = reader->spirv;
	reader->current = NULL;
	if (spirv->source_count < SPIRV_SOURCES) {
		reader->current = &spirv->sources[spirv->source_count++];
		reader->current->first = spirv->piece_count;
	}
	return reader->current;
}

static bool read_source(struct reader *reader, struct bytes *operands)
{
	struct spirv_source *source = add_source(reader);
	uint32_t language = bytes_u32(operands);
	bytes_u32(operands); /* the language's version */
	uint32_t name_id = bytes_left(operands) > 0 ? bytes_u32(operands) : 0;
	if (source != NULL) {
		source->language = language;
		source->name_id = name_id;
		reader->has_ids |= name_id != 0;
	}
	return bytes_left(operands) == 0 ||
		   add_piece(reader, (struct spirv_piece){.text = spirv_take_last_text(operands)});
}

static bool read_debug_source(struct reader *reader, uint32_t id, struct bytes *operands)
{
	struct spirv_source *source = add_source(reader);
	uint32_t name_id = bytes_u32(operands);
	if (source != NULL) {
		source->id = id;
		source->name_id = name_id;
		reader->has_ids = true;
	}
	return bytes_left(operands) == 0 ||
		   add_piece(reader, (struct spirv_piece){.id = bytes_u32(operands)});
}

static void read_compilation_unit(struct reader *reader, struct bytes *operands)
{
	struct spirv *spirv = reader->spirv;
	bytes_u32(operands); /* versions of the debug information, and of DWARF */
	bytes_u32(operands);
	uint32_t source = bytes_u32(operands), language = bytes_u32(operands);
	for (size_t i = 0; i < spirv->source_count; i++) {
		if (source != 0 && spirv->sources[i].id == source) {
			spirv->sources[i].language_id = language;
		}
	}
}

static bool read_extended(struct reader *reader, struct bytes *operands)
{
	bytes_u32(operands); /* the type */
	uint32_t id = bytes_u32(operands), set = bytes_u32(operands);
	uint32_t instruction = bytes_u32(operands);
	if (set != reader->debug_set || set == 0 || operands->bad) {
		return true;
	}
	switch (instruction) {
	case SPIRV_DEBUG_COMPILATION_UNIT:
		read_compilation_unit(reader, operands);
		return true;
	case SPIRV_DEBUG_SOURCE:
		return read_debug_source(reader, id, operands);
	case SPIRV_DEBUG_SOURCE_CONTINUED:
		return add_piece(reader, (struct spirv_piece){.id = bytes_u32(operands)});
	case SPIRV_DEBUG_LINE:
		reader->spirv->lines++;
		return true;
	default:
		return true;
	}
}

static void read_import(struct reader *reader, struct bytes *operands)
{
	uint32_t id = bytes_u32(operands);
	struct bytes_text name = spirv_take_last_text(operands);
	if (name.len >= strlen(DEBUG_INFO) && memcmp(name.data, DEBUG_INFO, strlen(DEBUG_INFO)) == 0) {
		reader->debug_set = id;
	}
}

static bool read_instruction(struct reader *reader, struct spirv_instruction *instruction)
{
	struct bytes *operands = &instruction->operands;
	bool ok = true;
	switch (instruction->opcode) {
	case SPIRV_OP_ENTRY_POINT:
		read_entry(reader, operands);
		break;
	case SPIRV_OP_SOURCE:
		ok = read_source(reader, operands);
		break;
	case SPIRV_OP_SOURCE_CONTINUED:
		ok = add_piece(reader, (struct spirv_piece){.text = spirv_take_last_text(operands)});
		break;
	case SPIRV_OP_LINE:
		reader->spirv->lines++;
		break;
	case SPIRV_OP_EXT_INST_IMPORT:
		read_import(reader, operands);
		break;
	case SPIRV_OP_EXT_INST:
		ok = read_extended(reader, operands);
		break;
	default:
		break;
	}
	return ok && (!operands->bad || spirv_malformed(reader->err, instruction->at,
										"is an instruction without all its operands"));
}

static bool read_header(struct bytes *words, struct spirv *spirv, struct error *err)
{
	if (words->len % SPIRV_WORD_BYTES != 0 ||
		words->len < (size_t)HEADER_WORDS * SPIRV_WORD_BYTES) {
		return error_set(err, ERROR_PARSE,
			"it is no SPIR-V: %zu bytes are no header and whole words", words->len);
	}
	uint32_t magic = bytes_u32(words);
	spirv->version = bytes_u32(words);
	uint32_t generator = bytes_u32(words); /* naga puts its number into the version's half */
	spirv->generator = (uint16_t)(generator >> 16 != 0 ? generator >> 16 : generator);
	bytes_u32(words); /* the bound of ids, which nothing here depends on */
	uint32_t schema = bytes_u32(words);
	if (magic != MAGIC) {
		return spirv_malformed(err, 0, "is not its magic number");
	}
	if (spirv->version >> 16 != 1 || (spirv->version & 0xff) != 0) {
		return spirv_malformed(err, 1, "is no version 1 of it");
	}
	return schema == 0 || spirv_malformed(err, HEADER_WORDS - 1, "is not 0");
}

bool spirv_read(const void *bytes, size_t len, struct spirv *spirv, struct error *err)
{
	struct bytes words = bytes_of(bytes, len);
	struct reader reader = {.spirv = spirv, .err = err};
	struct spirv_instruction instruction;
	*spirv = (struct spirv){0};
	bool ok = read_header(&words, spirv, err);
	struct bytes body = words;
	while (ok && spirv_instruction_next(&words, &instruction, err)) {
		ok = read_instruction(&reader, &instruction);
	}
	ok = ok && !words.bad && (!reader.has_ids || spirv_find_texts(spirv, body, err));
	if (!ok) {
		spirv_finish(spirv);
	}
	return ok;
}

void spirv_finish(struct spirv *spirv)
{
	free(spirv->pieces);
	spirv->pieces = NULL;
	spirv->piece_count = spirv->piece_capacity = 0;
}

const struct spirv_source *spirv_first_source(const struct spirv *spirv)
{
	size_t i = 0;
	while (i < spirv->source_count && spirv->sources[i].bytes == 0) {
		i++;
	}
	return i < spirv->source_count ? &spirv->sources[i] : NULL;
}
