#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <linux/perf_event.h>

#include "sampler/perf_record.h"
#include "sampler/perf_registers.h"
#include "sampler/perf_ring.h"

/* Two rings of 4 KiB, filled by hand as perf_event_open(2) lays them out, and a sink that writes a line for each call. */
#define RING_BYTES 4096

struct desk {
	uint64_t bytes[2][RING_BYTES / 8];
	struct perf_ring rings[2];
	struct perf_merge_slot heap[2];
	_Alignas(8) uint8_t scratch[PERF_RING_RECORD_BYTES];
	struct perf_merge merge;
	struct perf_records records;
	struct sampler_counters counters;
	char log[8192];
	uint64_t last_ns;
	bool is_ordered;
};

static void say(struct desk *desk, uint64_t time_ns, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static void say(struct desk *desk, uint64_t time_ns, const char *format, ...)
{
	size_t used = strlen(desk->log);
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(desk->log + used, sizeof(desk->log) - used, format, arguments);
	va_end(arguments);
	desk->is_ordered &= time_ns >= desk->last_ns;
	desk->last_ns = time_ns;
}

static void on_process(void *context, const struct sampler_process *process)
{
	say(context, process->time_ns, "process %d of %d %s%s%s\n", process->pid, process->parent_pid,
		process->name, process->is_exec ? " exec" : "", process->is_fork ? " fork" : "");
}

static void on_process_end(void *context, uint64_t time_ns, pid_t pid)
{
	say(context, time_ns, "process end %d\n", pid);
}

static void on_thread(void *context, const struct sampler_thread *thread)
{
	say(context, thread->time_ns, "thread %d/%d %s\n", thread->pid, thread->tid, thread->name);
}

static void on_thread_end(void *context, uint64_t time_ns, pid_t pid, pid_t tid)
{
	say(context, time_ns, "thread end %d/%d\n", pid, tid);
}

static void on_mapping(void *context, const struct sampler_mapping *mapping)
{
	say(context, mapping->time_ns, "mapping %d %llx+%llx @%llx %x:%x %llu.%llu %u %s\n",
		mapping->pid, (unsigned long long)mapping->start, (unsigned long long)mapping->length,
		(unsigned long long)mapping->file_offset, mapping->device_major, mapping->device_minor,
		(unsigned long long)mapping->inode, (unsigned long long)mapping->inode_generation,
		mapping->protection, mapping->path);
}

static void on_sample(void *context, const struct sampler_sample *sample)
{
	say(context, sample->time_ns, "sample %llu %d/%d", (unsigned long long)sample->time_ns,
		sample->pid, sample->tid);
	for (size_t i = 0; i < sample->kernel_count; i++) {
		say(context, sample->time_ns, " k%llx", (unsigned long long)sample->kernel_frames[i]);
	}
	for (size_t i = 0; i < sample->user_count; i++) {
		say(context, sample->time_ns, " u%llx", (unsigned long long)sample->user_frames[i]);
	}
	if (sample->registers != NULL) {
		say(context, sample->time_ns, " known %llx pc %llx r7 %llx",
			(unsigned long long)sample->registers_known, (unsigned long long)sample->pc,
			(unsigned long long)sample->registers[7]);
	}
	if (sample->stack != NULL) {
		say(context, sample->time_ns, " stack %zu%s of %02x", sample->stack_bytes,
			sample->stack_ended ? ", no more" : "", sample->stack[0]);
	}
	say(context, sample->time_ns, "%s\n", sample->cut ? " cut" : "");
}

static void on_loss(
	void *context, uint64_t time_ns, enum sampler_loss cause, uint64_t count, int cpu)
{
	static const char *const names[] = {"ring", "throttled", "malformed"};
	say(context, time_ns, "loss %s %llu cpu %d\n", names[cause], (unsigned long long)count, cpu);
}

static int setup(void **state)
{
	struct desk *desk = calloc(1, sizeof(*desk));
	assert_non_null(desk);
	desk->is_ordered = true;
	for (int i = 0; i < 2; i++) {
		desk->rings[i] = (struct perf_ring){
			.data = (const uint8_t *)desk->bytes[i],
			.size = RING_BYTES,
			.cpu = 4 + i,
		};
	}
	desk->records = (struct perf_records){
		.sink = {desk, on_process, on_process_end, on_thread, on_thread_end, on_mapping, on_sample,
			on_loss, NULL, NULL, NULL},
		.counters = &desk->counters,
		.max_depth = 4,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN,
		.pid = 100,
		.parent_pid = 1,
	};
	desk->merge = (struct perf_merge){
		.rings = desk->rings,
		.count = 2,
		.heap = desk->heap,
		.scratch = desk->scratch,
		.context = &desk->records,
		.record = perf_records_take,
		.broken = perf_records_broken,
	};
	*state = desk;
	return 0;
}

static int teardown(void **state)
{
	struct desk *desk = *state;
	perf_records_finish(&desk->records);
	free(desk);
	return 0;
}

/* Words of 8 bytes at the head, over the end if need be. */
static void put(struct desk *desk, int ring, uint64_t word)
{
	struct perf_ring *to = &desk->rings[ring];
	desk->bytes[ring][to->head % RING_BYTES / 8] = word;
	to->head += 8;
}

static void put_header(struct desk *desk, int ring, uint32_t type, uint16_t misc, uint16_t size)
{
	put(desk, ring, type | (uint64_t)misc << 32 | (uint64_t)size << 48);
}

static uint64_t pair(uint32_t low, uint32_t high)
{
	return low | (uint64_t)high << 32;
}

static void put_sample(
	struct desk *desk, int ring, uint64_t time_ns, size_t count, const uint64_t *chain)
{
	put_header(desk, ring, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, (uint16_t)(32 + 8 * count));
	put(desk, ring, pair(100, 101));
	put(desk, ring, time_ns);
	put(desk, ring, count);
	for (size_t i = 0; i < count; i++) {
		put(desk, ring, chain[i]);
	}
}

static void put_frame(struct desk *desk, int ring, uint64_t time_ns, uint64_t frame)
{
	put_sample(desk, ring, time_ns, 2, (uint64_t[]){PERF_CONTEXT_USER, frame});
}

/* Any other record: its body, then pid, tid and time. */
static void put_record(
	struct desk *desk, uint32_t type, uint16_t misc, uint64_t time_ns, const void *body, size_t len)
{
	assert_int_equal(len % 8, 0);
	put_header(desk, 0, type, misc, (uint16_t)(8 + len + 16));
	for (size_t i = 0; i < len; i += 8) {
		uint64_t word;
		memcpy(&word, (const char *)body + i, 8);
		put(desk, 0, word);
	}
	put(desk, 0, pair(100, 100));
	put(desk, 0, time_ns);
}

static void put_task(struct desk *desk, uint32_t type, uint64_t time_ns, const uint32_t ids[4])
{
	uint64_t body[3] = {pair(ids[0], ids[1]), pair(ids[2], ids[3]), time_ns};
	put_record(desk, type, 0, time_ns, body, sizeof(body));
}

static void put_name(
	struct desk *desk, uint16_t misc, uint64_t time_ns, uint32_t tid, const char *name)
{
	uint64_t body[3] = {pair(100, tid), 0, 0};
	memcpy(&body[1], name, strlen(name));
	put_record(desk, PERF_RECORD_COMM, misc, time_ns, body, sizeof(body));
}

static void put_mapping(struct desk *desk, uint32_t protection, const char *name, size_t name_len)
{
	uint64_t body[8 + 8] = {
		pair(100, 100), 0x7000, 0x2000, 0x1000, pair(0xfe, 3), 77, 5, pair(protection, 2)};
	assert_true(name_len <= 64);
	memcpy(&body[8], name, name_len);
	put_record(desk, PERF_RECORD_MMAP2, 0, 10, body, 64 + (name_len + 7) / 8 * 8);
}

static void expect(struct desk *desk, uint64_t until_ns, const char *log)
{
	desk->log[0] = '\0';
	perf_merge_drain(&desk->merge, until_ns);
	assert_string_equal(desk->log, log);
	assert_true(desk->is_ordered);
}

static void merges_two_processors_by_time(void **state)
{
	put_frame(*state, 0, 10, 1);
	put_frame(*state, 0, 30, 3);
	put_frame(*state, 0, 31, 4);
	put_frame(*state, 1, 20, 2);
	put_frame(*state, 1, 40, 5);
	expect(*state, UINT64_MAX,
		"sample 10 100/101 u1\nsample 20 100/101 u2\nsample 30 100/101 u3\n"
		"sample 31 100/101 u4\nsample 40 100/101 u5\n");
}

static void leaves_what_is_too_young_in_the_ring(void **state)
{
	struct desk *desk = *state;
	put_frame(desk, 0, 10, 1);
	put_frame(desk, 0, 30, 3);
	put_frame(desk, 1, 21, 2);
	expect(desk, 20, "sample 10 100/101 u1\n");
	assert_int_equal(desk->rings[0].head - desk->rings[0].tail, 48);
	assert_int_equal(desk->rings[1].tail, 0);
	expect(desk, 20, "");
	expect(desk, 30, "sample 21 100/101 u2\nsample 30 100/101 u3\n");
}

static void reads_records_that_run_over_the_end_at_every_place(void **state)
{
	struct desk *desk = *state;
	for (uint64_t at = RING_BYTES - 64; at <= RING_BYTES; at += 8) {
		desk->rings[0].head = desk->rings[0].tail = at + (uint64_t)UINT32_MAX * RING_BYTES;
		put_frame(desk, 0, at, 0xabc);
		put_frame(desk, 0, at, 0xdef);
		char log[128];
		snprintf(log, sizeof(log), "sample %llu 100/101 uabc\nsample %llu 100/101 udef\n",
			(unsigned long long)at, (unsigned long long)at);
		expect(desk, UINT64_MAX, log);
	}
}

static void never_lets_time_fall(void **state)
{
	put_frame(*state, 0, 20, 1);
	put_frame(*state, 0, 19, 2);
	put_frame(*state, 0, 25, 3);
	expect(
		*state, UINT64_MAX, "sample 20 100/101 u1\nsample 20 100/101 u2\nsample 25 100/101 u3\n");
}

static void throws_the_rest_of_a_ring_away_when_a_size_cannot_be(void **state)
{
	static const uint16_t sizes[] = {0, 4, 7, 44, 56, 65528};
	struct desk *desk = *state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		put_frame(desk, 0, 10, 1);
		put_header(desk, 0, PERF_RECORD_SAMPLE, 0, sizes[i]);
		for (int word = 0; word < 5; word++) {
			put(desk, 0, 0);
		}
		put_frame(desk, 1, 20, 2);
		desk->records.last_ns = desk->last_ns = 0;
		expect(desk, UINT64_MAX,
			"sample 10 100/101 u1\nloss malformed 1 cpu 4\nsample 20 100/101 u2\n");
		assert_int_equal(desk->rings[0].tail, desk->rings[0].head);
	}
}

static void throws_a_ring_away_that_holds_more_than_its_size(void **state)
{
	struct desk *desk = *state;
	desk->rings[0].head = RING_BYTES + 8;
	expect(desk, UINT64_MAX, "loss malformed 1 cpu 4\n");
}

static void splits_the_chain_at_its_marks(void **state)
{
	put_sample(*state, 0, 10, 5,
		(uint64_t[]){PERF_CONTEXT_KERNEL, 0xffffffff81000001, PERF_CONTEXT_USER, 1, 2});
	put_sample(*state, 0, 11, 2, (uint64_t[]){PERF_CONTEXT_KERNEL, 0xffffffff81000002});
	put_sample(*state, 0, 12, 1, (uint64_t[]){PERF_CONTEXT_USER});
	put_sample(*state, 0, 13, 0, NULL);
	put_sample(*state, 0, 14, 4, (uint64_t[]){PERF_CONTEXT_GUEST, 9, PERF_CONTEXT_USER, 1});
	put_sample(*state, 0, 15, 2, (uint64_t[]){7, 8});
	expect(*state, UINT64_MAX,
		"sample 10 100/101 kffffffff81000001 u1 u2\nsample 11 100/101 kffffffff81000002\n"
		"sample 12 100/101\nsample 13 100/101\nsample 14 100/101 u1\nsample 15 100/101\n");
}

static void says_that_a_chain_of_the_greatest_depth_was_cut(void **state)
{
	put_sample(*state, 0, 10, 4, (uint64_t[]){PERF_CONTEXT_USER, 1, 2, 3});
	put_sample(*state, 0, 11, 5, (uint64_t[]){PERF_CONTEXT_USER, 1, 2, 3, 4});
	put_sample(*state, 0, 12, 6, (uint64_t[]){PERF_CONTEXT_KERNEL, 1, 2, PERF_CONTEXT_USER, 3, 4});
	expect(*state, UINT64_MAX,
		"sample 10 100/101 u1 u2 u3\nsample 11 100/101 u1 u2 u3 u4 cut\n"
		"sample 12 100/101 k1 k2 u3 u4 cut\n");
}

static void refuses_a_sample_that_counts_more_addresses_than_it_holds(void **state)
{
	struct desk *desk = *state;
	static const uint64_t counts[] = {2, UINT64_MAX, UINT64_MAX / 8 + 2};
	for (size_t i = 0; i < 3; i++) {
		put_header(desk, 0, PERF_RECORD_SAMPLE, 0, 40);
		put(desk, 0, pair(100, 101));
		put(desk, 0, 10);
		put(desk, 0, counts[i]);
		put(desk, 0, PERF_CONTEXT_USER);
		put_frame(desk, 0, 11, 1);
		desk->records.last_ns = desk->last_ns = 0;
		expect(desk, UINT64_MAX, "loss malformed 1 cpu 4\nsample 11 100/101 u1\n");
	}
	assert_int_equal(desk->counters.samples, 3);
}

static void refuses_records_that_are_too_short(void **state)
{
	struct desk *desk = *state;
	static const uint32_t types[] = {PERF_RECORD_SAMPLE, PERF_RECORD_MMAP2, PERF_RECORD_COMM,
		PERF_RECORD_FORK, PERF_RECORD_EXIT, PERF_RECORD_LOST};
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		put_header(desk, 0, types[i], 0, 8);
		put_header(desk, 0, types[i], 0, 24);
		put(desk, 0, 0);
		put(desk, 0, 0);
		expect(desk, UINT64_MAX, "loss malformed 1 cpu 4\nloss malformed 1 cpu 4\n");
	}
}

static void tells_mappings_of_code_with_their_file(void **state)
{
	put_mapping(*state, 5, "/lib/a.so", 10);
	put_mapping(*state, 5, "/lib/b.so (deleted)", 20);
	put_mapping(*state, 3, "/lib/data", 10);
	put_mapping(*state, 5, "//anon", 7);
	expect(*state, UINT64_MAX,
		"mapping 100 7000+2000 @1000 fe:3 77.5 5 /lib/a.so\n"
		"mapping 100 7000+2000 @1000 fe:3 77.5 5 /lib/b.so\n"
		"mapping 100 7000+2000 @1000 fe:3 77.5 5 //anon\n");
}

static void refuses_a_name_without_end(void **state)
{
	put_mapping(*state, 5, "/lib/aaa/bbb/ccc", 16);
	put_mapping(*state, 5, "", 0);
	expect(*state, UINT64_MAX, "loss malformed 1 cpu 4\nloss malformed 1 cpu 4\n");
}

static void gives_a_new_thread_the_name_of_its_maker(void **state)
{
	put_name(*state, PERF_RECORD_MISC_COMM_EXEC, 1, 100, "prog");
	put_task(*state, PERF_RECORD_FORK, 2, (uint32_t[]){100, 100, 101, 100});
	put_name(*state, 0, 3, 101, "worker");
	put_task(*state, PERF_RECORD_FORK, 4, (uint32_t[]){100, 100, 102, 101});
	put_task(*state, PERF_RECORD_FORK, 5, (uint32_t[]){200, 100, 200, 102});
	expect(*state, UINT64_MAX,
		"process 100 of 1 prog exec\nthread 100/100 prog\nthread 100/101 prog\nthread 100/101 "
		"worker\n"
		"thread 100/102 worker\nprocess 200 of 100 worker fork\nthread 200/200 worker\n");
}

static void ends_a_process_with_its_last_thread(void **state)
{
	struct desk *desk = *state;
	put_name(desk, PERF_RECORD_MISC_COMM_EXEC, 1, 100, "prog");
	put_task(desk, PERF_RECORD_FORK, 2, (uint32_t[]){100, 100, 101, 100});
	perf_merge_drain(&desk->merge, UINT64_MAX);
	put_task(
		desk, PERF_RECORD_EXIT, 3, (uint32_t[]){100, 1, 100, 1}); /* main has called pthread_exit */
	put_task(desk, PERF_RECORD_EXIT, 4, (uint32_t[]){100, 1, 101, 1});
	expect(desk, UINT64_MAX, "thread end 100/100\nthread end 100/101\nprocess end 100\n");
}

static void knows_that_an_exec_ends_the_other_threads(void **state)
{
	struct desk *desk = *state;
	put_name(desk, PERF_RECORD_MISC_COMM_EXEC, 1, 100, "one");
	put_task(desk, PERF_RECORD_FORK, 2, (uint32_t[]){100, 100, 101, 100});
	put_task(desk, PERF_RECORD_EXIT, 3, (uint32_t[]){100, 1, 100, 1});
	put_name(desk, PERF_RECORD_MISC_COMM_EXEC, 4, 100, "two"); /* by thread 101, which is 100 now */
	perf_merge_drain(&desk->merge, UINT64_MAX);
	put_task(desk, PERF_RECORD_EXIT, 5, (uint32_t[]){100, 1, 100, 1});
	expect(desk, UINT64_MAX, "thread end 100/100\nprocess end 100\n");
}

static void counts_what_was_lost_and_throttled(void **state)
{
	struct desk *desk = *state;
	desk->records.tick_ns = 4000;
	put_record(desk, PERF_RECORD_LOST, 0, 1, (uint64_t[]){9, 17}, 16);
	put_record(desk, PERF_RECORD_LOST_SAMPLES, 0, 2, (uint64_t[]){4}, 8);
	put_record(desk, PERF_RECORD_THROTTLE, 0, 3, (uint64_t[]){3, 9, 9}, 24);
	put_record(desk, PERF_RECORD_UNTHROTTLE, 0, 4, (uint64_t[]){4, 9, 9}, 24);
	expect(desk, UINT64_MAX, "loss ring 17 cpu 4\nloss ring 4 cpu 4\nloss throttled 1 cpu 4\n");
	assert_int_equal(desk->records.withheld_ns, 1);
	/* The kernel's own count at the end: a ring to which nothing was written since has not told. */
	desk->log[0] = '\0';
	perf_records_lost(&desk->records, 5, 21);
	assert_string_equal(desk->log, "");
	perf_records_lost(&desk->records, 5, 30);
	perf_records_lost(&desk->records, 5, 30);
	assert_string_equal(desk->log, "loss ring 9 cpu -1\n");
	assert_int_equal(desk->counters.lost, 30);
	assert_int_equal(desk->counters.throttled, 1);
}

static void put_throttle(struct desk *desk, int ring, bool begins, uint64_t time, uint64_t stream)
{
	uint64_t words[] = {time, 9, stream, pair(100, 100), time};
	put_header(desk, ring, begins ? PERF_RECORD_THROTTLE : PERF_RECORD_UNTHROTTLE, 0, 48);
	for (size_t i = 0; i < 5; i++) {
		put(desk, ring, words[i]);
	}
}

/* A thread that leaves the processor while its event is throttled has it back much later: it did not run for so long. */
static void says_for_how_long_samples_were_withheld(void **state)
{
	struct desk *desk = *state;
	desk->records.tick_ns = 4000;
	put_throttle(desk, 0, true, 1000, 7);
	put_throttle(desk, 1, true, 2000, 8);
	put_throttle(desk, 1, false, 2100, 7); /* of the other processor */
	put_throttle(desk, 1, false, 2500, 8);
	put_throttle(desk, 0, false, 3500, 7);
	put_throttle(desk, 0, false, 3600, 7); /* is over */
	expect(desk, UINT64_MAX, "loss throttled 1 cpu 4\nloss throttled 1 cpu 5\n");
	assert_int_equal(desk->records.withheld_ns, 500 + 2500);
	put_throttle(desk, 0, true, 5000, 7);
	put_throttle(desk, 0, true, 6000, 10);
	put_throttle(desk, 0, false, 50000, 7);
	put_throttle(desk, 0, false, 60000, 10);
	expect(desk, UINT64_MAX, "loss throttled 1 cpu 4\nloss throttled 1 cpu 4\n");
	assert_int_equal(desk->records.withheld_ns, 3000 + 1000 + 4000);
}

/* A sample with registers, whose values are 0x100 and so on, and with stack bytes of which used are the stack's. */
static void put_copy(
	struct desk *desk, uint64_t abi, size_t registers, uint64_t size, size_t bytes, uint64_t used)
{
	size_t words = 3 + registers + 1 + bytes / 8 + (size != 0);
	put_header(desk, 0, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, (uint16_t)(8 + 8 * words));
	put(desk, 0, pair(100, 101));
	put(desk, 0, 10);
	put(desk, 0, abi);
	for (size_t i = 0; i < registers; i++) {
		put(desk, 0, 0x100 + i);
	}
	put(desk, 0, size);
	for (size_t i = 0; i < bytes; i += 8) {
		put(desk, 0, 0x7788);
	}
	if (size != 0) {
		put(desk, 0, used);
	}
}

static void copies_are_read(struct desk *desk, const char *expected)
{
	desk->records.sample_type =
		PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
	perf_merge_drain(&desk->merge, UINT64_MAX);
	assert_string_equal(desk->log, expected);
}

/* The kernel's order (asm/perf_regs.h) is ax bx cx dx si di bp sp ip r8…; DWARF's 7 is sp. */
static void tells_registers_and_the_copied_stack(void **state)
{
	size_t registers = (size_t)__builtin_popcountll(perf_registers_mask);
#if !defined(__x86_64__)
	skip();
#endif
	put_copy(*state, PERF_SAMPLE_REGS_ABI_64, registers, 64, 64, 40);
	/* A kernel thread, and one whose stack could not be read. */
	put_copy(*state, PERF_SAMPLE_REGS_ABI_NONE, 0, 0, 0, 0);
	put_copy(*state, PERF_SAMPLE_REGS_ABI_64, registers, 0, 0, 0);
	put_copy(*state, PERF_SAMPLE_REGS_ABI_32, registers, 64, 64, 0);
	put_copy(*state, PERF_SAMPLE_REGS_ABI_64, registers, 64, 64, 64);
	copies_are_read(*state, "sample 10 100/101 known ffff pc 108 r7 107 stack 40, no more of 88\n"
							"sample 10 100/101\n"
							"sample 10 100/101 known ffff pc 108 r7 107\n"
							"sample 10 100/101 stack 0, no more of 88\n"
							"sample 10 100/101 known ffff pc 108 r7 107 stack 64 of 88\n");
}

static void refuses_copies_that_contradict_themselves(void **state)
{
	size_t registers = (size_t)__builtin_popcountll(perf_registers_mask);
	put_copy(*state, PERF_SAMPLE_REGS_ABI_64, registers, 64, 64, 65);  /* more than was copied */
	put_copy(*state, PERF_SAMPLE_REGS_ABI_64, registers, 4096, 64, 8); /* longer than the record */
	put_copy(*state, PERF_SAMPLE_REGS_ABI_64, registers, UINT64_MAX, 64, 8);
	put_copy(*state, PERF_SAMPLE_REGS_ABI_64, 3, 0, 0, 0); /* too few registers */
	copies_are_read(*state, "loss malformed 1 cpu 4\nloss malformed 1 cpu 4\nloss malformed 1 cpu "
							"4\nloss malformed 1 cpu 4\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		CASE(merges_two_processors_by_time),
		CASE(leaves_what_is_too_young_in_the_ring),
		CASE(reads_records_that_run_over_the_end_at_every_place),
		CASE(never_lets_time_fall),
		CASE(throws_the_rest_of_a_ring_away_when_a_size_cannot_be),
		CASE(throws_a_ring_away_that_holds_more_than_its_size),
		CASE(splits_the_chain_at_its_marks),
		CASE(says_that_a_chain_of_the_greatest_depth_was_cut),
		CASE(refuses_a_sample_that_counts_more_addresses_than_it_holds),
		CASE(refuses_records_that_are_too_short),
		CASE(tells_registers_and_the_copied_stack),
		CASE(refuses_copies_that_contradict_themselves),
		CASE(tells_mappings_of_code_with_their_file),
		CASE(refuses_a_name_without_end),
		CASE(gives_a_new_thread_the_name_of_its_maker),
		CASE(ends_a_process_with_its_last_thread),
		CASE(knows_that_an_exec_ends_the_other_threads),
		CASE(counts_what_was_lost_and_throttled),
		CASE(says_for_how_long_samples_were_withheld),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
