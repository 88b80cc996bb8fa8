#ifndef CAPTURE_STACKS_H
#define CAPTURE_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The distinct stacks of a capture: equal frames of one process with one end get one id. Bounded: when it is full it forgets
 * all and begins anew, with ids that go on rising, so that a stack may be defined twice but an id never means two. One thread.
 */
struct stacks;

#define STACKS_MAX        65536 /* then it forgets */
#define STACKS_FRAMES_MAX (1024 * 1024)

struct stacks *stacks_create(void);
void stacks_destroy(struct stacks *stacks);

/* The frames of the kernel, then the user's; leaf first. Borrowed for the call. */
struct stacks_key {
	pid_t pid;
	uint64_t end; /* enum journal_stack_end */
	const uint64_t *kernel_frames, *user_frames;
	size_t kernel_count, user_count;
};

/*
 * The id, from 1 upwards; 0 when memory is out. For a known stack it allocates nothing. *frames (NULL for a known one) points to all
 * frames of a new one, until the next call.
 */
uint32_t stacks_id(struct stacks *stacks, const struct stacks_key *key, const uint64_t **frames);

/* Addresses mean something else from here on: every stack is new again. */
void stacks_forget(struct stacks *stacks);

#endif
