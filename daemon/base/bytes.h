#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A checked reader over borrowed bytes that may be broken or hostile. A read beyond the end returns zero and sets
 * bad; bad never goes away, so a parser may read a whole structure and check once. Little-endian.
 */
struct bytes {
	const uint8_t *data;
	size_t len, pos;
	bool bad;
};

/* A piece of the bytes; not NUL-terminated. */
struct bytes_text {
	const char *data;
	size_t len;
};

static inline struct bytes bytes_of(const void *data, size_t len)
{
	return (struct bytes){(const uint8_t *)data, len, 0, false};
}

/* A text constant as bytes_text. */
struct bytes_text bytes_text_of(const char *text);

static inline size_t bytes_left(const struct bytes *bytes)
{
	return bytes->len - bytes->pos;
}

/* len bytes, or NULL and bad. */
static inline const uint8_t *bytes_take(struct bytes *bytes, size_t len)
{
	if (bytes->bad || len > bytes_left(bytes)) {
		bytes->bad = true;
		return NULL;
	}
	const uint8_t *at = bytes->data + bytes->pos;
	bytes->pos += len;
	return at;
}

static inline uint8_t bytes_u8(struct bytes *bytes)
{
	const uint8_t *at = bytes_take(bytes, 1);
	return at == NULL ? 0 : *at;
}

uint16_t bytes_u16(struct bytes *bytes);
uint32_t bytes_u32(struct bytes *bytes);
uint64_t bytes_u64(struct bytes *bytes);
/* Unsigned LEB128; more than 64 bits is bad. */
uint64_t bytes_varint(struct bytes *bytes);
/* Signed LEB128 (DWARF 5, section 7.6); more than 64 bits is bad. */
int64_t bytes_signed_varint(struct bytes *bytes);
/* A varint length and so many bytes. */
struct bytes_text bytes_text(struct bytes *bytes);

#endif
