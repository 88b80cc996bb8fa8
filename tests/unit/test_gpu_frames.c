#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/layer/frames.h"

/*
 * Programs are strings: s a submit, L a submit with a label that counts, p a present, w a swapchain is made, x a stop, n a moment
 * between all of these, b and e where the program itself begins and ends. What is captured is
 * the same string with [ and ] where a capture begins and ends, and ! where the first frame had begun already. ~ is where it could not
 * begin or end.
 */
#define TEXT_BYTES 256

struct run {
	struct frames frames;
	struct frame_counts counts;
	uint64_t first, reached;
	unsigned hindrances; /* so many beginnings and ends, the next ones, cannot be */
	char text[TEXT_BYTES];
	size_t len;
};

static void put(struct run *run, char c)
{
	assert_true(run->len + 1 < sizeof(run->text));
	run->text[run->len++] = c;
}

/* What a session does then. */
static void hinder(struct run *run, enum frame_step step)
{
	run->hindrances--;
	put(run, '~');
	if (step == FRAME_END) {
		frames_extend(&run->frames, &run->counts);
	} else if (!frames_put_off(&run->frames)) {
		frames_ended(&run->frames);
	}
}

static void take(struct run *run, enum frame_step step)
{
	if (run->hindrances > 0 && (step == FRAME_BEGIN || step == FRAME_END)) {
		hinder(run, step);
	} else if (step == FRAME_BEGIN) {
		put(run, '[');
		frames_begun(&run->frames, &run->counts);
	} else if (step == FRAME_END) {
		put(run, ']');
		run->first = run->frames.first;
		run->reached = run->frames.reached;
		frames_ended(&run->frames);
	} else if (step == FRAME_LATE) {
		put(run, '!');
	}
}

static void do_one(struct run *run, char what)
{
	if (what == 's' || what == 'L') {
		take(run, frames_before_submit(&run->frames, &run->counts, what == 'L'));
		put(run, what);
		take(run, frames_after_submit(&run->frames, &run->counts));
	} else if (what == 'p') {
		take(run, frames_before_present(&run->frames, &run->counts));
		put(run, what);
		take(run, frames_after_present(&run->frames, &run->counts));
	} else if (what == 'n') {
		put(run, what);
		if (frames_can_begin_anywhere(&run->frames)) {
			take(run, frames_begin_now(&run->frames, &run->counts));
		}
	} else if (what == 'w') {
		put(run, what);
		frames_swapchain(&run->counts);
	} else if (what == 'b') {
		assert_true(frames_start_now(&run->frames, &run->counts));
		take(run, FRAME_BEGIN);
	} else if (what == 'e') {
		take(run, FRAME_END);
	} else {
		put(run, what);
		frames_stop(&run->frames);
	}
}

static void play(struct run *run, const char *program)
{
	for (; *program != '\0'; program++) {
		do_one(run, *program);
	}
}

/* before runs without a wish. */
static void expect_hindered(const struct frame_wish *wish, unsigned hindrances, const char *before,
	const char *program, const char *expected, uint64_t first, uint64_t reached)
{
	struct run run = {.first = 99, .reached = 99};
	play(&run, before);
	memset(run.text, 0, run.len);
	run.len = 0;
	run.hindrances = hindrances;
	assert_true(frames_start(&run.frames, wish));
	play(&run, program);
	assert_string_equal(run.text, expected);
	assert_int_equal(run.first, first);
	assert_int_equal(run.reached, reached);
}

static void expect(const struct frame_wish *wish, const char *before, const char *program,
	const char *expected, uint64_t first, uint64_t reached)
{
	expect_hindered(wish, 0, before, program, expected, first, reached);
}

#define NEVER 99

static void submits_are_frames(void **state)
{
	(void)state;
	struct frame_wish wish = {.rule = FRAME_SUBMIT, .first = 2, .last = 3};
	expect(&wish, "", "sssss", "ss[ss]s", 2, 3);
	expect(&wish, "ss", "sssss", "[ss]sss", 2, 3);
	expect(&wish, "sss", "ss", "!ss", NEVER, NEVER);
	expect(&wish, "", "spLpspsps", "spLp[sps]ps", 2, 3);
}

static void one_frame_0_is_possible(void **state)
{
	(void)state;
	struct frame_wish wish = {.rule = FRAME_SUBMIT, .first = 0, .last = 0};
	expect(&wish, "", "sss", "[s]ss", 0, 0);
	wish.rule = FRAME_PRESENT;
	expect(&wish, "", "ssps", "[ssp]s", 0, 0);
	wish.rule = FRAME_LABEL;
	expect(&wish, "", "sLsLs", "s[Ls]Ls", 0, 0);
}

static void a_frame_ends_with_its_present(void **state)
{
	(void)state;
	struct frame_wish wish = {.rule = FRAME_PRESENT, .first = 1, .last = 2};
	expect(&wish, "", "wsspsspsspssp", "wssp[sspssp]ssp", 1, 2);
	expect(&wish, "wspspspsp", "sp", "!sp", NEVER, NEVER);
	expect(&wish, "wsps", "sps", "!sps", NEVER, NEVER);
	expect(&wish, "wsp", "sps", "[sps", NEVER, NEVER);
}

static void a_presented_frame_begins_with_what_is_first_in_it(void **state)
{
	(void)state;
	struct frame_wish wish = {.rule = FRAME_PRESENT, .first = 1, .last = 2};
	expect(&wish, "", "wspwspwspsp", "wspw[spwsp]sp", 1, 2);
	expect(&wish, "", "wspppsp", "wsp[pp]sp", 1, 2);
	expect(&wish, "", "wsppp", "wsp[pp]", 1, 2);
	expect(&wish, "", "wsp", "wsp", NEVER, NEVER);
	wish = (struct frame_wish){.rule = FRAME_PRESENT, .next = 1};
	expect(&wish, "ws", "psp", "p[sp]", 1, 1);
}

static void without_sight_of_work_it_begins_behind_the_present_before_it(void **state)
{
	(void)state;
	struct run run = {.frames = {.is_blind = true}};
	struct frame_wish wish = {.rule = FRAME_PRESENT, .first = 1, .last = 1};
	play(&run, "w");
	assert_true(frames_start(&run.frames, &wish));
	play(&run, "pw");
	assert_false(run.frames.has_work);
	play(&run, "pp");
	assert_string_equal(run.text, "wp[wp]p");
}

/* Calls that are counted and pass; e would end it with nothing in it. */
static void what_was_recorded_without_any_work_is_known(void **state)
{
	(void)state;
	static const struct {
		const char *program;
		bool has_work;
	} cases[] = {{"b", false}, {"sb", false}, {"bs", true}, {"wspb", false}, {"wspbp", true},
		{"bsebw", false}, {"bx", false}, {"bsx", true}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct run run = {0};
		play(&run, cases[i].program);
		assert_int_equal(run.frames.state, FRAMES_CAPTURING);
		assert_int_equal(run.frames.has_work, cases[i].has_work);
	}
	struct run run = {0};
	play(&run, "b");
	frames_work(&run.frames, &run.counts);
	assert_true(run.frames.has_work);
}

static void what_is_submitted_before_the_swapchain_is_of_no_presented_frame(void **state)
{
	(void)state;
	struct frame_wish wish = {.rule = FRAME_AUTO, .first = 0, .last = 0};
	expect(&wish, "ssssw", "sspsp", "[ssp]sp", 0, 0);
}

static void auto_is_submit_until_something_presents(void **state)
{
	(void)state;
	struct frame_wish wish = {.rule = FRAME_AUTO, .first = 2, .last = 2};
	expect(&wish, "", "ssss", "ss[s]s", 2, 2);
	expect(&wish, "w", "sspsspsspssp", "sspssp[ssp]ssp", 2, 2);
}

static void a_frame_by_label_lasts_until_the_next(void **state)
{
	(void)state;
	struct frame_wish wish = {.rule = FRAME_LABEL, .label = "frame", .first = 1, .last = 2};
	expect(&wish, "", "LssLssLsLs", "Lss[LssLs]Ls", 1, 2);
	expect(&wish, "LLLL", "LLLL", "L[LL]L", 1, 2);
}

static void the_next_frames_are_the_next_that_begin(void **state)
{
	(void)state;
	struct frame_wish wish = {.rule = FRAME_SUBMIT, .next = 2};
	expect(&wish, "sssss", "sssss", "[ss]sss", 5, 6);
	wish.rule = FRAME_PRESENT;
	expect(&wish, "wsps", "spspspsp", "sp[spsp]sp", 2, 3);
	wish.rule = FRAME_LABEL;
	expect(&wish, "", "ssLsLsL", "ss[LsLs]L", 0, 1);
	wish = (struct frame_wish){.rule = FRAME_SUBMIT, .next = UINT64_MAX};
	expect(&wish, "ss", "ssx", "[ssx", NEVER, NEVER);
}

static void manual_lasts_until_it_is_stopped(void **state)
{
	(void)state;
	struct frame_wish wish = {.rule = FRAME_MANUAL};
	expect(&wish, "ss", "sssxss", "[sssx]ss", 2, 4);
	expect(&wish, "wsps", "spspxsp", "[spspx]sp", 1, 2);
}

static void manual_is_numbered_as_it_is_said(void **state)
{
	(void)state;
	struct frame_wish wish = {.rule = FRAME_MANUAL, .counts = FRAME_SUBMIT};
	expect(&wish, "wsspsp", "sspsspxsp", "[sspsspx]sp", 3, 6);
	wish.counts = FRAME_PRESENT;
	expect(&wish, "ss", "ssxs", "[ssx]s", 0, 0);
	wish = (struct frame_wish){.rule = FRAME_MANUAL, .counts = FRAME_LABEL, .label = "a"};
	expect(&wish, "", "sLsLsxs", "[sLsLsx]s", 0, 1);
	expect(&wish, "", "LsLsxs", "[LsLsx]s", 0, 1);
	expect(&wish, "", "ssxs", "[ssx]s", 0, 0);
}

static void manual_may_begin_between_boundaries(void **state)
{
	(void)state;
	struct frame_wish wish = {.rule = FRAME_MANUAL};
	expect(&wish, "wsps", "nnspxsp", "n[nspx]sp", 1, 1);
	wish = (struct frame_wish){.rule = FRAME_PRESENT, .first = 2, .last = 2};
	expect(&wish, "wsps", "nspnspsp", "nspn[sp]sp", 2, 2);
}

static void a_stop_ends_any_capture_at_the_next_call(void **state)
{
	(void)state;
	struct frame_wish wish = {.rule = FRAME_SUBMIT, .first = 1, .last = 100};
	expect(&wish, "", "sssxss", "s[ssx]ss", 1, 2);
	wish.rule = FRAME_PRESENT;
	expect(&wish, "w", "spssxpsp", "sp[ssxp]sp", 1, 1);
}

static void a_stop_while_waiting_forgets_the_wish(void **state)
{
	(void)state;
	struct frame_wish wish = {.rule = FRAME_SUBMIT, .first = 2, .last = 3};
	expect(&wish, "", "sxssss", "sxssss", NEVER, NEVER);
}

static void expect_own(const char *program, const char *expected, uint64_t first, uint64_t reached)
{
	struct run run = {0};
	play(&run, program);
	assert_string_equal(run.text, expected);
	assert_int_equal(run.first, first);
	assert_int_equal(run.reached, reached);
}

static void the_program_begins_and_ends_where_it_says(void **state)
{
	(void)state;
	expect_own("bse", "[s]", 0, 0);
	expect_own("ssbsses", "ss[ss]s", 2, 3);
	expect_own("sbes", "s[]s", 1, 1);
	expect_own("wspssbspspse", "wspss[spsps]", 1, 3);
	expect_own("wspbspes", "wsp[sp]s", 1, 1);
	expect_own("bsebsse", "[s][ss]", 1, 2);
}

static void the_program_is_one_wish_too(void **state)
{
	(void)state;
	struct run run = {0};
	struct frame_wish wish = {.rule = FRAME_LABEL, .label = "a", .next = 2};
	assert_true(frames_start(&run.frames, &wish));
	assert_false(frames_start_now(&run.frames, &run.counts));
	play(&run, "LxL");
	play(&run, "b");
	assert_false(frames_start_now(&run.frames, &run.counts));
	assert_false(frames_start(&run.frames, &wish));
	assert_string_equal(frames_label(&run.frames), "a");
	play(&run, "LLxs");
	assert_string_equal(run.text, "[Lx]L[LLx]s");
}

static void one_wish_at_a_time(void **state)
{
	(void)state;
	struct run run = {0};
	struct frame_wish wish = {.rule = FRAME_SUBMIT, .next = 2};
	assert_true(frames_start(&run.frames, &wish));
	assert_false(frames_start(&run.frames, &wish));
	play(&run, "s");
	assert_false(frames_start(&run.frames, &wish));
	assert_true(frames_stop(&run.frames));
	play(&run, "s");
	assert_true(frames_start(&run.frames, &wish));
}

static void other_devices_are_not_captured(void **state)
{
	(void)state;
	struct run run = {0};
	struct frame_counts other = {0};
	struct frame_wish wish = {.rule = FRAME_SUBMIT, .first = 0, .last = 1};
	assert_true(frames_start(&run.frames, &wish));
	play(&run, "s");
	for (int i = 0; i < 5; i++) {
		assert_int_equal(frames_before_submit(&run.frames, &other, false), FRAME_NOTHING);
		assert_int_equal(frames_after_submit(&run.frames, &other), FRAME_NOTHING);
	}
	assert_int_equal(frames_after_present(&run.frames, &other), FRAME_NOTHING);
	assert_false(frames_owns(&run.frames, &other));
	play(&run, "ss");
	assert_string_equal(run.text, "[ss]s");
}

static void another_prefix_counts_from_0(void **state)
{
	(void)state;
	struct run run = {0};
	struct frame_wish wish = {.rule = FRAME_LABEL, .label = "a", .first = 0, .last = 0};
	assert_null(frames_label(&run.frames));
	assert_true(frames_start(&run.frames, &wish));
	assert_string_equal(frames_label(&run.frames), "a");
	play(&run, "LL");
	strcpy(wish.label, "b");
	wish.first = wish.last = 1;
	assert_true(frames_start(&run.frames, &wish));
	play(&run, "LLL");
	assert_string_equal(run.text, "[L]LL[L]L");
}

static void tells_the_frame_that_began_last(void **state)
{
	(void)state;
	struct run run = {0};
	enum frame_rule rule;
	assert_int_equal(frames_current(&run.frames, &run.counts, &rule), 0);
	assert_int_equal(rule, FRAME_SUBMIT);
	play(&run, "sss");
	assert_int_equal(frames_current(&run.frames, &run.counts, &rule), 2);
	play(&run, "wsp");
	assert_int_equal(frames_current(&run.frames, &run.counts, &rule), 0);
	assert_int_equal(rule, FRAME_PRESENT);
	play(&run, "s");
	assert_int_equal(frames_current(&run.frames, &run.counts, &rule), 1);
}

static void what_is_over_does_not_say_how_frames_count(void **state)
{
	(void)state;
	struct run run = {0};
	enum frame_rule rule;
	const struct frame_wish labelled = {.rule = FRAME_LABEL, .label = "a", .next = 1};
	play(&run, "sss");
	assert_true(frames_start(&run.frames, &labelled));
	play(&run, "Ls");
	assert_int_equal(frames_current(&run.frames, &run.counts, &rule), 0);
	assert_int_equal(rule, FRAME_LABEL);
	play(&run, "xL");
	assert_int_equal(frames_current(&run.frames, &run.counts, &rule), 5);
	assert_int_equal(rule, FRAME_SUBMIT);
	const struct frame_wish late = {.rule = FRAME_LABEL, .label = "a"};
	assert_true(frames_start(&run.frames, &late));
	play(&run, "s");
	assert_int_equal(run.text[run.len - 2], '!');
	assert_int_equal(run.frames.rule, FRAME_LABEL);
	assert_int_equal(frames_begun_last(&run.counts, run.frames.rule), 1);
	assert_int_equal(frames_current(&run.frames, &run.counts, &rule), 6);
	assert_int_equal(rule, FRAME_SUBMIT);
	const struct frame_wish submits = {.rule = FRAME_SUBMIT, .next = 1};
	play(&run, "wp");
	assert_true(frames_start(&run.frames, &submits));
	assert_int_equal(frames_current(&run.frames, &run.counts, &rule), 6);
	play(&run, "s");
	assert_int_equal(frames_current(&run.frames, &run.counts, &rule), 1);
	assert_int_equal(rule, FRAME_PRESENT);
}

static void a_device_that_is_left_out_counts_and_is_not_captured(void **state)
{
	(void)state;
	struct frames frames = {0};
	struct frame_counts other = {.is_left_out = true}, wished = {0};
	enum frame_rule rule;
	const struct frame_wish wish = {.rule = FRAME_AUTO, .first = 1, .last = 1};
	const struct frame_wish manual = {.rule = FRAME_MANUAL};
	assert_true(frames_start(&frames, &wish));
	for (int i = 0; i < 3; i++) {
		/* It has passed frame 1, which is not late for the other. */
		assert_int_equal(frames_before_submit(&frames, &other, false), FRAME_NOTHING);
		assert_int_equal(frames_after_present(&frames, &other), FRAME_NOTHING);
	}
	assert_int_equal(frames_current(&frames, &other, &rule), 2);
	assert_int_equal(frames_before_submit(&frames, &wished, false), FRAME_NOTHING);
	assert_int_equal(frames_before_submit(&frames, &wished, false), FRAME_BEGIN);
	frames_ended(&frames);
	assert_true(frames_start(&frames, &manual));
	assert_int_equal(frames_begin_now(&frames, &other), FRAME_NOTHING);
	assert_int_equal(frames_begin_now(&frames, &wished), FRAME_BEGIN);
}

static void what_cannot_begin_begins_later_unless_its_place_is_fixed(void **state)
{
	(void)state;
	const struct frame_wish next = {.rule = FRAME_SUBMIT, .next = 2};
	expect_hindered(&next, 1, "s", "ssss", "~s[ss]s", 2, 3);
	expect_hindered(&next, 3, "s", "ssss", "~s~s~s[s", NEVER, NEVER);
	const struct frame_wish presented = {.rule = FRAME_PRESENT, .next = 1};
	expect_hindered(&presented, 2, "wsp", "spspsp", "~sp~sp[sp]", 3, 3);
	const struct frame_wish labelled = {.rule = FRAME_LABEL, .next = 1};
	expect_hindered(&labelled, 1, "", "LsLsLs", "~Ls[Ls]Ls", 1, 1);
	const struct frame_wish manual = {.rule = FRAME_MANUAL};
	expect_hindered(&manual, 2, "", "sssxs", "~s~s[sx]s", 2, 2);
	const struct frame_wish fixed = {.rule = FRAME_SUBMIT, .first = 1, .last = 3};
	expect_hindered(&fixed, 1, "", "sssss", "s~ssss", NEVER, NEVER);
	const struct frame_wish unused = {.rule = FRAME_SUBMIT, .first = 900, .last = 900};
	expect_hindered(&unused, 1, "ss", "xbsss", "x~sss", NEVER, NEVER);
}

static void what_cannot_end_has_the_frames_until_it_does(void **state)
{
	(void)state;
	const struct frame_wish fixed = {.rule = FRAME_SUBMIT, .first = 1, .last = 2};
	expect_hindered(&fixed, 0, "", "sssss", "s[ss]ss", 1, 2);
	struct run run = {.first = 99};
	assert_true(frames_start(&run.frames, &fixed));
	play(&run, "ss");
	run.hindrances = 2;
	play(&run, "sss");
	assert_string_equal(run.text, "s[ss~s~s]");
	assert_int_equal(run.reached, 4);
	const struct frame_wish labelled = {.rule = FRAME_LABEL, .first = 0, .last = 0};
	struct run by_label = {.first = 99};
	assert_true(frames_start(&by_label.frames, &labelled));
	play(&by_label, "Ls");
	by_label.hindrances = 1;
	play(&by_label, "LsLs");
	assert_string_equal(by_label.text, "[Ls~Ls]Ls");
	assert_int_equal(by_label.reached, 1);
	const struct frame_wish presented = {.rule = FRAME_PRESENT, .first = 1, .last = 1};
	struct run shown = {.first = 99};
	play(&shown, "w");
	assert_true(frames_start(&shown.frames, &presented));
	play(&shown, "sps");
	shown.hindrances = 1;
	play(&shown, "pssp");
	assert_string_equal(shown.text, "wsp[sp~ssp]");
	assert_int_equal(shown.reached, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_cannot_begin_begins_later_unless_its_place_is_fixed),
		cmocka_unit_test(what_cannot_end_has_the_frames_until_it_does),
		cmocka_unit_test(a_device_that_is_left_out_counts_and_is_not_captured),
		cmocka_unit_test(submits_are_frames),
		cmocka_unit_test(one_frame_0_is_possible),
		cmocka_unit_test(a_frame_ends_with_its_present),
		cmocka_unit_test(a_presented_frame_begins_with_what_is_first_in_it),
		cmocka_unit_test(without_sight_of_work_it_begins_behind_the_present_before_it),
		cmocka_unit_test(what_was_recorded_without_any_work_is_known),
		cmocka_unit_test(what_is_submitted_before_the_swapchain_is_of_no_presented_frame),
		cmocka_unit_test(auto_is_submit_until_something_presents),
		cmocka_unit_test(a_frame_by_label_lasts_until_the_next),
		cmocka_unit_test(the_next_frames_are_the_next_that_begin),
		cmocka_unit_test(manual_lasts_until_it_is_stopped),
		cmocka_unit_test(manual_is_numbered_as_it_is_said),
		cmocka_unit_test(manual_may_begin_between_boundaries),
		cmocka_unit_test(a_stop_ends_any_capture_at_the_next_call),
		cmocka_unit_test(a_stop_while_waiting_forgets_the_wish),
		cmocka_unit_test(the_program_begins_and_ends_where_it_says),
		cmocka_unit_test(the_program_is_one_wish_too),
		cmocka_unit_test(one_wish_at_a_time),
		cmocka_unit_test(other_devices_are_not_captured),
		cmocka_unit_test(another_prefix_counts_from_0),
		cmocka_unit_test(tells_the_frame_that_began_last),
		cmocka_unit_test(what_is_over_does_not_say_how_frames_count),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
