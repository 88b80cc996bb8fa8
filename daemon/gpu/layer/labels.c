#include "gpu/layer/labels.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 1024

struct record {
	struct record *next;
	const void *buffer;
	uint64_t pool;
	size_t used, size;
	char *text; /* labels, each with its NUL; owned */
};

struct labels {
	pthread_mutex_t lock;
	struct record *buckets[BUCKETS];
};

struct labels *labels_create(void)
{
	struct labels *labels = calloc(1, sizeof(*labels));
	if (labels != NULL) {
		pthread_mutex_init(&labels->lock, NULL);
	}
	return labels;
}

static struct record **bucket_of(struct labels *labels, const void *buffer)
{
	uint64_t hash = (uint64_t)(uintptr_t)buffer * UINT64_C(0x9E3779B97F4A7C15);
	return &labels->buckets[hash >> 54];
}

static struct record *find(struct labels *labels, const void *buffer)
{
	struct record *record = *bucket_of(labels, buffer);
	while (record != NULL && record->buffer != buffer) {
		record = record->next;
	}
	return record;
}

typedef bool (*is_meant_fn)(const struct record *record, uint64_t pool, const void *buffer);

static bool is_buffer(const struct record *record, uint64_t pool, const void *buffer)
{
	(void)pool;
	return record->buffer == buffer;
}

static bool is_in_pool(const struct record *record, uint64_t pool, const void *buffer)
{
	(void)buffer;
	return record->pool == pool;
}

static bool is_any(const struct record *record, uint64_t pool, const void *buffer)
{
	(void)record, (void)pool, (void)buffer;
	return true;
}

static void remove_from(struct record **at, is_meant_fn is_meant, uint64_t pool, const void *buffer)
{
	while (*at != NULL) {
		struct record *record = *at;
		if (is_meant(record, pool, buffer)) {
			*at = record->next;
			free(record->text);
			free(record);
		} else {
			at = &record->next;
		}
	}
}

static void remove_all(struct labels *labels, is_meant_fn is_meant, uint64_t pool)
{
	pthread_mutex_lock(&labels->lock);
	for (size_t i = 0; i < BUCKETS; i++) {
		remove_from(&labels->buckets[i], is_meant, pool, NULL);
	}
	pthread_mutex_unlock(&labels->lock);
}

void labels_destroy(struct labels *labels)
{
	if (labels == NULL) {
		return;
	}
	remove_all(labels, is_any, 0);
	pthread_mutex_destroy(&labels->lock);
	free(labels);
}

void labels_allocated(struct labels *labels, uint64_t pool, const void *buffer)
{
	struct record *record = calloc(1, sizeof(*record));
	if (record == NULL) {
		return; /* its labels are not seen */
	}
	record->pool = pool;
	record->buffer = buffer;
	pthread_mutex_lock(&labels->lock);
	struct record **bucket = bucket_of(labels, buffer);
	remove_from(bucket, is_buffer, 0, buffer);
	record->next = *bucket;
	*bucket = record;
	pthread_mutex_unlock(&labels->lock);
}

void labels_freed(struct labels *labels, const void *buffer)
{
	pthread_mutex_lock(&labels->lock);
	remove_from(bucket_of(labels, buffer), is_buffer, 0, buffer);
	pthread_mutex_unlock(&labels->lock);
}

void labels_pool_gone(struct labels *labels, uint64_t pool)
{
	remove_all(labels, is_in_pool, pool);
}

void labels_begun(struct labels *labels, const void *buffer)
{
	pthread_mutex_lock(&labels->lock);
	struct record *record = find(labels, buffer);
	if (record != NULL) {
		record->used = 0;
	}
	pthread_mutex_unlock(&labels->lock);
}

/* Behind what is there, as far as it fits LABELS_BYTES. bytes: whole labels. */
static void append(struct record *record, const char *bytes, size_t len)
{
	if (len > LABELS_BYTES - record->used) {
		return;
	}
	if (record->used + len > record->size) {
		size_t size = record->size * 2 > record->used + len ? record->size * 2 : record->used + len;
		char *text = realloc(record->text, size);
		if (text == NULL) {
			return;
		}
		record->text = text;
		record->size = size;
	}
	memcpy(record->text + record->used, bytes, len);
	record->used += len;
}

void labels_add(struct labels *labels, const void *buffer, const char *label)
{
	pthread_mutex_lock(&labels->lock);
	struct record *record = find(labels, buffer);
	if (record != NULL) {
		append(record, label, strlen(label) + 1);
	}
	pthread_mutex_unlock(&labels->lock);
}

void labels_join(struct labels *labels, const void *primary, const void *secondary)
{
	pthread_mutex_lock(&labels->lock);
	struct record *to = find(labels, primary), *from = find(labels, secondary);
	if (to != NULL && from != NULL && to != from) {
		for (size_t at = 0; at < from->used; at += strlen(from->text + at) + 1) {
			append(to, from->text + at, strlen(from->text + at) + 1);
		}
	}
	pthread_mutex_unlock(&labels->lock);
}

bool labels_match(struct labels *labels, const void *buffer, const char *prefix)
{
	bool found = false;
	pthread_mutex_lock(&labels->lock);
	const struct record *record = find(labels, buffer);
	for (size_t at = 0; record != NULL && !found && at < record->used;
		 at += strlen(record->text + at) + 1) {
		found = strncmp(record->text + at, prefix, strlen(prefix)) == 0;
	}
	pthread_mutex_unlock(&labels->lock);
	return found;
}
