#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "store/contents.h"
#include "store/table.h"

struct store_removal {
	char id[CAPTURE_ID_BYTES];
	char own[PATH_MAX]; /* of the record's folder */
	char *path;         /* owned; of the artifacts' folder; NULL: the same */
	int captures_fd;    /* owned: the store may be closed before this has ended */
	bool was_doomed;    /* by the last daemon: it does not come back */
	bool is_gone;       /* nothing brings it back */
	bool ok;
	char *left; /* owned */
	struct error err;
};

/* Removes a folder unless somebody else's files are in it. */
static bool remove_folder(int parent_fd, const char *id, bool *stays, struct error *err)
{
	*stays = false;
	if (unlinkat(parent_fd, id, AT_REMOVEDIR) == 0 || errno == ENOENT) {
		return true;
	}
	/* Not empty, or what bears its name now is no folder of ours. */
	*stays = errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR;
	return *stays || error_errno(err, "cannot remove the folder %s", id);
}

/* From here on the capture is one that is being deleted, whatever happens. A rename needs no room on a full disk. */
static bool put_aside(const struct store_places *places, struct error *err)
{
	if (renameat(places->record_fd, CONTENTS_RECORD, places->record_fd, CONTENTS_DELETING) == 0 ||
		errno == ENOENT) {
		return true;
	}
	return error_errno(err, "cannot begin to delete capture %s", places->id);
}

bool store_places_remove(struct store_places *places, struct error *err)
{
	if (places->record_fd < 0) {
		return true;
	}
	if (!put_aside(places, err)) {
		return false;
	}
	places->has_begun = true;
	/* The record's folder goes last: it tells of the other. */
	if (places->fd >= 0 &&
		(!contents_remove(places->fd, CONTENTS_ALL, err) ||
			!remove_folder(places->parent_fd, places->id, &places->artifacts_stay, err))) {
		return false;
	}
	return contents_remove(places->record_fd, CONTENTS_ALL, err) &&
		   remove_folder(places->captures_fd, places->id, &places->record_stays, err);
}

struct store_removal *store_removal_begin(
	struct store *store, const char *capture_id, struct error *err)
{
	struct entry *entry = store_find(store, capture_id);
	if (entry == NULL) {
		error_set(err, ERROR_CAPTURE_NOT_FOUND, "there is no capture \"%s\"", capture_id);
		return NULL;
	}
	struct store_removal *removal = calloc(1, sizeof(*removal));
	const char *path = json_string_value(json_object_get(entry->record, "folder"));
	if (removal != NULL) {
		memcpy(removal->id, entry->id, sizeof(removal->id));
		store_record_path(store, removal->id, removal->own);
		removal->path = path != NULL ? strdup(path) : NULL;
		removal->captures_fd = fcntl(store->captures_fd, F_DUPFD_CLOEXEC, 3);
	}
	if (removal == NULL || removal->captures_fd < 0 || (path != NULL && removal->path == NULL)) {
		error_errno_as(
			err, ERROR_LIMIT_EXCEEDED, errno, "cannot begin to delete capture %s", capture_id);
		if (removal != NULL) {
			free(removal->path);
			free(removal);
		}
		return NULL;
	}
	removal->was_doomed = entry->is_doomed;
	entry->is_doomed = true;
	return removal;
}

/* The artifacts' folder is somebody else's by now, or cannot be told from one: nothing in it is ours to remove. */
static bool is_foreign(const struct error *err)
{
	static const char *const details[] = {
		"eloop", "enotdir", "not_ours", "foreign_link", "open_to_all", "replaced"};
	for (size_t i = 0; i < sizeof(details) / sizeof(details[0]); i++) {
		if (strcmp(err->detail, details[i]) == 0) {
			return true;
		}
	}
	return false;
}

/* Everything that can fail without anything having been removed. False: err, and nothing has. */
static bool open_places(struct store_removal *removal, struct store_folder *folder,
	struct store_places *places, struct error *err)
{
	if (!store_folder_open(
			removal->captures_fd, removal->own, removal->id, removal->path, folder, err)) {
		return strcmp(err->detail, "enoent") == 0; /* it is gone already */
	}
	*places = (struct store_places){
		.id = removal->id,
		.captures_fd = folder->captures_fd,
		.record_fd = folder->record_fd,
		.parent_fd = -1,
		.fd = -1,
	};
	if (folder->fd < 0) {
		if (is_foreign(err)) {
			removal->left = strdup(removal->path);
			return true;
		}
		return folder->is_elsewhere && strcmp(err->detail, "enoent") == 0;
	}
	if (folder->is_elsewhere) {
		places->parent_fd = folder->parent_fd;
		places->fd = folder->fd;
		if (faccessat(folder->fd, ".", W_OK | X_OK, AT_EACCESS) != 0) {
			error_errno(err, "the folder %s cannot be written", folder->path);
			return error_hint(err, "chmod u+wx %.400s", folder->path);
		}
	}
	return true;
}

void store_removal_run(struct store_removal *removal)
{
	struct store_folder folder = STORE_FOLDER_NONE;
	struct store_places places = {.record_fd = -1, .parent_fd = -1, .fd = -1};
	removal->ok = open_places(removal, &folder, &places, &removal->err) &&
				  store_places_remove(&places, &removal->err);
	removal->is_gone = removal->ok || places.has_begun;
	if (places.artifacts_stay || places.record_stays) {
		free(removal->left);
		removal->left = strdup(places.artifacts_stay ? folder.path : removal->own);
	}
	store_folder_close(&folder);
}

static void settle(struct store *store, const struct store_removal *removal)
{
	struct entry *entry = store_find(store, removal->id);
	if (removal->is_gone) {
		store_forget(store, removal->id);
	} else if (entry != NULL) {
		entry->is_doomed = removal->was_doomed;
	}
}

bool store_removal_end(
	struct store *store, struct store_removal *removal, char **left, struct error *err)
{
	bool ok = removal->ok;
	if (store != NULL) {
		settle(store, removal);
	}
	if (!ok && err != NULL) {
		*err = removal->err;
		if (removal->is_gone) {
			error_wrap(err, "capture %s is not listed any more, but some of its files are left",
				removal->id);
			error_hint(err, "the next start of profd removes them");
		}
	}
	*left = removal->left;
	close(removal->captures_fd);
	free(removal->path);
	free(removal);
	return ok;
}
