#include "analyzer/sandbox.h"

#include <inttypes.h>
#include <unistd.h>

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "analyzer/landlock.h"
#include "analyzer/syscalls.h"
#include "profile/analysis.h"
#include "protocol/limits.h"

#define FIRST_FOREIGN_FD (ANALYSIS_FD + 1)
#define OTHER_FDS                                                                                  \
	(FIRST_FOREIGN_FD + 2 * ANALYSIS_FILES) /* besides images: ours, and those of two packets */
#define STACK_BYTES                                                                                \
	((uint64_t)4 << 20) /* libiberty takes some hundred bytes of it for each of a name */
#define CPU_GRACE_S 5   /* from SIGXCPU to SIGKILL, should the first be of no use */

struct sandbox_limits sandbox_default_limits(void)
{
	uint64_t half = (uint64_t)sysconf(_SC_PHYS_PAGES) / 2 * (uint64_t)sysconf(_SC_PAGESIZE);

	return (struct sandbox_limits){
		.memory_bytes = half < ANALYSIS_MEMORY_MIN   ? ANALYSIS_MEMORY_MIN
						: half > ANALYSIS_MEMORY_MAX ? ANALYSIS_MEMORY_MAX
													 : half,
		.cpu_seconds = ANALYSIS_CPU_SECONDS,
		.descriptors = LIMIT_IMAGES + OTHER_FDS,
	};
}

static void close_foreign(uint64_t descriptors)
{
	if (syscall(SYS_close_range, FIRST_FOREIGN_FD, ~0u, 0) == 0) {
		return;
	}
	/* Before Linux 5.9, or refused by a filter. */
	for (uint64_t fd = FIRST_FOREIGN_FD; fd < descriptors; fd++) {
		close((int)fd);
	}
}

struct limit {
	int resource;
	const char *name;
	rlim_t soft, hard;
};

static bool lower(const struct limit *limit, struct error *err)
{
	struct rlimit now;

	if (getrlimit(limit->resource, &now) != 0) {
		return error_errno(err, "the analyzer's limit of %s", limit->name);
	}
	now.rlim_max = limit->hard < now.rlim_max ? limit->hard : now.rlim_max;
	now.rlim_cur = limit->soft < now.rlim_cur ? limit->soft : now.rlim_cur;
	now.rlim_cur = now.rlim_cur < now.rlim_max ? now.rlim_cur : now.rlim_max;
	return setrlimit(limit->resource, &now) == 0 ||
		   error_errno(err, "a limit of %" PRIu64 " for the analyzer's %s", (uint64_t)limit->soft,
			   limit->name);
}

static bool lower_all(const struct sandbox_limits *limits, struct error *err)
{
	const struct limit all[] = {
		{RLIMIT_CPU, "seconds of CPU time", limits->cpu_seconds, limits->cpu_seconds + CPU_GRACE_S},
		{RLIMIT_NOFILE, "descriptors", limits->descriptors, limits->descriptors},
		{RLIMIT_CORE, "bytes of a core file", 0, 0},
#if !PROFD_SANITIZED
		{RLIMIT_NPROC, "processes", 0, 0},
		{RLIMIT_AS, "bytes of memory", limits->memory_bytes, limits->memory_bytes},
#endif
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (!lower(&all[i], err)) {
			return false;
		}
	}
	return true;
}

#if PROFD_SANITIZED

static bool give_up_rights(struct error *err)
{
	(void)err;
	return true;
}

#else

static uint64_t soft_limit(int resource)
{
	struct rlimit limit = {0};

	getrlimit(resource, &limit);
	return limit.rlim_cur;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/*
 * The stack becomes as large as it will ever be, without its pages: one that grows into the limit of memory is a crash, where
 * malloc would have said that there is none.
 */
static void extend_stack(void)
{
	uint64_t room = smaller(soft_limit(RLIMIT_STACK) / 2, soft_limit(RLIMIT_AS) / 4);
	volatile char *end = __builtin_frame_address(0);

	end[-(int64_t)smaller(room, STACK_BYTES)] = 0;
}

/* capabilities(7): none, for a daemon that is root too. */
static bool drop_capabilities(struct error *err)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};

	return syscall(SYS_capset, &header, none) == 0 ||
		   error_errno(err, "dropping the analyzer's capabilities");
}

/* Undumpable, because a handler of core dumps takes no notice of RLIMIT_CORE, and what is read here is nobody else's. */
static bool drop_privileges(struct error *err)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
		return error_errno(err, "no_new_privs for the analyzer");
	}
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) {
		return error_errno(err, "no core dumps of the analyzer");
	}
	return drop_capabilities(err);
}

/* System calls last: the others need some that are refused then. */
static bool give_up_rights(struct error *err)
{
	extend_stack();
	return drop_privileges(err) && landlock_refuse_all(err) && syscalls_restrict(err);
}

#endif

bool sandbox_enter(const struct sandbox_limits *limits, struct error *err)
{
	close_foreign(limits->descriptors);
	return lower_all(limits, err) && give_up_rights(err);
}
