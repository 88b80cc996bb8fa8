#ifndef CLIENT_RECORDING_H
#define CLIENT_RECORDING_H

#include <stdbool.h>

#include <jansson.h>

#include "client/job.h"
#include "client/profclient.h"
#include "protocol/error.h"
#include "protocol/gate.h"

struct profctl;

/*
 * A program that runs in this terminal, behind profd-gate as our own child, while the daemon records it: what record and gpu have in common. Its
 * steps: connect, start_gate, then the command asks for the capture and sets capture_id, go, follow_program, follow_capture. Main thread; one at a time.
 */
struct recording {
	/* Of the command's. */
	const char *progress, *finished, *failed; /* names of the capture's events */
	const char *what;                         /* what is recorded, for a person: "profile" */
	/* A progress event of the capture; and each time that something may have happened, while the program runs. NULL: nobody is told. */
	void (*show_progress)(void *context, const json_t *params);
	void (*look)(void *context);
	void *context;
	bool shows_progress;     /* a progress line may stand on the terminal */
	bool ignores_interrupts; /* the program does, as a shell's background job; we do not */

	struct profclient *client; /* owned */
	struct gate gate;
	struct job job;
	char capture_id[64];
	json_t *final;     /* owned; the terminal event, or NULL */
	struct error lost; /* why there will be no terminal event; code ERROR_NONE when there may */
};

#define RECORDING_NONE                                                                             \
	{                                                                                              \
		.job = JOB_NONE, .gate = {.fd = -1},                                                       \
	}

/* To a daemon, that is started where none runs. quiet: no progress line. False: told. */
bool recording_connect(struct recording *recording, const struct profctl *profctl, bool quiet);
/* The program is looked up, and waits. False: err; see recording_not_run. */
bool recording_start_gate(struct recording *recording, char **argv, struct error *err);
/* The capture's id of the reply that started it, which is taken; NULL: err stands already. False: err. */
bool recording_take_reply(struct recording *recording, json_t *reply, struct error *err);
/* Lets the program run. False: err, and the capture is discarded; see recording_not_run. */
bool recording_go(struct recording *recording, struct error *err);
/* Tells why the program did not run; returns 127 or 126 when the gate said so, 125 when it had no chance. Ends the gate. */
int recording_not_run(struct recording *recording, const struct error *err);

/* True while a terminal event may still come. */
bool recording_is_open(const struct recording *recording);
/* Until the program has ended. */
void recording_follow_program(struct recording *recording);
/* Until the capture has ended too, or cannot any more, or nobody wants to wait. */
void recording_follow_capture(struct recording *recording);

/* Takes the progress line away. */
void recording_clear_progress(const struct recording *recording);
/* Tells the error of a terminal event that is a failure. */
void recording_tell_failure(const struct recording *recording);
void recording_finish(struct recording *recording);

#endif
