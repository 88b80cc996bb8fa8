#ifndef GPU_CANDIDATES_H
#define GPU_CANDIDATES_H

#include <stdbool.h>
#include <stddef.h>

#include "gpu/link.h"

/* The processes of an armed program that are listened to, and which of them a recording is for. Zero-initialise. */
struct candidates {
	struct link *links[LIMIT_GPU_LINKS]; /* borrowed */
	size_t count;
	char device[GPU_PICK_WISH_BYTES]; /* that the recording started last is for; "": each */
};

/* False: there are as many as there may be. */
bool candidates_add(struct candidates *candidates, struct link *link);
void candidates_remove(struct candidates *candidates, const struct link *link);

/* It has a device that the recording is, or may be, for. */
bool candidates_has_wished(const struct candidates *candidates, const struct link *link);
/* 2: it works with the wished GPU; 1: it may come to that; 0: it works with others. */
int candidates_rank(const struct candidates *candidates, const struct link *link);
/* Who works most with the GPU, or will; NULL: nobody is there. */
struct link *candidates_choose(const struct candidates *candidates);

/*
 * A recording may be for device: it is the wished one from now on, *has_wished says whether one of them has it, and made which they have, for people.
 * False: err; none has it and none will (gpu_no_calls, device_not_used), or it may be several (bad_params, device_ambiguous).
 */
bool candidates_wish(struct candidates *candidates, const char *device, bool *has_wished,
	char *made, size_t made_size, struct error *err);

#endif
