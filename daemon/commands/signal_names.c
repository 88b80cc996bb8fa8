#include "commands/signal_names.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define SIGNAL(number)                                                                             \
	{                                                                                              \
		number, #number                                                                            \
	}

static const struct {
	int number;
	const char *name;
} names[] = {
	SIGNAL(SIGHUP),
	SIGNAL(SIGINT),
	SIGNAL(SIGQUIT),
	SIGNAL(SIGILL),
	SIGNAL(SIGTRAP),
	SIGNAL(SIGABRT),
	SIGNAL(SIGBUS),
	SIGNAL(SIGFPE),
	SIGNAL(SIGKILL),
	SIGNAL(SIGUSR1),
	SIGNAL(SIGSEGV),
	SIGNAL(SIGUSR2),
	SIGNAL(SIGPIPE),
	SIGNAL(SIGALRM),
	SIGNAL(SIGTERM),
	SIGNAL(SIGCHLD),
	SIGNAL(SIGCONT),
	SIGNAL(SIGSTOP),
	SIGNAL(SIGTSTP),
	SIGNAL(SIGTTIN),
	SIGNAL(SIGTTOU),
	SIGNAL(SIGURG),
	SIGNAL(SIGXCPU),
	SIGNAL(SIGXFSZ),
	SIGNAL(SIGVTALRM),
	SIGNAL(SIGPROF),
	SIGNAL(SIGWINCH),
	SIGNAL(SIGIO),
	SIGNAL(SIGSYS),
#ifdef SIGSTKFLT
	SIGNAL(SIGSTKFLT),
#endif
#ifdef SIGPWR
	SIGNAL(SIGPWR),
#endif
};

#define NAMES_COUNT (sizeof(names) / sizeof(names[0]))

const char *signal_name(int number, char out[SIGNAL_NAME_BYTES])
{
	for (size_t i = 0; i < NAMES_COUNT; i++) {
		if (names[i].number == number) {
			snprintf(out, SIGNAL_NAME_BYTES, "%s", names[i].name);
			return out;
		}
	}
#ifdef SIGRTMIN
	if (number >= SIGRTMIN && number <= SIGRTMAX) {
		snprintf(out, SIGNAL_NAME_BYTES, "SIGRTMIN+%d", (number - SIGRTMIN) & 0xff);
		return out;
	}
#endif
	snprintf(out, SIGNAL_NAME_BYTES, "SIG%d", number);
	return out;
}

static int from_number(double number)
{
	return number >= 1 && number < NSIG && (double)(int)number == number ? (int)number : 0;
}

static int from_name(const char *name)
{
	for (size_t i = 0; i < NAMES_COUNT; i++) {
		if (strcmp(names[i].name, name) == 0 || strcmp(names[i].name + strlen("SIG"), name) == 0) {
			return names[i].number;
		}
	}
	return 0;
}

int signal_from_json(const json_t *value)
{
	if (json_is_number(value)) {
		return from_number(json_number_value(value));
	}
	/* A NUL inside would end the comparison early. */
	if (!json_is_string(value) || strlen(json_string_value(value)) != json_string_length(value)) {
		return 0;
	}
	return from_name(json_string_value(value));
}

json_t *signal_to_json(int number)
{
	char name[SIGNAL_NAME_BYTES];
	return number == 0 ? json_null() : json_string(signal_name(number, name));
}
