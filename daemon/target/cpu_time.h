#ifndef TARGET_CPU_TIME_H
#define TARGET_CPU_TIME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The kernel's own accounting of a running process, since that process or thread began. user_ns and system_ns tell how the
 * time is divided: where the kernel counts ticks they are coarse, and their sum is not total_ns. cpu_time_linux.c. Any thread.
 */
struct target_cpu_time {
	uint64_t total_ns, user_ns, system_ns;
};

/* All its threads, those that have ended too. Known until the process is reaped. False: it is gone. */
bool target_process_cpu_time(pid_t pid, struct target_cpu_time *time);

/* False: the thread is gone, or the kernel does not tell. */
bool target_thread_cpu_time(pid_t pid, pid_t tid, struct target_cpu_time *time);

/* What was consumed between two readings, with user_ns + system_ns = total_ns; both 0 when the division is not known. */
struct target_cpu_time target_cpu_time_between(
	const struct target_cpu_time *before, const struct target_cpu_time *after);

#endif
