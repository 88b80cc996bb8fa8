#ifndef ANALYZER_SYMBOL_KEPT_H
#define ANALYZER_SYMBOL_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyzer/model/model.h"
#include "base/buffer.h"
#include "base/strings.h"
#include "base/vec.h"
#include "protocol/error.h"

/*
 * capture.symbols: what the addresses of a capture were called when it was finished. The names outlive the files that they came from: whatever is
 * made of the journal later has them. It is written anew as a whole, never appended to.
 *
 * File    = header (24 bytes, little-endian) payload
 *
 *      0        4         8          16         20          24
 *     +--------+---------+----------+----------+-----------+-----------+ - - - - -
 *     | "PSY1" | version | payload  | CRC-32   | reserved, | payload
 *     |        | (1)     | length   | of it    | zero      |
 *     +--------+---------+----------+----------+-----------+-----------+ - - - - -
 *
 * Payload = record*, each a type (1 byte), the length of its body (varint), and the body, as in the journal (profile/journal.h): readers skip
 * types that they do not know and ignore bytes behind the fields that they know. "text" and "id" are the journal's.
 *
 *   1 STRING  id, text                    defined before it is used; ids count from 1
 *   2 IMAGE   kind, path (id), device, inode, generation, build id as it was mapped (text), state (enum symbols_state), build id of the file (text)
 *             The first five and the build id are those of the journal's IMAGE and tell which one is meant. Kind KERNEL is the kernel.
 *   3 PLACES  of the IMAGE before it: count, then for each place, in rising order: offset (the difference to the one before), flags (1: it is the
 *             place of a return address, 2: the name is a function's), name (id). Offsets are the model's (model_frame.offset); the kernel's are addresses.
 *
 * The file may be broken or hostile: what cannot be read is an error, and nothing of it is used.
 */
#define KEPT_HEADER_BYTES 24
#define KEPT_FILE_BYTES   (1ull << 30)

struct kept_place {
	uint64_t offset;
	uint32_t name; /* string id */
	bool is_return, is_named;
};

struct kept_image {
	uint64_t kind, device, inode, generation;
	uint32_t path; /* string id */
	uint8_t build_id[MODEL_BUILD_ID_BYTES], file_build_id[MODEL_BUILD_ID_BYTES];
	size_t build_id_bytes, file_build_id_bytes;
	uint64_t state;
	VEC(struct kept_place) places; /* owned; sorted by offset and is_return */
};

struct kept {
	VEC(struct kept_image) images;
};

/* What identifies a model's image, without places. */
struct kept_image kept_image_of(const struct model_image *image);
/* The kernel's. */
struct kept_image kept_image_of_kernel(void);

/* strings is borrowed for the call: ids are its ids. NULL: err (io: it is broken; unsupported: a newer version; limit_exceeded). */
struct kept *kept_read(
	struct strings *strings, const uint8_t *bytes, size_t len, struct error *err);
void kept_destroy(struct kept *kept);

/* The one with the same identity; NULL. image: NULL is the kernel. */
const struct kept_image *kept_find(const struct kept *kept, const struct model_image *image);
/* NULL: not known. */
const struct kept_place *kept_place(
	const struct kept_image *image, uint64_t offset, bool is_return);

/* Sorts the places. Before kept_write. */
void kept_sort(struct kept_image *image);
/* Appends the whole file. False: memory is out. */
bool kept_write(struct buffer *out, const struct kept *kept, const struct strings *strings);

#endif
