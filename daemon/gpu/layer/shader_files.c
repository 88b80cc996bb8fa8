#include "gpu/layer/shader_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu/layer/report.h"
#include "protocol/gpu_wire.h"
#include "protocol/sha256.h"

struct writing {
	const char *template;
	struct channel *channel;
	int folder_fd; /* -1: not made yet, or it could not be */
	bool has_tried;
	char hash[SHA256_HEX_BYTES]; /* of the module that was looked at last, */
	bool is_written;             /* and whether it is there */
};

/* Made with the first module: a capture that uses none leaves no folder. */
static int open_folder(const char *template)
{
	char path[GPU_WIRE_PATH_BYTES + sizeof(GPU_WIRE_SHADERS_FOLDER)];
	snprintf(path, sizeof(path), "%s" GPU_WIRE_SHADERS_FOLDER, template);
	if (mkdir(path, 0700) != 0 && errno != EEXIST) {
		return -1;
	}
	return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static bool write_all(int fd, const char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t count = write(fd, bytes, len);
		if (count < 0 && errno == EINTR) {
			continue;
		}
		if (count <= 0) {
			return false;
		}
		bytes += count;
		len -= (size_t)count;
	}
	return true;
}

/* One that is there already is of an earlier capture with this template, or was not completed: it is made anew. */
static bool write_file(int folder_fd, const struct shader_use *use)
{
	char name[SHA256_HEX_BYTES + sizeof(GPU_WIRE_SHADERS_SUFFIX)];
	snprintf(name, sizeof(name), "%s" GPU_WIRE_SHADERS_SUFFIX, use->hash);
	unlinkat(folder_fd, name, 0);
	int fd = openat(folder_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) {
		return false;
	}
	bool ok = write_all(fd, use->code, use->bytes);
	ok = close(fd) == 0 && ok;
	if (!ok) {
		unlinkat(folder_fd, name, 0);
	}
	return ok;
}

static bool take(void *context, const struct shader_use *use)
{
	struct writing *writing = context;
	if (!writing->has_tried) {
		writing->has_tried = true;
		writing->folder_fd = open_folder(writing->template);
	}
	if (strcmp(writing->hash, use->hash) != 0) {
		memcpy(writing->hash, use->hash, sizeof(writing->hash));
		writing->is_written = writing->folder_fd >= 0 && write_file(writing->folder_fd, use);
	}
	if (writing->is_written) {
		report_shader(writing->channel, use);
	}
	return writing->is_written;
}

void shader_files_write(struct shaders *shaders, const char *template, struct channel *channel)
{
	struct writing writing = {.template = template, .channel = channel, .folder_fd = -1};
	uint64_t left_out = shaders_each_used(shaders, GPU_WIRE_SHADERS, take, &writing);
	if (left_out > 0) {
		report_shaders_left_out(channel, left_out);
	}
	if (writing.folder_fd >= 0) {
		close(writing.folder_fd);
	}
}
