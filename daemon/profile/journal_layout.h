#ifndef PROFILE_JOURNAL_LAYOUT_H
#define PROFILE_JOURNAL_LAYOUT_H

#include <stdint.h>

#include "profile/journal.h"

/*
 * What encoding and decoding share, private to them. The bodies of all records are a table: the fields of a type in
 * the order of its struct, so that the layout stands in one place. What no field can say (the runs of a STACK) follows its fields.
 */
enum journal_field {
	JOURNAL_FIELD_NONE = 0, /* ends the list */
	JOURNAL_FIELD_NUMBER,
	JOURNAL_FIELD_TIME,      /* a signed difference to the time before it in the chunk */
	JOURNAL_FIELD_ID,        /* defines an id: 1 to 2^31 - 1 */
	JOURNAL_FIELD_REFERENCE, /* 0 or an id */
	JOURNAL_FIELD_TEXT,      /* struct bytes_text; every other field is a uint64_t */
};

#define JOURNAL_FIELDS_MAX   8
#define JOURNAL_TYPES        20 /* one more than the largest type */
#define JOURNAL_ID_END       (UINT64_C(1) << 31)
#define JOURNAL_VARINT_BYTES 10

/* The CRC-32 of a chunk: bytes 4 to 15 and 20 to 23 of its header, and the payload. */
uint32_t journal_checksum(
	const uint8_t header[JOURNAL_HEADER_BYTES], const void *payload, uint32_t payload_len);

/* By record type. The list of a type that is not known is empty, as that of type 0. */
extern const uint8_t journal_layout[JOURNAL_TYPES][JOURNAL_FIELDS_MAX + 1];

#endif
