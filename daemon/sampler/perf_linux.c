#include "sampler/sampler.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "protocol/clock.h"
#include "sampler/perf_accounts.h"
#include "sampler/perf_buffers.h"
#include "sampler/perf_events.h"
#include "sampler/perf_hints.h"
#include "sampler/perf_record.h"
#include "sampler/perf_ring.h"
#include "sampler/perf_system.h"
#include "target/cpu_time.h"
#include "target/target.h"

#define SETTLE_NS      1000000 /* records of the last millisecond wait for those of other processors */
#define DRAIN_MS       250
#define DRAIN_LEAST_MS 5
#define YOUNG_MS       8
#define YOUNG_NS       300000000u
#define ENDED_MS       1000
#define FIRST_NS       1000000000
#define FIRST_WAIT_MS  20
#define ATTACH_ROUNDS  64
#define HINT_LEAST_MS  2
#define HINT_MOST_MS   64

enum { POLL_STOP, POLL_ENDED, POLL_RINGS };

struct sampler {
	struct sampler_config config;
	struct sampler_counters counters;
	struct perf_events events;
	struct perf_buffers buffers;
	struct perf_records records;
	struct perf_accounts accounts;
	struct perf_merge merge;
	struct perf_hints hints;
	int hint_ms; /* a hint came: so long nobody listens to them; 0: none did */
	struct pollfd *polls;
	int stop_fd, pid_fd;
	int drain_ms;
	uint64_t begin_ns;
	bool has_grown;      /* larger copies of stacks were wanted */
	uint64_t running_ns; /* since when the program is known to run; 0: it is not */
	pthread_t thread;
};

static void destroy(struct sampler *sampler)
{
	if (!sampler) {
		return;
	}
	perf_events_close(&sampler->events);
	perf_hints_close(&sampler->hints);
	perf_buffers_close(&sampler->buffers);
	perf_records_finish(&sampler->records);
	free(sampler->merge.heap);
	free(sampler->merge.scratch);
	free(sampler->polls);
	if (sampler->stop_fd >= 0) {
		close(sampler->stop_fd);
	}
	if (sampler->pid_fd >= 0) {
		close(sampler->pid_fd);
	}
	free(sampler);
}

/* The sampling thread */

static bool tell_mapping(void *context, const struct target_mapping *mapping)
{
	const struct sampler *sampler = context;
	if (!(mapping->protection & PROT_EXEC)) {
		return true;
	}
	struct sampler_mapping told = {
		.time_ns = sampler->begin_ns,
		.pid = sampler->config.pid,
		.start = mapping->start,
		.length = mapping->length,
		.file_offset = mapping->file_offset,
		.device_major = mapping->device_major,
		.device_minor = mapping->device_minor,
		.inode = mapping->inode,
		.protection = mapping->protection,
		.path = mapping->path[0] ? mapping->path : "//anon", /* as MMAP2 says it */
	};
	sampler->config.sink.mapping(sampler->config.sink.context, &told);
	return true;
}

/* What was there before the events. Told with a time before them: what changed since is in the rings too, and is told again. */
static void tell_what_is(struct sampler *sampler)
{
	pid_t pid = sampler->config.pid, *tids = NULL;
	size_t count = 0;
	char name[16] = "";
	target_thread_name(pid, pid, name, NULL);
	struct sampler_process process = {
		.time_ns = sampler->begin_ns,
		.pid = pid,
		.parent_pid = sampler->records.parent_pid,
		.name = name,
	};
	sampler->config.sink.process(sampler->config.sink.context, &process);
	if (target_threads(pid, &tids, &count, NULL)) {
		for (size_t i = 0; i < count; i++) {
			struct target_cpu_time before = {0};
			target_thread_cpu_time(pid, tids[i], &before);
			if (target_thread_name(pid, tids[i], name, NULL)) {
				perf_records_add_thread(
					&sampler->records, sampler->begin_ns, pid, tids[i], name, &before);
			}
		}
		free(tids);
	}
	target_mappings(pid, tell_mapping, sampler, NULL);
}

static void take_hint(const void *context, const struct perf_event_header *header)
{
	perf_records_take_early(context, header);
}

/* A program that maps code all the time is listened to less and less often. */
static void follow_hints(struct sampler *sampler, bool is_over)
{
	if (sampler->hint_ms == 0 || is_over) {
		bool was_mapped =
			perf_hints_read(&sampler->hints, sampler->merge.scratch, take_hint, &sampler->records);
		int next = sampler->hint_ms == 0 ? HINT_LEAST_MS : 2 * sampler->hint_ms;
		sampler->hint_ms = !was_mapped ? 0 : next > HINT_MOST_MS ? HINT_MOST_MS : next;
	}
}

/* Soon after the start a gate becomes its program: the sooner that is seen, the more is known of one that is short. A hint tells it at once. */
static uint64_t wait_for_looks_ms(const struct sampler *sampler)
{
	uint64_t now_ns = clock_monotonic_ns();
	if (sampler->records.names.len == 0) {
		bool is_blind = sampler->hints.count == 0 && now_ns - sampler->begin_ns < FIRST_NS;
		return is_blind ? FIRST_WAIT_MS : DRAIN_MS;
	}
	return (perf_accounts_wait_ns(&sampler->accounts, now_ns) + 999999) / 1000000;
}

/* At first the copies are looked at often: what is too short for a program shall be known before many are cut. */
static bool is_young(struct sampler *sampler)
{
	uint64_t now_ns = clock_monotonic_ns();
	if (sampler->running_ns == 0 && sampler->records.names.len > 0) {
		sampler->running_ns = now_ns;
	}
	return !sampler->has_grown && !sampler->events.cannot_grow && sampler->config.sink.wants_more &&
		   sampler->running_ns != 0 && now_ns - sampler->running_ns < YOUNG_NS;
}

/* Until the rings are to be read, or the accounts to be looked at, or the hints to be listened to again. */
static int wait_ms(struct sampler *sampler, bool has_ended)
{
	uint64_t looks_ms = wait_for_looks_ms(sampler);
	int ms = looks_ms < (uint64_t)sampler->drain_ms ? (int)looks_ms : sampler->drain_ms;
	if (has_ended) {
		return ENDED_MS;
	}
	if (is_young(sampler) && ms > YOUNG_MS) {
		ms = YOUNG_MS;
	}
	return sampler->hint_ms > 0 && sampler->hint_ms < ms ? sampler->hint_ms : ms;
}

/* Of how many descriptors: those of the hints are the last. */
static nfds_t polled(const struct sampler *sampler, bool has_ended)
{
	bool listens = sampler->hint_ms == 0 && !has_ended;
	return POLL_RINGS + sampler->buffers.count + (listens ? sampler->hints.count : 0);
}

/* False when it is time to stop. */
static bool wait_for_records(struct sampler *sampler, bool *has_ended)
{
	struct pollfd *polls = sampler->polls;
	nfds_t count = polled(sampler, *has_ended);
	int ready = poll(polls, count, wait_ms(sampler, *has_ended));
	follow_hints(sampler, ready == 0);
	if (ready <= 0) {
		return true;
	}
	if (polls[POLL_ENDED].revents) {
		perf_accounts_look_back(&sampler->accounts); /* first: soon it is reaped */
		*has_ended = true;
		polls[POLL_ENDED].fd = -1;
	}
	for (nfds_t i = POLL_RINGS; i < count; i++) {
		if (polls[i].revents & (POLLHUP | POLLERR | POLLNVAL)) {
			polls[i].fd = -1; /* it would wake us for ever */
		}
	}
	return polls[POLL_STOP].revents == 0;
}

static void drain(struct sampler *sampler, uint64_t now_ns, uint64_t until_ns)
{
	perf_merge_drain(&sampler->merge, until_ns);
	sampler->config.sink.drained(sampler->config.sink.context, now_ns);
	if (!sampler->has_grown && sampler->config.sink.wants_more &&
		sampler->config.sink.wants_more(sampler->config.sink.context)) {
		sampler->has_grown = true;
		perf_events_grow(&sampler->events);
	}
}

static void *run(void *context)
{
	struct sampler *sampler = context;
	bool has_ended = false;
	if (!sampler->config.is_gated) {
		tell_what_is(sampler);
	}
	while (wait_for_records(sampler, &has_ended)) {
		uint64_t now_ns = clock_monotonic_ns();
		drain(sampler, now_ns, now_ns - SETTLE_NS);
		if (!has_ended) {
			perf_accounts_look(&sampler->accounts, &sampler->records, now_ns);
		}
	}
	perf_events_disable(&sampler->events);
	uint64_t end_ns = clock_monotonic_ns();
	drain(sampler, end_ns, UINT64_MAX);
	struct perf_count counted = perf_events_count(&sampler->events);
	perf_records_lost(&sampler->records, end_ns, counted.lost);
	if (!perf_events_include_children(&sampler->events)) {
		perf_accounts_end(&sampler->accounts, &sampler->records, end_ns, &counted);
	}
	return NULL;
}

/* Attaching */

/* Was this thread born of one that was sampled already? Then it has inherited the events. */
static bool has_inherited(const struct sampler *sampler, pid_t tid)
{
	for (size_t i = 0; i < sampler->buffers.count; i++) {
		struct perf_ring ring = sampler->buffers.rings[i];
		uint64_t time_ns;
		perf_ring_refresh(&ring);
		while (perf_ring_peek(&ring, &time_ns) == PERF_PEEK_RECORD) {
			const struct perf_event_header *header = perf_ring_take(&ring, sampler->merge.scratch);
			uint32_t ids[4]; /* pid, parent pid, tid, parent tid */
			if (header->type == PERF_RECORD_FORK && header->size >= sizeof(*header) + sizeof(ids)) {
				memcpy(ids, header + 1, sizeof(ids));
				if (ids[2] == (uint32_t)tid) {
					return true;
				}
			}
		}
	}
	return false;
}

enum { SEEN = 1, DONE = 2 };

/*
 * One look at the threads. One that appears after the first look is judged at the next: by then the record of its birth has
 * been written, if there will be one. *is_new: another look is needed.
 */
static bool cover(struct sampler *sampler, struct map *known, bool is_first, bool *is_new)
{
	pid_t *tids;
	size_t count;
	if (!target_threads(sampler->config.pid, &tids, &count, NULL)) {
		return false;
	}
	*is_new = false;
	for (size_t i = 0; i < count; i++) {
		uint64_t tid = (uint64_t)tids[i];
		const uint64_t *state = map_get(known, tid);
		if (state && *state == DONE) {
			continue;
		}
		bool is_due = is_first || state;
		if (is_due && (is_first || !has_inherited(sampler, tids[i]))) {
			perf_events_add(&sampler->events, &sampler->buffers, tids[i]);
		}
		map_put(known, tid, is_due ? DONE : SEEN);
		*is_new = true;
	}
	free(tids);
	return true;
}

/* A thread that is born while its maker's events are being opened can be missed or counted twice on some processor: some
 * microseconds for each thread. */
static void cover_all(struct sampler *sampler)
{
	struct map known = {0};
	bool is_new = true;
	for (int i = 0; is_new && i < ATTACH_ROUNDS; i++) {
		if (!cover(sampler, &known, i == 0, &is_new)) {
			break;
		}
	}
	map_finish(&known);
}

static bool open_events(struct sampler *sampler, struct error *err)
{
	sampler->begin_ns = clock_monotonic_ns();
	perf_accounts_begin(
		&sampler->accounts, &sampler->events, sampler->config.pid, sampler->config.is_gated);
	sampler->records.parent_pid = target_parent(sampler->config.pid);
	if (sampler->config.is_gated) {
		perf_events_add(&sampler->events, &sampler->buffers, sampler->config.pid);
	} else {
		cover_all(sampler);
	}
	int failure = sampler->events.failure ? sampler->events.failure : ESRCH;
	return sampler->events.fds.len > 0 || perf_events_error(failure, sampler->config.pid, err);
}

/* A ring of the deepest stacks at most: the kernel wakes us at half a ring, and a wake-up costs more than a hundred samples. */
static int drain_interval(const struct sampler *sampler)
{
	uint64_t record_bytes =
		64 + 8 * (uint64_t)sampler->records.max_depth + sampler->events.attr.sample_stack_user;
	uint64_t ms = sampler->buffers.smallest_bytes * 1000 / (record_bytes * sampler->config.hz);
	if (sampler->config.drain_ms > 0) {
		return sampler->config.drain_ms > DRAIN_MS ? DRAIN_MS : (int)sampler->config.drain_ms;
	}
	return ms > DRAIN_MS ? DRAIN_MS : ms < DRAIN_LEAST_MS ? DRAIN_LEAST_MS : (int)ms;
}

static bool prepare(struct sampler *sampler, struct error *err)
{
	size_t rings = sampler->buffers.count;
	sampler->records.sink = sampler->config.sink;
	sampler->records.counters = &sampler->counters;
	sampler->records.max_depth = sampler->events.attr.sample_max_stack;
	sampler->records.sample_type = sampler->events.attr.sample_type;
	sampler->records.pid = sampler->config.pid;
	sampler->records.tick_ns = perf_system_tick_ns();
	sampler->merge = (struct perf_merge){
		.rings = sampler->buffers.rings,
		.count = rings,
		.heap = calloc(rings, sizeof(*sampler->merge.heap)),
		.scratch = malloc(PERF_RING_RECORD_BYTES),
		.context = &sampler->records,
		.record = perf_records_take,
		.broken = perf_records_broken,
	};
	sampler->polls = calloc(POLL_RINGS + 2 * rings, sizeof(*sampler->polls));
	sampler->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (!sampler->merge.heap || !sampler->merge.scratch || !sampler->polls ||
		sampler->stop_fd < 0) {
		return error_set(
			err, ERROR_LIMIT_EXCEEDED, "no memory or descriptor is left for the sampler");
	}
	sampler->pid_fd = (int)syscall(SYS_pidfd_open, sampler->config.pid, 0);
	sampler->drain_ms = drain_interval(sampler);
	sampler->polls[POLL_STOP] = (struct pollfd){.fd = sampler->stop_fd, .events = POLLIN};
	sampler->polls[POLL_ENDED] = (struct pollfd){.fd = sampler->pid_fd, .events = POLLIN};
	for (size_t i = 0; i < rings; i++) {
		sampler->polls[POLL_RINGS + i] =
			(struct pollfd){.fd = sampler->buffers.fds[i], .events = POLLIN};
	}
	return true;
}

/* Without them it works too, later. */
static void open_hints(struct sampler *sampler)
{
	struct pollfd *polls = &sampler->polls[POLL_RINGS + sampler->buffers.count];
	if (sampler->config.is_gated) {
		perf_hints_open(&sampler->hints, sampler->config.pid, &sampler->buffers);
	}
	for (size_t i = 0; i < sampler->hints.count; i++) {
		polls[i] = (struct pollfd){.fd = sampler->hints.fds[i], .events = POLLIN};
	}
}

/* No signal of the daemon's is for this thread. */
static bool start_thread(struct sampler *sampler, struct error *err)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int failure = pthread_create(&sampler->thread, NULL, run, sampler);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failure != 0) {
		return error_errno_as(err, ERROR_LIMIT_EXCEEDED, failure, "the sampling thread");
	}
	pthread_setname_np(sampler->thread, "profd-sampler");
	return true;
}

/* What it came to */

/* The first one gives code and hint: call in the order of weight. */
static void warn(struct sampler_effective *effective, const char *code, const char *hint,
	const char *format, ...) __attribute__((format(printf, 4, 5)));
static void warn(struct sampler_effective *effective, const char *code, const char *hint,
	const char *format, ...)
{
	size_t used = strlen(effective->warning);
	if (used == 0) {
		snprintf(effective->warning_code, sizeof(effective->warning_code), "%s", code);
		snprintf(effective->warning_hint, sizeof(effective->warning_hint), "%s", hint);
	} else if (used + 2 < sizeof(effective->warning)) {
		memcpy(effective->warning + used, "; ", 3);
		used += 2;
	}
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(effective->warning + used, sizeof(effective->warning) - used, format, arguments);
	va_end(arguments);
}

static void warn_of_all(const struct sampler *sampler, struct sampler_effective *effective)
{
	if (effective->event_failures > 0) {
		warn(effective, "events_not_opened",
			"raise the descriptor limit (ulimit -n) or the locked-memory limit (ulimit -l) of "
			"profd",
			"%zu of %zu events could not be opened: what they would have seen is missing",
			effective->event_failures, effective->event_failures + sampler->events.fds.len);
	}
	if (!effective->kernel_sampled) {
		warn(effective, "kernel_time_not_sampled",
			"as root: sysctl kernel.perf_event_paranoid=1, or give profd CAP_PERFMON",
			"time in the kernel is not sampled%s: kernel.perf_event_paranoid is %" PRId64,
			sampler->config.kernel_frames ? " and has no frames" : "",
			perf_system_number("perf_event_paranoid", 2));
	}
	/* More is taken when it can be had; with so much nothing is lost. */
	if (sampler->buffers.smallest_bytes < PERF_BUFFERS_DATA_BYTES) {
		warn(effective, "ring_memory_small",
			"raise the locked-memory limit (ulimit -l) or kernel.perf_event_mlock_kb",
			"each ring has %zu of %zu KiB, and is emptied every %d ms",
			sampler->buffers.smallest_bytes / 1024, (size_t)PERF_BUFFERS_DATA_BYTES / 1024,
			sampler->drain_ms);
	}
	if (perf_events_include_children(&sampler->events)) {
		warn(effective, "children_cost_samples", "use Linux 5.13 or later",
			"this kernel samples the processes that the program starts, too; they are left out");
	}
}

static void describe(const struct sampler *sampler, struct sampler_effective *effective)
{
	bool is_kernel_sampled = perf_events_kernel_sampled(&sampler->events);
	*effective = (struct sampler_effective){
		.name = sampler_perf_ops.name,
		.hz = sampler->config.hz,
		.period_ns = sampler->events.attr.sample_period,
		.max_depth = sampler->events.attr.sample_max_stack,
		.stack_bytes = sampler->events.attr.sample_stack_user,
		.kernel_sampled = is_kernel_sampled,
		.kernel_frames = is_kernel_sampled && sampler->config.kernel_frames,
		.ring_bytes = sampler->buffers.bytes,
		.cpus = sampler->buffers.count,
		.events = sampler->events.fds.len + sampler->events.more_fds.len + sampler->buffers.count +
				  sampler->hints.count,
		.event_failures = sampler->events.failures + sampler->buffers.failures,
	};
	warn_of_all(sampler, effective);
}

/* The operations */

static bool probe(const struct sampler_config *config, struct error *err)
{
	struct perf_events events = {0};
	return perf_events_settle(&events, config, err);
}

static bool open_buffers(struct sampler *sampler, struct error *err)
{
	int *cpus;
	size_t count;
	if (!perf_system_cpus(&cpus, &count, err)) {
		return false;
	}
	uint32_t copied = sampler->events.attr.sample_stack_user;
	uint32_t most =
		sampler->config.more_stack_bytes > copied ? sampler->config.more_stack_bytes : copied;
	size_t bytes = copied > 0 ? perf_buffers_for_copies(sampler->config.hz, most, count)
							  : PERF_BUFFERS_DATA_BYTES;
	bool done = perf_buffers_open(&sampler->buffers, cpus, count, bytes, err);
	free(cpus);
	return done;
}

static bool start(const struct sampler_config *config, struct sampler **out,
	struct sampler_effective *effective, struct error *err)
{
	struct sampler *sampler = calloc(1, sizeof(*sampler));
	if (!sampler) {
		return error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for a sampler");
	}
	sampler->config = *config;
	sampler->stop_fd = -1;
	sampler->pid_fd = -1;
	if (!perf_events_settle(&sampler->events, config, err) || !open_buffers(sampler, err) ||
		!prepare(sampler, err) || !open_events(sampler, err)) {
		destroy(sampler);
		return false;
	}
	open_hints(sampler);
	if (!start_thread(sampler, err)) {
		destroy(sampler);
		return false;
	}
	describe(sampler, effective);
	*out = sampler;
	return true;
}

static const struct sampler_counters *counters(const struct sampler *sampler)
{
	return &sampler->counters;
}

static void stop(struct sampler *sampler)
{
	if (!sampler) {
		return;
	}
	eventfd_write(sampler->stop_fd, 1);
	pthread_join(sampler->thread, NULL);
	destroy(sampler);
}

const struct sampler_ops sampler_perf_ops = {
	.name = "perf",
	.probe = probe,
	.start = start,
	.counters = counters,
	.stop = stop,
};
