#include "client/stack_options.h"

#include <stdio.h>
#include <string.h>

#include "client/reply.h"
#include "protocol/limits.h"

bool stack_option_is(int option)
{
	return option >= STACK_UNWIND && option <= STACK_NO_STITCH;
}

static bool set_unwind(json_t *params, const char *value)
{
	static const char *const methods[] = {"auto", "fp", "dwarf"};
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		if (strcmp(methods[i], value) == 0) {
			return json_object_set_new(params, "unwind", json_string(value)) == 0;
		}
	}
	fputs("profctl: --unwind ", stderr);
	reply_print(stderr, value, 0);
	fputs(": auto, fp or dwarf is needed\n", stderr);
	return false;
}

bool stack_option_set(json_t *params, int option, const char *value)
{
	json_int_t depth = 0;
	switch (option) {
	case STACK_UNWIND:
		return set_unwind(params, value);
	case STACK_DEPTH:
		return profctl_whole("--max-depth", value, 1, LIMIT_MAX_DEPTH, &depth) &&
			   json_object_set_new(params, "max_depth", json_integer(depth)) == 0;
	default:
		return json_object_set_new(params, "stitch", json_false()) == 0;
	}
}
