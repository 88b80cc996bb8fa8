#ifndef TESTS_SUPPORT_PIPELINE_DESK_H
#define TESTS_SUPPORT_PIPELINE_DESK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/pipeline.h"

/* The test plays the sampler of process 100, and reads the journal back as lines of text. Whatever goes wrong fails the test. */
struct desk {
	int fd;
	struct journal_writer *writer;
	struct pipeline *pipeline;
	struct sampler_sink sink;
	char text[65536];
	uint8_t bytes[1024 * 1024];
};

/* cmocka's; the second one samples the kernel too. */
int desk_set_up(void **state);
int desk_set_up_with_kernel(void **state);
int desk_tear_down(void **state);

/* Ends the journal; its text behind the records that every one begins with. */
const char *desk_read_back(struct desk *desk);

/* What the sampler would say. */
void desk_thread(struct desk *desk, uint64_t time_ns, pid_t tid, const char *name);
void desk_sample_of(struct desk *desk, uint64_t time_ns, pid_t pid, pid_t tid, size_t count,
	const uint64_t *frames);
void desk_map(struct desk *desk, uint64_t time_ns, uint64_t start, uint64_t length, uint64_t offset,
	const char *path);
/* Of the main thread; the frames, leaf first. */
#define SAMPLE(desk, time_ns, ...)                                                                 \
	desk_sample_of(                                                                                \
		desk, time_ns, 100, 100, sizeof((uint64_t[]){__VA_ARGS__}) / 8, (uint64_t[]){__VA_ARGS__})

#endif
