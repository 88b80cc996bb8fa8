#ifndef CLIENT_FOLLOW_H
#define CLIENT_FOLLOW_H

#include <stdbool.h>
#include <time.h>

#include "client/profctl.h"

/*
 * The output of a build, written to descriptors of ours in order: what events bring, and by GetOutput what they do not (because it was
 * written before, was dropped because we read too slowly, or goes to a file). What cannot be had any more is told on stderr.
 */
struct follow_stream {
	const char *name;  /* "stdout" or "stderr" */
	int fd;            /* ours; -1: not wanted */
	json_int_t offset; /* the next byte's */
	json_int_t lost;   /* bytes, not told yet */
	time_t told_s;     /* when some were */
};

struct follow {
	const struct profctl *profctl;
	struct profclient *client;
	const json_t *build_id; /* borrowed */
	struct follow_stream streams[2];
	bool polls;     /* its output comes without events: stdio file */
	json_t *exited; /* owned; the params of ProcessExited, or NULL */
};

/* Output to our stdout and stderr. follow_finish frees what it gathered. */
void follow_init(struct follow *follow, const struct profctl *profctl, struct profclient *client,
	const json_t *build_id);
void follow_finish(struct follow *follow);

/* Writes what GetOutput has of all streams. False: err. */
bool follow_read(struct follow *follow, struct error *err);

/* Takes one event of the connection, of whatever it is. False: err. */
bool follow_take(struct follow *follow, const json_t *event, struct error *err);

/* Until the build has ended and all is written. False: err. */
bool follow_run(struct follow *follow, struct error *err);

/* The exit status that a shell would give for ProcessExited's params or a record; its error, when it never ran, is told. */
int follow_status(const json_t *exited);

#endif
