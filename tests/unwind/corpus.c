#include "unwind/corpus.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"

/* arch/x86/include/uapi/asm/perf_regs.h, and DWARF's numbers of the same registers in the order of the kernel's. */
#define REGISTER_MASK 0xff01ffu
static const uint8_t dwarf_numbers[] = {0, 3, 2, 1, 4, 5, 6, 7, 16, 8, 9, 10, 11, 12, 13, 14, 15};

#define LARGEST_RING (8 << 20)

struct ring {
	int fd;
	struct perf_event_mmap_page *page;
	size_t bytes;
};

static int open_event(pid_t pid, int cpu, uint64_t hz, size_t stack_bytes)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 1000000000 / hz | 1,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
		.sample_regs_user = REGISTER_MASK,
		.sample_stack_user = (uint32_t)stack_bytes,
		.disabled = 1,
		.inherit = 1,
		.enable_on_exec = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.watermark = 1,
		.wakeup_watermark = 1 << 18,
	};

	return (int)syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* As large as the quota of locked memory lets it be. */
static bool map_ring(struct ring *ring)
{
	for (ring->bytes = LARGEST_RING; ring->bytes >= 1 << 18; ring->bytes /= 2) {
		void *page =
			mmap(NULL, ring->bytes + 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);

		if (page != MAP_FAILED) {
			ring->page = page;
			return true;
		}
	}
	return false;
}

static void read_mapping(struct corpus *corpus, struct bytes *in, uint16_t misc)
{
	struct corpus_event event = {.kind = CORPUS_MAPPING};

	event.pid = (pid_t)bytes_u32(in);
	bytes_u32(in);
	event.start = bytes_u64(in);
	event.length = bytes_u64(in);
	event.file_offset = bytes_u64(in);
	event.device_major = bytes_u32(in);
	event.device_minor = bytes_u32(in);
	event.inode = bytes_u64(in);
	bytes_u64(in);
	event.is_executable = (bytes_u32(in) & PROT_EXEC) != 0;
	bytes_u32(in);
	event.path = strndup((const char *)in->data + in->pos, bytes_left(in));
	(void)misc;
	VEC_PUSH(&corpus->events, event);
}

static void read_sample(struct corpus *corpus, struct bytes *in)
{
	struct corpus_event event = {.kind = CORPUS_SAMPLE};

	event.pid = (pid_t)bytes_u32(in);
	bytes_u32(in);
	if (bytes_u64(in) != PERF_SAMPLE_REGS_ABI_64) {
		return;
	}
	for (size_t i = 0; i < CORPUS_REGISTERS; i++) {
		event.registers[dwarf_numbers[i]] = bytes_u64(in);
	}
	uint64_t size = bytes_u64(in);
	const uint8_t *stack = bytes_take(in, (size_t)size);
	uint64_t there = size == 0 ? 0 : bytes_u64(in);

	if (in->bad || there > size || stack == NULL) {
		return;
	}
	event.stack_bytes = (size_t)there;
	event.stack = malloc((size_t)there + 1);
	memcpy(event.stack, stack, (size_t)there);
	corpus->samples++;
	VEC_PUSH(&corpus->events, event);
}

static void read_record(struct corpus *corpus, const uint8_t *record)
{
	struct perf_event_header header;

	memcpy(&header, record, sizeof(header));
	struct bytes in = bytes_of(record + sizeof(header), header.size - sizeof(header));

	if (header.type == PERF_RECORD_MMAP2) {
		read_mapping(corpus, &in, header.misc);
	} else if (header.type == PERF_RECORD_SAMPLE) {
		read_sample(corpus, &in);
	} else if (header.type == PERF_RECORD_LOST) {
		bytes_u64(&in);
		corpus->lost += bytes_u64(&in);
	} else if (header.type == PERF_RECORD_COMM && (header.misc & PERF_RECORD_MISC_COMM_EXEC)) {
		struct corpus_event event = {.kind = CORPUS_EXEC, .pid = (pid_t)bytes_u32(&in)};

		VEC_PUSH(&corpus->events, event);
	} else if (header.type == PERF_RECORD_FORK) {
		struct corpus_event event = {.kind = CORPUS_FORK};

		event.pid = (pid_t)bytes_u32(&in);
		event.parent = (pid_t)bytes_u32(&in);
		if (event.pid != event.parent) {
			VEC_PUSH(&corpus->events, event);
		}
	}
}

static void drain(struct corpus *corpus, struct ring *ring)
{
	static uint8_t copy[1 << 16];
	const uint8_t *data = (const uint8_t *)ring->page + 4096;
	uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = ring->page->data_tail;

	while (tail < head) {
		uint16_t size;

		memcpy(&size, data + (tail + 6) % ring->bytes, sizeof(size));
		for (size_t i = 0; i < size; i++) {
			copy[i] = data[(tail + i) % ring->bytes];
		}
		read_record(corpus, copy);
		tail += size;
	}
	__atomic_store_n(&ring->page->data_tail, tail, __ATOMIC_RELEASE);
}

/* The child waits for a byte, then becomes the program, on one processor. */
static pid_t start(char **argv, int cpu, int go)
{
	pid_t pid = fork();

	if (pid == 0) {
		cpu_set_t cpus;
		char byte;

		CPU_ZERO(&cpus);
		CPU_SET(cpu, &cpus);
		sched_setaffinity(0, sizeof(cpus), &cpus);
		if (read(go, &byte, 1) == 1) {
			execvp(argv[0], argv);
			perror(argv[0]);
		}
		_exit(127);
	}
	return pid;
}

static bool follow(struct corpus *corpus, struct ring *ring, pid_t pid, size_t max_samples)
{
	struct pollfd poll_fd = {.fd = ring->fd, .events = POLLIN};
	int status = 0;
	bool is_over = false;

	while (!is_over) {
		poll(&poll_fd, 1, 10);
		is_over = waitpid(pid, &status, WNOHANG) == pid;
		drain(corpus, ring);
		if (!is_over && corpus->samples >= max_samples) {
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			return true;
		}
	}
	return !WIFEXITED(status) || WEXITSTATUS(status) != 127;
}

bool corpus_record(struct corpus *corpus, char **argv, uint64_t hz, size_t max_samples,
	size_t stack_bytes, bool *is_forbidden)
{
	struct ring ring = {.fd = -1};
	int go[2], cpu = sched_getcpu();
	bool done = false;

	if (pipe(go) != 0) {
		return false;
	}
	pid_t pid = start(argv, cpu, go[0]);

	ring.fd = open_event(pid, cpu, hz, stack_bytes);
	*is_forbidden = ring.fd < 0 || !map_ring(&ring);
	if (*is_forbidden) {
		fprintf(stderr, "perf_event_open: %s\n", strerror(errno));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	} else {
		done = write(go[1], "", 1) == 1 && follow(corpus, &ring, pid, max_samples);
		munmap(ring.page, ring.bytes + 4096);
	}
	if (ring.fd >= 0) {
		close(ring.fd);
	}
	close(go[0]);
	close(go[1]);
	return done;
}

void corpus_finish(struct corpus *corpus)
{
	for (size_t i = 0; i < corpus->events.len; i++) {
		free(corpus->events.items[i].path);
		free(corpus->events.items[i].stack);
	}
	VEC_FINISH(&corpus->events);
}
