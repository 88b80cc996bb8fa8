#ifndef PROCESS_DESCENDANTS_H
#define PROCESS_DESCENDANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"

/*
 * Who descends from a process, gathered in several looks: a child is known by its parent as long as that lives, and stays known
 * when it is somebody else's child later. descendants_linux.c reads /proc (proc_pid_stat(5)), about 10 us for each process of the system. Zero
 * is empty. Any thread.
 */
struct descendant {
	pid_t pid;
	uint64_t start_ticks; /* with the pid: this process, not a later one */
};

struct descendants {
	VEC(struct descendant) list; /* at most LIMIT_DESCENDANTS */
};

#define DESCENDANT_NAME_BYTES 256

void descendants_finish(struct descendants *descendants);
/* Adds those of root that live now, and theirs. */
void descendants_look(struct descendants *descendants, pid_t root);
/* Forgets those that do not live any more (zombies do not), and those in that process group (0: none). */
void descendants_keep_living(struct descendants *descendants, pid_t except_group);
/* Its argv[0], cut; its thread's name when it has none. "" when it is gone. Bytes of its choice. */
void descendant_name(pid_t pid, char name[DESCENDANT_NAME_BYTES]);

#endif
