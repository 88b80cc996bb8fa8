#ifndef SERVER_HISTORY_H
#define SERVER_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The last events, for clients that come back: at most LIMIT_KEPT_EVENTS, and LIMIT_KEPT_EVENT_BYTES of text, so that all of it fits a
 * client's queue. Pure; zero is an empty history.
 */
struct history_event {
	uint64_t seq;
	const char *name;             /* static */
	char *build_key, *capture_id; /* owned; NULL: not about one */
	char *line;                   /* owned */
	size_t len;
};

struct history {
	struct history_event *events; /* a ring of LIMIT_KEPT_EVENTS; owned */
	size_t first, count, bytes;
	uint64_t lost_seq; /* the newest one that was to be kept and is not any more; 0: none */
};

void history_finish(struct history *history);

/* Keeps a copy, of rising seq. What does not fit in memory counts as lost. */
void history_add(struct history *history, const struct history_event *event);

/* Oldest first; NULL behind the last. Valid until the next add. */
const struct history_event *history_at(const struct history *history, size_t index);

/* True when every event after seq that was to be kept is still there. */
bool history_reaches(const struct history *history, uint64_t seq);

#endif
