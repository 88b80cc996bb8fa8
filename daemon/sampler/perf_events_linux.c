#include "sampler/perf_events.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "protocol/limits.h"
#include "sampler/perf_registers.h"
#include "sampler/perf_system.h"
#include "target/target.h"

#define HZ_SENSIBLE 1000000 /* above it no timer keeps the rate, whatever the kernel is told */

static int open_event(const struct perf_event_attr *attr, pid_t tid, int cpu)
{
	return (int)syscall(SYS_perf_event_open, attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static uint32_t depth(uint32_t asked)
{
	int64_t most = perf_system_number("perf_event_max_stack", LIMIT_STACK_FRAMES);
	most = most > 0 && most <= UINT16_MAX ? most : LIMIT_STACK_FRAMES;
	return asked == 0 || asked > (uint32_t)most ? (uint32_t)most : asked;
}

/*
 * A period, not a frequency: the kernel makes one of the other, and this one is known. The kernel's time is sampled even when its
 * frames are not wanted: exclude_kernel would drop the whole sample.
 */
static struct perf_event_attr wish(const struct sampler_config *config)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(struct perf_event_attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = sampler_period_ns(config->hz),
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN,
		.read_format = PERF_FORMAT_LOST,
		.sample_max_stack = (uint16_t)depth(config->max_depth),
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.inherit = 1,
		.inherit_thread = 1,
		.disabled = config->is_gated,
		.enable_on_exec = config->is_gated,
		.exclude_callchain_kernel = !config->kernel_frames,
		.watermark = 1,
	};
	if (config->stack_bytes > 0 && perf_registers_mask != 0) {
		attr.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
		attr.sample_regs_user = perf_registers_mask;
		attr.sample_stack_user = config->stack_bytes;
		attr.exclude_callchain_user = 1;
	}
	if (attr.exclude_callchain_user && !config->kernel_frames) {
		attr.sample_type &= ~(uint64_t)PERF_SAMPLE_CALLCHAIN;
	}
	return attr;
}

/* Without copies of stacks: some kernels (of rare machines) make none. */
static bool give_up_copies(struct perf_event_attr *attr)
{
	if (attr->sample_stack_user == 0) {
		return false;
	}
	attr->sample_type &= ~(uint64_t)(PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER);
	attr->sample_type |= PERF_SAMPLE_CALLCHAIN;
	attr->sample_regs_user = 0;
	attr->sample_stack_user = 0;
	attr->exclude_callchain_user = 0;
	return true;
}

static bool check_rate(uint64_t hz, struct error *err)
{
	int64_t most = perf_system_number("perf_event_max_sample_rate", 100000);
	if (hz == 0) {
		return error_set(err, ERROR_BAD_PARAMS, "hz is 0");
	}
	if (most <= 0 || hz <= (uint64_t)most) {
		return true;
	}
	error_set(err, ERROR_HZ_TOO_HIGH,
		"%" PRIu64 " Hz is above this kernel's maximum of %" PRId64
		" Hz (kernel.perf_event_max_sample_rate)",
		hz, most);
	if (hz > HZ_SENSIBLE) {
		return error_hint(err, "ask for at most %" PRId64 " Hz", most);
	}
	return error_hint(err,
		"ask for at most %" PRId64
		" Hz, or as root: sysctl kernel.perf_event_max_sample_rate=%" PRIu64,
		most, hz);
}

static bool refused(int failure, pid_t pid, struct error *err)
{
	int64_t paranoid = perf_system_number("perf_event_paranoid", 2);
	if (!target_is_ours(pid, err)) {
		return false;
	}
	error_errno_as(err, ERROR_NOT_PERMITTED, failure,
		"the kernel refuses to sample process %d (perf_event_open, kernel.perf_event_paranoid is "
		"%" PRId64 ")",
		(int)pid, paranoid);
	if (paranoid > 2) {
		return error_hint(err, "as root: sysctl kernel.perf_event_paranoid=2");
	}
	return error_hint(err,
		"the program may be one that its user cannot read, or a container forbids perf_event_open: "
		"allow it in the container's seccomp profile, or run profd with CAP_PERFMON");
}

bool perf_events_error(int failure, pid_t pid, struct error *err)
{
	switch (failure) {
	case ESRCH:
		return error_set(err, ERROR_PROCESS_NOT_FOUND, "there is no process %d", (int)pid);
	case EACCES:
	case EPERM:
		return refused(failure, pid, err);
	case EMFILE:
	case ENFILE:
		error_errno_as(err, ERROR_LIMIT_EXCEEDED, failure,
			"no event could be opened for process %d", (int)pid);
		return error_hint(err, "raise the descriptor limit (ulimit -n) of profd");
	case ENOMEM:
		return error_errno_as(err, ERROR_LIMIT_EXCEEDED, failure,
			"no event could be opened for process %d", (int)pid);
	default:
		error_errno_as(err, ERROR_BACKEND_UNAVAILABLE, failure,
			"this kernel cannot sample by perf_event_open");
		return error_hint(err, "use a kernel with CONFIG_PERF_EVENTS, Linux 4.10 or later");
	}
}

/* Gives up what this kernel or our rights do not have, the least loss first. */
static bool relax(struct perf_event_attr *attr, int failure)
{
	if ((failure == EACCES || failure == EPERM) && !attr->exclude_kernel) {
		attr->exclude_kernel = 1;
		attr->exclude_callchain_kernel = 1;
		return true;
	}
	if (failure == EINVAL && attr->read_format != 0) { /* before Linux 6.0 */
		attr->read_format = 0;
		return true;
	}
	if (failure == EINVAL && attr->inherit_thread) { /* before Linux 5.13 */
		attr->inherit_thread = 0;
		return true;
	}
	return (failure == EINVAL || failure == ENOSYS || failure == EOPNOTSUPP) &&
		   give_up_copies(attr);
}

/* An event of the process, or, when its first thread has ended before the others, of any thread that lives. */
static int open_trial(const struct perf_event_attr *attr, pid_t pid)
{
	pid_t *tids = NULL;
	size_t count = 0;
	int fd = open_event(attr, pid, -1);
	if (fd >= 0 || errno != ESRCH) {
		return fd;
	}
	target_threads(pid, &tids, &count, NULL);
	errno = ESRCH;
	for (size_t i = 0; i < count && fd < 0 && errno == ESRCH; i++) {
		fd = open_event(attr, tids[i], -1);
	}
	int failure = errno;
	free(tids);
	errno = failure;
	return fd;
}

bool perf_events_settle(
	struct perf_events *events, const struct sampler_config *config, struct error *err)
{
	if (!check_rate(config->hz, err)) {
		return false;
	}
	struct perf_event_attr attr = wish(config);
	int fd;
	attr.disabled = 1; /* a trial */
	while ((fd = open_trial(&attr, config->pid)) < 0) {
		int failure = errno;
		if (!relax(&attr, failure)) {
			return perf_events_error(failure, config->pid, err);
		}
	}
	close(fd);
	attr.disabled = config->is_gated;
	events->attr = attr;
	events->more_stack_bytes = attr.sample_stack_user > 0 ? config->more_stack_bytes : 0;
	events->cannot_grow = events->more_stack_bytes <= attr.sample_stack_user;
	return true;
}

/* An event without its ring is of no use. */
static bool direct(int fd, int ring_fd)
{
	if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring_fd) == 0) {
		return true;
	}
	int failure = errno;
	close(fd);
	errno = failure;
	return false;
}

/* The same event with larger copies, for later. Without it nothing can grow: what it would see would be lost. */
static void add_larger(struct perf_events *events, int ring_fd, pid_t tid, int cpu)
{
	struct perf_event_attr attr = events->attr;
	attr.sample_stack_user = events->more_stack_bytes;
	attr.disabled = 1;
	attr.enable_on_exec = 0;
	if (events->cannot_grow) {
		return;
	}
	int fd = open_event(&attr, tid, cpu);
	if (fd < 0 || !direct(fd, ring_fd)) {
		events->cannot_grow = true;
	} else if (!VEC_PUSH(&events->more_fds, fd)) {
		close(fd);
		events->cannot_grow = true;
	}
}

static void switch_all(const int *fds, size_t count, unsigned long how)
{
	for (size_t i = 0; i < count; i++) {
		ioctl(fds[i], how, 0);
	}
}

bool perf_events_grow(struct perf_events *events)
{
	if (events->cannot_grow) {
		return false;
	}
	events->cannot_grow = true;
	switch_all(events->fds.items, events->fds.len, PERF_EVENT_IOC_DISABLE);
	switch_all(events->more_fds.items, events->more_fds.len, PERF_EVENT_IOC_ENABLE);
	return true;
}

bool perf_events_add(struct perf_events *events, const struct perf_buffers *buffers, pid_t tid)
{
	size_t before = events->fds.len;
	if (!VEC_RESERVE(&events->fds, before + buffers->count)) {
		events->failures += buffers->count;
		events->failure = ENOMEM;
		return false;
	}
	for (size_t i = 0; i < buffers->count; i++) {
		int fd = open_event(&events->attr, tid, buffers->rings[i].cpu);
		if (fd >= 0 && direct(fd, buffers->fds[i])) {
			events->fds.items[events->fds.len++] = fd;
			add_larger(events, buffers->fds[i], tid, buffers->rings[i].cpu);
			continue;
		}
		if (errno == ENODEV) { /* the processor went offline */
			continue;
		}
		events->failure = errno;
		if (errno == ESRCH) {
			break;
		}
		events->failures++;
	}
	return events->fds.len > before;
}

bool perf_events_kernel_sampled(const struct perf_events *events)
{
	return !events->attr.exclude_kernel;
}

bool perf_events_include_children(const struct perf_events *events)
{
	return !events->attr.inherit_thread;
}

void perf_events_disable(const struct perf_events *events)
{
	switch_all(events->fds.items, events->fds.len, PERF_EVENT_IOC_DISABLE);
	switch_all(events->more_fds.items, events->more_fds.len, PERF_EVENT_IOC_DISABLE);
}

static void add_counts(const int *fds, size_t count, struct perf_count *total)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t values[2] = {0}; /* as attr.read_format says */
		if (read(fds[i], values, sizeof(values)) >= (ssize_t)sizeof(values[0])) {
			total->cpu_ns += values[0];
			total->lost += values[1];
		}
	}
}

struct perf_count perf_events_count(const struct perf_events *events)
{
	struct perf_count total = {0};
	add_counts(events->fds.items, events->fds.len, &total);
	add_counts(events->more_fds.items, events->more_fds.len, &total);
	return total;
}

void perf_events_close(struct perf_events *events)
{
	for (size_t i = 0; i < events->fds.len; i++) {
		close(events->fds.items[i]);
	}
	for (size_t i = 0; i < events->more_fds.len; i++) {
		close(events->more_fds.items[i]);
	}
	VEC_FINISH(&events->fds);
	VEC_FINISH(&events->more_fds);
}
