#include "analyzer/landlock.h"

#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <linux/landlock.h>
#include <sys/syscall.h>

#include "base/sandbox.h"

/*
 * struct landlock_ruleset_attr as of version 6 and the bits in it, by our own names: a system's header may be older than its
 * kernel. Where the kernel is older than the struct, members it does not know must be 0.
 */
struct ruleset {
	uint64_t files, ports, scopes;
};

#define PORTS_TCP_BIND          (1ull << 0)
#define PORTS_TCP_CONNECT       (1ull << 1)
#define SCOPES_ABSTRACT_SOCKETS (1ull << 0)
#define SCOPES_SIGNALS          (1ull << 1)
#define FILES_OF_VERSION_1      ((1ull << 13) - 1) /* LANDLOCK_ACCESS_FS_EXECUTE to _MAKE_SYM */
#define FILES_REFER             (1ull << 13)
#define FILES_TRUNCATE          (1ull << 14)
#define FILES_IOCTL_OF_A_DEVICE (1ull << 15)

/* What each version brought. */
static const struct ruleset VERSIONS[] = {
	{.files = FILES_OF_VERSION_1},
	{.files = FILES_REFER},
	{.files = FILES_TRUNCATE},
	{.ports = PORTS_TCP_BIND | PORTS_TCP_CONNECT},
	{.files = FILES_IOCTL_OF_A_DEVICE},
	{.scopes = SCOPES_ABSTRACT_SOCKETS | SCOPES_SIGNALS},
};

static struct ruleset everything_until(int version)
{
	struct ruleset all = {0};

	for (int i = 0; i < version && (size_t)i < sizeof(VERSIONS) / sizeof(VERSIONS[0]); i++) {
		all.files |= VERSIONS[i].files;
		all.ports |= VERSIONS[i].ports;
		all.scopes |= VERSIONS[i].scopes;
	}
	return all;
}

bool landlock_refuse_all(struct error *err)
{
	int version = sandbox_landlock_version();
	const struct ruleset refused = everything_until(version);

	if (version == 0) {
		return true;
	}
	/* A right that is handled, and that no rule gives back, is refused. */
	int fd = (int)syscall(SYS_landlock_create_ruleset, &refused, sizeof(refused), 0);

	if (fd < 0) {
		return error_errno(err, "a Landlock ruleset of version %d", version);
	}
	bool done = syscall(SYS_landlock_restrict_self, fd, 0) == 0 ||
				error_errno(err, "Landlock (version %d) for the analyzer", version);

	close(fd);
	return done;
}
