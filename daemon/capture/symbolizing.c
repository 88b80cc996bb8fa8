#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "capture/images.h"
#include "capture/recording.h"
#include "capture/salvage.h"
#include "protocol/limits.h"
#include "protocol/names.h"
#include "target/target.h"

/* So much larger a share of unnamed frames are names lost; below that, rounding and files of which little is left. */
#define NAMES_LOST 0.005

#define STAYS "the capture stays as it was: its artifacts hold all of its samples"

/*
 * Names made again for a capture that has ended, from its journal, the files that are still there, and what was known before:
 *
 *   a worker reads the journal and opens the images ──► the analyzer ──► a worker renames the artifacts ──► the record is kept
 *
 * Nobody is told by events: to the world the capture stays as it is until its new record is there. What goes wrong leaves it as it was.
 */
struct symbolizing {
	struct captures *captures;
	struct symbolizing *next;
	capture_symbolized_fn done;
	void *context;
	struct store_folder folder; /* owned */
	struct record record;
	struct artifacts artifacts;
	struct salvage salvage;
	struct analyzer *analyzer;                  /* NULL: none runs */
	int journal_fd, kept_fd, kernel_symbols_fd; /* owned; -1 */
	json_t *facts;                              /* owned; NULL */
	uv_work_t work;
	bool is_working;       /* on a worker */
	uint64_t kept_samples; /* of the capture as it is */
	uint64_t bytes;
	struct error err; /* the worker's, or why it is to end */
};

static void close_fd(int *fd)
{
	if (*fd >= 0) {
		close(*fd);
		*fd = -1;
	}
}

static void destroy(struct symbolizing *symbolizing)
{
	salvage_finish(&symbolizing->salvage);
	artifacts_close(&symbolizing->artifacts);
	close_fd(&symbolizing->journal_fd);
	close_fd(&symbolizing->kept_fd);
	close_fd(&symbolizing->kernel_symbols_fd);
	store_folder_close(&symbolizing->folder);
	record_finish(&symbolizing->record);
	json_decref(symbolizing->facts);
	free(symbolizing);
}

static void remove_from_table(struct symbolizing *symbolizing)
{
	struct symbolizing **link = &symbolizing->captures->symbolizings;
	while (*link != symbolizing) {
		link = &(*link)->next;
	}
	*link = symbolizing->next;
}

/* err NULL: record is the capture's new one (borrowed). */
static void end(struct symbolizing *symbolizing, const json_t *record, const struct error *err)
{
	const struct log *log = symbolizing->captures->options.log;
	if (symbolizing->analyzer != NULL) {
		analyzer_close(symbolizing->analyzer, err != NULL, NULL, NULL);
		symbolizing->analyzer = NULL;
	}
	if (err != NULL) {
		artifacts_discard(&symbolizing->artifacts);
		log_write(log, LOG_WARN, "capture", "the names of %s were not made again: %s",
			symbolizing->record.id, err->message);
	} else {
		log_write(
			log, LOG_INFO, "capture", "the names of %s were made again", symbolizing->record.id);
	}
	remove_from_table(symbolizing);
	symbolizing->done(symbolizing->context, record, err);
}

static void fail(struct symbolizing *symbolizing, const struct error *err)
{
	end(symbolizing, NULL, err);
	destroy(symbolizing);
}

/* True when it ends here: a worker failed, or it was cut short meanwhile. */
static bool has_failed(struct symbolizing *symbolizing)
{
	struct captures *captures = symbolizing->captures;
	bool failed = symbolizing->err.code != ERROR_NONE;
	symbolizing->is_working = false;
	if (failed) {
		fail(symbolizing, &symbolizing->err);
		captures_give_memory_back(captures);
	}
	captures_release(captures);
	return failed;
}

static void work(struct symbolizing *symbolizing, uv_work_cb run, uv_after_work_cb after)
{
	symbolizing->is_working = true;
	symbolizing->work.data = symbolizing;
	captures_hold(symbolizing->captures);
	uv_queue_work(symbolizing->captures->options.loop, &symbolizing->work, run, after);
}

/* --- the end --- */

static void sync_record(uv_work_t *work)
{
	struct symbolizing *symbolizing = work->data;
	store_folder_sync(&symbolizing->folder, NULL);
	symbolizing->bytes = store_folder_bytes(&symbolizing->folder);
}

static void record_synced(uv_work_t *work, int status)
{
	struct symbolizing *symbolizing = work->data;
	struct captures *captures = symbolizing->captures;
	(void)status;
	if (!captures->is_closed) {
		store_set_bytes(captures->options.store, symbolizing->folder.id, symbolizing->bytes);
	}
	destroy(symbolizing);
	captures_give_memory_back(captures);
	captures_release(captures);
}

/* Label and pin may have been changed meanwhile. */
static void take_changes(struct symbolizing *symbolizing)
{
	const json_t *kept = store_get(symbolizing->captures->options.store, symbolizing->folder.id);
	const char *label = json_string_value(json_object_get(kept, "label"));
	record_update(&symbolizing->record, label != NULL ? label : "",
		json_is_true(json_object_get(kept, "pinned")));
}

static void commit(uv_work_t *work)
{
	struct symbolizing *symbolizing = work->data;
	artifacts_commit(&symbolizing->artifacts, &symbolizing->err);
}

static void committed(uv_work_t *uv_work, int status)
{
	struct symbolizing *symbolizing = uv_work->data;
	const struct captures *captures = symbolizing->captures;
	struct error err = {0};
	(void)status;
	if (has_failed(symbolizing)) {
		return;
	}
	take_changes(symbolizing);
	symbolizing->record.state = "finished";
	json_t *record = record_to_json(&symbolizing->record);
	/* The artifacts are the new ones, whatever becomes of the record's file: the old record tells where they are, too. */
	if (!store_put(captures->options.store, &symbolizing->folder, record, &err)) {
		log_write(captures->options.log, LOG_WARN, "capture", "the record of %s: %s",
			symbolizing->record.id, err.message);
	}
	end(symbolizing, record, NULL);
	json_decref(record);
	work(symbolizing, sync_record, record_synced);
}

/* --- the analyzer --- */

static void progressed(void *context, unsigned permille, bool is_writing)
{
	(void)context;
	(void)permille;
	(void)is_writing;
}

static double unnamed_share(const json_t *summary)
{
	return json_number_value(json_object_get(json_object_get(summary, "quality"), "unsymbolized"));
}

/* What is there is not replaced by less: files, the journal or capture.symbols may have been lost meanwhile. False: err. */
static bool is_as_good(struct symbolizing *symbolizing, struct error *err)
{
	const struct record *record = &symbolizing->record;
	const struct salvage *salvage = &symbolizing->salvage;
	const json_t *kept = store_get(symbolizing->captures->options.store, record->id);
	const char *state = json_string_value(json_object_get(kept, "state"));
	uint64_t samples = symbolizing->kept_samples;
	const json_t *summary = json_object_get(kept, "summary");
	if (state == NULL || strcmp(state, "finished") != 0) {
		return true;
	}
	if (record->samples < samples) {
		error_set(err, ERROR_IO,
			"the journal of the capture %s is damaged at byte %" PRIu64 " of its file: %" PRIu64
			" of its %" PRIu64 " samples can be read",
			record->id, salvage->good_bytes, record->samples, samples);
		return error_hint(err, STAYS);
	}
	if (json_is_object(summary) &&
		unnamed_share(record->summary) > unnamed_share(summary) + NAMES_LOST) {
		error_set(err, ERROR_IO,
			"names of the capture %s would be lost: %.1f %% of the frames have none now, %.1f %% "
			"before",
			record->id, unnamed_share(record->summary) * 100, unnamed_share(summary) * 100);
		return error_hint(err, "the capture stays as it was; the files that it names are gone or "
							   "not the same, and its " ARTIFACT_SYMBOLS " is missing or damaged");
	}
	return true;
}

static void analyzed(void *context, const json_t *body)
{
	struct symbolizing *symbolizing = context;
	struct error err = {0};
	if (!record_take_done(&symbolizing->record, body, &err) || !is_as_good(symbolizing, &err)) {
		fail(symbolizing, &err);
		return;
	}
	work(symbolizing, commit, committed);
}

static void analyzer_failed(void *context, const struct error *err)
{
	struct error cause = *err;
	if (cause.code == ERROR_INTERNAL) {
		error_hint(
			&cause, "the capture stays as it was: try it again, and report it if that fails too");
	}
	fail(context, &cause);
}

static const struct analyzer_ops analyzer_ops = {
	.progress = progressed,
	.done = analyzed,
	.failed = analyzer_failed,
};

static void feed(struct symbolizing *symbolizing)
{
	symbolizing->facts = record_facts(&symbolizing->record);
	struct analyzer_input input = {
		.capture_id = symbolizing->record.id,
		.symbols = true,
		.has_same_kernel =
			symbolizing->kernel_symbols_fd >= 0 || salvage_is_of_this_boot(&symbolizing->salvage),
		.journal_fd = symbolizing->journal_fd,
		.kernel_symbols_fd = symbolizing->kernel_symbols_fd,
		.kept_symbols_fd = symbolizing->kept_fd,
		.artifacts = &symbolizing->artifacts,
		.images = symbolizing->salvage.opened.items,
		.image_count = symbolizing->salvage.opened.len,
		.facts = symbolizing->facts,
	};
	analyzer_feed(symbolizing->analyzer, &input);
}

/* --- the beginning --- */

static bool has_samples(struct symbolizing *symbolizing)
{
	const struct salvage *salvage = &symbolizing->salvage;
	if (salvage->samples > 0) {
		return true;
	}
	if (salvage->is_damaged) {
		error_set(&symbolizing->err, ERROR_IO,
			"the journal of the capture %s is damaged at byte %" PRIu64
			" of its file, and holds no samples before that",
			symbolizing->record.id, salvage->good_bytes);
		return error_hint(
			&symbolizing->err, symbolizing->kept_samples > 0 ? STAYS : "record it again");
	}
	if (symbolizing->kept_samples > 0) {
		error_set(&symbolizing->err, ERROR_IO,
			"the journal of the capture %s holds none of its samples", symbolizing->record.id);
		return error_hint(&symbolizing->err, STAYS);
	}
	return error_set(&symbolizing->err, ERROR_NO_SAMPLES,
		"the journal of the capture %s holds no samples", symbolizing->record.id);
}

/* Worker. */
static void read_journal(uv_work_t *work)
{
	struct symbolizing *symbolizing = work->data;
	struct salvage *salvage = &symbolizing->salvage;
	struct error *err = &symbolizing->err;
	symbolizing->journal_fd = files_open(symbolizing->folder.fd, ARTIFACT_JOURNAL, err);
	if (symbolizing->journal_fd < 0 || !salvage_read(salvage, symbolizing->journal_fd, err) ||
		!has_samples(symbolizing)) {
		return;
	}
	salvage_open_images(salvage, images_fd_limit());
	symbolizing->kept_fd = files_open(symbolizing->folder.fd, ARTIFACT_SYMBOLS, NULL);
	if (symbolizing->record.effective.kernel_frames && salvage_is_of_this_boot(salvage)) {
		symbolizing->kernel_symbols_fd = target_open_kernel_symbols();
	}
}

static void journal_read(uv_work_t *work, int status)
{
	struct symbolizing *symbolizing = work->data;
	struct captures *captures = symbolizing->captures;
	struct analyzer_options options = {
		.loop = captures->options.loop,
		.path = captures->analyzer_path,
		.ops = &analyzer_ops,
		.context = symbolizing,
		.stall_ms = CAPTURE_ANALYZER_STALL_MS,
	};
	(void)status;
	if (has_failed(symbolizing)) {
		return;
	}
	if (!artifacts_create(&symbolizing->artifacts, &symbolizing->err) ||
		(symbolizing->analyzer = analyzer_start(&options, &symbolizing->err)) == NULL) {
		fail(symbolizing, &symbolizing->err);
		return;
	}
	feed(symbolizing);
}

/* NULL: err. */
static struct symbolizing *create(
	struct captures *captures, const char *id, const json_t *kept, struct error *err)
{
	struct symbolizing *symbolizing = calloc(1, sizeof(*symbolizing));
	if (symbolizing == NULL) {
		error_set(err, ERROR_LIMIT_EXCEEDED, "no memory to name capture %s again", id);
		return NULL;
	}
	symbolizing->captures = captures;
	symbolizing->folder = STORE_FOLDER_NONE;
	symbolizing->journal_fd = symbolizing->kept_fd = symbolizing->kernel_symbols_fd = -1;
	symbolizing->kept_samples = (uint64_t)json_integer_value(json_object_get(kept, "samples"));
	artifacts_init(&symbolizing->artifacts, -1);
	if (!store_reopen(captures->options.store, id,
			json_string_value(json_object_get(kept, "folder")), &symbolizing->folder, err)) {
		destroy(symbolizing);
		return NULL;
	}
	artifacts_init(&symbolizing->artifacts, symbolizing->folder.fd);
	artifacts_want(
		&symbolizing->artifacts, json_object_get(json_object_get(kept, "options"), "formats"));
	symbolizing->artifacts.replaces = true;
	if (!record_restore_ended(&symbolizing->record, kept)) {
		error_set(err, ERROR_LIMIT_EXCEEDED, "no memory to name capture %s again", id);
		destroy(symbolizing);
		return NULL;
	}
	symbolizing->record.id = symbolizing->folder.id;
	symbolizing->record.folder = symbolizing->folder.path;
	symbolizing->record.artifacts = &symbolizing->artifacts;
	return symbolizing;
}

static bool check(const struct captures *captures, const char *id, struct error *err)
{
	size_t count = 0;
	for (const struct symbolizing *other = captures->symbolizings; other != NULL;
		 other = other->next) {
		count++;
	}
	if (captures->is_symbolizing_over) {
		return error_set(err, ERROR_SHUTTING_DOWN, "profd is shutting down");
	}
	if (captures_is_symbolizing(captures, id)) {
		error_set(err, ERROR_CAPTURE_BUSY, "the names of the capture %s are being made again", id);
		return error_hint(err, "wait for the end of that");
	}
	if (count >= LIMIT_SYMBOLIZINGS) {
		return error_set(err, ERROR_LIMIT_EXCEEDED,
			"the names of %zu captures are being made again, at most %d at once", count,
			LIMIT_SYMBOLIZINGS);
	}
	return true;
}

bool captures_symbolize(struct captures *captures, const char *capture_id,
	capture_symbolized_fn done, void *context, struct error *err)
{
	const struct capture *running = captures_find(captures, capture_id);
	const json_t *kept = store_get(captures->options.store, capture_id);
	if (running != NULL) {
		error_set(
			err, ERROR_CAPTURE_BUSY, "the capture %s is %s", capture_id, running->record.state);
		return error_hint(err, "wait for its end, which names it");
	}
	if (kept == NULL) {
		return error_set(err, ERROR_CAPTURE_NOT_FOUND, "there is no capture \"%s\"", capture_id);
	}
	if (json_string_value(json_object_get(kept, "kind")) != NULL &&
		strcmp(json_string_value(json_object_get(kept, "kind")), "gpu") == 0) {
		return error_set(err, ERROR_UNSUPPORTED,
			"the capture %s is a GPU trace: its document has its own names", capture_id);
	}
	struct symbolizing *symbolizing =
		check(captures, capture_id, err) ? create(captures, capture_id, kept, err) : NULL;
	if (symbolizing == NULL) {
		return false;
	}
	if (symbolizing->folder.fd < 0) { /* err says why */
		destroy(symbolizing);
		return false;
	}
	symbolizing->done = done;
	symbolizing->context = context;
	symbolizing->next = captures->symbolizings;
	captures->symbolizings = symbolizing;
	work(symbolizing, read_journal, journal_read);
	return true;
}

bool captures_is_symbolizing(const struct captures *captures, const char *capture_id)
{
	const struct symbolizing *symbolizing = captures->symbolizings;
	while (symbolizing != NULL && strcmp(symbolizing->folder.id, capture_id) != 0) {
		symbolizing = symbolizing->next;
	}
	return symbolizing != NULL;
}

void captures_symbolize_stop(struct captures *captures)
{
	captures->is_symbolizing_over = true;
	struct symbolizing *next = NULL;
	for (struct symbolizing *each = captures->symbolizings; each != NULL; each = next) {
		struct error err = {0};
		next = each->next;
		error_set(&err, ERROR_SHUTTING_DOWN, "profd is shutting down; the capture %s is as it was",
			each->record.id);
		if (each->is_working) {
			each->err = each->err.code == ERROR_NONE ? err : each->err;
		} else {
			fail(each, &err);
		}
	}
}

void symbolizing_abandon(const struct captures *captures)
{
	for (const struct symbolizing *each = captures->symbolizings; each != NULL; each = each->next) {
		if (each->analyzer != NULL) {
			analyzer_kill(each->analyzer);
		}
	}
}
