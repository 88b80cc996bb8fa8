#ifndef CLIENT_PROFCTL_H
#define CLIENT_PROFCTL_H

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>

#include "client/profclient.h"
#include "protocol/error.h"

/* profctl: one entry of the table in profctl.c per command, one file per noun. */

/* Exit statuses (profctl(1)); record, gpu and launch --follow have their program's. */
#define EXIT_FAILED         1 /* the daemon said no */
#define EXIT_USAGE          2
#define EXIT_UNREACHABLE    3 /* no daemon, and none could be started */
#define EXIT_NOT_PERMITTED  4
#define EXIT_NOT_FOUND      5
#define EXIT_CAPTURE_FAILED 6
#define EXIT_TIMEOUT        7
#define EXIT_OTHER_VERSION  8

/* What the options before the command, or among its own, said. */
struct profctl {
	const char *socket_given; /* --socket, or NULL */
	bool json;                /* --json: records, events and errors as they came, one a line */
	bool no_start;            /* --no-start: fail rather than start a daemon */
	const char *color;        /* --color, or NULL */
	int idle_exit_s;          /* of a daemon that is started, as in profclient_options */
};

struct profctl_command {
	const char *name;
	const char *synopsis;
	const char *about;
	const char *help;             /* lines about its options; or NULL */
	const char *short_options;    /* for getopt; NULL: "" */
	const struct option *options; /* they end with PROFCTL_OPTIONS; NULL: those alone */
	/* argv[0] is the command's name. Returns the exit status. */
	int (*run)(struct profctl *profctl, int argc, char **argv);
};

extern const struct profctl_command record_command; /* record.c */
extern const struct profctl_command gpu_command;    /* gpu.c */
extern const struct profctl_command launch_command; /* launch.c */
extern const struct profctl_command ps_command, resume_command, stop_command,
	signal_command;                                  /* build.c */
extern const struct profctl_command output_command;  /* output.c */
extern const struct profctl_command input_command;   /* input.c */
extern const struct profctl_command capture_command; /* capture.c */
extern const struct profctl_command captures_command, wait_command, show_command, delete_command,
	symbolize_command, label_command, pin_command, unpin_command;   /* captures.c */
extern const struct profctl_command events_command;                 /* events.c */
extern const struct profctl_command daemon_command, status_command; /* daemon.c */
extern const struct profctl_command doctor_command;                 /* doctor.c */
extern const struct profctl_command call_command;                   /* call.c */

/* --- the command line (profctl.c) --- */

enum profctl_option {
	PROFCTL_SOCKET = 0x1000,
	PROFCTL_JSON,
	PROFCTL_NO_START,
	PROFCTL_COLOR,
	PROFCTL_HELP, /* it was shown: the command ends with success */
	PROFCTL_OWN,  /* the command's own long options begin here */
};

#define PROFCTL_OPTIONS                                                                            \
	{"socket", required_argument, NULL, PROFCTL_SOCKET},                                           \
		{"json", no_argument, NULL, PROFCTL_JSON},                                                 \
		{"no-start", no_argument, NULL, PROFCTL_NO_START},                                         \
		{"color", required_argument, NULL, PROFCTL_COLOR}, {"help", no_argument, NULL, 'h'},       \
	{                                                                                              \
		NULL, 0, NULL, 0                                                                           \
	}

/* The command's next own option, optarg and optind as with getopt_long; -1: no more; PROFCTL_HELP or '?' (told): see profctl_end. */
int profctl_option(
	struct profctl *profctl, const struct profctl_command *command, int argc, char **argv);
/* The exit status for what profctl_option returned that is no option of the command's. */
int profctl_end(int option);
/* For commands without options: parses the common ones and counts the operands. False: *status is the exit status. */
bool profctl_operands(struct profctl *profctl, const struct profctl_command *command, int argc,
	char **argv, int min, int max, int *status);
/* Of a command that runs a program in this terminal: take gets each of its own options, with context, and says whether it is good (told otherwise). *program is
 * what follows them, one word at least. False: *status is the exit status. */
bool profctl_program(struct profctl *profctl, const struct profctl_command *command, int argc,
	char **argv, bool (*take)(void *context, int option, const char *value), void *context,
	char ***program, int *status);
/* Prints how the command is called to stderr; returns EXIT_USAGE. */
int profctl_usage(const struct profctl_command *command);

/* Numbers on the command line. False: told, as "profctl: -F x: <what>". */
bool profctl_whole(
	const char *option, const char *text, json_int_t min, json_int_t max, json_int_t *value);
/* False: told, that what ("the label") is not UTF-8. */
bool profctl_text(const char *what, const char *text);
/* The same, and into the object as that member. */
bool profctl_set_text(json_t *object, const char *member, const char *what, const char *text);
/* Seconds, whole or with a fraction, from 0.001 (or 0 when that is allowed) to a week, as milliseconds. */
bool profctl_seconds(
	const char *option, const char *text, bool zero_allowed, json_int_t *milliseconds);

/* --- what is told (profctl.c) --- */

/* Prints "profctl: <message> (<hint>)" to stderr. */
void profctl_complain(const struct error *err);
/* The same of what our own options have asked for: the message names these (advice_print_message). */
void profctl_complain_of_options(const struct error *err);
/* The exit status that stands for an error. */
int profctl_status_of(const struct error *err);
/* Tells an error, with --json as one line on stdout; returns its exit status. The other: of what our own options have asked for. */
int profctl_fail(const struct profctl *profctl, const struct error *err);
int profctl_fail_of_options(const struct profctl *profctl, const struct error *err);
/* Whether stdout is coloured: --color, else NO_COLOR, else a terminal. */
bool profctl_colors(const struct profctl *profctl);
/* Prints value to out as one line of JSON. */
void profctl_print_json(FILE *out, const json_t *value);

/* --- the daemon (session.c) --- */

/* A connection; starts a daemon when none runs and that is allowed. NULL: it was told, *status is the exit status. */
struct profclient *profctl_connect(const struct profctl *profctl, bool may_start, int *status);
/* The same with the error for the caller: nothing is told. */
struct profclient *profctl_try_connect(
	const struct profctl *profctl, bool may_start, struct error *err);
/* A connection to a daemon of any version, never started. NULL: err. */
struct profclient *profctl_connect_any(const struct profctl *profctl, struct error *err);
/* A call that may take as long as it takes; takes params. NULL: told, *status is the exit status. Owned. */
json_t *profctl_call(const struct profctl *profctl, struct profclient *client, const char *method,
	json_t *params, int *status);
/* The same with the error for the caller. */
json_t *profctl_try(
	struct profclient *client, const char *method, json_t *params, struct error *err);
/* profclient_reply, profclient_event and profclient_send with our kind of error. */
enum profclient_got profctl_reply(
	struct profclient *client, int64_t id, int timeout_ms, json_t **result, struct error *err);
enum profclient_got profctl_event(
	struct profclient *client, int timeout_ms, json_t **event, struct error *err);
int64_t profctl_send(
	struct profclient *client, const char *method, json_t *params, struct error *err);

/* Calls a list method page by page; visit returns false to end early. False: err. */
bool profctl_pages(struct profclient *client, const char *method, const char *member,
	bool (*visit)(void *context, const json_t *record), void *context, struct error *err);

#endif
