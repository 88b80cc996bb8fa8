#include "support/capture_stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "profile/analysis.h"
#include "profile/journal.h"

/* The process. */

enum process_state process_state(const struct process *process)
{
	return process->state;
}

const char *process_state_name(enum process_state state)
{
	return state == PROCESS_EXITED ? "exited" : "starting";
}

const json_t *process_build_id(const struct process *process)
{
	return process->build_id;
}

const char *process_key(const struct process *process)
{
	(void)process;
	return "7";
}

pid_t process_pid(const struct process *process)
{
	return process->pid;
}

const char *process_cwd(const struct process *process)
{
	(void)process;
	return "/";
}

const char *const *process_argv(const struct process *process, size_t *count)
{
	static const char *const argv[] = {"prog",
		"a\xff"
		"b",
		NULL};
	(void)process;
	*count = 2;
	return argv;
}

const struct process_exit *process_exit(const struct process *process)
{
	return process->state == PROCESS_EXITED ? &process->exit : NULL;
}

void process_watch(struct process *process, struct process_watch *watch)
{
	watch->process = process;
	watch->next = process->watches;
	process->watches = watch;
}

void process_unwatch(struct process_watch *watch)
{
	if (watch->process != NULL) {
		struct process_watch **link = &watch->process->watches;
		while (*link != watch) {
			link = &(*link)->next;
		}
		*link = watch->next;
		watch->process = NULL;
	}
}

void stage_process_becomes(struct process *process, enum process_state state)
{
	process->state = state;
	struct process_watch *next;
	for (struct process_watch *watch = process->watches; watch != NULL; watch = next) {
		next = watch->next;
		if (state == PROCESS_RUNNING) {
			watch->ops->running(watch->context, process);
		} else {
			watch->ops->exited(watch->context, process);
		}
	}
}

/* The sampler. */

struct sampler stage_sampler;

static bool sampler_start(const struct sampler_config *config, struct sampler **sampler,
	struct sampler_effective *effective, struct error *err)
{
	if (stage_sampler.refuses) {
		return error_set(err, ERROR_HZ_TOO_HIGH, "the kernel allows 1000 Hz, not %llu",
			(unsigned long long)config->hz);
	}
	stage_sampler.sink = config->sink;
	stage_sampler.pid = config->pid;
	stage_sampler.is_gated = config->is_gated;
	stage_sampler.runs = true;
	*sampler = &stage_sampler;
	*effective = (struct sampler_effective){.name = "perf",
		.hz = config->hz,
		.period_ns = 1000000000 / config->hz,
		.kernel_sampled = true,
		.ring_bytes = 4096};
	strcpy(effective->warning_code, "rings_small");
	strcpy(effective->warning, "the rings are small");
	strcpy(effective->warning_hint, "raise a limit");
	return true;
}

static void sampler_stop(struct sampler *sampler)
{
	sampler->sink.cpu_time(
		sampler->sink.context, clock_monotonic_ns(), sampler->pid, sampler->cpu_time_ns);
	sampler->runs = false;
}

static const struct sampler_ops fake_sampler_ops = {
	.name = "perf", .start = sampler_start, .stop = sampler_stop};

const struct sampler_ops *sampler_choose(
	const char *name, const struct sampler_config *config, struct error *err)
{
	(void)name;
	(void)config;
	(void)err;
	return &fake_sampler_ops;
}

/* Each sample has a stack of its own, of so many frames. */
void stage_emit(size_t count, size_t frames)
{
	uint64_t stack[127];
	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < frames; k++) {
			stack[k] = 0x400000 + (stage_sampler.next_stack * 131 + k * 7919) % 0xfffff;
		}
		stage_sampler.next_stack++;
		struct sampler_sample sample = {.time_ns = clock_monotonic_ns(),
			.pid = stage_sampler.pid,
			.tid = stage_sampler.pid,
			.user_frames = stack,
			.user_count = frames};
		stage_sampler.sink.sample(stage_sampler.sink.context, &sample);
	}
}

/* The events. */

json_t *stage_events; /* array of {name, params} */

void events_publish(struct events *events, const char *name, enum events_class class,
	const struct events_subject *subject, json_t *params)
{
	(void)events;
	(void)class;
	assert_string_equal(
		subject->capture_id, json_string_value(json_object_get(params, "capture_id")));
	json_array_append_new(stage_events, json_pack("{s:s, s:o}", "name", name, "params", params));
}

void events_forget(struct events *events, const struct events_subject *subject)
{
	(void)events;
	json_array_append_new(stage_events, json_pack("{s:s, s:{s:s}}", "name", "forgotten", "params",
											"capture_id", subject->capture_id));
}

/* The names in order, a run of the same name once. */
const char *stage_event_names(void)
{
	static char names[1024];
	const char *last = "";
	size_t i;
	json_t *event;
	names[0] = '\0';
	json_array_foreach(stage_events, i, event)
	{
		const char *name = json_string_value(json_object_get(event, "name"));
		if (strcmp(name, last) != 0) {
			strcat(strcat(names, names[0] != '\0' ? " " : ""),
				strncmp(name, "SamplingProfile", 15) == 0 ? name + 15 : name);
		}
		last = name;
	}
	return names;
}

const json_t *stage_event_params(const char *name)
{
	size_t i;
	json_t *event, *found = NULL;
	json_array_foreach(stage_events, i, event)
	{
		if (strcmp(json_string_value(json_object_get(event, "name")), name) == 0) {
			found = json_object_get(event, "params");
		}
	}
	assert_non_null(found);
	return found;
}

const char *stage_member(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));
	return text != NULL ? text : "";
}

json_int_t stage_number(const json_t *object, const char *name)
{
	assert_true(json_is_integer(json_object_get(object, name)));
	return json_integer_value(json_object_get(object, name));
}

const char *stage_error_code(const json_t *params)
{
	return stage_member(json_object_get(json_object_get(params, "error"), "data"), "code");
}

const char *stage_error_message(const json_t *params)
{
	return stage_member(json_object_get(params, "error"), "message");
}

/* The other role: an analyzer that does what the capture's label says. */

static uint64_t count_samples(int fd)
{
	struct stat status;
	struct journal_record record;
	uint64_t samples = 0;
	if (fstat(fd, &status) != 0) {
		_exit(99);
	}
	void *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	struct journal_reader *reader = journal_reader_create(bytes, (size_t)status.st_size);
	enum journal_result result;
	while ((result = journal_reader_next(reader, &record)) == JOURNAL_READ_RECORD) {
		samples += record.type == JOURNAL_SAMPLE;
	}
	if (result != JOURNAL_READ_END) {
		_exit(98);
	}
	return samples;
}

static void say(const json_t *packet)
{
	struct error err = {0};
	if (!analysis_send(ANALYSIS_FD, packet, NULL, 0, &err)) {
		_exit(97);
	}
}

static void say_progress(int permille, const char *phase)
{
	say(json_pack("{s:s, s:i, s:s}", "type", "progress", "permille", permille, "phase", phase));
}

static void say_failed(enum error_code code)
{
	struct error err = {0};
	error_set(&err, code, "the analyzer says so");
	say(json_pack("{s:s, s:o}", "type", "failed", "error", error_to_json(&err)));
}

/* A folder where the svg should get its name. */
static void block_svg(int svg_fd)
{
	char link[64], path[4200] = "";
	snprintf(link, sizeof(link), "/proc/self/fd/%d", svg_fd);
	if (readlink(link, path, sizeof(path) - 64) > 0) {
		strcpy(strrchr(path, '/'), "/capture.svg");
		mkdir(path, 0700);
	}
}

static json_t *summary_for(const char *mode)
{
	json_t *summary = json_pack("{s:i, s:i, s:[{s:s, s:i, s:i}]}", "duration_ms", 1, "threads", 1,
		"top", "function", "main", "self", 1, "total", 1);
	if (strcmp(mode, "huge") == 0) {
		json_t *top = json_object_get(summary, "top");
		char *name = calloc(1, 60001);
		memset(name, 'n', 60000);
		for (int i = 0; i < 1; i++) {
			json_array_append_new(top, json_pack("{s:s}", "function", name));
		}
		for (int i = 0; i < 1000; i++) {
			json_array_append_new(top, json_pack("{s:s}", "function", "f"));
		}
	}
	return summary;
}

static void misbehave(const char *mode, bool symbols)
{
	if (strcmp(mode, "crash always") == 0 || (symbols && strcmp(mode, "crash") == 0)) {
		raise(SIGKILL);
	} else if (symbols && strcmp(mode, "garbage") == 0) {
		if (send(ANALYSIS_FD, "{nonsense", 9, 0) == 9) {
			pause();
		}
	} else if (symbols && strcmp(mode, "exit") == 0) {
		_exit(3);
	} else if (strcmp(mode, "slow") == 0) {
		pause();
	} else if (strcmp(mode, "disk full") == 0) {
		say_failed(ERROR_DISK_FULL);
		pause();
	} else if (symbols && strcmp(mode, "fails") == 0) {
		say_failed(ERROR_INTERNAL);
		pause();
	} else if (symbols && strcmp(mode, "no counts") == 0) {
		say(json_pack("{s:s, s:{}}", "type", "done", "summary"));
		pause();
	}
}

static void act_as_analyzer(void)
{
	struct analysis_message begin = {0};
	struct error err = {0};
	if (analysis_receive(ANALYSIS_FD, &begin, &err) != ANALYSIS_MESSAGE ||
		strcmp(analysis_message_type(&begin), "begin") != 0) {
		_exit(96);
	}
	const char *mode = stage_member(json_object_get(begin.body, "facts"), "label");
	misbehave(mode, json_is_true(json_object_get(begin.body, "symbols")));
	struct analysis_message next = {0};
	while (analysis_receive(ANALYSIS_FD, &next, &err) == ANALYSIS_MESSAGE &&
		   strcmp(analysis_message_type(&next), "finish") != 0) {
		analysis_message_finish(&next);
	}
	say_progress(500, "symbolizing");
	say_progress(900, "writing");
	uint64_t samples = strcmp(mode, "empty") == 0 ? 0 : count_samples(begin.files[0]);
	for (size_t i = 1; i < begin.file_count; i++) {
		const char *kind =
			json_string_value(json_array_get(json_object_get(begin.body, "outputs"), i - 1));
		if (dprintf(begin.files[i], "this is %s\n", kind) < 0) {
			_exit(95);
		}
		if (strcmp(mode, "block svg") == 0 && strcmp(kind, "svg") == 0) {
			block_svg(begin.files[i]);
		}
	}
	say(json_pack("{s:s, s:o, s:[{s:s, s:s}], s:I, s:i, s:i, s:i}", "type", "done", "summary",
		summary_for(mode), "warnings", "code", "images_missing", "message", "some", "samples",
		(json_int_t)samples, "lost", 0, "threads", 1, "truncated", 0));
	analysis_receive(ANALYSIS_FD, &next, &err);
	_exit(0);
}

/* The stage. */

size_t stage_count_entries(const char *path)
{
	size_t count = 0;
	DIR *dir = opendir(path);
	assert_non_null(dir);
	while (readdir(dir) != NULL) {
		count++;
	}
	closedir(dir);
	return count - 2;
}

void stage_create_captures(struct capture_stage *fixture, const char *analyzer)
{
	struct error err = {0};
	struct captures_options options = {.loop = &fixture->loop,
		.log = &fixture->log,
		.store = fixture->store,
		.analyzer_path = analyzer};
	captures_destroy(fixture->captures);
	fixture->captures = captures_create(&options, &err);
	assert_non_null(fixture->captures);
}

int stage_set_up(void **state)
{
	struct capture_stage *fixture = calloc(1, sizeof(*fixture));
	struct error err = {0};
	fixture->descriptors = stage_count_entries("/proc/self/fd");
	assert_int_equal(uv_loop_init(&fixture->loop), 0);
	snprintf(fixture->path, sizeof(fixture->path), "/tmp/test-capture-XXXXXX");
	assert_non_null(mkdtemp(fixture->path));
	snprintf(fixture->data, sizeof(fixture->data), "%s/data", fixture->path);
	assert_true(readlink("/proc/self/exe", fixture->self, sizeof(fixture->self) - 1) > 0);
	fixture->log = (struct log){LOG_ERROR, 2};
	fixture->store = store_open(fixture->data, &err);
	assert_non_null(fixture->store);
	stage_create_captures(fixture, fixture->self);
	fixture->process =
		(struct process){.state = PROCESS_HELD, .build_id = json_integer(7), .pid = getpid()};
	fixture->options = (struct capture_options){.process = &fixture->process,
		.hz = 1000,
		.progress_ms = 50,
		.sampler = "auto",
		.write_folded = true,
		.write_svg = true,
		.write_json = true};
	stage_events = json_array();
	stage_sampler = (struct sampler){.cpu_time_ns = 5000000};
	*state = fixture;
	return 0;
}

/* Every test ends as if nothing had happened: no handle, no descriptor, no child, and no half-written file. */
int stage_tear_down(void **state)
{
	struct capture_stage *fixture = *state;
	char command[256];
	assert_int_equal(captures_running(fixture->captures), 0);
	uv_run(&fixture->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&fixture->loop), 0);
	captures_destroy(fixture->captures);
	store_close(fixture->store);
	json_decref(fixture->process.build_id);
	json_decref(fixture->told);
	json_decref(stage_events);
	assert_null(fixture->process.watches);
	assert_false(stage_sampler.runs);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	assert_int_equal(stage_count_entries("/proc/self/fd"), fixture->descriptors);
	snprintf(command, sizeof(command), "test -z \"$(find %s -name '*.tmp')\" && rm -rf %s",
		fixture->path, fixture->path);
	assert_int_equal(system(command), 0);
	free(fixture);
	return 0;
}

static void ended(struct capture_wait *wait, const json_t *record)
{
	struct capture_stage *fixture = wait->context;
	fixture->was_told = true;
	fixture->told = record != NULL ? json_deep_copy(record) : NULL;
	/* The terminal event is out by now. */
	assert_non_null(strstr(stage_event_names(),
		record != NULL && json_object_get(record, "error") == NULL ? "Finished" : "Failed"));
}

struct capture *stage_start(struct capture_stage *fixture)
{
	struct error err = {0};
	struct capture *capture = captures_start(fixture->captures, &fixture->options, &err);
	assert_string_equal(err.message, "");
	assert_non_null(capture);
	fixture->wait = (struct capture_wait){.ended = ended, .context = fixture};
	capture_wait(capture, &fixture->wait);
	return capture;
}

/* Runs the loop until no capture is left. */
void stage_run_to_the_end(struct capture_stage *fixture)
{
	uint64_t limit = clock_monotonic_ns() + UINT64_C(30000000000);
	while (captures_running(fixture->captures) > 0) {
		assert_true(clock_monotonic_ns() < limit);
		uv_run(&fixture->loop, UV_RUN_ONCE);
	}
}

void stage_run_until_event(struct capture_stage *fixture, const char *name)
{
	uint64_t limit = clock_monotonic_ns() + UINT64_C(10000000000);
	while (strstr(stage_event_names(), name) == NULL) {
		assert_true(clock_monotonic_ns() < limit);
		uv_run(&fixture->loop, UV_RUN_ONCE);
	}
}

/* A held program that runs, is sampled so often, and exits with 3. */
void stage_play(struct capture_stage *fixture, const char *label, size_t samples)
{
	fixture->options.label = label;
	stage_start(fixture);
	stage_process_becomes(&fixture->process, PROCESS_RUNNING);
	stage_emit(samples, 10);
	fixture->process.exit = (struct process_exit){.exit_code = 3};
	stage_process_becomes(&fixture->process, PROCESS_EXITED);
	stage_run_to_the_end(fixture);
}

char *stage_read_file(const char *path)
{
	static char text[4096];
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	size_t len = fread(text, 1, sizeof(text) - 1, file);
	text[len] = '\0';
	fclose(file);
	return text;
}

const char *stage_folder_of(struct capture_stage *fixture)
{
	return stage_member(store_next(fixture->store, ""), "folder");
}

/* What is left is the journal and the record. */
void stage_assert_only_the_journal_is_kept(struct capture_stage *fixture)
{
	char path[4200];
	snprintf(path, sizeof(path), "%s/capture.journal", stage_folder_of(fixture));
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(stage_count_entries(stage_folder_of(fixture)), 2);
}

void stage_begin(int argc, char **argv)
{
	uv_loop_t loop;
	if (argc == 1 && strcmp(argv[0], "profd-analyzer") == 0) {
		act_as_analyzer();
	}
	/* What libuv opens once for good is not to be counted. */
	uv_loop_init(&loop);
	uv_loop_close(&loop);
}
