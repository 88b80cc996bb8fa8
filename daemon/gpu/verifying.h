#ifndef GPU_VERIFYING_H
#define GPU_VERIFYING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "gpu/verdict.h"

struct processes;

/*
 * Has a whole document read by the program of those whose format it is: a child of its own process group, without input, with limits, and with a private
 * folder for all that it writes, which is gone afterwards. What is not read is not called broken. Loop thread.
 */
struct verifying;

/* Who reads documents. In its arguments these two stand for the document, which is what a descriptor says, whatever
 * became of its name, and for the path of what it is to write. */
#define VERIFYING_DOCUMENT "\1document"
#define VERIFYING_OUTPUT   "\1output"
struct verifying_reader {
	const char *program; /* looked up in PATH */
	const char *package; /* where it comes from, for a person */
	const char *const *arguments;
	const char *magic;    /* what its output begins with */
	const char *variable; /* names the folder for what it forgets, beside HOME and TMPDIR; NULL */
};

struct verifying_options {
	uv_loop_t *loop;
	struct processes
		*processes; /* the reader dies with the daemon by process/helpers.h; NULL: it does not */
	const struct verifying_reader *reader;
	int document_fd; /* the document, which the reader gets by this, */
	const char *
		name; /* as a file of this name in its folder, which it is in; both borrowed for the call */
	uint64_t bytes; /* and its size */
	unsigned limit_ms;
	/* Called once, in a later turn, when nothing of it is left. verdict is borrowed. */
	void (*done)(void *context, const struct verdict *verdict);
	void *context;
};

/* NULL: *verdict has why it stays unread, and done is not called. */
struct verifying *verifying_start(const struct verifying_options *options, struct verdict *verdict);
/* Ends it by force, for that reason (a static text): the document stays unread. */
void verifying_cancel(struct verifying *verifying, const char *why);
/* Before an exit that waits for nothing: no child and no folder outlive it. */
void verifying_abandon(const struct verifying *verifying);

/* The absolute path of a program in our PATH. Any thread. */
bool verifying_find(const char *program, char *path, size_t size);

#endif
