#include "base/checks.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const status_names[] = {"ok", "warn", "fail"};

struct check *checks_add(struct checks *checks, const char *id)
{
	static _Thread_local struct check spare;
	struct check empty = {.id = id};
	if (!VEC_PUSH(checks, empty)) {
		checks->is_short = true;
		spare = empty;
		return &spare;
	}
	return &checks->items[checks->len - 1];
}

void check_value(struct check *check, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(check->value, sizeof(check->value), format, arguments);
	va_end(arguments);
}

void check_say(
	struct check *check, enum check_status status, const char *fix, const char *format, ...)
{
	va_list arguments;
	check->status = status;
	snprintf(check->fix, sizeof(check->fix), "%s", fix != NULL ? fix : "");
	va_start(arguments, format);
	vsnprintf(check->message, sizeof(check->message), format, arguments);
	va_end(arguments);
}

static json_t *check_json(const struct check *check)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s?}", "id", check->id, "status",
		status_names[check->status], "value", check->value, "message", check->message, "fix",
		check->fix[0] != '\0' ? check->fix : NULL);
}

json_t *checks_json(const struct checks *checks)
{
	json_t *list = json_array();
	for (size_t i = 0; i < checks->len; i++) {
		if (json_array_append_new(list, check_json(&checks->items[i])) != 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

void checks_finish(struct checks *checks)
{
	VEC_FINISH(checks);
}
