#ifndef TESTS_SUPPORT_PLANTED_ATTEMPTS_H
#define TESTS_SUPPORT_PLANTED_ATTEMPTS_H

#include <stdint.h>
#include <sys/types.h>

/*
 * What code that has taken over the analyzer would try. All of it is harmless where it succeeds; what is not, is a payload of its own
 * (planted_analyzer.c).
 */

/* What the attempts aim at, found out before the sandbox is entered. */
struct planted_aims {
	pid_t daemon;
	uint64_t daemon_address; /* something readable in its memory */
	const char *folder;      /* where captures are kept */
	const char *abstract;    /* the name of an abstract socket that somebody listens on */
	uint16_t port;           /* on 127.0.0.1, that somebody listens on */
	int image,
		foreign; /* descriptors: the image that is being read, and one that was open before the sandbox */
};

/* One of them. try: 0, or an errno. */
struct planted_attempt {
	const char *name;
	int (*try)(const struct planted_aims *aims);
};

#define PLANTED_ATTEMPT(function)                                                                  \
	{                                                                                              \
#function, function                                                                        \
	}

/* Those on files (planted_files.c); the last has no name. */
extern const struct planted_attempt planted_file_attempts[];

/* For the attempts: the errno of a call that returned this; the same for a descriptor, which is closed; a path in the folder of captures, valid
 * until the next call. */
int planted_outcome(long result);
int planted_had(long fd);
const char *planted_path(const struct planted_aims *aims, const char *name);

/* Each in turn; a line "planted NAME ok" or "planted NAME ERRNO" to stderr for every one. */
void planted_try_all(const struct planted_aims *aims);

#endif
