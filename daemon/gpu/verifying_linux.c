#include "gpu/verifying.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "gpu/private_folder.h"
#include "gpu/verdict.h"
#include "process/helpers.h"
#include "process/pidfd.h"
#include "process/spawning.h"
#include "protocol/limits.h"

#define SAID_NAME     "said"
#define OUTPUT_NAME   "output"
#define ARGUMENTS     16
#define DOCUMENT_FD   3 /* in the reader */
#define DOCUMENT_LINK "/proc/self/fd/3"
#define REAP_AGAIN_MS 20

struct verifying {
	const struct verifying_reader *reader;
	struct processes *processes;
	void (*done)(void *context, const struct verdict *verdict);
	void *context;
	unsigned limit_ms;
	char reader_path[PATH_MAX];
	char folder[PRIVATE_FOLDER_BYTES]; /* 0700, ours alone; "" when there is none */
	int folder_fd, folder_lock;        /* owned; -1 */
	pid_t pid;
	uv_timer_t timer; /* the limit, or another try to reap */
	struct pidfd_watch exit;
	int handles;       /* of these two, those that are open */
	const char *ended; /* why we ended it; NULL: we did not */
	char limit_text[64];
	bool has_ended, is_reaped;
	siginfo_t info; /* how it ended */
	uv_work_t work;
	struct verdict verdict;
};

bool verifying_find(const char *program, char *path, size_t size)
{
	const char *folder = getenv("PATH");
	struct stat status;
	while (folder != NULL && *folder != '\0') {
		const char *end = strchrnul(folder, ':');
		int wanted = snprintf(path, size, "%.*s/%s", (int)(end - folder), folder, program);
		/* A relative folder would mean another file for each who is asked. */
		if (*folder == '/' && wanted > 0 && (size_t)wanted < size && access(path, X_OK) == 0 &&
			stat(path, &status) == 0 && S_ISREG(status.st_mode)) {
			return true;
		}
		folder = *end == ':' ? end + 1 : NULL;
	}
	return false;
}

/* --- its folder --- */

static bool make_folder(struct verifying *verifying)
{
	struct error err = {0};
	verifying->folder_lock = private_folder_make(verifying->folder, &err);
	if (verifying->folder_lock >= 0) {
		verifying->folder_fd = files_open_folder(verifying->folder, true, &err);
	}
	if (verifying->folder_fd < 0) {
		snprintf(verifying->verdict.why, sizeof(verifying->verdict.why), "%.500s", err.message);
	}
	return verifying->folder_fd >= 0;
}

static void release(struct verifying *verifying)
{
	if (verifying->folder_fd >= 0) {
		close(verifying->folder_fd);
	}
	if (verifying->folder_lock >= 0) {
		close(verifying->folder_lock);
	}
	free(verifying);
}

/* --- its end --- */

/* Worker. */
static void judge(uv_work_t *work)
{
	struct verifying *verifying = work->data;
	struct verdict_end end = {
		.info = &verifying->info,
		.interrupted = verifying->ended,
		.folder_fd = verifying->folder_fd,
		.said = SAID_NAME,
		.output = OUTPUT_NAME,
		.program = verifying->reader->program,
		.magic = verifying->reader->magic,
	};
	verdict_decide(&end, &verifying->verdict);
	private_folder_remove(verifying->folder);
}

static void handle_closed(struct verifying *verifying)
{
	if (--verifying->handles > 0) {
		return;
	}
	struct verdict verdict = verifying->verdict;
	void (*done)(void *, const struct verdict *) = verifying->done;
	void *context = verifying->context;
	release(verifying);
	if (done != NULL) {
		done(context, &verdict);
	}
}

static void timer_closed(uv_handle_t *handle)
{
	handle_closed(handle->data);
}

static void exit_closed(struct pidfd_watch *watch)
{
	handle_closed(watch->context);
}

static void judged(uv_work_t *work, int status)
{
	struct verifying *verifying = work->data;
	(void)status;
	uv_close((uv_handle_t *)&verifying->timer, timer_closed);
	pidfd_watch_close(&verifying->exit);
}

/* With all that it started; its number is its own until it is reaped. */
static void end_group(const struct verifying *verifying)
{
	if (!verifying->is_reaped) {
		kill(-verifying->pid, SIGKILL);
	}
}

static void exited(struct pidfd_watch *watch);

static void time_over(uv_timer_t *timer)
{
	struct verifying *verifying = timer->data;
	if (verifying->has_ended) {
		exited(&verifying->exit);
	} else {
		verifying_cancel(verifying, verifying->limit_text);
	}
}

static void exited(struct pidfd_watch *watch)
{
	struct verifying *verifying = watch->context;
	if (verifying->is_reaped) {
		return;
	}
	end_group(verifying);
	helpers_remove(verifying->processes, verifying->pid);
	int code = waitid(P_PID, (id_t)verifying->pid, &verifying->info, WEXITED | WNOHANG);
	if (code == 0 && verifying->info.si_pid == 0) {
		/* Whoever traces it has not let go of it yet. */
		verifying->has_ended = true;
		uv_timer_start(&verifying->timer, time_over, REAP_AGAIN_MS, 0);
		return;
	}
	if (code != 0) {
		verifying->ended = "its end was not seen";
	}
	verifying->is_reaped = true;
	uv_timer_stop(&verifying->timer);
	verifying->work.data = verifying;
	uv_queue_work(verifying->timer.loop, &verifying->work, judge, judged);
}

void verifying_cancel(struct verifying *verifying, const char *why)
{
	if (!verifying->is_reaped) {
		verifying->ended = verifying->ended != NULL ? verifying->ended : why;
		end_group(verifying);
	}
}

void verifying_abandon(const struct verifying *verifying)
{
	end_group(verifying);
	private_folder_remove(verifying->folder);
}

/* --- its beginning --- */

static int spawn_with(
	struct verifying *verifying, int said, int document_fd, char **argv, char **environment)
{
	posix_spawnattr_t attributes;
	posix_spawn_file_actions_t actions;
	posix_spawnattr_init(&attributes);
	posix_spawn_file_actions_init(&actions);
	int code = spawning_set_attributes(&attributes);
	code = code != 0 ? code : posix_spawn_file_actions_adddup2(&actions, said, STDOUT_FILENO);
	code = code != 0 ? code : posix_spawn_file_actions_adddup2(&actions, said, STDERR_FILENO);
	code = code != 0
			   ? code
			   : posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	code = code != 0 ? code : posix_spawn_file_actions_adddup2(&actions, document_fd, DOCUMENT_FD);
	code = code != 0 ? code : posix_spawn_file_actions_addclosefrom_np(&actions, DOCUMENT_FD + 1);
	code = code != 0 ? code : posix_spawn_file_actions_addchdir_np(&actions, verifying->folder);
	code = code != 0 ? code
					 : posix_spawn(&verifying->pid, verifying->reader_path, &actions, &attributes,
						   argv, environment);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return code;
}

/* Of our own environment only what finds the program's libraries; the rest could put RenderDoc, or whatever else, into it. */
static int spawn(struct verifying *verifying, int said, const struct verifying_options *options)
{
	char home[PRIVATE_FOLDER_BYTES + 8], temporary[PRIVATE_FOLDER_BYTES + 8],
		output[PRIVATE_FOLDER_BYTES + 8];
	char own[PRIVATE_FOLDER_BYTES + 40], libraries[PATH_MAX];
	const char *given = getenv("LD_LIBRARY_PATH");
	char *argv[ARGUMENTS + 2] = {verifying->reader_path}; /* borrowed */
	char *environment[] = {home, temporary, (char *)"LC_ALL=C.UTF-8",
		(char *)"PATH=/usr/local/bin:/usr/bin:/bin", own, NULL, NULL};
	snprintf(home, sizeof(home), "HOME=%s", verifying->folder);
	snprintf(temporary, sizeof(temporary), "TMPDIR=%s", verifying->folder);
	snprintf(own, sizeof(own), "%.31s=%s",
		verifying->reader->variable != NULL ? verifying->reader->variable : "TMP",
		verifying->folder);
	snprintf(output, sizeof(output), "%s/" OUTPUT_NAME, verifying->folder);
	if (given != NULL && strlen(given) + sizeof("LD_LIBRARY_PATH=") <= sizeof(libraries)) {
		snprintf(libraries, sizeof(libraries), "LD_LIBRARY_PATH=%s", given);
		environment[5] = libraries;
	}
	const char *const *arguments = verifying->reader->arguments;
	for (size_t i = 0; i < ARGUMENTS && arguments[i] != NULL; i++) {
		bool is_document = strcmp(arguments[i], VERIFYING_DOCUMENT) == 0;
		bool is_output = strcmp(arguments[i], VERIFYING_OUTPUT) == 0;
		argv[i + 1] = is_document ? (char *)options->name
					  : is_output ? output
								  : (char *)arguments[i];
	}
	return spawn_with(verifying, said, options->document_fd, argv, environment);
}

/* It has just begun: nothing of what is limited can have been used up before. */
static void set_limits(const struct verifying *verifying, uint64_t bytes)
{
	struct rlimit cpu, output, memory, core = {0, 0};
	cpu.rlim_cur = verifying->limit_ms / 1000 + 1;
	cpu.rlim_max = cpu.rlim_cur + 1; /* at that one it would be SIGKILL, which says nothing */
	output.rlim_cur = output.rlim_max = LIMIT_GPU_VERIFY_OUTPUT;
	memory.rlim_cur = memory.rlim_max = LIMIT_GPU_VERIFY_MEMORY + LIMIT_GPU_VERIFY_TIMES * bytes;
	prlimit(verifying->pid, RLIMIT_CPU, &cpu, NULL);
	prlimit(verifying->pid, RLIMIT_FSIZE, &output, NULL);
	prlimit(verifying->pid, RLIMIT_AS, &memory, NULL);
	prlimit(verifying->pid, RLIMIT_CORE, &core, NULL);
}

static bool run(struct verifying *verifying, const struct verifying_options *options)
{
	struct error err = {0};
	int said = files_create(verifying->folder_fd, SAID_NAME, &err);
	bool has_link = symlinkat(DOCUMENT_LINK, verifying->folder_fd, options->name) == 0;
	int code = said >= 0 && has_link ? spawn(verifying, said, options) : EIO;
	if (said >= 0) {
		close(said);
	}
	if (code != 0) {
		snprintf(verifying->verdict.why, sizeof(verifying->verdict.why), "%.200s cannot be run: %s",
			verifying->reader_path, strerror(code));
		return false;
	}
	helpers_add(verifying->processes, verifying->pid);
	set_limits(verifying, options->bytes);
	return true;
}

/* Its end and the time are watched. */
static bool watch(struct verifying *verifying, uv_loop_t *loop)
{
	struct error err = {0};
	verifying->exit.ended = exited;
	verifying->exit.closed = exit_closed;
	verifying->exit.context = verifying;
	if (!pidfd_watch_open(&verifying->exit, loop, verifying->pid, &err)) {
		end_group(verifying);
		helpers_remove(verifying->processes, verifying->pid);
		while (waitpid(verifying->pid, NULL, 0) < 0 && errno == EINTR) {
		}
		snprintf(verifying->verdict.why, sizeof(verifying->verdict.why), "%.500s", err.message);
		return false;
	}
	uv_timer_init(loop, &verifying->timer);
	verifying->timer.data = verifying;
	verifying->handles = 2;
	uv_update_time(loop);
	uv_timer_start(&verifying->timer, time_over, verifying->limit_ms, 0);
	return true;
}

static bool find_reader(struct verifying *verifying)
{
	struct verdict *verdict = &verifying->verdict;
	if (verifying_find(verifying->reader->program, verifying->reader_path, PATH_MAX)) {
		return true;
	}
	snprintf(verdict->why, sizeof(verdict->why), "%s is not in profd's PATH",
		verifying->reader->program);
	snprintf(
		verdict->hint, sizeof(verdict->hint), "install the package %s", verifying->reader->package);
	return false;
}

struct verifying *verifying_start(const struct verifying_options *options, struct verdict *verdict)
{
	struct verifying *verifying = calloc(1, sizeof(*verifying));
	*verdict = (struct verdict){.is = VERDICT_UNREAD, .why = "memory is out"};
	if (verifying == NULL) {
		return NULL;
	}
	verifying->reader = options->reader;
	verifying->processes = options->processes;
	verifying->done = options->done;
	verifying->context = options->context;
	verifying->limit_ms = options->limit_ms;
	verifying->folder_fd = verifying->folder_lock = -1;
	verifying->verdict.is = VERDICT_UNREAD;
	snprintf(verifying->limit_text, sizeof(verifying->limit_text), "it took longer than %u ms",
		options->limit_ms);
	if (find_reader(verifying) && make_folder(verifying) && run(verifying, options) &&
		watch(verifying, options->loop)) {
		return verifying;
	}
	*verdict = verifying->verdict;
	private_folder_remove(verifying->folder);
	release(verifying);
	return NULL;
}
