#include "capture/artifacts.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "protocol/names.h"

static const struct {
	const char *kind, *name, *temporary;
} names[ARTIFACT_KINDS] = {
	[ARTIFACT_IS_FOLDED] = {"folded", ARTIFACT_FOLDED, "." ARTIFACT_FOLDED ".tmp"},
	[ARTIFACT_IS_SVG] = {"svg", ARTIFACT_SVG, "." ARTIFACT_SVG ".tmp"},
	[ARTIFACT_IS_JSON] = {"json", ARTIFACT_JSON, "." ARTIFACT_JSON ".tmp"},
	[ARTIFACT_IS_SYMBOLS] = {"symbols", ARTIFACT_SYMBOLS, "." ARTIFACT_SYMBOLS ".tmp"},
};

const char *artifact_kind(enum artifact artifact)
{
	return names[artifact].kind;
}

const char *artifact_name(enum artifact artifact)
{
	return names[artifact].name;
}

void artifacts_init(struct artifacts *artifacts, int folder_fd)
{
	*artifacts = (struct artifacts){.folder_fd = folder_fd};
	for (int i = 0; i < ARTIFACT_KINDS; i++) {
		artifacts->files[i].fd = -1;
	}
}

static bool is_named(const json_t *formats, const char *kind)
{
	size_t i;
	json_t *format;
	json_array_foreach(formats, i, format)
	{
		const char *text = json_string_value(format);
		if (text != NULL && strcmp(text, kind) == 0) {
			return true;
		}
	}
	return !json_is_array(formats);
}

void artifacts_want(struct artifacts *artifacts, const json_t *formats)
{
	for (int i = 0; i < ARTIFACT_KINDS; i++) {
		artifacts->files[i].is_wanted =
			i == ARTIFACT_IS_SYMBOLS || is_named(formats, names[i].kind);
	}
}

bool artifacts_create(struct artifacts *artifacts, struct error *err)
{
	artifacts_close(artifacts);
	for (int i = 0; i < ARTIFACT_KINDS; i++) {
		if (!artifacts->files[i].is_wanted) {
			continue;
		}
		/* Made anew, not emptied: an analyzer that was given up may still hold the old file. */
		if (!files_remove(artifacts->folder_fd, names[i].temporary, err)) {
			return false;
		}
		artifacts->files[i].fd = files_create(artifacts->folder_fd, names[i].temporary, err);
		if (artifacts->files[i].fd < 0) {
			return false;
		}
	}
	return true;
}

void artifacts_close(struct artifacts *artifacts)
{
	for (int i = 0; i < ARTIFACT_KINDS; i++) {
		if (artifacts->files[i].fd >= 0) {
			close(artifacts->files[i].fd);
			artifacts->files[i].fd = -1;
		}
	}
}

static bool commit(struct artifacts *artifacts, int i, struct error *err)
{
	struct stat status;
	if (!files_sync(artifacts->files[i].fd, err)) {
		return error_wrap(err, "%s", names[i].name);
	}
	if (fstat(artifacts->files[i].fd, &status) != 0) {
		return error_errno(err, "cannot examine %s", names[i].name);
	}
	if (!files_rename(artifacts->folder_fd, names[i].temporary, names[i].name, err)) {
		return false;
	}
	artifacts->files[i].bytes = (uint64_t)status.st_size;
	artifacts->files[i].is_complete = true;
	return true;
}

bool artifacts_commit(struct artifacts *artifacts, struct error *err)
{
	bool ok = true;
	for (int i = 0; ok && i < ARTIFACT_KINDS; i++) {
		ok = !artifacts->files[i].is_wanted || commit(artifacts, i, err);
	}
	ok = ok && files_sync(artifacts->folder_fd, err);
	artifacts_close(artifacts);
	if (!ok) {
		artifacts_discard(artifacts);
	}
	return ok;
}

void artifacts_discard(struct artifacts *artifacts)
{
	artifacts_close(artifacts);
	for (int i = 0; i < ARTIFACT_KINDS; i++) {
		if (artifacts->files[i].is_wanted) {
			files_remove(artifacts->folder_fd, names[i].temporary, NULL);
		}
		if (artifacts->files[i].is_complete && !artifacts->replaces) {
			files_remove(artifacts->folder_fd, names[i].name, NULL);
			artifacts->files[i].is_complete = false;
		}
	}
}
