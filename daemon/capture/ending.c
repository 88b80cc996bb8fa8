#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "capture/recording.h"
#include "protocol/clock.h"
#include "protocol/names.h"
#include "target/target.h"

static void analyze(struct capture *capture, bool symbols);

static void drop_analyzer(struct capture *capture, bool kill_now)
{
	if (capture->analyzer != NULL) {
		analyzer_close(capture->analyzer, kill_now, NULL, NULL);
		capture->analyzer = NULL;
	}
}

static const char *terminal_event(const struct capture *capture, bool failed)
{
	if (capture->record.trace != NULL) {
		return failed ? EVENT_GPU_TRACE_FAILED : EVENT_GPU_TRACE_FINISHED;
	}
	return failed ? EVENT_SAMPLING_PROFILE_FAILED : EVENT_SAMPLING_PROFILE_FINISHED;
}

/* The terminal event and everything behind it. */
static void end(struct capture *capture, const char *state)
{
	drop_analyzer(capture, strcmp(state, "failed") == 0);
	capture->phase = CAPTURE_ENDED;
	capture->record.state = state;
	json_t *record = record_to_json(&capture->record);
	if (capture->discard) {
		store_forget(capture->captures->options.store, capture->folder.id);
	} else {
		capture_keep(capture);
	}
	if (!capture->silent) {
		bool failed = capture->record.error != NULL;
		capture_publish(capture, terminal_event(capture, failed), EVENTS_LOSSLESS,
			failed ? record_failed(&capture->record) : record_finished(&capture->record));
	}
	if (capture->recovery != NULL && !capture->discard) {
		capture_publish(capture, EVENT_CAPTURE_RECOVERED, EVENTS_LOSSLESS,
			json_pack("{s:s}", "capture_id", capture->record.id));
	}
	log_write(capture->captures->options.log, LOG_INFO, "capture", "%s %s", capture->record.id,
		capture->silent ? "was undone" : state);
	capture_dispose(capture, capture->discard ? NULL : record);
	json_decref(record);
}

void ending_finish(struct capture *capture)
{
	end(capture, "finished");
}

/* With whatever was kept: the journal always is. */
void ending_fail(struct capture *capture, const struct error *err)
{
	artifacts_discard(&capture->artifacts);
	capture->record.error = error_to_json(err);
	if (!capture->silent && err->code != ERROR_CANCELLED) {
		log_write(capture->captures->options.log, LOG_WARN, "capture", "%s failed: %s",
			capture->record.id, err->message);
	}
	end(capture, "failed");
}

/* Worker: a large journal takes its time. */
static void discard_files(uv_work_t *work)
{
	struct capture *capture = work->data;
	artifacts_discard(&capture->artifacts);
	capture->commit_ok = store_folder_discard(&capture->folder, &capture->commit_error);
}

static void discarded(uv_work_t *work, int status)
{
	struct capture *capture = work->data;
	struct error err = {0};
	(void)status;
	if (!capture->commit_ok) {
		log_write(capture->captures->options.log, LOG_WARN, "capture",
			"%s could not be deleted: %s", capture->record.id, capture->commit_error.message);
	}
	error_set(&err, ERROR_CANCELLED, "the capture %s was discarded", capture->record.id);
	ending_fail(capture, &err);
}

void ending_cancel(struct capture *capture)
{
	drop_analyzer(capture, true);
	capture->phase = CAPTURE_DELETING;
	capture->work.data = capture;
	uv_queue_work(capture->captures->options.loop, &capture->work, discard_files, discarded);
}

/* Milliseconds with one decimal, of a number of nanoseconds. */
#define MS_FORMAT     "%" PRIu64 ".%" PRIu64 " ms"
#define MS_VALUES(ns) (uint64_t)(ns) / 1000000, (uint64_t)(ns) / 100000 % 10

/* It was over before it could be seen that the kernel hides it. */
static bool was_hidden(const struct record *record)
{
	const char *program = json_string_value(json_array_get(record->argv.texts, 0));
	return program != NULL &&
		   target_program_is_hidden(program, record->cwd != NULL ? record->cwd : "/");
}

static void explain_no_samples(const struct capture *capture, struct error *err)
{
	const struct record *record = &capture->record;
	uint64_t cpu_ns = capture->cpu_time_ns, period_ns = record->effective.period_ns;
	bool has_exited = strcmp(record->reason, "target_exited") == 0;
	bool is_privileged = strcmp(record->reason, "target_privileged") == 0;
	if (is_privileged || (has_exited && cpu_ns < period_ns && was_hidden(record))) {
		error_set(err, ERROR_TARGET_PRIVILEGED,
			"process %d runs a program with other rights than ours (set-user-id, or not readable), "
			"the kernel does not let it be sampled",
			(int)record->pid);
		error_hint(err, "%s",
			geteuid() == 0
				? "profile a copy of the program without its set-user-id and set-group-id bits"
				: "run profd as root, or profile a copy of the program that you own");
		return;
	}
	const char *what = has_exited ? "the target ended after" : "the target used";
	if (capture->started_ns == 0 && cpu_ns == 0) {
		error_set(err, ERROR_NO_SAMPLES, "the target %s",
			has_exited ? "ended before its program began" : "had not begun to run");
		error_hint(err, "let the held program run while it is sampled");
	} else if (cpu_ns < period_ns) {
		error_set(err, ERROR_NO_SAMPLES,
			"%s " MS_FORMAT " of CPU time, less than one sampling period of " MS_FORMAT, what,
			MS_VALUES(cpu_ns), MS_VALUES(period_ns));
		error_hint(err, has_exited ? "give it more work, or raise hz"
								   : "sample for longer, while the program computes");
	} else {
		error_set(err, ERROR_NO_SAMPLES,
			"%s " MS_FORMAT " of CPU time, and none of it could be sampled", what,
			MS_VALUES(cpu_ns));
		error_hint(err, record->effective.kernel_sampled
							? "raise hz, or sample for longer"
							: "time in the kernel is not sampled here: set "
							  "kernel.perf_event_paranoid to 1 or lower");
	}
	error_detail(err, has_exited ? "target_exited" : "idle");
}

static void fail_without_samples(struct capture *capture)
{
	struct error err = {0};
	if (capture->recovery != NULL) {
		error_set(&err, ERROR_INTERRUPTED, "profd ended before the capture %s had a sample",
			capture->record.id);
	} else if (strcmp(capture->record.reason, "disk_full") == 0) {
		err = capture->journal_error;
		error_wrap(&err, "no sample could be kept");
	} else {
		explain_no_samples(capture, &err);
	}
	ending_fail(capture, &err);
}

/* Worker: gives complete files their final names. The journal is synced last: nobody waits for it at the names. */
static void commit(uv_work_t *work)
{
	struct capture *capture = work->data;
	capture->commit_ok = artifacts_commit(&capture->artifacts, &capture->commit_error) &&
						 files_sync(capture->journal_fd, &capture->commit_error);
	capture->was_moved = !store_folder_is_at_its_path(&capture->folder);
}

static void committed(uv_work_t *work, int status)
{
	struct capture *capture = work->data;
	(void)status;
	if (capture->discard) {
		ending_cancel(capture);
	} else if (!capture->commit_ok) {
		ending_fail(capture, &capture->commit_error);
	} else {
		if (capture->was_moved) {
			record_warn(&capture->record, "folder_moved",
				"the capture's folder was moved or replaced while it was written",
				"its files are in the folder that was moved, not at the paths that are told");
		}
		end(capture, "finished");
	}
}

static void analyzer_progressed(void *context, unsigned permille, bool is_writing)
{
	struct capture *capture = context;
	const char *state = is_writing ? "writing" : "symbolizing";
	bool changed = strcmp(state, capture->record.state) != 0;
	uint64_t now = clock_monotonic_ns();
	if (capture->phase != CAPTURE_ANALYZING || (!changed && now < capture->next_progress_ns)) {
		return;
	}
	capture->record.state = state;
	capture->next_progress_ns = now + capture->progress_ms * 1000000;
	capture_publish_progress(capture, (int)permille);
}

static void analyzer_gave_up(struct capture *capture, const struct error *err)
{
	drop_analyzer(capture, true);
	if (err->code == ERROR_DISK_FULL) {
		ending_fail(capture, err);
		return;
	}
	log_write(capture->captures->options.log, LOG_WARN, "capture", "%s: %s%s", capture->record.id,
		err->message, capture->symbols ? "; it is tried again without symbols" : "");
	struct error again = *err;
	if (!capture->symbols) {
		again.code = ERROR_INTERNAL;
		error_wrap(&again, "the journal could not be analyzed");
		error_hint(
			&again, "the journal was kept as %.300s/" ARTIFACT_JOURNAL, capture->folder.path);
		ending_fail(capture, &again);
		return;
	}
	error_set(&again, ERROR_INTERNAL, "%s; functions are not named", err->message);
	error_hint(&again,
		"the journal was kept: profctl symbolize %s (SymbolizeCapture) makes the names",
		capture->record.id);
	record_warn(&capture->record, "analyzer_failed", again.message, again.hint);
	capture->record.state = "symbolizing";
	again = (struct error){0};
	if (!artifacts_create(&capture->artifacts, &again)) {
		ending_fail(capture, &again);
		return;
	}
	analyze(capture, false);
}

static void analyzer_failed(void *context, const struct error *err)
{
	struct capture *capture = context;
	if (capture->phase == CAPTURE_ANALYZING) {
		analyzer_gave_up(capture, err);
	} else {
		/* It ended before it was given anything to do. */
		capture->analyzer_error = *err;
		drop_analyzer(capture, true);
	}
}

static void analyzer_done(void *context, const json_t *body)
{
	struct capture *capture = context;
	struct error err = {0};
	if (!record_take_done(&capture->record, body, &err)) {
		analyzer_gave_up(capture, &err);
		return;
	}
	drop_analyzer(capture, false);
	if (capture->record.samples == 0) {
		fail_without_samples(capture);
		return;
	}
	capture->phase = CAPTURE_COMMITTING;
	capture->work.data = capture;
	uv_queue_work(capture->captures->options.loop, &capture->work, commit, committed);
}

static const struct analyzer_ops analyzer_ops = {
	.progress = analyzer_progressed,
	.done = analyzer_done,
	.failed = analyzer_failed,
};

static void start_analyzer(struct capture *capture)
{
	struct analyzer_options options = {
		.loop = capture->captures->options.loop,
		.path = capture->captures->analyzer_path,
		.ops = &analyzer_ops,
		.context = capture,
		.stall_ms = CAPTURE_ANALYZER_STALL_MS,
	};
	capture->analyzer_error = (struct error){0};
	capture->analyzer = analyzer_start(&options, &capture->analyzer_error);
}

static void feed(struct capture *capture)
{
	struct analyzer_input input = {
		.capture_id = capture->record.id,
		.symbols = capture->symbols,
		.has_same_kernel = capture->recovery == NULL || recovery_has_same_kernel(capture->recovery),
		.journal_fd = capture->journal_fd,
		.kernel_symbols_fd = capture->symbols ? capture->kernel_symbols_fd : -1,
		.kept_symbols_fd = -1,
		.artifacts = &capture->artifacts,
	};
	if (capture->symbols && capture->recovery != NULL) {
		input.images = recovery_images(capture->recovery, &input.image_count);
	} else if (capture->symbols) {
		input.images = pipeline_images(capture->pipeline, &input.image_count);
	}
	json_decref(capture->facts);
	capture->facts = record_facts(&capture->record);
	input.facts = capture->facts;
	analyzer_feed(capture->analyzer, &input);
}

static void analyze(struct capture *capture, bool symbols)
{
	capture->phase = CAPTURE_ANALYZING;
	capture->symbols = symbols;
	if (capture->analyzer == NULL && capture->analyzer_error.code == ERROR_NONE) {
		start_analyzer(capture);
	}
	if (capture->analyzer == NULL) {
		struct error err = capture->analyzer_error;
		capture->analyzer_error = (struct error){0};
		analyzer_gave_up(capture, &err);
		return;
	}
	feed(capture);
}

void ending_analyze(struct capture *capture)
{
	capture_publish_progress(capture, 0);
	analyze(capture, true);
}

/* The inputs that are the same for each try. */
static bool open_inputs(struct capture *capture, struct error *err)
{
	capture->journal_fd = files_open(capture->folder.fd, ARTIFACT_JOURNAL, err);
	if (capture->record.effective.kernel_frames) {
		/* Optional: without it kernel frames stay addresses. */
		capture->kernel_symbols_fd = target_open_kernel_symbols();
	}
	return capture->journal_fd >= 0;
}

/* Worker: everything about the end of sampling that blocks. */
static void stop_sampling(uv_work_t *work)
{
	struct capture *capture = work->data;
	capture->ops->stop(capture->sampler);
	pipeline_end(capture->pipeline, capture->record.reason, capture->ended_ns);
	journal_writer_destroy(capture->writer, false, &capture->journal_error);
	capture->cpu_time_ns = pipeline_cpu_time_ns(capture->pipeline);
}

/* True when it ends here, without artifacts. */
static bool ends_without_analysis(struct capture *capture)
{
	struct record *record = &capture->record;
	if (capture->discard) {
		ending_cancel(capture);
	} else if (capture->failure.code != ERROR_NONE) {
		ending_fail(capture, &capture->failure);
	} else if (capture->journal_error.code != ERROR_NONE &&
			   capture->journal_error.code != ERROR_DISK_FULL) {
		ending_fail(capture, &capture->journal_error);
	} else if (record->samples == 0) {
		fail_without_samples(capture);
	} else {
		return false;
	}
	return true;
}

/* A program behind a foreign gate may be over before anybody saw it begin. */
static void date_back(struct capture *capture)
{
	const struct pipeline_counters *counters = pipeline_counters(capture->pipeline);
	uint64_t first_ns = atomic_load_explicit(&counters->first_sample_ns, memory_order_relaxed);
	if (capture->started_ns == 0 && first_ns != 0 && first_ns <= capture->ended_ns) {
		capture->started_ns = capture->ended_ns;
		capture->record.started_unix_us = capture->record.ended_unix_us;
	}
	capture_date_back(capture);
	if (!capture->is_dated && first_ns != 0 && first_ns < capture->started_ns) {
		capture->record.started_unix_us -= (capture->started_ns - first_ns) / 1000;
		capture->started_ns = first_ns;
	}
	if (capture->started_ns != 0) {
		capture->record.elapsed_ms = (capture->ended_ns - capture->started_ns) / 1000000;
	}
}

static bool is_journal_empty(const struct capture *capture)
{
	struct stat status;
	return fstatat(capture->folder.fd, ARTIFACT_JOURNAL, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
		   status.st_size == 0;
}

static void sampling_stopped(uv_work_t *work, int status)
{
	struct capture *capture = work->data;
	(void)status;
	capture->sampler = NULL;
	capture->writer = NULL;
	capture_take_counters(capture);
	date_back(capture);
	if (capture->journal_error.code == ERROR_DISK_FULL) {
		capture->record.reason = "disk_full";
		if (is_journal_empty(capture)) {
			capture->record.samples = 0; /* what was counted is nowhere */
		}
	}
	if (ends_without_analysis(capture)) {
		return;
	}
	capture_announce(capture);
	struct error err = {0};
	if (!open_inputs(capture, &err)) {
		ending_fail(capture, &err);
		return;
	}
	ending_analyze(capture);
}

/* The analyzer starts while the sampler still stops: it will be ready when the journal is. */
static void prepare(struct capture *capture)
{
	if (artifacts_create(&capture->artifacts, &capture->failure)) {
		start_analyzer(capture);
	}
}

void ending_begin(struct capture *capture, const char *reason)
{
	if (capture->phase > CAPTURE_SAMPLING) {
		return;
	}
	uint64_t now = clock_monotonic_ns();
	if (capture->phase == CAPTURE_SAMPLING) {
		capture_announce(capture);
		capture->record.elapsed_ms = (now - capture->started_ns) / 1000000;
	}
	capture->phase = CAPTURE_STOPPING;
	capture->ended_ns = now;
	capture->record.ended_unix_us = clock_unix_us();
	capture->record.reason = reason;
	capture->record.state = "symbolizing";
	uv_timer_stop(&capture->tick);
	uv_timer_stop(&capture->duration);
	uv_timer_stop(&capture->defer);
	process_unwatch(&capture->watch);
	capture->work.data = capture;
	uv_queue_work(capture->captures->options.loop, &capture->work, stop_sampling, sampling_stopped);
	if (!capture->discard && capture->failure.code == ERROR_NONE) {
		prepare(capture);
		capture_keep(capture);
	}
}

static void discard_now(uv_timer_t *timer)
{
	struct capture *capture = timer->data;
	if (capture->phase == CAPTURE_ANALYZING) {
		ending_cancel(capture);
	}
}

void ending_discard(struct capture *capture)
{
	capture->discard = true;
	if (capture->phase == CAPTURE_ANALYZING) {
		drop_analyzer(capture, true);
		uv_timer_start(&capture->defer, discard_now, 0, 0);
	}
}
