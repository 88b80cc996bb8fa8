#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include <uv.h>

#include "base/files.h"
#include "base/memory.h"
#include "commands/adoption.h"
#include "commands/build.h"
#include "commands/command.h"
#include "commands/daemon.h"
#include "commands/lease.h"
#include "commands/request_keys.h"
#include "gpu/private_folder.h"
#include "shutdown.h"
#include "options.h"
#include "process/output_files.h"
#include "protocol/clock.h"
#include "protocol/programs.h"
#include "protocol/socket_path.h"
#include "server/activation.h"

#define EXIT_USAGE        2
#define DATA_LOCK_STEP_MS 20
#define DATA_LOCK_WAIT_MS 1000

/* profd: builds struct daemon, runs the loop, takes everything apart. */
struct program {
	struct daemon daemon;
	struct shutdown shutdown;
	struct options options;
	uv_loop_t loop;
	int data_fd;      /* holds the lock on the data folder */
	int activated_fd; /* the socket that a service manager made; 0: none */
	char socket_path[SOCKET_PATH_BYTES];
	char gate_path[4096], analyzer_path[4096];
};

static struct program *program_of(struct daemon *daemon)
{
	return (struct program *)((char *)daemon - offsetof(struct program, daemon));
}

static void begin_shutdown(struct daemon *daemon, enum daemon_shutdown mode)
{
	shutdown_begin(&program_of(daemon)->shutdown, mode);
}

static void settled(struct daemon *daemon)
{
	shutdown_settled(&program_of(daemon)->shutdown);
}

static void client_gone(void *context, struct client *client)
{
	struct daemon *daemon = context;
	leases_client_gone(daemon, client);
	settled(daemon);
}

static bool make_instance_id(char id[33], struct error *err)
{
	unsigned char bytes[16];
	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) {
		return error_errno(err, "getrandom");
	}
	for (size_t i = 0; i < sizeof(bytes); i++) {
		snprintf(id + 2 * i, 3, "%02x", bytes[i]);
	}
	return true;
}

/* Events of every thread and CPU need descriptors; programs get the old limit back from their gate. */
static void raise_descriptor_limit(struct processes *processes)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
		return;
	}
	processes_set_nofile(processes, (long)limit.rlim_cur, (long)limit.rlim_max);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static bool open_server(struct program *program, struct error *err)
{
	struct daemon *daemon = &program->daemon;
	if (program->activated_fd == 0 &&
		!socket_path_find(program->options.socket, program->socket_path, err)) {
		return false;
	}
	struct server_options options = {
		.loop = &program->loop,
		.socket_path = program->socket_path,
		.activated_fd = program->activated_fd,
		.log = &daemon->log,
		.request = command_dispatch,
		.client_gone = client_gone,
		.context = daemon,
	};
	daemon->server = server_open(&options, err);
	if (daemon->server == NULL) {
		return false;
	}
	daemon->events = server_events(daemon->server);
	return true;
}

/* Opening the store ends what it finds half-made, so nobody else may be at work there: not even one with another socket. */
static bool lock_data_dir(struct program *program, struct error *err)
{
	program->data_fd = files_open_or_make_folder(program->options.data_dir, err);
	if (program->data_fd < 0) {
		return false;
	}
	/* As the socket's lock, it can be held for a moment by what a killed daemon was starting. */
	int waited_ms = 0;
	while (flock(program->data_fd, LOCK_EX | LOCK_NB) != 0 && waited_ms < DATA_LOCK_WAIT_MS) {
		uv_sleep(DATA_LOCK_STEP_MS);
		waited_ms += DATA_LOCK_STEP_MS;
	}
	if (waited_ms >= DATA_LOCK_WAIT_MS) {
		error_set(
			err, ERROR_LIMIT_EXCEEDED, "another profd works in %s", program->options.data_dir);
		return error_hint(err, "use that one, stop it, or choose another folder with --data-dir");
	}
	return true;
}

static bool open_captures(struct program *program, struct error *err)
{
	struct daemon *daemon = &program->daemon;
	daemon->store = store_open(program->options.data_dir, err);
	if (daemon->store == NULL) {
		return false;
	}
	const char *problem = NULL;
	for (size_t i = 0; (problem = store_problem(daemon->store, i)) != NULL; i++) {
		log_write(&daemon->log, LOG_WARN, "store", "%s", problem);
	}
	struct captures_options options = {
		.loop = &program->loop,
		.log = &daemon->log,
		.events = daemon->events,
		.store = daemon->store,
		.processes = daemon->processes,
		.analyzer_path = program->analyzer_path,
		.keep = program->options.keep,
	};
	daemon->captures = captures_create(&options, err);
	return daemon->captures != NULL;
}

static bool open_processes(struct program *program, struct error *err)
{
	program->daemon.processes = processes_create(&program->loop, program->gate_path, err);
	if (program->daemon.processes == NULL) {
		return false;
	}
	raise_descriptor_limit(program->daemon.processes);
	output_files_clean(program->data_fd);
	processes_set_data_dir(program->daemon.processes, program->data_fd, program->options.data_dir);
	return processes_start_guard(program->daemon.processes, err);
}

/* Nothing is answered before all of it stands: the loop does not run yet. The socket comes first, because its lock says who may work here. */
static bool open_daemon(struct program *program, struct error *err)
{
	struct daemon *daemon = &program->daemon;
	daemon->loop = &program->loop;
	daemon->log = (struct log){.level = program->options.log_level, .fd = STDERR_FILENO};
	daemon->started_ns = clock_monotonic_ns();
	daemon->data_dir = program->options.data_dir;
	daemon->idle_exit_ms = program->options.idle_exit_ms;
	daemon->gate_path = program->gate_path;
	daemon->analyzer_path = program->analyzer_path;
	daemon->begin_shutdown = begin_shutdown;
	daemon->settled = settled;
	return make_instance_id(daemon->instance_id, err) &&
		   programs_find("profd-gate", program->gate_path, sizeof(program->gate_path), err) &&
		   programs_find(
			   "profd-analyzer", program->analyzer_path, sizeof(program->analyzer_path), err) &&
		   open_server(program, err) && lock_data_dir(program, err) &&
		   open_processes(program, err) && open_captures(program, err);
}

static void close_daemon(struct program *program)
{
	struct daemon *daemon = &program->daemon;
	request_keys_finish(daemon);
	leases_finish(daemon);
	adoptions_finish(daemon);
	captures_destroy(daemon->captures);
	builds_finish(daemon);
	processes_destroy(daemon->processes);
	server_destroy(daemon->server);
	store_close(daemon->store);
	if (program->data_fd >= 0) {
		close(program->data_fd);
	}
}

static void close_loop(struct program *program)
{
	uv_run(&program->loop, UV_RUN_DEFAULT); /* what was closed gets its last turn */
	if (uv_loop_close(&program->loop) != 0) {
		log_write(&program->daemon.log, LOG_DEBUG, "main", "the loop still has handles");
	}
}

static void free_work(uv_work_t *work, int status)
{
	(void)status;
	free(work);
}

/* Worker. */
static void sweep(uv_work_t *work)
{
	const struct daemon *daemon = work->data;
	size_t count = private_folder_sweep();
	if (count > 0) {
		log_write(&daemon->log, LOG_INFO, "main",
			"%zu private folder%s of GPU traces removed that killed daemons had left", count,
			count == 1 ? "" : "s");
	}
}

static void start_sweep(struct daemon *daemon)
{
	uv_work_t *work = malloc(sizeof(*work));
	if (work != NULL) {
		work->data = daemon;
	}
	if (work != NULL && uv_queue_work(daemon->loop, work, sweep, free_work) != 0) {
		free(work);
	}
}

/* What the last daemon left unfinished. Each of them that ends is looked at, as the end of any other. */
static void recover(struct daemon *daemon)
{
	captures_recover(daemon->captures);
	struct capture *capture = NULL;
	while ((capture = captures_next(daemon->captures, capture)) != NULL) {
		if (!lease_create(daemon, capture, NULL)) {
			log_write(&daemon->log, LOG_WARN, "main", "no memory to watch the end of %s",
				capture_id(capture));
		}
	}
}

/* To whoever started profd and waits for its socket. */
static void tell_readiness(struct options *options, const struct error *err)
{
	if (options->ready_fd < 0) {
		return;
	}
	if (err == NULL) {
		dprintf(options->ready_fd, "ready\n");
	} else {
		dprintf(options->ready_fd, "error: %s\n", err->message);
	}
	close(options->ready_fd);
	options->ready_fd = -1;
}

static void complain(const struct error *err)
{
	const char *hint = err->hint[0] != '\0' ? err->hint : error_code_hint(err->code);
	if (hint[0] != '\0') {
		fprintf(stderr, "profd: %s (%s)\n", err->message, hint);
	} else {
		fprintf(stderr, "profd: %s\n", err->message);
	}
}

static void do_nothing(uv_work_t *work)
{
	(void)work;
}

/* The loop's worker threads are made by the first work: now, and without signals, which are for the main thread to take or to block. */
static void start_workers(uv_loop_t *loop)
{
	sigset_t all, before;
	uv_work_t *work = malloc(sizeof(*work));
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (work != NULL && uv_queue_work(loop, work, do_nothing, free_work) != 0) {
		free(work);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static int run(struct program *program)
{
	struct daemon *daemon = &program->daemon;
	struct error err = {0};
	start_workers(&program->loop);
	if (!open_daemon(program, &err)) {
		complain(&err); /* first: whoever waits for readiness reads the log then */
		tell_readiness(&program->options, &err);
		close_daemon(program);
		close_loop(program);
		return EXIT_FAILURE;
	}
	shutdown_init(&program->shutdown, daemon, program->options.idle_exit_ms);
	recover(daemon);
	start_sweep(daemon);
	log_write(&daemon->log, LOG_INFO, "main",
		"profd " PROFD_VERSION " listens on %s, keeps captures in %s", server_path(daemon->server),
		program->options.data_dir);
	tell_readiness(&program->options, NULL);
	uv_run(&program->loop, UV_RUN_DEFAULT);
	if (program->shutdown.left_something) {
		/* Their threads and handles still use what would be freed; the journals are made whole by the next start. */
		captures_abandon(daemon->captures);
		_exit(EXIT_SUCCESS);
	}
	shutdown_finish(&program->shutdown);
	close_daemon(program);
	close_loop(program);
	return EXIT_SUCCESS;
}

/* Whatever is opened must not become standard error, where the log goes. */
static void hold_standard_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) < 0) {
			open("/dev/null", O_RDWR); /* the lowest that is free */
		}
	}
}

int main(int argc, char **argv)
{
	struct program program = {.data_fd = -1};
	struct error err = {0};
	memory_set_up();
	hold_standard_descriptors();
	enum options_result parsed = options_parse(&program.options, argc, argv, &err);
	if (parsed == OPTIONS_SHOWN) {
		return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
	}
	if (parsed == OPTIONS_BAD) {
		complain(&err);
		tell_readiness(&program.options, &err);
		return EXIT_USAGE;
	}
	if (!activation_take(&program.activated_fd, &err)) {
		complain(&err);
		tell_readiness(&program.options, &err);
		return EXIT_FAILURE;
	}
	/* Whoever started us may ignore or block signals: with SIGCHLD ignored no exit status would be known. */
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGCHLD, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a file over RLIMIT_FSIZE is an error like a full disk */
	signal(SIGHUP, SIG_IGN);  /* the terminal it was started from may go */
	int status = uv_loop_init(&program.loop);
	if (status != 0) {
		fprintf(stderr, "profd: the event loop cannot be made: %s\n", uv_strerror(status));
		return EXIT_FAILURE;
	}
	return run(&program);
}
