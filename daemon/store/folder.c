#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "protocol/clock.h"
#include "protocol/names.h"
#include "store/contents.h"
#include "store/output_dir.h"
#include "store/table.h"

#define ID_ATTEMPTS 8

void store_record_path(const struct store *store, const char *id, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%.*s/%s", PATH_MAX - 64, store->captures_path, id);
}

static int duplicate(int fd, struct error *err)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (copy < 0) {
		error_errno(err, "cannot duplicate a descriptor");
	}
	return copy;
}

bool store_is_in_place(const struct store *store)
{
	struct stat named, own;
	return stat(store->captures_path, &named) == 0 && fstat(store->captures_fd, &own) == 0 &&
		   named.st_dev == own.st_dev && named.st_ino == own.st_ino;
}

static bool is_same(int fd, int other)
{
	struct stat left, right;
	return fstat(fd, &left) == 0 && fstat(other, &right) == 0 && left.st_dev == right.st_dev &&
		   left.st_ino == right.st_ino;
}

/* Is the folder that one, or anywhere below it? */
static bool is_below(int folder, int top)
{
	int at = fcntl(folder, F_DUPFD_CLOEXEC, 3);
	bool found = false;
	for (int depth = 0; at >= 0 && depth < PATH_MAX / 2; depth++) {
		int up = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		found = is_same(at, top);
		bool is_root = up < 0 || is_same(at, up);
		close(at);
		at = up;
		if (found || is_root) {
			break;
		}
	}
	if (at >= 0) {
		close(at);
	}
	return found;
}

/* The folder that will hold the artifacts' folder. */
static int open_parent(struct store *store, const char *output_dir, struct error *err)
{
	if (output_dir == NULL) {
		return duplicate(store->captures_fd, err);
	}
	int fd = output_dir_open(output_dir, err);
	if (fd < 0) {
		error_wrap(err, "output_dir");
		return -1;
	}
	if (is_below(fd, store->captures_fd)) {
		error_set(err, ERROR_BAD_PARAMS, "output_dir %s is in profd's own folder of captures",
			output_dir);
		error_detail(err, "own_folder");
		error_hint(err, "leave output_dir out: captures are kept there anyway");
		close(fd);
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
	if (folder->record_fd < 0 && !store_is_in_place(store)) {
		error_set(err, ERROR_IO,
			"the data folder of profd, %s, was removed or replaced while it runs",
			store->captures_path);
		error_detail(err, "data_folder_gone");
		return error_hint(err, "restart profd: profctl daemon stop, and the next client starts it");
	}
	return folder->record_fd >= 0 ||
		   error_wrap(err, "cannot begin a capture in %s", store->captures_path);
}

/* Before there is anything elsewhere, the data folder knows of it: whoever is killed now leaves nothing that nobody finds. */
static bool put_pointer(const struct store_folder *folder, struct error *err)
{
	json_t *record = json_pack(
		"{s:s, s:s, s:s}", "capture_id", folder->id, "state", "starting", "folder", folder->path);
	bool ok = record != NULL && store_write_record(folder->record_fd, record, false, err);
	json_decref(record);
	return ok;
}

/* The folder that was made is the one that was opened, and the path that the client gave still leads to the folder around it. */
static bool check_place(
	const struct store_folder *folder, const char *output_dir, struct error *err)
{
	struct stat status;
	bool is_ours = fstat(folder->fd, &status) == 0 && status.st_uid == geteuid();
	int fd = is_ours ? output_dir_open(output_dir, NULL) : -1;
	bool ok = fd >= 0 && is_same(fd, folder->parent_fd);
	if (fd >= 0) {
		close(fd);
	}
	if (!ok) {
		error_set(
			err, ERROR_IO, "output_dir %s became another folder while it was used", output_dir);
		error_hint(err, "choose a folder whose path nobody changes");
		error_detail(err, "replaced");
	}
	return ok;
}

static bool make_artifact_folder(
	struct store_folder *folder, const char *output_dir, struct error *err)
{
	if (output_dir == NULL) {
		folder->fd = duplicate(folder->record_fd, err);
		return folder->fd >= 0;
	}
	folder->is_elsewhere = true;
	if (!put_pointer(folder, err)) {
		return false;
	}
	folder->fd = files_make_folder(folder->parent_fd, folder->id, err);
	if (folder->fd < 0) {
		error_wrap(err, "output_dir %s", output_dir);
		if (err != NULL && err->code != ERROR_DISK_FULL) {
			error_hint(err, "choose another folder, one that can be written");
		}
		return false;
	}
	return check_place(folder, output_dir, err);
}

bool store_create(
	struct store *store, const char *output_dir, struct store_folder *folder, struct error *err)
{
	struct store_folder made = STORE_FOLDER_NONE;
	made.captures_fd = duplicate(store->captures_fd, err);
	made.parent_fd = made.captures_fd >= 0 ? open_parent(store, output_dir, err) : -1;
	if (made.parent_fd >= 0 && make_record_folder(store, &made, err) &&
		set_path(store, output_dir, &made, err) && make_artifact_folder(&made, output_dir, err)) {
		*folder = made;
		return true;
	}
	if (made.record_fd >= 0) {
		store_folder_discard(&made, NULL);
	}
	store_folder_close(&made);
	return false;
}

/* A folder with an unfinished capture's name, below a place that is ours. */
static bool open_elsewhere(
	const char *id, const char *path, struct store_folder *folder, struct error *err)
{
	char parent[PATH_MAX];
	const char *name = path != NULL ? strrchr(path, '/') : NULL;
	if (name == NULL || strcmp(name + 1, id) != 0 || strlen(path) + 64 > sizeof(folder->path)) {
		error_set(err, ERROR_IO, "the record of capture %s does not say where it is", id);
		return error_detail(err, "enoent");
	}
	snprintf(folder->path, sizeof(folder->path), "%s", path);
	snprintf(parent, sizeof(parent), "%.*s", name == path ? 1 : (int)(name - path), path);
	folder->parent_fd = output_dir_open(parent, err);
	if (folder->parent_fd < 0) {
		return false;
	}
	folder->fd = openat(folder->parent_fd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (folder->fd < 0) {
		return error_errno(err, "cannot open the folder %s", path);
	}
	struct stat status;
	if (fstat(folder->fd, &status) != 0) {
		error_errno(err, "cannot examine the folder %s", path);
	} else if (status.st_uid != geteuid()) {
		error_set(err, ERROR_NOT_PERMITTED, "the folder %s is another user's", path);
		error_detail(err, "not_ours");
	} else {
		return true;
	}
	close(folder->fd);
	folder->fd = -1;
	return false;
}

bool store_folder_open(int captures_fd, const char *own, const char *id, const char *path,
	struct store_folder *folder, struct error *err)
{
	struct store_folder found = STORE_FOLDER_NONE;
	snprintf(found.id, sizeof(found.id), "%s", id);
	found.captures_fd = duplicate(captures_fd, err);
	if (found.captures_fd < 0) {
		return false;
	}
	found.record_fd =
		openat(found.captures_fd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (found.record_fd < 0) {
		error_errno(err, "cannot open the folder %s", own);
		store_folder_close(&found);
		return false;
	}
	/* The data folder may have been moved since its records were written. */
	if (path == NULL || strcmp(path, own) == 0 || contents_has(found.record_fd, ARTIFACT_JOURNAL)) {
		strcpy(found.path, own);
		found.parent_fd = duplicate(captures_fd, err);
		found.fd = found.parent_fd >= 0 ? duplicate(found.record_fd, err) : -1;
	} else {
		found.is_elsewhere = true;
		open_elsewhere(id, path, &found, err);
	}
	*folder = found;
	return true;
}

bool store_reopen(const struct store *store, const char *capture_id, const char *path,
	struct store_folder *folder, struct error *err)
{
	char own[PATH_MAX];
	store_record_path(store, capture_id, own);
	return store_folder_open(store->captures_fd, own, capture_id, path, folder, err);
}

void store_folder_close(struct store_folder *folder)
{
	int *fds[] = {&folder->fd, &folder->record_fd, &folder->parent_fd, &folder->captures_fd};
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		if (*fds[i] >= 0) {
			close(*fds[i]);
			*fds[i] = -1;
		}
	}
}

bool store_folder_is_at_its_path(const struct store_folder *folder)
{
	struct stat named, own;
	return fstat(folder->fd, &own) == 0 && lstat(folder->path, &named) == 0 &&
		   named.st_dev == own.st_dev && named.st_ino == own.st_ino;
}

bool store_folder_sync(const struct store_folder *folder, struct error *err)
{
	int fd = files_open(folder->record_fd, CONTENTS_RECORD, err);
	if (fd < 0) {
		return false;
	}
	bool ok = files_sync(fd, err);
	close(fd);
	return ok && files_sync(folder->record_fd, err);
}

uint64_t store_folder_bytes(const struct store_folder *folder)
{
	uint64_t bytes = folder->fd >= 0 ? contents_bytes(folder->fd) : 0;
	return bytes + (folder->is_elsewhere ? contents_bytes(folder->record_fd) : 0);
}

bool store_folder_discard(const struct store_folder *folder, struct error *err)
{
	struct store_places places = {
		.id = folder->id,
		.captures_fd = folder->captures_fd,
		.record_fd = folder->record_fd,
		.parent_fd = folder->is_elsewhere ? folder->parent_fd : -1,
		.fd = folder->is_elsewhere ? folder->fd : -1,
	};
	return store_places_remove(&places, err);
}
