#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>

/*
 * The daemon's log: one line "LEVEL area: message" on stderr with a time stamp. Only commands/, capture/ (where an
 * error ends) and main.c log above debug; libraries return errors. Any thread (one write per line).
 */
enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

struct log {
	enum log_level level;
	int fd; /* borrowed */
};

void log_write(const struct log *log, enum log_level level, const char *area, const char *format,
	...) __attribute__((format(printf, 4, 5)));
/* False when the name is none of error, warn, info, debug. */
bool log_level_from_name(const char *name, enum log_level *level);

#endif
