#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/layer/wish.h"

/* Texts with their NUL; longer than any line. */
#define TEXT_BYTES (2 * GPU_WIRE_LINE_BYTES)

static bool read_start(const char *text, struct wish *wish, struct fault *fault)
{
	char copy[TEXT_BYTES];
	struct gpu_wire_message message;
	snprintf(copy, sizeof(copy), "%s", text);
	assert_true(gpu_wire_parse(copy, strlen(copy), &message));
	return wish_read(&message, wish, fault);
}

static void reads_each_rule(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		enum frame_rule rule;
		uint64_t next, first, last;
		const char *label;
		enum frame_rule counts;
	} cases[] = {
		{"start by=auto first=0 last=0 template=/t", FRAME_AUTO, 0, 0, 0, "", FRAME_AUTO},
		{"start by=submit first=2 last=18446744073709551615 template=/t", FRAME_SUBMIT, 0, 2,
			UINT64_MAX, "", FRAME_AUTO},
		{"start by=present next=3 template=/t", FRAME_PRESENT, 3, 0, 0, "", FRAME_AUTO},
		{"start by=label label=frame%20 first=2 last=3 template=/t", FRAME_LABEL, 0, 2, 3, "frame ",
			FRAME_AUTO},
		{"start by=manual template=/t", FRAME_MANUAL, 0, 0, 0, "", FRAME_AUTO},
		{"start by=manual counts=submit template=/t", FRAME_MANUAL, 0, 0, 0, "", FRAME_SUBMIT},
		{"start by=manual counts=label label=a template=/t", FRAME_MANUAL, 0, 0, 0, "a",
			FRAME_LABEL},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wish wish;
		struct fault fault = {0};
		assert_true(read_start(cases[i].text, &wish, &fault));
		assert_int_equal(wish.frames.rule, cases[i].rule);
		assert_int_equal(wish.frames.counts, cases[i].counts);
		assert_int_equal(wish.frames.next, cases[i].next);
		assert_int_equal(wish.frames.first, cases[i].first);
		assert_int_equal(wish.frames.last, cases[i].last);
		assert_string_equal(wish.frames.label, cases[i].label);
		assert_string_equal(wish.template, "/t");
		assert_string_equal(wish.device, "");
	}
}

static void names_what_is_wrong(void **state)
{
	(void)state;
	static const struct {
		const char *text, *part;
	} cases[] = {
		{"start first=0 last=0 template=/t", "by="},
		{"start by=Submit first=0 last=0 template=/t", "by=Submit"},
		{"start by=submit first=0 template=/t", "first and last"},
		{"start by=submit template=/t", "first and last"},
		{"start by=submit first=x last=3 template=/t", "first and last"},
		{"start by=submit first=0 last=1 next=x template=/t", "first and last"},
		{"start by=submit next=0 template=/t", "above 0"},
		{"start by=submit next=1 first=x template=/t", "first and last"},
		{"start by=submit first=7 last=6 template=/t", "6, is before the first, 7"},
		{"start by=manual next=x template=/t", "manual"},
		{"start by=manual counts=auto template=/t", "counts=auto"},
		{"start by=manual counts=manual template=/t", "counts=manual"},
		{"start by=manual counts= template=/t", "counts="},
		{"start by=manual counts=label template=/t", "label of 1"},
		{"start by=submit counts=submit first=0 last=0 template=/t", "manual only"},
		{"start by=label first=0 last=1 template=/t", "label"},
		{"start by=label label= first=0 last=1 template=/t", "label"},
		{"start by=submit first=0 last=1 device= template=/t", "device"},
		{"start by=submit first=0 last=1", "absolute"},
		{"start by=submit first=0 last=1 template=", "absolute"},
		{"start by=submit first=0 last=1 template=t", "absolute"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wish wish;
		struct fault fault = {0};
		assert_false(read_start(cases[i].text, &wish, &fault));
		assert_string_equal(fault.code, "start_failed");
		assert_non_null(strstr(fault.text, cases[i].part));
	}
}

static void names_have_limits(void **state)
{
	(void)state;
	char label[GPU_WIRE_LABEL_BYTES + 1], path[GPU_WIRE_PATH_BYTES + 1], text[TEXT_BYTES];
	struct wish wish;
	struct fault fault = {0};
	memset(label, 'x', sizeof(label));
	memset(path, 'x', sizeof(path));
	label[GPU_WIRE_LABEL_BYTES - 1] = path[GPU_WIRE_PATH_BYTES - 1] = '\0';
	path[0] = '/';
	snprintf(text, sizeof(text), "start by=label label=%s next=1 template=%s", label, path);
	assert_true(read_start(text, &wish, &fault));
	assert_string_equal(wish.frames.label, label);
	assert_string_equal(wish.template, path);
	snprintf(text, sizeof(text), "start by=label label=%sx next=1 template=/t", label);
	assert_false(read_start(text, &wish, &fault));
	assert_non_null(strstr(fault.text, "256"));
	snprintf(text, sizeof(text), "start by=submit next=1 template=%sx", path);
	assert_false(read_start(text, &wish, &fault));
	assert_non_null(strstr(fault.text, "1024"));
	label[GPU_PICK_WISH_BYTES - 1] = '\0';
	snprintf(text, sizeof(text), "start by=submit next=1 device=%s template=/t", label);
	assert_true(read_start(text, &wish, &fault));
	assert_string_equal(wish.device, label);
	snprintf(text, sizeof(text), "start by=submit next=1 device=%sx template=/t", label);
	assert_false(read_start(text, &wish, &fault));
	assert_non_null(strstr(fault.text, "device"));
}

static void rules_have_their_names_on_the_wire(void **state)
{
	(void)state;
	assert_string_equal(wish_rule_name(FRAME_SUBMIT), "submit");
	assert_string_equal(wish_rule_name(FRAME_PRESENT), "present");
	assert_string_equal(wish_rule_name(FRAME_LABEL), "label");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_each_rule),
		cmocka_unit_test(names_what_is_wrong),
		cmocka_unit_test(names_have_limits),
		cmocka_unit_test(rules_have_their_names_on_the_wire),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
