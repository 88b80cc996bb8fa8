#include "gpu/layer/frames.h"

#include <string.h>

/* A wish that is over says nothing any more. */
/* How frames are numbered. */
static enum frame_rule numbering(const struct frame_wish *wish)
{
	return wish->rule == FRAME_MANUAL ? wish->counts : wish->rule;
}

static enum frame_rule rule_of(const struct frames *frames, const struct frame_counts *counts)
{
	if (frames->state == FRAMES_IDLE || numbering(&frames->wish) == FRAME_AUTO) {
		return counts->is_presenting ? FRAME_PRESENT : FRAME_SUBMIT;
	}
	return numbering(&frames->wish);
}

/* The number of the frame that begins next or, when presents count, of the one that is not presented yet. */
static uint64_t coming(const struct frame_counts *counts, enum frame_rule rule)
{
	switch (rule) {
	case FRAME_PRESENT:
		return counts->presents;
	case FRAME_LABEL:
		return counts->labels;
	default:
		return counts->submits;
	}
}

bool frames_start(struct frames *frames, const struct frame_wish *wish)
{
	if (frames->state != FRAMES_IDLE) {
		return false;
	}
	bool has_label = numbering(wish) == FRAME_LABEL;
	if (has_label &&
		(frames->label_generation == 0 || strcmp(frames->wish.label, wish->label) != 0)) {
		frames->label_generation++;
	}
	char label[GPU_WIRE_LABEL_BYTES];
	memcpy(label, has_label ? wish->label : frames->wish.label, sizeof(label));
	frames->wish = *wish;
	memcpy(frames->wish.label, label, sizeof(label));
	frames->next = wish->next;
	frames->state = FRAMES_WAITING;
	frames->is_stopping = frames->is_now = frames->has_work = false;
	return true;
}

bool frames_start_now(struct frames *frames, const struct frame_counts *counts)
{
	const struct frame_wish wish = {.rule = FRAME_MANUAL};
	if (!frames_start(frames, &wish)) {
		return false;
	}
	frames->rule = rule_of(frames, counts);
	frames->first = frames->reached = coming(counts, frames->rule);
	frames->is_now = true;
	return true;
}

bool frames_put_off(struct frames *frames)
{
	bool is_fixed = frames->wish.rule != FRAME_MANUAL && frames->next == 0;
	if (frames->is_now || is_fixed) {
		return false;
	}
	frames->wish.next = frames->next;
	return true;
}

bool frames_stop(struct frames *frames)
{
	if (frames->state == FRAMES_CAPTURING) {
		frames->is_stopping = true;
		return true;
	}
	frames->state = FRAMES_IDLE;
	return false;
}

bool frames_count_labels(const struct frames *frames)
{
	return numbering(&frames->wish) == FRAME_LABEL;
}

const char *frames_label(const struct frames *frames)
{
	return frames->label_generation > 0 ? frames->wish.label : NULL;
}

void frames_swapchain(struct frame_counts *counts)
{
	if (!counts->is_presenting) {
		counts->is_presenting = true;
		counts->in_frame = false;
	}
}

/* "The next frames" get their numbers. */
static void fix_range(struct frame_wish *wish, uint64_t number)
{
	uint64_t last = number + wish->next - 1;
	wish->first = number;
	wish->last = last < number ? UINT64_MAX : last;
	wish->next = 0;
}

/* In a place where the frame `number` is about to begin (can_begin), or is under way. By label it is always about to. */
static enum frame_step step_waiting(
	struct frames *frames, enum frame_rule rule, uint64_t number, bool can_begin)
{
	struct frame_wish *wish = &frames->wish;
	if (wish->rule != FRAME_MANUAL) {
		if (wish->next > 0 && can_begin) {
			fix_range(wish, number);
		}
		if (wish->next > 0 || number < wish->first ||
			(number == wish->first && !can_begin && rule == FRAME_LABEL)) {
			return FRAME_NOTHING;
		}
		if (number > wish->first || !can_begin) {
			frames->state = FRAMES_IDLE;
			frames->rule = rule;
			return FRAME_LATE;
		}
	}
	frames->rule = rule;
	frames->first = frames->reached = number;
	return FRAME_BEGIN;
}

static bool waits_for(const struct frames *frames, const struct frame_counts *counts)
{
	return frames->state == FRAMES_WAITING && !counts->is_left_out;
}

static void forget_other_labels(const struct frames *frames, struct frame_counts *counts)
{
	if (counts->label_generation != frames->label_generation) {
		counts->label_generation = frames->label_generation;
		counts->labels = 0;
	}
}

/* Before a submit, while this device is captured. number: as in coming(). */
static enum frame_step step_capturing(struct frames *frames, uint64_t number, bool is_labelled)
{
	bool is_past = frames->rule == FRAME_LABEL && is_labelled && number > frames->wish.last &&
				   frames->wish.rule != FRAME_MANUAL;
	if (frames->is_stopping || is_past) {
		return FRAME_END;
	}
	if (frames->rule != FRAME_LABEL || is_labelled) {
		frames->reached = number;
	}
	frames->has_work = true;
	return FRAME_NOTHING;
}

enum frame_step frames_before_submit(
	struct frames *frames, struct frame_counts *counts, bool is_labelled)
{
	enum frame_step step = FRAME_NOTHING;
	forget_other_labels(frames, counts);
	if (waits_for(frames, counts)) {
		enum frame_rule rule = rule_of(frames, counts);
		bool can_begin = rule == FRAME_SUBMIT || (rule == FRAME_LABEL && is_labelled) ||
						 (rule == FRAME_PRESENT && !counts->in_frame);
		step = step_waiting(frames, rule, coming(counts, rule), can_begin);
		frames->has_work = step == FRAME_BEGIN;
	} else if (frames_owns(frames, counts)) {
		step = step_capturing(frames, coming(counts, frames->rule), is_labelled);
	}
	counts->submits++;
	counts->labels += is_labelled;
	counts->in_frame = true;
	return step;
}

/* Frames by label end where the next begins. */
static bool is_over(
	const struct frames *frames, const struct frame_counts *counts, enum frame_rule rule)
{
	return frames_owns(frames, counts) && frames->rule == rule &&
		   frames->wish.rule != FRAME_MANUAL && coming(counts, rule) > frames->wish.last;
}

enum frame_step frames_after_submit(struct frames *frames, const struct frame_counts *counts)
{
	return is_over(frames, counts, FRAME_SUBMIT) ? FRAME_END : FRAME_NOTHING;
}

/* A present without a submit before it is a frame too. */
enum frame_step frames_before_present(struct frames *frames, const struct frame_counts *counts)
{
	enum frame_rule rule = rule_of(frames, counts);
	bool can_begin = !counts->in_frame || frames->wish.rule == FRAME_MANUAL;
	if (!waits_for(frames, counts) || rule != FRAME_PRESENT || !can_begin) {
		return FRAME_NOTHING;
	}
	return step_waiting(frames, rule, counts->presents, true);
}

/* What has passed is told at once; what comes next begins with its first submit, as the swapchain may be another one by then. */
static enum frame_step step_presented(struct frames *frames, const struct frame_counts *counts)
{
	const struct frame_wish *wish = &frames->wish;
	enum frame_rule rule = rule_of(frames, counts);
	bool is_late = wish->rule != FRAME_MANUAL && wish->next == 0 && counts->presents > wish->first;
	return rule == FRAME_PRESENT && (frames->is_blind || is_late)
			   ? step_waiting(frames, rule, counts->presents, true)
			   : FRAME_NOTHING;
}

enum frame_step frames_after_present(struct frames *frames, struct frame_counts *counts)
{
	frames_work(frames, counts);
	if (frames_owns(frames, counts) && frames->rule == FRAME_PRESENT) {
		frames->reached = counts->presents;
	}
	counts->presents++;
	counts->is_presenting = true;
	counts->in_frame = false;
	if (waits_for(frames, counts)) {
		return step_presented(frames, counts);
	}
	if (frames_owns(frames, counts) && frames->is_stopping) {
		return FRAME_END;
	}
	return is_over(frames, counts, FRAME_PRESENT) ? FRAME_END : FRAME_NOTHING;
}

bool frames_can_begin_anywhere(const struct frames *frames)
{
	return frames->state == FRAMES_WAITING && frames->wish.rule == FRAME_MANUAL;
}

enum frame_step frames_begin_now(struct frames *frames, const struct frame_counts *counts)
{
	enum frame_rule rule = rule_of(frames, counts);
	return waits_for(frames, counts) ? step_waiting(frames, rule, coming(counts, rule), true)
									 : FRAME_NOTHING;
}

void frames_work(struct frames *frames, const struct frame_counts *counts)
{
	frames->has_work |= frames_owns(frames, counts);
}

bool frames_owns(const struct frames *frames, const struct frame_counts *counts)
{
	return frames->state == FRAMES_CAPTURING && frames->owner == counts;
}

bool frames_end_open(const struct frames *frames)
{
	return frames->state == FRAMES_CAPTURING && frames->rule == FRAME_PRESENT &&
		   frames->wish.rule != FRAME_MANUAL && frames->owner->in_frame;
}

void frames_begun(struct frames *frames, const struct frame_counts *counts)
{
	frames->state = FRAMES_CAPTURING;
	frames->owner = counts;
}

void frames_ended(struct frames *frames)
{
	frames->state = FRAMES_IDLE;
	frames->owner = NULL;
	frames->is_stopping = false;
}

uint64_t frames_begun_last(const struct frame_counts *counts, enum frame_rule rule)
{
	uint64_t number = coming(counts, rule);
	bool is_open = rule == FRAME_PRESENT && counts->in_frame;
	return number > 0 && !is_open ? number - 1 : number;
}

uint64_t frames_current(
	const struct frames *frames, const struct frame_counts *counts, enum frame_rule *rule)
{
	*rule = frames_owns(frames, counts) ? frames->rule : rule_of(frames, counts);
	return frames_begun_last(counts, *rule);
}

void frames_extend(struct frames *frames, const struct frame_counts *counts)
{
	frames->reached = frames_begun_last(counts, frames->rule);
}
