#include "client/signals.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

int signals_number(const char *name)
{
	if (strncmp(name, "SIG", 3) != 0) {
		return 0;
	}
	name += 3;
	for (int number = 1; number < NSIG; number++) {
		const char *known = sigabbrev_np(number);
		if (known != NULL && strcmp(known, name) == 0) {
			return number;
		}
	}
	if (strcmp(name, "IO") == 0) {
		return SIGIO; /* sigabbrev_np has its other name */
	}
	if (name[0] >= '0' && name[0] <= '9') {
		return atoi(name);
	}
	if (strncmp(name, "RTMIN", 5) == 0) {
		return SIGRTMIN + (name[5] == '+' ? atoi(name + 6) : 0);
	}
	return strncmp(name, "RTMAX", 5) == 0 ? SIGRTMAX + atoi(name + 5) : 0;
}
