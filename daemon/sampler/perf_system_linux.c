#include "sampler/perf_system.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <linux/capability.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/vec.h"
#include "target/target.h"

#define ONLINE   "/sys/devices/system/cpu/online"
#define CPUS_MAX 8192 /* CONFIG_NR_CPUS of the largest kernels */

int64_t perf_system_number(const char *name, int64_t otherwise)
{
	char path[128];
	int64_t value;
	snprintf(path, sizeof(path), "/proc/sys/kernel/%s", name);
	FILE *file = fopen(path, "re");
	if (!file) {
		return otherwise;
	}
	int fields = fscanf(file, "%" SCNd64, &value);
	fclose(file);
	return fields == 1 ? value : otherwise;
}

uint64_t perf_system_tick_ns(void)
{
	struct timespec tick;
	clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
	return (uint64_t)tick.tv_sec * 1000000000u + (uint64_t)tick.tv_nsec;
}

/* "0-3,8,10-11" */
bool perf_system_cpus(int **cpus, size_t *count, struct error *err)
{
	VEC(int) found = {0};
	int first, last;
	bool enough = true;
	FILE *file = fopen(ONLINE, "re");
	if (!file) {
		return error_errno(err, "%s", ONLINE);
	}
	while (enough && fscanf(file, "%d", &first) == 1) {
		last = first;
		if (fscanf(file, "-%d", &last) != 1) {
			last = first;
		}
		for (int cpu = first; enough && cpu >= 0 && cpu <= last && cpu < CPUS_MAX; cpu++) {
			enough = VEC_PUSH(&found, cpu);
		}
		if (fgetc(file) != ',') {
			break;
		}
	}
	fclose(file);
	if (!enough || found.len == 0) {
		VEC_FINISH(&found);
		return error_set(err, ERROR_IO, "%s names no processor", ONLINE);
	}
	*cpus = found.items;
	*count = found.len;
	return true;
}

static bool may_lock_anything(void)
{
	char line[256];
	uint64_t effective = 0;
	FILE *file = fopen("/proc/self/status", "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "CapEff: %" SCNx64, &effective) == 1) {
			break;
		}
	}
	if (file) {
		fclose(file);
	}
	return (effective >> CAP_IPC_LOCK & 1) != 0;
}

static bool add_ring(void *context, const struct target_mapping *mapping)
{
	uint64_t *bytes = context;
	if (strcmp(mapping->path, "anon_inode:[perf_event]") == 0) {
		*bytes += mapping->length;
	}
	return true;
}

/* kernel/events/core.c, perf_mmap: perf_event_mlock_kb for each processor and user, then RLIMIT_MEMLOCK. */
uint64_t perf_system_lockable(size_t cpu_count)
{
	struct rlimit memory;
	if (may_lock_anything() || perf_system_number("perf_event_paranoid", 2) < 0 ||
		getrlimit(RLIMIT_MEMLOCK, &memory) != 0 || memory.rlim_cur == RLIM_INFINITY) {
		return UINT64_MAX;
	}
	uint64_t ours = 0;
	uint64_t quota = (uint64_t)perf_system_number("perf_event_mlock_kb", 512) * 1024 * cpu_count +
					 memory.rlim_cur;
	target_mappings(getpid(), add_ring, &ours, NULL);
	return ours < quota ? quota - ours : 0;
}
