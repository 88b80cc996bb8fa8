#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/sampler_stage.h"

#define NOBODY 65534

static int setup(void **state)
{
	*state = calloc(1, sizeof(struct seen));
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

/* The cases */

static void counts_as_many_samples_as_the_kernel_counts_cpu_time(void **state)
{
	struct seen *seen = *state;
	struct truth truth;
	struct sampler_effective effective;
	stage_sample("burn", seen, &truth, &effective);
	assert_int_equal(effective.period_ns, 1001001);
	stage_near(seen->samples * effective.period_ns, truth.cpu_ns, 0.05, 0);
	stage_near(seen->cpu_ns, truth.cpu_ns, 0.02, 0);
	assert_int_equal(seen->ends, 1);
	assert_string_equal(seen->name, "exe"); /* the last part of /proc/self/exe */
}

static void sees_every_thread_whenever_it_was_born(void **state)
{
	struct seen *seen = *state;
	struct truth truth;
	struct sampler_effective effective;
	stage_sample("threads", seen, &truth, &effective);
	for (int i = 0; i < STAGE_THREADS; i++) {
		struct seen_thread *thread = seen_find(seen, truth.tids[i]);
		/* The kernel swaps the events of siblings at a switch, so which of them a tick meets is chance: 4 standard
		 * deviations. Their sum is not. */
		uint64_t deviation =
			(uint64_t)sqrt((double)truth.thread_cpu_ns[i] / (double)effective.period_ns);
		stage_near(thread->samples * effective.period_ns, truth.thread_cpu_ns[i], 0.05,
			(4 * deviation + 3) * effective.period_ns);
		assert_string_equal(thread->name, "late worker");
	}
	stage_near(seen->samples * effective.period_ns, truth.cpu_ns, 0.05, 5 * effective.period_ns);
}

/* Up to the last look, which may be long before a thread's end; and of a thread that runs as of its latest tick. */
static void tells_what_each_thread_has_consumed(void **state)
{
	struct seen *seen = *state;
	struct truth truth;
	struct sampler_effective effective;
	uint64_t told = 0;
	stage_sample("threads", seen, &truth, &effective);
	for (int i = 0; i < STAGE_THREADS; i++) {
		const struct sampler_cpu_time *time = &seen_find(seen, truth.tids[i])->cpu_time;
		assert_true(time->total_ns <= truth.thread_cpu_ns[i] + 10000000);
		assert_true(time->user_ns + time->system_ns == time->total_ns || time->user_ns == 0);
		told += time->total_ns;
	}
	/* Four of 200 ms that live some 400 ms on two processors: two looks at each at least. */
	assert_true(told > truth.cpu_ns / 8);
	assert_int_equal(seen->cpu_time.user_ns + seen->cpu_time.system_ns, seen->cpu_time.total_ns);
	assert_true(seen->cpu_time.user_ns > seen->cpu_time.total_ns / 2);
}

static void leaves_out_the_processes_that_it_forks(void **state)
{
	struct seen *seen = *state;
	struct truth truth;
	struct sampler_effective effective;
	stage_sample("fork", seen, &truth, &effective);
	assert_int_equal(seen->foreign, 0);
	assert_int_equal(seen->forked, truth.tids[0]);
	stage_near(seen->samples * effective.period_ns, truth.cpu_ns, 0.05, effective.period_ns);
	stage_near(seen->cpu_ns, truth.cpu_ns, 0.02, effective.period_ns);
}

static void goes_on_when_the_program_becomes_another(void **state)
{
	struct seen *seen = *state;
	struct truth truth;
	struct sampler_effective effective;
	stage_sample("exec", seen, &truth, &effective);
	assert_int_equal(seen->execs, 2);
	stage_near(seen->samples * effective.period_ns, truth.cpu_ns, 0.05, 0);
}

static void tells_where_the_code_of_the_program_is(void **state)
{
	struct seen *seen = *state;
	struct truth truth;
	struct sampler_effective effective;
	char exe[512] = "";
	struct stat status;
	bool is_found = false;
	assert_true(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	assert_int_equal(stat(exe, &status), 0);
	stage_sample("maps", seen, &truth, &effective);
	for (size_t i = 0; i < seen->mapping_count; i++) {
		const struct sampler_mapping *mapping = &seen->mappings[i];
		if (strcmp(seen->paths[i], exe) == 0) {
			assert_int_equal(mapping->start, truth.start);
			assert_int_equal(mapping->length, truth.length);
			assert_int_equal(mapping->file_offset, truth.offset);
			assert_int_equal(mapping->inode, status.st_ino);
			assert_true(mapping->protection & PROT_EXEC);
			is_found = true;
		}
	}
	assert_true(is_found);
}

static void begins_with_what_a_running_process_has(void **state)
{
	struct seen *seen = *state;
	struct truth before, after;
	struct sampler_effective effective;
	struct child child = child_launch("running", false);
	assert_true(child_read(&child, &before));
	seen->pid = child.pid;
	struct sampler_config config = seen_config(seen, false);
	struct sampler *sampler = stage_begin(&config, &effective);
	child_go(&child);
	child_end(&child, &after);
	sampler_perf_ops.stop(sampler);
	assert_false(seen->has_fallen);
	assert_int_equal(seen->execs, 0);
	for (int i = 0; i < STAGE_THREADS; i++) {
		struct seen_thread *thread = seen_find(seen, after.tids[i]);
		/* The last is born now: it may be in time for the list of those that are there. */
		assert_true(thread->before_samples || i == STAGE_THREADS - 1);
		assert_string_equal(thread->name, "late worker");
		assert_true(thread->samples > 100);
	}
	/* The thread that was born while it was sampled counts once. */
	stage_near(seen_find(seen, after.tids[STAGE_THREADS - 1])->samples * effective.period_ns,
		300000000, 0.05, 3 * effective.period_ns);
	stage_near(seen->cpu_ns, seen->samples * effective.period_ns, 0.05, 5 * effective.period_ns);
	assert_true(seen->mappings_before_samples >= 2); /* the program and libc */
	assert_int_equal(seen->ends, 1);
}

static void shows_kernel_frames_only_when_they_are_wanted(void **state)
{
	for (int wanted = 0; wanted < 2; wanted++) {
		struct seen *seen = *state;
		struct truth truth;
		struct sampler_effective effective;
		struct child child = child_launch("brief", true);
		memset(seen, 0, sizeof(*seen));
		seen->pid = child.pid;
		struct sampler_config config = seen_config(seen, true);
		config.kernel_frames = wanted;
		struct sampler *sampler = stage_begin(&config, &effective);
		child_go(&child);
		child_end(&child, &truth);
		sampler_perf_ops.stop(sampler);
		assert_int_equal(effective.kernel_frames, wanted && effective.kernel_sampled);
		assert_int_equal(seen->with_kernel > 0, effective.kernel_frames);
		assert_true(seen->with_user > seen->samples / 2);
	}
}

static void rests_when_the_target_has_ended(void **state)
{
	struct seen *seen = *state;
	struct truth truth;
	struct sampler_effective effective;
	struct child child = child_launch("maps", true);
	seen->pid = child.pid;
	struct sampler_config config = seen_config(seen, true);
	struct sampler *sampler = stage_begin(&config, &effective);
	child_go(&child);
	child_end(&child, &truth);
	usleep(200000);
	uint64_t before = stage_clock(CLOCK_PROCESS_CPUTIME_ID);
	usleep(500000);
	uint64_t spent = stage_clock(CLOCK_PROCESS_CPUTIME_ID) - before;
	sampler_perf_ops.stop(sampler);
	assert_true(spent < 10000000);
	assert_true(seen->samples > 0);
}

static void refuses_a_rate_above_the_maximum_of_the_kernel(void **state)
{
	struct seen *seen = *state;
	struct sampler *sampler;
	struct sampler_effective effective;
	struct error err = {0};
	char number[32];
	FILE *file = fopen("/proc/sys/kernel/perf_event_max_sample_rate", "re");
	assert_non_null(file);
	assert_non_null(fgets(number, sizeof(number), file));
	fclose(file);
	number[strcspn(number, "\n")] = '\0';
	seen->pid = getpid();
	struct sampler_config config = seen_config(seen, false);
	config.hz = strtoull(number, NULL, 10) + 1;
	assert_false(sampler_perf_ops.probe(&config, &err));
	assert_int_equal(err.code, ERROR_HZ_TOO_HIGH);
	err = (struct error){0};
	assert_false(sampler_perf_ops.start(&config, &sampler, &effective, &err));
	assert_int_equal(err.code, ERROR_HZ_TOO_HIGH);
	assert_non_null(strstr(err.message, number));
	snprintf(number, sizeof(number), "%" PRIu64, config.hz);
	assert_non_null(strstr(err.message, number));
	assert_non_null(strstr(err.hint, "perf_event_max_sample_rate"));
}

static void says_that_a_process_is_not_there(void **state)
{
	struct seen *seen = *state;
	struct sampler *sampler;
	struct sampler_effective effective;
	struct error err = {0};
	pid_t gone = fork();
	if (gone == 0) {
		_exit(0);
	}
	waitpid(gone, NULL, 0);
	seen->pid = gone;
	struct sampler_config config = seen_config(seen, false);
	assert_false(sampler_perf_ops.start(&config, &sampler, &effective, &err));
	assert_int_equal(err.code, ERROR_PROCESS_NOT_FOUND);
}

static void stop_takes_nothing(void **state)
{
	(void)state;
	sampler_perf_ops.stop(NULL);
}

static void chooses_by_name(void **state)
{
	struct seen *seen = *state;
	struct error err = {0};
	seen->pid = getpid();
	struct sampler_config config = seen_config(seen, false);
	assert_ptr_equal(sampler_choose("auto", &config, &err), &sampler_perf_ops);
	assert_ptr_equal(sampler_choose("perf", &config, &err), &sampler_perf_ops);
	assert_null(sampler_choose("tea leaves", &config, &err));
	assert_int_equal(err.code, ERROR_UNSUPPORTED);
	config.hz = UINT64_MAX;
	assert_null(sampler_choose("auto", &config, &err));
	assert_int_equal(err.code, ERROR_HZ_TOO_HIGH);
}

/* Leaves room for so many descriptors more. */
static void limit_descriptors(int more, struct rlimit *before)
{
	int next = 0;
	for (int found = 0; found < more; next++) {
		found += fcntl(next, F_GETFD) < 0;
	}
	assert_int_equal(getrlimit(RLIMIT_NOFILE, before), 0);
	struct rlimit limit = {(rlim_t)next, before->rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void tells_how_many_events_lack_a_descriptor(void **state)
{
	struct seen *seen = *state;
	struct sampler_effective effective;
	struct truth truth;
	struct rlimit before;
	struct error err = {0};
	struct sampler *sampler = NULL;
	int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
	if (cpus < 2) {
		print_message("skipped: one processor has one event\n");
		skip();
	}
	struct child child = child_launch("maps", true);
	seen->pid = child.pid;
	struct sampler_config config = seen_config(seen, true);
	limit_descriptors(cpus + 2 + 1, &before); /* the rings, two of the sampler's own, one event */
	bool done = sampler_perf_ops.start(&config, &sampler, &effective, &err);
	setrlimit(RLIMIT_NOFILE, &before);
	assert_true(done);
	assert_int_equal(effective.event_failures, cpus - 1);
	assert_string_equal(effective.warning_code, "events_not_opened");
	sampler_perf_ops.stop(sampler);
	limit_descriptors(cpus + 1, &before); /* no event at all */
	done = sampler_perf_ops.start(&config, &sampler, &effective, &err);
	setrlimit(RLIMIT_NOFILE, &before);
	assert_false(done);
	assert_int_equal(err.code, ERROR_LIMIT_EXCEEDED);
	assert_non_null(strstr(err.hint, "ulimit -n"));
	child_go(&child);
	child_end(&child, &truth);
}

/* As an ordinary user: run by this program in a process of its own. */

static long system_number(const char *path)
{
	char text[32] = "";
	FILE *file = fopen(path, "re");
	assert_non_null(file);
	assert_non_null(fgets(text, sizeof(text), file));
	fclose(file);
	return strtol(text, NULL, 10);
}

static void samples_user_time_when_the_kernel_is_not_permitted(void **state)
{
	struct seen *seen = *state;
	struct truth truth;
	struct sampler_effective effective;
	stage_sample("burn", seen, &truth, &effective);
	bool may_see = system_number("/proc/sys/kernel/perf_event_paranoid") < 2;
	assert_int_equal(effective.kernel_sampled, may_see);
	assert_string_equal(effective.warning_code, may_see ? "" : "kernel_time_not_sampled");
	assert_true(seen->samples > 0);
	if (!may_see) {
		assert_int_equal(seen->with_user, seen->samples);
		assert_true(seen->samples * effective.period_ns < truth.cpu_ns * 105 / 100);
	}
	stage_near(
		seen->cpu_ns, truth.cpu_ns, 0.02, 0); /* the kernel counts its own time all the same */
}

static void may_not_sample_the_process_of_another_user(void **state)
{
	struct seen *seen = *state;
	struct sampler *sampler;
	struct sampler_effective effective;
	struct error err = {0};
	seen->pid = 1;
	struct sampler_config config = seen_config(seen, false);
	assert_false(sampler_perf_ops.start(&config, &sampler, &effective, &err));
	assert_int_equal(err.code, ERROR_NOT_PERMITTED);
	assert_non_null(strstr(err.message, "belongs to user 0"));
}

static void takes_at_most_half_of_the_memory_that_may_be_locked(void **state)
{
	struct seen *seen = *state;
	struct truth truth;
	struct sampler_effective effective;
	struct rlimit none = {0, 0};
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &none), 0);
	size_t quota = (size_t)system_number("/proc/sys/kernel/perf_event_mlock_kb") * 1024 *
				   (size_t)sysconf(_SC_NPROCESSORS_ONLN);
	stage_sample("maps", seen, &truth, &effective);
	assert_true(seen->samples > 0);
	assert_true(effective.ring_bytes <= quota / 2);
	if (quota / 2 < (256u + 4) * 1024 * (size_t)sysconf(_SC_NPROCESSORS_ONLN)) {
		assert_non_null(strstr(effective.warning, "of 256 KiB"));
	}
}

static int ordinary_user(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			samples_user_time_when_the_kernel_is_not_permitted, setup, teardown),
		cmocka_unit_test_setup_teardown(
			may_not_sample_the_process_of_another_user, setup, teardown),
		cmocka_unit_test_setup_teardown(
			takes_at_most_half_of_the_memory_that_may_be_locked, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Its output is not this test's: it goes to stderr. */
static void works_for_an_ordinary_user(void **state)
{
	(void)state;
	int status;
	pid_t child = fork();
	if (child == 0) {
		dup2(2, 1);
		if (geteuid() == 0 && (setgid(NOBODY) != 0 || setuid(NOBODY) != 0)) {
			_exit(99);
		}
		execl("/proc/self/exe", "first", "ordinary-user", (char *)NULL);
		_exit(98);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 98) {
		print_message("skipped: user %d may not run this test's program\n", NOBODY);
		skip();
	}
	assert_int_equal(status, 0);
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		if (strcmp(argv[1], "ordinary-user") == 0) {
			return ordinary_user();
		}
		/* At once: a sanitizer's search for leaks at the end is CPU time that the program did not report. */
		_exit(programs_run(argv[1]));
	}
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		CASE(counts_as_many_samples_as_the_kernel_counts_cpu_time),
		CASE(sees_every_thread_whenever_it_was_born),
		CASE(tells_what_each_thread_has_consumed),
		CASE(leaves_out_the_processes_that_it_forks),
		CASE(goes_on_when_the_program_becomes_another),
		CASE(tells_where_the_code_of_the_program_is),
		CASE(begins_with_what_a_running_process_has),
		CASE(shows_kernel_frames_only_when_they_are_wanted),
		CASE(rests_when_the_target_has_ended),
		CASE(refuses_a_rate_above_the_maximum_of_the_kernel),
		CASE(says_that_a_process_is_not_there),
		CASE(stop_takes_nothing),
		CASE(chooses_by_name),
		CASE(tells_how_many_events_lack_a_descriptor),
		CASE(works_for_an_ordinary_user),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
