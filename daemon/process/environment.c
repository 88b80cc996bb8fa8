#include "process/environment.h"

#include <stdlib.h>
#include <string.h>

#include "protocol/limits.h"

/* What tells the daemon about its own manager (systemd.exec(5)) and about itself; a star ends a prefix. */
static const char *const private_names[] = {
	"INVOCATION_ID",
	"JOURNAL_STREAM",
	"LISTEN_*",
	"MANAGERPID",
	"MEMORY_PRESSURE_*",
	"NOTIFY_SOCKET",
	"PROFD_*",
	"WATCHDOG_*",
};

struct variable {
	const char *text;
	size_t name_len;
	size_t order;
};

static bool is_private(const struct variable *variable)
{
	for (size_t i = 0; i < sizeof(private_names) / sizeof(private_names[0]); i++) {
		const char *name = private_names[i];
		size_t len = strcspn(name, "*");
		bool fits = name[len] == '*' ? variable->name_len >= len : variable->name_len == len;
		if (fits && memcmp(variable->text, name, len) == 0) {
			return true;
		}
	}
	return false;
}

static int compare_names(const struct variable *a, const struct variable *b)
{
	size_t shorter = a->name_len < b->name_len ? a->name_len : b->name_len;
	int order = memcmp(a->text, b->text, shorter);
	return order != 0 ? order : (a->name_len > b->name_len) - (a->name_len < b->name_len);
}

static int compare(const void *a, const void *b)
{
	const struct variable *first = a, *second = b;
	int order = compare_names(first, second);
	return order != 0 ? order : (first->order > second->order) - (first->order < second->order);
}

static size_t count(const char *const *texts)
{
	size_t len = 0;
	while (texts != NULL && texts[len] != NULL) {
		len++;
	}
	return len;
}

/* Appends the texts; false at one without a name. */
static bool collect(struct variable *variables, size_t *len, const char *const *texts, bool is_base)
{
	for (size_t i = 0; texts != NULL && texts[i] != NULL; i++) {
		struct variable variable = {texts[i], strcspn(texts[i], "="), *len};
		if (is_base && (variable.name_len == 0 || is_private(&variable))) {
			continue;
		}
		if (variable.name_len == 0) {
			return false;
		}
		variables[(*len)++] = variable;
	}
	return true;
}

/* The last of each name, unless that unsets it. */
static void keep_last(char **environment, const struct variable *variables, size_t len)
{
	size_t used = 0;
	for (size_t i = 0; i < len; i++) {
		bool is_last = i + 1 == len || compare_names(&variables[i], &variables[i + 1]) != 0;
		if (is_last && variables[i].text[variables[i].name_len] == '=') {
			environment[used++] = (char *)variables[i].text;
		}
	}
	environment[used] = NULL;
}

char **environment_create(const char *const *base, const char *const *changes, struct error *err)
{
	if (count(changes) > LIMIT_ENVIRONMENT) {
		error_set(err, ERROR_BAD_PARAMS, "env has %zu variables, at most %d are taken",
			count(changes), LIMIT_ENVIRONMENT);
		return NULL;
	}
	size_t most = count(base) + count(changes);
	size_t len = 0;
	struct variable *variables = calloc(most + 1, sizeof(*variables));
	char **environment = calloc(most + 1, sizeof(*environment));
	if (variables == NULL || environment == NULL) {
		error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for %zu variables", most);
		goto fail;
	}
	if (!collect(variables, &len, base, true) || !collect(variables, &len, changes, false)) {
		error_set(err, ERROR_BAD_PARAMS, "env has a variable without a name");
		goto fail;
	}
	qsort(variables, len, sizeof(*variables), compare);
	keep_last(environment, variables, len);
	free(variables);
	return environment;

fail:
	free(variables);
	free(environment);
	return NULL;
}

char **environment_copy(const char *const *texts)
{
	size_t len = count(texts), bytes = (len + 1) * sizeof(char *);
	for (size_t i = 0; i < len; i++) {
		bytes += strlen(texts[i]) + 1;
	}
	char **copy = calloc(1, bytes);
	char *to = copy != NULL ? (char *)(copy + len + 1) : NULL;
	for (size_t i = 0; copy != NULL && i < len; i++) {
		copy[i] = to;
		to = stpcpy(to, texts[i]) + 1;
	}
	return copy;
}
