#ifndef CAPTURE_ARTIFACTS_H
#define CAPTURE_ARTIFACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "protocol/error.h"

/*
 * The files that the analyzer writes: made under temporary names in the capture's folder, and given their final names
 * together when they are complete. Any thread, one at a time.
 */
enum artifact {
	ARTIFACT_IS_FOLDED,
	ARTIFACT_IS_SVG,
	ARTIFACT_IS_JSON,
	ARTIFACT_IS_SYMBOLS, /* whatever formats were asked for */
	ARTIFACT_KINDS
};

struct artifacts {
	int folder_fd; /* borrowed */
	bool replaces; /* they were made before: what has a final name stays when something fails */
	struct {
		bool is_wanted, is_complete; /* complete: under its final name */
		int fd;                      /* owned; -1 */
		uint64_t bytes;              /* once complete */
	} files[ARTIFACT_KINDS];
};

/* "folded", "svg", "json", "symbols": what the analyzer calls it; and its final name. */
const char *artifact_kind(enum artifact artifact);
const char *artifact_name(enum artifact artifact);

/* Nothing is made yet. */
void artifacts_init(struct artifacts *artifacts, int folder_fd);
/* Wants those that an option "formats" names (an array; anything else: all), and the symbols. */
void artifacts_want(struct artifacts *artifacts, const json_t *formats);
/* Makes the wanted ones anew, empty; what was there under the temporary names goes. */
bool artifacts_create(struct artifacts *artifacts, struct error *err);
/* Closes the descriptors; for when the other process has its own. */
void artifacts_close(struct artifacts *artifacts);
/* Syncs and renames them in the order of the enum, then syncs the folder. All or none: on failure none stays, unless they replace others. */
bool artifacts_commit(struct artifacts *artifacts, struct error *err);
/* Removes what was made, under whatever name; when they replace others, not under the final one. */
void artifacts_discard(struct artifacts *artifacts);

#endif
