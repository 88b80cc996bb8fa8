#include "base/buffer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buffer_finish(struct buffer *buffer)
{
	free(buffer->data);
	*buffer = (struct buffer){0};
}

bool buffer_reserve(struct buffer *buffer, size_t more)
{
	if (more <= buffer->capacity - buffer->len) {
		return true;
	}
	size_t capacity = buffer->capacity < 64 ? 64 : buffer->capacity;
	while (capacity - buffer->len < more) {
		if (capacity > SIZE_MAX / 2) {
			return false;
		}
		capacity *= 2;
	}
	uint8_t *data = realloc(buffer->data, capacity);
	if (data == NULL) {
		return false;
	}
	buffer->data = data;
	buffer->capacity = capacity;
	return true;
}

bool buffer_append(struct buffer *buffer, const void *bytes, size_t len)
{
	if (!buffer_reserve(buffer, len)) {
		return false;
	}
	if (len > 0) {
		memcpy(buffer->data + buffer->len, bytes, len);
		buffer->len += len;
	}
	return true;
}

bool buffer_byte(struct buffer *buffer, uint8_t byte)
{
	return buffer_append(buffer, &byte, 1);
}

bool buffer_text(struct buffer *buffer, const char *text)
{
	return buffer_append(buffer, text, strlen(text));
}

bool buffer_printf(struct buffer *buffer, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int length = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (length < 0 || !buffer_reserve(buffer, (size_t)length + 1)) {
		return false;
	}
	va_start(args, format);
	vsnprintf((char *)buffer->data + buffer->len, (size_t)length + 1, format, args);
	va_end(args);
	buffer->len += (size_t)length;
	return true;
}

bool buffer_varint(struct buffer *buffer, uint64_t value)
{
	if (!buffer_reserve(buffer, 10)) {
		return false;
	}
	while (value >= 0x80) {
		buffer->data[buffer->len++] = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	buffer->data[buffer->len++] = (uint8_t)value;
	return true;
}
