/*
 * From a journal to what people get: model, names, call tree, and the three exporters. The input is the records of one chunk, whose
 * header is made right; with an odd first byte they are there twice, as two segments. Whatever names the records hold,
 * the outputs must be good of their kind.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "analyzer/export/folded.h"
#include "analyzer/export/json.h"
#include "analyzer/export/summary.h"
#include "analyzer/export/svg_capture.h"
#include "analyzer/model/model.h"
#include "analyzer/symbol/symbol.h"
#include "analyzer/tree/attribution.h"
#include "profile/analysis.h"
#include "profile/journal.h"
#include "protocol/limits.h"
#include "protocol/text.h"

/* Checks go over every byte of every output: their branches are nothing to learn from. */
#define NOT_COUNTED __attribute__((no_sanitize("coverage")))

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* jansson says whether it is UTF-8; then no control characters and nothing that XML forbids (1.0, section 2.2). */
NOT_COUNTED static void check_text(const struct buffer *out)
{
	json_t *text = json_stringn((const char *)out->data, out->len);
	if (out->len > 0 && text == NULL) {
		abort();
	}
	json_decref(text);
	for (size_t i = 0; i < out->len; i++) {
		uint8_t byte = out->data[i];
		if ((byte < ' ' && byte != '\n' && byte != '\t') ||
			(byte == 0xef && (memcmp(out->data + i, "\xef\xbf\xbe", 3) == 0 ||
								 memcmp(out->data + i, "\xef\xbf\xbf", 3) == 0))) {
			abort();
		}
	}
}

/* Every line ends in a count, and together they are the samples. */
NOT_COUNTED static void check_folded(struct buffer *out, uint64_t samples)
{
	uint64_t sum = 0;
	if (!buffer_byte(out, '\0')) {
		abort();
	}
	for (char *line = (char *)out->data, *end; *line != '\0'; line = end + 1) {
		end = strchr(line, '\n');
		if (end == NULL || end - line > 65536) {
			abort();
		}
		*end = '\0';
		const char *space = strrchr(line, ' ');
		char *behind;
		if (space == NULL || space == line || strchr("0123456789", space[1]) == NULL) {
			abort();
		}
		sum += strtoull(space + 1, &behind, 10);
		if (*behind != '\0') {
			abort();
		}
	}
	if (sum != samples) {
		abort();
	}
}

/* Outside of tags and CDATA there is no bare "&", and tags are closed in their order (only elements of SVG are here). */
NOT_COUNTED static void check_xml(const struct buffer *out)
{
	const char *at = (const char *)out->data, *end = at + out->len;
	int depth = 0;
	while (at < end) {
		if (strncmp(at, "<![CDATA[", 9) == 0) {
			at = strstr(at, "]]>");
		} else if (*at == '<') {
			const char *close = strchr(at, '>');
			if (close == NULL) {
				abort();
			}
			depth += at[1] == '/' ? -1 : at[1] == '?' || close[-1] == '/' ? 0 : 1;
			at = close;
		} else if (*at == '&' && strncmp(at, "&lt;", 4) != 0 && strncmp(at, "&gt;", 4) != 0 &&
				   strncmp(at, "&amp;", 5) != 0 && strncmp(at, "&quot;", 6) != 0 &&
				   strncmp(at, "&#", 2) != 0 && strncmp(at, "&apos;", 6) != 0) {
			abort();
		}
		if (at == NULL || depth < 0) {
			abort();
		}
		at++;
	}
	if (depth != 0) {
		abort();
	}
}

/* The picture with one of the looks that it can have; the title is a text of the journal. */
static void write_svg(const struct model *model, const struct attribution *attribution,
	const struct strings *strings, unsigned look)
{
	static const char *const colors[] = {"kind", "image", "name"};
	struct buffer out = {0};
	struct bytes_text text = strings_text(strings, 3);
	json_t *title = text_json(text.data, text.len);
	json_t *facts = json_pack("{s:{s:{s:o,s:i,s:s,s:s,s:s,s:s,s:i}}}", "options", "svg", "title",
		title, "width_px", look % 2 ? 200 : 0, "order", look % 2 ? "weight" : "name", "layout",
		look % 3 ? "flame" : "icicle", "colors", colors[look % 3], "threads",
		look / 2 % 2 ? "merged" : "separate", "min_share_ppm", (int)(look % 4 * 100000));
	const struct svg_capture capture = {facts, model, attribution, look};
	if (facts == NULL || !svg_capture_write(&out, &capture)) {
		abort();
	}
	json_decref(facts);
	check_text(&out);
	if (!buffer_byte(&out, '\0')) {
		abort();
	}
	out.len--;
	check_xml(&out);
	buffer_finish(&out);
}

static void write_folded(const struct attribution *attribution)
{
	struct buffer out = {0};
	size_t stacks = 0;
	if (!folded_write(&out, attribution->tree, &stacks)) {
		abort();
	}
	check_text(&out);
	check_folded(&out, attribution->samples);
	buffer_finish(&out);
}

static json_int_t number(const json_t *object, const char *name)
{
	return json_integer_value(json_object_get(object, name));
}

/* Whatever the journal says: what should be there is what became of it, and each sample has one innermost place. */
static void check_sums(const json_t *document)
{
	const json_t *samples = json_object_get(document, "samples"), *item;
	const json_t *elsewhere = json_object_get(samples, "elsewhere");
	json_int_t self = number(elsewhere, "kernel") + number(elsewhere, "unmapped") +
					  number(elsewhere, "other") + number(elsewhere, "no_stack");
	size_t i;
	json_array_foreach(json_object_get(document, "images"), i, item)
	{
		self += number(item, "self");
	}
	bool is_told = json_object_get(samples, "expected") != NULL;
	if (self != number(samples, "count") ||
		(is_told && number(samples, "expected") !=
						number(samples, "count") + number(samples, "lost") +
							number(samples, "throttled") + number(samples, "not_permitted") +
							number(samples, "too_short") + number(samples, "unexplained"))) {
		abort();
	}
}

static void write_json(const struct json_input *input)
{
	struct buffer out = {0};
	if (!json_write(&out, input)) {
		abort();
	}
	json_t *again = json_loadb((const char *)out.data, out.len, JSON_REJECT_DUPLICATES, NULL);
	if (again == NULL) {
		abort();
	}
	check_text(&out);
	check_sums(again);
	json_decref(again);
	buffer_finish(&out);
}

/* What the end says travels in one packet, beside a few numbers. */
static size_t length_of(const json_t *value)
{
	char *text = json_dumps(value, JSON_COMPACT | JSON_ENSURE_ASCII);
	if (text == NULL) {
		abort();
	}
	size_t len = strlen(text);
	free(text);
	return len;
}

static void export(const struct model *model, struct symbols *symbols, struct strings *strings)
{
	struct attribution *attribution = attribution_create(model, symbols, strings, NULL, NULL);
	if (attribution == NULL || attribution->samples != model_samples(model)) {
		abort();
	}
	struct json_input input = {
		.model = model,
		.symbols = symbols,
		.strings = strings,
		.attribution = attribution,
	};
	json_t *warnings = summary_warnings(&input);
	json_t *summary = summary_create(&input, 1);
	input.warnings = warnings;
	if (length_of(warnings) + length_of(summary) > ANALYSIS_PACKET_BYTES - 4096) {
		abort();
	}
	write_folded(attribution);
	write_json(&input);
	write_svg(model, attribution, strings, (unsigned)attribution->samples);
	json_decref(warnings);
	json_decref(summary);
	attribution_destroy(attribution);
}

static void analyze(const struct buffer *journal)
{
	struct strings *strings = strings_create();
	struct error err = {0};
	struct model *model = model_create(strings, journal->data, journal->len, &err);
	if (model == NULL) {
		abort();
	}
	struct symbols *symbols = symbols_create(model, strings, true);
	if (symbols == NULL) {
		abort();
	}
	export(model, symbols, strings);
	symbols_destroy(symbols);
	model_destroy(model);
	strings_destroy(strings);
}

static void add_chunk(struct buffer *journal, uint32_t segment, const uint8_t *data, size_t size)
{
	uint8_t header[JOURNAL_HEADER_BYTES];
	journal_seal(header, segment, 0, data, (uint32_t)size);
	if (!buffer_append(journal, header, sizeof(header)) || !buffer_append(journal, data, size)) {
		abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buffer journal = {0};
	if (size < 1 || size > LIMIT_CHUNK_BYTES) {
		return 0;
	}
	for (uint32_t segment = 0; segment <= (data[0] & 1u); segment++) {
		add_chunk(&journal, segment, data + 1, size - 1);
	}
	analyze(&journal);
	buffer_finish(&journal);
	return 0;
}
