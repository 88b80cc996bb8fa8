/*
 * The real profd-analyzer with code planted where a file of the target would take over: in place of reading an image's symbols. Linked
 * from the program's own objects; the linker puts the functions here in the place of those they are named after. It is for
 * tests/integration/test_sandbox.py, which says by the environment (the real one has none, and looks for none):
 *
 *   PLANTED_PAYLOAD      try (planted_attempts.h), or one that may end the process: exec, kill, i386, x32, spin, allocate, crash, abort, assert
 *   PLANTED_WITHOUT      a wall that is left out: landlock, seccomp, everything
 *   PLANTED_KERNEL       "old": one without seccomp
 *   PLANTED_CPU_SECONDS  another limit than the real one
 *   PLANTED_FOLDER, PLANTED_ABSTRACT, PLANTED_PORT     aims
 */
#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/syscall.h>

#include "analyzer/sandbox.h"
#include "analyzer/symbol/symtab.h"
#include "support/planted_attempts.h"

#define FOREIGN_FD  77
#define CHUNK_BYTES ((size_t)1 << 20)
#define X32_BIT     0x40000000
#define I386_GETPID 20

struct symtab *__real_symtab_create(
	struct image_source source, const uint64_t *file_offsets, size_t count);
struct symtab *__wrap_symtab_create(
	struct image_source source, const uint64_t *file_offsets, size_t count);
bool __real_sandbox_enter(const struct sandbox_limits *limits, struct error *err);
bool __wrap_sandbox_enter(const struct sandbox_limits *limits, struct error *err);
bool __real_landlock_refuse_all(struct error *err);
bool __wrap_landlock_refuse_all(struct error *err);
bool __real_syscalls_restrict(struct error *err);
bool __wrap_syscalls_restrict(struct error *err);
bool __real_sandbox_has_seccomp(void);
bool __wrap_sandbox_has_seccomp(void);

static struct planted_aims aims = {.image = -1, .foreign = FOREIGN_FD};

static const char *told(const char *name)
{
	const char *value = getenv(name);

	return value == NULL ? "" : value;
}

static bool is_without(const char *wall)
{
	return strcmp(told("PLANTED_WITHOUT"), wall) == 0;
}

/* The first mapping of the daemon. */
static uint64_t find_address(pid_t pid)
{
	char path[64], line[64] = "";

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	FILE *file = fopen(path, "re");

	if (file == NULL || fgets(line, sizeof(line), file) == NULL) {
		abort();
	}
	fclose(file);
	return strtoull(line, NULL, 16);
}

bool __wrap_sandbox_enter(const struct sandbox_limits *limits, struct error *err)
{
	struct sandbox_limits changed = *limits;
	int fd = open("/etc/passwd", O_RDONLY);

	if (fd < 0 || dup2(fd, FOREIGN_FD) < 0) {
		abort();
	}
	aims.daemon = getppid();
	aims.daemon_address = find_address(aims.daemon);
	aims.folder = told("PLANTED_FOLDER");
	aims.abstract = told("PLANTED_ABSTRACT");
	aims.port = (uint16_t)atoi(told("PLANTED_PORT"));
	if (getenv("PLANTED_CPU_SECONDS") != NULL) {
		changed.cpu_seconds = (uint64_t)atoi(told("PLANTED_CPU_SECONDS"));
	}
	return is_without("everything") || __real_sandbox_enter(&changed, err);
}

bool __wrap_landlock_refuse_all(struct error *err)
{
	return is_without("landlock") || __real_landlock_refuse_all(err);
}

bool __wrap_syscalls_restrict(struct error *err)
{
	return is_without("seccomp") || __real_syscalls_restrict(err);
}

bool __wrap_sandbox_has_seccomp(void)
{
	return strcmp(told("PLANTED_KERNEL"), "old") != 0 && __real_sandbox_has_seccomp();
}

static void say(const char *what)
{
	fprintf(stderr, "planted %s\n", what);
}

static void replace_program(void)
{
	char path[4096];
	char *argv[] = {(char *)"touch", path, NULL};

	snprintf(path, sizeof(path), "%s/planted-by-exec", told("PLANTED_FOLDER"));
	execve("/usr/bin/touch", argv, argv + 2);
	say("exec refused");
}

static void kill_daemon(void)
{
	say(kill(aims.daemon, SIGKILL) == 0 ? "kill ok" : "kill refused");
}

/* Its own pid, by the numbers of another architecture. */
static void call_i386(void)
{
#ifdef __x86_64__
	long result = I386_GETPID;

	__asm__ volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
	say(result == getpid() ? "i386 ok" : "i386 refused");
#endif
}

static void call_x32(void)
{
	say(syscall(X32_BIT | SYS_getpid) > 0 ? "x32 ok" : "x32 refused");
}

static void spin(void)
{
	for (volatile unsigned long i = 0;; i++) {
	}
}

/* All there is, down to the last small piece; what comes after it has to do without. */
static void allocate(void)
{
	static void **volatile last; /* a chain, so that no compiler finds that nobody uses it */
	size_t total = 0;

	for (size_t bytes = 64 * CHUNK_BYTES; bytes >= 16; bytes /= 2) {
		for (void **block; (block = malloc(bytes)) != NULL; total += bytes) {
			*block = last;
			last = block;
		}
	}
	fprintf(stderr, "planted allocate %zu\n", total);
}

static void crash(void)
{
	volatile int *volatile nowhere = NULL;

	*nowhere = 1;
}

static void fail_assertion(void)
{
	assert(aims.image == -2 && "planted");
}

static void try_all(void)
{
	planted_try_all(&aims);
}

static const struct {
	const char *name;
	void (*run)(void);
} PAYLOADS[] = {
	{"try", try_all},
	{"exec", replace_program},
	{"kill", kill_daemon},
	{"i386", call_i386},
	{"x32", call_x32},
	{"spin", spin},
	{"allocate", allocate},
	{"crash", crash},
	{"abort", abort},
	{"assert", fail_assertion},
};

struct symtab *__wrap_symtab_create(
	struct image_source source, const uint64_t *file_offsets, size_t count)
{
	static bool has_run;

	for (size_t i = 0; source.fd >= 0 && !has_run && i < sizeof(PAYLOADS) / sizeof(PAYLOADS[0]);
		 i++) {
		if (strcmp(PAYLOADS[i].name, told("PLANTED_PAYLOAD")) == 0) {
			has_run = true;
			aims.image = source.fd;
			PAYLOADS[i].run();
		}
	}
	return __real_symtab_create(source, file_offsets, count);
}
