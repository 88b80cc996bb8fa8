#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "process/environment.h"
#include "process/pidfd.h"
#include "process/process.h"
#include "protocol/limits.h"
#include "protocol/programs.h"

#define WAIT_MS 20000

static char gate_path[PATH_MAX];
static uv_loop_t loop;
static struct processes *processes;
static size_t descriptors_before;

/* Somebody who watches a process and writes down what was told. */
struct seen {
	struct process_watch watch;
	char told[64];   /* a letter each: r(eady) R(unning) f(ailed) o(utput, once) x (exited) */
	char text[4096]; /* the beginning of the output */
	uint64_t bytes[3];
	bool in_order;
	struct process_exit exit;
	struct error err;
	struct process *process;
};

static void tell(struct seen *seen, char what)
{
	size_t len = strlen(seen->told);
	assert_true(len + 1 < sizeof(seen->told));
	seen->told[len] = what;
}

static void on_ready(void *context, struct process *process)
{
	assert_int_equal(process_state(process), PROCESS_HELD);
	tell(context, 'r');
}

static void on_running(void *context, struct process *process)
{
	assert_int_equal(process_state(process), PROCESS_RUNNING);
	tell(context, 'R');
}

static void on_failed(void *context, struct process *process, const struct error *err)
{
	struct seen *seen = context;
	(void)process;
	assert_null(seen->watch.process);
	tell(seen, 'f');
	seen->err = *err;
}

static void on_output(void *context, struct process *process, enum process_stream stream,
	uint64_t offset, const char *bytes, size_t len)
{
	struct seen *seen = context;
	(void)process;
	if (seen->bytes[1] + seen->bytes[2] == 0) {
		tell(seen, 'o');
	}
	seen->in_order = seen->in_order && offset == seen->bytes[stream] && len > 0;
	seen->bytes[stream] += len;
	size_t used = strlen(seen->text);
	size_t room = sizeof(seen->text) - 1 - used;
	memcpy(seen->text + used, bytes, len < room ? len : room);
}

static void on_exited(void *context, struct process *process)
{
	struct seen *seen = context;
	assert_null(seen->watch.process);
	assert_int_equal(process_state(process), PROCESS_EXITED);
	tell(seen, 'x');
	seen->exit = *process_exit(process);
}

static const struct process_watch_ops seen_ops = {
	on_ready, on_running, on_failed, on_output, on_exited};

static void prepare(struct seen *seen)
{
	memset(seen, 0, sizeof(*seen));
	seen->watch.ops = &seen_ops;
	seen->watch.context = seen;
	seen->in_order = true;
}

static bool launch_as(struct seen *seen, const struct process_options *options)
{
	prepare(seen);
	seen->process = processes_launch(processes, options, &seen->watch, &seen->err);
	return seen->process != NULL;
}

/* A shell script. */
static void launch_script(struct seen *seen, const char *script, bool hold)
{
	const char *argv[] = {"sh", "-c", script, NULL};
	const struct process_options options = {.argv = argv, .hold = hold};
	assert_true(launch_as(seen, &options));
	assert_string_equal(seen->told, "");
}

static uint64_t now_ms(void)
{
	return uv_hrtime() / 1000000;
}

static void on_guard(uv_timer_t *timer)
{
	*(bool *)timer->data = true;
}

/* Runs the loop until the letter was told; returns the turns. */
static unsigned run_until(const struct seen *seen, char what)
{
	bool too_late = false;
	unsigned turns = 0;
	uv_timer_t guard;
	uv_timer_init(&loop, &guard);
	guard.data = &too_late;
	uv_timer_start(&guard, on_guard, WAIT_MS, 0);
	while (strchr(seen->told, what) == NULL && !too_late) {
		uv_run(&loop, UV_RUN_ONCE);
		turns++;
	}
	uv_close((uv_handle_t *)&guard, NULL);
	uv_run(&loop, UV_RUN_NOWAIT);
	assert_false(too_late);
	return turns;
}

static void run_script(struct seen *seen, const char *script)
{
	launch_script(seen, script, false);
	run_until(seen, 'x');
}

static size_t open_descriptors(void)
{
	size_t count = 0;
	for (int fd = 0; fd < 1024; fd++) {
		count += fcntl(fd, F_GETFD) >= 0;
	}
	return count;
}

/* Dead, or dead and not reaped by whoever inherited it. */
static bool is_gone(pid_t pid)
{
	char path[64], text[512] = "";
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		return true;
	}
	ssize_t count = read(fd, text, sizeof(text) - 1);
	close(fd);
	const char *bracket = count > 0 ? strrchr(text, ')') : NULL;
	return bracket == NULL || bracket[2] == 'Z' || bracket[2] == 'X';
}

static int set_up(void **state)
{
	(void)state;
	struct error err;
	descriptors_before = open_descriptors();
	uv_loop_init(&loop);
	processes = processes_create(&loop, gate_path, &err);
	return processes != NULL ? 0 : -1;
}

/* Nothing is left: no handle, descriptor, child. */
static int tear_down(void **state)
{
	(void)state;
	processes_destroy(processes);
	uv_run(&loop, UV_RUN_DEFAULT);
	if (uv_loop_close(&loop) != 0) {
		fprintf(stderr, "handles are left open\n");
		return -1;
	}
	if (open_descriptors() != descriptors_before) {
		fprintf(
			stderr, "%zu descriptors before, %zu after\n", descriptors_before, open_descriptors());
		return -1;
	}
	if (waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD) {
		fprintf(stderr, "a child is left\n");
		return -1;
	}
	return 0;
}

static void tells_the_life_of_a_program_in_order(void **state)
{
	(void)state;
	struct seen seen;
	launch_script(&seen, "echo $$; echo wrong >&2; exit 7", false);
	pid_t pid = process_pid(seen.process);
	assert_int_equal(process_state(seen.process), PROCESS_STARTING);
	assert_null(process_exit(seen.process));
	assert_ptr_equal(processes_find_pid(processes, pid), seen.process);
	run_until(&seen, 'x');
	assert_string_equal(seen.told, "rRox");
	char expected[32];
	snprintf(expected, sizeof(expected), "%d\n", (int)pid);
	assert_int_equal(seen.bytes[PROCESS_STDOUT], strlen(expected));
	assert_int_equal(seen.bytes[PROCESS_STDERR], strlen("wrong\n"));
	assert_non_null(strstr(seen.text, expected));
	assert_non_null(strstr(seen.text, "wrong\n"));
	assert_false(seen.exit.was_signalled);
	assert_int_equal(seen.exit.exit_code, 7);
	assert_int_equal(processes_alive(processes), 0);
	assert_null(processes_find_pid(processes, pid));
}

static void tells_signals_apart_from_exit_codes(void **state)
{
	(void)state;
	struct seen seen;
	run_script(&seen, "exit 139");
	assert_false(seen.exit.was_signalled);
	assert_int_equal(seen.exit.exit_code, 139);
	run_script(&seen, "ulimit -c 0; kill -SEGV $$");
	assert_true(seen.exit.was_signalled);
	assert_int_equal(seen.exit.signal, SIGSEGV);
	assert_false(seen.exit.core_dumped);
	run_script(&seen, "kill -KILL $$");
	assert_true(seen.exit.was_signalled);
	assert_int_equal(seen.exit.signal, SIGKILL);
	run_script(&seen, "exit 127");
	assert_string_equal(seen.told, "rRx");
	assert_int_equal(seen.exit.exit_code, 127);
}

static void tells_what_the_kernel_counted(void **state)
{
	(void)state;
	struct rusage before, after;
	struct seen seen;
	getrusage(RUSAGE_CHILDREN, &before);
	run_script(&seen, "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done");
	getrusage(RUSAGE_CHILDREN, &after);
	int64_t user = (after.ru_utime.tv_sec - before.ru_utime.tv_sec) * 1000000 +
				   (after.ru_utime.tv_usec - before.ru_utime.tv_usec);
	int64_t system = (after.ru_stime.tv_sec - before.ru_stime.tv_sec) * 1000000 +
					 (after.ru_stime.tv_usec - before.ru_stime.tv_usec);
	assert_true(seen.exit.user_us > 1000);
	assert_true(llabs(user - (int64_t)seen.exit.user_us) <= 2);
	assert_true(llabs(system - (int64_t)seen.exit.system_us) <= 2);
	assert_true(seen.exit.max_rss_bytes > 100 * 1024);
}

static void keeps_a_held_program_until_it_is_resumed(void **state)
{
	(void)state;
	struct seen seen;
	struct error err;
	launch_script(&seen, "echo ran", true);
	run_until(&seen, 'r');
	for (int i = 0; i < 5; i++) {
		uv_run(&loop, UV_RUN_NOWAIT);
		usleep(10000);
	}
	assert_string_equal(seen.told, "r");
	assert_int_equal(process_state(seen.process), PROCESS_HELD);
	assert_true(process_resume(seen.process, &err));
	assert_true(process_resume(seen.process, &err));
	run_until(&seen, 'x');
	assert_string_equal(seen.told, "rRox");
	assert_false(process_resume(seen.process, &err));
	assert_int_equal(err.code, ERROR_BUILD_NOT_RUNNING);
}

static void runs_nothing_of_a_held_program_that_is_stopped(void **state)
{
	(void)state;
	struct seen seen;
	struct error err;
	launch_script(&seen, "echo ran", true);
	run_until(&seen, 'r');
	assert_true(process_stop(seen.process, SIGTERM, 5000, &err));
	assert_false(process_resume(seen.process, &err));
	assert_int_equal(err.code, ERROR_BUILD_NOT_RUNNING);
	run_until(&seen, 'x');
	assert_string_equal(seen.told, "rx");
	assert_int_equal(seen.exit.exit_code, 125);
}

static void fails_one_that_is_stopped_while_it_starts(void **state)
{
	(void)state;
	struct seen seen;
	struct error err;
	launch_script(&seen, "echo ran", false);
	assert_true(process_stop(seen.process, SIGTERM, 5000, &err));
	run_until(&seen, 'f');
	assert_string_equal(seen.told, "f");
	assert_int_equal(seen.err.code, ERROR_CANCELLED);
	assert_int_equal(processes_alive(processes), 0);
}

static void cancel(void *context, struct process *process)
{
	(void)context;
	process_cancel(process);
}

static void undoes_a_launch_that_is_cancelled_when_ready(void **state)
{
	(void)state;
	static const struct process_watch_ops ops = {.ready = cancel};
	struct process_watch canceller = {.ops = &ops};
	struct seen seen;
	launch_script(&seen, "echo ran", false);
	process_watch(seen.process, &canceller);
	run_until(&seen, 'f');
	assert_string_equal(seen.told, "rf");
	assert_int_equal(seen.err.code, ERROR_CANCELLED);
	assert_null(processes_next(processes, NULL));
	assert_int_equal(processes_alive(processes), 0);
}

static void forgets_at_once_what_never_ran(void **state)
{
	(void)state;
	const char *missing[] = {"no-such-program", NULL};
	const char *orphan[] = {"./orphan", NULL};
	json_t *id = json_string("mine");
	struct process_options options = {.build_id = id, .argv = missing};
	struct seen seen;
	struct error err;
	assert_true(launch_as(&seen, &options));
	run_until(&seen, 'f');
	assert_string_equal(seen.told, "f");
	assert_int_equal(seen.err.code, ERROR_LAUNCH_FAILED);
	assert_string_equal(seen.err.detail, "not_found");
	assert_null(processes_find(processes, id, &err));
	assert_int_equal(err.code, ERROR_BUILD_NOT_FOUND);
	assert_null(processes_next(processes, NULL));

	char folder[] = "/tmp/profd-test-process-XXXXXX";
	char script[64];
	assert_non_null(mkdtemp(folder));
	snprintf(script, sizeof(script), "%s/orphan", folder);
	int fd = open(script, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
	assert_int_equal(write(fd, "#!/no/such/thing\n", 17), 17);
	close(fd);
	options.argv = orphan;
	options.cwd = folder;
	assert_true(launch_as(&seen, &options));
	run_until(&seen, 'f');
	assert_string_equal(seen.told, "rf");
	assert_string_equal(seen.err.detail, "no_interpreter");
	assert_int_equal(processes_alive(processes), 0);
	unlink(script);
	rmdir(folder);
	json_decref(id);
}

static void refuses_what_cannot_be_launched_and_keeps_nothing(void **state)
{
	(void)state;
	const char *nothing[] = {NULL};
	const char *empty[] = {"", NULL};
	const char *good[] = {"true", NULL};
	const char *nameless[] = {"=value", NULL};
	json_t *long_id = json_stringn("", 0);
	const struct process_options bad[] = {
		{.argv = nothing},
		{.argv = empty},
		{.argv = good, .cwd = "relative"},
		{.argv = good, .env = nameless},
		{.argv = good, .build_id = long_id},
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct seen seen;
		assert_false(launch_as(&seen, &bad[i]));
		assert_int_equal(seen.err.code, ERROR_BAD_PARAMS);
		assert_null(seen.watch.process);
	}
	json_decref(long_id);
	assert_null(processes_next(processes, NULL));
	assert_int_equal(processes_alive(processes), 0);
}

static void refuses_to_launch_without_a_gate(void **state)
{
	(void)state;
	struct error err;
	struct seen seen;
	struct processes *other = processes_create(&loop, "/no/such/gate", &err);
	const char *argv[] = {"true", NULL};
	const struct process_options options = {.argv = argv};
	prepare(&seen);
	assert_null(processes_launch(other, &options, &seen.watch, &err));
	assert_int_equal(err.code, ERROR_LAUNCH_FAILED);
	assert_non_null(strstr(err.message, "/no/such/gate"));
	assert_int_equal(processes_alive(other), 0);
	processes_destroy(other);
}

static void fails_when_the_gate_is_killed_while_it_waits(void **state)
{
	(void)state;
	struct seen seen;
	launch_script(&seen, "echo ran", true);
	run_until(&seen, 'r');
	kill(process_pid(seen.process), SIGKILL);
	run_until(&seen, 'f');
	assert_string_equal(seen.told, "rf");
	assert_string_equal(seen.err.detail, "gate_died");
}

static void takes_a_number_and_its_text_for_one_build(void **state)
{
	(void)state;
	json_t *number = json_integer(7);
	json_t *text = json_string("7");
	const char *argv[] = {"sleep", "30", NULL};
	struct process_options options = {.build_id = number, .argv = argv};
	struct seen first, second;
	struct error err;
	assert_true(launch_as(&first, &options));
	options.build_id = text;
	assert_false(launch_as(&second, &options));
	assert_int_equal(second.err.code, ERROR_BUILD_EXISTS);
	assert_ptr_equal(processes_find(processes, text, &err), first.process);
	assert_true(json_is_integer(process_build_id(first.process)));
	run_until(&first, 'R');
	process_stop(first.process, SIGKILL, 0, &err);
	run_until(&first, 'x');
	/* It may be used again now, and means the newest. */
	assert_true(launch_as(&second, &options));
	assert_ptr_equal(processes_find(processes, number, &err), second.process);
	assert_true(json_is_string(process_build_id(second.process)));
	assert_ptr_equal(processes_next(processes, NULL), first.process);
	assert_ptr_equal(processes_next(processes, first.process), second.process);
	assert_null(processes_next(processes, second.process));
	run_until(&second, 'R');
	process_stop(second.process, SIGKILL, 0, &err);
	run_until(&second, 'x');
	json_decref(number);
	json_decref(text);
}

static void makes_build_ids_that_are_not_in_use(void **state)
{
	(void)state;
	json_t *taken = json_integer(2);
	const char *argv[] = {"true", NULL};
	struct process_options options = {.build_id = taken, .argv = argv};
	struct seen seen[3];
	assert_true(launch_as(&seen[0], &options));
	options.build_id = NULL;
	assert_true(launch_as(&seen[1], &options));
	assert_true(launch_as(&seen[2], &options));
	assert_string_equal(process_key(seen[1].process), "1");
	assert_string_equal(process_key(seen[2].process), "3");
	assert_string_equal(json_string_value(process_build_id(seen[2].process)), "3");
	for (int i = 0; i < 3; i++) {
		run_until(&seen[i], 'x');
	}
	json_decref(taken);
}

static void lays_changes_over_its_own_environment(void **state)
{
	(void)state;
	struct seen seen;
	const char *argv[] = {"env", NULL};
	const char *changes[] = {"ADDED=1", "ADDED=2", "REPLACED=new", "REMOVED", "EMPTY=", NULL};
	setenv("REPLACED", "old", 1);
	setenv("REMOVED", "old", 1);
	setenv("KEPT", "kept", 1);
	setenv("NOTIFY_SOCKET", "private", 1);
	setenv("LISTEN_FDS", "private", 1);
	setenv("PROFD_ANYTHING", "private", 1);
	const struct process_options options = {.argv = argv, .env = changes};
	assert_true(launch_as(&seen, &options));
	run_until(&seen, 'x');
	assert_non_null(strstr(seen.text, "ADDED=2\n"));
	assert_null(strstr(seen.text, "ADDED=1\n"));
	assert_non_null(strstr(seen.text, "REPLACED=new\n"));
	assert_null(strstr(seen.text, "REMOVED"));
	assert_non_null(strstr(seen.text, "KEPT=kept\n"));
	assert_non_null(strstr(seen.text, "EMPTY=\n"));
	assert_null(strstr(seen.text, "private"));
	unsetenv("NOTIFY_SOCKET");
	unsetenv("LISTEN_FDS");
	unsetenv("PROFD_ANYTHING");
}

static void gives_exactly_the_environment_asked_for(void **state)
{
	(void)state;
	struct seen seen;
	const char *argv[] = {"env", NULL};
	const char *exact[] = {"B=2", "PROFD_SOCKET=/x", "A=1", NULL};
	const struct process_options options = {.argv = argv, .env = exact, .env_exact = true};
	assert_true(launch_as(&seen, &options));
	run_until(&seen, 'x');
	assert_string_equal(seen.text, "A=1\nB=2\nPROFD_SOCKET=/x\n");
}

static void bounds_the_environment_and_its_time(void **state)
{
	(void)state;
	const char **changes = calloc(LIMIT_ENVIRONMENT + 2, sizeof(*changes));
	struct error err;
	for (size_t i = 0; i < LIMIT_ENVIRONMENT; i++) {
		changes[i] = i % 2 == 0 ? "SAME=1" : "SAMES=2";
	}
	char **environment = environment_create(NULL, changes, &err);
	assert_non_null(environment);
	assert_string_equal(environment[0], "SAME=1");
	assert_string_equal(environment[1], "SAMES=2");
	assert_null(environment[2]);
	free(environment);
	changes[LIMIT_ENVIRONMENT] = "ONE=more";
	assert_null(environment_create(NULL, changes, &err));
	assert_int_equal(err.code, ERROR_BAD_PARAMS);
	free(changes);
}

static void reads_every_byte_of_a_flood(void **state)
{
	(void)state;
	struct seen seen;
	run_script(&seen, "head -c 50000000 /dev/zero; head -c 3000000 /dev/zero >&2");
	assert_int_equal(seen.bytes[PROCESS_STDOUT], 50000000);
	assert_int_equal(seen.bytes[PROCESS_STDERR], 3000000);
	assert_true(seen.in_order);
	assert_int_equal(seen.exit.exit_code, 0);
}

static void reads_on_when_nobody_watches(void **state)
{
	(void)state;
	struct seen seen;
	launch_script(&seen, "head -c 10000000 /dev/zero; echo done >&2", false);
	run_until(&seen, 'R');
	process_unwatch(&seen.watch);
	uint64_t start = now_ms();
	while (processes_alive(processes) > 0 && now_ms() - start < WAIT_MS) {
		uv_run(&loop, UV_RUN_ONCE);
	}
	assert_int_equal(processes_alive(processes), 0);
	assert_int_equal(process_exit(seen.process)->exit_code, 0);
}

static void rests_after_a_program_closed_its_output(void **state)
{
	(void)state;
	struct seen seen;
	launch_script(&seen, "exec >&- 2>&-; sleep 0.3; exit 3", false);
	run_until(&seen, 'R');
	unsigned turns = run_until(&seen, 'x');
	assert_in_range(turns, 1, 10);
	assert_int_equal(seen.exit.exit_code, 3);
}

static void waits_half_a_second_for_output_held_by_a_grandchild(void **state)
{
	(void)state;
	struct seen seen;
	uint64_t start = now_ms();
	run_script(&seen, "sleep 30 & echo $!; exit 4");
	uint64_t took = now_ms() - start;
	pid_t grandchild = atoi(seen.text);
	assert_in_range(took, 490, 5000);
	assert_int_equal(seen.exit.exit_code, 4);
	assert_true(grandchild > 0);
	assert_false(is_gone(grandchild)); /* the leader ended by itself: its group is left alone */
	kill(grandchild, SIGKILL);
}

static void passes_what_a_grandchild_still_writes(void **state)
{
	(void)state;
	struct seen seen;
	run_script(&seen, "(sleep 0.1; echo late) & exit 0");
	assert_string_equal(seen.text, "late\n");
}

static void ends_at_the_first_signal_what_heeds_it(void **state)
{
	(void)state;
	struct seen seen;
	struct error err;
	launch_script(&seen, "echo up; sleep 30; echo no", false);
	run_until(&seen, 'o');
	uint64_t start = now_ms();
	assert_true(process_stop(seen.process, SIGTERM, 10000, &err));
	assert_true(process_stop(seen.process, SIGTERM, 10000, &err));
	run_until(&seen, 'x');
	assert_true(now_ms() - start < 5000);
	assert_true(seen.exit.was_signalled);
	assert_int_equal(seen.exit.signal, SIGTERM);
	assert_true(process_stop(seen.process, SIGTERM, 0, &err)); /* an exited one */
}

static void kills_after_the_grace_what_ignores_the_signal(void **state)
{
	(void)state;
	struct seen seen;
	struct error err;
	launch_script(&seen, "trap '' TERM; echo up; while :; do sleep 0.1; done", false);
	run_until(&seen, 'o');
	uint64_t start = now_ms();
	assert_true(process_stop(seen.process, SIGTERM, 300, &err));
	run_until(&seen, 'x');
	assert_in_range(now_ms() - start, 299, 5000);
	assert_int_equal(seen.exit.signal, SIGKILL);
}

static void lets_a_later_stop_shorten_the_grace(void **state)
{
	(void)state;
	struct seen seen;
	struct error err;
	launch_script(&seen, "trap '' TERM; echo up; while :; do sleep 0.1; done", false);
	run_until(&seen, 'o');
	uint64_t start = now_ms();
	assert_true(process_stop(seen.process, SIGTERM, 15000, &err));
	assert_true(process_stop(seen.process, SIGTERM, 100, &err));
	assert_true(process_stop(seen.process, SIGTERM, 15000, &err));
	run_until(&seen, 'x');
	assert_in_range(now_ms() - start, 99, 5000);
	assert_int_equal(seen.exit.signal, SIGKILL);
}

static void kills_members_of_the_group_that_outlive_their_leader(void **state)
{
	(void)state;
	struct seen seen;
	struct error err;
	/* The member holds no output, so that only the group tells of it. */
	launch_script(&seen,
		"trap 'exit 0' TERM\n"
		"(trap '' TERM; exec sleep 30 >/dev/null 2>&1) & echo $!\n"
		"while :; do sleep 0.05; done",
		false);
	run_until(&seen, 'o');
	pid_t member = atoi(seen.text);
	uv_sleep(50);
	uint64_t start = now_ms();
	assert_true(process_stop(seen.process, SIGTERM, 400, &err));
	run_until(&seen, 'x');
	assert_in_range(now_ms() - start, 399, 5000);
	assert_int_equal(seen.exit.exit_code, 0);
	for (int i = 0; i < 100 && !is_gone(member); i++) {
		usleep(10000);
	}
	assert_true(is_gone(member));
}

static void gives_members_of_the_group_their_grace(void **state)
{
	(void)state;
	struct seen seen;
	struct error err;
	launch_script(&seen,
		"(trap 'sleep 0.2; echo clean; exit 0' TERM; echo up; while :; do sleep 0.05; done) "
		"2>/dev/null &\n"
		"sleep 30",
		false);
	run_until(&seen, 'o');
	uint64_t start = now_ms();
	assert_true(process_stop(seen.process, SIGTERM, 10000, &err));
	run_until(&seen, 'x');
	assert_true(now_ms() - start < 5000);
	assert_int_equal(seen.exit.signal, SIGTERM);
	assert_string_equal(seen.text, "up\nclean\n");
}

static void ends_a_program_that_stopped_itself(void **state)
{
	(void)state;
	struct seen seen;
	struct error err;
	launch_script(&seen, "echo up; kill -STOP $$; echo on; sleep 30", false);
	run_until(&seen, 'o');
	uv_sleep(100);
	assert_string_equal(seen.told, "rRo");
	assert_true(process_stop(seen.process, SIGTERM, 10000, &err));
	run_until(&seen, 'x');
	assert_int_equal(seen.exit.signal, SIGTERM);
}

static void refuses_signals_that_are_none(void **state)
{
	(void)state;
	struct seen seen;
	struct error err;
	launch_script(&seen, "sleep 30", true);
	run_until(&seen, 'r');
	assert_false(process_stop(seen.process, 0, 0, &err));
	assert_int_equal(err.code, ERROR_BAD_PARAMS);
	assert_false(process_stop(seen.process, 65, 0, &err));
	assert_int_equal(process_state(seen.process), PROCESS_HELD);
	assert_true(process_stop(seen.process, SIGKILL, 0, &err));
	run_until(&seen, 'x');
}

static void passes_the_null_device_when_asked(void **state)
{
	(void)state;
	char path[] = "/tmp/profd-test-process-XXXXXX";
	char script[256], text[256] = "";
	close(mkstemp(path));
	/* The links are read before the file is opened. */
	snprintf(script, sizeof(script),
		"links=$(readlink /proc/$$/fd/0 /proc/$$/fd/1 /proc/$$/fd/2); echo \"$links\" >%s", path);
	const char *argv[] = {"sh", "-c", script, NULL};
	const struct process_options options = {.argv = argv, .stdio = PROCESS_STDIO_NULL};
	struct seen seen;
	assert_true(launch_as(&seen, &options));
	run_until(&seen, 'x');
	assert_string_equal(seen.told, "rRx");
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	unlink(path);
	assert_string_equal(text, "/dev/null\n/dev/null\n/dev/null\n");
}

static void gives_programs_back_the_limits_from_before(void **state)
{
	(void)state;
	struct seen seen;
	struct rlimit limit;
	getrlimit(RLIMIT_NOFILE, &limit);
	processes_set_nofile(processes, 77, (long)limit.rlim_max);
	processes_set_umask(processes, 0026);
	run_script(&seen, "ulimit -Sn; umask; cat");
	assert_string_equal(seen.text, "77\n0026\n");
}

static void leaves_nothing_after_many_launches(void **state)
{
	(void)state;
	static struct seen seen[20];
	const char *argv[] = {"/bin/true", NULL};
	const struct process_options options = {.argv = argv};
	run_script(&seen[0], "true");
	size_t before = open_descriptors();
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < 20; i++) {
			assert_true(launch_as(&seen[i], &options));
		}
		for (int i = 0; i < 20; i++) {
			run_until(&seen[i], 'x');
			assert_string_equal(seen[i].told, "rRx");
			assert_int_equal(seen[i].exit.exit_code, 0);
		}
		assert_int_equal(open_descriptors(), before);
		assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	}
}

static void leaves_nothing_after_many_failures(void **state)
{
	(void)state;
	static struct seen seen[20];
	const char *argv[] = {"./no-such-program", NULL};
	const struct process_options options = {.argv = argv};
	run_script(&seen[0], "true");
	size_t before = open_descriptors();
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 20; i++) {
			assert_true(launch_as(&seen[i], &options));
		}
		for (int i = 0; i < 20; i++) {
			run_until(&seen[i], 'f');
		}
		assert_int_equal(open_descriptors(), before);
		assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	}
}

static void leaves_nothing_when_descriptors_run_out(void **state)
{
	(void)state;
	const char *argv[] = {"true", NULL};
	const struct process_options options = {.argv = argv};
	struct seen seen;
	struct rlimit old;
	run_script(&seen, "true");
	size_t before = open_descriptors();
	int lowest = dup(1);
	close(lowest);
	getrlimit(RLIMIT_NOFILE, &old);
	int refused = 0;
	for (int more = 0; more < 16; more++) {
		struct rlimit tight = {(rlim_t)(lowest + more), old.rlim_max};
		setrlimit(RLIMIT_NOFILE, &tight);
		bool launched = launch_as(&seen, &options);
		setrlimit(RLIMIT_NOFILE, &old);
		if (launched) {
			run_until(&seen, 'x');
		} else {
			refused++;
			uv_run(&loop, UV_RUN_NOWAIT);
		}
		assert_int_equal(open_descriptors(), before);
		assert_int_equal(processes_alive(processes), 0);
	}
	assert_in_range(refused, 5, 15);
}

static void takes_no_more_than_its_limit(void **state)
{
	(void)state;
	static struct seen seen[LIMIT_BUILDS];
	const char *argv[] = {"true", NULL};
	const struct process_options options = {.argv = argv, .hold = true};
	struct seen extra;
	for (int i = 0; i < LIMIT_BUILDS; i++) {
		assert_true(launch_as(&seen[i], &options));
	}
	assert_false(launch_as(&extra, &options));
	assert_int_equal(extra.err.code, ERROR_LIMIT_EXCEEDED);
	for (int i = 0; i < LIMIT_BUILDS; i++) {
		run_until(&seen[i], 'r');
	}
	processes_stop_all(processes, SIGTERM, 5000);
	for (int i = 0; i < LIMIT_BUILDS; i++) {
		run_until(&seen[i], 'x');
	}
	assert_int_equal(processes_alive(processes), 0);
	assert_true(launch_as(&extra, &options));
	run_until(&extra, 'r');
	process_stop(extra.process, SIGTERM, 0, NULL);
	run_until(&extra, 'x');
}

static size_t remembered(void)
{
	size_t count = 0;
	struct process *process = NULL;
	while ((process = processes_next(processes, process)) != NULL) {
		count++;
	}
	return count;
}

static void remembers_the_newest_exited_ones(void **state)
{
	(void)state;
	const char *argv[] = {"true", NULL};
	const struct process_options options = {.argv = argv, .stdio = PROCESS_STDIO_NULL};
	struct seen seen, keeper;
	json_t *first = json_string("1");
	json_t *second = json_string("2");
	prepare(&keeper);
	for (int i = 0; i < LIMIT_EXITED_BUILDS + 10; i++) {
		assert_true(launch_as(&seen, &options));
		run_until(&seen, 'x');
		if (i == 0) {
			process_watch(seen.process, &keeper.watch);
		}
	}
	uv_run(&loop, UV_RUN_NOWAIT);
	assert_int_equal(remembered(), LIMIT_EXITED_BUILDS);
	assert_non_null(processes_find(processes, first, NULL)); /* somebody watches it */
	assert_null(processes_find(processes, second, NULL));
	process_unwatch(&keeper.watch);
	assert_true(launch_as(&seen, &options));
	run_until(&seen, 'x');
	uv_run(&loop, UV_RUN_NOWAIT);
	assert_null(processes_find(processes, first, NULL));
	assert_string_equal(keeper.told, "");
	json_decref(first);
	json_decref(second);
}

static void keeps_the_loop_alive_only_for_living_programs(void **state)
{
	(void)state;
	struct seen seen;
	assert_false(uv_loop_alive(&loop));
	launch_script(&seen, "exit 0", false);
	assert_true(uv_loop_alive(&loop));
	assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
	assert_string_equal(seen.told, "rRx");
	assert_ptr_equal(processes_next(processes, NULL), seen.process);
}

/* Watchers that change who watches. */
struct meddler {
	struct process_watch watch;
	struct seen *leaves, *joins;
};

static void meddle(void *context, struct process *process)
{
	struct meddler *meddler = context;
	process_unwatch(&meddler->leaves->watch);
	process_watch(process, &meddler->joins->watch);
}

static void allows_watchers_to_come_and_go_while_told(void **state)
{
	(void)state;
	static const struct process_watch_ops ops = {.ready = meddle};
	struct seen first, leaves, last, joins;
	struct meddler meddler = {
		.watch = {.ops = &ops, .context = &meddler}, .leaves = &leaves, .joins = &joins};
	launch_script(&first, "exit 0", false);
	prepare(&leaves);
	prepare(&last);
	prepare(&joins);
	process_watch(first.process, &meddler.watch);
	process_watch(first.process, &leaves.watch);
	process_watch(first.process, &last.watch);
	run_until(&first, 'x');
	assert_string_equal(first.told, "rRx");
	assert_string_equal(leaves.told, "");
	assert_string_equal(last.told, "rRx");
	assert_string_equal(joins.told, "Rx");
	assert_null(meddler.watch.process);
}

static void kills_what_lives_when_the_table_goes(void **state)
{
	(void)state;
	struct seen seen;
	launch_script(&seen, "echo up; sleep 30", false);
	run_until(&seen, 'o');
	pid_t pid = process_pid(seen.process);
	struct error err;
	processes_destroy(processes);
	processes = processes_create(&loop, gate_path, &err);
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WTERMSIG(status), SIGKILL);
	assert_null(seen.watch.process);
	assert_null(strchr(seen.told, 'x'));
}

static int ended, closed;

static void on_watched_end(struct pidfd_watch *watch)
{
	ended++;
	pidfd_watch_close(watch);
}

static void on_watched_close(struct pidfd_watch *watch)
{
	(void)watch;
	closed++;
}

static void notices_the_end_of_any_process(void **state)
{
	(void)state;
	struct error err;
	struct pidfd_watch watch = {.ended = on_watched_end, .closed = on_watched_close};
	pid_t pid = fork();
	if (pid == 0) {
		usleep(50000);
		_exit(0);
	}
	assert_true(pidfd_watch_open(&watch, &loop, pid, &err));
	uv_run(&loop, UV_RUN_DEFAULT);
	assert_int_equal(ended, 1);
	assert_int_equal(closed, 1);
	assert_int_equal(waitpid(pid, NULL, 0), pid); /* it was not reaped */
	assert_false(pidfd_watch_open(&watch, &loop, pid, &err));
	assert_int_equal(err.code, ERROR_PROCESS_NOT_FOUND);
}

static int find_gate(void **state)
{
	(void)state;
	struct error err;
	if (!programs_find("profd-gate", gate_path, sizeof(gate_path), &err)) {
		fprintf(stderr, "%s\n", err.message);
		return -1;
	}
	/* The first loop of a process opens a pipe that libuv keeps. */
	uv_loop_init(&loop);
	return uv_loop_close(&loop);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(tells_the_life_of_a_program_in_order),
		CASE(tells_signals_apart_from_exit_codes),
		CASE(tells_what_the_kernel_counted),
		CASE(keeps_a_held_program_until_it_is_resumed),
		CASE(runs_nothing_of_a_held_program_that_is_stopped),
		CASE(fails_one_that_is_stopped_while_it_starts),
		CASE(undoes_a_launch_that_is_cancelled_when_ready),
		CASE(forgets_at_once_what_never_ran),
		CASE(refuses_what_cannot_be_launched_and_keeps_nothing),
		CASE(refuses_to_launch_without_a_gate),
		CASE(fails_when_the_gate_is_killed_while_it_waits),
		CASE(takes_a_number_and_its_text_for_one_build),
		CASE(makes_build_ids_that_are_not_in_use),
		CASE(lays_changes_over_its_own_environment),
		CASE(gives_exactly_the_environment_asked_for),
		CASE(bounds_the_environment_and_its_time),
		CASE(reads_every_byte_of_a_flood),
		CASE(reads_on_when_nobody_watches),
		CASE(rests_after_a_program_closed_its_output),
		CASE(waits_half_a_second_for_output_held_by_a_grandchild),
		CASE(passes_what_a_grandchild_still_writes),
		CASE(ends_at_the_first_signal_what_heeds_it),
		CASE(kills_after_the_grace_what_ignores_the_signal),
		CASE(lets_a_later_stop_shorten_the_grace),
		CASE(kills_members_of_the_group_that_outlive_their_leader),
		CASE(gives_members_of_the_group_their_grace),
		CASE(ends_a_program_that_stopped_itself),
		CASE(refuses_signals_that_are_none),
		CASE(passes_the_null_device_when_asked),
		CASE(gives_programs_back_the_limits_from_before),
		CASE(leaves_nothing_after_many_launches),
		CASE(leaves_nothing_after_many_failures),
		CASE(leaves_nothing_when_descriptors_run_out),
		CASE(takes_no_more_than_its_limit),
		CASE(remembers_the_newest_exited_ones),
		CASE(keeps_the_loop_alive_only_for_living_programs),
		CASE(allows_watchers_to_come_and_go_while_told),
		CASE(kills_what_lives_when_the_table_goes),
		CASE(notices_the_end_of_any_process),
	};
	return cmocka_run_group_tests(tests, find_gate, NULL);
}
