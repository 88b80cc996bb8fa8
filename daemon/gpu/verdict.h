#ifndef GPU_VERDICT_H
#define GPU_VERDICT_H

#include <signal.h>

/* What it says of a document that its reader (gpu/verifying.h) ended so. */
enum verdict_is {
	VERDICT_GOOD,   /* it was read to its end */
	VERDICT_BROKEN, /* the reader says that it cannot be read, or died of it */
	VERDICT_UNREAD, /* there is no reader, or it was not let end */
};

struct verdict {
	enum verdict_is is;
	char why[512]; /* "" when it is good */
	char hint[256];
};

struct verdict_end {
	const siginfo_t *info;   /* waitid(2) */
	const char *interrupted; /* why it was ended; NULL: it was not */
	int folder_fd;           /* where it wrote */
	const char *said;        /* the file with its words there, */
	const char *output;      /* and what it made of the document, */
	const char *magic;       /* which begins with this */
	const char *program;     /* its name, for a person */
};

/* Blocking; any thread. */
void verdict_decide(const struct verdict_end *end, struct verdict *verdict);

#endif
