#include "store/contents.h"

#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files.h"
#include "protocol/names.h"

#define CONTENTS_ORIGINALS 4 /* the journal and the record */

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
	{ARTIFACT_JOURNAL, CONTENTS_ORIGINALS},
	{CONTENTS_RECORD, CONTENTS_ORIGINALS},
	{CONTENTS_DELETING, CONTENTS_ORIGINALS},
};
#define OURS (sizeof(ours) / sizeof(ours[0]))

bool contents_remove(int folder_fd, enum contents which, struct error *err)
{
	for (size_t i = 0; i < OURS; i++) {
		struct error reason = {0};
		if ((ours[i].part & which) == 0 || files_remove(folder_fd, ours[i].name, &reason) ||
			strcmp(reason.detail, "eisdir") == 0) {
			continue;
		}
		if (err != NULL) {
			*err = reason;
		}
		return false;
	}
	return true;
}

uint64_t contents_bytes(int folder_fd)
{
	uint64_t bytes = 0;
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
