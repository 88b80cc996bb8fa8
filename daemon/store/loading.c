#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "protocol/clock.h"
#include "protocol/message.h"
#include "protocol/names.h"
#include "protocol/text.h"
#include "store/contents.h"
#include "store/table.h"

/* What is found in the data folder at the start. */

#define RECORD_BYTES (256 * 1024)
#define DAY_US       UINT64_C(86400000000)

static bool is_name_of(const char *name, const char *const *names)
{
	while (*names != NULL && strcmp(*names, name) != 0) {
		names++;
	}
	return *names != NULL;
}

static const char *const live_states[] = {
	"starting", "armed", "sampling", "symbolizing", "writing", NULL};
static const char *const ended_states[] = {"finished", "failed", NULL};

/* Is it a record of this capture? The text is whatever was found there. */
static bool check_record(const json_t *record, const char *id, struct error *err)
{
	const char *name = json_string_value(json_object_get(record, "capture_id"));
	const char *state = json_string_value(json_object_get(record, "state"));
	if (name == NULL || strcmp(name, id) != 0) {
		return error_set(err, ERROR_IO, "its record does not name it");
	}
	if (state == NULL || (!is_name_of(state, live_states) && !is_name_of(state, ended_states))) {
		return error_set(err, ERROR_IO, "its record has no state that is known");
	}
	return true;
}

/* NULL: err, whose code is parse_error when the text is no JSON. */
static json_t *read_record(int folder_fd, const char *file, const char *id, struct error *err)
{
	size_t len;
	char *text = files_read(folder_fd, file, RECORD_BYTES, &len, err);
	json_t *record = text != NULL ? message_parse(text, len, err) : NULL;
	free(text);
	if (record != NULL && !check_record(record, id, err)) {
		json_decref(record);
		return NULL;
	}
	return record;
}

/* In memory it is what it will be seen as until somebody has finished it; on disk it stays what it was. */
static bool keep_unfinished(struct store *store, const char *id, json_t *record, struct error *err)
{
	return (json_object_set_new(record, "state", json_string("symbolizing")) == 0 &&
			   store_keep(store, id, record, err)) ||
		   error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for its record");
}

/* The daemon ended, or the machine, before there was a record on the disk. */
static bool keep_recordless(struct store *store, const char *id, struct error *err)
{
	char path[PATH_MAX];
	store_record_path(store, id, path);
	json_t *record = json_pack("{s:s, s:s}", "capture_id", id, "state", "symbolizing");
	bool ok = record != NULL && text_set(record, "folder", path, strlen(path)) &&
			  keep_unfinished(store, id, record, err);
	json_decref(record);
	return ok;
}

static uint64_t bytes_elsewhere(const struct store *store, const char *id, const json_t *record)
{
	struct store_folder folder;
	const char *path = json_string_value(json_object_get(record, "folder"));
	if (!store_reopen(store, id, path, &folder, NULL)) {
		return 0;
	}
	contents_remove(folder.fd, CONTENTS_TEMPORARIES, NULL);
	uint64_t bytes = store_folder_bytes(&folder);
	store_folder_close(&folder);
	return bytes;
}

/* The sizes are read here, and never again. What a naming again left behind that was cut short goes. */
static bool keep_ended(
	struct store *store, int folder_fd, const char *id, json_t *record, struct error *err)
{
	if (!store_keep(store, id, record, err)) {
		return false;
	}
	contents_remove(folder_fd, CONTENTS_TEMPORARIES, NULL);
	store_set_bytes(store, id,
		contents_has(folder_fd, ARTIFACT_JOURNAL) ? contents_bytes(folder_fd)
												  : bytes_elsewhere(store, id, record));
	return true;
}

/* Takes record. */
static bool doom(struct store *store, const char *id, json_t *record, struct error *err)
{
	bool ok = record != NULL && store_keep(store, id, record, err);
	if (ok) {
		store_find(store, id)->is_doomed = true;
	}
	json_decref(record);
	return ok;
}

/* A capture whose record was put aside to delete it. What cannot be read any more cannot say where else its files are. */
static bool keep_doomed(struct store *store, int folder_fd, const char *id, struct error *err)
{
	json_t *record = read_record(folder_fd, CONTENTS_DELETING, id, err);
	if (record == NULL && err->code == ERROR_PARSE) {
		doom(store, id, json_pack("{s:s}", "capture_id", id), NULL);
		return false;
	}
	return doom(store, id, record, err);
}

/* Neither a record nor a journal: nothing of it can be told. It goes, unless somebody put something there. */
static bool sweep(struct store *store, int folder_fd, const char *id, struct error *err)
{
	return contents_remove(folder_fd, CONTENTS_TEMPORARIES, err) &&
		   (unlinkat(store->captures_fd, id, AT_REMOVEDIR) == 0 || errno == ENOTEMPTY ||
			   errno == EEXIST || error_errno(err, "cannot remove its empty folder"));
}

/* A record that was begun before the folder for the artifacts was: nobody was told of this capture. */
static bool was_never_told(const json_t *record)
{
	const char *state = json_string_value(json_object_get(record, "state"));
	return strcmp(state, "starting") == 0;
}

static bool load_record(struct store *store, int folder_fd, const char *id, struct error *err)
{
	json_t *record = read_record(folder_fd, CONTENTS_RECORD, id, err);
	if (record == NULL) {
		/* Torn by a crash of the machine: the journal has it all, but this is told. */
		if (err->code == ERROR_PARSE && contents_has(folder_fd, ARTIFACT_JOURNAL)) {
			keep_recordless(store, id, NULL);
		}
		return false;
	}
	if (was_never_told(record)) {
		return doom(store, id, record, err);
	}
	const char *state = json_string_value(json_object_get(record, "state"));
	bool ok = true;
	if (is_name_of(state, live_states)) {
		ok = keep_unfinished(store, id, record, err);
	} else {
		ok = keep_ended(store, folder_fd, id, record, err);
	}
	json_decref(record);
	return ok;
}

static bool is_missing(int folder_fd, const char *name)
{
	struct stat status;
	return fstatat(folder_fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT;
}

static bool load(struct store *store, int folder_fd, const char *id, struct error *err)
{
	if (!is_missing(folder_fd, CONTENTS_RECORD)) {
		return load_record(store, folder_fd, id, err);
	}
	if (contents_has(folder_fd, CONTENTS_DELETING)) {
		return keep_doomed(store, folder_fd, id, err);
	}
	if (contents_has(folder_fd, ARTIFACT_JOURNAL)) {
		return keep_recordless(store, id, err);
	}
	return sweep(store, folder_fd, id, err);
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
		store_add_problem(store, name, &err);
		return;
	}
	if (!load(store, fd, name, &err)) {
		store_add_problem(store, name, &err);
	}
	close(fd);
	/* Ids rise even when the clock was set back, but a name from the far future does not bind us. */
	if (made_us > store->last_id_us && made_us < clock_unix_us() + DAY_US) {
		store->last_id_us = made_us;
	}
}

bool store_load(struct store *store, struct error *err)
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
