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
 * members matches either. A half-closed client stays open while it has subscriptions. */
bool events_subscribe(
	struct events *events, struct client *client, const struct events_subject *subject);

/* Nothing about this subject will ever come again. */
void events_forget(struct events *events, const struct events_subject *subject);

/* To every client, whatever it subscribed to (DaemonStopping). Takes params. */
void events_broadcast(struct events *events, const char *name, json_t *params);

uint64_t events_next_seq(const struct events *events);

#endif
