#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "capture/recording.h"
#include "protocol/clock.h"
#include "protocol/limits.h"
#include "protocol/names.h"
#include "target/target.h"

/* How soon the exec of a process that waits behind a foreign gate is noticed: at first, and after it has waited a second. */
#define GATE_TICK_MS 10
#define GATE_SLOW_MS 100

/* So much of a stack is copied with each sample at first: nearly every stack of nearly every program fits (64 KiB when it does not). */
#define STACK_BYTES 16384

static void announce_later(uv_timer_t *timer)
{
	capture_announce(timer->data);
}

/* Its program runs: right after the exec is the moment to see whether it may be sampled at all. */
static void begins(struct capture *capture)
{
	capture_begin_sampling(capture);
	capture_announce(capture);
	if (target_is_hidden(capture->record.pid)) {
		ending_begin(capture, "target_privileged");
	} else {
		capture_keep(capture);
	}
}

/* The build's. */

static void process_runs(void *context, struct process *process)
{
	struct capture *capture = context;
	(void)process;
	if (capture->phase == CAPTURE_ARMED) {
		begins(capture);
	}
}

static void process_failed(void *context, struct process *process, const struct error *err)
{
	struct capture *capture = context;
	(void)process;
	capture->failure = *err;
	ending_begin(capture, "target_exited");
}

static void process_exited(void *context, struct process *process)
{
	struct capture *capture = context;
	record_set_exit(&capture->record, process);
	if (process_launch_error(process) != NULL) {
		capture->failure = *process_launch_error(process);
	}
	ending_begin(capture, "target_exited");
}

static const struct process_watch_ops watch_ops = {
	.running = process_runs,
	.failed = process_failed,
	.exited = process_exited,
};

/* The bare pid's: there is nobody to tell when it leaves its gate, so it is asked. */

static bool see_mapping(void *context, const struct target_mapping *mapping)
{
	(void)mapping;
	*(bool *)context = true;
	return false;
}

/* It is another program now. One that is ending is none any more, and has no memory to show. */
static bool has_left_gate(pid_t pid)
{
	bool has_memory = false;
	return !target_is_gate(pid) && target_mappings(pid, see_mapping, &has_memory, NULL) &&
		   has_memory;
}

static void look_at_gate(uv_timer_t *timer)
{
	struct capture *capture = timer->data;
	const struct pipeline_counters *counters = pipeline_counters(capture->pipeline);
	bool has_samples = atomic_load_explicit(&counters->samples, memory_order_relaxed) > 0;
	pid_t pid = capture->record.pid;
	if (has_samples || has_left_gate(pid) || (!target_is_gate(pid) && target_is_hidden(pid))) {
		begins(capture);
	} else if (clock_monotonic_ns() - capture->armed_ns > UINT64_C(1000000000)) {
		uv_timer_start(timer, look_at_gate, GATE_SLOW_MS, GATE_SLOW_MS);
	}
}

static void pid_ended(struct pidfd_watch *watch)
{
	ending_begin(watch->context, "target_exited");
}

static bool check_busy(struct captures *captures, pid_t pid, struct error *err)
{
	for (struct capture *other = captures->first; other != NULL; other = other->next) {
		if (other->record.pid == pid && other->tracing == NULL &&
			other->phase <= CAPTURE_SAMPLING) {
			error_set(err, ERROR_CAPTURE_BUSY, "process %d is already sampled by the capture %s",
				(int)pid, other->record.id);
			return error_detail(err, "already_sampled");
		}
	}
	return true;
}

bool starting_check_process(const struct process *process, struct error *err)
{
	enum process_state state = process_state(process);
	if (state == PROCESS_STARTING || state == PROCESS_EXITED) {
		error_set(err, ERROR_BUILD_NOT_RUNNING, "the build %s %s", process_key(process),
			state == PROCESS_EXITED ? "has ended" : "is only being started");
		return error_detail(err, process_state_name(state));
	}
	return true;
}

static bool check_pid(pid_t pid, struct error *err)
{
	if (!target_is_ours(pid, err)) {
		return false;
	}
	if (!target_is_gate(pid)) {
		error_set(err, ERROR_UNSUPPORTED,
			"process %d does not wait behind profd-gate; other running processes cannot be sampled "
			"yet",
			(int)pid);
		return error_hint(err, "launch the program with LaunchProcess, or behind profd-gate");
	}
	return true;
}

static bool check(
	struct captures *captures, const struct capture_options *options, pid_t pid, struct error *err)
{
	bool ok = options->process != NULL ? starting_check_process(options->process, err)
									   : check_pid(pid, err);
	return ok && check_busy(captures, pid, err) && starting_check_room(captures, err);
}

bool starting_check_room(const struct captures *captures, struct error *err)
{
	size_t running = captures->count - captures->recovering;
	if (running >= LIMIT_RUNNING_CAPTURES) {
		error_set(err, ERROR_LIMIT_EXCEEDED, "%zu captures are running, at most %d may", running,
			LIMIT_RUNNING_CAPTURES);
		return error_hint(err, "stop one of them with StopCapture");
	}
	return true;
}

static bool open_journal(
	struct capture *capture, const struct capture_options *options, struct error *err)
{
	int fd = files_create(capture->folder.fd, ARTIFACT_JOURNAL, err);
	if (fd < 0) {
		return false;
	}
	capture->writer = journal_writer_create(fd, options->max_bytes, err);
	return capture->writer != NULL;
}

static enum sample_unwind sample_unwind_of(const char *unwind)
{
	return strcmp(unwind, "fp") == 0      ? SAMPLE_UNWIND_FP
		   : strcmp(unwind, "dwarf") == 0 ? SAMPLE_UNWIND_DWARF
										  : SAMPLE_UNWIND_AUTO;
}

static bool create_pipeline(
	struct capture *capture, const struct capture_options *options, uint64_t hz, struct error *err)
{
	json_t *facts = record_facts(&capture->record);
	/* The journal says what was asked for; what became of it is not known yet. */
	json_object_del(facts, "effective");
	char *text = json_dumps(facts, JSON_COMPACT | JSON_ENSURE_ASCII);
	json_decref(facts);
	if (text == NULL) {
		return error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for the capture's description");
	}
	struct pipeline_options pipeline = {
		.writer = capture->writer,
		.capture_json = text,
		.pid = capture->record.pid,
		.period_ns = sampler_period_ns(hz),
		.kernel_frames = options->kernel,
		.unwind = sample_unwind_of(options->unwind),
		.codes = capture->captures->codes,
		.max_frames = options->max_depth,
		.stitches = options->stitch,
	};
	capture->pipeline = pipeline_create(&pipeline, err);
	free(text);
	return capture->pipeline != NULL;
}

static bool start_sampler(
	struct capture *capture, const struct capture_options *options, uint64_t hz, struct error *err)
{
	struct sampler_config config = {
		.pid = capture->record.pid,
		.is_gated = options->process == NULL || process_state(options->process) == PROCESS_HELD,
		.hz = hz,
		.kernel_frames = options->kernel,
		.max_depth = options->max_depth,
		.stack_bytes = pipeline_unwinds(capture->pipeline) ? STACK_BYTES : 0,
		.more_stack_bytes = SAMPLER_STACK_BYTES_MAX,
		.sink = pipeline_sink(capture->pipeline),
	};
	struct sampler_effective *effective = &capture->record.effective;
	capture->ops = sampler_choose(options->sampler, &config, err);
	if (capture->ops == NULL || !capture->ops->start(&config, &capture->sampler, effective, err)) {
		return false;
	}
	capture->record.unwinder = effective->stack_bytes > 0 ? "dwarf" : "fp";
	if (effective->stack_bytes == 0 && strcmp(options->unwind, "dwarf") == 0) {
		error_set(err, ERROR_BACKEND_UNAVAILABLE,
			"stacks cannot be unwound here: this kernel copies none, or this machine's are not "
			"known");
		return error_hint(err, "use unwind: fp, with programs that keep frame pointers");
	}
	if (effective->warning_code[0] != '\0') {
		record_warn(
			&capture->record, effective->warning_code, effective->warning, effective->warning_hint);
	}
	return true;
}

/* The gate's arguments end with the target's, behind the first "--" (protocol/gate.h). */
static bool describe_gated(struct capture *capture, struct error *err)
{
	char text[2 * LIMIT_ARGV_SHOWN_BYTES], cwd[PATH_MAX];
	size_t len, start = 0;
	pid_t pid = capture->record.pid;
	if (!target_arguments(pid, text, sizeof(text), &len, err) || !target_cwd(pid, cwd, err)) {
		return false;
	}
	bool is_behind = false;
	while (start < len && !is_behind) {
		size_t length = strnlen(text + start, len - start);
		is_behind = length == 2 && memcmp(text + start, "--", 2) == 0;
		start += length + 1;
	}
	start = start < len ? start : len;
	return record_set_target(&capture->record, text + start, len - start, cwd) ||
		   error_set(
			   err, ERROR_LIMIT_EXCEEDED, "no memory for the arguments of process %d", (int)pid);
}

static void init_handles(struct capture *capture)
{
	capture_init_handles(capture);
	capture->exit.ended = pid_ended;
	capture->exit.closed = capture_exit_closed;
	capture->exit.context = capture;
	capture->watch.ops = &watch_ops;
	capture->watch.context = capture;
}

/* From here on the end of the target is noticed; it can have ended already. */
static bool watch_target(
	struct capture *capture, const struct capture_options *options, struct error *err)
{
	if (options->process != NULL) {
		process_watch(options->process, &capture->watch);
		if (process_state(options->process) == PROCESS_RUNNING) {
			capture_begin_sampling(capture);
			uv_timer_start(&capture->defer, announce_later, 0, 0);
		}
		return true;
	}
	if (!pidfd_watch_open(
			&capture->exit, capture->captures->options.loop, capture->record.pid, err)) {
		return false;
	}
	capture->has_exit_watch = true;
	capture->handles++;
	uv_timer_start(&capture->tick, look_at_gate, GATE_TICK_MS, GATE_TICK_MS);
	return true;
}

struct capture *starting_create(struct captures *captures, struct process *process, pid_t pid,
	const char *label, const json_t *asked, struct error *err)
{
	struct capture *capture = calloc(1, sizeof(*capture));
	if (capture == NULL) {
		error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for a capture");
		return NULL;
	}
	capture->captures = captures;
	capture->folder = STORE_FOLDER_NONE;
	capture->journal_fd = -1;
	capture->kernel_symbols_fd = -1;
	capture->armed_ns = clock_monotonic_ns();
	capture->progress_ms = LIMIT_PROGRESS_MS_DEFAULT;
	artifacts_init(&capture->artifacts, -1);
	bool ok = record_init(&capture->record, process, pid, label, asked);
	if (process != NULL) {
		capture->build_key = strdup(process_key(process));
		ok = ok && capture->build_key != NULL;
	}
	if (!ok) {
		error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for a capture");
		capture_release(capture);
		return NULL;
	}
	return capture;
}

static struct capture *create(
	struct captures *captures, const struct capture_options *options, pid_t pid, struct error *err)
{
	struct capture *capture =
		starting_create(captures, options->process, pid, options->label, options->asked, err);
	if (capture != NULL) {
		capture->record.duration_ms = options->duration_ms;
		capture->progress_ms =
			options->progress_ms != 0 ? options->progress_ms : LIMIT_PROGRESS_MS_DEFAULT;
	}
	return capture;
}

bool starting_make_folder(struct capture *capture, const char *output_dir, struct error *err)
{
	if (!store_create(capture->captures->options.store, output_dir, &capture->folder, err)) {
		return false;
	}
	artifacts_init(&capture->artifacts, capture->folder.fd);
	capture->record.artifacts = &capture->artifacts;
	capture->record.id = capture->folder.id;
	capture->record.folder = capture->folder.path;
	return true;
}

static bool make_folder(
	struct capture *capture, const struct capture_options *options, struct error *err)
{
	if (!starting_make_folder(capture, options->output_dir, err)) {
		return false;
	}
	capture->artifacts.files[ARTIFACT_IS_FOLDED].is_wanted = options->write_folded;
	capture->artifacts.files[ARTIFACT_IS_SVG].is_wanted = options->write_svg;
	capture->artifacts.files[ARTIFACT_IS_JSON].is_wanted = options->write_json;
	capture->artifacts.files[ARTIFACT_IS_SYMBOLS].is_wanted = true;
	return true;
}

bool starting_put_record(struct capture *capture, struct error *err)
{
	json_t *record = record_to_json(&capture->record);
	bool ok = store_put(capture->captures->options.store, &capture->folder, record, err);
	json_decref(record);
	return ok;
}

/* It blocks for the milliseconds that a sampler needs to stop. */
void starting_undo(struct capture *capture)
{
	process_unwatch(&capture->watch);
	if (capture->sampler != NULL) {
		capture->ops->stop(capture->sampler);
	}
	journal_writer_destroy(capture->writer, false, NULL);
	if (capture->folder.fd >= 0) {
		store_folder_discard(&capture->folder, NULL);
		store_forget(capture->captures->options.store, capture->folder.id);
	}
	if (capture->handles > 0) {
		capture_close_handles(capture);
	} else {
		capture_release(capture);
	}
}

struct capture *captures_start(
	struct captures *captures, const struct capture_options *options, struct error *err)
{
	pid_t pid = options->process != NULL ? process_pid(options->process) : options->pid;
	uint64_t hz = options->hz != 0 ? options->hz : LIMIT_HZ_DEFAULT;
	if (!check(captures, options, pid, err)) {
		return NULL;
	}
	struct capture *capture = create(captures, options, pid, err);
	if (capture == NULL) {
		return NULL;
	}
	if ((options->process == NULL && !describe_gated(capture, err)) ||
		!make_folder(capture, options, err) || !open_journal(capture, options, err) ||
		!create_pipeline(capture, options, hz, err) || !start_sampler(capture, options, hz, err)) {
		goto fail;
	}
	init_handles(capture);
	if (!watch_target(capture, options, err) || !starting_put_record(capture, err)) {
		goto fail;
	}
	captures_add(captures, capture);
	log_write(captures->options.log, LOG_INFO, "capture", "%s of process %d begins, %s at %llu Hz",
		capture->record.id, (int)pid, capture->record.effective.name,
		(unsigned long long)capture->record.effective.hz);
	return capture;

fail:
	starting_undo(capture);
	return NULL;
}
