#ifndef TARGET_TARGET_H
#define TARGET_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "protocol/error.h"

/* What may be read of a running process (proc(5)). target_linux.c. Any thread. */

struct target_mapping {
	uint64_t start, length, file_offset;
	uint32_t protection;
	uint32_t device_major, device_minor;
	uint64_t inode;
	const char *path; /* borrowed for the callback; "" for anonymous memory; " (deleted)" cut off */
};

/* Calls each for every mapping, in address order, until it returns false. Errors: process_not_found, not_permitted. */
bool target_mappings(pid_t pid, bool (*each)(void *context, const struct target_mapping *mapping),
	void *context, struct error *err);

/* The thread ids of a process. *tids is owned (free). */
bool target_threads(pid_t pid, pid_t **tids, size_t *count, struct error *err);

/* The name of a thread (comm) into name[16]. */
bool target_thread_name(pid_t pid, pid_t tid, char name[16], struct error *err);
pid_t target_parent(pid_t pid);

/*
 * The arguments (proc_pid_cmdline(5)), each with its NUL, as they are now: text of the target's choice. At most max_bytes
 * are read; *len is how many there were. False: err.
 */
bool target_arguments(pid_t pid, char *text, size_t max_bytes, size_t *len, struct error *err);
/* The current folder into path[PATH_MAX]. */
bool target_cwd(pid_t pid, char *path, struct error *err);
/* The environment that it was started with, as target_arguments. */
bool target_environment(pid_t pid, char *text, size_t max_bytes, size_t *len, struct error *err);

/* True when the process is a profd-gate (that has not been told "go" yet). */
bool target_is_gate(pid_t pid);

/*
 * Did it become a program whose data are kept from us: set-user-id, or not readable? Then the kernel has removed our events
 * (credentials(7), PR_SET_DUMPABLE of prctl(2)). A process may also hide itself, or change its rights, so ask right after an exec. Root too loses its events of a program that has another's rights.
 */
bool target_is_hidden(pid_t pid);
/*
 * Would a process that executes program (argv[0], in folder cwd, with our PATH) become such a one? For programs that were over before they could be
 * asked. False too when it is not found.
 */
bool target_program_is_hidden(const char *program, const char *cwd);
/* False with not_permitted when the process is another user's; process_not_found. */
bool target_is_ours(pid_t pid, struct error *err);

/*
 * Opens the file behind a mapping for reading: as the process sees it (/proc/PID/root), verified to be the very file by device and
 * inode, regular, never a device or FIFO; else /proc/PID/map_files and, for the program itself, /proc/PID/exe. -1: err says why ("deleted", "replaced", not_permitted).
 */
int target_open_mapped_file(pid_t pid, const struct target_mapping *mapping, struct error *err);

/* count words of its memory, at most TARGET_WORDS, each at an address: all of them, or false as below. */
#define TARGET_WORDS 128
bool target_read_words(pid_t pid, const uint64_t *addresses, uint64_t *words, size_t count);
/* Bytes of its memory (process_vm_readv(2)): all of them, or false (it has ended, nothing is mapped there, or it may not be read). */
bool target_read_memory(pid_t pid, uint64_t address, void *bytes, size_t len);

/*
 * The kernel's own symbol table, lines "address type name [module]" (/proc/kallsyms); addresses are 0 for whom
 * kernel.kptr_restrict keeps them from (proc_sys_kernel(5)). Owned; -1: not there.
 */
int target_open_kernel_symbols(void);

#endif
