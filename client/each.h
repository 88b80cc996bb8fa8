#ifndef CLIENT_EACH_H
#define CLIENT_EACH_H

#include "client/profctl.h"

/* One method of the daemon for each build or capture that a command line names. All borrowed. */
struct each {
	struct profctl *profctl;
	const char *method;
	const char *id_name;  /* "build_id" or "capture_id" */
	const json_t *params; /* beside the id; or NULL */
	/* ids_build or ids_capture */
	json_t *(*find)(
		const struct profctl *profctl, struct profclient *client, const char *text, int *status);
	void (*print)(const char *id, const json_t *result); /* for people; or NULL */
};

/* Connects and calls it for all of them, also when one fails. EXIT_SUCCESS, or the first failure's status; all of them were told. */
int each_run(const struct each *each, int count, char **texts);

#endif
