#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "target/cpu_time.h"

#define TICKS_NS 20000000 /* two of those in which proc(5) counts */

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec time;
	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void compute(uint64_t ns)
{
	uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;
	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end) {
		for (volatile int i = 0; i < 100000; i++) {
		}
	}
}

static void stay_in_the_kernel(uint64_t ns)
{
	static char bytes[1 << 20];
	uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end) {
		assert_int_equal(read(fd, bytes, sizeof(bytes)), sizeof(bytes));
	}
	close(fd);
}

static void is_the_clock_of_the_process(void **state)
{
	struct target_cpu_time time;
	uint64_t before = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	(void)state;
	assert_true(target_process_cpu_time(getpid(), &time));
	assert_in_range(time.total_ns, before, clock_ns(CLOCK_PROCESS_CPUTIME_ID));
}

static void is_the_clock_of_the_thread(void **state)
{
	struct target_cpu_time time;
	(void)state;
	compute(50000000);
	uint64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	assert_true(target_thread_cpu_time(getpid(), (pid_t)syscall(SYS_gettid), &time));
	/* Of a thread that runs the kernel tells it as of its latest tick. */
	assert_in_range(time.total_ns, before - TICKS_NS, clock_ns(CLOCK_THREAD_CPUTIME_ID));
}

/* getrusage(2) is the independent answer: it is what the kernel tells the process itself. */
static void divides_it_between_user_and_kernel(void **state)
{
	struct target_cpu_time begin, end, thread_begin, thread_end;
	struct rusage before, after;
	pid_t pid = getpid(), tid = (pid_t)syscall(SYS_gettid);
	(void)state;
	assert_true(
		target_process_cpu_time(pid, &begin) && target_thread_cpu_time(pid, tid, &thread_begin));
	getrusage(RUSAGE_SELF, &before);
	compute(100000000);
	stay_in_the_kernel(200000000);
	getrusage(RUSAGE_SELF, &after);
	assert_true(
		target_process_cpu_time(pid, &end) && target_thread_cpu_time(pid, tid, &thread_end));
	int64_t system = (after.ru_stime.tv_sec - before.ru_stime.tv_sec) * INT64_C(1000000000) +
					 (after.ru_stime.tv_usec - before.ru_stime.tv_usec) * INT64_C(1000);
	const struct target_cpu_time found[] = {
		target_cpu_time_between(&begin, &end), target_cpu_time_between(&thread_begin, &thread_end)};
	assert_true(system > 100000000);
	for (int i = 0; i < 2; i++) {
		assert_true(found[i].user_ns + found[i].system_ns == found[i].total_ns);
		assert_true(llabs((int64_t)found[i].system_ns - system) < 2 * TICKS_NS);
		assert_true(llabs((int64_t)found[i].total_ns - 300000000) < 3 * TICKS_NS);
	}
}

static void is_read_behind_any_name(void **state)
{
	struct target_cpu_time time;
	char before[16];
	(void)state;
	prctl(PR_GET_NAME, before);
	prctl(PR_SET_NAME, "x) R 1 2 (3");
	assert_true(target_thread_cpu_time(getpid(), (pid_t)syscall(SYS_gettid), &time));
	prctl(PR_SET_NAME, before);
	assert_true(time.user_ns + time.system_ns <= time.total_ns + TICKS_NS);
}

static void is_known_until_a_process_is_reaped(void **state)
{
	struct target_cpu_time time;
	siginfo_t info;
	pid_t child = fork();
	(void)state;
	if (child == 0) {
		compute(30000000);
		_exit(0);
	}
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	assert_true(target_process_cpu_time(child, &time));
	assert_in_range(time.total_ns, 30000000, 10000000000);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_false(target_process_cpu_time(child, &time));
	assert_false(target_thread_cpu_time(child, child, &time));
}

static void gives_the_whole_the_division_of_its_ticks(void **state)
{
	const struct target_cpu_time none = {0}, first = {1000, 100, 400}, second = {2100, 400, 500};
	struct target_cpu_time time = target_cpu_time_between(&first, &second);
	(void)state;
	assert_int_equal(time.total_ns, 1100);
	assert_int_equal(time.user_ns, 825);
	assert_int_equal(time.system_ns, 275);
	time = target_cpu_time_between(&none, &(struct target_cpu_time){500, 0, 0});
	assert_int_equal(time.total_ns, 500);
	assert_int_equal(time.user_ns + time.system_ns, 0);
	time = target_cpu_time_between(&second, &first); /* a number that came again */
	assert_int_equal(time.total_ns + time.user_ns + time.system_ns, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_the_clock_of_the_process),
		cmocka_unit_test(is_the_clock_of_the_thread),
		cmocka_unit_test(divides_it_between_user_and_kernel),
		cmocka_unit_test(is_read_behind_any_name),
		cmocka_unit_test(is_known_until_a_process_is_reaped),
		cmocka_unit_test(gives_the_whole_the_division_of_its_ticks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
