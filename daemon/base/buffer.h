#ifndef BASE_BUFFER_H
#define BASE_BUFFER_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that grow at the end. Zero is an empty buffer. Not thread-safe. */
struct buffer {
	uint8_t *data; /* owned */
	size_t len, capacity;
};

void buffer_finish(struct buffer *buffer);
/* Room for more bytes behind len. False when memory is out; nothing changes. All appends below return the same. */
bool buffer_reserve(struct buffer *buffer, size_t more);
bool buffer_append(struct buffer *buffer, const void *bytes, size_t len);
bool buffer_byte(struct buffer *buffer, uint8_t byte);
bool buffer_text(struct buffer *buffer, const char *text);
bool buffer_printf(struct buffer *buffer, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Unsigned LEB128, 1 to 10 bytes. */
bool buffer_varint(struct buffer *buffer, uint64_t value);

/* The zigzag form of a signed number, and back. */
static inline uint64_t buffer_zigzag(int64_t value)
{
	return ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
}

static inline int64_t buffer_unzigzag(uint64_t value)
{
	return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

#endif
