#include "analyzer/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <linux/futex.h>
#include <sys/mman.h>

#include <seccomp.h>

#include "base/sandbox.h"
#include "profile/analysis.h"

#define MAX_CONDITIONS 3

/* A call that is allowed, when all of its conditions hold. */
struct rule {
	int call; /* negative where the architecture has none: libseccomp passes over it */
	unsigned count;
	struct scmp_arg_cmp conditions[MAX_CONDITIONS];
};

/* A condition's members: on the argument with that number, counted from 0. The kernel looks at 32 bits of an int. */
#define INT_IS(argument, value)  argument, SCMP_CMP_MASKED_EQ, UINT32_MAX, (uint32_t)(value)
#define HAS(argument, flags)     argument, SCMP_CMP_MASKED_EQ, flags, flags
#define HAS_NOT(argument, flags) argument, SCMP_CMP_MASKED_EQ, flags, 0
#define IS_NULL(argument)        argument, SCMP_CMP_EQ, 0, 0

static const struct rule RULES[] = {
	/* What was given to us. */
	{SCMP_SYS(read)},
	{SCMP_SYS(pread64)},
	{SCMP_SYS(write)},
	{SCMP_SYS(fstat)},
	{SCMP_SYS(close)},
	{SCMP_SYS(fcntl), 1, {{INT_IS(1, F_GETFD)}}}, /* libelf asks whether a descriptor is one */
	{SCMP_SYS(fcntl), 1, {{INT_IS(1, F_GETFL)}}},
	/* The channel. */
	{SCMP_SYS(recvfrom), 1, {{INT_IS(0, ANALYSIS_FD)}}},
	{SCMP_SYS(recvmsg), 1, {{INT_IS(0, ANALYSIS_FD)}}},
	{SCMP_SYS(sendmsg), 1, {{INT_IS(0, ANALYSIS_FD)}}},
	{SCMP_SYS(poll)},
	{SCMP_SYS(ppoll)},
	/* Memory: never code, never a file. */
	{SCMP_SYS(brk)},
	{SCMP_SYS(mmap), 2, {{HAS_NOT(2, PROT_EXEC)}, {HAS(3, MAP_PRIVATE | MAP_ANONYMOUS)}}},
	{SCMP_SYS(mprotect), 1, {{HAS_NOT(2, PROT_EXEC)}}},
	{SCMP_SYS(mremap)},
	{SCMP_SYS(munmap)},
	{SCMP_SYS(madvise)},
	/* The C library: locks that nobody contends, the clock without a vDSO, qsort's look at the memory, getrlimit. */
	{SCMP_SYS(futex), 1, {{INT_IS(1, FUTEX_WAKE_PRIVATE)}}},
	{SCMP_SYS(futex), 1, {{INT_IS(1, FUTEX_WAIT_PRIVATE)}}},
	{SCMP_SYS(clock_gettime)},
	{SCMP_SYS(getrandom)},
	{SCMP_SYS(sysinfo)},
	{SCMP_SYS(prlimit64), 2, {{INT_IS(0, 0)}, {IS_NULL(2)}}},
	/* The end, abort's too: what its message needs, and a signal to ourselves (in allow_own_end). */
	{SCMP_SYS(exit)},
	{SCMP_SYS(exit_group)},
	{SCMP_SYS(writev), 1, {{INT_IS(0, STDERR_FILENO)}}},
	{SCMP_SYS(rt_sigprocmask)},
	{SCMP_SYS(getpid)},
	{SCMP_SYS(gettid)},
};

static int allow(scmp_filter_ctx filter, const struct rule *rule)
{
	return seccomp_rule_add_array(
		filter, SCMP_ACT_ALLOW, rule->call, rule->count, rule->conditions);
}

static int allow_own_end(scmp_filter_ctx filter)
{
	const pid_t self = getpid();
	const struct rule abort_rule = {
		SCMP_SYS(tgkill), 3, {{INT_IS(0, self)}, {INT_IS(1, self)}, {INT_IS(2, SIGABRT)}}};

	return allow(filter, &abort_rule);
}

static int allow_all(scmp_filter_ctx filter)
{
	int code = 0;

	for (size_t i = 0; code == 0 && i < sizeof(RULES) / sizeof(RULES[0]); i++) {
		code = allow(filter, &RULES[i]);
	}
	return code != 0 ? code : allow_own_end(filter);
}

/* 0, or a negative errno. */
static int install(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));

	if (filter == NULL) {
		return -ENOMEM;
	}
	int code = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);

	code = code != 0 ? code : allow_all(filter);
	code = code != 0 ? code : seccomp_load(filter);
	seccomp_release(filter);
	return code;
}

bool syscalls_restrict(struct error *err)
{
	if (!sandbox_has_seccomp()) {
		error_set(err, ERROR_BACKEND_UNAVAILABLE,
			"the analyzer cannot be confined: this kernel has no filters of system calls "
			"(seccomp)");
		return error_hint(err, "run a kernel with CONFIG_SECCOMP_FILTER=y");
	}
	int code = install();

	return code == 0 ||
		   error_errno_as(err, ERROR_IO, -code, "a filter of system calls for the analyzer");
}
