#include "process/descendants.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocol/limits.h"

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

static ssize_t read_file(int proc, pid_t pid, const char *file, char *text, size_t bytes)
{
	char path[64];
	snprintf(path, sizeof(path), "%d/%s", (int)pid, file);
	int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		return -1;
	}
	ssize_t count = read(fd, text, bytes - 1);
	close(fd);
	text[count > 0 ? count : 0] = '\0';
	return count;
}

/* "pid (name) state ppid … starttime": the name may hold anything, so count from the last bracket. Field 22 is the 20th behind it. */
static bool read_seen(int proc, pid_t pid, struct seen *seen)
{
	char text[1024];
	if (read_file(proc, pid, "stat", text, sizeof(text)) <= 0) {
		return false;
	}
	const char *bracket = strrchr(text, ')');
	char state;
	int parent, group;
	uint64_t start;
	if (bracket == NULL || sscanf(bracket + 1,
							   " %c %d %d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d "
							   "%*d %*d %*d %" SCNu64,
							   &state, &parent, &group, &start) != 4) {
		return false;
	}
	*seen = (struct seen){{pid, start}, parent, group, state != 'Z' && state != 'X'};
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
	name[0] = '\0';
	int proc = open_proc();
	if (proc < 0) {
		return;
	}
	if (read_file(proc, pid, "cmdline", name, DESCENDANT_NAME_BYTES) <= 0 || name[0] == '\0') {
		read_file(proc, pid, "comm", name, DESCENDANT_NAME_BYTES);
		name[strcspn(name, "\n")] = '\0';
	}
	close(proc);
}
