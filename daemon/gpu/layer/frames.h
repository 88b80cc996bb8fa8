#ifndef GPU_LAYER_FRAMES_H
#define GPU_LAYER_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/gpu_wire.h"

/*
 * Where frames begin and end, and which of them are wished for. Pure: it knows neither Vulkan nor RenderDoc, and says what is to be done
 * where in a call of the program. Not thread-safe: the session's lock is around it.
 */

enum frame_rule {
	FRAME_AUTO, /* present once the device has a swapchain or has presented, until then submit */
	FRAME_SUBMIT,
	FRAME_PRESENT,
	FRAME_LABEL,
	FRAME_MANUAL, /* from the next submit or present until it is stopped */
};

/* The frames of one device. Zero when it is made. */
struct frame_counts {
	uint64_t submits, presents, labels;
	unsigned label_generation; /* of the prefix that labels counts */
	bool is_left_out;          /* what waits is not for this one */
	bool is_presenting;        /* it has a swapchain, or has presented */
	bool
		in_frame; /* something was submitted since the last present, or since there is a swapchain */
};

struct frame_wish {
	enum frame_rule rule;
	enum frame_rule counts;           /* how frames are numbered under FRAME_MANUAL; never that */
	char label[GPU_WIRE_LABEL_BYTES]; /* of the one that is by label */
	uint64_t next;        /* so many frames, from the next one on; 0: first and last say */
	uint64_t first, last; /* both included */
};

enum frames_state {
	FRAMES_IDLE,
	FRAMES_WAITING,   /* for the first frame */
	FRAMES_CAPTURING, /* until frames_ended */
};

/* Of one process. Zero is idle. */
struct frames {
	enum frames_state state;
	struct frame_wish wish;
	uint64_t next;                    /* the wish's, before it got its numbers */
	bool is_now;                      /* it begins where it was asked for, or not at all */
	const struct frame_counts *owner; /* the device that is captured; borrowed while capturing */
	enum frame_rule rule;             /* in use, since it began, or was late; never FRAME_AUTO */
	uint64_t first, reached; /* the first frame that is captured, and the last one that has begun */
	/* Work is not seen before a present: a frame that is presented is begun right behind the present before it. */
	bool is_blind;
	bool is_stopping;
	bool has_work;             /* something was submitted or presented since it began */
	unsigned label_generation; /* grows with each other prefix */
};

enum frame_step {
	FRAME_NOTHING,
	FRAME_BEGIN, /* start capturing here; then frames_begun or, when it failed, frames_ended */
	FRAME_END,   /* end capturing here; then frames_ended */
	FRAME_LATE, /* the first frame has begun already; frames->wish says which, the state is idle now */
};

/* False: another wish waits or is captured. */
bool frames_start(struct frames *frames, const struct frame_wish *wish);

/* Begins here and now, in the frame that is under way or comes next, until it is stopped: frames_begun or frames_ended follows. False: as frames_start. */
bool frames_start_now(struct frames *frames, const struct frame_counts *counts);

/* FRAME_BEGIN cannot be done here. True: what waits may begin at any later place, and goes on waiting. False: it was for here alone. */
bool frames_put_off(struct frames *frames);
/* FRAME_END, or a frame's end before, could not be done: what this device has begun since is captured too. */
void frames_extend(struct frames *frames, const struct frame_counts *counts);

/* True: what is captured ends at the next submit or present. False: nothing is captured, and nothing waits any more. */
bool frames_stop(struct frames *frames);

/* What is wished for counts labels. */
bool frames_count_labels(const struct frames *frames);

/* The prefix whose labels open frames; NULL while none was ever wished for. */
const char *frames_label(const struct frames *frames);

/* The device has a swapchain: what it submitted so far belongs to no frame that is presented. */
void frames_swapchain(struct frame_counts *counts);

/* Before a submit with command buffers, where a frame begins, also one that is presented; is_labelled: with a label that begins with frames_label. */
enum frame_step frames_before_submit(
	struct frames *frames, struct frame_counts *counts, bool is_labelled);
/* Behind it. */
enum frame_step frames_after_submit(struct frames *frames, const struct frame_counts *counts);
enum frame_step frames_before_present(struct frames *frames, const struct frame_counts *counts);
enum frame_step frames_after_present(struct frames *frames, struct frame_counts *counts);

/* What waits wants no certain frame: it may begin between two boundaries. */
bool frames_can_begin_anywhere(const struct frames *frames);
/* Then: it begins with the frame of this device that is under way. */
enum frame_step frames_begin_now(struct frames *frames, const struct frame_counts *counts);

/* This device is given work in a way that none of the above is told of. */
void frames_work(struct frames *frames, const struct frame_counts *counts);

/* What is captured of frames that are presented ends with one that is not presented yet. Never so where the work of a frame is not seen. */
bool frames_end_open(const struct frames *frames);

/* It is this device that is captured. */
bool frames_owns(const struct frames *frames, const struct frame_counts *counts);

void frames_begun(struct frames *frames, const struct frame_counts *counts);
void frames_ended(struct frames *frames);

/* The frame of this device that has begun last (0 when none has) by this rule, which is not FRAME_AUTO. */
uint64_t frames_begun_last(const struct frame_counts *counts, enum frame_rule rule);
/* The same, and the rule by which it is counted: what is captured's or waits', else auto's; never FRAME_AUTO. */
uint64_t frames_current(
	const struct frames *frames, const struct frame_counts *counts, enum frame_rule *rule);

#endif
