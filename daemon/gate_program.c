#include "gate_program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gate_words.h"

#define DEFAULT_PATH "/bin:/usr/bin"

/* 0 when path looks executable, else the errno that execve would give, except EISDIR, which it does not know. */
static int check(const char *path)
{
	struct stat status;
	if (stat(path, &status) != 0) {
		return errno == ENOTDIR ? ENOENT : errno;
	}
	if (S_ISDIR(status.st_mode)) {
		return EISDIR;
	}
	if (!S_ISREG(status.st_mode)) {
		return EACCES;
	}
	return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

/* A relative path is meant from the working folder, which is not always where somebody thinks. */
static _Noreturn void explain_missing(int fd, const char *path)
{
	char folder[PATH_MAX];
	if (path[0] == '/' || getcwd(folder, sizeof(folder)) == NULL) {
		gate_fail(fd, "program", ENOENT, "program %s does not exist: check its path", path);
	}
	gate_fail(fd, "program", ENOENT,
		"program %s does not exist in the working folder %s: check cwd, or give an absolute path",
		path, folder);
}

static _Noreturn void explain_program(int fd, const char *path, int errno_value)
{
	struct stat status;
	switch (errno_value) {
	case ENOENT:
		explain_missing(fd, path);
	case EISDIR:
		gate_fail(fd, "program", EISDIR, "%s is a directory: name the program in it", path);
	case EACCES:
		if (stat(path, &status) != 0) {
			gate_fail(fd, "program", EACCES,
				"program %s cannot be reached: a directory of its path may not be entered", path);
		}
		if (!S_ISREG(status.st_mode)) {
			gate_fail(fd, "program", EACCES, "%s is not a regular file: name a program", path);
		}
		if ((status.st_mode & 0111) == 0) {
			gate_fail(fd, "program", EACCES,
				"program %s is not executable: chmod +x would make it so", path);
		}
		gate_fail(fd, "program", EACCES,
			"program %s may not be executed by this user: check its permissions, and that its file "
			"system "
			"is not mounted noexec",
			path);
	default:
		gate_fail(fd, "program", errno_value, "program %s cannot be looked at: %s", path,
			strerror(errno_value));
	}
}

/*
 * The first executable file of that name in PATH, as execvp(3) searches: an empty component is the current
 * directory; what may not be executed is passed over, and remembered when nothing better comes.
 */
static void search(int fd, const char *name, char *path)
{
	const char *folders = getenv("PATH");
	if (folders == NULL) {
		folders = DEFAULT_PATH;
	}
	char refused[PATH_MAX] = "";
	struct stat status;
	for (const char *folder = folders;;) {
		const char *end = strchrnul(folder, ':');
		int length = (int)(end - folder < PATH_MAX ? end - folder : PATH_MAX);
		int wanted =
			snprintf(path, PATH_MAX, "%.*s%s%s", length, folder, length > 0 ? "/" : "./", name);
		if (wanted > 0 && wanted < PATH_MAX) {
			int problem = check(path);
			if (problem == 0) {
				return;
			}
			/* A closed folder of PATH hides whether the name is in it: only a file that is there counts. */
			if (problem == EACCES && refused[0] == '\0' && stat(path, &status) == 0) {
				memcpy(refused, path, (size_t)wanted + 1);
			}
		}
		if (*end == '\0') {
			break;
		}
		folder = end + 1;
	}
	if (refused[0] != '\0') {
		explain_program(fd, refused, EACCES);
	}
	gate_fail(fd, "program", ENOENT,
		"program %.255s%s was not found in PATH %s: give its full path, or set PATH in env", name,
		strlen(name) > 255 ? "..." : "", folders);
}

void gate_find_program(int fd, const char *name, char *path)
{
	if (strchr(name, '/') == NULL) {
		search(fd, name, path);
		return;
	}
	if (strlen(name) >= PATH_MAX) {
		gate_fail(
			fd, "program", ENAMETOOLONG, "the program's path has more than %d bytes", PATH_MAX - 1);
	}
	strcpy(path, name);
	int problem = check(path);
	if (problem != 0) {
		explain_program(fd, path, problem);
	}
}

/* The interpreter's path from a "#!" line. */
static bool script_interpreter(const char *head, char *interpreter)
{
	if (head[0] != '#' || head[1] != '!') {
		return false;
	}
	const char *start = head + 2 + strspn(head + 2, " \t");
	size_t length = strcspn(start, " \t\n");
	memcpy(interpreter, start, length);
	interpreter[length] = '\0';
	return true;
}

/* The dynamic loader's path from PT_INTERP (elf(5)). */
static bool elf_interpreter(
	int file, const char *head, size_t head_bytes, char *interpreter, size_t bytes)
{
	Elf64_Ehdr header;
	if (head_bytes < sizeof(header) || memcmp(head, ELFMAG, SELFMAG) != 0 ||
		head[EI_CLASS] != ELFCLASS64) {
		return false;
	}
	memcpy(&header, head, sizeof(header));
	for (unsigned i = 0; i < header.e_phnum && i < 64; i++) {
		Elf64_Phdr segment;
		off_t at = (off_t)(header.e_phoff + i * sizeof(segment));
		if (pread(file, &segment, sizeof(segment), at) != (ssize_t)sizeof(segment)) {
			return false;
		}
		if (segment.p_type == PT_INTERP && segment.p_filesz > 0 && segment.p_filesz < bytes) {
			ssize_t count = pread(file, interpreter, segment.p_filesz, (off_t)segment.p_offset);
			interpreter[count > 0 ? count : 0] = '\0';
			return count > 0;
		}
	}
	return false;
}

/* execve says ENOENT for a file that is there when what should load it is not. */
static void explain_interpreter(int fd, const char *path)
{
	int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char head[256] = "";
	ssize_t count = file >= 0 ? read(file, head, sizeof(head) - 1) : -1;
	char interpreter[PATH_MAX];
	if (count > 0 && script_interpreter(head, interpreter)) {
		if (strchr(interpreter, '\r') != NULL) {
			gate_fail(fd, "exec", ENOENT,
				"the first line of script %s ends with a carriage return: convert it to Unix line "
				"ends",
				path);
		}
		gate_fail(fd, "exec", ENOENT,
			"the interpreter %s of script %s does not exist: install it, or correct the first line",
			interpreter, path);
	}
	if (count > 0 && elf_interpreter(file, head, (size_t)count, interpreter, sizeof(interpreter))) {
		gate_fail(fd, "exec", ENOENT,
			"the dynamic loader %s of program %s does not exist: it was built for another system",
			interpreter, path);
	}
}

_Noreturn void gate_explain_exec(int fd, const char *path, int errno_value)
{
	switch (errno_value) {
	case ENOENT:
		if (check(path) != 0) {
			explain_program(fd, path, ENOENT);
		}
		explain_interpreter(fd, path);
		gate_fail(
			fd, "exec", ENOENT, "program %s needs a file to be loaded that does not exist", path);
	case ENOEXEC:
		gate_fail(fd, "exec", ENOEXEC,
			"%s is no program for this machine: it has no #! line and no binary format that the "
			"kernel "
			"knows",
			path);
	case EACCES:
		gate_fail(fd, "exec", EACCES,
			"program %s may not be executed: check the permissions of it and of its interpreter",
			path);
	case E2BIG:
		gate_fail(fd, "exec", E2BIG,
			"the arguments and the environment of %s are too long for the kernel: pass them in a "
			"file",
			path);
	case ETXTBSY:
		gate_fail(fd, "exec", ETXTBSY,
			"program %s is still open for writing: wait for the build to finish", path);
	case ELOOP:
		gate_fail(fd, "exec", ELOOP, "the interpreters of script %s are scripts, too deeply nested",
			path);
	default:
		gate_fail(fd, "exec", errno_value, "program %s cannot be executed: %s", path,
			strerror(errno_value));
	}
}
