#include "capture/document.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "protocol/names.h"
#include "store/contents.h"

#define MAGIC_BYTES 16 /* at most */

static bool missing(struct error *err, const char *path, const char *why)
{
	error_set(err, ERROR_IO, "the document that the program told of, %.1024s, %s", path, why);
	error_detail(err, "document_missing");
	return error_hint(err, "RenderDoc's own log is in $RENDERDOC_TEMP/RenderDoc, by default "
						   "/tmp/RenderDoc, while the program runs");
}

static uint64_t written_us(const struct stat *status)
{
	return (uint64_t)status->st_mtim.tv_sec * 1000000 + (uint64_t)status->st_mtim.tv_nsec / 1000;
}

static bool look_at(struct document *document, const char *path, struct error *err)
{
	if (fstat(document->fd, &document->status) != 0) {
		return error_errno(err, "examine %.1024s", path);
	}
	document->bytes = (uint64_t)document->status.st_size;
	document->written_us = written_us(&document->status);
	return true;
}

/* Is it a document? */
static bool check(struct document *document, const char *path, const char *magic, struct error *err)
{
	char head[MAGIC_BYTES];
	size_t len = strlen(magic);
	if (!look_at(document, path, err)) {
		return false;
	}
	if (document->status.st_uid != geteuid()) {
		return missing(err, path, "is another user's file");
	}
	if (document->status.st_nlink != 1) {
		return missing(err, path, "is a file with other names too (hard links)");
	}
	if (document->bytes == 0) {
		return missing(err, path, "is empty");
	}
	if (pread(document->fd, head, len, 0) != (ssize_t)len || memcmp(head, magic, len) != 0) {
		error_set(err, ERROR_IO,
			"the document %.1024s does not begin with %s: it was not completed", path, magic);
		return error_detail(err, "document_broken");
	}
	return files_sync(document->fd, err);
}

static bool open_one(int folder_fd, const char *name, const char *path, const char *magic,
	struct document *document, struct error *err)
{
	struct error reason = {0};
	*document = DOCUMENT_NONE;
	document->fd = files_open(folder_fd, name, &reason);
	if (document->fd < 0) {
		return missing(err, path, "cannot be opened");
	}
	if (!check(document, path, magic, err)) {
		document_close(document);
		return false;
	}
	return true;
}

bool document_take(int folder_fd, const char *path, const char *magic, const char *final_name,
	struct document *document, struct error *err)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash != NULL ? slash + 1 : path;
	if (strncmp(name, ARTIFACT_DOCUMENT_PREFIX, strlen(ARTIFACT_DOCUMENT_PREFIX)) != 0) {
		return missing(err, path, "is not where it was to be");
	}
	if (!open_one(folder_fd, name, path, magic, document, err)) {
		return false;
	}
	/* It was made with the program's umask. */
	bool ok = fchmod(document->fd, 0600) == 0 || error_errno(err, "close %.1024s to others", path);
	/* Of several documents that begin alike, the one that was told of is kept. */
	ok = ok && files_rename(folder_fd, name, final_name, err) && files_sync(folder_fd, err) &&
		 contents_remove_documents(folder_fd, err) && look_at(document, path, err);
	if (ok && !document_is_at(document, folder_fd, final_name)) {
		ok = missing(err, path, "became another file while it was looked at");
	}
	if (!ok) {
		document_close(document);
	}
	return ok;
}

bool document_open(int folder_fd, const char *magic, const char *final_name,
	struct document *document, struct error *err)
{
	return open_one(folder_fd, final_name, final_name, magic, document, err);
}

static bool is_same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

bool document_is_at(const struct document *document, int folder_fd, const char *name)
{
	const struct stat *was = &document->status;
	struct stat is;
	return fstatat(folder_fd, name, &is, AT_SYMLINK_NOFOLLOW) == 0 && is.st_dev == was->st_dev &&
		   is.st_ino == was->st_ino && is.st_nlink == 1 && is.st_size == was->st_size &&
		   is_same_time(&is.st_mtim, &was->st_mtim) && is_same_time(&is.st_ctim, &was->st_ctim);
}

void document_close(struct document *document)
{
	if (document->fd >= 0) {
		close(document->fd);
	}
	document->fd = -1;
}

struct newest {
	char *name;
	struct stat *status;
	bool is_found;
};

static bool look(int folder_fd, const char *name, void *context)
{
	struct newest *newest = context;
	struct stat status;
	if (fstatat(folder_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode) &&
		status.st_size > 0 &&
		(!newest->is_found || written_us(&status) > written_us(newest->status))) {
		snprintf(newest->name, NAME_MAX + 1, "%s", name);
		*newest->status = status;
		newest->is_found = true;
	}
	return true;
}

bool document_find(int folder_fd, char *name, struct stat *status)
{
	struct newest newest = {.name = name, .status = status};
	contents_each_document(folder_fd, look, &newest);
	return newest.is_found;
}
