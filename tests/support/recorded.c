#include "support/recorded.h"

#include <stdlib.h>
#include <string.h>

#define FRAMES 256

static void must(bool done)
{
	if (!done) {
		abort();
	}
}

void recorded_finish(struct recorded *recorded)
{
	buffer_finish(&recorded->bytes);
	buffer_finish(&recorded->payload);
}

void recorded_add(struct recorded *recorded, const struct journal_record *record)
{
	must(journal_encode(&recorded->payload, record, &recorded->last_time_ns));
}

void recorded_seal(struct recorded *recorded)
{
	uint8_t header[JOURNAL_HEADER_BYTES];

	if (recorded->payload.len == 0) {
		return;
	}
	journal_seal(header, recorded->segment, recorded->chunk++, recorded->payload.data,
		(uint32_t)recorded->payload.len);
	must(buffer_append(&recorded->bytes, header, sizeof(header)));
	must(buffer_append(&recorded->bytes, recorded->payload.data, recorded->payload.len));
	recorded->payload.len = 0;
	recorded->last_time_ns = 0;
}

void recorded_begin(struct recorded *recorded)
{
	recorded_seal(recorded);
	recorded->segment += recorded->bytes.len > 0;
	recorded->chunk = 0;
	recorded_add(recorded, &(struct journal_record){.type = JOURNAL_SEGMENT,
							   .segment = {JOURNAL_VERSION, JOURNAL_CLOCK_MONOTONIC, 1000, 2000, 8,
								   4096, bytes_text_of("x86_64"), bytes_text_of("Linux 6.1")}});
}

void recorded_text(struct recorded *recorded, uint64_t id, const char *text)
{
	recorded_add(recorded,
		&(struct journal_record){.type = JOURNAL_STRING, .string = {id, bytes_text_of(text)}});
}

void recorded_metric(struct recorded *recorded, uint64_t id, uint64_t name_id, uint64_t period)
{
	recorded_text(recorded, name_id, "cpu");
	recorded_add(recorded, &(struct journal_record){.type = JOURNAL_METRIC,
							   .metric = {id, name_id, JOURNAL_UNIT_NANOSECONDS, period}});
}

void recorded_process(struct recorded *recorded, uint64_t pid, uint64_t parent, uint64_t name)
{
	recorded_add(recorded, &(struct journal_record){.type = JOURNAL_PROCESS,
							   .process = {1500, pid, parent, name, 0, 0, 0}});
}

void recorded_thread(struct recorded *recorded, uint64_t pid, uint64_t tid, uint64_t name)
{
	recorded_add(recorded,
		&(struct journal_record){.type = JOURNAL_THREAD, .thread = {1600, pid, tid, name}});
}

void recorded_image(struct recorded *recorded, uint64_t id, uint64_t kind, uint64_t path)
{
	recorded_add(recorded, &(struct journal_record){.type = JOURNAL_IMAGE,
							   .image = {.id = id,
								   .kind = kind,
								   .path = path,
								   .inode = id,
								   .access = JOURNAL_IMAGE_OPENED}});
}

void recorded_map(struct recorded *recorded, uint64_t pid, uint64_t start, uint64_t length,
	uint64_t file_offset, uint64_t image)
{
	recorded_add(recorded, &(struct journal_record){.type = JOURNAL_MAPPING,
							   .mapping = {1700, pid, start, length, file_offset, image, 5}});
}

void recorded_stack(struct recorded *recorded, uint64_t id, uint64_t pid, uint64_t end,
	const struct recorded_frame *frames, size_t count)
{
	uint64_t values[FRAMES];
	uint8_t kinds[FRAMES];

	must(count <= FRAMES);
	for (size_t i = 0; i < count; i++) {
		values[i] = frames[i].value;
		kinds[i] = frames[i].kind;
	}
	recorded_add(recorded, &(struct journal_record){.type = JOURNAL_STACK,
							   .stack = {id, pid, end, count, values, kinds}});
}

void recorded_samples(struct recorded *recorded, uint64_t tid, uint64_t stack, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		recorded_add(recorded, &(struct journal_record){.type = JOURNAL_SAMPLE,
								   .sample = {2000 + i, tid, stack, 0, 1, 0}});
	}
}
