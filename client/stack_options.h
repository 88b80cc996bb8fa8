#ifndef CLIENT_STACK_OPTIONS_H
#define CLIENT_STACK_OPTIONS_H

#include <stdbool.h>

#include <jansson.h>

#include "client/profctl.h"

/* --unwind, --max-depth and --no-stitch of record, capture and launch: how stacks are made. */

enum {
	STACK_UNWIND = PROFCTL_OWN + 0x100, /* clear of the commands' own */
	STACK_DEPTH,
	STACK_NO_STITCH,
};

/* For the commands' tables. */
#define STACK_OPTIONS                                                                              \
	{"unwind", required_argument, NULL, STACK_UNWIND},                                             \
		{"max-depth", required_argument, NULL, STACK_DEPTH},                                       \
	{                                                                                              \
		"no-stitch", no_argument, NULL, STACK_NO_STITCH                                            \
	}

/* For the commands' help. */
#define STACK_HELP                                                                                 \
	"      --unwind METHOD     auto (the default), fp: by frame pointers alone, or dwarf:\n"       \
	"                          by call-frame information alone\n"                                  \
	"      --max-depth FRAMES  of a stack that are kept\n"                                         \
	"      --no-stitch         leave stacks cut that are longer than what is copied\n"

bool stack_option_is(int option);
/* Sets a member of a StartSamplingProfile's parameters. False: told. */
bool stack_option_set(json_t *params, int option, const char *value);

#endif
