#include "capture/document.h"

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

/* Is it a document? */
static bool check(int fd, const char *path, const char *magic, uint64_t *bytes, struct error *err)
{
	char head[MAGIC_BYTES];
	struct stat status;
	size_t len = strlen(magic);
	if (fstat(fd, &status) != 0) {
		return error_errno(err, "examine %.1024s", path);
	}
	if (status.st_uid != geteuid()) {
		return missing(err, path, "is another user's file");
	}
	if (status.st_size == 0) {
		return missing(err, path, "is empty");
	}
	if (pread(fd, head, len, 0) != (ssize_t)len || memcmp(head, magic, len) != 0) {
		error_set(err, ERROR_IO,
			"the document %.1024s does not begin with %s: it was not completed", path, magic);
		return error_detail(err, "document_broken");
	}
	*bytes = (uint64_t)status.st_size;
	return files_sync(fd, err);
}

bool document_take(int folder_fd, const char *path, const char *magic, const char *final_name,
	uint64_t *bytes, struct error *err)
{
	struct error reason = {0};
	const char *slash = strrchr(path, '/');
	const char *name = slash != NULL ? slash + 1 : path;
	if (strncmp(name, ARTIFACT_DOCUMENT_PREFIX, strlen(ARTIFACT_DOCUMENT_PREFIX)) != 0) {
		return missing(err, path, "is not where it was to be");
	}
	int fd = files_open(folder_fd, name, &reason);
	if (fd < 0) {
		return missing(err, path, "cannot be opened");
	}
	bool ok = check(fd, path, magic, bytes, err);
	close(fd);
	/* Of several documents that begin alike, the one that was told of is kept. */
	return ok && files_rename(folder_fd, name, final_name, err) && files_sync(folder_fd, err) &&
		   contents_remove_documents(folder_fd, err);
}
