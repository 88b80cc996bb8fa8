#ifndef TESTS_UNIT_JOURNAL_VECTORS_H
#define TESTS_UNIT_JOURNAL_VECTORS_H

#include "profile/journal.h"

/*
 * One record each and its bytes, worked out by hand from the layout in profile/journal.h. They hold for every
 * program that writes or reads a journal. before_ns is the chunk's time before the record.
 */
struct journal_vector {
	uint64_t before_ns;
	struct journal_record record;
	const char *hex;
};

#define VECTOR_TEXT(bytes)                                                                         \
	{                                                                                              \
		(bytes), sizeof(bytes) - 1                                                                 \
	}

static const uint64_t vector_mixed_values[] = {0x401000, 0x401010, 2, 3};
static const uint8_t vector_mixed_kinds[] = {
	JOURNAL_FRAME_NATIVE, JOURNAL_FRAME_NATIVE, JOURNAL_FRAME_INTERPRETED, JOURNAL_FRAME_MARKER};
static const uint64_t vector_kernel_values[] = {0xffffffff81000000, 0x10};
static const uint8_t vector_kernel_kinds[] = {JOURNAL_FRAME_KERNEL, JOURNAL_FRAME_EXACT};

static const struct journal_vector journal_vectors[] = {
	/* 300 = 2 * 128 + 44; 2^35 is five groups of zeroes and a 1; 4096 = 32 * 128. */
	{0,
		{.type = JOURNAL_SEGMENT,
			.segment = {1, JOURNAL_CLOCK_MONOTONIC, 300, UINT64_C(1) << 35, 8, 4096,
				VECTOR_TEXT("x86_64"), VECTOR_TEXT("Linux 6")}},
		"01 1c 01 00 ac02 808080808001 08 8020 06 7838365f3634 07 4c696e75782036"},
	{0, {.type = JOURNAL_CAPTURE, .capture = {VECTOR_TEXT("{}")}}, "02 03 02 7b7d"},
	{0, {.type = JOURNAL_STRING, .string = {1, VECTOR_TEXT("main")}}, "03 06 01 04 6d61696e"},
	/* The largest id; text of any bytes. */
	{0, {.type = JOURNAL_STRING, .string = {0x7fffffff, VECTOR_TEXT("\xff\0")}},
		"03 08 ffffffff07 02 ff00"},
	{0, {.type = JOURNAL_STRING, .string = {2, VECTOR_TEXT("")}}, "03 02 02 00"},
	/* 10007 = 78 * 128 + 23. */
	{0, {.type = JOURNAL_METRIC, .metric = {1, 2, JOURNAL_UNIT_NANOSECONDS, 10007}},
		"04 05 01 02 00 974e"},
	/* The first time, 1000, is 2000 = 15 * 128 + 80 as a signed number; 4242 = 33 * 128 + 18. */
	{0, {.type = JOURNAL_PROCESS, .process = {1000, 4242, 1, 3, 0, 0, 1}},
		"05 09 d00f 9221 01 03 00 00 01"},
	/* 63 ns later is 126, 64 ns earlier is 127, 64 ns later is 128, 1 ns earlier is 1. */
	{1000, {.type = JOURNAL_PROCESS_END, .process_end = {1063, 4242}}, "06 03 7e 9221"},
	{1000, {.type = JOURNAL_PROCESS_END, .process_end = {936, 4242}}, "06 03 7f 9221"},
	{1000, {.type = JOURNAL_THREAD, .thread = {1064, 4242, 4243, 5}}, "07 07 8001 9221 9321 05"},
	{1000, {.type = JOURNAL_THREAD_END, .thread_end = {999, 4243}}, "08 03 01 9321"},
	/* Device 8:1 is 2^35 + 1. */
	{0,
		{.type = JOURNAL_IMAGE,
			.image = {7, JOURNAL_IMAGE_ELF, 4, UINT64_C(8) << 32 | 1, 128, 0,
				VECTOR_TEXT("\xde\xad\xbe\xef"), 1}},
		"09 12 07 01 04 818080808001 8001 00 04 deadbeef 01"},
	/* 0x400000 = 2^22, 0x1000 = 2^12, 0x2000 = 2^13. */
	{0, {.type = JOURNAL_MAPPING, .mapping = {0, 1, 0x400000, 0x1000, 0x2000, 7, 5}},
		"0a 0c 00 01 80808002 8020 8040 07 05"},
	/* The last byte of the address space: ten bytes of varint. */
	{5, {.type = JOURNAL_UNMAPPING, .unmapping = {5, 1, UINT64_MAX, 1}},
		"0b 0d 00 01 ffffffffffffffffff01 01"},
	{0, {.type = JOURNAL_FRAME, .frame = {1, JOURNAL_FRAME_INTERPRETED, 2, 3, 300, 4}},
		"0c 07 01 02 02 03 ac02 04"},
	/*
	 * Three runs. 0x401000 doubled is 2^23 + 2^13; 16 further on is 32; from there to id 2 it is -0x40100e, so
	 * 0x80201b = 2^23 + 2^13 + 27; the next id is 1 further on.
	 */
	{0,
		{.type = JOURNAL_STACK,
			.stack = {9, 1, JOURNAL_STACK_COMPLETE, 4, vector_mixed_values, vector_mixed_kinds}},
		"0d 11 09 01 00 04  10 80c08004 20  0a 9bc08004  0b 02"},
	/* A kernel address is -0x7f000000, so 0xfdffffff; from there to 16 it is 0x7f000010, so 0xfe000020. */
	{0,
		{.type = JOURNAL_STACK,
			.stack = {10, 1, JOURNAL_STACK_UNKNOWN, 2, vector_kernel_values, vector_kernel_kinds}},
		"0d 10 0a 01 01 02  09 ffffffef0f  0c a08080f00f"},
	{0, {.type = JOURNAL_STACK, .stack = {11, 1, JOURNAL_STACK_NONE, 0, NULL, NULL}},
		"0d 04 0b 01 05 00"},
	/* A millisecond later is 2000000 = (122 * 128 + 9) * 128. */
	{1000, {.type = JOURNAL_SAMPLE, .sample = {1001000, 4243, 9, JOURNAL_STATE_RUNNING, 1, 0}},
		"0e 09 80897a 9321 09 00 01 00"},
	{1000, {.type = JOURNAL_LOSS, .loss = {1000, JOURNAL_LOSS_RING, 200, 2, 0}},
		"0f 06 00 00 c801 02 00"},
	/* 4000000 = (244 * 128 + 18) * 128, and 244 = 128 + 116. */
	{1000, {.type = JOURNAL_LOSS, .loss = {1000, JOURNAL_LOSS_THROTTLED, 0, 0, 4000000}},
		"0f 08 00 01 00 00 8092f401"},
	/* 1000 = 7 * 128 + 104, 900 = 7 * 128 + 4. */
	{0, {.type = JOURNAL_CPU_TIME, .cpu_time = {10, 1, 0, 1000, 900, 100}},
		"10 08 14 01 00 e807 8407 64"},
	{0, {.type = JOURNAL_MARK, .mark = {1, 1, 0, 6, UINT64_MAX}},
		"11 0e 02 01 00 06 ffffffffffffffffff01"},
	{0, {.type = JOURNAL_NOTE, .note = {8, 9}}, "12 02 08 09"},
	/* The largest time doubled is 2^64 - 2; 16384 = 2^14. */
	{0, {.type = JOURNAL_END, .end = {INT64_MAX, 2, 16384, 0}},
		"13 0f feffffffffffffffff01 02 808001 00"},
};

/*
 * A whole chunk: segment 5, chunk 0, with the SEGMENT and the first STRING from above, 38 bytes. The CRC of bytes 4 to
 * 15, 20 to 23 and the payload is 0x0325e21a by Python's zlib.crc32.
 */
#define JOURNAL_VECTOR_CHUNK                                                                       \
	"504a4331 26000000 05000000 00000000 1ae22503 00000000"                                        \
	"01 1c 01 00 ac02 808080808001 08 8020 06 7838365f3634 07 4c696e75782036"                      \
	"03 06 01 04 6d61696e"

#endif
