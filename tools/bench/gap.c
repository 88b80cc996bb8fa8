/*
 * What a sample costs the target: the hole that it leaves in a thread that does nothing but look at the clock, with the
 * sampler's events and with the same event without a call chain, in turns; with "dwarf" the sampler copies 16 KiB of the stack in place of
 * following frame pointers. Usage: bench-gap [seconds [rounds [hz [frames [fp|dwarf]]]]]
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/spin.h"
#include "sampler/sampler.h"

#define ROUNDS_MAX 100
#define TIMES_MAX  SPIN_HOLES_MAX
#define COPY_BYTES 16384
#define RING_BYTES (4u * 1024 * 1024) /* all samples of a round */

struct times {
	size_t count;
	uint64_t ns[TIMES_MAX];
};

static void note(struct times *times, uint64_t time_ns)
{
	if (times->count < TIMES_MAX) {
		times->ns[times->count++] = time_ns;
	}
}

/* The sampler: a sink that keeps the times. */

static void on_sample(void *context, const struct sampler_sample *sample)
{
	note(context, sample->time_ns);
}

static void on_process(void *context, const struct sampler_process *process)
{
	(void)context;
	(void)process;
}

static void on_thread(void *context, const struct sampler_thread *thread)
{
	(void)context;
	(void)thread;
}

static void on_mapping(void *context, const struct sampler_mapping *mapping)
{
	(void)context;
	(void)mapping;
}

static void on_process_end(void *context, uint64_t time_ns, pid_t pid)
{
	(void)context;
	(void)time_ns;
	(void)pid;
}

static void on_thread_end(void *context, uint64_t time_ns, pid_t pid, pid_t tid)
{
	(void)tid;
	on_process_end(context, time_ns, pid);
}

static void on_loss(
	void *context, uint64_t time_ns, enum sampler_loss cause, uint64_t count, int cpu)
{
	(void)cause;
	(void)count;
	on_process_end(context, time_ns, cpu);
}

static void on_drained(void *context, uint64_t now_ns)
{
	(void)context;
	(void)now_ns;
}

static void on_throttled(void *context, uint64_t time_ns, uint64_t withheld_ns)
{
	(void)withheld_ns;
	on_process_end(context, time_ns, 0);
}

static void on_cpu_time(void *context, const struct sampler_cpu_time *time)
{
	on_process_end(context, time->time_ns, time->pid);
}

static bool sample_with_chain(
	pid_t pid, uint64_t hz, unsigned seconds, bool copies, struct times *times)
{
	struct sampler *sampler;
	struct sampler_effective effective;
	struct error err = {0};
	struct sampler_config config = {
		.pid = pid,
		.hz = hz,
		.stack_bytes = copies ? COPY_BYTES : 0,
		.sink = {times, on_process, on_process_end, on_thread, on_thread_end, on_mapping, on_sample,
			on_loss, on_drained, on_throttled, on_cpu_time},
	};
	if (!sampler_perf_ops.start(&config, &sampler, &effective, &err)) {
		fprintf(stderr, "%s\n", err.message);
		return false;
	}
	sleep(seconds);
	sampler_perf_ops.stop(sampler);
	return true;
}

/* The event alone: pid and tid, time. The ring is read at the end. */

static void read_ring(const void *area, size_t page_bytes, struct times *times)
{
	const struct perf_event_mmap_page *page = area;
	const char *data = (const char *)area + page_bytes;
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	for (uint64_t at = 0; at < head && at + 24 <= RING_BYTES;) {
		struct perf_event_header header;
		uint64_t time_ns;
		memcpy(&header, data + at, sizeof(header));
		memcpy(&time_ns, data + at + 16, sizeof(time_ns));
		if (header.type == PERF_RECORD_SAMPLE) {
			note(times, time_ns);
		}
		at += header.size;
	}
}

static bool sample_without_chain(
	pid_t pid, int cpu, uint64_t hz, unsigned seconds, struct times *times)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = (1000000000 / hz) | 1,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
		.inherit = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	void *area =
		fd < 0 ? MAP_FAILED
			   : mmap(NULL, RING_BYTES + page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (area == MAP_FAILED) {
		fprintf(stderr, "an event without chain: %s\n", strerror(errno));
		return false;
	}
	sleep(seconds);
	read_ring(area, page_bytes, times);
	munmap(area, RING_BYTES + page_bytes);
	close(fd);
	return true;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* Both are in the order of time. Returns how many gaps were found. */
static size_t match(const struct spin_holes *holes, const struct times *times, uint64_t *gaps)
{
	size_t found = 0, hole = 0;
	for (size_t i = 0; i < times->count; i++) {
		while (hole < holes->count && holes->holes[hole].end_ns < times->ns[i]) {
			hole++;
		}
		if (hole < holes->count && holes->holes[hole].begin_ns <= times->ns[i]) {
			gaps[found++] = holes->holes[hole].end_ns - holes->holes[hole].begin_ns;
		}
	}
	qsort(gaps, found, sizeof(*gaps), compare);
	return found;
}

struct bench {
	unsigned seconds;
	uint64_t hz;
	int frames, cpu;
	bool copies;
	struct times times;
	uint64_t gaps[TIMES_MAX];
};

static bool measure(struct bench *bench, bool has_chain, uint64_t *p5, uint64_t *p50)
{
	struct spin_holes *holes = spin_holes_create();
	pid_t pid = holes ? spin_watch(holes, bench->cpu, bench->frames) : -1;
	if (pid < 0) {
		fprintf(stderr, "no target: %s\n", strerror(errno));
		spin_holes_destroy(holes);
		return false;
	}
	usleep(50000);
	bench->times.count = 0;
	bool done =
		has_chain ? sample_with_chain(pid, bench->hz, bench->seconds, bench->copies, &bench->times)
				  : sample_without_chain(pid, bench->cpu, bench->hz, bench->seconds, &bench->times);
	holes->must_end = 1;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	size_t found = match(holes, &bench->times, bench->gaps);
	spin_holes_destroy(holes);
	if (!done || found == 0) {
		return false;
	}
	*p5 = bench->gaps[found / 20];
	*p50 = bench->gaps[found / 2];
	printf("%-13s %7zu samples %7zu matched  p5 %6.2f us  median %6.2f us\n",
		has_chain ? "with chain" : "without chain", bench->times.count, found, (double)*p5 / 1000,
		(double)*p50 / 1000);
	fflush(stdout);
	return true;
}

static bool run(struct bench *bench, size_t rounds)
{
	uint64_t p5[2][ROUNDS_MAX], p50[2][ROUNDS_MAX];
	for (size_t i = 0; i < rounds; i++) {
		for (int chain = 0; chain < 2; chain++) {
			if (!measure(bench, chain, &p5[chain][i], &p50[chain][i])) {
				return false;
			}
		}
	}
	for (int chain = 0; chain < 2; chain++) {
		qsort(p5[chain], rounds, sizeof(uint64_t), compare);
		qsort(p50[chain], rounds, sizeof(uint64_t), compare);
	}
	printf("median of rounds: with chain above without: p5 %+.2f us, median %+.2f us\n",
		((double)p5[1][rounds / 2] - (double)p5[0][rounds / 2]) / 1000,
		((double)p50[1][rounds / 2] - (double)p50[0][rounds / 2]) / 1000);
	return true;
}

int main(int argc, char **argv)
{
	unsigned seconds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 2;
	size_t rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 5;
	uint64_t hz = argc > 3 ? strtoull(argv[3], NULL, 10) : 4999;
	int frames = argc > 4 ? atoi(argv[4]) : 38;
	if (seconds == 0 || rounds == 0 || rounds > ROUNDS_MAX || hz == 0 || frames < 0) {
		fprintf(stderr, "usage: bench-gap [seconds [rounds [hz [frames [fp|dwarf]]]]]\n");
		return 2;
	}
	struct bench *bench = calloc(1, sizeof(*bench));
	if (!bench) {
		return 1;
	}
	*bench = (struct bench){.seconds = seconds, .hz = hz, .frames = frames};
	bench->copies = argc > 5 && strcmp(argv[5], "dwarf") == 0;
	bench->cpu = (int)sysconf(_SC_NPROCESSORS_ONLN) - 1;
	bool done = run(bench, rounds);
	free(bench);
	return done ? 0 : 1;
}
