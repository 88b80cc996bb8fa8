#ifndef ANALYZER_TREE_ATTRIBUTION_H
#define ANALYZER_TREE_ATTRIBUTION_H

#include <stdbool.h>
#include <stdint.h>

#include "analyzer/model/model.h"
#include "analyzer/symbol/symbol.h"
#include "analyzer/tree/functions.h"
#include "analyzer/tree/tree.h"

/*
 * What the samples of a model are attributed to, and how well that went. The path of a stack is its thread's name, then its
 * frames from the outermost to the innermost; threads with the same name merge. A stack that could not be taken is
 * "[no user stack]" below its thread. Only samples of the first metric count.
 */
struct attribution_image {
	uint64_t samples;         /* samples with a frame in it */
	uint64_t self;            /* samples whose innermost frame is in it */
	uint64_t frames, unnamed; /* frames in it, times the samples of their stacks */
	/* of its samples: what is known of their stacks, as for all (struct attribution) */
	uint64_t complete, stitched, truncated;
	/* samples whose stack ends in it: broken, nobody knows whether that is the end, or nothing is known about its code */
	uint64_t broken, open, unruled;
};

/* Samples whose innermost frame is in no image. With the images' self they are all samples. */
struct attribution_elsewhere {
	uint64_t kernel;
	uint64_t unmapped; /* an address where nothing was mapped */
	uint64_t other;    /* interpreted code, a marker */
	uint64_t nowhere;  /* no stack */
};

struct attribution {
	struct tree *tree; /* finished */
	struct functions functions;
	struct attribution_image *images; /* by index in the model */
	uint64_t samples;
	/* of the samples: */
	uint64_t
		complete; /* reached the outermost frame: said by the unwinder, or seen by the name of that frame (_start, clone …) */
	uint64_t stitched; /* put together over a gap */
	uint64_t
		truncated; /* cut at the depth limit or the end of the copy, contradicting memory, or no stack at all */
	uint64_t open; /* neither: the method cannot tell whether they reached the outermost frame */
	uint64_t ends[JOURNAL_STACK_ENDS]; /* by enum journal_stack_end */
	uint64_t
		faults[JOURNAL_STACK_ENDS]; /* of these, those that are neither complete nor stitched */
	struct attribution_elsewhere elsewhere;
	/* frames of programs (not of the kernel), times the samples of their stacks */
	uint64_t frames, unnamed;
};

/* Told now and then, with the share that is done in thousandths. */
typedef void (*attribution_progress_fn)(void *context, unsigned permille);

/* strings: those of model and symbols. NULL: memory is out. */
struct attribution *attribution_create(const struct model *model, struct symbols *symbols,
	struct strings *strings, attribution_progress_fn progress, void *context);
void attribution_destroy(struct attribution *attribution);

#endif
