#include "sampler/perf_buffers.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sampler/perf_system.h"

/* Its clock must be that of the events directed into it. */
static int open_owner(int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.disabled = 1,
		.exclude_kernel = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1, /* wakeup_watermark 0: at half of the ring, whatever its size */
	};
	return (int)syscall(SYS_perf_event_open, &attr, 0, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static bool map_ring(struct perf_ring *ring, int fd, int cpu, size_t data_bytes, size_t page_bytes)
{
	void *area = mmap(NULL, data_bytes + page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (area == MAP_FAILED) {
		return false;
	}
	*ring = (struct perf_ring){
		.page = area,
		.data = (const uint8_t *)area + page_bytes,
		.size = data_bytes,
		.cpu = cpu,
	};
	return true;
}

/* False with errno when this processor gets no ring; *data_bytes has shrunk to what the kernel grants. */
static bool add_ring(struct perf_buffers *buffers, int cpu, size_t *data_bytes, size_t page_bytes)
{
	struct perf_ring *ring = &buffers->rings[buffers->count];
	int fd = open_owner(cpu);
	if (fd < 0) {
		return false;
	}
	while (!map_ring(ring, fd, cpu, *data_bytes, page_bytes)) {
		int failure = errno;
		if ((failure != EPERM && failure != ENOMEM) || *data_bytes <= PERF_BUFFERS_LEAST_BYTES) {
			close(fd);
			errno = failure;
			return false;
		}
		*data_bytes /= 2;
	}
	buffers->fds[buffers->count++] = fd;
	buffers->bytes += *data_bytes + page_bytes;
	return true;
}

size_t perf_buffers_for_copies(uint64_t hz, size_t sample_bytes, size_t rings)
{
	uint64_t wanted = hz * sample_bytes * PERF_BUFFERS_HOLD_MS / 1000;
	size_t bytes = PERF_BUFFERS_COPIES_LEAST;
	while (bytes < wanted && bytes < PERF_BUFFERS_COPIES_MOST &&
		   2 * bytes * rings <= PERF_BUFFERS_COPIES_ALL) {
		bytes *= 2;
	}
	return bytes;
}

static size_t planned_bytes(size_t wanted_bytes, size_t cpu_count, size_t page_bytes)
{
	uint64_t half = perf_system_lockable(cpu_count) / 2;
	size_t bytes = wanted_bytes;
	while (bytes > PERF_BUFFERS_LEAST_BYTES && (bytes + page_bytes) * cpu_count > half) {
		bytes /= 2;
	}
	return bytes > page_bytes ? bytes : page_bytes;
}

static bool nothing_opened(const struct perf_buffers *buffers, int failure, struct error *err)
{
	if (failure == EMFILE || failure == ENFILE) {
		error_set(err, ERROR_LIMIT_EXCEEDED,
			"no descriptor is left for the rings of %zu processors", buffers->failures);
		return error_hint(err, "raise the descriptor limit (ulimit -n) of profd");
	}
	error_errno_as(err, ERROR_LIMIT_EXCEEDED, failure,
		"no ring of %d KiB could be had for any of %zu processors", PERF_BUFFERS_LEAST_BYTES / 1024,
		buffers->failures);
	return error_hint(err,
		"raise the locked-memory limit (ulimit -l) of profd, or kernel.perf_event_mlock_kb (now "
		"%lld)",
		(long long)perf_system_number("perf_event_mlock_kb", 0));
}

bool perf_buffers_open(struct perf_buffers *buffers, const int *cpus, size_t count,
	size_t wanted_bytes, struct error *err)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	size_t data_bytes = planned_bytes(wanted_bytes, count, page_bytes);
	int failure = 0;
	*buffers = (struct perf_buffers){
		.rings = calloc(count, sizeof(*buffers->rings)),
		.fds = calloc(count, sizeof(*buffers->fds)),
	};
	if (!buffers->rings || !buffers->fds) {
		perf_buffers_close(buffers);
		return error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for %zu rings", count);
	}
	for (size_t i = 0; i < count; i++) {
		if (add_ring(buffers, cpus[i], &data_bytes, page_bytes)) {
			continue;
		}
		failure = errno;
		buffers->failures += failure != ENODEV; /* it went offline in between: nothing runs there */
	}
	buffers->smallest_bytes = data_bytes;
	if (buffers->count == 0) {
		nothing_opened(buffers, failure, err);
		perf_buffers_close(buffers);
		return false;
	}
	return true;
}

void perf_buffers_close(struct perf_buffers *buffers)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	for (size_t i = 0; i < buffers->count; i++) {
		munmap(buffers->rings[i].page, buffers->rings[i].size + page_bytes);
		close(buffers->fds[i]);
	}
	free(buffers->rings);
	free(buffers->fds);
	*buffers = (struct perf_buffers){0};
}
