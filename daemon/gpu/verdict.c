#include "gpu/verdict.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/files.h"
#include "protocol/limits.h"

#define SAID_BYTES  4096 /* its last words are looked for in so many */
#define LINE_BYTES  256
#define MAGIC_BYTES 16

/* Of a file's last bytes as many as there are room for. */
static size_t read_tail(const struct verdict_end *end, char said[SAID_BYTES + 1])
{
	struct stat status;
	struct error err = {0};
	ssize_t len = 0;
	int fd = files_open(end->folder_fd, end->said, &err);
	if (fd >= 0 && fstat(fd, &status) == 0) {
		len = pread(
			fd, said, SAID_BYTES, status.st_size > SAID_BYTES ? status.st_size - SAID_BYTES : 0);
	}
	if (fd >= 0) {
		close(fd);
	}
	return len > 0 ? (size_t)len : 0;
}

/* Of what it said, the last line with anything in it, as ASCII. */
static void last_line(const struct verdict_end *end, char line[LINE_BYTES])
{
	char said[SAID_BYTES + 1];
	size_t len = read_tail(end, said);
	while (len > 0 && (said[len - 1] == '\n' || said[len - 1] == '\r' || said[len - 1] == ' ')) {
		len--;
	}
	size_t start = len;
	while (start > 0 && said[start - 1] != '\n' && said[start - 1] != '\0') {
		start--;
	}
	said[len] = '\0';
	snprintf(line, LINE_BYTES, "%.*s", LINE_BYTES - 1, said + start);
	for (char *at = line; *at != '\0'; at++) {
		*at = *at < ' ' || *at > '~' ? '?' : *at;
	}
}

static bool has_output(const struct verdict_end *end)
{
	char head[MAGIC_BYTES];
	struct error err = {0};
	size_t len = strlen(end->magic);
	int fd = files_open(end->folder_fd, end->output, &err);
	bool ok =
		fd >= 0 && pread(fd, head, len, 0) == (ssize_t)len && memcmp(head, end->magic, len) == 0;
	if (fd >= 0) {
		close(fd);
	}
	return ok;
}

static bool has_succeeded(const siginfo_t *info)
{
	return info->si_code == CLD_EXITED && info->si_status == 0;
}

/* Why it was not let end; NULL: it ended by itself. */
static const char *interruption(const struct verdict_end *end)
{
	struct statvfs space;
	int number = end->info->si_code == CLD_EXITED ? 0 : end->info->si_status;
	if (end->interrupted != NULL) {
		return end->interrupted;
	}
	if (number == SIGXCPU) {
		return "it used all of its CPU time";
	}
	if (number == SIGXFSZ) {
		return "it would have written more than it may";
	}
	if (number == SIGKILL) {
		return "it was killed, by somebody or because the system ran out of memory";
	}
	if (!has_succeeded(end->info) && fstatvfs(end->folder_fd, &space) == 0 &&
		(uint64_t)space.f_bavail * space.f_frsize < LIMIT_GPU_FREE_BYTES) {
		return "no space is left for what it writes";
	}
	return NULL;
}

static void describe(const siginfo_t *info, char *text, size_t size)
{
	const char *name = sigabbrev_np(info->si_status);
	if (has_succeeded(info)) {
		snprintf(text, size, "made nothing of it");
	} else if (info->si_code == CLD_EXITED) {
		snprintf(text, size, "ended with status %d", info->si_status);
	} else if (name != NULL) {
		snprintf(text, size, "was ended by SIG%s", name);
	} else {
		snprintf(text, size, "was ended by signal %d", info->si_status);
	}
}

void verdict_decide(const struct verdict_end *end, struct verdict *verdict)
{
	char line[LINE_BYTES], how[64];
	const char *interrupted = interruption(end);
	*verdict = (struct verdict){.is = VERDICT_UNREAD};
	if (interrupted != NULL) {
		snprintf(verdict->why, sizeof(verdict->why), "%s did not read it to its end: %s",
			end->program, interrupted);
	} else if (has_succeeded(end->info) && has_output(end)) {
		verdict->is = VERDICT_GOOD;
	} else {
		verdict->is = VERDICT_BROKEN;
		describe(end->info, how, sizeof(how));
		last_line(end, line);
		snprintf(verdict->why, sizeof(verdict->why), "%s %s%s%s", end->program, how,
			line[0] != '\0' ? ": " : "", line);
	}
}
