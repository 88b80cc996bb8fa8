#include "store/capture_id.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

static const char shape[] = "dddddddd-dddddd-xxxxxxxx";

void capture_id_make(uint64_t unix_us, char id[CAPTURE_ID_BYTES])
{
	/* Without random digits ids are still distinct within one daemon: the time never repeats. */
	uint16_t random = 0;
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != (ssize_t)sizeof(random)) {
		random = 0;
	}
	time_t seconds = (time_t)(unix_us / 1000000);
	struct tm tm = {0};
	gmtime_r(&seconds, &tm);
	char date[CAPTURE_ID_BYTES];
	strftime(date, sizeof(date), "%Y%m%d-%H%M%S", &tm);
	snprintf(id, CAPTURE_ID_BYTES, "%.15s-%05x%03x", date, (unsigned)(unix_us % 1000000),
		random & 0xfffu);
}

static bool has_shape(const char *name)
{
	if (strlen(name) != sizeof(shape) - 1) {
		return false;
	}
	for (size_t i = 0; shape[i] != '\0'; i++) {
		bool is_digit = name[i] >= '0' && name[i] <= '9';
		bool is_hex = is_digit || (name[i] >= 'a' && name[i] <= 'f');
		if (shape[i] == '-' ? name[i] != '-' : shape[i] == 'd' ? !is_digit : !is_hex) {
			return false;
		}
	}
	return true;
}

bool capture_id_parse(const char *name, uint64_t *unix_us)
{
	if (!has_shape(name)) {
		return false;
	}
	struct tm tm = {0};
	unsigned tail;
	if (sscanf(name, "%4d%2d%2d-%2d%2d%2d-%8x", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour,
			&tm.tm_min, &tm.tm_sec, &tail) != 7 ||
		tail >> 12 >= 1000000 || tm.tm_mon < 1 || tm.tm_mon > 12 || tm.tm_year < 1970) {
		return false;
	}
	tm.tm_year -= 1900;
	tm.tm_mon -= 1;
	*unix_us = (uint64_t)timegm(&tm) * 1000000 + (tail >> 12);
	return true;
}
