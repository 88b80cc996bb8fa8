#include "target/target.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/vec.h"
#include "process/proc_file.h"
#include "target/speaker.h"

#define DELETED " (deleted)"

/* A file or folder of /proc could not be read: either the process is gone, or it is not ours. */
static bool proc_failed(struct error *err, pid_t pid, const char *what)
{
	if (errno == ENOENT || errno == ESRCH) {
		return error_set(err, ERROR_PROCESS_NOT_FOUND, "there is no process %d", (int)pid);
	}
	if (errno == EACCES || errno == EPERM) {
		error_errno(err, "%s of process %d", what, (int)pid);
		return error_hint(err, "profile your own processes, or run profd as root");
	}
	return error_errno(err, "%s of process %d", what, (int)pid);
}

/* maps writes a line end in a name as \012, and nothing else differently. */
static void unescape(char *path)
{
	char *out = path;
	for (const char *in = path; *in;) {
		if (strncmp(in, "\\012", 4) == 0) {
			*out++ = '\n';
			in += 4;
		} else {
			*out++ = *in++;
		}
	}
	*out = '\0';
}

static void cut_deleted(char *path)
{
	size_t len = strlen(path), tail = sizeof(DELETED) - 1;
	if (len > tail && strcmp(path + len - tail, DELETED) == 0) {
		path[len - tail] = '\0';
	}
}

/* address           perms offset  dev   inode                      pathname
 * 00400000-00452000 r-xp 00000000 08:02 173521      /usr/bin/dbus-daemon */
static bool parse_mapping(char *line, struct target_mapping *mapping)
{
	uint64_t start, end, offset, inode;
	unsigned major_number, minor_number;
	char permissions[5];
	int path_at = 0;
	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &start, &end,
			permissions, &offset, &major_number, &minor_number, &inode, &path_at) < 7 ||
		path_at == 0 || end < start) {
		return false;
	}
	char *path = line + path_at;
	unescape(path);
	cut_deleted(path);
	*mapping = (struct target_mapping){
		.start = start,
		.length = end - start,
		.file_offset = offset,
		.protection = (permissions[0] == 'r' ? PROT_READ : 0u) |
					  (permissions[1] == 'w' ? PROT_WRITE : 0u) |
					  (permissions[2] == 'x' ? PROT_EXEC : 0u),
		.device_major = major_number,
		.device_minor = minor_number,
		.inode = inode,
		.path = path,
	};
	return true;
}

/* Calls each for the lines of one maps file. -1: errno; otherwise how many lines there were. */
static long read_maps(const char *name,
	bool (*each)(void *context, const struct target_mapping *mapping), void *context)
{
	FILE *file = fopen(name, "re");
	if (!file) {
		return -1;
	}
	char *line = NULL;
	size_t capacity = 0;
	long lines = 0;
	bool go_on = true;
	errno = 0;
	while (go_on && getline(&line, &capacity, file) > 0) {
		struct target_mapping mapping;
		lines++;
		if (parse_mapping(line, &mapping)) {
			go_on = each(context, &mapping);
		}
		errno = 0;
	}
	int failure = ferror(file) ? errno : 0;
	free(line);
	fclose(file);
	errno = failure;
	return failure == 0 ? lines : -1;
}

bool target_mappings(pid_t pid, bool (*each)(void *context, const struct target_mapping *mapping),
	void *context, struct error *err)
{
	char name[PROC_PATH_BYTES];
	snprintf(name, sizeof(name), "/proc/%d/maps", (int)pid);
	long lines = read_maps(name, each, context);
	pid_t speaker = lines == 0 ? target_speaker(pid) : pid;
	if (speaker != pid) {
		snprintf(name, sizeof(name), "/proc/%d/maps", (int)speaker);
		lines = read_maps(name, each, context);
	}
	return lines >= 0 || proc_failed(err, pid, "the mappings");
}

bool target_threads(pid_t pid, pid_t **tids, size_t *count, struct error *err)
{
	char name[PROC_PATH_BYTES];
	snprintf(name, sizeof(name), "/proc/%d/task", (int)pid);
	DIR *folder = opendir(name);
	if (!folder) {
		return proc_failed(err, pid, "the threads");
	}
	VEC(pid_t) found = {0};
	bool enough = true;
	const struct dirent *entry;
	while (enough && (entry = readdir(folder))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
		enough = tid <= 0 || VEC_PUSH(&found, tid);
	}
	closedir(folder);
	if (!enough || found.len == 0) {
		VEC_FINISH(&found);
		return enough ? error_set(err, ERROR_PROCESS_NOT_FOUND, "process %d has ended", (int)pid)
					  : error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for the list of threads");
	}
	*tids = found.items;
	*count = found.len;
	return true;
}

/* The start of a small file of /proc, NUL-terminated. -1: errno. */
bool target_thread_name(pid_t pid, pid_t tid, char name[16], struct error *err)
{
	char path[PROC_PATH_BYTES], text[64];
	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", (int)pid, (int)tid);
	ssize_t len = proc_file_read(AT_FDCWD, path, text, sizeof(text));
	if (len < 0) {
		return proc_failed(err, pid, "the name of a thread");
	}
	if (len > 0 && text[len - 1] == '\n') {
		text[--len] = '\0';
	}
	size_t kept = strnlen(text, 15);
	memcpy(name, text, kept);
	name[kept] = '\0';
	return true;
}

pid_t target_parent(pid_t pid)
{
	char path[PROC_PATH_BYTES], text[512];
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	const char *stat = proc_file_stat(AT_FDCWD, path, text, sizeof(text));
	int parent = 0;
	return stat != NULL && sscanf(stat, " %*c %d", &parent) == 1 ? (pid_t)parent : 0;
}

/* Texts that each end with a NUL. */
static bool read_texts(pid_t pid, const char *file, const char *what, char *text, size_t max_bytes,
	size_t *len, struct error *err)
{
	char path[PROC_PATH_BYTES];
	snprintf(path, sizeof(path), "/proc/%d/%s", (int)target_speaker(pid), file);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		return proc_failed(err, pid, what);
	}
	size_t used = 0;
	ssize_t count = 1;
	while (used < max_bytes && count > 0) {
		count = read(fd, text + used, max_bytes - used);
		used += count > 0 ? (size_t)count : 0;
	}
	bool ok = count >= 0 || proc_failed(err, pid, what);
	close(fd);
	if (ok) {
		*len = used;
	}
	return ok;
}

bool target_arguments(pid_t pid, char *text, size_t max_bytes, size_t *len, struct error *err)
{
	return read_texts(pid, "cmdline", "the arguments", text, max_bytes, len, err);
}

bool target_environment(pid_t pid, char *text, size_t max_bytes, size_t *len, struct error *err)
{
	return read_texts(pid, "environ", "the environment", text, max_bytes, len, err);
}

bool target_cwd(pid_t pid, char *path, struct error *err)
{
	char link[PROC_PATH_BYTES];
	snprintf(link, sizeof(link), "/proc/%d/cwd", (int)target_speaker(pid));
	ssize_t len = readlink(link, path, PATH_MAX - 1);
	if (len < 0) {
		return proc_failed(err, pid, "the current folder");
	}
	path[len] = '\0';
	return true;
}

/*
 * By its name, not by its file: profctl may come from another installation than the daemon, and a new build replaces
 * the file. Whoever calls another program so fools only himself.
 */
bool target_is_gate(pid_t pid)
{
	char link[PROC_PATH_BYTES], path[PATH_MAX];
	snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
	ssize_t length = readlink(link, path, sizeof(path) - 1);
	if (length <= 0) {
		return false;
	}
	path[length] = '\0';
	char *deleted = strstr(path, " (deleted)");
	if (deleted != NULL) {
		*deleted = '\0';
	}
	const char *slash = strrchr(path, '/');
	return strcmp(slash != NULL ? slash + 1 : path, "profd-gate") == 0;
}

/* It has no memory any more when it is ending. */
static bool has_memory(pid_t pid)
{
	char path[PROC_PATH_BYTES], text[1024];
	unsigned long long bytes = 0;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	const char *stat = proc_file_stat(AT_FDCWD, path, text, sizeof(text));
	/* From the state, field 3, to the size of the memory, field 23 (proc_pid_stat(5)). */
	const char *format =
		" %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d "
		"%*u %llu";
	return stat != NULL && sscanf(stat, format, &bytes) == 1 && bytes > 0;
}

/* It acts with rights that it was not started with, as its status says. */
static bool has_others_rights(const char *path)
{
	static const char *const kinds[] = {"\nUid:", "\nGid:"};
	char text[4096];
	bool has = false;
	if (proc_file_read(AT_FDCWD, path, text, sizeof(text)) < 0) {
		return false;
	}
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		unsigned real = 0, effective = 0;
		const char *line = strstr(text, kinds[i]);
		has = has ||
			  (line != NULL && sscanf(line + strlen(kinds[i]), "%u %u", &real, &effective) == 2 &&
				  real != effective);
	}
	return has;
}

bool target_is_hidden(pid_t pid)
{
	char path[PROC_PATH_BYTES];
	struct stat status;
	pid_t speaker = target_speaker(pid);
	snprintf(path, sizeof(path), "/proc/%d/status", (int)speaker);
	/* The owner of these files is root when the process may not be dumped (proc(5)), and when it is ending. Root sees no difference there. */
	bool is_hidden = geteuid() == 0 ? has_others_rights(path)
									: stat(path, &status) == 0 && status.st_uid != geteuid();
	return is_hidden && has_memory(speaker);
}

/* Runs with another's rights, or may not be read. */
static bool is_hidden_file(const char *path)
{
	struct stat status;
	if (stat(path, &status) != 0 || !S_ISREG(status.st_mode) || access(path, X_OK) != 0) {
		return false;
	}
	bool changes_user = (status.st_mode & S_ISUID) != 0 && status.st_uid != geteuid();
	bool changes_group = (status.st_mode & S_ISGID) != 0 && status.st_gid != getegid();
	return changes_user || changes_group || access(path, R_OK) != 0;
}

static bool is_executable_file(const char *path)
{
	struct stat status;
	return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

bool target_program_is_hidden(const char *program, const char *cwd)
{
	char path[2 * PATH_MAX];
	const char *list = getenv("PATH");
	if (program[0] == '\0') {
		return false;
	}
	if (strchr(program, '/') != NULL) {
		bool is_absolute = program[0] == '/';
		snprintf(
			path, sizeof(path), "%s%s%s", is_absolute ? "" : cwd, is_absolute ? "" : "/", program);
		return is_hidden_file(path);
	}
	while (list != NULL && *list != '\0') {
		size_t len = strcspn(list, ":");
		snprintf(path, sizeof(path), "%.*s/%s", (int)(len < PATH_MAX ? len : 0), list, program);
		if (is_executable_file(path)) {
			return is_hidden_file(path);
		}
		list += len + (list[len] == ':' ? 1 : 0);
	}
	return false;
}

bool target_is_ours(pid_t pid, struct error *err)
{
	char path[PROC_PATH_BYTES], text[4096];
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (proc_file_read(AT_FDCWD, path, text, sizeof(text)) < 0) {
		return proc_failed(err, pid, "the status");
	}
	const char *line = strstr(text, "\nUid:");
	unsigned real = 0, effective = 0, saved = 0;
	if (!line || sscanf(line, "\nUid: %u %u %u", &real, &effective, &saved) != 3) {
		return error_set(err, ERROR_PROCESS_NOT_FOUND, "there is no process %d", (int)pid);
	}
	uid_t we = geteuid();
	if (we == 0 || (real == we && effective == we && saved == we)) {
		return true;
	}
	error_set(err, ERROR_NOT_PERMITTED, "process %d belongs to user %u, profd runs as user %u",
		(int)pid, effective, (unsigned)we);
	return error_hint(err, "profile your own processes, or run profd as root");
}

/* True when all of it was read. */
static bool read_vectors(
	pid_t pid, const struct iovec *here, const struct iovec *there, size_t count)
{
	ssize_t len = process_vm_readv(pid, here, 1, there, count, 0);
	pid_t speaker = len < 0 && errno == ESRCH ? target_speaker(pid) : pid;
	if (speaker != pid) {
		len = process_vm_readv(speaker, here, 1, there, count, 0);
	}
	return len == (ssize_t)here->iov_len;
}

bool target_read_memory(pid_t pid, uint64_t address, void *bytes, size_t len)
{
	struct iovec here = {.iov_base = bytes, .iov_len = len};
	struct iovec there = {.iov_base = (void *)(uintptr_t)address, .iov_len = len};
	return read_vectors(pid, &here, &there, 1);
}

bool target_read_words(pid_t pid, const uint64_t *addresses, uint64_t *words, size_t count)
{
	struct iovec here = {.iov_base = words, .iov_len = count * sizeof(*words)};
	struct iovec there[TARGET_WORDS];
	for (size_t i = 0; i < count && i < TARGET_WORDS; i++) {
		there[i] = (struct iovec){(void *)(uintptr_t)addresses[i], sizeof(*words)};
	}
	return count <= TARGET_WORDS && read_vectors(pid, &here, there, count);
}

int target_open_kernel_symbols(void)
{
	return open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
}
