#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyzer/model/input.h"
#include "analyzer/symbol/naming.h"

/* Names that outlive the files they came from: read from an earlier capture.symbols, and written to the next. */

void keeping_recall(
	const struct kept_image *image, uint64_t offset, bool is_return, struct symbol *symbol)
{
	const struct kept_place *place =
		image != NULL && !symbol->is_named ? kept_place(image, offset, is_return) : NULL;

	if (place != NULL && (place->is_named || symbol->name == 0)) {
		symbol->name = place->name;
		symbol->is_named = place->is_named;
	}
}

bool symbols_give_kept(struct symbols *symbols, int fd, struct error *err)
{
	struct buffer bytes = {0};
	bool is_read =
		symbols->kept == NULL && input_read(fd, KEPT_FILE_BYTES, "capture.symbols", &bytes, err);

	close(fd);
	if (is_read) {
		symbols->kept = kept_read(symbols->strings, bytes.data, bytes.len, err);
	}
	buffer_finish(&bytes);
	if (symbols->kept == NULL) {
		return false;
	}
	for (size_t i = 0; i < symbols->model->images.len; i++) {
		symbols->images[i].kept = kept_find(symbols->kept, &symbols->model->images.items[i]);
	}
	symbols->kept_kernel = kept_find(symbols->kept, NULL);
	return true;
}

static bool add_place(struct kept_image *image, uint64_t offset, bool is_return, uint64_t value)
{
	const struct kept_place place = {
		.offset = offset,
		.name = (uint32_t)(value >> 1),
		.is_return = is_return,
		.is_named = value & 1,
	};

	return VEC_PUSH(&image->places, place);
}

/* One for each of the model's images, and the kernel's as the last. */
static bool add_images(const struct symbols *symbols, struct kept *kept)
{
	for (uint32_t i = 0; i < symbols->model->images.len; i++) {
		struct kept_image image = kept_image_of(&symbols->model->images.items[i]);
		size_t len = 0;
		const uint8_t *build_id = symbols_build_id(symbols, i, &len);

		image.state = symbols_state(symbols, i);
		image.file_build_id_bytes = build_id != NULL && len <= MODEL_BUILD_ID_BYTES ? len : 0;
		if (image.file_build_id_bytes > 0) {
			memcpy(image.file_build_id, build_id, len);
		}
		if (!VEC_PUSH(&kept->images, image)) {
			return false;
		}
	}
	return VEC_PUSH(&kept->images, kept_image_of_kernel());
}

static bool add_files_places(const struct symbols *symbols, struct kept *kept)
{
	const struct map *places = &symbols->places;

	for (size_t i = 0; i < places->capacity; i++) {
		const struct map_slot *slot = &places->slots[i];
		uint64_t index = slot->key >> (PLACE_OFFSET_BITS + 1);
		uint64_t offset = slot->key >> 1 & ((1ull << PLACE_OFFSET_BITS) - 1);

		if (slot->used &&
			!add_place(&kept->images.items[index], offset, slot->key & 1, slot->value)) {
			return false;
		}
	}
	return true;
}

static bool add_kernel_places(const struct map *places, bool is_return, struct kept_image *kernel)
{
	for (size_t i = 0; i < places->capacity; i++) {
		const struct map_slot *slot = &places->slots[i];

		if (slot->used && !add_place(kernel, slot->key, is_return, slot->value)) {
			return false;
		}
	}
	return true;
}

static bool add_places(const struct symbols *symbols, struct kept *kept)
{
	struct kept_image *kernel = &kept->images.items[kept->images.len - 1];

	return add_files_places(symbols, kept) &&
		   add_kernel_places(&symbols->kernel_places[0], false, kernel) &&
		   add_kernel_places(&symbols->kernel_places[1], true, kernel);
}

/* Images without a place say nothing: out with them. */
static void tidy(struct kept *kept)
{
	size_t len = 0;

	for (size_t i = 0; i < kept->images.len; i++) {
		if (kept->images.items[i].places.len > 0) {
			kept_sort(&kept->images.items[i]);
			kept->images.items[len++] = kept->images.items[i];
		}
	}
	kept->images.len = len;
}

bool symbols_keep(const struct symbols *symbols, struct buffer *out)
{
	struct kept *kept = calloc(1, sizeof(*kept));
	bool ok = kept != NULL && add_images(symbols, kept) && add_places(symbols, kept);

	if (ok) {
		tidy(kept);
		ok = kept_write(out, kept, symbols->strings);
	}
	kept_destroy(kept);
	return ok;
}
