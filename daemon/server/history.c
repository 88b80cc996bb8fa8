#include "server/history.h"

#include <stdlib.h>
#include <string.h>

#include "protocol/limits.h"

static void forget(struct history_event *event)
{
	free(event->build_key);
	free(event->capture_id);
	free(event->line);
}

static void forget_oldest(struct history *history)
{
	struct history_event *oldest = &history->events[history->first];
	history->lost_seq = oldest->seq;
	history->bytes -= oldest->len;
	history->first = (history->first + 1) % LIMIT_KEPT_EVENTS;
	history->count--;
	forget(oldest);
}

void history_finish(struct history *history)
{
	while (history->count > 0) {
		forget_oldest(history);
	}
	free(history->events);
	*history = (struct history){0};
}

static bool copy_text(const char *text, char **out)
{
	*out = text != NULL ? strdup(text) : NULL;
	return text == NULL || *out != NULL;
}

static bool copy(const struct history_event *event, struct history_event *out)
{
	*out = (struct history_event){.seq = event->seq, .name = event->name, .len = event->len};
	out->line = malloc(event->len);
	if (out->line == NULL || !copy_text(event->build_key, &out->build_key) ||
		!copy_text(event->capture_id, &out->capture_id)) {
		forget(out);
		return false;
	}
	memcpy(out->line, event->line, event->len);
	return true;
}

static bool has_ring(struct history *history)
{
	if (history->events == NULL) {
		history->events = calloc(LIMIT_KEPT_EVENTS, sizeof(*history->events));
	}
	return history->events != NULL;
}

/* A hole would be taken for nothing: what is older than an event that is lost goes too. */
static void lose(struct history *history, uint64_t seq)
{
	while (history->count > 0) {
		forget_oldest(history);
	}
	history->lost_seq = seq;
}

void history_add(struct history *history, const struct history_event *event)
{
	struct history_event kept;
	if (event->len > LIMIT_KEPT_EVENT_BYTES || !has_ring(history) || !copy(event, &kept)) {
		lose(history, event->seq);
		return;
	}
	while (history->count == LIMIT_KEPT_EVENTS ||
		   history->bytes + event->len > LIMIT_KEPT_EVENT_BYTES) {
		forget_oldest(history);
	}
	history->events[(history->first + history->count) % LIMIT_KEPT_EVENTS] = kept;
	history->count++;
	history->bytes += kept.len;
}

const struct history_event *history_at(const struct history *history, size_t index)
{
	return index < history->count ? &history->events[(history->first + index) % LIMIT_KEPT_EVENTS]
								  : NULL;
}

bool history_reaches(const struct history *history, uint64_t seq)
{
	return seq >= history->lost_seq;
}
