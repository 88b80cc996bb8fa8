#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/spirv.h"
#include "gpu/spirv_language.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t sum;

/* All of it is there to be read, within the bytes. */
static void check_text(struct bytes_text text, const uint8_t *data, size_t size)
{
	const uint8_t *at = (const uint8_t *)text.data;
	if (text.len > 0 && (at < data || text.len > size || at + text.len > data + size)) {
		abort();
	}
	for (size_t i = 0; i < text.len; i++) {
		sum += at[i];
	}
}

static void check_source(
	const struct spirv *spirv, const struct spirv_source *source, const uint8_t *data, size_t size)
{
	size_t bytes = 0;
	if (source->first > spirv->piece_count || source->count > spirv->piece_count - source->first) {
		abort();
	}
	for (size_t i = 0; i < source->count; i++) {
		check_text(spirv->pieces[source->first + i].text, data, size);
		bytes += spirv->pieces[source->first + i].text.len;
	}
	check_text(source->name, data, size);
	const char *language = spirv_language(spirv, source);
	if (bytes != source->bytes || bytes > size || spirv_extension(language) == NULL) {
		abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct spirv spirv;
	struct error err = {0};
	if (!spirv_read(data, size, &spirv, &err)) {
		if (err.code == ERROR_NONE) {
			abort();
		}
		return 0;
	}
	for (size_t i = 0; i < spirv.entry_count; i++) {
		check_text(spirv.entries[i].name, data, size);
		sum += strlen(spirv.entries[i].stage);
	}
	for (size_t i = 0; i < spirv.source_count; i++) {
		check_source(&spirv, &spirv.sources[i], data, size);
	}
	spirv_finish(&spirv);
	return 0;
}
