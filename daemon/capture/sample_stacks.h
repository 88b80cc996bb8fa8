#ifndef CAPTURE_SAMPLE_STACKS_H
#define CAPTURE_SAMPLE_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/codes.h"
#include "profile/journal_writer.h"
#include "protocol/error.h"
#include "sampler/sampler.h"

/*
 * From samples of one process to the ids of their stacks: frames as the kernel followed them, or unwound from registers and a copy of the
 * stack. A stack that was not met before is appended to the journal. One thread; for a known stack it allocates, formats and locks nothing.
 */
struct sample_stacks;

enum sample_unwind {
	SAMPLE_UNWIND_FP,    /* samples hold frames */
	SAMPLE_UNWIND_AUTO,  /* by call-frame information, and by frame pointers where code has none */
	SAMPLE_UNWIND_DWARF, /* by call-frame information alone */
};

struct sample_stacks_options {
	struct journal_writer *writer; /* borrowed */
	enum sample_unwind unwind;
	struct codes *codes; /* shared by reference; NULL with SAMPLE_UNWIND_FP */
	uint32_t max_frames; /* of an unwound stack; 0: the default */
	uint32_t mark; /* the id of the FRAME that marks what was stitched; 0: nothing is stitched */
	bool kernel_frames; /* are kept */
};

/* On a machine whose stacks cannot be unwound it is as with SAMPLE_UNWIND_FP. NULL: memory is out (limit_exceeded). */
struct sample_stacks *sample_stacks_create(
	const struct sample_stacks_options *options, struct error *err);
void sample_stacks_destroy(struct sample_stacks *stacks);

/* Does it want registers and copies of stacks? */
bool sample_stacks_unwinds(const struct sample_stacks *stacks);
/* Too many stacks were longer than what is copied of them. */
bool sample_stacks_want_more(const struct sample_stacks *stacks);

/* The process runs another program. */
void sample_stacks_exec(struct sample_stacks *stacks);
/* An executable mapping of an image, of a kind (enum journal_image_kind); fd: its file, borrowed, or -1. */
void sample_stacks_map(struct sample_stacks *stacks, const struct sampler_mapping *mapping,
	uint32_t image, uint64_t kind, int fd);
/* Mappings may have been lost: that no code is known at an address means nothing from here on. */
void sample_stacks_doubt(struct sample_stacks *stacks);

struct sample_stack {
	uint32_t id; /* 0: there is nothing to say */
	bool is_new;
	bool is_cut; /* outer frames are missing, and were not known before either */
};
struct sample_stack sample_stacks_take(
	struct sample_stacks *stacks, const struct sampler_sample *sample);

#endif
