#include "sampler/checks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/capability.h>
#include <linux/perf_event.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "protocol/limits.h"
#include "sampler/perf_buffers.h"
#include "sampler/perf_system.h"
#include "sampler/sampler.h"

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif

#define THREADS_EXPECTED                                                                           \
	64 /* of a program that is attached to: each needs an event on each processor */

/* A number of /proc/self/status, by base. */
static uint64_t own_status(const char *name, int base, uint64_t otherwise)
{
	char line[256];
	size_t len = strlen(name);
	FILE *file = fopen("/proc/self/status", "re");
	while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
		if (strncmp(line, name, len) == 0 && line[len] == ':') {
			otherwise = strtoull(line + len + 1, NULL, base);
			break;
		}
	}
	if (file != NULL) {
		fclose(file);
	}
	return otherwise;
}

static bool has_capability(int number)
{
	return (own_status("CapEff", 16, 0) >> number & 1) != 0;
}

static bool may_see_kernel(int64_t paranoid)
{
	return paranoid <= 1 || has_capability(CAP_PERFMON) || has_capability(CAP_SYS_ADMIN);
}

/* The real thing, on ourselves. */
static bool check_sampling(struct checks *checks)
{
	struct error err = {0};
	struct sampler_config config = {.pid = getpid(), .hz = LIMIT_HZ_DEFAULT};
	struct check *check = checks_add(checks, "sampling");
	bool works = sampler_perf_ops.probe(&config, &err);
	check_value(check, "%s", works ? "perf_event_open works" : "perf_event_open is refused");
	if (works) {
		check_say(check, CHECK_OK, NULL, "programs of this user can be sampled");
	} else {
		check_say(check, CHECK_FAIL, err.hint[0] != '\0' ? err.hint : error_code_hint(err.code),
			"%.500s", err.message);
	}
	return works;
}

static void check_paranoid(struct checks *checks)
{
	int64_t paranoid = perf_system_number("perf_event_paranoid", 2);
	struct check *check = checks_add(checks, "perf_event_paranoid");
	check_value(check, "%" PRId64, paranoid);
	if (may_see_kernel(paranoid)) {
		check_say(check, CHECK_OK, NULL, "time in the kernel is sampled too");
	} else if (paranoid <= 2) {
		check_say(check, CHECK_WARN,
			"sudo sysctl kernel.perf_event_paranoid=1 (for good: echo kernel.perf_event_paranoid=1 "
			"| "
			"sudo tee /etc/sysctl.d/90-profd.conf)",
			"user-space stacks can be sampled; time in the kernel is not, it is only told as a "
			"sum");
	} else {
		check_say(check, CHECK_FAIL,
			"sudo sysctl kernel.perf_event_paranoid=2 (for good: echo kernel.perf_event_paranoid=2 "
			"| "
			"sudo tee /etc/sysctl.d/90-profd.conf)",
			"ordinary users may not sample at all above 2");
	}
}

static void check_capabilities(struct checks *checks)
{
	bool perfmon = has_capability(CAP_PERFMON), admin = has_capability(CAP_SYS_ADMIN);
	struct check *check = checks_add(checks, "capabilities");
	check_value(check, "CAP_PERFMON %s, CAP_SYS_ADMIN %s, CAP_IPC_LOCK %s", perfmon ? "yes" : "no",
		admin ? "yes" : "no", has_capability(CAP_IPC_LOCK) ? "yes" : "no");
	check_say(check, CHECK_OK, NULL, "%s",
		perfmon || admin
			? "profd may sample the kernel, whatever perf_event_paranoid says"
			: "profd has an ordinary user's rights, which is enough for the user's programs");
}

static void check_seccomp(struct checks *checks, bool works)
{
	static const char *const modes[] = {"none", "strict", "filter"};
	uint64_t mode = own_status("Seccomp", 10, 0);
	struct check *check = checks_add(checks, "seccomp");
	check_value(check, "%s", mode < 3 ? modes[mode] : "unknown");
	if (mode == 0 || works) {
		check_say(check, CHECK_OK, NULL, "no system call filter is in the way");
	} else {
		check_say(check, CHECK_WARN,
			"in a container: run it with --security-opt seccomp=unconfined, or with --cap-add "
			"PERFMON",
			"a system call filter is active and may be what refuses perf_event_open");
	}
}

static void check_rate(struct checks *checks)
{
	int64_t rate = perf_system_number("perf_event_max_sample_rate", 100000);
	struct check *check = checks_add(checks, "max_sample_rate");
	check_value(check, "%" PRId64 " Hz", rate);
	if (rate >= LIMIT_HZ_DEFAULT) {
		check_say(check, CHECK_OK, NULL, "hz may be up to %" PRId64, rate);
	} else {
		check_say(check, CHECK_WARN, "sudo sysctl kernel.perf_event_max_sample_rate=100000",
			"the usual %d Hz are refused: the kernel lowered its maximum, or somebody did",
			LIMIT_HZ_DEFAULT);
	}
}

static size_t processors(void)
{
	int *cpus = NULL;
	size_t count = 1;
	if (perf_system_cpus(&cpus, &count, NULL)) {
		free(cpus);
	}
	return count;
}

static void check_locked_memory(struct checks *checks, size_t cpus)
{
	uint64_t lockable = perf_system_lockable(cpus);
	uint64_t wanted = (uint64_t)PERF_BUFFERS_DATA_BYTES * cpus;
	uint64_t least = (uint64_t)PERF_BUFFERS_LEAST_BYTES * cpus;
	struct check *check = checks_add(checks, "locked_memory");
	if (lockable == UINT64_MAX) {
		check_value(check, "no limit");
	} else {
		check_value(check, "%" PRIu64 " KiB may be locked", lockable / 1024);
	}
	/* A capture takes at most half of what is left. */
	if (lockable / 2 >= wanted) {
		check_say(check, CHECK_OK, NULL,
			"there is room for a capture's rings: %" PRIu64
			" KiB are enough, it takes more when it can",
			wanted / 1024);
	} else {
		check_say(check, lockable / 2 >= least ? CHECK_WARN : CHECK_FAIL,
			"sudo sysctl kernel.perf_event_mlock_kb=2048, or ulimit -l for profd",
			"a capture wants %" PRIu64 " KiB of rings, it gets smaller ones, which lose samples "
			"sooner",
			wanted / 1024);
	}
}

static void check_descriptors(struct checks *checks, size_t cpus)
{
	struct rlimit limit = {0};
	getrlimit(RLIMIT_NOFILE, &limit);
	uint64_t wanted = (uint64_t)cpus * THREADS_EXPECTED;
	struct check *check = checks_add(checks, "descriptors");
	check_value(check, "%" PRIu64 " open files", (uint64_t)limit.rlim_cur);
	if (limit.rlim_cur > wanted) {
		check_say(check, CHECK_OK, NULL,
			"a running program of %" PRIu64 " threads can be attached to",
			(uint64_t)limit.rlim_cur / cpus);
	} else {
		check_say(check, CHECK_WARN,
			"raise the hard limit (ulimit -Hn, or LimitNOFILE= of the unit)",
			"each thread that runs already needs a descriptor on each of %zu processors", cpus);
	}
}

static void check_kernel_symbols(struct checks *checks)
{
	char line[256] = "";
	unsigned long long address = 0;
	int64_t restrict_level = perf_system_number("kptr_restrict", 1);
	FILE *file = fopen("/proc/kallsyms", "re");
	bool is_readable = file != NULL && fgets(line, sizeof(line), file) != NULL;
	if (file != NULL) {
		fclose(file);
	}
	is_readable = is_readable && sscanf(line, "%llx", &address) == 1 && address != 0;
	struct check *check = checks_add(checks, "kernel_symbols");
	check_value(check, "kptr_restrict %" PRId64, restrict_level);
	if (is_readable) {
		check_say(check, CHECK_OK, NULL, "kernel functions have names");
	} else {
		/* kallsyms_show_value of the kernel: at 0 they are for those who may sample the kernel. */
		check_say(check, CHECK_WARN,
			restrict_level > 0 ? "sudo sysctl kernel.kptr_restrict=0 kernel.perf_event_paranoid=1"
							   : "sudo sysctl kernel.perf_event_paranoid=1",
			"kernel frames stay addresses: their names are kept from this user");
	}
}

static void check_clock(struct checks *checks)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_CPU_CYCLES,
		.exclude_kernel = 1,
		.disabled = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	struct check *check = checks_add(checks, "clock");
	check_value(check, "cpu-clock; hardware cycles %s", fd >= 0 ? "are there" : "are not there");
	check_say(check, CHECK_OK, NULL,
		"samples are taken by the kernel's timer, which needs no hardware counters");
	if (fd >= 0) {
		close(fd);
	}
}

static void check_depth(struct checks *checks)
{
	int64_t depth = perf_system_number("perf_event_max_stack", LIMIT_STACK_FRAMES);
	struct check *check = checks_add(checks, "max_stack");
	check_value(check, "%" PRId64 " frames", depth);
	if (depth >= LIMIT_STACK_FRAMES) {
		check_say(
			check, CHECK_OK, NULL, "deeper stacks lose their outermost frames, and are counted");
	} else {
		check_say(check, CHECK_WARN, "sudo sysctl kernel.perf_event_max_stack=127",
			"stacks deeper than %" PRId64 " frames lose their outermost frames", depth);
	}
}

void sampler_checks(struct checks *checks)
{
	size_t cpus = processors();
	bool works = check_sampling(checks);
	check_paranoid(checks);
	check_capabilities(checks);
	check_seccomp(checks, works);
	check_rate(checks);
	check_clock(checks);
	check_depth(checks);
	check_kernel_symbols(checks);
	check_locked_memory(checks, cpus);
	check_descriptors(checks, cpus);
}
