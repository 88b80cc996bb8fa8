#ifndef CLIENT_CAPTURES_H
#define CLIENT_CAPTURES_H

#include "client/profctl.h"

/* What commands share about captures. */

bool captures_has_failed(const json_t *record);
/* A record for a person; with --json as it came. On stdout. */
void captures_print(const struct profctl *profctl, const json_t *record);
/* WaitCapture (timeout_ms -1: without a limit), and prints the record. The exit status; errors are told. */
int captures_wait(const struct profctl *profctl, struct profclient *client, const char *id,
	json_int_t timeout_ms);

#endif
