#ifndef COMMANDS_BEGINNING_H
#define COMMANDS_BEGINNING_H

#include <jansson.h>

#include "commands/command.h"
#include "commands/daemon.h"

struct client;

/* What all commands that begin a capture share: some of their parameters, and what is done with the capture. */

#define BEGINNING_OUTPUT_DIR                                                                       \
	{                                                                                              \
		.name = "output_dir", .type = PARAM_PATH,                                                  \
		.about =                                                                                   \
			"A folder of ours in which the capture's folder is made; left out: the data folder."   \
	}
#define BEGINNING_LABEL                                                                            \
	{                                                                                              \
		.name = "label", .type = PARAM_STRING, .max = LIMIT_LABEL_BYTES,                           \
		.about = "A text for people, kept with the capture."                                       \
	}
#define BEGINNING_SUBSCRIBE                                                                        \
	{                                                                                              \
		.name = "subscribe", .type = PARAM_BOOLEAN, .fallback = "true",                            \
		.about = "Send this connection the capture's events."                                      \
	}
#define BEGINNING_ON_CLIENT_EXIT                                                                   \
	{                                                                                              \
		.name = "on_client_exit", .type = PARAM_ENUM, .choices = beginning_client_exits,           \
		.fallback = "\"continue\"",                                                                \
		.about = "What becomes of the capture when this connection goes."                          \
	}

extern const char *const beginning_client_exits[]; /* NULL-terminated */

/*
 * Ties a new capture (NULL: passed on) to client by on_client_exit, and to the build (NULL: of a bare pid). client NULL: it has gone, or the program asked.
 * NULL: memory is out (err), and the capture is discarded.
 */
struct capture *beginning_tie(struct daemon *daemon, const json_t *params, struct capture *capture,
	struct process *process, struct client *client, struct error *err);

/* Answers with the capture, and lets the client hear of it (subscribe). capture NULL: with err. */
void beginning_answer(struct daemon *daemon, struct request *request, const json_t *params,
	struct capture *capture, const struct error *err);

#endif
