#include "gpu/survivors.h"

#include <ctype.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "process/descendants.h"
#include "target/target.h"

#define ENVIRONMENT_BYTES (256u * 1024)

static bool has_variable(pid_t pid, const char *variable, char *text)
{
	size_t len = 0, at = 0;
	if (!target_is_ours(pid, NULL) ||
		!target_environment(pid, text, ENVIRONMENT_BYTES, &len, NULL)) {
		return false;
	}
	len = len < ENVIRONMENT_BYTES ? len : ENVIRONMENT_BYTES;
	text[len] = '\0';
	while (at < len && strcmp(text + at, variable) != 0) {
		at += strlen(text + at) + 1;
	}
	return at < len;
}

pid_t survivors_find(const char *variable, char *name, size_t size)
{
	char *text = malloc(ENVIRONMENT_BYTES + 1);
	DIR *folder = text != NULL ? opendir("/proc") : NULL;
	struct dirent *entry = NULL;
	pid_t found = 0;
	while (folder != NULL && found == 0 && (entry = readdir(folder)) != NULL) {
		pid_t pid = isdigit((unsigned char)entry->d_name[0]) ? (pid_t)atoi(entry->d_name) : 0;
		found = pid > 0 && has_variable(pid, variable, text) ? pid : 0;
	}
	if (folder != NULL) {
		closedir(folder);
	}
	free(text);
	char full[DESCENDANT_NAME_BYTES] = "";
	if (found != 0) {
		descendant_name(found, full);
	}
	snprintf(name, size, "%s", full);
	return found;
}
