#ifndef STORE_CONTENTS_H
#define STORE_CONTENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/error.h"

/*
 * The files of a capture's folder that are ours, by name. Whatever else lies there is somebody's: it is never touched, and it keeps the
 * folder. A name of ours that is no file any more (a folder has taken it) is somebody's too. Any thread; blocking; no link is followed.
 */
#define CONTENTS_RECORD   "record.json"
#define CONTENTS_DELETING "deleting.json" /* the record of a capture that is being deleted */

enum contents {
	CONTENTS_TEMPORARIES = 1, /* what was being written */
	CONTENTS_OUTPUTS = 2,     /* what can be made again from the journal */
	CONTENTS_SHADERS =
		8,             /* of a GPU trace: their list, and their folder when nothing else is in it */
	CONTENTS_ALL = 15, /* and the journal, the document of a GPU trace, and the record */
};

/* Removes those of ours that are there. The first failure ends it. */
bool contents_remove(int folder_fd, enum contents which, struct error *err);
/* What ours take together. */
uint64_t contents_bytes(int folder_fd);
/* Those of the temporaries that begin with ARTIFACT_DOCUMENT_PREFIX, which a program that is being recorded writes: what they take, and removing them. */
uint64_t contents_bytes_of_documents(int folder_fd);
bool contents_remove_documents(int folder_fd, struct error *err);
/* Calls look for each name with that prefix, until one is false; that was the last one's answer. A folder that cannot be read has none. */
bool contents_each_document(
	int folder_fd, bool (*look)(int folder_fd, const char *name, void *context), void *context);
/* Is there a regular file of that name? */
bool contents_has(int folder_fd, const char *name);

#endif
