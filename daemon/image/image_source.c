#include "image/image_source.h"

#include <errno.h>
#include <string.h>

#include <sys/stat.h>
#include <unistd.h>

bool image_source_open(struct image_source *source, int fd, struct error *err)
{
	struct stat status;

	if (fstat(fd, &status) != 0) {
		error_errno(err, "cannot look at descriptor %d", fd);
		close(fd);
		return false;
	}
	if (!S_ISREG(status.st_mode)) {
		close(fd);
		return error_set(err, ERROR_UNSUPPORTED, "descriptor %d is no regular file", fd);
	}
	*source = (struct image_source){.fd = fd, .bytes = (uint64_t)status.st_size};
	return true;
}

void image_source_close(struct image_source *source)
{
	if (source->fd >= 0) {
		close(source->fd);
	}
	*source = (struct image_source){.fd = -1};
}

static size_t read_file(int fd, uint64_t offset, uint8_t *to, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t count = pread(fd, to + done, len - done, (off_t)(offset + done));

		if (count < 0 && errno == EINTR) {
			continue;
		}
		if (count <= 0) {
			break;
		}
		done += (size_t)count;
	}
	return done;
}

size_t image_source_read(const struct image_source *source, uint64_t offset, void *to, size_t len)
{
	if (offset >= source->bytes) {
		return 0;
	}
	if (len > source->bytes - offset) {
		len = (size_t)(source->bytes - offset);
	}
	if (source->fd >= 0) {
		return read_file(source->fd, offset, to, len);
	}
	memcpy(to, source->memory + offset, len);
	return len;
}
