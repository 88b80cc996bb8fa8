#include "server/queue.h"

#include <stdlib.h>
#include <string.h>

#include "protocol/limits.h"

static size_t *bytes_of_class(struct queue *queue, enum events_class class)
{
	return class == EVENTS_LOSSLESS ? &queue->lossless_bytes : &queue->event_bytes;
}

void queue_finish(struct queue *queue)
{
	for (struct queue_line *line = queue->first; line != NULL;) {
		struct queue_line *next = line->next;
		queue_line_destroy(line);
		line = next;
	}
	json_decref(queue->dropped);
	*queue = (struct queue){0};
}

void queue_line_destroy(struct queue_line *line)
{
	if (line != NULL) {
		free(line->text);
		free(line->key);
		free(line);
	}
}

static struct queue_line *find_slot(const struct queue *queue, const char *key)
{
	if (queue->latest_lines == 0) {
		return NULL;
	}
	for (struct queue_line *line = queue->first; line != NULL; line = line->next) {
		if (line->key != NULL && strcmp(line->key, key) == 0) {
			return line;
		}
	}
	return NULL;
}

const struct queue_line *queue_slot(const struct queue *queue, const char *key)
{
	return find_slot(queue, key);
}

static void overwrite(struct queue *queue, struct queue_line *line, char *text, size_t len)
{
	queue->event_bytes = queue->event_bytes - line->len + len;
	free(line->text);
	line->text = text;
	line->len = len;
}

static enum queue_result count_dropped(struct queue *queue, const char *name)
{
	if (queue->dropped == NULL) {
		queue->dropped = json_object();
	}
	json_int_t count = json_integer_value(json_object_get(queue->dropped, name));
	bool counted = json_object_set_new(queue->dropped, name, json_integer(count + 1)) == 0;
	return counted ? QUEUE_DROPPED : QUEUE_FULL;
}

static enum queue_result append(
	struct queue *queue, enum events_class class, const char *key, char *text, size_t len)
{
	struct queue_line *line = calloc(1, sizeof(*line));
	if (line == NULL) {
		free(text);
		return QUEUE_FULL;
	}
	*line = (struct queue_line){.text = text, .len = len, .class = class};
	if (class == EVENTS_LATEST) {
		line->key = strdup(key);
		if (line->key == NULL) {
			queue_line_destroy(line);
			return QUEUE_FULL;
		}
		queue->latest_lines++;
	}
	if (queue->last != NULL) {
		queue->last->next = line;
	} else {
		queue->first = line;
	}
	queue->last = line;
	*bytes_of_class(queue, class) += len;
	return QUEUE_KEPT;
}

enum queue_result queue_put(struct queue *queue, enum events_class class, const char *name,
	const char *key, char *text, size_t len)
{
	if (class == EVENTS_LOSSLESS) {
		if (queue->lossless_bytes + len > LIMIT_QUEUE_HARD_BYTES) {
			free(text);
			return QUEUE_FULL;
		}
		return append(queue, class, NULL, text, len);
	}
	struct queue_line *slot = class == EVENTS_LATEST ? find_slot(queue, key) : NULL;
	if (slot != NULL) {
		overwrite(queue, slot, text, len);
		return QUEUE_KEPT;
	}
	if (queue->dropped != NULL || queue->event_bytes + len > LIMIT_QUEUE_EVENT_BYTES) {
		free(text);
		return count_dropped(queue, name);
	}
	return append(queue, class, key, text, len);
}

struct queue_line *queue_take(struct queue *queue)
{
	struct queue_line *line = queue->first;
	if (line == NULL) {
		return NULL;
	}
	queue->first = line->next;
	if (queue->first == NULL) {
		queue->last = NULL;
	}
	line->next = NULL;
	*bytes_of_class(queue, line->class) -= line->len;
	if (line->class == EVENTS_LATEST) {
		queue->latest_lines--;
	}
	return line;
}

bool queue_is_empty(const struct queue *queue)
{
	return queue->first == NULL;
}

json_t *queue_take_dropped(struct queue *queue)
{
	if (queue->dropped == NULL || queue->event_bytes > LIMIT_QUEUE_EVENT_BYTES / 2) {
		return NULL;
	}
	json_t *counts = queue->dropped;
	queue->dropped = NULL;
	return counts;
}
