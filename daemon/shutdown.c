#include "shutdown.h"

#include <pthread.h>
#include <signal.h>

#include "protocol/names.h"

#define GRACE_MS     5000
#define STOP_MS      10000
#define NOW_MS       500
#define FLUSH_MS     1000
#define FLUSH_NOW_MS 100

static const char *const mode_names[] = {"run", "drain", "stop", "now"};

/* What the end must wait for; builds that are left, or only observed, are not among it. */
static size_t busy(const struct shutdown *shutdown)
{
	return captures_running(shutdown->daemon->captures) +
		   processes_to_end(shutdown->daemon->processes);
}

/* The server's closed callback has the daemon as its context; what is left ends with the loop. */
static void on_closed(void *context)
{
	const struct daemon *daemon = context;
	uv_stop(daemon->loop);
}

static void close_server(struct shutdown *shutdown)
{
	struct daemon *daemon = shutdown->daemon;
	if (shutdown->closing) {
		return;
	}
	shutdown->closing = true;
	shutdown->left_something = busy(shutdown) > 0;
	if (shutdown->left_something) {
		log_write(&daemon->log, LOG_WARN, "main", "ends with %zu captures and %zu builds left",
			captures_running(daemon->captures), processes_to_end(daemon->processes));
	}
	events_broadcast(daemon->events, EVENT_DAEMON_STOPPING, json_object());
	server_close(
		daemon->server, daemon->shutdown == DAEMON_NOW ? FLUSH_NOW_MS : FLUSH_MS, on_closed);
}

static void on_limit(uv_timer_t *timer)
{
	close_server(timer->data);
}

static void stop(struct shutdown *shutdown, int signal, uint64_t grace_ms, uint64_t limit_ms)
{
	struct daemon *daemon = shutdown->daemon;
	struct capture *capture = NULL;
	while ((capture = captures_next(daemon->captures, capture)) != NULL) {
		capture_stop(capture, "daemon_shutdown", false);
	}
	captures_symbolize_stop(daemon->captures);
	processes_stop_all(daemon->processes, signal, grace_ms);
	uv_timer_start(&shutdown->limit, on_limit, limit_ms, 0);
}

static void on_look(uv_timer_t *timer)
{
	struct shutdown *shutdown = timer->data;
	struct daemon *daemon = shutdown->daemon;
	if (daemon->shutdown == DAEMON_DRAIN && captures_running(daemon->captures) == 0) {
		shutdown_begin(shutdown, DAEMON_STOP);
	} else if (daemon->shutdown >= DAEMON_STOP && busy(shutdown) == 0) {
		close_server(shutdown);
	}
}

static void look_soon(struct shutdown *shutdown)
{
	uv_timer_start(&shutdown->look, on_look, 0, 0);
}

void shutdown_begin(struct shutdown *shutdown, enum daemon_shutdown mode)
{
	struct daemon *daemon = shutdown->daemon;
	if (mode <= daemon->shutdown) {
		return; /* it never becomes gentler */
	}
	log_write(&daemon->log, LOG_INFO, "main", "shutdown: %s", mode_names[mode]);
	daemon->shutdown = mode;
	uv_timer_stop(&shutdown->idle);
	if (mode == DAEMON_STOP) {
		stop(shutdown, SIGTERM, GRACE_MS, STOP_MS);
	} else if (mode == DAEMON_NOW) {
		/* Time for what the samplers still hold to reach the journals. */
		stop(shutdown, SIGKILL, 0, NOW_MS);
	}
	look_soon(shutdown);
}

static void on_idle(uv_timer_t *timer)
{
	struct shutdown *shutdown = timer->data;
	/* Busy again: the end of what runs now arms the timer anew. */
	if (busy(shutdown) + processes_alive(shutdown->daemon->processes) == 0 &&
		server_clients(shutdown->daemon->server) == 0) {
		log_write(&shutdown->daemon->log, LOG_INFO, "main", "nobody needed profd for %llu s",
			(unsigned long long)(shutdown->idle_exit_ms / 1000));
		shutdown_begin(shutdown, DAEMON_STOP);
	}
}

void shutdown_settled(struct shutdown *shutdown)
{
	if (shutdown->daemon->shutdown != DAEMON_RUNS) {
		look_soon(shutdown);
	} else if (shutdown->idle_exit_ms > 0) {
		uv_timer_start(&shutdown->idle, on_idle, shutdown->idle_exit_ms, 0);
	}
}

static void on_signal(uv_signal_t *handle, int number)
{
	(void)number;
	struct shutdown *shutdown = handle->data;
	bool again = shutdown->daemon->shutdown >= DAEMON_STOP;
	shutdown_begin(shutdown, again ? DAEMON_NOW : DAEMON_STOP);
}

void shutdown_init(struct shutdown *shutdown, struct daemon *daemon, uint64_t idle_exit_ms)
{
	uv_timer_t *timers[] = {&shutdown->idle, &shutdown->look, &shutdown->limit};
	uv_signal_t *signals[] = {&shutdown->interrupt, &shutdown->terminate};
	const int numbers[] = {SIGINT, SIGTERM};
	shutdown->daemon = daemon;
	shutdown->idle_exit_ms = idle_exit_ms;
	for (size_t i = 0; i < sizeof(timers) / sizeof(timers[0]); i++) {
		uv_timer_init(daemon->loop, timers[i]);
		timers[i]->data = shutdown;
	}
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		uv_signal_init(daemon->loop, signals[i]);
		signals[i]->data = shutdown;
		uv_signal_start(signals[i], on_signal, numbers[i]);
	}
	shutdown_settled(shutdown);
}

void shutdown_finish(struct shutdown *shutdown)
{
	/* One that comes now would end us in the middle of putting things away: libuv gives the signals their default back. */
	sigset_t all;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	uv_handle_t *handles[] = {(uv_handle_t *)&shutdown->idle, (uv_handle_t *)&shutdown->look,
		(uv_handle_t *)&shutdown->limit, (uv_handle_t *)&shutdown->interrupt,
		(uv_handle_t *)&shutdown->terminate};
	for (size_t i = 0; i < sizeof(handles) / sizeof(handles[0]); i++) {
		uv_close(handles[i], NULL);
	}
}
