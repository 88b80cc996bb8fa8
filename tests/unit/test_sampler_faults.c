#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/descriptors.h"
#include "support/faults.h"
#include "support/sampler_stage.h"

/*
 * Every call of the system that the start of a sampler makes fails once, and once for good from there on: perf_event_open(2), mmap(2), and what reads
 * /proc. It is refused with a reason or it samples; the program runs as if nothing had happened, and nothing stays open.
 */

static const int errors[] = {EMFILE, ENOMEM, EACCES};
#define ERRORS (sizeof(errors) / sizeof(errors[0]))

/* False: there was no call of that number any more. */
static bool fail_one(bool is_gated, unsigned at, int error, enum fault_mode mode)
{
	struct seen seen = {0};
	struct truth truth = {0};
	struct sampler *sampler = NULL;
	struct sampler_effective effective = {0};
	struct error err = {0};
	const char *failed = "";
	size_t descriptors = descriptors_open();
	struct child child = child_launch("maps", true);
	seen.pid = child.pid;
	struct sampler_config config = seen_config(&seen, is_gated);
	faults_begin(at, error, mode);
	bool started = sampler_perf_ops.start(&config, &sampler, &effective, &err);
	faults_end(&failed);
	if (!started) {
		assert_true(err.code != ERROR_NONE && err.code != ERROR_INTERNAL);
		assert_true(err.message[0] != '\0');
	}
	child_go(&child);
	child_end(&child, &truth);
	assert_true(truth.length > 0);
	if (started) {
		sampler_perf_ops.stop(sampler);
		assert_false(seen.has_fallen);
		assert_int_equal(seen.malformed, 0);
		/* What it lacks is told. */
		assert_true(seen.samples > 0 || effective.event_failures > 0);
		assert_true(effective.event_failures == 0 || effective.warning_code[0] != '\0');
	}
	assert_int_equal(descriptors_open(), descriptors);
	return failed[0] != '\0';
}

static void fail_each(bool is_gated)
{
	bool all = getenv("PROFD_LONG") != NULL;
	for (int mode = FAULT_ONCE; mode <= FAULT_FROM_THEN_ON; mode++) {
		bool went_on = true;
		for (unsigned at = 1; went_on; at++) {
			assert_true(at < 1000);
			for (size_t i = 0; i < (all ? ERRORS : 1) && went_on; i++) {
				int error = errors[(at + i + (size_t)mode) % ERRORS];
				went_on = fail_one(is_gated, at, error, (enum fault_mode)mode);
			}
		}
	}
}

static void each_failing_call_is_survived_when_a_program_waits(void **state)
{
	(void)state;
	fail_each(true);
}

static void each_failing_call_is_survived_when_a_program_runs(void **state)
{
	(void)state;
	fail_each(false);
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		_exit(programs_run(argv[1]));
	}
	signal(SIGPIPE, SIG_IGN);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_failing_call_is_survived_when_a_program_waits),
		cmocka_unit_test(each_failing_call_is_survived_when_a_program_runs),
	};
	return cmocka_run_group_tests_name("sampler_faults", tests, NULL, NULL);
}
