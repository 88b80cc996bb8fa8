#include "analyzer/model/input.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#define STEP_BYTES (256 * 1024)

/* One byte more than is there, so that the end is met without growing. */
static size_t first_step(int fd, uint64_t max_bytes)
{
	struct stat status;

	if (fstat(fd, &status) != 0 || status.st_size <= 0 || (uint64_t)status.st_size > max_bytes) {
		return STEP_BYTES;
	}
	return (size_t)status.st_size + 1;
}

bool input_read(int fd, uint64_t max_bytes, const char *what, struct buffer *out, struct error *err)
{
	size_t begin = out->len;
	size_t step = first_step(fd, max_bytes);

	for (;;) {
		if (!buffer_reserve(out, step)) {
			return error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for %s", what);
		}
		ssize_t count = pread(fd, out->data + out->len, step, (off_t)(out->len - begin));

		if (count < 0 && errno == EINTR) {
			continue;
		}
		if (count < 0) {
			return error_errno(err, "cannot read %s", what);
		}
		if (count == 0) {
			return true;
		}
		out->len += (size_t)count;
		if (out->len - begin > max_bytes) {
			return error_set(err, ERROR_LIMIT_EXCEEDED, "%s is larger than %llu bytes", what,
				(unsigned long long)max_bytes);
		}
		step = STEP_BYTES;
	}
}
