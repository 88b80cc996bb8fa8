#include "target/cpu_time.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "process/proc_file.h"

#define PATH_BYTES 64

/* The clocks of a process, as clock_getcpuclockid(3) makes their ids; it makes the third alone. */
enum { CLOCK_OF_BOTH, CLOCK_OF_USER, CLOCK_OF_SCHEDULER };

static bool read_clock(pid_t pid, unsigned which, uint64_t *ns)
{
	struct timespec time;
	if (clock_gettime((clockid_t)(~(unsigned)pid << 3 | which), &time) != 0) {
		return false;
	}
	*ns = (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
	return true;
}

bool target_process_cpu_time(pid_t pid, struct target_cpu_time *time)
{
	uint64_t total, user, both;
	if (!read_clock(pid, CLOCK_OF_SCHEDULER, &total) || !read_clock(pid, CLOCK_OF_USER, &user) ||
		!read_clock(pid, CLOCK_OF_BOTH, &both)) {
		return false;
	}
	*time = (struct target_cpu_time){total, user, both > user ? both - user : 0};
	return true;
}

/* proc_pid_stat(5): fields 14 and 15, in ticks. */
static bool read_ticks(pid_t pid, pid_t tid, struct target_cpu_time *time)
{
	char path[PATH_BYTES], text[1024];
	uint64_t user, system;
	long hz = sysconf(_SC_CLK_TCK);
	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	const char *rest = proc_file_stat(AT_FDCWD, path, text, sizeof(text));
	if (hz <= 0 || !rest ||
		sscanf(rest, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64, &user,
			&system) != 2) {
		return false;
	}
	time->user_ns = user * (1000000000u / (uint64_t)hz);
	time->system_ns = system * (1000000000u / (uint64_t)hz);
	return true;
}

bool target_thread_cpu_time(pid_t pid, pid_t tid, struct target_cpu_time *time)
{
	char path[PATH_BYTES], text[128];
	struct target_cpu_time found = {0};
	if (!read_ticks(pid, tid, &found)) {
		return false;
	}
	/* Nanoseconds on a CPU, then others; not there without CONFIG_SCHED_INFO. */
	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", (int)pid, (int)tid);
	if (proc_file_read(AT_FDCWD, path, text, sizeof(text)) <= 0 ||
		sscanf(text, "%" SCNu64, &found.total_ns) != 1) {
		found.total_ns = found.user_ns + found.system_ns;
	}
	*time = found;
	return true;
}

static uint64_t difference(uint64_t before, uint64_t after)
{
	return after > before ? after - before : 0;
}

struct target_cpu_time target_cpu_time_between(
	const struct target_cpu_time *before, const struct target_cpu_time *after)
{
	struct target_cpu_time time = {.total_ns = difference(before->total_ns, after->total_ns)};
	uint64_t user = difference(before->user_ns, after->user_ns);
	uint64_t system = difference(before->system_ns, after->system_ns);
	if (user + system > 0) {
		double share = (double)system / ((double)user + (double)system);
		time.system_ns = (uint64_t)(share * (double)time.total_ns);
		time.user_ns = time.total_ns - time.system_ns;
	}
	return time;
}
