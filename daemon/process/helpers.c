#include "process/helpers.h"

#include <stddef.h>

#include "process/record.h"

void helpers_add(struct processes *processes, pid_t group)
{
	if (processes == NULL || processes->helper_count == LIMIT_HELPERS) {
		return;
	}
	processes->helpers[processes->helper_count++] = group;
	guard_add(&processes->guard, group, NULL);
}

void helpers_remove(struct processes *processes, pid_t group)
{
	size_t i = 0;
	while (processes != NULL && i < processes->helper_count && processes->helpers[i] != group) {
		i++;
	}
	if (processes != NULL && i < processes->helper_count) {
		processes->helpers[i] = processes->helpers[--processes->helper_count];
		guard_remove(&processes->guard, group);
	}
}
