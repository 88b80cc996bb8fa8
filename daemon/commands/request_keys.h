#ifndef COMMANDS_REQUEST_KEYS_H
#define COMMANDS_REQUEST_KEYS_H

#include <stdbool.h>

#include <jansson.h>

#include "commands/command.h"

/*
 * What request_key promises: a request that creates something and is repeated within LIMIT_REQUEST_KEY_MS, on whatever connection, gets the
 * first one's result instead of doing it again; one that comes while the first still runs waits for it. A failure made nothing, so it is not
 * remembered. LIMIT_REQUEST_KEYS results are kept, in memory: another daemon knows none.
 */

/*
 * To be called before a command runs. True: it must not run, the request was answered, waits, or was refused (bad_params: the key was used
 * with other parameters). False: it is the first of its key, or has none.
 */
bool request_keys_take(struct daemon *daemon, struct request *request,
	const struct command *command, const json_t *params);

/* After the loop has ended. */
void request_keys_finish(struct daemon *daemon);

#endif
