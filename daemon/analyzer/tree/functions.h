#ifndef ANALYZER_TREE_FUNCTIONS_H
#define ANALYZER_TREE_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyzer/tree/tree.h"

/* What each function of a tree took itself, and with everything it called: of a recursion only the outermost call counts. */
struct function {
	uint32_t name, image; /* string ids */
	uint8_t kind;         /* enum tree_kind */
	uint64_t self, total;
};

struct functions {
	struct function *items; /* owned; by self descending, then total descending, then name */
	size_t len;
};

/* tree: after tree_finish. Threads are no functions. False: memory is out. */
bool functions_init(struct functions *functions, const struct tree *tree);
void functions_finish(struct functions *functions);

#endif
