#ifndef PROFILE_JOURNAL_H
#define PROFILE_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/bytes.h"

/*
 * capture.journal: what was measured, appended while it is measured. The source of truth of a capture.
 *
 * File    = chunk*
 * Chunk   = header (24 bytes, little-endian) payload
 *
 *      0        4          8         12         16          20          24
 *     +--------+----------+---------+----------+-----------+-----------+ - - - - -
 *     | "PJC1" | payload  | segment | chunk in | CRC-32 of | reserved, | payload
 *     |        | length   | number  | segment  | the rest  | zero      |
 *     +--------+----------+---------+----------+-----------+-----------+ - - - - -
 *
 *   The CRC (zlib's crc32) covers bytes 4 to 15, 20 to 23 and the payload. A reader stops at the first
 *   chunk whose magic, length (at most LIMIT_CHUNK_BYTES), number (each segment counts 0, 1, 2, …) or CRC is wrong:
 *   everything before it is good. Whatever was written before a crash can thus be read.
 *
 * Segment = the chunks of one segment number. It is self-contained: its first record is a SEGMENT, and everything that a later record of it refers to
 *   (strings, images, processes, threads, mappings, stacks, metrics) is defined in it, in an order that any
 *   definition precedes its use. Numbers rise but need not begin at 0: old segments can be dropped (flight recorder).
 *
 * Payload = record*
 * Record  = type (1 byte)  length of the body (varint)  body
 *   A reader skips record types that it does not know, and ignores body bytes behind the fields that it knows:
 *   fields are only ever appended, and read as zero when they are absent.
 *   A varint is unsigned LEB128 (DWARF 5, section 7.6), at most 10 bytes. "signed" below is a varint of the zigzag form (n << 1) ^ (n >> 63).
 *   "text" is a varint length and so many bytes, of any content: names are the target's and are not trusted.
 *   "id" is a varint; 0 means none. Ids of strings, metrics, images, frames and stacks are chosen by the writer, unique within
 *   the segment and below 2^31. Times are nanoseconds of the capture's clock; in a record they are written as "time": signed,
 *   the difference to the time of the previous time in the same chunk (the first: to 0).
 *   Only the types below take part in that: a type added later writes its times in full, as who skips it cannot follow.
 *
 * Addresses in stacks are absolute in their process. They mean what the mappings of the process say at the
 * point of the STACK record in the file: a MAPPING replaces what it overlaps, and the writer defines stacks anew after
 * a mapping that replaced code, so a stack is resolved once, where it is defined.
 *
 * Test vectors of every record: tests/unit/journal_vectors.h.
 */

#define JOURNAL_MAGIC        0x31434a50u /* "PJC1" read as a little-endian u32 */
#define JOURNAL_HEADER_BYTES 24
#define JOURNAL_VERSION      1

enum journal_type {
	JOURNAL_SEGMENT = 1, /* begins a segment */
	JOURNAL_CAPTURE = 2, /* what was asked for, as JSON text */
	JOURNAL_STRING = 3,
	JOURNAL_METRIC = 4,  /* what a weight counts */
	JOURNAL_PROCESS = 5, /* a process was born, became known, or was replaced by exec */
	JOURNAL_PROCESS_END = 6,
	JOURNAL_THREAD = 7, /* a thread was born, became known, or changed its name */
	JOURNAL_THREAD_END = 8,
	JOURNAL_IMAGE = 9,    /* a file (or the like) that holds code */
	JOURNAL_MAPPING = 10, /* an image, or a part, is at these addresses of a process */
	JOURNAL_UNMAPPING = 11,
	JOURNAL_FRAME = 12, /* a frame that is not an address: interpreted code, a marker */
	JOURNAL_STACK = 13,
	JOURNAL_SAMPLE = 14,
	JOURNAL_LOSS = 15,     /* samples that are known to be missing */
	JOURNAL_CPU_TIME = 16, /* the kernel's own accounting, to compare the samples with */
	JOURNAL_MARK = 17,     /* a named moment: a GPU frame, a flight recorder's trigger */
	JOURNAL_NOTE = 18,     /* a warning for the user */
	JOURNAL_END = 19,      /* the capture ended in good order; the last record of the file */
};

enum journal_frame_kind {
	JOURNAL_FRAME_NATIVE =
		0, /* the value is an address in the process; a return address, but for a leaf */
	JOURNAL_FRAME_KERNEL = 1,      /* the value is a kernel address */
	JOURNAL_FRAME_INTERPRETED = 2, /* the value is the id of a FRAME */
	JOURNAL_FRAME_MARKER =
		3, /* the value is the id of a FRAME that has a name only ("[stitched]") */
	JOURNAL_FRAME_EXACT =
		4, /* an address that is no return address although it has callees: above a signal frame */
};

/* The name of the marker between a cut stack's own frames and the callers that its outermost one has always had. */
#define JOURNAL_STITCHED "[stitched]"

/* Why a stack ends where it does. */
enum journal_stack_end {
	JOURNAL_STACK_COMPLETE = 0, /* the outermost frame was reached */
	JOURNAL_STACK_UNKNOWN = 1,  /* the method cannot tell (a frame-pointer chain that just ended) */
	JOURNAL_STACK_DEPTH = 2,    /* cut at the depth limit */
	JOURNAL_STACK_COPY = 3,     /* the copied part of the stack ended */
	JOURNAL_STACK_BROKEN = 4,   /* memory or tables contradict themselves */
	JOURNAL_STACK_NONE = 5,     /* nothing could be read */
	JOURNAL_STACK_NO_RULE = 6,  /* nothing is known about the last frame's code */
	JOURNAL_STACK_LOOP = 7,     /* a step that did not move */
	JOURNAL_STACK_ENDS          /* how many there are */
};

/* What the thread did when it was sampled. */
enum journal_state {
	JOURNAL_STATE_RUNNING = 0,
	JOURNAL_STATE_RUNNABLE = 1, /* waits for a CPU */
	JOURNAL_STATE_SLEEPING = 2, /* waits, interruptible */
	JOURNAL_STATE_BLOCKED = 3,  /* waits for a device (Linux: D) */
	JOURNAL_STATE_STOPPED = 4,
	JOURNAL_STATE_UNKNOWN = 5,
};

enum journal_unit {
	JOURNAL_UNIT_NANOSECONDS = 0,
	JOURNAL_UNIT_COUNT = 1,
	JOURNAL_UNIT_BYTES = 2,
	JOURNAL_UNIT_CYCLES = 3,
};

enum journal_image_kind {
	JOURNAL_IMAGE_UNKNOWN =
		0, /* nothing is known about these pages but their name ("[heap]", "//anon") */
	JOURNAL_IMAGE_ELF = 1, /* a regular file, not looked into yet: ELF is expected */
	JOURNAL_IMAGE_MACHO = 2,
	JOURNAL_IMAGE_DYLD_CACHE = 3, /* one library of the shared cache */
	JOURNAL_IMAGE_VDSO = 4,
	JOURNAL_IMAGE_KERNEL = 5,
	JOURNAL_IMAGE_ANONYMOUS = 6, /* executable memory without a file: JIT */
};

enum journal_clock {
	JOURNAL_CLOCK_MONOTONIC = 0, /* CLOCK_MONOTONIC (Linux) */
	JOURNAL_CLOCK_MACH_CONTINUOUS = 1,
	JOURNAL_CLOCK_MACH_ABSOLUTE = 2,
};

enum journal_loss {
	JOURNAL_LOSS_RING = 0, /* the kernel's ring buffer was full */
	JOURNAL_LOSS_THROTTLED =
		1, /* the kernel stopped sampling for the rest of a tick; count is the number of such events, withheld_ns their length */
	JOURNAL_LOSS_MALFORMED = 2, /* a record contradicted itself */
	JOURNAL_LOSS_MEMORY = 3,    /* the profiler had no memory left for it */
	JOURNAL_LOSS_DISK = 4,      /* the journal could not be written */
};

/* Offsets of fields in a body follow the order of the struct. Every integer is a varint unless said otherwise. */

struct journal_segment {
	uint64_t version;       /* JOURNAL_VERSION */
	uint64_t clock;         /* enum journal_clock */
	uint64_t begin_ns;      /* the capture's clock when the segment began; absolute */
	uint64_t begin_unix_us; /* the wall clock at the same moment */
	uint64_t pointer_bytes; /* 4 or 8 */
	uint64_t page_bytes;
	struct bytes_text machine; /* text: uname -m */
	struct bytes_text system;  /* text: uname -s -r */
};

struct journal_capture {
	struct bytes_text
		json; /* text: one object, for people and capture.json; see docs/protocol.md */
};

struct journal_string {
	uint64_t id;
	struct bytes_text text;
};

struct journal_metric {
	uint64_t id;     /* from 1 */
	uint64_t name;   /* string id: "cpu", "offcpu", "wall" */
	uint64_t unit;   /* enum journal_unit */
	uint64_t period; /* the weight of a sample that carries none, in the unit */
};

struct journal_process {
	uint64_t time_ns; /* time */
	uint64_t pid;
	uint64_t parent_pid;
	uint64_t name;       /* string id; the kernel's short name */
	uint64_t executable; /* string id of a path, 0: not known yet */
	uint64_t is_exec; /* 1: the same pid runs another program from here on, its mappings are gone */
	uint64_t is_fork; /* 1: begins with a copy of the parent's mappings */
};

struct journal_process_end {
	uint64_t time_ns; /* time */
	uint64_t pid;
};

struct journal_thread {
	uint64_t time_ns; /* time */
	uint64_t pid;
	uint64_t
		tid; /* one id space over all processes; an id that comes again is a new thread, or a new name of a living one */
	uint64_t name; /* string id */
};

struct journal_thread_end {
	uint64_t time_ns; /* time */
	uint64_t tid;
};

struct journal_image {
	uint64_t id;
	uint64_t kind;   /* enum journal_image_kind */
	uint64_t path;   /* string id; as the target sees it */
	uint64_t device; /* major << 32 | minor */
	uint64_t inode;
	uint64_t inode_generation;
	struct bytes_text
		build_id;    /* text: the raw bytes of a GNU build id or a Mach-O UUID, or empty */
	uint64_t access; /* enum journal_image_access */
};

/* Whether the profiler holds the file open; if not, why. Numbers that a reader does not know are JOURNAL_IMAGE_NOT_OPENED. */
enum journal_image_access {
	JOURNAL_IMAGE_NOT_OPENED = 0, /* not permitted, no descriptors left, or not a file */
	JOURNAL_IMAGE_OPENED = 1,
	JOURNAL_IMAGE_DELETED = 2,
	JOURNAL_IMAGE_REPLACED = 3, /* another file has its name */
};

struct journal_mapping {
	uint64_t time_ns; /* time */
	uint64_t pid;
	uint64_t start;
	uint64_t length;
	uint64_t file_offset;
	uint64_t image;      /* image id */
	uint64_t protection; /* PROT_READ 1, PROT_WRITE 2, PROT_EXEC 4 */
};

struct journal_unmapping {
	uint64_t time_ns; /* time */
	uint64_t pid;
	uint64_t start;
	uint64_t length;
};

struct journal_frame {
	uint64_t id;
	uint64_t kind;     /* JOURNAL_FRAME_INTERPRETED or JOURNAL_FRAME_MARKER */
	uint64_t name;     /* string id */
	uint64_t file;     /* string id */
	uint64_t line;     /* 0: unknown */
	uint64_t language; /* string id: "python" */
};

/*
 * The frames run from the leaf outwards, in runs of one kind:
 *   id pid end(enum journal_stack_end) frame_count run*,  run = varint (run length << 3 | kind), then per frame a signed
 *   difference to the previous frame's value in this stack (the first: to 0).
 * In memory: values[i] and kinds[i].
 */
struct journal_stack {
	uint64_t id;
	uint64_t pid;
	uint64_t end; /* enum journal_stack_end */
	uint64_t frame_count;
	const uint64_t *values; /* decoded: borrowed from the reader until its next record */
	const uint8_t *kinds;   /* enum journal_frame_kind */
};

struct journal_sample {
	uint64_t time_ns; /* time */
	uint64_t tid;     /* its THREAD names the process */
	uint64_t stack;   /* stack id; 0: none could be taken */
	uint64_t state;   /* enum journal_state */
	uint64_t metric;  /* metric id */
	uint64_t weight;  /* in the metric's unit; 0: the metric's period */
};

struct journal_loss_record {
	uint64_t time_ns; /* time */
	uint64_t cause;   /* enum journal_loss */
	uint64_t count;
	uint64_t cpu;         /* number + 1; 0: not one CPU */
	uint64_t withheld_ns; /* throttled: for how long in all; told at the end, with count 0 */
};

struct journal_cpu_time {
	uint64_t time_ns; /* time */
	uint64_t pid;
	uint64_t tid;      /* 0: the whole process */
	uint64_t total_ns; /* CPU time consumed while it was recorded, by the kernel's own clock */
	uint64_t user_ns;  /* of that in user mode; 0 with system_ns 0: not known */
	uint64_t system_ns;
};

struct journal_mark {
	uint64_t time_ns; /* time */
	uint64_t pid;
	uint64_t tid;   /* 0: the whole process */
	uint64_t name;  /* string id */
	uint64_t value; /* a frame number, or 0 */
};

struct journal_note {
	uint64_t code; /* string id of a snake_case name: "images_not_opened" */
	uint64_t text; /* string id */
};

struct journal_end {
	uint64_t time_ns; /* time */
	uint64_t reason;  /* string id of the contract's reason: "duration" */
	uint64_t samples; /* in all segments ever written */
	uint64_t lost;
};

/* One record, for writing and reading. Texts are borrowed. */
struct journal_record {
	enum journal_type type;
	union {
		struct journal_segment segment;
		struct journal_capture capture;
		struct journal_string string;
		struct journal_metric metric;
		struct journal_process process;
		struct journal_process_end process_end;
		struct journal_thread thread;
		struct journal_thread_end thread_end;
		struct journal_image image;
		struct journal_mapping mapping;
		struct journal_unmapping unmapping;
		struct journal_frame frame;
		struct journal_stack stack;
		struct journal_sample sample;
		struct journal_loss_record loss;
		struct journal_cpu_time cpu_time;
		struct journal_mark mark;
		struct journal_note note;
		struct journal_end end;
	};
};

/*
 * Encoding, pure. *last_time_ns is the chunk's running time (set it to 0 when a chunk begins). Appends one record; false only when
 * memory is out (then out is as before). A sample takes no allocation once out has room.
 */
bool journal_encode(
	struct buffer *out, const struct journal_record *record, uint64_t *last_time_ns);

/* Fills in the 24 bytes at header for a payload. */
void journal_seal(uint8_t header[JOURNAL_HEADER_BYTES], uint32_t segment, uint32_t chunk,
	const void *payload, uint32_t payload_len);

/*
 * Decoding, over the bytes of a whole file (or of its readable part). Pure; one thread. The reader checks everything: bytes may be
 * broken or hostile. It keeps one scratch area for the frames of the latest stack.
 */
struct journal_reader;

enum journal_result {
	JOURNAL_READ_RECORD, /* *record; its texts and frames are valid until the next call */
	JOURNAL_READ_END,    /* the end of the bytes, behind a whole chunk */
	JOURNAL_READ_BAD, /* a chunk, or a record in it, is not right: journal_reader_problem says what. Final */
};

/* data is borrowed for the reader's life. NULL when memory is out. */
struct journal_reader *journal_reader_create(const uint8_t *data, size_t len);
void journal_reader_destroy(struct journal_reader *reader);
/* Records that are known; unknown types are skipped. */
enum journal_result journal_reader_next(
	struct journal_reader *reader, struct journal_record *record);
/* The byte offset behind the last whole chunk: what recovery keeps. */
size_t journal_reader_good_bytes(const struct journal_reader *reader);
/* One sentence with the offset after JOURNAL_READ_BAD; "" otherwise. Borrowed. */
const char *journal_reader_problem(const struct journal_reader *reader);

#endif
