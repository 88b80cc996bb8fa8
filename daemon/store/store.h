#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "protocol/error.h"

/*
 * Captures on disk: their folders, their ids, and a record of each that survives the daemon.
 *
 *   <data-dir>/captures/<capture_id>/record.json     the capture's record, replaced at each change of state
 *   <data-dir>/captures/<capture_id>/capture.*       the artifacts, or with output_dir:
 *   <output_dir>/<capture_id>/capture.*              (record.json stays in the data folder and names the place)
 *   <data-dir>/captures/<capture_id>/deleting.json   in place of record.json: the capture is being deleted
 *
 * Loop thread for the table; the functions on a store_folder or a store_removal work on any thread.
 */
struct store;

/*
 * Makes the data folder (0700) when missing and reads the records that are there. A record that had not ended, and a folder that has a journal
 * but no record that can be read, is a capture that is unfinished: its state in memory is "symbolizing", for whoever finishes it. One that was being
 * deleted is doomed (store_next_doomed). A record that is not one of ours is skipped (store_problem).
 * Errors: not_permitted, io, disk_full.
 */
struct store *store_open(const char *data_dir, struct error *err);
void store_close(struct store *store);

/* A capture's folder, for as long as it is worked on. */
struct store_folder {
	char id[32];       /* the capture_id: sortable by time, never used again */
	int fd;            /* the folder with the artifacts; owned */
	int record_fd;     /* the folder with record.json; owned, may be a duplicate of fd */
	int parent_fd;     /* the folder that holds fd's name; owned */
	int captures_fd;   /* the folder that holds record_fd's; owned */
	bool is_elsewhere; /* the artifacts are not beside the record */
	char path[4096];   /* absolute, of the artifacts' folder */
};
#define STORE_FOLDER_NONE                                                                          \
	((struct store_folder){.fd = -1, .record_fd = -1, .parent_fd = -1, .captures_fd = -1})

/* A new id and its folder. output_dir: NULL or what output_dir_open takes. Errors: bad_params, not_permitted, io, disk_full. */
bool store_create(
	struct store *store, const char *output_dir, struct store_folder *folder, struct error *err);
/*
 * The folder of an unfinished capture, opened again. path: where its record says that the artifacts are, or NULL; believed only when the journal is not beside
 * the record, the path ends in the id, and output_dir_open opens what is above it. When the artifacts' folder cannot be had,
 * fd is -1 and err says why. False: the record's folder cannot be had either. Any thread, while the store is open.
 */
bool store_reopen(const struct store *store, const char *capture_id, const char *path,
	struct store_folder *folder, struct error *err);
/* Closes the descriptors. */
void store_folder_close(struct store_folder *folder);

/* Keeps record (borrowed, not to be changed afterwards) as the capture's record: in memory, and in its file, so that it survives the
 * daemon. It does not wait for the disk, because the loop must not: see store_folder_sync. */
bool store_put(struct store *store, struct store_folder *folder, json_t *record, struct error *err);
/* Brings the record that was put last to the disk. Blocking, any thread. */
bool store_folder_sync(const struct store_folder *folder, struct error *err);
/* False: somebody has moved or replaced the folder while we work in it, by its descriptor. Any thread. */
bool store_folder_is_at_its_path(const struct store_folder *folder);
/* What the capture's files take. Blocking, any thread. */
uint64_t store_folder_bytes(const struct store_folder *folder);
/* Deletes what is ours in both folders, and the folders when nothing else is in them. Blocking, any thread; then store_forget. */
bool store_folder_discard(const struct store_folder *folder, struct error *err);
void store_forget(struct store *store, const char *capture_id);

/* Does the data folder's path still lead to the folder that is worked in? */
bool store_is_in_place(const struct store *store);

/* Borrowed; NULL when unknown. */
json_t *store_get(struct store *store, const char *capture_id);
/* Records by capture_id, oldest first: the first behind after ("" begins); NULL ends. Borrowed. */
json_t *store_next(struct store *store, const char *after);
size_t store_count(const struct store *store);

/* Changes a capture that has ended: NULL and -1 leave what is there; an empty label is none. On failure nothing has changed. */
bool store_update(
	struct store *store, const char *capture_id, const char *label, int pinned, struct error *err);

/* What is known of a capture beside its record. */
struct store_entry {
	char id[32];
	uint64_t bytes;    /* of its files; 0 until it has ended */
	uint64_t ended_us; /* wall clock; when it is not known, when it was begun */
	bool has_ended, is_pinned;
};
/* As store_next. False ends. */
bool store_look(const struct store *store, const char *after, struct store_entry *entry);
void store_set_bytes(struct store *store, const char *capture_id, uint64_t bytes);

/*
 * Deleting a capture that has ended, or that was being deleted when the daemon ended:
 *
 *   store_removal_begin (loop) ──► store_removal_run (any thread, blocking) ──► store_removal_end (loop)
 *
 * From the first on nothing knows the capture. What cannot be opened, or renamed, brings it back as it was; once removing has begun it is gone,
 * and a failure leaves the rest to the next start.
 */
struct store_removal;

/* NULL: err is capture_not_found, or limit_exceeded. Owned until store_removal_end. */
struct store_removal *store_removal_begin(
	struct store *store, const char *capture_id, struct error *err);
void store_removal_run(struct store_removal *removal);
/* Takes removal. False: err. *left: the path of a folder that stayed because somebody else's files are in it, or NULL; owned (free).
 * store NULL: it was closed meanwhile. */
bool store_removal_end(
	struct store *store, struct store_removal *removal, char **left, struct error *err);
/* As store_next, of those whose deletion the last daemon did not end. Borrowed; NULL ends. */
const char *store_next_doomed(const struct store *store, const char *after);

/* What store_open could not use or repair, one sentence each, to be logged; NULL behind the last (at most 100 are kept). */
const char *store_problem(const struct store *store, size_t index);

#endif
