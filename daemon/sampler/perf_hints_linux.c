#include "sampler/perf_hints.h"

#include <stdint.h>
#include <stdlib.h>

#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_event(pid_t pid, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
		.sample_id_all = 1,
		.mmap = 1,
		.mmap2 = 1,
		.inherit = 1,
		.inherit_thread = 1,
		.disabled = 1,
		.enable_on_exec = 1,
		.exclude_kernel = 1,
		.watermark = 1,
		.wakeup_watermark = 1,
	};
	return (int)syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

#define DATA_PAGES 2 /* a path may be as long as a page */

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t map_bytes(void)
{
	return (1 + DATA_PAGES) * page_bytes();
}

/* False when nothing more can be had. */
static bool add(struct perf_hints *hints, pid_t pid, int cpu)
{
	int fd = open_event(pid, cpu);
	if (fd < 0) {
		return false;
	}
	void *page = mmap(NULL, map_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED) {
		close(fd);
		return false;
	}
	hints->fds[hints->count] = fd;
	hints->rings[hints->count++] = (struct perf_ring){
		.page = page,
		.data = (const uint8_t *)page + page_bytes(),
		.size = DATA_PAGES * page_bytes(),
		.cpu = cpu,
	};
	return true;
}

void perf_hints_open(struct perf_hints *hints, pid_t pid, const struct perf_buffers *buffers)
{
	*hints = (struct perf_hints){
		.fds = calloc(buffers->count, sizeof(*hints->fds)),
		.rings = calloc(buffers->count, sizeof(*hints->rings)),
	};
	for (size_t i = 0; hints->fds && hints->rings && i < buffers->count; i++) {
		if (!add(hints, pid, buffers->rings[i].cpu)) {
			break;
		}
	}
}

void perf_hints_close(struct perf_hints *hints)
{
	for (size_t i = 0; i < hints->count; i++) {
		munmap(hints->rings[i].page, map_bytes());
		close(hints->fds[i]);
	}
	free(hints->fds);
	free(hints->rings);
	*hints = (struct perf_hints){0};
}

/* True when there was a record. */
static bool read_ring(struct perf_ring *ring, uint8_t *scratch,
	void (*take)(const void *context, const struct perf_event_header *header), const void *context)
{
	uint64_t time_ns, begin = ring->tail;
	enum perf_peek peek;
	perf_ring_refresh(ring);
	while ((peek = perf_ring_peek(ring, &time_ns)) == PERF_PEEK_RECORD) {
		take(context, perf_ring_take(ring, scratch));
	}
	if (peek == PERF_PEEK_BROKEN) {
		ring->tail = ring->head;
	}
	perf_ring_release(ring);
	return ring->tail != begin;
}

bool perf_hints_read(struct perf_hints *hints, uint8_t *scratch,
	void (*take)(const void *context, const struct perf_event_header *header), const void *context)
{
	bool was_any = false;
	for (size_t i = 0; i < hints->count; i++) {
		was_any = read_ring(&hints->rings[i], scratch, take, context) || was_any;
	}
	return was_any;
}
