#include "base/bytes.h"

#include <string.h>

struct bytes_text bytes_text_of(const char *text)
{
	return (struct bytes_text){text, strlen(text)};
}

static uint64_t little_endian(struct bytes *bytes, size_t len)
{
	const uint8_t *at = bytes_take(bytes, len);
	uint64_t value = 0;
	for (size_t i = 0; at != NULL && i < len; i++) {
		value |= (uint64_t)at[i] << (8 * i);
	}
	return value;
}

uint16_t bytes_u16(struct bytes *bytes)
{
	return (uint16_t)little_endian(bytes, 2);
}

uint32_t bytes_u32(struct bytes *bytes)
{
	return (uint32_t)little_endian(bytes, 4);
}

uint64_t bytes_u64(struct bytes *bytes)
{
	return little_endian(bytes, 8);
}

uint64_t bytes_varint(struct bytes *bytes)
{
	uint64_t value = 0;
	for (unsigned shift = 0; shift < 64; shift += 7) {
		const uint8_t *at = bytes_take(bytes, 1);
		if (at == NULL) {
			return 0;
		}
		if (shift == 63 && *at > 1) {
			break;
		}
		value |= (uint64_t)(*at & 0x7f) << shift;
		if ((*at & 0x80) == 0) {
			return value;
		}
	}
	bytes->bad = true;
	return 0;
}

int64_t bytes_signed_varint(struct bytes *bytes)
{
	uint64_t value = 0;
	for (unsigned shift = 0; shift < 64; shift += 7) {
		const uint8_t *at = bytes_take(bytes, 1);
		if (at == NULL) {
			return 0;
		}
		if (shift == 63 && *at != 0 && *at != 0x7f) {
			break;
		}
		value |= (uint64_t)(*at & 0x7f) << shift;
		if ((*at & 0x80) == 0) {
			bool is_negative = (*at & 0x40) != 0 && shift < 57;
			return (int64_t)(is_negative ? value | UINT64_MAX << (shift + 7) : value);
		}
	}
	bytes->bad = true;
	return 0;
}

struct bytes_text bytes_text(struct bytes *bytes)
{
	uint64_t len = bytes_varint(bytes);
	if (bytes->bad || len > bytes_left(bytes)) {
		bytes->bad = true;
		return (struct bytes_text){"", 0};
	}
	return (struct bytes_text){(const char *)bytes_take(bytes, (size_t)len), (size_t)len};
}
