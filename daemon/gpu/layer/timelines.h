#ifndef GPU_LAYER_TIMELINES_H
#define GPU_LAYER_TIMELINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Whether what was submitted to a device can come to its end: RenderDoc waits for that when it begins and ends, and a program that signals its timeline
 * semaphores later would never get there. What was submitted is played through here: a batch that waits for nothing, or for what will be signalled, is
 * done with at once, and all that is kept of it are the values that its semaphores will come to. Kept are those that are held back, and what is behind
 * them in their queues and signals. So no value has to be asked for, and of most programs nothing is kept. Any thread; one lock is inside.
 */
struct timelines;

#define TIMELINES_HELD                                                                             \
	1024 /* batches that are kept; of a device that had more nothing is known any more, and it counts as one that can come to its end */

/* NULL: no memory. */
struct timelines *timelines_create(void);
void timelines_destroy(struct timelines *timelines);

/* A timeline semaphore with its first value. */
void timelines_add(struct timelines *timelines, uint64_t semaphore, uint64_t value);
/* It is gone, or somebody else may signal it from here on: what waits for it counts as not held back. Others are ignored, here and below. */
void timelines_forget(struct timelines *timelines, uint64_t semaphore);
/* False: there never was one, and nothing of the below has to be told. Without the lock. */
bool timelines_are_used(const struct timelines *timelines);

/* One batch that the driver has taken, in the order of its queue: begin, any number of both, end; of one thread, which has the lock meanwhile. */
void timelines_begin(struct timelines *timelines, const void *queue);
void timelines_wait(struct timelines *timelines, uint64_t semaphore, uint64_t value);
void timelines_signal(struct timelines *timelines, uint64_t semaphore, uint64_t value);
void timelines_end(struct timelines *timelines);

/* The host has signalled it. True: that has freed the last of what was held back. */
bool timelines_signalled(struct timelines *timelines, uint64_t semaphore, uint64_t value);

struct timelines_hold {
	uint64_t semaphore, value; /* what the first that is held back waits for, */
	uint64_t reached;          /* and what that comes to without the program */
	size_t batches;            /* so many are kept */
};

/* Something is held back. */
bool timelines_hold(struct timelines *timelines, struct timelines_hold *hold);

#endif
