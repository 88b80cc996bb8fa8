#include "store/contents.h"

#include <dirent.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "protocol/gpu_wire.h"
#include "protocol/names.h"
#include "store/shader_folder.h"

#define CONTENTS_ORIGINALS 4 /* the journal, the document of a GPU trace and the record */

/* The folder for shaders that a program writes to: one of the temporaries. */
#define TEMPORARY_SHADERS ARTIFACT_DOCUMENT_PREFIX GPU_WIRE_SHADERS_FOLDER

/* The record last: while it is there, the rest can be found. */
static const struct {
	const char *name;
	enum contents part;
} ours[] = {
	{"." ARTIFACT_FOLDED ".tmp", CONTENTS_TEMPORARIES},
	{"." ARTIFACT_SVG ".tmp", CONTENTS_TEMPORARIES},
	{"." ARTIFACT_JSON ".tmp", CONTENTS_TEMPORARIES},
	{"." ARTIFACT_SYMBOLS ".tmp", CONTENTS_TEMPORARIES},
	{CONTENTS_RECORD ".tmp", CONTENTS_TEMPORARIES},
	{ARTIFACT_FOLDED, CONTENTS_OUTPUTS},
	{ARTIFACT_SVG, CONTENTS_OUTPUTS},
	{ARTIFACT_JSON, CONTENTS_OUTPUTS},
	{ARTIFACT_SYMBOLS, CONTENTS_OUTPUTS},
	{ARTIFACT_SHADERS ".tmp", CONTENTS_TEMPORARIES},
	{ARTIFACT_SHADERS, CONTENTS_SHADERS},
	{ARTIFACT_RDC, CONTENTS_ORIGINALS},
	{ARTIFACT_JOURNAL, CONTENTS_ORIGINALS},
	{CONTENTS_RECORD, CONTENTS_ORIGINALS},
	{CONTENTS_DELETING, CONTENTS_ORIGINALS},
};
#define OURS (sizeof(ours) / sizeof(ours[0]))

static bool remove_one(int folder_fd, const char *name, struct error *err)
{
	struct error reason = {0};
	if (files_remove(folder_fd, name, &reason) || strcmp(reason.detail, "eisdir") == 0) {
		return true;
	}
	if (err != NULL) {
		*err = reason;
	}
	return false;
}

bool contents_each_document(
	int folder_fd, bool (*look)(int folder_fd, const char *name, void *context), void *context)
{
	bool ok = true;
	int fd = openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry = NULL;
	if (folder == NULL && fd >= 0) {
		close(fd);
	}
	while (ok && folder != NULL && (entry = readdir(folder)) != NULL) {
		if (strncmp(entry->d_name, ARTIFACT_DOCUMENT_PREFIX, strlen(ARTIFACT_DOCUMENT_PREFIX)) ==
			0) {
			ok = look(folder_fd, entry->d_name, context);
		}
	}
	if (folder != NULL) {
		closedir(folder);
	}
	return ok;
}

/* In the place of the folder there may be something else, which goes as the others do. */
static bool remove_document(int folder_fd, const char *name, void *context)
{
	return (strcmp(name, TEMPORARY_SHADERS) != 0 ||
			   shader_folder_remove(folder_fd, name, context)) &&
		   remove_one(folder_fd, name, context);
}

static bool count_document(int folder_fd, const char *name, void *context)
{
	struct stat status;
	if (fstatat(folder_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode)) {
		*(uint64_t *)context += (uint64_t)status.st_size;
	}
	return true;
}

uint64_t contents_bytes_of_documents(int folder_fd)
{
	uint64_t bytes = 0;
	contents_each_document(folder_fd, count_document, &bytes);
	return bytes + shader_folder_bytes(folder_fd, TEMPORARY_SHADERS);
}

bool contents_remove_documents(int folder_fd, struct error *err)
{
	return contents_each_document(folder_fd, remove_document, err);
}

bool contents_remove(int folder_fd, enum contents which, struct error *err)
{
	if ((which & CONTENTS_TEMPORARIES) != 0 && !contents_remove_documents(folder_fd, err)) {
		return false;
	}
	if ((which & CONTENTS_SHADERS) != 0 &&
		!shader_folder_remove(folder_fd, ARTIFACT_SHADERS_FOLDER, err)) {
		return false;
	}
	for (size_t i = 0; i < OURS; i++) {
		if ((ours[i].part & which) != 0 && !remove_one(folder_fd, ours[i].name, err)) {
			return false;
		}
	}
	return true;
}

uint64_t contents_bytes(int folder_fd)
{
	uint64_t bytes = contents_bytes_of_documents(folder_fd) +
					 shader_folder_bytes(folder_fd, ARTIFACT_SHADERS_FOLDER);
	struct stat status;
	for (size_t i = 0; i < OURS; i++) {
		if (fstatat(folder_fd, ours[i].name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
			S_ISREG(status.st_mode)) {
			bytes += (uint64_t)status.st_size;
		}
	}
	return bytes;
}

bool contents_has(int folder_fd, const char *name)
{
	struct stat status;
	return fstatat(folder_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode);
}
