#ifndef UNWIND_STUB_H
#define UNWIND_STUB_H

#include <stdbool.h>
#include <stdint.h>

#include "image/image.h"
#include "image/image_cache.h"
#include "unwind/machine.h"
#include "unwind/rule.h"

/*
 * Pieces of code that have no call-frame information but one form everywhere, by which they are known: the trampolines behind signal handlers (musl's),
 * and the entries of procedure linkage tables, for which neither lld nor mold nor, on aarch64, GNU ld writes any.
 */

/* The rule at an address of the image. is_exact: pc is there; else a call returns there, which none does into a linkage table. False: it is none of
 * these. */
bool stub_find(const struct unwind_machine *machine, struct image_cache *cache,
	const struct image *image, uint64_t address, bool is_exact, struct rule *rule);

enum stub_call {
	STUB_CALL, /* it returns to the address; or the address is a trampoline's behind a signal handler */
	STUB_OTHER,   /* none does */
	STUB_UNKNOWN, /* the code cannot be read */
};

/* Does a call instruction end at the address? (Intel SDM, CALL: E8 and FF /2; Arm ARM, BL and BLR with their signed forms.) */
enum stub_call stub_is_call(const struct unwind_machine *machine, struct image_cache *cache,
	const struct image *image, uint64_t address);

#endif
