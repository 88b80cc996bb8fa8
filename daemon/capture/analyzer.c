#include "capture/analyzer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/pidfd.h"
#include "process/spawning.h"
#include "profile/analysis.h"

#define CLOSE_GRACE_MS 2000
#define REAP_AGAIN_MS  20
/* Packets read in one turn of the loop: a chatterer must not keep the others waiting. */
#define PACKETS_A_TURN 64

enum feed_step { FEED_NOTHING, FEED_BEGIN, FEED_IMAGES, FEED_KERNEL, FEED_KEPT, FEED_FINISH };

struct analyzer {
	const struct analyzer_ops *ops; /* NULL once done, failed or closed */
	void *context;
	uint64_t stall_ms;
	pid_t pid;
	int fd; /* the channel; -1 */
	uv_poll_t poll;
	uv_timer_t timer; /* stall, or the grace after close */
	struct pidfd_watch exit;
	int handles;    /* of these three, those that are open */
	bool is_told;   /* it was told to finish */
	bool has_ended; /* but could not be reaped yet */
	bool is_reaped, is_closing;
	struct error cause; /* why it is being killed; NONE: it was not us */
	enum feed_step step;
	size_t next_image;
	struct analyzer_input input;
	void (*closed)(void *context);
	void *closed_context;
};

static void watch_channel(struct analyzer *analyzer);
static void exited(struct pidfd_watch *watch);

static void handle_closed(struct analyzer *analyzer)
{
	if (--analyzer->handles > 0) {
		return;
	}
	if (analyzer->closed != NULL) {
		analyzer->closed(analyzer->closed_context);
	}
	free(analyzer);
}

static void timer_closed(uv_handle_t *handle)
{
	handle_closed(handle->data);
}

/* uv stops looking at the descriptor when the handle is closing; only then may its number be used for another. */
static void poll_closed(uv_handle_t *handle)
{
	struct analyzer *analyzer = handle->data;
	close(analyzer->fd);
	analyzer->fd = -1;
	handle_closed(analyzer);
}

static void exit_closed(struct pidfd_watch *watch)
{
	handle_closed(watch->context);
}

static bool channel_is_open(const struct analyzer *analyzer)
{
	return !uv_is_closing((const uv_handle_t *)&analyzer->poll);
}

static void end_channel(struct analyzer *analyzer)
{
	if (channel_is_open(analyzer)) {
		shutdown(analyzer->fd, SHUT_RDWR); /* tells the peer now, not in the close callback */
		uv_close((uv_handle_t *)&analyzer->poll, poll_closed);
	}
}

/* Everything may go once the process is reaped and nobody wants to hear of it. */
static void close_when_over(struct analyzer *analyzer)
{
	if (analyzer->is_reaped && analyzer->is_closing &&
		!uv_is_closing((uv_handle_t *)&analyzer->timer)) {
		end_channel(analyzer);
		uv_close((uv_handle_t *)&analyzer->timer, timer_closed);
		pidfd_watch_close(&analyzer->exit);
	}
}

static void fail(struct analyzer *analyzer, const struct error *err)
{
	const struct analyzer_ops *ops = analyzer->ops;
	analyzer->ops = NULL;
	uv_timer_stop(&analyzer->timer);
	ops->failed(analyzer->context, err);
}

/* Ends it by force; failed is told when it is gone. Not yet reaped, so the pid is still its own. */
static void kill_because(struct analyzer *analyzer, const char *why)
{
	if (analyzer->cause.code == ERROR_NONE) {
		error_set(&analyzer->cause, ERROR_INTERNAL, "%s", why);
		error_detail(&analyzer->cause, "analyzer");
	}
	if (!analyzer->is_reaped) {
		kill(analyzer->pid, SIGKILL);
	}
}

static void stalled(uv_timer_t *timer)
{
	struct analyzer *analyzer = timer->data;
	char why[128];
	if (analyzer->has_ended) {
		exited(&analyzer->exit);
		return;
	}
	if (channel_is_open(analyzer)) {
		snprintf(why, sizeof(why), "the analyzer made no progress for %llu ms and was ended",
			(unsigned long long)analyzer->stall_ms);
	} else {
		snprintf(why, sizeof(why), "the analyzer closed its channel and did not end");
	}
	kill_because(analyzer, why);
}

/* The error of a "failed" packet, made into one of ours. */
static void take_failure(struct analyzer *analyzer, const json_t *body)
{
	struct error err = {0};
	if (!error_from_json(&err, json_object_get(body, "error"))) {
		error_set(&err, ERROR_INTERNAL, "the analyzer failed and did not say why");
	}
	if (err.code == ERROR_INTERNAL) {
		error_detail(&err, "analyzer");
	}
	fail(analyzer, &err);
}

static void take_progress(struct analyzer *analyzer, const json_t *body)
{
	json_int_t permille = json_integer_value(json_object_get(body, "permille"));
	const char *phase = json_string_value(json_object_get(body, "phase"));
	permille = permille < 0 ? 0 : permille > 1000 ? 1000 : permille;
	analyzer->ops->progress(
		analyzer->context, (unsigned)permille, phase != NULL && strcmp(phase, "writing") == 0);
}

static void take(struct analyzer *analyzer, const struct analysis_message *message)
{
	const char *type = analysis_message_type(message);
	if (analyzer->ops == NULL) {
		return;
	}
	uv_timer_start(&analyzer->timer, stalled, analyzer->stall_ms, 0);
	if (strcmp(type, "progress") == 0) {
		take_progress(analyzer, message->body);
	} else if (strcmp(type, "done") == 0) {
		if (!analyzer->is_told) {
			kill_because(analyzer, "the analyzer said that it had done before it was told all");
			return;
		}
		const struct analyzer_ops *ops = analyzer->ops;
		analyzer->ops = NULL;
		uv_timer_stop(&analyzer->timer);
		ops->done(analyzer->context, message->body);
	} else if (strcmp(type, "failed") == 0) {
		take_failure(analyzer, message->body);
	}
}

/* It is ending, and how tells more than the channel does; when it only closed its channel, the timer ends it. */
static void channel_ended(struct analyzer *analyzer)
{
	end_channel(analyzer);
	if (!analyzer->is_reaped && analyzer->ops != NULL) {
		uv_timer_start(&analyzer->timer, stalled, CLOSE_GRACE_MS, 0);
	}
}

/* False when there is nothing more to come. */
static bool receive(struct analyzer *analyzer)
{
	struct analysis_message message = {0};
	struct error err = {0};
	char why[256];
	switch (analysis_receive(analyzer->fd, &message, &err)) {
	case ANALYSIS_MESSAGE:
		take(analyzer, &message);
		analysis_message_finish(&message);
		return true;
	case ANALYSIS_AGAIN:
		return false;
	case ANALYSIS_BROKEN:
		snprintf(why, sizeof(why), "the analyzer sent what is no message: %.160s", err.message);
		kill_because(analyzer, why);
		end_channel(analyzer);
		return false;
	case ANALYSIS_CLOSED:
	default:
		channel_ended(analyzer);
		return false;
	}
}

static json_t *begin_packet(const struct analyzer_input *input, int *files, size_t *count)
{
	json_t *outputs = json_array();
	*count = 0;
	files[(*count)++] = input->journal_fd;
	for (int i = 0; i < ARTIFACT_KINDS; i++) {
		if (input->artifacts->files[i].fd >= 0) {
			json_array_append_new(outputs, json_string(artifact_kind((enum artifact)i)));
			files[(*count)++] = input->artifacts->files[i].fd;
		}
	}
	return json_pack("{s:s, s:i, s:s, s:b, s:b, s:o, s:O}", "type", "begin", "version",
		ANALYSIS_VERSION, "capture_id", input->capture_id, "symbols", input->symbols, "same_kernel",
		input->has_same_kernel, "outputs", outputs, "facts", (json_t *)input->facts);
}

/* What comes next, and the step that follows it. */
static json_t *next_packet(struct analyzer *analyzer, int *files, size_t *count)
{
	const struct analyzer_input *input = &analyzer->input;
	*count = 0;
	switch (analyzer->step) {
	case FEED_BEGIN:
		return begin_packet(input, files, count);
	case FEED_IMAGES:
		files[(*count)++] = input->images[analyzer->next_image].fd;
		return json_pack("{s:s, s:I}", "type", "image", "image",
			(json_int_t)input->images[analyzer->next_image].id);
	case FEED_KERNEL:
		files[(*count)++] = input->kernel_symbols_fd;
		return json_pack("{s:s}", "type", "kernel_symbols");
	case FEED_KEPT:
		files[(*count)++] = input->kept_symbols_fd;
		return json_pack("{s:s}", "type", "kept_symbols");
	case FEED_FINISH:
	case FEED_NOTHING:
	default:
		return json_pack("{s:s}", "type", "finish");
	}
}

static void advance(struct analyzer *analyzer)
{
	switch (analyzer->step) {
	case FEED_BEGIN:
		analyzer->step = FEED_IMAGES;
		break;
	case FEED_IMAGES:
		analyzer->next_image++;
		break;
	case FEED_KERNEL:
		analyzer->step = FEED_KEPT;
		break;
	case FEED_KEPT:
		analyzer->step = FEED_FINISH;
		break;
	case FEED_FINISH:
	case FEED_NOTHING:
	default:
		analyzer->step = FEED_NOTHING;
		analyzer->is_told = true;
		break;
	}
	if (analyzer->step == FEED_IMAGES && analyzer->next_image == analyzer->input.image_count) {
		analyzer->step = FEED_KERNEL;
	}
	if (analyzer->step == FEED_KERNEL && analyzer->input.kernel_symbols_fd < 0) {
		analyzer->step = FEED_KEPT;
	}
	if (analyzer->step == FEED_KEPT && analyzer->input.kept_symbols_fd < 0) {
		analyzer->step = FEED_FINISH;
	}
}

/* Sends until all is said or the channel is full. */
static void feed(struct analyzer *analyzer)
{
	while (analyzer->step != FEED_NOTHING) {
		struct error err = {0};
		int files[1 + ARTIFACT_KINDS];
		size_t count;
		json_t *packet = next_packet(analyzer, files, &count);
		bool sent = packet != NULL && analysis_send(analyzer->fd, packet, files, count, &err);
		json_decref(packet);
		/* Full, or as many descriptors are on their way as this user may have open. */
		if (!sent &&
			(strcmp(err.detail, "eagain") == 0 || strcmp(err.detail, "etoomanyrefs") == 0)) {
			return;
		}
		if (!sent) {
			char why[256];
			snprintf(
				why, sizeof(why), "the analyzer could not be told what to do: %.160s", err.message);
			/* A closed channel is the consequence, its exit status the reason. */
			if (strcmp(err.detail, "epipe") != 0) {
				kill_because(analyzer, why);
			}
			analyzer->step = FEED_NOTHING;
			return;
		}
		advance(analyzer);
	}
}

static void channel_ready(uv_poll_t *poll, int status, int events)
{
	struct analyzer *analyzer = poll->data;
	if (status < 0) {
		/* A reset: it has ended with packets unread. What it said before can still be read. */
		while (channel_is_open(analyzer) && receive(analyzer)) {
		}
		channel_ended(analyzer);
		return;
	}
	if ((events & UV_WRITABLE) != 0) {
		feed(analyzer);
	}
	for (int i = 0; i < PACKETS_A_TURN && channel_is_open(analyzer) && receive(analyzer); i++) {
	}
	watch_channel(analyzer);
}

static void watch_channel(struct analyzer *analyzer)
{
	if (channel_is_open(analyzer)) {
		int events = UV_READABLE | (analyzer->step != FEED_NOTHING ? UV_WRITABLE : 0);
		uv_poll_start(&analyzer->poll, events, channel_ready);
	}
}

/* What a signal means that comes from its sandbox, its limits (analyzer/sandbox.h) or the system; "" for a plain crash. */
static void explain_signal(int number, char *why, size_t room)
{
	why[0] = '\0';
	if (number == SIGXCPU) {
		snprintf(why, room, " (it used all of its %d s of CPU time)", ANALYSIS_CPU_SECONDS);
	} else if (number == SIGSYS) {
		snprintf(why, room, " (it made a system call that its sandbox does not have)");
	} else if (number == SIGKILL) {
		snprintf(why, room, " (by somebody, or because the system ran out of memory)");
	}
}

static void describe_exit(struct error *err, const siginfo_t *info)
{
	const char *signal = sigabbrev_np(info->si_status);
	char why[128];
	explain_signal(info->si_status, why, sizeof(why));
	if (info->si_code == CLD_EXITED) {
		error_set(err, ERROR_INTERNAL, "the analyzer exited with status %d before it had done",
			info->si_status);
	} else if (signal != NULL) {
		error_set(err, ERROR_INTERNAL, "the analyzer was ended by SIG%s%s", signal, why);
	} else {
		error_set(err, ERROR_INTERNAL, "the analyzer was ended by signal %d", info->si_status);
	}
	error_detail(err, "analyzer");
}

static void exited(struct pidfd_watch *watch)
{
	struct analyzer *analyzer = watch->context;
	siginfo_t info = {0};
	if (analyzer->is_reaped) {
		return;
	}
	if (waitid(P_PID, (id_t)analyzer->pid, &info, WEXITED | WNOHANG) == 0 && info.si_pid == 0) {
		/* Whoever traces it (a debugger, a leak checker) has not let go of it yet. */
		analyzer->has_ended = true;
		uv_timer_start(&analyzer->timer, stalled, REAP_AGAIN_MS, 0);
		return;
	}
	/* Its last words may still be in the channel. */
	while (analyzer->ops != NULL && channel_is_open(analyzer) && receive(analyzer)) {
	}
	analyzer->is_reaped = true;
	end_channel(analyzer);
	uv_timer_stop(&analyzer->timer);
	if (analyzer->ops != NULL) {
		struct error err = analyzer->cause;
		if (err.code == ERROR_NONE) {
			describe_exit(&err, &info);
		}
		fail(analyzer, &err);
	}
	close_when_over(analyzer);
}

/* Of our own environment it gets nothing: it needs none, and it could carry secrets. */
static char *const environment[] = {(char *)"LC_ALL=C.UTF-8", NULL};

static bool spawn(const char *path, int channel, pid_t *pid, struct error *err)
{
	posix_spawnattr_t attributes;
	posix_spawn_file_actions_t actions;
	char *const argv[] = {(char *)"profd-analyzer", NULL};
	posix_spawnattr_init(&attributes);
	posix_spawn_file_actions_init(&actions);
	int code = spawning_set_attributes(&attributes);
	/* The channel first: it may be descriptor 0 or 1 in a daemon that was started without them. */
	code = code != 0 ? code : posix_spawn_file_actions_adddup2(&actions, channel, ANALYSIS_FD);
	code =
		code != 0 ? code : posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	code =
		code != 0 ? code : posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	code = code != 0 ? code : posix_spawn(pid, path, &actions, &attributes, argv, environment);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return code == 0 || error_errno_as(err, ERROR_IO, code, "cannot start the analyzer %s", path);
}

static void reap_now(pid_t pid)
{
	siginfo_t info;
	kill(pid, SIGKILL);
	while (waitid(P_PID, (id_t)pid, &info, WEXITED) != 0 && errno == EINTR) {
	}
}

static void init_handles(struct analyzer *analyzer, const struct analyzer_options *options)
{
	uv_timer_init(options->loop, &analyzer->timer);
	analyzer->timer.data = analyzer;
	analyzer->poll.data = analyzer;
	analyzer->exit.ended = exited;
	analyzer->exit.closed = exit_closed;
	analyzer->exit.context = analyzer;
	analyzer->handles = 3;
}

struct analyzer *analyzer_start(const struct analyzer_options *options, struct error *err)
{
	int pair[2];
	struct analyzer *analyzer = calloc(1, sizeof(*analyzer));
	if (analyzer == NULL) {
		error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for an analyzer");
		return NULL;
	}
	if (!analysis_channel(pair, err)) {
		free(analyzer);
		return NULL;
	}
	bool spawned = spawn(options->path, pair[1], &analyzer->pid, err);
	close(pair[1]);
	analyzer->fd = pair[0];
	if (!spawned) {
		goto fail;
	}
	analyzer->ops = options->ops;
	analyzer->context = options->context;
	analyzer->stall_ms = options->stall_ms;
	/* The poll first: it alone of the handles can fail without leaving anything to be closed later. */
	int code = uv_poll_init(options->loop, &analyzer->poll, analyzer->fd);
	if (code != 0) {
		error_errno_as(err, ERROR_IO, code, "cannot watch the analyzer's channel");
		reap_now(analyzer->pid);
		goto fail;
	}
	init_handles(analyzer, options);
	if (!pidfd_watch_open(&analyzer->exit, options->loop, analyzer->pid, err)) {
		reap_now(analyzer->pid);
		analyzer->handles = 2;
		analyzer->ops = NULL;
		end_channel(analyzer);
		uv_close((uv_handle_t *)&analyzer->timer, timer_closed);
		return NULL;
	}
	watch_channel(analyzer);
	return analyzer;

fail:
	close(analyzer->fd);
	free(analyzer);
	return NULL;
}

void analyzer_feed(struct analyzer *analyzer, const struct analyzer_input *input)
{
	analyzer->input = *input;
	analyzer->step = FEED_BEGIN;
	uv_timer_start(&analyzer->timer, stalled, analyzer->stall_ms, 0);
	if (channel_is_open(analyzer)) {
		feed(analyzer);
		watch_channel(analyzer);
	}
}

void analyzer_kill(const struct analyzer *analyzer)
{
	if (!analyzer->is_reaped) {
		kill(analyzer->pid, SIGKILL);
	}
}

void analyzer_close(
	struct analyzer *analyzer, bool kill_now, void (*closed)(void *context), void *context)
{
	analyzer->ops = NULL;
	analyzer->is_closing = true;
	analyzer->closed = closed;
	analyzer->closed_context = context;
	analyzer->step = FEED_NOTHING;
	end_channel(analyzer);
	if (!analyzer->is_reaped) {
		uv_timer_start(&analyzer->timer, stalled, kill_now ? 0 : CLOSE_GRACE_MS, 0);
	}
	close_when_over(analyzer);
}
