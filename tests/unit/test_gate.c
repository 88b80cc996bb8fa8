#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "protocol/gate.h"
#include "protocol/programs.h"

#define WAIT_MS 10000

static char gate_path[PATH_MAX];
static char folder[PATH_MAX]; /* for files of a case, and its working directory */

static const char *const plain_env[] = {"PATH=/usr/bin:/bin", "LC_ALL=C", NULL};

/* A gate whose program writes into a pipe. */
struct run {
	struct gate gate;
	struct error err;
	enum gate_state state; /* the last one */
	int out;               /* the pipe's reading end */
	char text[8192];       /* all that was written */
	int status;            /* of waitpid */
};

static struct gate_options options_for(const char *const *argv)
{
	return (struct gate_options){
		.gate_path = gate_path,
		.argv = argv,
		.env = plain_env,
		.cwd = folder,
		.umask_bits = -1,
		.nofile_soft = -1,
		.nofile_hard = -1,
		.stdio = {-1, -1, -1},
	};
}

static void begin(struct run *run, struct gate_options options)
{
	int ends[2];
	memset(run, 0, sizeof(*run));
	run->gate.fd = -1;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	options.stdio[1] = options.stdio[2] = ends[1];
	bool started = gate_start(&run->gate, &options, &run->err);
	close(ends[1]);
	run->out = ends[0];
	assert_true(started);
	run->state = gate_wait(&run->gate, false, WAIT_MS, &run->err);
}

static void go(struct run *run)
{
	assert_int_equal(run->state, GATE_IS_READY);
	assert_true(gate_go(&run->gate, &run->err));
	run->state = gate_wait(&run->gate, true, WAIT_MS, &run->err);
}

static void finish(struct run *run)
{
	gate_close(&run->gate);
	size_t used = 0;
	ssize_t count;
	while ((count = read(run->out, run->text + used, sizeof(run->text) - 1 - used)) > 0) {
		used += (size_t)count;
	}
	run->text[used] = '\0';
	close(run->out);
	assert_int_equal(waitpid(run->gate.pid, &run->status, 0), run->gate.pid);
}

/* Runs it to its end, which must be a good one. */
static void run_all(struct run *run, struct gate_options options)
{
	begin(run, options);
	go(run);
	assert_int_equal(run->state, GATE_RUNNING);
	finish(run);
	assert_true(WIFEXITED(run->status));
	assert_int_equal(WEXITSTATUS(run->status), 0);
}

static size_t open_descriptors(void)
{
	size_t count = 0;
	for (int fd = 0; fd < 1024; fd++) {
		count += fcntl(fd, F_GETFD) >= 0;
	}
	return count;
}

static void write_file(const char *name, const char *text, mode_t mode)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void becomes_the_program_under_the_same_pid(void **state)
{
	(void)state;
	const char *argv[] = {"sh", "-c", "echo $$ $1", "name", "a b", NULL};
	struct run run;
	run_all(&run, options_for(argv));
	char expected[64];
	snprintf(expected, sizeof(expected), "%d a b\n", (int)run.gate.pid);
	assert_string_equal(run.text, expected);
}

static void runs_nothing_of_the_program_before_go(void **state)
{
	(void)state;
	const char *argv[] = {"sh", "-c", "echo ran; sleep 30", NULL};
	char link[64], exe[PATH_MAX], real_gate[PATH_MAX];
	struct run run;
	begin(&run, options_for(argv));
	snprintf(link, sizeof(link), "/proc/%d/exe", (int)run.gate.pid);
	assert_int_equal(run.state, GATE_IS_READY);
	assert_non_null(realpath(link, exe));
	assert_non_null(realpath(gate_path, real_gate));
	assert_string_equal(exe, real_gate);
	struct pollfd output = {.fd = run.out, .events = POLLIN};
	assert_int_equal(poll(&output, 1, 50), 0);
	go(&run);
	assert_int_equal(run.state, GATE_RUNNING);
	assert_non_null(realpath(link, exe));
	assert_string_not_equal(exe, real_gate);
	assert_int_equal(poll(&output, 1, WAIT_MS), 1);
	kill(run.gate.pid, SIGKILL);
	close(run.out);
	gate_close(&run.gate);
	waitpid(run.gate.pid, NULL, 0);
}

static void exits_with_125_when_its_owner_goes_before_go(void **state)
{
	(void)state;
	const char *argv[] = {"sh", "-c", "echo ran", NULL};
	struct run run;
	begin(&run, options_for(argv));
	assert_int_equal(run.state, GATE_IS_READY);
	finish(&run);
	assert_int_equal(WEXITSTATUS(run.status), GATE_EXIT_NO_GO);
	assert_string_equal(run.text, "");
}

static void exits_with_125_at_any_other_word_than_go(void **state)
{
	(void)state;
	const char *argv[] = {"sh", "-c", "echo ran", NULL};
	struct run run;
	begin(&run, options_for(argv));
	assert_int_equal(send(run.gate.fd, "gone\n", 5, MSG_NOSIGNAL), 5);
	finish(&run);
	assert_int_equal(WEXITSTATUS(run.status), GATE_EXIT_NO_GO);
	assert_string_equal(run.text, "");
}

struct refusal {
	const char *program;
	const char *cwd; /* NULL: the folder */
	bool before_ready;
	const char *detail;
	const char *mentions;
	int exit_code;
};

static void says_why_a_program_cannot_run(void **state)
{
	(void)state;
	write_file("plain", "#!/bin/sh\n", 0644);
	write_file("nothing", "no program\n", 0755);
	write_file("empty", "", 0755);
	write_file("orphan", "#!/no/such/interpreter -x\n", 0755);
	write_file("windows", "#!/bin/sh\r\necho\r\n", 0755);
	mkdir("sub", 0755);
	const struct refusal refusals[] = {
		{"no-such-program", NULL, true, "not_found", "PATH /usr/bin:/bin", 127},
		{"no-such-program", NULL, true, "not_found", "no-such-program", 127},
		{"./no-such-program", NULL, true, "not_found", "./no-such-program", 127},
		{"./plain/below", NULL, true, "not_found", "./plain/below", 127},
		{"./plain", NULL, true, "not_executable", "chmod +x", 126},
		{"/dev/null", NULL, true, "not_executable", "regular file", 126},
		{"./sub", NULL, true, "is_directory", "./sub is a directory", 126},
		{"./nothing", NULL, false, "not_executable", "#!", 126},
		{"./empty", NULL, false, "not_executable", "./empty", 126},
		{"./orphan", NULL, false, "no_interpreter", "/no/such/interpreter", 126},
		{"./windows", NULL, false, "no_interpreter", "carriage return", 126},
		{"sh", "/no/such/folder", true, "cwd", "/no/such/folder does not exist", 126},
		{"sh", "/dev/null", true, "cwd", "/dev/null is not a directory", 126},
	};
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		const struct refusal *refusal = &refusals[i];
		const char *argv[] = {refusal->program, NULL};
		struct gate_options options = options_for(argv);
		options.cwd = refusal->cwd != NULL ? refusal->cwd : folder;
		struct run run;
		begin(&run, options);
		assert_int_equal(run.state, refusal->before_ready ? GATE_FAILED : GATE_IS_READY);
		if (run.state == GATE_IS_READY) {
			go(&run);
		}
		assert_int_equal(run.state, GATE_FAILED);
		finish(&run);
		assert_int_equal(run.err.code, ERROR_LAUNCH_FAILED);
		assert_string_equal(run.err.detail, refusal->detail);
		assert_non_null(strstr(run.err.message, refusal->mentions));
		assert_true(WIFEXITED(run.status));
		assert_int_equal(WEXITSTATUS(run.status), refusal->exit_code);
		assert_string_equal(run.text, "");
	}
}

static void says_that_the_program_went_while_it_waited(void **state)
{
	(void)state;
	write_file("shortlived", "#!/bin/sh\n", 0755);
	const char *argv[] = {"./shortlived", NULL};
	struct run run;
	begin(&run, options_for(argv));
	unlink("shortlived");
	go(&run);
	assert_int_equal(run.state, GATE_FAILED);
	assert_string_equal(run.err.detail, "not_found");
	finish(&run);
	assert_int_equal(WEXITSTATUS(run.status), GATE_EXIT_NOT_FOUND);
}

static void names_the_missing_loader_of_a_binary(void **state)
{
	(void)state;
	/* A copy of a dynamic program, with another name of the same length in PT_INTERP. */
	static char bytes[4 << 20];
	int fd = open("/bin/ls", O_RDONLY | O_CLOEXEC);
	ssize_t len = read(fd, bytes, sizeof(bytes));
	close(fd);
	char *interpreter = len > 0 ? memmem(bytes, (size_t)len, "/ld-linux", 9) : NULL;
	if (interpreter == NULL) {
		skip();
	}
	memcpy(interpreter, "/no-linux", 9);
	fd = open("foreign", O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	assert_int_equal(write(fd, bytes, (size_t)len), len);
	close(fd);
	const char *argv[] = {"./foreign", NULL};
	struct run run;
	begin(&run, options_for(argv));
	go(&run);
	assert_int_equal(run.state, GATE_FAILED);
	assert_string_equal(run.err.detail, "no_interpreter");
	assert_non_null(strstr(run.err.message, "/no-linux"));
	finish(&run);
	assert_int_equal(WEXITSTATUS(run.status), GATE_EXIT_CANNOT_RUN);
}

static void searches_the_path_of_the_target(void **state)
{
	(void)state;
	mkdir("first", 0755);
	mkdir("first/tool", 0755); /* a directory of that name is passed over */
	mkdir("second", 0755);
	write_file("second/tool", "#!/bin/sh\necho second\n", 0644); /* and what may not run */
	mkdir("third", 0755);
	write_file("third/tool", "#!/bin/sh\necho third\n", 0755);
	write_file("tool", "#!/bin/sh\necho here\n", 0755);
	static const char *const searched[] = {"PATH=first:second:third", NULL};
	static const char *const empty_first[] = {"PATH=:third", NULL};
	static const char *const empty_last[] = {"PATH=first:", NULL};
	static const char *const none[] = {"HOME=/", NULL};
	static const char *const refused[] = {"PATH=second", NULL};
	const char *tool[] = {"tool", NULL};
	const char *echo[] = {"sh", "-c", "echo found", NULL};
	struct run run;
	struct gate_options options = options_for(tool);
	options.env = searched;
	run_all(&run, options);
	assert_string_equal(run.text, "third\n");
	options.env = empty_first;
	run_all(&run, options);
	assert_string_equal(run.text, "here\n");
	options.env = empty_last;
	run_all(&run, options);
	assert_string_equal(run.text, "here\n");
	options.env = refused;
	begin(&run, options);
	assert_int_equal(run.state, GATE_FAILED);
	assert_string_equal(run.err.detail, "not_executable");
	finish(&run);
	options.argv = echo;
	options.env = none;
	run_all(&run, options);
	assert_string_equal(run.text, "found\n");
}

static uint64_t status_mask(const char *text, const char *name)
{
	const char *line = strstr(text, name);
	assert_non_null(line);
	return strtoull(line + strlen(name), NULL, 16);
}

static void gives_back_default_signals(void **state)
{
	(void)state;
	/* The kernel's own record of the program, cat. 32 and 33 are those that libc hides. */
	unsigned long ignore[8] = {1}; /* SIG_IGN */
	unsigned long defaults[8] = {0};
	static const int signals[] = {SIGPIPE, SIGINT, SIGUSR1, 33, 40, 64};
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		assert_int_equal(syscall(SYS_rt_sigaction, signals[i], ignore, NULL, 8), 0);
	}
	sigset_t blocked;
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR2);
	sigaddset(&blocked, SIGRTMAX);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	const char *argv[] = {"cat", "/proc/self/status", NULL};
	struct run run;
	run_all(&run, options_for(argv));
	sigprocmask(SIG_UNBLOCK, &blocked, NULL);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		syscall(SYS_rt_sigaction, signals[i], defaults, NULL, 8);
	}
	assert_int_equal(status_mask(run.text, "SigIgn:"), 0);
	assert_int_equal(status_mask(run.text, "SigBlk:"), 0);
	assert_int_equal(status_mask(run.text, "SigCgt:"), 0);
}

static void passes_no_descriptor_but_the_standard_ones(void **state)
{
	(void)state;
	int inherited[] = {dup2(1, 5), dup2(1, 77), dup2(1, 500)}; /* not close-on-exec */
	/* ls sees its own descriptor of the folder as 3. */
	const char *argv[] = {"ls", "/proc/self/fd", NULL};
	struct run run;
	run_all(&run, options_for(argv));
	for (size_t i = 0; i < 3; i++) {
		close(inherited[i]);
	}
	assert_string_equal(run.text, "0\n1\n2\n3\n");
}

static void restores_umask_limits_group_and_directory(void **state)
{
	(void)state;
	const char *argv[] = {
		"sh", "-c", "umask; ulimit -Sn; ulimit -Hn; pwd; cut -d' ' -f5 /proc/$$/stat", NULL};
	struct gate_options options = options_for(argv);
	options.umask_bits = 0027;
	options.nofile_soft = 128;
	options.nofile_hard = 256;
	options.new_group = true;
	options.profiler_pid = getpid();
	struct run run;
	run_all(&run, options);
	char expected[PATH_MAX + 64];
	snprintf(expected, sizeof(expected), "0027\n128\n256\n%s\n%d\n", folder, (int)run.gate.pid);
	assert_string_equal(run.text, expected);
}

static void stays_in_the_group_of_its_starter_when_not_told_otherwise(void **state)
{
	(void)state;
	const char *argv[] = {"true", NULL};
	struct run run;
	begin(&run, options_for(argv));
	assert_int_equal(getpgid(run.gate.pid), getpgrp());
	finish(&run);
}

static void crosses_standard_streams_as_asked(void **state)
{
	(void)state;
	const char *argv[] = {"sh", "-c", "echo out; echo err >&2", NULL};
	int first[2], second[2];
	assert_int_equal(pipe2(first, O_CLOEXEC), 0);
	assert_int_equal(pipe2(second, O_CLOEXEC), 0);
	/* The sources stand on each other's targets. */
	int saved[2] = {fcntl(1, F_DUPFD_CLOEXEC, 10), fcntl(2, F_DUPFD_CLOEXEC, 10)};
	fflush(stdout);
	dup2(first[1], 1);
	dup2(second[1], 2);
	struct gate_options options = options_for(argv);
	options.stdio[1] = 2;
	options.stdio[2] = 1;
	struct gate gate = {.fd = -1};
	struct error err = {0};
	bool started = gate_start(&gate, &options, &err);
	dup2(saved[0], 1);
	dup2(saved[1], 2);
	assert_true(started);
	assert_int_equal(gate_wait(&gate, false, WAIT_MS, &err), GATE_IS_READY);
	assert_true(gate_go(&gate, &err));
	waitpid(gate.pid, NULL, 0);
	gate_close(&gate);
	char text[2][8] = {"", ""};
	assert_int_equal(read(first[0], text[0], 7), 4);
	assert_int_equal(read(second[0], text[1], 7), 4);
	assert_string_equal(text[0], "err\n");
	assert_string_equal(text[1], "out\n");
	int all[] = {first[0], first[1], second[0], second[1], saved[0], saved[1]};
	for (size_t i = 0; i < 6; i++) {
		close(all[i]);
	}
}

static void works_for_an_owner_without_standard_input(void **state)
{
	(void)state;
	const char *argv[] = {"sh", "-c", "echo fine", NULL};
	int saved = fcntl(0, F_DUPFD_CLOEXEC, 10);
	close(0);
	struct run run;
	run_all(&run, options_for(argv));
	dup2(saved, 0);
	close(saved);
	assert_string_equal(run.text, "fine\n");
}

/* The middle process starts a gate, tells its pid and goes. */
static _Noreturn void be_owner_that_dies(int told, bool after_go)
{
	const char *argv[] = {"sleep", "60", NULL};
	struct gate_options options = options_for(argv);
	options.die_with_parent = true;
	struct gate gate = {.fd = -1};
	struct error err;
	if (!gate_start(&gate, &options, &err) ||
		gate_wait(&gate, false, WAIT_MS, &err) != GATE_IS_READY) {
		_exit(1);
	}
	if (after_go &&
		(!gate_go(&gate, &err) || gate_wait(&gate, true, WAIT_MS, &err) != GATE_RUNNING)) {
		_exit(2);
	}
	_exit(write(told, &gate.pid, sizeof(gate.pid)) == sizeof(gate.pid) ? 0 : 3);
}

static int status_after_owner_died(bool after_go)
{
	int told[2];
	assert_int_equal(pipe2(told, O_CLOEXEC), 0);
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	pid_t owner = fork();
	assert_true(owner >= 0);
	if (owner == 0) {
		be_owner_that_dies(told[1], after_go);
	}
	pid_t orphan = 0;
	int status;
	assert_int_equal(waitpid(owner, &status, 0), owner);
	assert_int_equal(status, 0);
	assert_int_equal(read(told[0], &orphan, sizeof(orphan)), sizeof(orphan));
	assert_int_equal(waitpid(orphan, &status, 0), orphan);
	prctl(PR_SET_CHILD_SUBREAPER, 0);
	close(told[0]);
	close(told[1]);
	return status;
}

static void dies_with_its_parent(void **state)
{
	(void)state;
	assert_int_equal(status_after_owner_died(true), SIGKILL);
	int status = status_after_owner_died(false); /* by the signal or by the end of the socket */
	assert_true(status == SIGKILL || status == GATE_EXIT_NO_GO << 8);
}

static void reports_a_gate_that_was_killed(void **state)
{
	(void)state;
	const char *argv[] = {"true", NULL};
	struct run run;
	begin(&run, options_for(argv));
	assert_int_equal(run.state, GATE_IS_READY);
	assert_int_equal(gate_wait(&run.gate, false, 0, &run.err), GATE_WAITING);
	kill(run.gate.pid, SIGKILL);
	assert_int_equal(gate_wait(&run.gate, false, WAIT_MS, &run.err), GATE_FAILED);
	assert_string_equal(run.err.detail, "gate_died");
	assert_false(gate_go(&run.gate, &run.err));
	assert_int_equal(run.err.code, ERROR_LAUNCH_FAILED);
	finish(&run);
	assert_int_equal(WTERMSIG(run.status), SIGKILL);
}

static void takes_a_gate_killed_before_it_read_go_for_dead(void **state)
{
	(void)state;
	const char *argv[] = {"true", NULL};
	struct run run;
	begin(&run, options_for(argv));
	kill(run.gate.pid, SIGSTOP);
	siginfo_t info;
	waitid(P_PID, (id_t)run.gate.pid, &info, WSTOPPED | WNOWAIT);
	assert_true(gate_go(&run.gate, &run.err));
	kill(run.gate.pid, SIGKILL);
	assert_int_equal(gate_wait(&run.gate, true, WAIT_MS, &run.err), GATE_FAILED);
	assert_string_equal(run.err.detail, "gate_died");
	finish(&run);
}

static void refuses_a_gate_that_cannot_be_started(void **state)
{
	(void)state;
	const char *argv[] = {"true", NULL};
	struct gate_options options = options_for(argv);
	struct gate gate = {.fd = -1};
	struct error err = {0};
	size_t before = open_descriptors();
	options.gate_path = "/no/such/profd-gate";
	assert_false(gate_start(&gate, &options, &err));
	assert_int_equal(err.code, ERROR_LAUNCH_FAILED);
	assert_non_null(strstr(err.message, "/no/such/profd-gate"));
	static char long_text[200 * 1024]; /* the kernel takes 128 KiB in one argument */
	memset(long_text, 'x', sizeof(long_text) - 1);
	const char *long_argv[] = {"true", long_text, NULL};
	options = options_for(long_argv);
	assert_false(gate_start(&gate, &options, &err));
	assert_int_equal(err.code, ERROR_LAUNCH_FAILED);
	assert_string_equal(err.detail, "e2big");
	assert_int_equal(open_descriptors(), before);
}

static void refuses_a_shortage_of_descriptors_without_leaking(void **state)
{
	(void)state;
	const char *argv[] = {"true", NULL};
	struct gate_options options = options_for(argv);
	options.stdio[0] = options.stdio[1] = options.stdio[2] = 1;
	size_t before = open_descriptors();
	struct rlimit old;
	getrlimit(RLIMIT_NOFILE, &old);
	int refused = 0;
	int probe = dup(1); /* the lowest free one */
	close(probe);
	for (int more = 0; more < 8; more++) {
		struct rlimit tight = {(rlim_t)(probe + more), old.rlim_max};
		struct gate gate = {.fd = -1};
		struct error err = {0};
		setrlimit(RLIMIT_NOFILE, &tight);
		bool started = gate_start(&gate, &options, &err);
		setrlimit(RLIMIT_NOFILE, &old);
		if (started) {
			gate_close(&gate);
			waitpid(gate.pid, NULL, 0);
		} else {
			refused++;
			assert_int_not_equal(err.code, ERROR_NONE);
		}
		assert_int_equal(open_descriptors(), before);
	}
	assert_in_range(refused, 2, 7);
}

struct saying {
	const char *text;
	size_t len; /* 0: strlen */
	enum gate_state state;
	const char *detail;
};

/* The owner's end of a gate that says anything. */
static int fake_gate(struct gate *gate)
{
	int ends[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	memset(gate, 0, sizeof(*gate));
	gate->fd = ends[0];
	return ends[1];
}

static void takes_nothing_but_the_words_of_the_contract(void **state)
{
	(void)state;
	static char endless[GATE_LINE_BYTES + 1];
	memset(endless, 'x', sizeof(endless));
	const struct saying sayings[] = {
		{"ready 1\n", 0, GATE_IS_READY, ""},
		{"ready 2\n", 0, GATE_FAILED, "garbled"},
		{"ready 1", 0, GATE_FAILED, "gate_died"},
		{"ready 1 \n", 0, GATE_FAILED, "garbled"},
		{"ready 1\0\n", 9, GATE_FAILED, "garbled"},
		{"\n", 0, GATE_FAILED, "garbled"},
		{"failed \n", 0, GATE_FAILED, "garbled"},
		{"failed program\n", 0, GATE_FAILED, "garbled"},
		{"failed program 2\n", 0, GATE_FAILED, "garbled"},
		{"failed program 2 \n", 0, GATE_FAILED, "garbled"},
		{"failed program x why\n", 0, GATE_FAILED, "garbled"},
		{"failed program -2 why\n", 0, GATE_FAILED, "garbled"},
		{"failed program 99999999999999999999 why\n", 0, GATE_FAILED, "garbled"},
		{"failed nonsense 2 why\n", 0, GATE_FAILED, "garbled"},
		{"failed program 2 why\n", 0, GATE_FAILED, "not_found"},
		{"failed exec 2 why\n", 0, GATE_FAILED, "no_interpreter"},
		{"failed exec 7 why %s%n\n", 0, GATE_FAILED, "exec"},
		{"failed nofile 1 why\n", 0, GATE_FAILED, "nofile"},
		{endless, sizeof(endless), GATE_FAILED, "garbled"},
		{"", 0, GATE_FAILED, "gate_died"},
	};
	for (size_t i = 0; i < sizeof(sayings) / sizeof(sayings[0]); i++) {
		const struct saying *saying = &sayings[i];
		size_t len = saying->len > 0 ? saying->len : strlen(saying->text);
		struct gate gate;
		struct error err = {0};
		int other = fake_gate(&gate);
		assert_int_equal(send(other, saying->text, len, 0), (ssize_t)len);
		close(other);
		assert_int_equal(gate_read(&gate, false, &err), saying->state);
		assert_string_equal(err.detail, saying->detail);
		gate_close(&gate);
		gate_close(&gate);
		assert_int_equal(gate.fd, -1);
	}
}

static void puts_words_together_from_single_bytes(void **state)
{
	(void)state;
	const char *words = "ready 1\nfailed exec 8 no known format\n";
	struct gate gate;
	struct error err = {0};
	int other = fake_gate(&gate);
	for (size_t i = 0; words[i] != '\0'; i++) {
		assert_int_equal(send(other, words + i, 1, 0), 1);
		enum gate_state expected = words[i] != '\n'      ? GATE_WAITING
								   : words[i + 1] == 'f' ? GATE_IS_READY
														 : GATE_FAILED;
		assert_int_equal(gate_read(&gate, true, &err), expected);
	}
	assert_string_equal(err.message, "no known format");
	close(other);
	gate_close(&gate);
}

static void refuses_arguments_that_are_not_the_contract(void **state)
{
	(void)state;
	static const char *const lines[][6] = {
		{"profd-gate", "--fd", "3", NULL},
		{"profd-gate", "--fd", "3", "--", NULL},
		{"profd-gate", "--fd", "3", "--", "", NULL},
		{"profd-gate", "--fd", "3", "--what", "--", "true"},
		{"profd-gate", "--fd", "3", "--cwd", NULL},
		{"profd-gate", "--fd", "3", "--umask=9", "--", "true"},
	};
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		char *argv[8] = {0};
		memcpy(argv, lines[i], sizeof(lines[i]));
		struct gate gate;
		struct error err = {0};
		int other = fake_gate(&gate);
		pid_t pid = fork();
		if (pid == 0) {
			dup2(other, 3);
			fcntl(3, F_SETFD, 0);
			execv(gate_path, argv);
			_exit(99);
		}
		close(other);
		assert_int_equal(gate_wait(&gate, false, WAIT_MS, &err), GATE_FAILED);
		assert_string_equal(err.detail, "arguments");
		int status;
		waitpid(pid, &status, 0);
		assert_int_equal(WEXITSTATUS(status), GATE_EXIT_CANNOT_RUN);
		gate_close(&gate);
	}
}

static void leaves_no_descriptor_and_no_child_behind(void **state)
{
	(void)state;
	const char *good[] = {"true", NULL};
	const char *bad[] = {"no-such-program", NULL};
	size_t before = open_descriptors();
	for (int i = 0; i < 20; i++) {
		struct run run;
		run_all(&run, options_for(good));
		begin(&run, options_for(bad));
		finish(&run);
	}
	assert_int_equal(open_descriptors(), before);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void finds_programs_by_variable_and_in_the_build_folder(void **state)
{
	(void)state;
	char path[PATH_MAX];
	struct error err = {0};
	assert_int_equal(setenv("PROFD_GATE", "/bin/sh", 1), 0);
	assert_true(programs_find("profd-gate", path, sizeof(path), &err));
	assert_string_equal(path, "/bin/sh");
	assert_int_equal(setenv("PROFD_GATE", "/no/such/gate", 1), 0);
	assert_true(programs_find("profd-gate", path, sizeof(path), &err));
	assert_string_equal(path, gate_path);
	unsetenv("PROFD_GATE");
	strcpy(path, "untouched");
	assert_false(programs_find("profd-gate", path, 10, &err));
	assert_string_equal(path, "untouched");
	assert_string_equal(err.detail, "program_missing");
	assert_non_null(strstr(err.message, "daemon/profd-gate"));
	assert_non_null(strstr(err.hint, "PROFD_GATE"));
	assert_false(programs_find("no-program", path, sizeof(path), &err));
}

static int enter_folder(void **state)
{
	(void)state;
	struct error err;
	strcpy(folder, "/tmp/profd-test-gate-XXXXXX");
	/* The system's own place of what mkdtemp makes may be a link. */
	if (!programs_find("profd-gate", gate_path, sizeof(gate_path), &err)) {
		fprintf(stderr, "%s\n", err.message);
		return -1;
	}
	return mkdtemp(folder) != NULL && chdir(folder) == 0 ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	char command[PATH_MAX + 16];
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(becomes_the_program_under_the_same_pid),
		cmocka_unit_test(runs_nothing_of_the_program_before_go),
		cmocka_unit_test(exits_with_125_when_its_owner_goes_before_go),
		cmocka_unit_test(exits_with_125_at_any_other_word_than_go),
		cmocka_unit_test(says_why_a_program_cannot_run),
		cmocka_unit_test(says_that_the_program_went_while_it_waited),
		cmocka_unit_test(names_the_missing_loader_of_a_binary),
		cmocka_unit_test(searches_the_path_of_the_target),
		cmocka_unit_test(gives_back_default_signals),
		cmocka_unit_test(passes_no_descriptor_but_the_standard_ones),
		cmocka_unit_test(restores_umask_limits_group_and_directory),
		cmocka_unit_test(stays_in_the_group_of_its_starter_when_not_told_otherwise),
		cmocka_unit_test(crosses_standard_streams_as_asked),
		cmocka_unit_test(works_for_an_owner_without_standard_input),
		cmocka_unit_test(dies_with_its_parent),
		cmocka_unit_test(reports_a_gate_that_was_killed),
		cmocka_unit_test(takes_a_gate_killed_before_it_read_go_for_dead),
		cmocka_unit_test(refuses_a_gate_that_cannot_be_started),
		cmocka_unit_test(refuses_a_shortage_of_descriptors_without_leaking),
		cmocka_unit_test(takes_nothing_but_the_words_of_the_contract),
		cmocka_unit_test(puts_words_together_from_single_bytes),
		cmocka_unit_test(refuses_arguments_that_are_not_the_contract),
		cmocka_unit_test(leaves_no_descriptor_and_no_child_behind),
		cmocka_unit_test(finds_programs_by_variable_and_in_the_build_folder),
	};
	return cmocka_run_group_tests(tests, enter_folder, remove_folder);
}
