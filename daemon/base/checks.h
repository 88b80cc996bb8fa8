#ifndef BASE_CHECKS_H
#define BASE_CHECKS_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "base/vec.h"

/*
 * What was looked at, whether it is as it should be, and what would change it: the answer of Doctor, gathered by whoever knows.
 * Zero is an empty list. Not thread-safe.
 */
enum check_status { CHECK_OK, CHECK_WARN, CHECK_FAIL };

struct check {
	const char *id; /* static, snake_case */
	enum check_status status;
	char value[160];   /* as it was found, short */
	char message[512]; /* one sentence for a person */
	char fix[512];     /* the exact command or step, or "" */
};

struct checks {
	struct check *items;
	size_t len, capacity;
	bool is_short; /* memory was out: some are missing */
};

/* An empty one at the end, CHECK_OK, to be filled in; valid until the next one. Never NULL: without memory one that is in no list. */
struct check *checks_add(struct checks *checks, const char *id);

void check_value(struct check *check, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The verdict. fix may be NULL. */
void check_say(struct check *check, enum check_status status, const char *fix, const char *format,
	...) __attribute__((format(printf, 4, 5)));

/* [{id, status, value, message, fix}], fix null when there is nothing to change. Owned; NULL when memory is out. */
json_t *checks_json(const struct checks *checks);
void checks_finish(struct checks *checks);

#endif
