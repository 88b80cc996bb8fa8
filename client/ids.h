#ifndef CLIENT_IDS_H
#define CLIENT_IDS_H

#include "client/profctl.h"

/*
 * Builds and captures as they are named on a command line: by their id, or by how it begins when only one does. Of several builds of one id
 * it is the newest, as everywhere. NULL: told, and *status is the exit status (EXIT_NOT_FOUND also when several begin so). Owned.
 */
json_t *ids_build(
	const struct profctl *profctl, struct profclient *client, const char *text, int *status);
json_t *ids_capture(
	const struct profctl *profctl, struct profclient *client, const char *text, int *status);
/* The newest capture. */
json_t *ids_last_capture(const struct profctl *profctl, struct profclient *client, int *status);

/* Something may be called so, now or later. */
bool ids_is_possible(const char *text);

/* As ids_build, with the error for the caller. */
json_t *ids_try_build(struct profclient *client, const char *text, struct error *err);

#endif
