#include "store/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/vec.h"
#include "protocol/message.h"
#include "store/capture_id.h"

#define RECORD_NAME  "record.json"
#define RECORD_BYTES (256 * 1024)
#define PROBLEMS_MAX 100
#define ID_ATTEMPTS  8

struct entry {
	char id[CAPTURE_ID_BYTES];
	json_t *record; /* owned */
};

struct store {
	int captures_fd;
	char captures_path[PATH_MAX];
	uint64_t last_id_us;
	VEC(struct entry) entries; /* by id */
	VEC(char *) problems;
};

/* Takes err's message. */
static void add_problem(struct store *store, const char *name, struct error *err)
{
	char *text = NULL;
	if (store->problems.len < PROBLEMS_MAX &&
		asprintf(&text, "capture %s: %s", name, err->message) >= 0 &&
		!VEC_PUSH(&store->problems, text)) {
		free(text);
	}
}

const char *store_problem(const struct store *store, size_t index)
{
	return index < store->problems.len ? store->problems.items[index] : NULL;
}

/* The first entry that is not before id. */
static size_t lower_bound(const struct store *store, const char *id)
{
	size_t low = 0, high = store->entries.len;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (strcmp(store->entries.items[middle].id, id) < 0) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low;
}

static struct entry *find(const struct store *store, const char *id)
{
	size_t at = lower_bound(store, id);
	bool found = at < store->entries.len && strcmp(store->entries.items[at].id, id) == 0;
	return found ? &store->entries.items[at] : NULL;
}

/* Keeps a reference to record. */
static bool keep(struct store *store, const char *id, json_t *record, struct error *err)
{
	struct entry *entry = find(store, id);
	if (entry != NULL) {
		json_incref(record);
		json_decref(entry->record);
		entry->record = record;
		return true;
	}
	if (!VEC_RESERVE(&store->entries, store->entries.len + 1)) {
		return error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for the record of capture %s", id);
	}
	size_t at = lower_bound(store, id);
	entry = &store->entries.items[at];
	memmove(entry + 1, entry, (store->entries.len - at) * sizeof(*entry));
	snprintf(entry->id, sizeof(entry->id), "%s", id);
	entry->record = json_incref(record);
	store->entries.len++;
	return true;
}

static void forget(struct store *store, const char *id)
{
	struct entry *entry = find(store, id);
	if (entry != NULL) {
		size_t at = (size_t)(entry - store->entries.items);
		json_decref(entry->record);
		memmove(entry, entry + 1, (store->entries.len - at - 1) * sizeof(*entry));
		store->entries.len--;
	}
}

static bool write_record(int folder_fd, const json_t *record, bool sync, struct error *err)
{
	size_t len;
	char *text = message_dump(record, &len);
	if (text == NULL) {
		return error_set(err, ERROR_LIMIT_EXCEEDED, "no memory to write a record");
	}
	bool ok = sync ? files_replace(folder_fd, RECORD_NAME, text, len, err)
				   : files_put(folder_fd, RECORD_NAME, text, len, err);
	free(text);
	return ok;
}

static bool is_name_of(const char *name, const char *const *names)
{
	while (*names != NULL && strcmp(*names, name) != 0) {
		names++;
	}
	return *names != NULL;
}

static const char *const live_states[] = {"armed", "sampling", "symbolizing", "writing", NULL};
static const char *const ended_states[] = {"finished", "failed", NULL};

/* NULL: err. The file is whatever was found there. */
static json_t *read_record(int folder_fd, const char *id, struct error *err)
{
	size_t len;
	char *text = files_read(folder_fd, RECORD_NAME, RECORD_BYTES, &len, err);
	json_t *record = text != NULL ? message_parse(text, len, err) : NULL;
	free(text);
	if (record == NULL) {
		return NULL;
	}
	const char *name = json_string_value(json_object_get(record, "capture_id"));
	const char *state = json_string_value(json_object_get(record, "state"));
	if (name == NULL || strcmp(name, id) != 0) {
		error_set(err, ERROR_IO, "its record does not name it");
	} else if (state == NULL ||
			   (!is_name_of(state, live_states) && !is_name_of(state, ended_states))) {
		error_set(err, ERROR_IO, "its record has no state that is known");
	} else {
		return record;
	}
	json_decref(record);
	return NULL;
}

/* Outputs that were being written when the daemon ended. */
static void remove_temporaries(int folder_fd)
{
	int fd = openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	if (dir == NULL) {
		if (fd >= 0) {
			close(fd);
		}
		return;
	}
	for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
		size_t len = strlen(entry->d_name);
		if (strncmp(entry->d_name, ".capture.", 9) == 0 && len > 13 &&
			strcmp(entry->d_name + len - 4, ".tmp") == 0) {
			files_remove(folder_fd, entry->d_name, NULL);
		}
	}
	closedir(dir);
}

/* The record names where the artifacts are; believed only when that folder is ours alone and bears the capture's name. */
static void clean_artifacts(int record_fd, const json_t *record, const char *id)
{
	const char *path = json_string_value(json_object_get(record, "folder"));
	const char *name = path != NULL ? strrchr(path, '/') : NULL;
	remove_temporaries(record_fd);
	if (name != NULL && strcmp(name + 1, id) == 0) {
		int fd = files_open_folder(path, true, NULL);
		if (fd >= 0) {
			remove_temporaries(fd);
			close(fd);
		}
	}
}

static bool interrupt(int record_fd, json_t *record, const char *id, struct error *err)
{
	struct error cause = {0};
	error_set(&cause, ERROR_INTERRUPTED, "profd ended before the capture %s had ended", id);
	error_hint(&cause, "its journal was kept as far as it was written");
	json_object_set_new(record, "state", json_string("failed"));
	json_object_set_new(record, "error", error_to_json(&cause));
	clean_artifacts(record_fd, record, id);
	files_remove(record_fd, RECORD_NAME ".tmp", NULL);
	return write_record(record_fd, record, true, err);
}

static bool load(struct store *store, int folder_fd, const char *id, struct error *err)
{
	json_t *record = read_record(folder_fd, id, err);
	if (record == NULL) {
		return false;
	}
	const char *state = json_string_value(json_object_get(record, "state"));
	bool ok = true;
	if (is_name_of(state, live_states)) {
		ok = interrupt(folder_fd, record, id, err);
	}
	ok = keep(store, id, record, ok ? err : NULL) && ok;
	json_decref(record);
	return ok;
}

static void load_folder(struct store *store, const char *name)
{
	struct error err = {0};
	uint64_t made_us;
	if (!capture_id_parse(name, &made_us)) {
		return;
	}
	int fd = openat(store->captures_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		error_errno(&err, "cannot open its folder");
		add_problem(store, name, &err);
		return;
	}
	/* A folder that ended before its first record is empty, and goes. */
	if (faccessat(fd, RECORD_NAME, F_OK, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT &&
		unlinkat(store->captures_fd, name, AT_REMOVEDIR) == 0) {
		close(fd);
		return;
	}
	if (!load(store, fd, name, &err)) {
		add_problem(store, name, &err);
	}
	close(fd);
	/* Ids rise even when the clock was set back, but a name from the far future does not bind us. */
	if (made_us > store->last_id_us && made_us < clock_unix_us() + UINT64_C(86400000000)) {
		store->last_id_us = made_us;
	}
}

static bool load_all(struct store *store, struct error *err)
{
	int fd = openat(store->captures_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	if (dir == NULL) {
		error_errno(err, "cannot list the folder %s", store->captures_path);
		if (fd >= 0) {
			close(fd);
		}
		return false;
	}
	for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
		load_folder(store, entry->d_name);
	}
	closedir(dir);
	return true;
}

struct store *store_open(const char *data_dir, struct error *err)
{
	struct store *store = calloc(1, sizeof(*store));
	if (store == NULL) {
		error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for the store");
		return NULL;
	}
	store->captures_fd = -1;
	size_t len = strlen(data_dir);
	while (len > 1 && data_dir[len - 1] == '/') {
		len--;
	}
	int length = snprintf(
		store->captures_path, sizeof(store->captures_path), "%.*s/captures", (int)len, data_dir);
	if (length >= (int)sizeof(store->captures_path) - 64) {
		error_set(
			err, ERROR_BAD_PARAMS, "the path of the data folder has %zu bytes, too many", len);
		goto fail;
	}
	store->captures_fd = files_open_or_make_folder(store->captures_path, err);
	if (store->captures_fd < 0) {
		error_wrap(err, "cannot use the data folder");
		goto fail;
	}
	if (!load_all(store, err)) {
		goto fail;
	}
	return store;

fail:
	store_close(store);
	return NULL;
}

void store_close(struct store *store)
{
	if (store == NULL) {
		return;
	}
	for (size_t i = 0; i < store->entries.len; i++) {
		json_decref(store->entries.items[i].record);
	}
	for (size_t i = 0; i < store->problems.len; i++) {
		free(store->problems.items[i]);
	}
	VEC_FINISH(&store->entries);
	VEC_FINISH(&store->problems);
	if (store->captures_fd >= 0) {
		close(store->captures_fd);
	}
	free(store);
}

static int duplicate(int fd, struct error *err)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (copy < 0) {
		error_errno(err, "cannot duplicate a descriptor");
	}
	return copy;
}

/* The folder that will hold the artifacts' folder. */
static int open_parent(struct store *store, const char *output_dir, struct error *err)
{
	if (output_dir == NULL) {
		return duplicate(store->captures_fd, err);
	}
	int fd = files_open_folder(output_dir, false, err);
	if (fd < 0) {
		error_wrap(err, "output_dir");
		return -1;
	}
	if (faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) != 0) {
		error_errno(err, "output_dir: the folder %s cannot be written", output_dir);
		error_hint(err, "choose another folder, or: chmod u+wx %.400s", output_dir);
		close(fd);
		return -1;
	}
	return fd;
}

static bool set_path(
	struct store *store, const char *output_dir, struct store_folder *folder, struct error *err)
{
	const char *parent = output_dir != NULL ? output_dir : store->captures_path;
	size_t len = strlen(parent);
	while (len > 1 && parent[len - 1] == '/') {
		len--;
	}
	/* Behind the folder's path there is room for a file's name. */
	if (len + sizeof(folder->id) + 64 > sizeof(folder->path)) {
		return error_set(
			err, ERROR_BAD_PARAMS, "the path of output_dir has %zu bytes, too many", len);
	}
	memcpy(folder->path, parent, len);
	snprintf(folder->path + len, sizeof(folder->path) - len, "%s%s",
		len == 1 && parent[0] == '/' ? "" : "/", folder->id);
	return true;
}

/* Makes the folder with the record; its name is the id, so this is where ids are found to be unused. */
static bool make_record_folder(struct store *store, struct store_folder *folder, struct error *err)
{
	for (int i = 0; i < ID_ATTEMPTS; i++) {
		uint64_t now_us = clock_unix_us();
		store->last_id_us = now_us > store->last_id_us ? now_us : store->last_id_us + 1;
		capture_id_make(store->last_id_us, folder->id);
		folder->record_fd = files_make_folder(store->captures_fd, folder->id, err);
		if (folder->record_fd >= 0 || errno != EEXIST) {
			break;
		}
	}
	return folder->record_fd >= 0 ||
		   error_wrap(err, "cannot begin a capture in %s", store->captures_path);
}

static bool make_artifact_folder(
	struct store_folder *folder, const char *output_dir, struct error *err)
{
	if (output_dir == NULL) {
		folder->fd = duplicate(folder->record_fd, err);
	} else {
		folder->fd = files_make_folder(folder->parent_fd, folder->id, err);
		if (folder->fd < 0) {
			error_wrap(err, "output_dir %s", output_dir);
			if (err != NULL && err->code != ERROR_DISK_FULL) {
				error_hint(err, "choose another folder, one that can be written");
			}
		}
	}
	return folder->fd >= 0;
}

bool store_create(
	struct store *store, const char *output_dir, struct store_folder *folder, struct error *err)
{
	struct store_folder made = {.fd = -1, .record_fd = -1, .parent_fd = -1};
	made.parent_fd = open_parent(store, output_dir, err);
	if (made.parent_fd >= 0 && make_record_folder(store, &made, err) &&
		set_path(store, output_dir, &made, err) && make_artifact_folder(&made, output_dir, err)) {
		*folder = made;
		return true;
	}
	if (made.record_fd >= 0) {
		files_remove_tree(store->captures_fd, made.id, NULL);
	}
	store_folder_close(&made);
	return false;
}

void store_folder_close(struct store_folder *folder)
{
	int *fds[] = {&folder->fd, &folder->record_fd, &folder->parent_fd};
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		if (*fds[i] >= 0) {
			close(*fds[i]);
			*fds[i] = -1;
		}
	}
}

bool store_put(struct store *store, struct store_folder *folder, json_t *record, struct error *err)
{
	return keep(store, folder->id, record, err) &&
		   write_record(folder->record_fd, record, false, err);
}

bool store_folder_sync(const struct store_folder *folder, struct error *err)
{
	int fd = files_open(folder->record_fd, RECORD_NAME, err);
	if (fd < 0) {
		return false;
	}
	bool ok = files_sync(fd, err);
	close(fd);
	return ok && files_sync(folder->record_fd, err);
}

bool store_discard(struct store *store, struct store_folder *folder, struct error *err)
{
	forget(store, folder->id);
	bool ok = files_remove_tree(folder->parent_fd, folder->id, err);
	return files_remove_tree(store->captures_fd, folder->id, ok ? err : NULL) && ok;
}

json_t *store_get(struct store *store, const char *capture_id)
{
	struct entry *entry = find(store, capture_id);
	return entry != NULL ? entry->record : NULL;
}

json_t *store_next(struct store *store, const char *after)
{
	size_t at = lower_bound(store, after);
	if (at < store->entries.len && strcmp(store->entries.items[at].id, after) == 0) {
		at++;
	}
	return at < store->entries.len ? store->entries.items[at].record : NULL;
}

size_t store_count(const struct store *store)
{
	return store->entries.len;
}
