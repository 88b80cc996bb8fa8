/*
 * The kernel's ring buffers: their merging, and what the records say. The first bytes say how the rest is laid into two
 * small rings: where their heads and tails are, and whether it is bytes as they are or records whose headers are made
 * right, since anything else ends a ring at once.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <linux/perf_event.h>

#include "sampler/perf_record.h"
#include "sampler/perf_ring.h"

#define RING_BYTES    1024
#define CONTROL_BYTES 4
#define MAX_DEPTH     4
#define TICK_NS       4000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct desk {
	uint64_t bytes[2][RING_BYTES / 8];
	struct perf_ring rings[2];
	struct perf_merge_slot heap[2];
	struct perf_records records;
	struct sampler_counters counters;
	uint64_t last_ns; /* the sink's time never falls */
	size_t calls;
	uint64_t sum;
};

static void see_time(struct desk *desk, uint64_t time_ns)
{
	if (time_ns < desk->last_ns) {
		abort();
	}
	desk->last_ns = time_ns;
	desk->calls++;
}

static void see_name(const char *name)
{
	if (strlen(name) > 15) {
		abort();
	}
}

static void on_process(void *context, const struct sampler_process *process)
{
	see_time(context, process->time_ns);
	see_name(process->name);
}

static void on_process_end(void *context, uint64_t time_ns, pid_t pid)
{
	(void)pid;
	see_time(context, time_ns);
}

static void on_thread(void *context, const struct sampler_thread *thread)
{
	see_time(context, thread->time_ns);
	see_name(thread->name);
}

static void on_thread_end(void *context, uint64_t time_ns, pid_t pid, pid_t tid)
{
	(void)pid;
	(void)tid;
	see_time(context, time_ns);
}

static void on_mapping(void *context, const struct sampler_mapping *mapping)
{
	see_time(context, mapping->time_ns);
	if (mapping->start + mapping->length < mapping->start || !(mapping->protection & 4) ||
		strlen(mapping->path) >= RING_BYTES) {
		abort();
	}
}

static void see_copy(struct desk *desk, const struct sampler_sample *sample)
{
	for (size_t i = 0; i < sample->stack_bytes; i++) {
		desk->sum += sample->stack[i];
	}
	for (size_t i = 0; sample->registers != NULL && i < SAMPLER_REGISTERS; i++) {
		desk->sum += sample->registers_known >> i & 1 ? sample->registers[i] : 0;
	}
	if (sample->stack_bytes > RING_BYTES) {
		abort();
	}
}

static void on_sample(void *context, const struct sampler_sample *sample)
{
	struct desk *desk = context;
	see_time(desk, sample->time_ns);
	see_copy(desk, sample);
	for (size_t i = 0; i < sample->kernel_count; i++) {
		desk->sum += sample->kernel_frames[i];
	}
	for (size_t i = 0; i < sample->user_count; i++) {
		desk->sum += sample->user_frames[i];
		if (sample->user_frames[i] >= PERF_CONTEXT_MAX) {
			abort();
		}
	}
}

static void on_loss(
	void *context, uint64_t time_ns, enum sampler_loss cause, uint64_t count, int cpu)
{
	(void)count;
	see_time(context, time_ns);
	if (cause > SAMPLER_LOSS_MALFORMED || cpu < 4 || cpu > 5) {
		abort();
	}
}

static void put(struct perf_ring *ring, uint64_t *words, uint64_t word)
{
	words[ring->head % RING_BYTES / 8] = word;
	ring->head += 8;
}

/* A record of the next bytes: type, number of words behind the header, misc, and those words' bytes. */
static size_t put_record(struct perf_ring *ring, uint64_t *words, const uint8_t *data, size_t size)
{
	static const uint32_t types[] = {PERF_RECORD_SAMPLE, PERF_RECORD_MMAP2, PERF_RECORD_COMM,
		PERF_RECORD_FORK, PERF_RECORD_EXIT, PERF_RECORD_LOST, PERF_RECORD_LOST_SAMPLES,
		PERF_RECORD_THROTTLE};
	size_t count = data[1] % 48;
	size_t room = (RING_BYTES - (size_t)(ring->head - ring->tail)) / 8;
	if (size < 3 + count * 8 || room < count + 1) {
		return size;
	}
	uint64_t header = types[data[0] % 8] |
					  (uint64_t)(data[2] & 1 ? PERF_RECORD_MISC_COMM_EXEC : 0) << 32 |
					  (uint64_t)(8 + 8 * count) << 48;
	put(ring, words, header);
	for (size_t i = 0; i < count; i++) {
		uint64_t word;
		memcpy(&word, data + 3 + 8 * i, sizeof(word));
		/* A byte that is all ones makes one of the kernel's marks of it. */
		put(ring, words, (word & 0xff) == 0xff ? UINT64_MAX - (word >> 8) % 4096 : word);
	}
	return 3 + count * 8;
}

static void fill(struct desk *desk, const uint8_t *data, size_t size)
{
	for (size_t i = 0, used; size >= 3; i++, data += used, size -= used) {
		used = put_record(&desk->rings[i % 2], desk->bytes[i % 2], data, size);
	}
}

static void fill_raw(struct desk *desk, const uint8_t *data, size_t size)
{
	size_t len = size < sizeof(desk->bytes) ? size : sizeof(desk->bytes);
	memcpy(desk->bytes, data, len);
	for (int i = 0; i < 2; i++) {
		desk->rings[i].head += len / 2;
	}
}

static void drain(struct desk *desk, uint64_t until_ns)
{
	static _Alignas(8) uint8_t scratch[PERF_RING_RECORD_BYTES];
	struct perf_merge merge = {
		.rings = desk->rings,
		.count = 2,
		.heap = desk->heap,
		.scratch = scratch,
		.context = &desk->records,
		.record = perf_records_take,
		.broken = perf_records_broken,
	};
	perf_merge_drain(&merge, until_ns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < CONTROL_BYTES) {
		return 0;
	}
	struct desk desk = {0};
	for (int i = 0; i < 2; i++) {
		uint64_t at = (data[0] & 2 ? UINT64_MAX - 511 : 0) + data[1 + i] * 8u;
		desk.rings[i] = (struct perf_ring){.data = (const uint8_t *)desk.bytes[i],
			.size = RING_BYTES,
			.head = at,
			.tail = at,
			.cpu = 4 + i};
	}
	uint64_t copies = data[0] & 4 ? PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER : 0;
	desk.records = (struct perf_records){
		.sink = {&desk, on_process, on_process_end, on_thread, on_thread_end, on_mapping, on_sample,
			on_loss, NULL, NULL, NULL},
		.counters = &desk.counters,
		.max_depth = MAX_DEPTH,
		.sample_type =
			PERF_SAMPLE_TID | PERF_SAMPLE_TIME | (data[0] & 8 ? 0 : PERF_SAMPLE_CALLCHAIN) | copies,
		.tick_ns = TICK_NS,
		.pid = 100,
		.parent_pid = 1,
	};
	(data[0] & 1 ? fill_raw : fill)(&desk, data + CONTROL_BYTES, size - CONTROL_BYTES);
	drain(&desk, data[3]);
	drain(&desk, UINT64_MAX);
	if (desk.rings[0].head != desk.rings[0].tail || desk.rings[1].head != desk.rings[1].tail ||
		desk.calls > 4 * RING_BYTES / 8 ||
		desk.records.withheld_ns > 2 * RING_BYTES / 8 * TICK_NS) {
		abort();
	}
	perf_records_finish(&desk.records);
	return 0;
}
