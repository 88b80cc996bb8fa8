#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/spirv.h"
#include "gpu/spirv_language.h"
#include "targets/gpu/modules.inc"

#define WORDS_MAX   (64 * 1024)
#define FILE_BYTES  4096
#define HEADER      0x07230203, 0x00010000, 8 << 16, 100, 0
#define OP(op, len) ((uint32_t)(len) << 16 | (op))
#define READ(array) read_good((array), sizeof(array))

/* A module that is put together word by word. */
struct made {
	size_t len;
	uint32_t words[WORDS_MAX];
};

static struct spirv read_now;

static int release(void **state)
{
	(void)state;
	spirv_finish(&read_now);
	return 0;
}

static const struct spirv *read_good(const void *bytes, size_t len)
{
	struct error err = {0};
	if (!spirv_read(bytes, len, &read_now, &err)) {
		fail_msg("%s", err.message);
	}
	return &read_now;
}

static void expect_refused(const void *bytes, size_t len, const char *why)
{
	struct error err = {0};
	struct spirv spirv;
	assert_false(spirv_read(bytes, len, &spirv, &err));
	if (strstr(err.message, why) == NULL) {
		fail_msg("\"%s\" does not say \"%s\"", err.message, why);
	}
}

static void add(struct made *made, uint32_t word)
{
	assert_true(made->len < WORDS_MAX);
	made->words[made->len++] = word;
}

static void begin(struct made *made)
{
	static const uint32_t header[] = {HEADER};
	made->len = 0;
	for (size_t i = 0; i < 5; i++) {
		add(made, header[i]);
	}
}

/* An instruction of these words, and a text behind them (NULL: none). */
static void add_op(
	struct made *made, uint32_t opcode, const uint32_t *words, size_t count, const char *text)
{
	size_t text_words = text != NULL ? strlen(text) / 4 + 1 : 0;
	add(made, OP(opcode, 1 + count + text_words));
	for (size_t i = 0; i < count; i++) {
		add(made, words[i]);
	}
	for (size_t i = 0; i < text_words; i++) {
		uint32_t word = 0;
		size_t left = strlen(text) - 4 * i;
		memcpy(&word, text + 4 * i, left < 4 ? left : 4);
		add(made, word);
	}
}

#define ADD(made, opcode, text, ...)                                                               \
	add_op((made), (opcode), (const uint32_t[]){__VA_ARGS__},                                      \
		sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), (text))

static const struct spirv *read_made(const struct made *made)
{
	return read_good(made->words, made->len * sizeof(made->words[0]));
}

static char *text_of(const struct spirv *spirv, const struct spirv_source *source)
{
	char *text = calloc(1, source->bytes + 1);
	size_t len = 0;
	assert_non_null(text);
	for (size_t i = 0; i < source->count; i++) {
		const struct spirv_piece *piece = &spirv->pieces[source->first + i];
		assert_true(len + piece->text.len <= source->bytes);
		memcpy(text + len, piece->text.data, piece->text.len);
		len += piece->text.len;
	}
	assert_int_equal(len, source->bytes);
	return text;
}

static void expect_text(struct bytes_text text, const char *wanted)
{
	assert_int_equal(text.len, strlen(wanted));
	assert_memory_equal(text.data, wanted, text.len);
}

/* The source that a module carries ends with the file that it was made of (glslang puts comments before it). */
static void expect_source(const struct spirv *spirv, const char *language, const char *file)
{
	char path[512], written[FILE_BYTES];
	const struct spirv_source *source = spirv_first_source(spirv);
	assert_non_null(source);
	assert_string_equal(spirv_language(spirv, source), language);
	expect_text(source->name, file);
	snprintf(path, sizeof(path), "%s/%s", SHADERS_FOLDER, file);
	FILE *stream = fopen(path, "r");
	assert_non_null(stream);
	size_t len = fread(written, 1, sizeof(written), stream);
	fclose(stream);
	char *text = text_of(spirv, source);
	assert_true(source->bytes >= len);
	assert_memory_equal(text + source->bytes - len, written, len);
	free(text);
}

static void expect_entry(const struct spirv *spirv, const char *stage, const char *name)
{
	assert_int_equal(spirv->entry_count, 1);
	assert_int_equal(spirv->entries_in_all, 1);
	assert_string_equal(spirv->entries[0].stage, stage);
	expect_text(spirv->entries[0].name, name);
}

static void a_module_without_source_says_only_its_language(void **state)
{
	(void)state;
	const struct spirv *spirv = READ(module_plain);
	expect_entry(spirv, "compute", "main");
	assert_null(spirv_first_source(spirv));
	assert_int_equal(spirv->lines, 0);
	assert_int_equal(spirv->source_count, 1);
	assert_string_equal(spirv_language(spirv, &spirv->sources[0]), "glsl");
	assert_int_equal(spirv->generator, SPIRV_BY_GLSLANG);
}

static void sources_of_each_language_are_found(void **state)
{
	(void)state;
	const struct spirv *spirv = READ(module_glsl);
	expect_entry(spirv, "compute", "main");
	expect_source(spirv, "glsl", "step.comp");
	assert_int_equal(spirv->lines, 2);
	spirv_finish(&read_now);
	spirv = READ(module_hlsl);
	expect_entry(spirv, "compute", "step");
	expect_source(spirv, "hlsl", "step.hlsl");
	assert_true(spirv->lines > 0);
	spirv_finish(&read_now);
	spirv = READ(module_wgsl);
	expect_entry(spirv, "compute", "step");
	expect_source(spirv, "wgsl", "step.wgsl");
	assert_int_equal(spirv->generator, SPIRV_BY_NAGA);
	assert_string_equal(spirv_extension("wgsl"), "wgsl");
}

static void sources_in_debug_information_are_found(void **state)
{
	(void)state;
	const struct spirv *spirv = READ(module_debug);
	expect_entry(spirv, "compute", "main");
	expect_source(spirv, "glsl", "step.comp");
	assert_true(spirv->lines > 0);
}

static void a_source_in_pieces_is_one(void **state)
{
	static struct made made;
	(void)state;
	begin(&made);
	ADD(&made, 7, "a.hlsl", 1);
	ADD(&made, 3, "first, ", 5, 600, 1);
	add_op(&made, 2, NULL, 0, "second, ");
	add_op(&made, 2, NULL, 0, "third");
	ADD(&made, 3, "of another", 2, 450, 99);
	add_op(&made, 2, NULL, 0, " file");
	const struct spirv *spirv = read_made(&made);
	assert_int_equal(spirv->source_count, 2);
	char *text = text_of(spirv, &spirv->sources[0]);
	assert_string_equal(text, "first, second, third");
	expect_text(spirv->sources[0].name, "a.hlsl");
	free(text);
	text = text_of(spirv, &spirv->sources[1]);
	assert_string_equal(text, "of another file");
	assert_int_equal(spirv->sources[1].name.len, 0);
	free(text);
}

static void debug_sources_come_in_pieces_too(void **state)
{
	static struct made made;
	(void)state;
	begin(&made);
	ADD(&made, 11, "NonSemantic.Shader.DebugInfo.100", 9);
	ADD(&made, 11, "GLSL.std.450", 8);
	ADD(&made, 7, "b.slang", 1);
	ADD(&made, 7, "one ", 2);
	ADD(&made, 7, "two", 3);
	ADD(&made, 43, NULL, 50, 51, 11);
	ADD(&made, 12, NULL, 40, 41, 9, 35, 1, 2);
	ADD(&made, 12, NULL, 40, 42, 9, 102, 3);
	ADD(&made, 12, NULL, 40, 43, 9, 1, 52, 53, 41, 51);
	ADD(&made, 12, NULL, 40, 44, 9, 103, 41, 1, 1, 1, 1);
	ADD(&made, 12, NULL, 40, 44, 8, 103, 41, 1, 1, 1, 1);
	ADD(&made, 12, NULL, 40, 45, 9, 35, 1);
	const struct spirv *spirv = read_made(&made);
	assert_int_equal(spirv->source_count, 2);
	char *text = text_of(spirv, spirv_first_source(spirv));
	assert_string_equal(text, "one two");
	free(text);
	expect_text(spirv->sources[0].name, "b.slang");
	assert_string_equal(spirv_language(spirv, &spirv->sources[0]), "slang");
	assert_int_equal(spirv->lines, 1);
	assert_int_equal(spirv->sources[1].bytes, 0);
	expect_text(spirv->sources[1].name, "b.slang");
}

static void what_nobody_says_is_guessed_by_who_made_it(void **state)
{
	static struct made made;
	(void)state;
	begin(&made);
	ADD(&made, 3, "fn main() {}", 0, 0, 99);
	const struct spirv *spirv = read_made(&made);
	assert_null(spirv_language(spirv, spirv_first_source(spirv)));
	assert_string_equal(spirv_extension(NULL), "txt");
	spirv_finish(&read_now);
	made.words[2] = SPIRV_BY_TINT << 16;
	spirv = read_made(&made);
	assert_string_equal(spirv_language(spirv, spirv_first_source(spirv)), "wgsl");
	spirv_finish(&read_now);
	begin(&made);
	made.words[2] = SPIRV_BY_NAGA;
	ADD(&made, 3, "#version 450", 0, 0, 99);
	spirv = read_made(&made);
	assert_null(spirv_language(spirv, spirv_first_source(spirv)));
}

static void entry_points_above_the_limit_are_counted(void **state)
{
	static struct made made;
	(void)state;
	begin(&made);
	for (uint32_t i = 0; i < SPIRV_ENTRIES + 3; i++) {
		ADD(&made, 15, "main", i % 6, 7);
	}
	const struct spirv *spirv = read_made(&made);
	assert_int_equal(spirv->entry_count, SPIRV_ENTRIES);
	assert_int_equal(spirv->entries_in_all, SPIRV_ENTRIES + 3);
	assert_string_equal(spirv->entries[4].stage, "fragment");
}

static void sources_above_the_limit_are_left_out(void **state)
{
	static struct made made;
	(void)state;
	begin(&made);
	for (uint32_t i = 0; i < SPIRV_SOURCES + 3; i++) {
		ADD(&made, 3, "a", 2, 450, 99);
		add_op(&made, 2, NULL, 0, "b");
	}
	const struct spirv *spirv = read_made(&made);
	assert_int_equal(spirv->source_count, SPIRV_SOURCES);
	assert_int_equal(spirv->sources[SPIRV_SOURCES - 1].bytes, 2);
}

static void a_module_cannot_say_more_than_it_holds(void **state)
{
	static struct made made;
	(void)state;
	begin(&made);
	ADD(&made, 11, "NonSemantic.Shader.DebugInfo.100", 9);
	ADD(&made, 7, "0123456789012345678901234567890123456789012345678901234567890123456789", 1);
	for (uint32_t i = 0; i < 40; i++) {
		ADD(&made, 12, NULL, 40, 41, 9, i == 0 ? 35 : 102, 1, 1);
	}
	expect_refused(made.words, made.len * 4, "bytes of source");
	begin(&made);
	ADD(&made, 3, "a", 2, 450, 99);
	for (uint32_t i = 0; i < SPIRV_PIECES; i++) {
		add_op(&made, 2, NULL, 0, "a");
	}
	expect_refused(made.words, made.len * 4, "more than 4096 pieces");
}

static void what_is_no_module_is_refused(void **state)
{
	static const uint32_t good[] = {HEADER, OP(8, 4), 1, 2, 3};
	static const struct {
		size_t word;
		uint32_t value;
		const char *why;
	} damages[] = {
		{0, 0x03022307, "magic number"},
		{1, 0x00020000, "no version 1"},
		{1, 0x00010001, "no version 1"},
		{4, 1, "word 4 is not 0"},
		{5, OP(8, 0), "word 5 is an instruction of no words"},
		{5, OP(8, 5), "word 5 reaches beyond the end"},
		{5, OP(15, 4), "word 5 is an instruction without all its operands"},
		{5, OP(2, 4), "word 5 is an instruction without all its operands"},
		{5, OP(8, 3), "word 8 is an instruction of no words"},
	};
	(void)state;
	read_good(good, sizeof(good));
	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		uint32_t words[sizeof(good) / sizeof(good[0])];
		memcpy(words, good, sizeof(good));
		words[7] = words[8] = i == 8 ? 0 : 0x01010101; /* no end of a text */
		words[damages[i].word] = damages[i].value;
		expect_refused(words, sizeof(words), damages[i].why);
	}
	expect_refused("", 0, "0 bytes");
	expect_refused(good, 16, "16 bytes");
	expect_refused(good, sizeof(good) - 1, "35 bytes");
}

/* Each in memory of exactly its length, so that a read beyond it is seen. */
static void a_module_that_is_cut_anywhere_is_read_or_refused(void **state)
{
	static const struct {
		const uint32_t *words;
		size_t len;
	} modules[] = {{module_debug, sizeof(module_debug)}, {module_glsl, sizeof(module_glsl)},
		{module_wgsl, sizeof(module_wgsl)}};
	(void)state;
	for (size_t i = 0; i < 3; i++) {
		for (size_t len = 0; len < modules[i].len; len++) {
			size_t shift = len % 4 != 0; /* aligned or not */
			char *copy = malloc(len + shift);
			struct spirv spirv;
			assert_non_null(copy);
			char *cut = copy + shift;
			memcpy(cut, modules[i].words, len);
			if (spirv_read(cut, len, &spirv, NULL)) {
				assert_int_equal(len % 4, 0);
				spirv_finish(&spirv);
			}
			free(copy);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_module_without_source_says_only_its_language, release),
		cmocka_unit_test_teardown(sources_of_each_language_are_found, release),
		cmocka_unit_test_teardown(sources_in_debug_information_are_found, release),
		cmocka_unit_test_teardown(a_source_in_pieces_is_one, release),
		cmocka_unit_test_teardown(debug_sources_come_in_pieces_too, release),
		cmocka_unit_test_teardown(what_nobody_says_is_guessed_by_who_made_it, release),
		cmocka_unit_test_teardown(entry_points_above_the_limit_are_counted, release),
		cmocka_unit_test_teardown(sources_above_the_limit_are_left_out, release),
		cmocka_unit_test_teardown(a_module_cannot_say_more_than_it_holds, release),
		cmocka_unit_test_teardown(what_is_no_module_is_refused, release),
		cmocka_unit_test(a_module_that_is_cut_anywhere_is_read_or_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
