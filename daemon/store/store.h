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
 *
 * Loop thread for the table; the functions on a store_folder work on any thread.
 */
struct store;

/* Makes the data folder (0700) when missing; reads the records that are there; a record that had not ended becomes failed
 * (interrupted), what was kept of it stays; a record that is not one of ours is skipped (store_problem). Errors: not_permitted, io, disk_full. */
struct store *store_open(const char *data_dir, struct error *err);
void store_close(struct store *store);

/* A capture's folder, for as long as it is worked on. */
struct store_folder {
	char id[32];     /* the capture_id: sortable by time, never used again */
	int fd;          /* the folder with the artifacts; owned */
	int record_fd;   /* the folder with record.json; owned, may be a duplicate of fd */
	int parent_fd;   /* the folder that holds fd's name; owned */
	char path[4096]; /* absolute, of the artifacts' folder */
};

/* A new id and its folder. output_dir: NULL or absolute; must be ours. Errors: bad_params, not_permitted, io, disk_full. */
bool store_create(
	struct store *store, const char *output_dir, struct store_folder *folder, struct error *err);
/* Closes the descriptors. */
void store_folder_close(struct store_folder *folder);

/* Keeps record (borrowed, not to be changed afterwards) as the capture's record: in memory, and in its file, so that it survives the
 * daemon. It does not wait for the disk, because the loop must not: see store_folder_sync. */
bool store_put(struct store *store, struct store_folder *folder, json_t *record, struct error *err);
/* Brings the record that was put last to the disk. Blocking, any thread. */
bool store_folder_sync(const struct store_folder *folder, struct error *err);
/* Forgets and deletes everything of it. */
bool store_discard(struct store *store, struct store_folder *folder, struct error *err);

/* Borrowed; NULL when unknown. */
json_t *store_get(struct store *store, const char *capture_id);
/* Records by capture_id, oldest first: the first behind after ("" begins); NULL ends. Borrowed. */
json_t *store_next(struct store *store, const char *after);
size_t store_count(const struct store *store);

/* What store_open could not use or repair, one sentence each, to be logged; NULL behind the last (at most 100 are kept). */
const char *store_problem(const struct store *store, size_t index);

#endif
