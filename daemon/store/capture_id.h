#ifndef STORE_CAPTURE_ID_H
#define STORE_CAPTURE_ID_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The name of a capture, "20261130-031504-1a2b3c4d": the UTC date and time, then the microsecond of that second in five hex
 * digits and three random ones. Names sort as the times do. Pure but for the random digits; any thread.
 */
#define CAPTURE_ID_BYTES 25

void capture_id_make(uint64_t unix_us, char id[CAPTURE_ID_BYTES]);
/* The time of a well-formed id; false for any other name. */
bool capture_id_parse(const char *name, uint64_t *unix_us);

#endif
