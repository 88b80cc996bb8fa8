#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client/profctl.h"
#include "client/reply.h"
#include "protocol/programs.h"
#include "protocol/socket_path.h"

/* The daemon itself: daemon start, stop, run, status; and status. */

#define STOP_WAIT_MS 30000 /* the daemon takes at most about 10 s, but for drain */
#define PATH_BYTES   4096

static bool socket_path(const struct profctl *profctl, char path[SOCKET_PATH_BYTES], int *status)
{
	struct error err = {0};
	bool ok = socket_path_find(profctl->socket_given, path, &err);
	if (!ok) {
		*status = profctl_fail(profctl, &err);
	}
	return ok;
}

/* --- status --- */

static void print_status(const json_t *status)
{
	printf("profd %s, process %" JSON_INTEGER_FORMAT ", %s, up %" JSON_INTEGER_FORMAT " s\n",
		reply_string(status, "version"), reply_integer(status, "pid"),
		reply_string(status, "state"), reply_integer(status, "uptime_ms") / 1000);
	printf("%" JSON_INTEGER_FORMAT " clients, %" JSON_INTEGER_FORMAT
		   " builds, %" JSON_INTEGER_FORMAT " captures running, %.1f MiB resident\n",
		reply_integer(status, "clients"), reply_integer(status, "builds"),
		reply_integer(status, "captures"), (double)reply_integer(status, "rss_bytes") / 1048576.0);
}

/* It is told of every version, which is what somebody with two of them needs to know. */
static int show_status(const struct profctl *profctl, bool with_places)
{
	struct error err = {0};
	int status = EXIT_SUCCESS;
	char path[SOCKET_PATH_BYTES];
	if (!socket_path(profctl, path, &status)) {
		return status;
	}
	struct profclient *client = profctl_connect_any(profctl, &err);
	if (client == NULL) {
		return profctl_fail(profctl, &err);
	}
	json_t *told = profctl_call(profctl, client, "GetStatus", NULL, &status);
	if (told != NULL && profctl->json) {
		profctl_print_json(stdout, told);
	} else if (told != NULL) {
		print_status(told);
	}
	if (told != NULL && with_places && !profctl->json) {
		printf("socket %s\n", path);
	}
	json_decref(told);
	profclient_close(client);
	return status;
}

static int run_status(struct profctl *profctl, int argc, char **argv)
{
	int status = EXIT_SUCCESS;
	return profctl_operands(profctl, &status_command, argc, argv, 0, 0, &status)
			   ? show_status(profctl, false)
			   : status;
}

/* --- daemon start --- */

/* It was there already, and does not stay as it was asked for. */
static void warn_of_idle_exit(struct profclient *client, bool started)
{
	struct error err = {0};
	json_t *status = started ? NULL : profctl_try(client, "GetStatus", NULL, &err);
	json_int_t idle_ms = reply_integer(status, "idle_exit_ms");
	if (idle_ms > 0) {
		printf("it ends by itself after %" JSON_INTEGER_FORMAT
			   " idle seconds: for one that stays, profctl daemon stop, then start\n",
			idle_ms / 1000);
	}
	json_decref(status);
}

/* A log that only a start by a client writes; elsewhere standard error is where the daemon was started from. */
static void print_place(
	const struct profctl *profctl, struct profclient *client, const char *path, bool started)
{
	char log[SOCKET_PATH_BYTES + 8];
	struct stat info;
	json_int_t pid = reply_integer(profclient_hello(client), "pid");
	snprintf(log, sizeof(log), "%s.log", path);
	bool has_log = lstat(log, &info) == 0;
	if (profctl->json) {
		json_t *place =
			json_pack("{s:I, s:s, s:b}", "pid", pid, "socket", path, "started", started);
		if (has_log) {
			json_object_set_new(place, "log", json_string(log));
		}
		profctl_print_json(stdout, place);
		json_decref(place);
		return;
	}
	printf("profd (process %" JSON_INTEGER_FORMAT ") %s on %s\n", pid,
		started ? "listens" : "listened already", path);
	if (has_log) {
		printf("log %s\n", log);
	}
	warn_of_idle_exit(client, started);
}

static int start(struct profctl *profctl)
{
	struct error err = {0};
	int status = EXIT_SUCCESS;
	char path[SOCKET_PATH_BYTES];
	if (!socket_path(profctl, path, &status)) {
		return status;
	}
	struct profctl quiet = *profctl;
	quiet.no_start = false; /* the command says it louder */
	struct profclient *client = profctl_try_connect(&quiet, false, &err);
	bool started = client == NULL && strcmp(err.detail, "not_running") == 0;
	if (started) {
		quiet.idle_exit_s = -1;
		client = profctl_connect(&quiet, true, &status);
	} else if (client == NULL) {
		status = profctl_fail(profctl, &err);
	}
	if (client != NULL) {
		print_place(profctl, client, path, started);
	}
	profclient_close(client);
	return status;
}

/* --- daemon run --- */

/* Becomes the daemon, in the foreground, with the arguments behind `run`. */
static int run_here(struct profctl *profctl, char **arguments, int count)
{
	struct error err = {0};
	char path[SOCKET_PATH_BYTES], program[PATH_BYTES];
	if (!socket_path_find(profctl->socket_given, path, &err) ||
		!programs_find("profd", program, sizeof(program), &err)) {
		return profctl_fail(profctl, &err);
	}
	char **argv = calloc((size_t)count + 4, sizeof(*argv));
	if (argv == NULL) {
		error_set(&err, ERROR_LIMIT_EXCEEDED, "out of memory");
		return profctl_fail(profctl, &err);
	}
	char socket_option[] = "--socket", name[] = "profd";
	argv[0] = name;
	argv[1] = socket_option;
	argv[2] = path;
	memcpy(argv + 3, arguments, (size_t)count * sizeof(*argv));
	execv(program, argv);
	error_errno(&err, "start %s", program);
	free(argv);
	return profctl_fail(profctl, &err);
}

/* --- daemon stop --- */

static int still_runs(const struct profctl *profctl, json_int_t pid, int timeout_ms)
{
	struct error err = {0};
	error_set(&err, ERROR_TIMEOUT,
		"profd (process %" JSON_INTEGER_FORMAT ") has not ended within %d s", pid,
		timeout_ms / 1000);
	error_hint(&err, "profctl daemon stop --now kills its programs and ends it at once");
	return profctl_fail(profctl, &err);
}

/* Until the daemon has closed the connection, which it does at its end, and its process is gone: then another one can start. pidfd -1: it
 * was gone before. */
static int wait_end(const struct profctl *profctl, struct profclient *client, json_int_t pid,
	int pidfd, int timeout_ms)
{
	enum profclient_got got = PROFCLIENT_GOT;
	while (got == PROFCLIENT_GOT) {
		json_t *event = NULL;
		got = profctl_event(client, timeout_ms, &event, NULL);
		json_decref(event);
	}
	struct pollfd poll_fd = {.fd = pidfd, .events = POLLIN};
	if (got == PROFCLIENT_NOTHING || (pidfd >= 0 && poll(&poll_fd, 1, timeout_ms) == 0)) {
		return still_runs(profctl, pid, timeout_ms);
	}
	if (profctl->json) {
		printf("{\"pid\":%" JSON_INTEGER_FORMAT ",\"stopped\":true}\n", pid);
	} else {
		printf("profd (process %" JSON_INTEGER_FORMAT ") has ended\n", pid);
	}
	return EXIT_SUCCESS;
}

static int stop(struct profctl *profctl, const char *mode)
{
	struct error err = {0};
	int status = EXIT_SUCCESS;
	struct profclient *client = profctl_connect_any(profctl, &err);
	if (client == NULL) {
		return profctl_fail(profctl, &err);
	}
	json_int_t pid = reply_integer(profclient_hello(client), "pid");
	int pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
	json_t *result =
		profctl_call(profctl, client, "Shutdown", json_pack("{s:s}", "mode", mode), &status);
	if (result != NULL) {
		bool waits_long = strcmp(mode, "drain") == 0;
		status = wait_end(profctl, client, pid, pidfd, waits_long ? -1 : STOP_WAIT_MS);
	}
	if (pidfd >= 0) {
		close(pidfd);
	}
	json_decref(result);
	profclient_close(client);
	return status;
}

/* --- the command --- */

enum daemon_option { DAEMON_NOW = PROFCTL_OWN, DAEMON_DRAIN };

static const struct option daemon_options[] = {{"now", no_argument, NULL, DAEMON_NOW},
	{"drain", no_argument, NULL, DAEMON_DRAIN}, PROFCTL_OPTIONS};

/* The options of stop; false: *status. */
static bool take_mode(
	struct profctl *profctl, int argc, char **argv, const char **mode, int *status)
{
	int option = 0;
	bool is_twice = false;
	optind = 0; /* from the beginning again (glibc) */
	while ((option = profctl_option(profctl, &daemon_command, argc, argv)) != -1) {
		if (option != DAEMON_NOW && option != DAEMON_DRAIN) {
			*status = profctl_end(option);
			return false;
		}
		is_twice = *mode != NULL;
		*mode = option == DAEMON_NOW ? "now" : "drain";
	}
	if (optind != argc || is_twice) {
		*status = profctl_usage(&daemon_command);
	}
	return optind == argc && !is_twice;
}

static int run_daemon(struct profctl *profctl, int argc, char **argv)
{
	const char *mode = NULL;
	int status = EXIT_SUCCESS;
	int option = profctl_option(profctl, &daemon_command, argc, argv);
	if (option != -1 || optind == argc) {
		return option != -1 && option < PROFCTL_OWN ? profctl_end(option)
													: profctl_usage(&daemon_command);
	}
	int first = optind;
	const char *verb = argv[first];
	if (strcmp(verb, "run") == 0) {
		return run_here(profctl, argv + first + 1, argc - first - 1);
	}
	argv[first] = argv[0];
	if (!take_mode(profctl, argc - first, argv + first, &mode, &status)) {
		return status;
	}
	if (strcmp(verb, "stop") == 0) {
		return stop(profctl, mode != NULL ? mode : "stop");
	}
	if (strcmp(verb, "start") == 0 && mode == NULL) {
		return start(profctl);
	}
	if (strcmp(verb, "status") == 0 && mode == NULL) {
		return show_status(profctl, true);
	}
	return profctl_usage(&daemon_command);
}

const struct profctl_command daemon_command = {
	.name = "daemon",
	.synopsis = "start | stop [--now|--drain] | run [PROFD-OPTION …] | status",
	.about = "start, stop or ask the daemon, or run it here",
	.help = "  start         in the background, until it is stopped; prints where it listens\n"
			"  stop          end its captures and programs within 10 seconds, and it\n"
			"  stop --drain  let captures end first, however long they take\n"
			"  stop --now    kill its programs at once\n"
			"  run           in the foreground, with profd's own options: profd(1)\n"
			"  status        how it does, and where it listens\n",
	.short_options = "+",
	.options = daemon_options,
	.run = run_daemon,
};

const struct profctl_command status_command = {
	.name = "status",
	.synopsis = "",
	.about = "how the daemon does; starts none",
	.run = run_status,
};
