#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/files.h"
#include "capture/images.h"
#include "capture/recording.h"
#include "capture/salvage.h"
#include "capture/trace_recovery.h"
#include "protocol/limits.h"
#include "protocol/names.h"
#include "store/contents.h"
#include "target/target.h"

/*
 * Captures that another daemon left unfinished: killed, or ended with them. They are finished one after another, each from its journal:
 *
 *   waiting ──its turn──► a worker reads the journal and opens the images ──► analyzed as any other ──► CaptureRecovered
 */

/* A recovery that ends the daemon must not do so at every start. */
#define ATTEMPTS      10
#define ATTEMPTS_NAME "recoveries" /* the record's member, on disk only */

struct recovery {
	json_t *kept; /* owned: the record as it was found */
	struct salvage salvage;
	bool is_read;
	struct error err; /* why not */
};

void recovery_destroy(struct recovery *recovery)
{
	if (recovery != NULL) {
		salvage_finish(&recovery->salvage);
		json_decref(recovery->kept);
		free(recovery);
	}
}

const struct pipeline_image *recovery_images(const struct recovery *recovery, size_t *count)
{
	*count = recovery->salvage.opened.len;
	return recovery->salvage.opened.items;
}

bool recovery_has_same_kernel(const struct recovery *recovery)
{
	return salvage_is_of_this_boot(&recovery->salvage);
}

/* "2026-11-30 03:15:04.123 UTC" */
static void describe_time(uint64_t unix_us, char text[64])
{
	time_t seconds = (time_t)(unix_us / 1000000);
	struct tm tm = {0};
	gmtime_r(&seconds, &tm);
	size_t len = strftime(text, 64, "%Y-%m-%d %H:%M:%S", &tm);
	snprintf(text + len, 64 - len, ".%03u UTC", (unsigned)(unix_us / 1000 % 1000));
}

void recovery_warn(struct capture *capture, uint64_t until_us, bool has_end)
{
	char until[64], message[256];
	describe_time(until_us, until);
	snprintf(message, sizeof(message),
		has_end
			? "profd ended while this capture was being written; it was gathered up to its end at "
			  "%s"
			: "profd ended while this capture ran; what was gathered up to %s is here",
		until);
	record_warn(&capture->record, "recovered", message, NULL);
}

/* The clock's times, as far as the journal knows them. */
static void set_times(struct capture *capture)
{
	struct record *record = &capture->record;
	const struct salvage *salvage = &capture->recovery->salvage;
	uint64_t until_us = salvage_unix_us(salvage, salvage->last_ns);
	if (record->started_unix_us == 0 || record->started_unix_us > until_us) {
		record->started_unix_us = salvage_unix_us(salvage, salvage->first_ns);
	}
	record->ended_unix_us = until_us;
	record->elapsed_ms = (until_us - record->started_unix_us) / 1000;
	recovery_warn(capture, until_us, salvage->has_end);
}

/* As commands name a build: an integer and its digits are the same. */
static char *key_of(const json_t *build_id)
{
	char *key = NULL;
	if (json_is_string(build_id)) {
		return strdup(json_string_value(build_id));
	}
	if (json_is_integer(build_id) &&
		asprintf(&key, "%" JSON_INTEGER_FORMAT, json_integer_value(build_id)) < 0) {
		return NULL;
	}
	return key;
}

/* A capture that was killed before its record was on the disk: the journal knows what was asked for. */
static void take_facts(struct capture *capture)
{
	struct salvage *salvage = &capture->recovery->salvage;
	struct record *record = &capture->record;
	if (record->pid == 0 && salvage->capture != NULL) {
		json_t *kept = record_kept_of_facts(salvage->capture);
		struct record fresh;
		if (record_restore(&fresh, kept)) {
			fresh.id = record->id;
			fresh.folder = record->folder;
			fresh.artifacts = record->artifacts;
			fresh.reason = record->reason;
			record_update(&fresh, record->label, record->is_pinned);
			record_finish(record);
			*record = fresh;
			free(capture->build_key);
			capture->build_key = key_of(record->build_id);
		} else {
			record_finish(&fresh);
		}
		json_decref(kept);
	}
	if (record->effective.period_ns == 0 && salvage->period_ns != 0) {
		record->effective.period_ns = salvage->period_ns;
		record->effective.hz = (1000000000 + salvage->period_ns / 2) / salvage->period_ns;
	}
}

static bool create_artifacts(struct capture *capture, struct error *err)
{
	artifacts_init(&capture->artifacts, capture->folder.fd);
	artifacts_want(&capture->artifacts, json_object_get(capture->record.options, "formats"));
	return artifacts_create(&capture->artifacts, err);
}

void recovery_interrupt(struct capture *capture, const char *why)
{
	struct error err = {0};
	error_set(&err, ERROR_INTERRUPTED, "profd ended before the capture %s had ended, and %s",
		capture->record.id, why);
	bool is_kept = capture->tracing == NULL; /* of samples; without a document nothing is */
	error_hint(&err, "record it again%s", is_kept ? "; what was kept is in its folder" : "");
	ending_fail(capture, &err);
}

static void fail_interrupted(struct capture *capture)
{
	const struct recovery *recovery = capture->recovery;
	recovery_interrupt(
		capture, recovery->is_read ? "its journal holds no samples" : recovery->err.message);
}

/* What says nothing about the capture but about us: it fails with that. */
static bool is_trouble(const struct error *err)
{
	return err->code == ERROR_LIMIT_EXCEEDED || err->code == ERROR_DISK_FULL ||
		   strcmp(err->detail, "eio") == 0;
}

static void analyze(struct capture *capture)
{
	struct error err = {0};
	take_facts(capture);
	set_times(capture);
	if (!create_artifacts(capture, &err)) {
		ending_fail(capture, &err);
		return;
	}
	if (capture->record.effective.kernel_frames &&
		salvage_is_of_this_boot(&capture->recovery->salvage)) {
		capture->kernel_symbols_fd = target_open_kernel_symbols();
	}
	ending_analyze(capture);
}

/* What the last daemon made of the journal goes: nobody was told of it. */
static bool clear_outputs(const struct store_folder *folder, struct error *err)
{
	return contents_remove(folder->fd, CONTENTS_TEMPORARIES | CONTENTS_OUTPUTS, err) &&
		   contents_remove(folder->record_fd, CONTENTS_TEMPORARIES, err);
}

/* Worker. */
static void read_journal(uv_work_t *work)
{
	struct capture *capture = work->data;
	struct recovery *recovery = capture->recovery;
	struct error err = {0};
	if (capture->record.trace != NULL) {
		return; /* why, says err */
	}
	if (capture->folder.fd >= 0 && !clear_outputs(&capture->folder, &err) &&
		recovery->err.code == ERROR_NONE) {
		recovery->err = err;
	}
	if (capture->discard || recovery->err.code != ERROR_NONE) {
		return;
	}
	capture->journal_fd = files_open(capture->folder.fd, ARTIFACT_JOURNAL, &recovery->err);
	recovery->is_read = capture->journal_fd >= 0 &&
						salvage_read(&recovery->salvage, capture->journal_fd, &recovery->err);
	if (recovery->is_read && recovery->salvage.samples > 0) {
		salvage_open_images(&recovery->salvage, images_fd_limit());
	}
}

static void journal_read(uv_work_t *work, int status)
{
	struct capture *capture = work->data;
	struct recovery *recovery = capture->recovery;
	(void)status;
	capture->record.reason = "recovered";
	if (capture->discard) {
		ending_cancel(capture);
	} else if (!recovery->is_read && is_trouble(&recovery->err)) {
		ending_fail(capture, &recovery->err);
	} else if (!recovery->is_read || recovery->salvage.samples == 0) {
		take_facts(capture);
		fail_interrupted(capture);
	} else {
		analyze(capture);
	}
}

/* How often it was tried is on the disk before it is tried. */
static void count_attempt(struct capture *capture)
{
	struct recovery *recovery = capture->recovery;
	json_int_t attempts = json_integer_value(json_object_get(recovery->kept, ATTEMPTS_NAME)) + 1;
	if (attempts > ATTEMPTS) {
		error_set(&recovery->err, ERROR_INTERRUPTED,
			"its recovery was begun %d times and never ended", ATTEMPTS);
		return;
	}
	json_t *record = record_to_json(&capture->record);
	struct error err = {0};
	json_object_set_new(record, ATTEMPTS_NAME, json_integer(attempts));
	if (!store_put(capture->captures->options.store, &capture->folder, record, &err)) {
		log_write(capture->captures->options.log, LOG_WARN, "capture", "the record of %s: %s",
			capture->record.id, err.message);
	}
	json_decref(record);
}

static void begin(struct capture *capture)
{
	struct captures *captures = capture->captures;
	struct recovery *recovery = capture->recovery;
	const char *path = json_string_value(json_object_get(recovery->kept, "folder"));
	capture->phase = CAPTURE_STOPPING;
	captures->waiting--;
	char id[sizeof(capture->folder.id)];
	memcpy(id, capture->folder.id, sizeof(id));
	if (store_reopen(captures->options.store, id, path, &capture->folder, &recovery->err)) {
		count_attempt(capture);
	}
	log_write(captures->options.log, LOG_INFO, "capture", "the recovery of %s begins", id);
	if (capture->record.trace != NULL && recovery->err.code == ERROR_NONE &&
		trace_recovery_begin(capture, &recovery->err)) {
		return;
	}
	capture->work.data = capture;
	uv_queue_work(captures->options.loop, &capture->work, read_journal, journal_read);
}

void recovery_next(struct captures *captures)
{
	struct capture *capture = captures->first;
	if (captures->is_ending || captures->recovering > captures->waiting) {
		return;
	}
	while (capture != NULL && capture->phase != CAPTURE_WAITING) {
		capture = capture->next;
	}
	if (capture != NULL) {
		begin(capture);
	}
}

/* NULL when memory is out. */
static struct capture *create(struct captures *captures, const char *id, json_t *kept)
{
	struct capture *capture = calloc(1, sizeof(*capture));
	struct recovery *recovery = calloc(1, sizeof(*recovery));
	if (capture == NULL || recovery == NULL) {
		free(capture);
		free(recovery);
		return NULL;
	}
	capture->captures = captures;
	capture->recovery = recovery;
	capture->phase = CAPTURE_WAITING;
	capture->folder = STORE_FOLDER_NONE;
	capture->journal_fd = -1;
	capture->kernel_symbols_fd = -1;
	capture->progress_ms = LIMIT_PROGRESS_MS_DEFAULT;
	artifacts_init(&capture->artifacts, -1);
	recovery->kept = json_incref(kept);
	memcpy(capture->folder.id, id, strlen(id) + 1);
	const char *path = json_string_value(json_object_get(kept, "folder"));
	snprintf(capture->folder.path, sizeof(capture->folder.path), "%s", path != NULL ? path : "");
	if (!record_restore(&capture->record, kept)) {
		capture_release(capture);
		return NULL;
	}
	capture->record.id = capture->folder.id;
	capture->record.folder = capture->folder.path;
	capture->record.artifacts = &capture->artifacts;
	capture->build_key = key_of(capture->record.build_id);
	return capture;
}

/* Takes up every unfinished capture of the store. */
static void gather(struct captures *captures)
{
	struct store_entry entry = {0};
	while (store_look(captures->options.store, entry.id, &entry)) {
		if (entry.has_ended) {
			continue;
		}
		struct capture *capture =
			create(captures, entry.id, store_get(captures->options.store, entry.id));
		if (capture == NULL) {
			log_write(captures->options.log, LOG_ERROR, "capture",
				"no memory to recover %s; the next start tries it again", entry.id);
			continue;
		}
		capture_init_handles(capture);
		captures_add(captures, capture);
		captures->waiting++;
	}
}

void captures_recover(struct captures *captures)
{
	gather(captures);
	deleting_resume(captures);
	retention_apply(captures, NULL);
	recovery_next(captures);
}
