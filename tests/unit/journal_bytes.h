#ifndef TESTS_UNIT_JOURNAL_BYTES_H
#define TESTS_UNIT_JOURNAL_BYTES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Journals built from bytes, without the code under test. The test frees data. */
struct built {
	uint8_t *data;
	size_t len;
};

static inline void add(struct built *built, const void *bytes, size_t len)
{
	built->data = realloc(built->data, built->len + len + 1);
	assert_non_null(built->data);
	if (len > 0) {
		memcpy(built->data + built->len, bytes, len);
	}
	built->len += len;
}

static inline void add_u32(struct built *built, uint32_t value)
{
	uint8_t bytes[4] = {
		(uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16), (uint8_t)(value >> 24)};
	add(built, bytes, 4);
}

static inline void add_varint(struct built *built, uint64_t value)
{
	for (; value > 127; value /= 128) {
		add(built, &(uint8_t){(uint8_t)(128 + value % 128)}, 1);
	}
	add(built, &(uint8_t){(uint8_t)value}, 1);
}

static inline void add_hex(struct built *built, const char *hex)
{
	while (*hex != '\0') {
		unsigned byte;
		if (*hex == ' ') {
			hex++;
			continue;
		}
		assert_int_equal(sscanf(hex, "%2x", &byte), 1);
		add(built, &(uint8_t){(uint8_t)byte}, 1);
		hex += 2;
	}
}

static inline struct built unhex(const char *hex)
{
	struct built built = {0};
	add_hex(&built, hex);
	return built;
}

/* CRC-32 bit by bit (ISO 3309): polynomial 0xedb88320, reflected. */
static inline uint32_t crc(uint32_t state, const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		state ^= bytes[i];
		for (int bit = 0; bit < 8; bit++) {
			state = (state >> 1) ^ ((state & 1) != 0 ? 0xedb88320u : 0);
		}
	}
	return state;
}

static inline void add_chunk(
	struct built *file, uint32_t segment, uint32_t number, const void *payload, size_t len)
{
	size_t at = file->len;
	add(file, "PJC1", 4);
	add_u32(file, (uint32_t)len);
	add_u32(file, segment);
	add_u32(file, number);
	add_u32(file, 0);
	add_u32(file, 0);
	add(file, payload, len);
	uint32_t sum = crc(0xffffffffu, file->data + at + 4, 12);
	sum = ~crc(sum, file->data + at + 20, 4 + len);
	for (int i = 0; i < 4; i++) {
		file->data[at + 16 + (size_t)i] = (uint8_t)(sum >> (8 * i));
	}
}

static inline void add_chunk_hex(
	struct built *file, uint32_t segment, uint32_t number, const char *hex)
{
	struct built payload = unhex(hex);
	add_chunk(file, segment, number, payload.data, payload.len);
	free(payload.data);
}

#define SEGMENT_HEX "01 02 01 00"
#define STRING_HEX  "03 03 01 01 61"
#define END_HEX     "13 04 00 00 00 00"

#endif
