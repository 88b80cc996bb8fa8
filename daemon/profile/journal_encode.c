#include "profile/journal.h"

#include <assert.h>
#include <string.h>

#include <zlib.h>

#include "profile/journal_layout.h"

/* The type and a length of one byte: the shape of every record of less than 128 bytes. */
#define SHORT_HEAD_BYTES 2
#define LONG_HEAD_BYTES  (1 + JOURNAL_VARINT_BYTES)

static inline uint8_t *put_varint(uint8_t *at, uint64_t value)
{
	while (value >= 0x80) {
		*at++ = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	*at++ = (uint8_t)value;
	return at;
}

/* At least as many bytes as the record takes. */
static size_t most_bytes(const struct journal_record *record)
{
	size_t bytes = LONG_HEAD_BYTES + JOURNAL_FIELDS_MAX * JOURNAL_VARINT_BYTES;
	switch (record->type) {
	case JOURNAL_SEGMENT:
		return bytes + record->segment.machine.len + record->segment.system.len;
	case JOURNAL_CAPTURE:
		return bytes + record->capture.json.len;
	case JOURNAL_STRING:
		return bytes + record->string.text.len;
	case JOURNAL_IMAGE:
		return bytes + record->image.build_id.len;
	case JOURNAL_STACK: /* every frame a run of its own */
		return bytes + (size_t)record->stack.frame_count * 2 * JOURNAL_VARINT_BYTES;
	default:
		return bytes;
	}
}

static uint8_t *put_text(uint8_t *at, struct bytes_text text)
{
	at = put_varint(at, text.len);
	if (text.len > 0) {
		memcpy(at, text.data, text.len);
	}
	return at + text.len;
}

static inline uint8_t *put_fields(
	uint8_t *at, const struct journal_record *record, uint64_t *last_time_ns)
{
	const uint8_t *value = (const uint8_t *)&record->segment;
	for (const uint8_t *field = journal_layout[record->type]; *field != 0; field++) {
		if (*field == JOURNAL_FIELD_TEXT) {
			at = put_text(at, *(const struct bytes_text *)(const void *)value);
			value += sizeof(struct bytes_text);
			continue;
		}
		uint64_t number = *(const uint64_t *)(const void *)value;
		value += sizeof(uint64_t);
		if (*field == JOURNAL_FIELD_TIME) {
			uint64_t time_ns = number;
			number = buffer_zigzag((int64_t)(time_ns - *last_time_ns));
			*last_time_ns = time_ns;
		}
		at = put_varint(at, number);
	}
	return at;
}

static uint8_t *put_frames(uint8_t *at, const struct journal_stack *stack)
{
	uint64_t previous = 0;
	for (size_t i = 0; i < stack->frame_count;) {
		size_t end = i + 1;
		while (end < stack->frame_count && stack->kinds[end] == stack->kinds[i]) {
			end++;
		}
		at = put_varint(at, (uint64_t)(end - i) << 3 | stack->kinds[i]);
		for (; i < end; i++) {
			at = put_varint(at, buffer_zigzag((int64_t)(stack->values[i] - previous)));
			previous = stack->values[i];
		}
	}
	return at;
}

/* Writes the head before a body that stands behind room for a short one. Returns the record's end. */
static inline uint8_t *put_head(uint8_t *start, enum journal_type type, uint8_t *end)
{
	uint8_t *body = start + SHORT_HEAD_BYTES;
	size_t len = (size_t)(end - body);
	start[0] = (uint8_t)type;
	if (len < 0x80) {
		start[1] = (uint8_t)len;
		return end;
	}
	uint8_t varint[JOURNAL_VARINT_BYTES];
	size_t varint_len = (size_t)(put_varint(varint, len) - varint);
	memmove(start + 1 + varint_len, body, len);
	memcpy(start + 1, varint, varint_len);
	return start + 1 + varint_len + len;
}

bool journal_encode(struct buffer *out, const struct journal_record *record, uint64_t *last_time_ns)
{
	assert(record->type >= JOURNAL_SEGMENT && record->type <= JOURNAL_END);
	size_t most = most_bytes(record);
	if (most > out->capacity - out->len && !buffer_reserve(out, most)) {
		return false;
	}
	uint8_t *start = out->data + out->len;
	uint8_t *end = put_fields(start + SHORT_HEAD_BYTES, record, last_time_ns);
	if (record->type == JOURNAL_STACK) {
		end = put_frames(end, &record->stack);
	}
	out->len = (size_t)(put_head(start, record->type, end) - out->data);
	return true;
}

static void put_u32(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)value;
	at[1] = (uint8_t)(value >> 8);
	at[2] = (uint8_t)(value >> 16);
	at[3] = (uint8_t)(value >> 24);
}

void journal_seal(uint8_t header[JOURNAL_HEADER_BYTES], uint32_t segment, uint32_t chunk,
	const void *payload, uint32_t payload_len)
{
	put_u32(header, JOURNAL_MAGIC);
	put_u32(header + 4, payload_len);
	put_u32(header + 8, segment);
	put_u32(header + 12, chunk);
	put_u32(header + 20, 0);
	put_u32(header + 16, journal_checksum(header, payload, payload_len));
}

uint32_t journal_checksum(
	const uint8_t header[JOURNAL_HEADER_BYTES], const void *payload, uint32_t payload_len)
{
	uLong crc = crc32(crc32(0, NULL, 0), header + 4, 12);
	crc = crc32(crc, header + 20, 4);
	/* A NULL payload would mean "the initial value" to zlib. */
	return (uint32_t)(payload_len > 0 ? crc32(crc, payload, payload_len) : crc);
}
