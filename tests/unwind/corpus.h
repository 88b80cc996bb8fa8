#ifndef TESTS_UNWIND_CORPUS_H
#define TESTS_UNWIND_CORPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"

/*
 * Real stacks: a program is run on one processor and sampled by the kernel with its registers and up to 65,528 bytes of its stack; what it maps comes
 * with it, in order (perf_event_open(2)). x86-64.
 */
enum corpus_kind { CORPUS_MAPPING, CORPUS_FORK, CORPUS_EXEC, CORPUS_SAMPLE };

#define CORPUS_REGISTERS   17 /* by DWARF's numbers; 16 is the pc */
#define CORPUS_STACK_BYTES 65528

struct corpus_event {
	enum corpus_kind kind;
	pid_t pid, parent;
	/* a mapping */
	uint64_t start, length, file_offset, inode;
	uint32_t device_major, device_minor;
	bool is_executable;
	char *path; /* owned */
	/* a sample */
	uint64_t registers[CORPUS_REGISTERS];
	uint8_t *stack; /* owned */
	size_t stack_bytes;
};

struct corpus {
	VEC(struct corpus_event) events;
	size_t samples;
	uint64_t lost;
};

/* Runs argv until it ends, or until there are so many samples. False: why is on stderr; *is_forbidden when the kernel refuses. */
bool corpus_record(struct corpus *corpus, char **argv, uint64_t hz, size_t max_samples,
	size_t stack_bytes, bool *is_forbidden);
void corpus_finish(struct corpus *corpus);

#endif
