#ifndef CLIENT_PROFCTL_H
#define CLIENT_PROFCTL_H

#include <stdbool.h>
#include <stdio.h>

#include "client/profclient.h"
#include "protocol/error.h"

/* profctl: one entry of the table in profctl.c per command, one file per group of commands. */

/* Exit statuses (profctl(1)). */
#define EXIT_FAILED      1 /* the daemon said no */
#define EXIT_USAGE       2
#define EXIT_UNREACHABLE 3 /* no daemon, and none could be started */

/* What the options before the command said. */
struct profctl {
	const char *socket_given; /* --socket, or NULL */
	bool json;                /* --json: replies as they came, one a line */
	bool no_start;            /* --no-start: fail rather than start a daemon */
};

struct profctl_command {
	const char *name;
	const char *synopsis;
	const char *about;
	/* argv[0] is the command's name. Returns the exit status. */
	int (*run)(const struct profctl *profctl, int argc, char **argv);
};

extern const struct profctl_command record_command; /* record.c */
extern const struct profctl_command ps_command;     /* show.c */
extern const struct profctl_command captures_command;
extern const struct profctl_command status_command;
extern const struct profctl_command call_command; /* call.c */

/* Prints "profctl: <message>" and the hint in a second line to stderr. */
void profctl_complain(const struct error *err);

/* Prints how the command is called to stderr; returns EXIT_USAGE. */
int profctl_usage(const struct profctl_command *command);

/* A connection; starts a daemon when none runs and that is allowed. NULL: it was told. start.c */
struct profclient *profctl_connect(const struct profctl *profctl, bool may_start);

/* Reads a text file or JSON value as one line. Prints value to out as one line of JSON. */
void profctl_print_json(FILE *out, const json_t *value);

#endif
