#ifndef STORE_TABLE_H
#define STORE_TABLE_H

#include <limits.h>

#include "base/vec.h"
#include "store/capture_id.h"
#include "store/store.h"

/* The inside of the store, for this folder alone: store.c has its table, loading.c its beginning, folder.c and removal.c its files. */

#define STORE_PROBLEMS_MAX 100

struct entry {
	char id[CAPTURE_ID_BYTES];
	json_t *record; /* owned */
	uint64_t made_us, ended_us, bytes;
	bool has_ended, is_pinned;
	bool is_doomed; /* nobody knows it any more */
};

struct store {
	int captures_fd;
	char captures_path[PATH_MAX];
	uint64_t last_id_us;
	VEC(struct entry) entries; /* by id */
	VEC(char *) problems;
};

/* The first entry that is not before id, as an index. */
size_t store_lower_bound(const struct store *store, const char *id);
/* Doomed ones too; NULL. */
struct entry *store_find(const struct store *store, const char *id);
/* Keeps a reference to record. */
bool store_keep(struct store *store, const char *id, json_t *record, struct error *err);
bool store_write_record(int folder_fd, const json_t *record, bool sync, struct error *err);
/* Takes err's message. */
void store_add_problem(struct store *store, const char *name, const struct error *err);

/* loading.c */
bool store_load(struct store *store, struct error *err);

/* folder.c: "<captures_path>/<id>". */
void store_record_path(const struct store *store, const char *id, char path[PATH_MAX]);
/* store_reopen without a store; own is the path of the record's folder. err's detail is "enoent" for what is not there. */
bool store_folder_open(int captures_fd, const char *own, const char *id, const char *path,
	struct store_folder *folder, struct error *err);

/* removal.c: the folders that a capture's files are in, opened. */
struct store_places {
	const char *id;
	int captures_fd, record_fd; /* borrowed; record_fd -1: it is gone */
	int parent_fd, fd;          /* the artifacts', when they are elsewhere; borrowed, else -1 */
	bool has_begun;             /* out: something may be removed already */
	bool record_stays, artifacts_stay; /* out: folders with somebody else's files in them */
};
bool store_places_remove(struct store_places *places, struct error *err);

#endif
