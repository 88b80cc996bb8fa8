#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *const names[] = {
	[LOG_ERROR] = "error", [LOG_WARN] = "warn", [LOG_INFO] = "info", [LOG_DEBUG] = "debug"};

/* One line at most: what a target or client named must not be able to forge a second one. */
static void flatten(char *text)
{
	for (; *text != '\0'; text++) {
		if ((unsigned char)*text < 0x20 || *text == 0x7f) {
			*text = '?';
		}
	}
}

void log_write(
	const struct log *log, enum log_level level, const char *area, const char *format, ...)
{
	if (level > log->level) {
		return;
	}
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	struct tm utc;
	gmtime_r(&now.tv_sec, &utc);
	char line[6144];
	size_t used = strftime(line, sizeof(line), "%Y-%m-%dT%H:%M:%S", &utc);
	used += (size_t)snprintf(line + used, sizeof(line) - used,
		".%03ldZ %s %s: ", now.tv_nsec / 1000000, names[level], area);
	va_list args;
	va_start(args, format);
	vsnprintf(line + used, sizeof(line) - used - 1, format, args);
	va_end(args);
	flatten(line);
	size_t length = strlen(line);
	line[length] = '\n';
	/* A log that cannot be written has nowhere to complain. */
	ssize_t written = write(log->fd, line, length + 1);
	(void)written;
}

bool log_level_from_name(const char *name, enum log_level *level)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(names[i], name) == 0) {
			*level = (enum log_level)i;
			return true;
		}
	}
	return false;
}
