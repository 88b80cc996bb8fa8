/*
 * What collecting costs: CPU time per sample of the sampling thread and the journal's, beside `perf record -g` on the
 * same target, in turns; with "dwarf" stacks are unwound from copies of 16 KiB, beside `perf record --call-graph dwarf,16384`, which
 * leaves the unwinding to perf script.
 * Usage: bench-collector [threads [seconds [rounds [hz [fp|dwarf]]]]]
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/spin.h"
#include "capture/pipeline.h"
#include "protocol/clock.h"
#include "sampler/sampler.h"

#define ROUNDS_MAX 100
#define COPY_BYTES 16384

struct cost {
	uint64_t samples, lost;
	uint64_t cpu_ns;   /* all of it */
	uint64_t fixed_ns; /* of that for starting and stopping; 0: not known */
};

static uint64_t cpu_of(const struct rusage *usage)
{
	return (uint64_t)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000000000u +
		   (uint64_t)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) * 1000u;
}

/* The whole process, starting and stopping included; the main thread sleeps in between. */
static uint64_t own_cpu_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static struct pipeline *open_pipeline(
	pid_t pid, uint64_t hz, struct codes *codes, struct journal_writer **writer, struct error *err)
{
	char name[] = "/tmp/bench-collector-XXXXXX";
	int fd = mkostemp(name, O_CLOEXEC);
	if (fd < 0) {
		error_errno(err, "%s", name);
		return NULL;
	}
	unlink(name);
	*writer = journal_writer_create(fd, 0, err);
	if (!*writer) {
		return NULL;
	}
	struct pipeline_options options = {
		.writer = *writer,
		.capture_json = "{}",
		.pid = pid,
		.period_ns = 1000000000 / hz,
		.unwind = codes != NULL ? SAMPLE_UNWIND_AUTO : SAMPLE_UNWIND_FP,
		.codes = codes,
		.stitches = true,
	};
	return pipeline_create(&options, err);
}

static bool measure_ours(pid_t pid, unsigned seconds, uint64_t hz, struct codes *codes,
	struct cost *cost, struct error *err)
{
	struct journal_writer *writer = NULL;
	struct sampler *sampler = NULL;
	struct sampler_effective effective;
	uint64_t before = own_cpu_ns();
	struct pipeline *pipeline = open_pipeline(pid, hz, codes, &writer, err);
	bool done = pipeline != NULL;
	if (done) {
		struct sampler_config config = {.pid = pid,
			.hz = hz,
			.stack_bytes = codes != NULL ? COPY_BYTES : 0,
			.more_stack_bytes = SAMPLER_STACK_BYTES_MAX,
			.sink = pipeline_sink(pipeline)};
		done = sampler_perf_ops.start(&config, &sampler, &effective, err);
	}
	if (done) {
		usleep(20000); /* what was there before is told */
		uint64_t begun = own_cpu_ns();
		cost->fixed_ns = begun - before;
		sleep(seconds);
		uint64_t stopped = own_cpu_ns();
		sampler_perf_ops.stop(sampler);
		cost->fixed_ns += own_cpu_ns() - stopped;
		pipeline_end(pipeline, "stopped", clock_monotonic_ns());
		cost->samples = pipeline_counters(pipeline)->samples;
		cost->lost = pipeline_counters(pipeline)->lost;
	}
	done = journal_writer_destroy(writer, false, done ? err : NULL) && done;
	pipeline_destroy(pipeline);
	cost->cpu_ns = own_cpu_ns() - before;
	return done;
}

/* "[ perf record: Captured and wrote 0.123 MB file (1998 samples) ]" */
static uint64_t samples_in(int fd)
{
	char text[8192];
	size_t len = 0;
	ssize_t got;
	while (len < sizeof(text) - 1 && (got = read(fd, text + len, sizeof(text) - 1 - len)) > 0) {
		len += (size_t)got;
	}
	text[len] = '\0';
	const char *bracket = strrchr(text, '(');
	return bracket ? strtoull(bracket + 1, NULL, 10) : 0;
}

static bool measure_perf(
	pid_t pid, unsigned seconds, uint64_t hz, const char *chain, struct cost *cost)
{
	char target[16], rate[24], duration[16];
	int said[2];
	struct rusage usage;
	snprintf(target, sizeof(target), "%d", (int)pid);
	snprintf(rate, sizeof(rate), "%" PRIu64, hz);
	snprintf(duration, sizeof(duration), "%u", seconds);
	if (pipe2(said, O_CLOEXEC) != 0) {
		return false;
	}
	pid_t child = fork();
	if (child == 0) {
		dup2(said[1], 2);
		dup2(said[1], 1);
		execlp("perf", "perf", "record", "-F", rate, "--call-graph", chain, "-o",
			"/tmp/bench-collector.perf", "-p", target, "--", "sleep", duration, (char *)NULL);
		_exit(127);
	}
	close(said[1]);
	cost->samples = samples_in(said[0]);
	close(said[0]);
	unlink("/tmp/bench-collector.perf");
	if (child < 0 || wait4(child, NULL, 0, &usage) != child) {
		return false;
	}
	cost->cpu_ns = cpu_of(&usage);
	return cost->samples > 0;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double tell(const char *name, const struct cost *cost)
{
	double each = cost->samples ? (double)cost->cpu_ns / 1000 / (double)cost->samples : 0;
	printf("%-12s %7" PRIu64 " samples %4" PRIu64
		   " lost %7.2f ms CPU (%.2f to start and stop) %7.2f us each\n",
		name, cost->samples, cost->lost, (double)cost->cpu_ns / 1e6, (double)cost->fixed_ns / 1e6,
		each);
	fflush(stdout);
	return each;
}

static double median(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), compare);
	return count ? values[count / 2] : 0;
}

static bool run(
	pid_t pid, unsigned seconds, size_t rounds, uint64_t hz, struct codes *codes, struct error *err)
{
	double ours[ROUNDS_MAX], perf[ROUNDS_MAX];
	size_t perf_rounds = 0;
	for (size_t i = 0; i < rounds; i++) {
		struct cost cost = {0};
		if (!measure_ours(pid, seconds, hz, codes, &cost, err)) {
			return false;
		}
		ours[i] = tell("profd", &cost);
		cost = (struct cost){0};
		if (measure_perf(pid, seconds, hz, codes != NULL ? "dwarf,16384" : "fp", &cost)) {
			perf[perf_rounds++] = tell("perf record", &cost);
		}
	}
	double own = median(ours, rounds), other = median(perf, perf_rounds);
	printf("median: profd %.2f us, perf record %.2f us, ratio %.1f\n", own, other,
		own > 0 ? other / own : 0);
	return true;
}

int main(int argc, char **argv)
{
	size_t threads = argc > 1 ? strtoul(argv[1], NULL, 10) : 2;
	unsigned seconds = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 5;
	size_t rounds = argc > 3 ? strtoul(argv[3], NULL, 10) : 3;
	uint64_t hz = argc > 4 ? strtoull(argv[4], NULL, 10) : 999;
	struct error err = {0};
	if (threads == 0 || seconds == 0 || rounds == 0 || rounds > ROUNDS_MAX || hz == 0) {
		fprintf(stderr, "usage: bench-collector [threads [seconds [rounds [hz [fp|dwarf]]]]]\n");
		return 2;
	}
	pid_t pid = spin_busy(threads);
	if (pid < 0) {
		fprintf(stderr, "fork: %s\n", strerror(errno));
		return 1;
	}
	usleep(100000);
	struct codes *codes = argc > 5 && strcmp(argv[5], "dwarf") == 0 ? codes_create() : NULL;
	bool done = run(pid, seconds, rounds, hz, codes, &err);
	codes_release(codes);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	if (!done) {
		fprintf(stderr, "%s\n", err.message);
	}
	return done ? 0 : 1;
}
