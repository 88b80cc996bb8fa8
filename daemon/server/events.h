#ifndef SERVER_EVENTS_H
#define SERVER_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "protocol/error.h"

/*
 * Events: from those who know something to the connections that want to hear it. One rising seq per daemon. Loop thread only.
 */
struct events;
struct client;

enum events_class {
	EVENTS_LOSSLESS, /* state changes: queued until they are sent, or the client is disconnected */
	EVENTS_LATEST, /* progress: one slot per name and subject in a client's queue, overwritten while unsent */
	EVENTS_DROPPABLE, /* output: dropped when the queue is full, and counted */
};

/* What an event is about; either may be NULL. build_key is process_key(). Borrowed. */
struct events_subject {
	const char *build_key;
	const char *capture_id;
};

/* Sends {"jsonrpc":"2.0","method":name,"params":params + seq} to everyone who subscribed to one of the subjects. Takes params. */
void events_publish(struct events *events, const char *name, enum events_class class,
	const struct events_subject *subject, json_t *params);

/* The client hears of the subject from now on, until it goes or events_forget. Repeated: true. False: memory is out. A subject with both
 * members matches either. A half-closed client stays open while it has subscriptions to captures. */
bool events_subscribe(
	struct events *events, struct client *client, const struct events_subject *subject);

/* What a client asked for with Subscribe. All borrowed. */
struct events_filter {
	const char *const *names;           /* of events, NULL-terminated; NULL: all */
	const char *build_key, *capture_id; /* NULL: whatever it is about; both: either of the two */
};

/*
 * Adds a subscription that lasts until it is removed or the client goes; it does not keep a half-closed client open. The id is never
 * used again. 0: err is limit_exceeded.
 */
uint64_t events_add(struct events *events, struct client *client,
	const struct events_filter *filter, struct error *err);
/* What the client's subscription is to, borrowed. False: the client has none with this id. */
bool events_get(const struct events *events, const struct client *client, uint64_t id,
	struct events_filter *filter);
/* False: the client has none with this id. */
bool events_remove(struct events *events, struct client *client, uint64_t id);

/* True when every event after since_seq is still kept (lossless ones are: see server/history.h). */
bool events_reach(const struct events *events, uint64_t since_seq);
/* Sends the client what is kept after since_seq and matches its subscription. */
void events_replay(struct events *events, struct client *client, uint64_t id, uint64_t since_seq);

/* Whoever hears of the build by events_subscribe hears of its capture, too, also when the build is forgotten. False: memory is out. */
bool events_pass_on(struct events *events, const char *build_key, const char *capture_id);

/* Nothing about this subject will ever come again, to those that events_subscribe let hear of it. */
void events_forget(struct events *events, const struct events_subject *subject);

/* To every client, whatever it subscribed to (DaemonStopping). Takes params. */
void events_broadcast(struct events *events, const char *name, json_t *params);

uint64_t events_next_seq(const struct events *events);

#endif
