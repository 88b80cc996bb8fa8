#ifndef COMMANDS_COMMAND_H
#define COMMANDS_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "commands/daemon.h"
#include "server/request.h"

/*
 * A method of the protocol: one const struct command in commands/<noun>.c and one line in commands.c. The parameter table checks a
 * request before the handler runs (unknown names, types, ranges: bad_params naming the parameter, its value and what is
 * allowed), and is what Describe shows.
 */
enum param_type {
	PARAM_BOOLEAN,
	PARAM_INTEGER, /* min and max hold; a real without fraction is one */
	PARAM_STRING,  /* max: bytes, 0: LIMIT_REQUEST_BYTES; no NUL */
	PARAM_ID,      /* a string (1 to LIMIT_ID_BYTES bytes) or an integer up to 2^53 */
	PARAM_STRINGS, /* an array of strings; min and max: its length */
	PARAM_OBJECT,
	PARAM_OPTIONS, /* true, which is an empty object after the check, or an object with members; false stays */
	PARAM_ENUM,   /* one of choices */
	PARAM_SIGNAL, /* "TERM", "SIGTERM" or 15 */
	PARAM_PATH,   /* an absolute path without NUL */
};

struct param {
	const char *name;
	enum param_type type;
	bool required;
	int64_t min, max;
	const char *const
		*choices; /* PARAM_ENUM and PARAM_STRINGS: NULL-terminated, those that work now */
	const char *const *later; /* values of the contract that answer unsupported, or NULL */
	bool
		is_unsupported; /* the contract's, not built yet: any value but null and the fallback answers unsupported */
	const struct param
		*members;         /* PARAM_OBJECT, PARAM_OPTIONS: the table of its members, or NULL: any */
	const char *fallback; /* the default as JSON text, for Describe; NULL: none */
	const char *about;    /* one sentence for Describe */
};

struct command {
	const char *name;
	const struct param *params; /* ends with a NULL name; NULL: none */
	/* Answers now or later, exactly once. params holds checked values, never NULL; borrowed. NULL: the method is in the contract and answers unsupported. */
	void (*run)(struct daemon *daemon, struct request *request, const json_t *params);
	const char *about;         /* one sentence for Describe */
	const char *result;        /* the result's members, for Describe */
	const char *const *events; /* NULL-terminated names, or NULL */
	const char *const
		*errors; /* NULL-terminated data.code names beyond the standard ones, or NULL */
	bool runs_while_stopping; /* allowed after Shutdown */
};

/* Every method of the contract, sorted as in it; NULL-terminated. */
extern const struct command *const commands[];

const struct command *command_find(const char *name);

/* The server's request callback: finds, checks, runs. context is the struct daemon. */
void command_dispatch(void *context, struct request *request, const char *method, json_t *params);

/* Checks params (NULL: none) against the table; the checked copy has parameters that were null removed. NULL: err. Owned. */
json_t *command_check(const struct command *command, const json_t *params, struct error *err);

/* Values after the check; a missing one gives fallback. */
int64_t command_integer(const json_t *params, const char *name, int64_t fallback);
bool command_boolean(const json_t *params, const char *name, bool fallback);
const char *command_string(const json_t *params, const char *name, const char *fallback);
/* The number of a PARAM_SIGNAL. */
int command_signal(const json_t *params, const char *name, int fallback);

#endif
