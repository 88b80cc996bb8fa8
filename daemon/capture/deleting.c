#include <stdlib.h>
#include <string.h>

#include "capture/recording.h"

/* Deletions, one after another: a worker that waits for a disk must not keep the others of the pool from captures. */
struct deletion {
	struct captures *captures;
	struct store_removal *removal; /* owned */
	char id[32];
	capture_deleted_fn done; /* NULL: nobody waits, what goes wrong is logged */
	void *context;
	uv_work_t work;
	bool has_begun;
	struct deletion *next;
};

static void begin_next(struct captures *captures);

static void tell(const struct deletion *deletion, const char *left, const struct error *err)
{
	const struct log *log = deletion->captures->options.log;
	if (err != NULL) {
		log_write(
			log, LOG_WARN, "capture", "%s could not be deleted: %s", deletion->id, err->message);
	} else if (left != NULL) {
		log_write(log, LOG_INFO, "capture",
			"%s was deleted; %s stays, because there is something in it that is not profd's",
			deletion->id, left);
	} else {
		log_write(log, LOG_INFO, "capture", "%s was deleted", deletion->id);
	}
	if (deletion->done != NULL) {
		deletion->done(deletion->context, left, err);
	}
}

/* Takes deletion. */
static void end(struct deletion *deletion)
{
	struct captures *captures = deletion->captures;
	struct error err = {0};
	char *left = NULL;
	/* The store may be closed when a worker has done; not yet in captures_destroy. */
	struct store *store =
		captures->is_closed && deletion->has_begun ? NULL : captures->options.store;
	bool ok = store_removal_end(store, deletion->removal, &left, &err);
	tell(deletion, left, ok ? NULL : &err);
	free(left);
	free(deletion);
}

/* Takes one that has not begun: the capture is as it was. */
static void drop(struct deletion *deletion)
{
	char *left = NULL;
	store_removal_end(deletion->captures->options.store, deletion->removal, &left, NULL);
	free(left);
	free(deletion);
}

static void remove_files(uv_work_t *work)
{
	struct deletion *deletion = work->data;
	store_removal_run(deletion->removal);
}

static void removed(uv_work_t *work, int status)
{
	struct deletion *deletion = work->data;
	struct captures *captures = deletion->captures;
	(void)status;
	captures->deletions = deletion->next;
	end(deletion);
	if (!captures->is_closed) {
		begin_next(captures);
	}
	captures_release(captures);
}

static void begin_next(struct captures *captures)
{
	struct deletion *deletion = captures->deletions;
	if (deletion == NULL || deletion->has_begun) {
		return;
	}
	deletion->has_begun = true;
	deletion->work.data = deletion;
	captures_hold(captures);
	uv_queue_work(captures->options.loop, &deletion->work, remove_files, removed);
}

/* Who waits goes before those for whom nobody does. */
static void enqueue(struct captures *captures, struct deletion *deletion)
{
	struct deletion **link = &captures->deletions;
	while (
		*link != NULL && ((*link)->has_begun || deletion->done == NULL || (*link)->done != NULL)) {
		link = &(*link)->next;
	}
	deletion->next = *link;
	*link = deletion;
	begin_next(captures);
}

static const struct capture *find_running(const struct captures *captures, const char *id)
{
	const struct capture *capture = captures->first;
	while (capture != NULL && strcmp(capture->record.id, id) != 0) {
		capture = capture->next;
	}
	return capture;
}

/* Also one that the last daemon was deleting. */
static bool begin(struct captures *captures, const char *id, capture_deleted_fn done, void *context,
	struct error *err)
{
	struct deletion *deletion = calloc(1, sizeof(*deletion));
	if (deletion == NULL) {
		return error_set(err, ERROR_LIMIT_EXCEEDED, "no memory to delete capture %s", id);
	}
	deletion->removal = store_removal_begin(captures->options.store, id, err);
	if (deletion->removal == NULL) {
		free(deletion);
		return false;
	}
	deletion->captures = captures;
	deletion->done = done;
	deletion->context = context;
	strncpy(deletion->id, id, sizeof(deletion->id) - 1);
	enqueue(captures, deletion);
	return true;
}

bool captures_delete(struct captures *captures, const char *capture_id, capture_deleted_fn done,
	void *context, struct error *err)
{
	const struct capture *running = find_running(captures, capture_id);
	if (running != NULL && !running->silent) {
		error_set(
			err, ERROR_CAPTURE_BUSY, "the capture %s is %s", capture_id, running->record.state);
		return error_hint(err, "end it with StopCapture, or end and delete it with discard: true");
	}
	if (running == NULL && captures_is_symbolizing(captures, capture_id)) {
		error_set(err, ERROR_CAPTURE_BUSY, "the names of the capture %s are being made again",
			capture_id);
		return error_hint(err, "delete it when that has ended");
	}
	if (running != NULL || store_get(captures->options.store, capture_id) == NULL) {
		return error_set(err, ERROR_CAPTURE_NOT_FOUND, "there is no capture \"%s\"", capture_id);
	}
	return begin(captures, capture_id, done, context, err);
}

void deleting_resume(struct captures *captures)
{
	char last[32] = "";
	const char *id = NULL;
	while ((id = store_next_doomed(captures->options.store, last)) != NULL) {
		struct error err = {0};
		strncpy(last, id, sizeof(last) - 1);
		if (!begin(captures, last, NULL, NULL, &err)) {
			log_write(captures->options.log, LOG_WARN, "capture", "%s", err.message);
		}
	}
}

/* What a client asked for is done, what nobody waits for is left to the next start. */
void deleting_finish(struct captures *captures)
{
	struct deletion **link = &captures->deletions;
	while (*link != NULL && (*link)->has_begun) {
		link = &(*link)->next;
	}
	struct deletion *waiting = *link;
	*link = NULL;
	while (waiting != NULL) {
		struct deletion *deletion = waiting;
		waiting = deletion->next;
		if (deletion->done != NULL) {
			store_removal_run(deletion->removal);
			end(deletion);
		} else {
			drop(deletion);
		}
	}
}
