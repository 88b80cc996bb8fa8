#include "process/descendants.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "process/proc_file.h"
#include "protocol/limits.h"

#define PATH_BYTES 64

struct seen {
	struct descendant who;
	pid_t parent, group;
	bool lives; /* no zombie */
};

typedef VEC(struct seen) seen_list;

void descendants_finish(struct descendants *descendants)
{
	VEC_FINISH(&descendants->list);
}

/* State, parent, group, and field 22, which is the 20th behind the name. */
static bool read_seen(int proc, pid_t pid, struct seen *seen)
{
	char path[PATH_BYTES], text[1024];
	snprintf(path, sizeof(path), "%d/stat", (int)pid);
	const char *stat = proc_file_stat(proc, path, text, sizeof(text));
	char state;
	int parent, group;
	uint64_t start;
	if (stat == NULL || sscanf(stat,
							" %c %d %d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d "
							"%*d %*d %*d %" SCNu64,
							&state, &parent, &group, &start) != 4) {
		return false;
	}
	*seen = (struct seen){{pid, start}, parent, group, proc_file_lives(stat)};
	return true;
}

static int open_proc(void)
{
	return open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void read_all(seen_list *all)
{
	DIR *folder = opendir("/proc");
	const struct dirent *entry;
	while (folder != NULL && (entry = readdir(folder)) != NULL) {
		struct seen seen;
		bool is_process = entry->d_name[0] >= '1' && entry->d_name[0] <= '9';
		if (is_process && read_seen(dirfd(folder), (pid_t)atoi(entry->d_name), &seen) &&
			!VEC_PUSH(all, seen)) {
			break;
		}
	}
	if (folder != NULL) {
		closedir(folder);
	}
}

static bool knows(const struct descendants *descendants, pid_t pid)
{
	for (size_t i = 0; i < descendants->list.len; i++) {
		if (descendants->list.items[i].pid == pid) {
			return true;
		}
	}
	return false;
}

/* One generation; false when it had nobody new. */
static bool add_children(struct descendants *descendants, const seen_list *all, pid_t root)
{
	size_t before = descendants->list.len;
	for (size_t i = 0; i < all->len && descendants->list.len < LIMIT_DESCENDANTS; i++) {
		const struct seen *seen = &all->items[i];
		bool descends = seen->parent == root || knows(descendants, seen->parent);
		if (descends && seen->lives && !knows(descendants, seen->who.pid) &&
			!VEC_PUSH(&descendants->list, seen->who)) {
			return false;
		}
	}
	return descendants->list.len > before;
}

void descendants_look(struct descendants *descendants, pid_t root)
{
	seen_list all = {0};
	/* A number that is another's by now would lend its children. */
	descendants_keep_living(descendants, 0);
	read_all(&all);
	while (add_children(descendants, &all, root)) {
	}
	VEC_FINISH(&all);
}

void descendants_keep_living(struct descendants *descendants, pid_t except_group)
{
	size_t kept = 0;
	int proc = descendants->list.len > 0 ? open_proc() : -1;
	for (size_t i = 0; i < descendants->list.len; i++) {
		struct descendant who = descendants->list.items[i];
		struct seen seen;
		if (proc >= 0 && read_seen(proc, who.pid, &seen) && seen.lives &&
			seen.who.start_ticks == who.start_ticks &&
			(except_group == 0 || seen.group != except_group)) {
			descendants->list.items[kept++] = who;
		}
	}
	descendants->list.len = kept;
	if (proc >= 0) {
		close(proc);
	}
}

void descendant_name(pid_t pid, char name[DESCENDANT_NAME_BYTES])
{
	char path[PATH_BYTES];
	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	if (proc_file_read(AT_FDCWD, path, name, DESCENDANT_NAME_BYTES) <= 0 || name[0] == '\0') {
		snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
		proc_file_read(AT_FDCWD, path, name, DESCENDANT_NAME_BYTES);
		name[strcspn(name, "\n")] = '\0';
	}
}
