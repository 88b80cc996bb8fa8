#include "analyzer/symbol/kept.h"

#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "base/bytes.h"
#include "base/map.h"

#define MAGIC       0x31595350u /* "PSY1" */
#define VERSION     1
#define FLAG_RETURN 1
#define FLAG_NAMED  2

enum record_type { RECORD_STRING = 1, RECORD_IMAGE = 2, RECORD_PLACES = 3 };

struct kept_image kept_image_of(const struct model_image *image)
{
	struct kept_image kept = {
		.kind = image->kind,
		.device = image->device,
		.inode = image->inode,
		.generation = image->inode_generation,
		.path = image->path,
		.build_id_bytes = image->build_id_bytes,
	};

	memcpy(kept.build_id, image->build_id, image->build_id_bytes);
	return kept;
}

struct kept_image kept_image_of_kernel(void)
{
	return (struct kept_image){.kind = JOURNAL_IMAGE_KERNEL};
}

void kept_destroy(struct kept *kept)
{
	if (kept == NULL) {
		return;
	}
	for (size_t i = 0; i < kept->images.len; i++) {
		VEC_FINISH(&kept->images.items[i].places);
	}
	VEC_FINISH(&kept->images);
	free(kept);
}

/* --- looking up --- */

const struct kept_image *kept_find(const struct kept *kept, const struct model_image *image)
{
	struct kept_image wanted = image != NULL ? kept_image_of(image) : kept_image_of_kernel();

	for (size_t i = 0; i < kept->images.len; i++) {
		const struct kept_image *known = &kept->images.items[i];

		if (known->kind == wanted.kind && known->path == wanted.path &&
			known->device == wanted.device && known->inode == wanted.inode &&
			known->generation == wanted.generation &&
			known->build_id_bytes == wanted.build_id_bytes &&
			memcmp(known->build_id, wanted.build_id, wanted.build_id_bytes) == 0) {
			return known;
		}
	}
	return NULL;
}

static int compare(const void *left, const void *right)
{
	const struct kept_place *a = left;
	const struct kept_place *b = right;

	return a->offset != b->offset ? (a->offset > b->offset) - (a->offset < b->offset)
								  : a->is_return - b->is_return;
}

void kept_sort(struct kept_image *image)
{
	if (image->places.len > 0) {
		qsort(image->places.items, image->places.len, sizeof(*image->places.items), compare);
	}
}

const struct kept_place *kept_place(const struct kept_image *image, uint64_t offset, bool is_return)
{
	const struct kept_place wanted = {.offset = offset, .is_return = is_return};

	return image->places.len == 0
			   ? NULL
			   : bsearch(&wanted, image->places.items, image->places.len, sizeof(wanted), compare);
}

/* --- reading --- */

struct reading {
	struct kept *kept;
	struct strings *strings;
	VEC(uint32_t) names; /* by the file's id, less one */
	const char *broken;  /* what is wrong, or NULL */
};

static bool out_of_memory(struct reading *reading)
{
	reading->broken = "memory is out";
	return false;
}

static bool is_broken(struct reading *reading, const char *what)
{
	reading->broken = what;
	return false;
}

static bool take_string(struct reading *reading, struct bytes *body)
{
	uint64_t id = bytes_varint(body);
	struct bytes_text text = bytes_text(body);

	if (body->bad || id != reading->names.len + 1) {
		return is_broken(reading, "a string");
	}
	uint32_t name = strings_intern(reading->strings, text.data, text.len, NULL);

	return (name != 0 && VEC_PUSH(&reading->names, name)) || out_of_memory(reading);
}

/* The string's id here; 0 stays 0. False: the file has none of that id. */
static bool find_name(struct reading *reading, uint64_t id, uint32_t *name)
{
	*name = 0;
	if (id > reading->names.len) {
		return is_broken(reading, "the id of a string");
	}
	if (id > 0) {
		*name = reading->names.items[id - 1];
	}
	return true;
}

static bool take_build_id(struct bytes *body, uint8_t *build_id, size_t *len)
{
	struct bytes_text text = bytes_text(body);

	if (body->bad || text.len > MODEL_BUILD_ID_BYTES) {
		return false;
	}
	memcpy(build_id, text.data, text.len);
	*len = text.len;
	return true;
}

static bool take_image(struct reading *reading, struct bytes *body)
{
	struct kept_image image = {.kind = bytes_varint(body)};

	if (!find_name(reading, bytes_varint(body), &image.path)) {
		return false;
	}
	image.device = bytes_varint(body);
	image.inode = bytes_varint(body);
	image.generation = bytes_varint(body);
	if (!take_build_id(body, image.build_id, &image.build_id_bytes)) {
		return is_broken(reading, "an image");
	}
	image.state = bytes_varint(body);
	if (!take_build_id(body, image.file_build_id, &image.file_build_id_bytes)) {
		return is_broken(reading, "an image");
	}
	return VEC_PUSH(&reading->kept->images, image) || out_of_memory(reading);
}

static bool take_place(
	struct reading *reading, struct bytes *body, struct kept_image *image, uint64_t *offset)
{
	uint64_t step = bytes_varint(body);
	uint64_t flags = bytes_varint(body);
	struct kept_place place = {
		.offset = *offset + step,
		.is_return = flags & FLAG_RETURN,
		.is_named = flags & FLAG_NAMED,
	};

	if (!find_name(reading, bytes_varint(body), &place.name)) {
		return false;
	}
	if (body->bad || place.offset < *offset || place.name == 0) {
		return is_broken(reading, "a place");
	}
	*offset = place.offset;
	if (image->places.len > 0 &&
		compare(&image->places.items[image->places.len - 1], &place) >= 0) {
		return is_broken(reading, "the order of places");
	}
	return VEC_PUSH(&image->places, place) || out_of_memory(reading);
}

static bool take_places(struct reading *reading, struct bytes *body)
{
	struct kept *kept = reading->kept;
	struct kept_image *image =
		kept->images.len > 0 ? &kept->images.items[kept->images.len - 1] : NULL;
	uint64_t count = bytes_varint(body);
	uint64_t offset = 0;

	if (image == NULL || image->places.len > 0) {
		return is_broken(reading, "places without an image");
	}
	for (uint64_t i = 0; i < count; i++) {
		if (!take_place(reading, body, image, &offset)) {
			return false;
		}
	}
	return !body->bad || is_broken(reading, "places");
}

static bool take_record(struct reading *reading, struct bytes *payload)
{
	uint8_t type = bytes_u8(payload);
	struct bytes_text text = bytes_text(payload);
	struct bytes body = bytes_of(text.data, text.len);

	if (payload->bad) {
		return is_broken(reading, "a record");
	}
	switch (type) {
	case RECORD_STRING:
		return take_string(reading, &body);
	case RECORD_IMAGE:
		return take_image(reading, &body);
	case RECORD_PLACES:
		return take_places(reading, &body);
	default:
		return true;
	}
}

/* False: err. */
static bool check_header(struct bytes *file, struct error *err)
{
	uint32_t magic = bytes_u32(file);
	uint32_t version = bytes_u32(file);
	uint64_t len = bytes_u64(file);
	uint32_t crc = bytes_u32(file);

	bytes_u32(file);
	if (file->bad || magic != MAGIC) {
		return error_set(err, ERROR_IO, "capture.symbols does not begin as such a file");
	}
	if (version != VERSION) {
		return error_set(err, ERROR_UNSUPPORTED,
			"capture.symbols has version %u, this program reads %d", version, VERSION);
	}
	if (len != bytes_left(file) || len > KEPT_FILE_BYTES ||
		crc32_z(0, file->data + file->pos, len) != crc) {
		return error_set(err, ERROR_IO, "capture.symbols is damaged");
	}
	return true;
}

struct kept *kept_read(struct strings *strings, const uint8_t *bytes, size_t len, struct error *err)
{
	struct bytes file = bytes_of(bytes, len);
	struct reading reading = {.strings = strings};

	if (!check_header(&file, err)) {
		return NULL;
	}
	reading.kept = calloc(1, sizeof(*reading.kept));
	if (reading.kept == NULL) {
		error_set(err, ERROR_LIMIT_EXCEEDED, "no memory to read capture.symbols");
		return NULL;
	}
	while (bytes_left(&file) > 0 && take_record(&reading, &file)) {
	}
	VEC_FINISH(&reading.names);
	if (reading.broken != NULL) {
		kept_destroy(reading.kept);
		error_set(err, ERROR_IO, "capture.symbols cannot be read: %s", reading.broken);
		return NULL;
	}
	return reading.kept;
}

/* --- writing --- */

struct writing {
	struct buffer *out;
	struct buffer body;
	const struct strings *strings;
	struct map ids; /* string id -> the file's id */
};

static bool put_record(struct writing *writing, enum record_type type)
{
	return buffer_byte(writing->out, (uint8_t)type) &&
		   buffer_varint(writing->out, writing->body.len) &&
		   buffer_append(writing->out, writing->body.data, writing->body.len);
}

static bool put_text(struct buffer *body, const void *bytes, size_t len)
{
	return buffer_varint(body, len) && buffer_append(body, bytes, len);
}

/* Writes the string before its first use. */
static bool define(struct writing *writing, uint32_t name)
{
	struct bytes_text text = strings_text(writing->strings, name);
	uint64_t id = writing->ids.len + 1;

	if (name == 0 || map_get(&writing->ids, name) != NULL) {
		return true;
	}
	writing->body.len = 0;
	return buffer_varint(&writing->body, id) && put_text(&writing->body, text.data, text.len) &&
		   put_record(writing, RECORD_STRING) && map_put(&writing->ids, name, id);
}

static uint64_t id_of(const struct writing *writing, uint32_t name)
{
	const uint64_t *id = map_get(&writing->ids, name);

	return id != NULL ? *id : 0;
}

static bool put_image(struct writing *writing, const struct kept_image *image)
{
	struct buffer *body = &writing->body;

	if (!define(writing, image->path)) {
		return false;
	}
	body->len = 0;
	return buffer_varint(body, image->kind) && buffer_varint(body, id_of(writing, image->path)) &&
		   buffer_varint(body, image->device) && buffer_varint(body, image->inode) &&
		   buffer_varint(body, image->generation) &&
		   put_text(body, image->build_id, image->build_id_bytes) &&
		   buffer_varint(body, image->state) &&
		   put_text(body, image->file_build_id, image->file_build_id_bytes) &&
		   put_record(writing, RECORD_IMAGE);
}

static bool put_places(struct writing *writing, const struct kept_image *image)
{
	struct buffer *body = &writing->body;
	uint64_t offset = 0;

	for (size_t i = 0; i < image->places.len; i++) {
		if (!define(writing, image->places.items[i].name)) {
			return false;
		}
	}
	body->len = 0;
	bool ok = buffer_varint(body, image->places.len);

	for (size_t i = 0; ok && i < image->places.len; i++) {
		const struct kept_place *place = &image->places.items[i];
		uint64_t flags =
			(place->is_return ? FLAG_RETURN : 0u) | (place->is_named ? FLAG_NAMED : 0u);

		ok = buffer_varint(body, place->offset - offset) && buffer_varint(body, flags) &&
			 buffer_varint(body, id_of(writing, place->name));
		offset = place->offset;
	}
	return ok && put_record(writing, RECORD_PLACES);
}

static void put_little_endian(uint8_t *at, uint64_t value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		at[i] = (uint8_t)(value >> 8 * i);
	}
}

static void put_header(uint8_t *header, size_t len)
{
	memset(header, 0, KEPT_HEADER_BYTES);
	put_little_endian(header, MAGIC, 4);
	put_little_endian(header + 4, VERSION, 4);
	put_little_endian(header + 8, len, 8);
	put_little_endian(header + 16, crc32_z(0, header + KEPT_HEADER_BYTES, len), 4);
}

bool kept_write(struct buffer *out, const struct kept *kept, const struct strings *strings)
{
	struct writing writing = {.out = out, .strings = strings};
	static const uint8_t nothing[KEPT_HEADER_BYTES];
	size_t begin = out->len;
	bool ok = buffer_append(out, nothing, sizeof(nothing));

	for (size_t i = 0; ok && i < kept->images.len; i++) {
		ok = put_image(&writing, &kept->images.items[i]) &&
			 put_places(&writing, &kept->images.items[i]);
	}
	if (ok) {
		put_header(out->data + begin, out->len - begin - KEPT_HEADER_BYTES);
	}
	buffer_finish(&writing.body);
	map_finish(&writing.ids);
	return ok;
}
