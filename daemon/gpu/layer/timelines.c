#include "gpu/layer/timelines.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 256

struct semaphore {
	struct semaphore *next;
	uint64_t handle;
	uint64_t reached; /* without anything that the program is still to do */
};

struct point {
	uint64_t semaphore, value;
	bool is_wait;
};

/* One of the program's, known since something was held back in it. */
struct queue {
	struct queue *next;
	const void *handle;
	size_t held;     /* batches that are kept of it */
	bool is_stopped; /* in this play */
};

struct batch {
	struct batch *next;
	struct queue *queue;
	size_t count;
	struct point points[];
};

struct timelines {
	pthread_mutex_t lock;
	atomic_bool is_used;
	bool is_lost; /* more was held back than can be kept */
	struct semaphore *buckets[BUCKETS];
	struct queue *queues;
	struct batch *held, **held_end; /* in their order */
	size_t held_count;
	/* The batch that is being told. */
	const void *telling;
	struct point *points; /* owned */
	size_t count, size;
};

struct timelines *timelines_create(void)
{
	struct timelines *timelines = calloc(1, sizeof(*timelines));
	if (timelines != NULL) {
		pthread_mutex_init(&timelines->lock, NULL);
		timelines->held_end = &timelines->held;
	}
	return timelines;
}

static void free_held(struct timelines *timelines)
{
	while (timelines->held != NULL) {
		struct batch *batch = timelines->held;
		timelines->held = batch->next;
		free(batch);
	}
	timelines->held_end = &timelines->held;
	timelines->held_count = 0;
}

void timelines_destroy(struct timelines *timelines)
{
	if (timelines == NULL) {
		return;
	}
	free_held(timelines);
	while (timelines->queues != NULL) {
		struct queue *queue = timelines->queues;
		timelines->queues = queue->next;
		free(queue);
	}
	for (size_t i = 0; i < BUCKETS; i++) {
		while (timelines->buckets[i] != NULL) {
			struct semaphore *semaphore = timelines->buckets[i];
			timelines->buckets[i] = semaphore->next;
			free(semaphore);
		}
	}
	free(timelines->points);
	pthread_mutex_destroy(&timelines->lock);
	free(timelines);
}

/* Where it is, or would be. */
static struct semaphore **find(struct timelines *timelines, uint64_t handle)
{
	struct semaphore **at = &timelines->buckets[(handle * UINT64_C(0x9E3779B97F4A7C15)) >> 56];
	while (*at != NULL && (*at)->handle != handle) {
		at = &(*at)->next;
	}
	return at;
}

/* What was forgotten holds nothing back. */
static bool is_reached(struct timelines *timelines, const struct point *point)
{
	const struct semaphore *semaphore = *find(timelines, point->semaphore);
	return semaphore == NULL || semaphore->reached >= point->value;
}

/* True: that is new. */
static bool raise(struct timelines *timelines, uint64_t handle, uint64_t value)
{
	struct semaphore *semaphore = *find(timelines, handle);
	if (semaphore == NULL || semaphore->reached >= value) {
		return false;
	}
	semaphore->reached = value;
	return true;
}

static const struct point *first_unreached(struct timelines *timelines, const struct batch *batch)
{
	size_t i = 0;
	while (i < batch->count &&
		   (!batch->points[i].is_wait || is_reached(timelines, &batch->points[i]))) {
		i++;
	}
	return i < batch->count ? &batch->points[i] : NULL;
}

static void signal_all(struct timelines *timelines, const struct point *points, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!points[i].is_wait) {
			raise(timelines, points[i].semaphore, points[i].value);
		}
	}
}

/* Once through all that is held back. True: some of it was freed, which may free more. */
static bool play_once(struct timelines *timelines)
{
	bool has_freed = false;
	struct batch **at = &timelines->held;
	for (struct queue *queue = timelines->queues; queue != NULL; queue = queue->next) {
		queue->is_stopped = false;
	}
	while (*at != NULL) {
		struct batch *batch = *at;
		if (batch->queue->is_stopped || first_unreached(timelines, batch) != NULL) {
			batch->queue->is_stopped = true;
			at = &batch->next;
			continue;
		}
		signal_all(timelines, batch->points, batch->count);
		has_freed = true;
		batch->queue->held--;
		timelines->held_count--;
		*at = batch->next;
		free(batch);
	}
	timelines->held_end = at;
	return has_freed;
}

static void play(struct timelines *timelines)
{
	while (timelines->held != NULL && play_once(timelines)) {
	}
}

void timelines_add(struct timelines *timelines, uint64_t handle, uint64_t value)
{
	pthread_mutex_lock(&timelines->lock);
	struct semaphore **at = find(timelines, handle);
	*at = *at != NULL ? *at : calloc(1, sizeof(**at));
	if (*at != NULL) { /* else ignored, like one that others signal */
		(*at)->handle = handle;
		(*at)->reached = value;
		timelines->is_used = true;
	}
	pthread_mutex_unlock(&timelines->lock);
}

void timelines_forget(struct timelines *timelines, uint64_t handle)
{
	pthread_mutex_lock(&timelines->lock);
	struct semaphore **at = find(timelines, handle), *semaphore = *at;
	if (semaphore != NULL) {
		*at = semaphore->next;
		free(semaphore);
		play(timelines);
	}
	pthread_mutex_unlock(&timelines->lock);
}

bool timelines_are_used(const struct timelines *timelines)
{
	return atomic_load_explicit(&timelines->is_used, memory_order_relaxed);
}

void timelines_begin(struct timelines *timelines, const void *queue)
{
	pthread_mutex_lock(&timelines->lock);
	timelines->telling = queue;
	timelines->count = 0;
}

/* Nothing is known any more: to say that the device cannot come to its end would be wrong as often as not. */
static void lose(struct timelines *timelines)
{
	timelines->is_lost = true;
	free_held(timelines);
}

static void put(struct timelines *timelines, const struct point *point)
{
	if (timelines->is_lost || *find(timelines, point->semaphore) == NULL) {
		return;
	}
	if (timelines->count == timelines->size) {
		size_t size = timelines->size > 0 ? 2 * timelines->size : 16;
		struct point *points = realloc(timelines->points, size * sizeof(*points));
		if (points == NULL) {
			lose(timelines);
			return;
		}
		timelines->points = points;
		timelines->size = size;
	}
	timelines->points[timelines->count++] = *point;
}

void timelines_wait(struct timelines *timelines, uint64_t semaphore, uint64_t value)
{
	struct point point = {semaphore, value, true};
	if (!is_reached(timelines, &point)) {
		put(timelines, &point);
	}
}

void timelines_signal(struct timelines *timelines, uint64_t semaphore, uint64_t value)
{
	put(timelines, &(struct point){semaphore, value, false});
}

/* NULL: nothing was ever held back there, or no memory. */
static struct queue *find_queue(struct timelines *timelines, bool is_new)
{
	struct queue *queue = timelines->queues;
	while (queue != NULL && queue->handle != timelines->telling) {
		queue = queue->next;
	}
	if (queue == NULL && is_new) {
		queue = calloc(1, sizeof(*queue));
		if (queue != NULL) {
			queue->handle = timelines->telling;
			queue->next = timelines->queues;
			timelines->queues = queue;
		}
	}
	return queue;
}

static void hold_back(struct timelines *timelines)
{
	struct queue *queue = find_queue(timelines, true);
	size_t bytes = timelines->count * sizeof(timelines->points[0]);
	struct batch *batch = malloc(sizeof(*batch) + bytes);
	if (queue == NULL || batch == NULL || timelines->held_count == TIMELINES_HELD) {
		free(batch);
		lose(timelines);
		return;
	}
	*batch = (struct batch){.queue = queue, .count = timelines->count};
	memcpy(batch->points, timelines->points, bytes);
	*timelines->held_end = batch;
	timelines->held_end = &batch->next;
	timelines->held_count++;
	queue->held++;
}

void timelines_end(struct timelines *timelines)
{
	bool waits = false;
	for (size_t i = 0; i < timelines->count; i++) {
		waits = waits || timelines->points[i].is_wait;
	}
	const struct queue *queue = timelines->held != NULL ? find_queue(timelines, false) : NULL;
	bool is_behind = queue != NULL && queue->held > 0;
	if (timelines->is_lost || timelines->count == 0) {
		/* It changes nothing. */
	} else if (waits || is_behind) {
		hold_back(timelines);
	} else {
		signal_all(timelines, timelines->points, timelines->count);
		play(timelines);
	}
	pthread_mutex_unlock(&timelines->lock);
}

bool timelines_signalled(struct timelines *timelines, uint64_t semaphore, uint64_t value)
{
	pthread_mutex_lock(&timelines->lock);
	bool was_held = timelines->held != NULL;
	if (raise(timelines, semaphore, value)) {
		play(timelines);
	}
	bool is_free = was_held && timelines->held == NULL;
	pthread_mutex_unlock(&timelines->lock);
	return is_free;
}

bool timelines_hold(struct timelines *timelines, struct timelines_hold *hold)
{
	pthread_mutex_lock(&timelines->lock);
	const struct batch *batch = timelines->held;
	/* The first that is held back waits itself: nothing is before it. */
	const struct point *point = batch != NULL ? first_unreached(timelines, batch) : NULL;
	if (point != NULL) {
		const struct semaphore *semaphore = *find(timelines, point->semaphore);
		*hold = (struct timelines_hold){
			point->semaphore, point->value, semaphore->reached, timelines->held_count};
	}
	pthread_mutex_unlock(&timelines->lock);
	return point != NULL;
}
