#include "gpu/spirv.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

#define MAGIC        0x07230203u
#define HEADER_WORDS 5
#define WORD_BYTES   4
#define DEBUG_INFO   "NonSemantic.Shader.DebugInfo."

/* Instructions (section 3.52), and those of NonSemantic.Shader.DebugInfo.100. */
enum {
	OP_SOURCE_CONTINUED = 2,
	OP_SOURCE = 3,
	OP_STRING = 7,
	OP_LINE = 8,
	OP_EXT_INST_IMPORT = 11,
	OP_EXT_INST = 12,
	OP_ENTRY_POINT = 15,
	OP_CONSTANT = 43,
	DEBUG_COMPILATION_UNIT = 1,
	DEBUG_SOURCE = 35,
	DEBUG_SOURCE_CONTINUED = 102,
	DEBUG_LINE = 103,
};

struct reader {
	struct spirv *spirv;
	struct spirv_source *current; /* that is continued; NULL: none is kept */
	uint32_t debug_set; /* the id of the debug information's instructions; 0: not imported */
	bool has_ids;       /* something is said by an id that has to be looked up */
	struct error *err;
};

struct instruction {
	uint32_t opcode;
	size_t at;             /* where it is, in words */
	struct bytes operands; /* behind the first word */
};

static bool malformed(struct error *err, size_t word, const char *what)
{
	return error_set(err, ERROR_PARSE, "it is no SPIR-V: word %zu %s", word, what);
}

/* False: there is none, or it is malformed (err, when it is not NULL). */
static bool next(struct bytes *words, struct instruction *instruction, struct error *err)
{
	size_t at = words->pos / WORD_BYTES;
	if (bytes_left(words) == 0) {
		return false;
	}
	uint32_t first = bytes_u32(words), count = first >> 16;
	size_t len = count > 0 ? (size_t)(count - 1) * WORD_BYTES : 0;
	const uint8_t *operands = count > 0 ? bytes_take(words, len) : NULL;
	if (operands == NULL) {
		words->bad = true;
		return malformed(
			err, at, count == 0 ? "is an instruction of no words" : "reaches beyond the end");
	}
	*instruction = (struct instruction){
		.opcode = first & 0xffff, .at = at, .operands = bytes_of(operands, len)};
	return true;
}

/* A string's bytes without its NUL; it takes whole words. Not NUL-terminated: bad. */
static struct bytes_text take_text(struct bytes *operands)
{
	size_t left = bytes_left(operands);
	const uint8_t *at = operands->data + operands->pos;
	const uint8_t *end = left > 0 ? memchr(at, '\0', left) : NULL;
	if (operands->bad || end == NULL) {
		operands->bad = true;
		return (struct bytes_text){0};
	}
	size_t len = (size_t)(end - at);
	bytes_take(operands, (len / WORD_BYTES + 1) * WORD_BYTES);
	return (struct bytes_text){(const char *)at, len};
}

/* A string that is the last operand. */
static struct bytes_text take_last_text(struct bytes *operands)
{
	struct bytes_text text = take_text(operands);
	operands->bad |= bytes_left(operands) != 0;
	return text;
}

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
	entry.name = take_text(operands);
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
		   add_piece(reader, (struct spirv_piece){.text = take_last_text(operands)});
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
	case DEBUG_COMPILATION_UNIT:
		read_compilation_unit(reader, operands);
		return true;
	case DEBUG_SOURCE:
		return read_debug_source(reader, id, operands);
	case DEBUG_SOURCE_CONTINUED:
		return add_piece(reader, (struct spirv_piece){.id = bytes_u32(operands)});
	case DEBUG_LINE:
		reader->spirv->lines++;
		return true;
	default:
		return true;
	}
}

static void read_import(struct reader *reader, struct bytes *operands)
{
	uint32_t id = bytes_u32(operands);
	struct bytes_text name = take_last_text(operands);
	if (name.len >= strlen(DEBUG_INFO) && memcmp(name.data, DEBUG_INFO, strlen(DEBUG_INFO)) == 0) {
		reader->debug_set = id;
	}
}

static bool read_instruction(struct reader *reader, struct instruction *instruction)
{
	struct bytes *operands = &instruction->operands;
	bool ok = true;
	switch (instruction->opcode) {
	case OP_ENTRY_POINT:
		read_entry(reader, operands);
		break;
	case OP_SOURCE:
		ok = read_source(reader, operands);
		break;
	case OP_SOURCE_CONTINUED:
		ok = add_piece(reader, (struct spirv_piece){.text = take_last_text(operands)});
		break;
	case OP_LINE:
		reader->spirv->lines++;
		break;
	case OP_EXT_INST_IMPORT:
		read_import(reader, operands);
		break;
	case OP_EXT_INST:
		ok = read_extended(reader, operands);
		break;
	default:
		break;
	}
	return ok && (!operands->bad || malformed(reader->err, instruction->at,
										"is an instruction without all its operands"));
}

/* What is said by ids, looked up in a second pass. */

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
	struct instruction instruction;
	while (next(&words, &instruction, NULL)) {
		struct bytes *operands = &instruction.operands;
		if (instruction.opcode == OP_STRING) {
			uint32_t id = bytes_u32(operands);
			struct bytes_text text = take_last_text(operands);
			if (!operands->bad) {
				give_text(wanted, count, id, text);
			}
		} else if (instruction.opcode == OP_CONSTANT) {
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

static bool resolve(struct spirv *spirv, struct bytes words, struct error *err)
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

static bool read_header(struct bytes *words, struct spirv *spirv, struct error *err)
{
	if (words->len % WORD_BYTES != 0 || words->len < (size_t)HEADER_WORDS * WORD_BYTES) {
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
		return malformed(err, 0, "is not its magic number");
	}
	if (spirv->version >> 16 != 1 || (spirv->version & 0xff) != 0) {
		return malformed(err, 1, "is no version 1 of it");
	}
	return schema == 0 || malformed(err, HEADER_WORDS - 1, "is not 0");
}

bool spirv_read(const void *bytes, size_t len, struct spirv *spirv, struct error *err)
{
	struct bytes words = bytes_of(bytes, len);
	struct reader reader = {.spirv = spirv, .err = err};
	struct instruction instruction;
	*spirv = (struct spirv){0};
	bool ok = read_header(&words, spirv, err);
	struct bytes body = words;
	while (ok && next(&words, &instruction, err)) {
		ok = read_instruction(&reader, &instruction);
	}
	ok = ok && !words.bad && (!reader.has_ids || resolve(spirv, body, err));
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

/* Source languages by number (section 3.2), and what their files end in. */
static const struct {
	const char *name, *extension;
} languages[] = {
	[1] = {"essl", "glsl"},
	[2] = {"glsl", "glsl"},
	[3] = {"opencl_c", "txt"},
	[4] = {"opencl_cpp", "txt"},
	[5] = {"hlsl", "hlsl"},
	[6] = {"cpp_for_opencl", "txt"},
	[7] = {"sycl", "txt"},
	[8] = {"hero_c", "txt"},
	[9] = {"nzsl", "txt"},
	[10] = {"wgsl", "wgsl"},
	[11] = {"slang", "slang"},
	[12] = {"zig", "txt"},
};
#define LANGUAGES (sizeof(languages) / sizeof(languages[0]))

static bool ends_in(struct bytes_text name, const char *extension)
{
	size_t len = strlen(extension);
	return name.len > len && name.data[name.len - len - 1] == '.' &&
		   memcmp(name.data + name.len - len, extension, len) == 0;
}

static bool begins_with(
	const struct spirv *spirv, const struct spirv_source *source, const char *text)
{
	const struct spirv_piece *piece = source->count > 0 ? &spirv->pieces[source->first] : NULL;
	size_t len = strlen(text);
	return piece != NULL && piece->text.len >= len && memcmp(piece->text.data, text, len) == 0;
}

const char *spirv_language(const struct spirv *spirv, const struct spirv_source *source)
{
	if (source->language < LANGUAGES && languages[source->language].name != NULL) {
		return languages[source->language].name;
	}
	for (size_t i = LANGUAGES; i > 0; i--) {
		const char *name = languages[i - 1].name;
		if (name != NULL && ends_in(source->name, name)) {
			return name;
		}
	}
	/* naga and tint knew WGSL before the specification had a number for it. */
	bool is_of_wgsl = spirv->generator == SPIRV_BY_NAGA || spirv->generator == SPIRV_BY_TINT;
	return is_of_wgsl && !begins_with(spirv, source, "#version") ? "wgsl" : NULL;
}

const char *spirv_extension(const char *language)
{
	for (size_t i = 0; language != NULL && i < LANGUAGES; i++) {
		if (languages[i].name != NULL && strcmp(languages[i].name, language) == 0) {
			return languages[i].extension;
		}
	}
	return "txt";
}
