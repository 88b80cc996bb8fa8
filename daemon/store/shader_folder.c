#include "store/shader_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"

#define HASH_LEN 64

bool shader_folder_owns(const char *name)
{
	static const char *const endings[] = {".spv", ".glsl", ".hlsl", ".wgsl", ".slang", ".txt"};
	if (strspn(name, "0123456789abcdef") != HASH_LEN) {
		return false;
	}
	const char *end = name + HASH_LEN;
	if (*end == '-' && strspn(end + 1, "0123456789") > 0) {
		end += 1 + strspn(end + 1, "0123456789");
	}
	size_t i = 0;
	while (i < sizeof(endings) / sizeof(endings[0]) && strcmp(endings[i], end) != 0) {
		i++;
	}
	return i < sizeof(endings) / sizeof(endings[0]);
}

bool shader_folder_each(int capture_fd, const char *name,
	bool (*look)(int folder_fd, const char *file_name, void *context), void *context)
{
	bool ok = true;
	int fd = openat(capture_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry = NULL;
	if (folder == NULL) {
		if (fd >= 0) {
			close(fd);
		}
		return true;
	}
	while (ok && (entry = readdir(folder)) != NULL) {
		ok = !shader_folder_owns(entry->d_name) || look(fd, entry->d_name, context);
	}
	closedir(folder);
	return ok;
}

static bool remove_file(int folder_fd, const char *name, void *context)
{
	struct error *err = context, reason = {0};
	if (files_remove(folder_fd, name, &reason) || strcmp(reason.detail, "eisdir") == 0) {
		return true;
	}
	if (err != NULL) {
		*err = reason;
	}
	return false;
}

bool shader_folder_remove(int capture_fd, const char *name, struct error *err)
{
	if (!shader_folder_each(capture_fd, name, remove_file, err)) {
		return false;
	}
	return unlinkat(capture_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT || errno == ENOTDIR ||
		   errno == ENOTEMPTY || errno == EEXIST ||
		   error_errno(err, "cannot remove the folder %s", name);
}

static bool add_bytes(int folder_fd, const char *name, void *context)
{
	struct stat status;
	if (fstatat(folder_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode)) {
		*(uint64_t *)context += (uint64_t)status.st_size;
	}
	return true;
}

uint64_t shader_folder_bytes(int capture_fd, const char *name)
{
	uint64_t bytes = 0;
	shader_folder_each(capture_fd, name, add_bytes, &bytes);
	return bytes;
}
