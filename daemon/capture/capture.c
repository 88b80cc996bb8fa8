#include "capture/capture.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "capture/recording.h"
#include "protocol/clock.h"
#include "protocol/names.h"
#include "target/target.h"

/* A full disk and the journal's limit are noticed so soon, however rarely progress is told. */
#define TICK_MS 250

struct captures *captures_create(const struct captures_options *options, struct error *err)
{
	struct captures *captures = calloc(1, sizeof(*captures));
	if (captures == NULL || (captures->analyzer_path = strdup(options->analyzer_path)) == NULL) {
		free(captures);
		error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for the captures");
		return NULL;
	}
	captures->options = *options;
	captures->codes = codes_create();
	if (captures->codes == NULL) {
		free(captures->analyzer_path);
		free(captures);
		error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for the captures");
		return NULL;
	}
	return captures;
}

void captures_hold(struct captures *captures)
{
	captures->works++;
}

static void free_when_over(struct captures *captures)
{
	if (captures->is_closed && captures->works == 0) {
		codes_release(captures->codes);
		free(captures->analyzer_path);
		free(captures);
	}
}

void captures_release(struct captures *captures)
{
	captures->works--;
	free_when_over(captures);
}

void captures_destroy(struct captures *captures)
{
	if (captures == NULL) {
		return;
	}
	captures_symbolize_stop(captures);
	captures->is_closed = true;
	deleting_finish(captures);
	while (captures->first != NULL) {
		struct capture *capture = captures->first;
		captures->first = capture->next;
		capture_close_handles(capture);
	}
	free_when_over(captures);
}

void captures_abandon(struct captures *captures)
{
	for (struct capture *capture = captures->first; capture != NULL; capture = capture->next) {
		if (capture->analyzer != NULL) {
			analyzer_kill(capture->analyzer);
		}
		if (capture->tracing != NULL) {
			tracing_abandon(capture->tracing);
		}
	}
	symbolizing_abandon(captures);
}

size_t captures_running(const struct captures *captures)
{
	return captures->count - (captures->is_ending ? captures->waiting : 0);
}

void captures_add(struct captures *captures, struct capture *capture)
{
	struct capture **link = &captures->first;
	while (*link != NULL) {
		link = &(*link)->next;
	}
	*link = capture;
	captures->count++;
	captures->recovering += capture->recovery != NULL;
}

struct capture *captures_next(struct captures *captures, struct capture *after)
{
	struct capture *capture = after != NULL ? after->next : captures->first;
	while (capture != NULL && capture->silent) {
		capture = capture->next;
	}
	return capture;
}

struct capture *captures_find(struct captures *captures, const char *capture_id)
{
	struct capture *capture = captures_next(captures, NULL);
	while (capture != NULL && strcmp(capture->record.id, capture_id) != 0) {
		capture = captures_next(captures, capture);
	}
	return capture;
}

const char *capture_id(const struct capture *capture)
{
	return capture->record.id;
}

json_t *capture_effective(const struct capture *capture)
{
	return record_effective(&capture->record);
}

json_t *capture_record(const struct capture *capture)
{
	return record_to_json(&capture->record);
}

void capture_publish(
	struct capture *capture, const char *event, enum events_class class, json_t *params)
{
	struct events_subject subject = {capture->build_key, capture->record.id};
	if (capture->silent) {
		json_decref(params);
		return;
	}
	events_publish(capture->captures->options.events, event, class, &subject, params);
}

void capture_announce(struct capture *capture)
{
	if (!capture->is_announced) {
		capture->is_announced = true;
		capture_publish(capture, EVENT_SAMPLING_PROFILE_STARTED, EVENTS_LOSSLESS,
			record_started(&capture->record));
	}
}

void capture_take_counters(struct capture *capture)
{
	const struct pipeline_counters *counters = pipeline_counters(capture->pipeline);
	struct record *record = &capture->record;
	record->samples = atomic_load_explicit(&counters->samples, memory_order_relaxed);
	record->lost = atomic_load_explicit(&counters->lost, memory_order_relaxed);
	record->threads = atomic_load_explicit(&counters->threads, memory_order_relaxed);
	record->stacks = atomic_load_explicit(&counters->stacks, memory_order_relaxed);
	record->truncated = atomic_load_explicit(&counters->truncated, memory_order_relaxed);
}

void capture_publish_progress(struct capture *capture, int permille)
{
	uint64_t elapsed_ms = capture->record.elapsed_ms;
	if (capture->phase == CAPTURE_SAMPLING) {
		elapsed_ms = (clock_monotonic_ns() - capture->started_ns) / 1000000;
	}
	if (permille < 0 && capture->record.duration_ms != 0) {
		uint64_t part = elapsed_ms * 1000 / capture->record.duration_ms;
		permille = part < 1000 ? (int)part : 1000;
	}
	capture_publish(capture, EVENT_SAMPLING_PROFILE_PROGRESS, EVENTS_LATEST,
		record_progress(&capture->record, elapsed_ms, permille));
}

void capture_keep(struct capture *capture)
{
	struct error err = {0};
	json_t *record = record_to_json(&capture->record);
	if (!store_put(capture->captures->options.store, &capture->folder, record, &err)) {
		log_write(capture->captures->options.log, LOG_WARN, "capture", "the record of %s: %s",
			capture->record.id, err.message);
	}
	json_decref(record);
}

static void tick(uv_timer_t *timer)
{
	struct capture *capture = timer->data;
	uint64_t now = clock_monotonic_ns();
	capture_date_back(capture);
	if (now >= capture->next_progress_ns) {
		capture->next_progress_ns = now + capture->progress_ms * 1000000;
		capture_take_counters(capture);
		capture_publish_progress(capture, -1);
	}
	struct error err = {0};
	if (journal_writer_failed(capture->writer)) {
		ending_begin(capture, "disk_full");
	} else if (!target_is_ours(capture->record.pid, &err) && err.code == ERROR_NOT_PERMITTED) {
		ending_begin(capture, "target_privileged");
	} else if (journal_writer_is_full(capture->writer)) {
		ending_begin(capture, "limit");
	}
}

static void duration_over(uv_timer_t *timer)
{
	ending_begin(timer->data, "duration");
}

static void start_duration(struct capture *capture)
{
	uint64_t passed_ms = (clock_monotonic_ns() - capture->started_ns) / 1000000;
	uint64_t duration_ms = capture->record.duration_ms;
	if (duration_ms != 0 && capture->phase == CAPTURE_SAMPLING) {
		/* The loop's time may be old, and is that of the begun millisecond: without both it would end early. */
		uv_update_time(capture->captures->options.loop);
		uv_timer_start(&capture->duration, duration_over,
			duration_ms > passed_ms ? duration_ms - passed_ms + 1 : 0, 0);
	}
}

/* Of a program behind a gate we notice the beginning late: we are told by nobody, or were busy. */
void capture_date_back(struct capture *capture)
{
	const struct pipeline_counters *counters = pipeline_counters(capture->pipeline);
	uint64_t exec_ns = atomic_load_explicit(&counters->first_exec_ns, memory_order_relaxed);
	if (capture->is_dated || exec_ns == 0 || capture->started_ns == 0) {
		return;
	}
	capture->is_dated = true;
	if (exec_ns >= capture->armed_ns && exec_ns < capture->started_ns) {
		capture->record.started_unix_us -= (capture->started_ns - exec_ns) / 1000;
		capture->started_ns = exec_ns;
		start_duration(capture);
	}
}

void capture_begin_sampling(struct capture *capture)
{
	uint64_t tick_ms = capture->progress_ms < TICK_MS ? capture->progress_ms : TICK_MS;
	capture->phase = CAPTURE_SAMPLING;
	capture->record.state = "sampling";
	capture->started_ns = clock_monotonic_ns();
	capture->record.started_unix_us = clock_unix_us();
	capture->next_progress_ns = capture->started_ns + capture->progress_ms * 1000000;
	uv_timer_start(&capture->tick, tick, tick_ms, tick_ms);
	start_duration(capture);
	capture_date_back(capture);
}

/* Life and death. */

void capture_init_handles(struct capture *capture)
{
	uv_timer_t *timers[] = {&capture->tick, &capture->duration, &capture->defer};
	for (size_t i = 0; i < sizeof(timers) / sizeof(timers[0]); i++) {
		uv_timer_init(capture->captures->options.loop, timers[i]);
		timers[i]->data = capture;
		capture->handles++;
	}
	captures_hold(capture->captures);
}

void capture_release(struct capture *capture)
{
	pipeline_destroy(capture->pipeline);
	artifacts_close(&capture->artifacts);
	if (capture->journal_fd >= 0) {
		close(capture->journal_fd);
	}
	if (capture->kernel_symbols_fd >= 0) {
		close(capture->kernel_symbols_fd);
	}
	json_decref(capture->facts);
	store_folder_close(&capture->folder);
	tracing_destroy(capture->tracing);
	recovery_destroy(capture->recovery);
	record_finish(&capture->record);
	free(capture->build_key);
	free(capture);
}

/* Worker. */
static void give_memory_back(uv_work_t *work)
{
	(void)work;
	memory_give_back();
}

static void memory_given(uv_work_t *work, int status)
{
	struct captures *captures = work->data;
	(void)status;
	captures->is_giving = false;
	captures_release(captures);
}

void captures_give_memory_back(struct captures *captures)
{
	if (captures->is_closed || captures->is_giving) {
		return;
	}
	captures->is_giving = true;
	captures->giving.data = captures;
	captures_hold(captures);
	uv_queue_work(captures->options.loop, &captures->giving, give_memory_back, memory_given);
}

static void handle_closed(struct capture *capture)
{
	struct captures *captures = capture->captures;
	if (--capture->handles == 0) {
		capture_release(capture);
		captures_give_memory_back(captures);
		captures_release(captures);
	}
}

static void timer_closed(uv_handle_t *handle)
{
	handle_closed(handle->data);
}

void capture_exit_closed(struct pidfd_watch *watch)
{
	handle_closed(watch->context);
}

void capture_close_handles(struct capture *capture)
{
	uv_timer_t *timers[] = {&capture->tick, &capture->duration, &capture->defer};
	for (size_t i = 0; i < sizeof(timers) / sizeof(timers[0]); i++) {
		uv_close((uv_handle_t *)timers[i], timer_closed);
	}
	if (capture->has_exit_watch) {
		pidfd_watch_close(&capture->exit);
	}
}

static void tell_waiters(struct capture *capture, const json_t *record)
{
	while (capture->waits != NULL) {
		struct capture_wait *wait = capture->waits;
		capture->waits = wait->next;
		wait->capture = NULL;
		wait->next = NULL;
		wait->ended(wait, record);
	}
}

static void remove_from_table(struct capture *capture)
{
	struct capture **link = &capture->captures->first;
	while (*link != capture) {
		link = &(*link)->next;
	}
	*link = capture->next;
	capture->captures->count--;
	capture->captures->recovering -= capture->recovery != NULL;
}

/* Worker: nobody waits for this. */
static void sync_record(uv_work_t *work)
{
	struct capture *capture = work->data;
	store_folder_sync(&capture->folder, NULL);
	capture->bytes = store_folder_bytes(&capture->folder);
}

static void record_synced(uv_work_t *work, int status)
{
	struct capture *capture = work->data;
	struct captures *captures = capture->captures;
	(void)status;
	if (!captures->is_closed) {
		store_set_bytes(captures->options.store, capture->folder.id, capture->bytes);
		retention_apply(captures, capture->folder.id);
	}
	handle_closed(capture);
	captures_release(captures);
}

void capture_dispose(struct capture *capture, const json_t *record)
{
	struct events_subject subject = {NULL, capture->record.id};
	struct captures *captures = capture->captures;
	bool was_recovery = capture->recovery != NULL;
	remove_from_table(capture);
	tell_waiters(capture, record);
	events_forget(captures->options.events, &subject);
	if (!capture->discard) {
		capture->handles++;
		captures_hold(captures);
		capture->work.data = capture;
		uv_queue_work(captures->options.loop, &capture->work, sync_record, record_synced);
	}
	capture_close_handles(capture);
	if (was_recovery) {
		recovery_next(captures);
	}
}

void capture_stop(struct capture *capture, const char *reason, bool discard)
{
	if (discard) {
		ending_discard(capture);
	}
	if (capture->recovery != NULL && strcmp(reason, "daemon_shutdown") == 0) {
		capture->captures->is_ending = true;
	}
	if (capture->tracing != NULL) {
		tracing_stop(capture, reason);
	} else {
		ending_begin(capture, reason);
	}
}

bool capture_update(struct capture *capture, const char *label, int pinned, struct error *err)
{
	if (capture->discard) {
		return error_set(
			err, ERROR_CAPTURE_NOT_FOUND, "the capture %s is being deleted", capture->record.id);
	}
	if (!record_update(&capture->record, label, pinned)) {
		return error_set(
			err, ERROR_LIMIT_EXCEEDED, "no memory for the label of capture %s", capture->record.id);
	}
	capture_keep(capture);
	return true;
}

void capture_cancel_armed(struct capture *capture)
{
	capture->silent = true;
	capture_stop(capture, "stopped", true);
}

void capture_wait(struct capture *capture, struct capture_wait *wait)
{
	struct capture_wait **link = &capture->waits;
	while (*link != NULL) {
		link = &(*link)->next;
	}
	wait->capture = capture;
	wait->next = NULL;
	*link = wait;
}

void capture_unwait(struct capture_wait *wait)
{
	if (wait->capture == NULL) {
		return;
	}
	struct capture_wait **link = &wait->capture->waits;
	while (*link != wait) {
		link = &(*link)->next;
	}
	*link = wait->next;
	wait->capture = NULL;
	wait->next = NULL;
}
