#ifndef GPU_LAYER_LABELS_H
#define GPU_LAYER_LABELS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The debug labels that each command buffer of one device holds. They are recorded long before they are submitted, and the prefix that counts is known
 * only then: so each command buffer's are kept as long as its recording is. Any thread; one lock is inside.
 */
#define LABELS_BYTES                                                                               \
	(16 *                                                                                          \
		1024) /* kept of one command buffer's labels, with a NUL behind each; later ones are not seen */

struct labels;

/* Owned. NULL: memory is out. */
struct labels *labels_create(void);
void labels_destroy(struct labels *labels);

/* A command buffer of that pool was made. */
void labels_allocated(struct labels *labels, uint64_t pool, const void *buffer);
void labels_freed(struct labels *labels, const void *buffer);
void labels_pool_gone(struct labels *labels, uint64_t pool);

/* Its recording begins anew. */
void labels_begun(struct labels *labels, const void *buffer);
void labels_add(struct labels *labels, const void *buffer, const char *label);
/* The secondary command buffer's labels, which it has by now, are the primary's too. */
void labels_join(struct labels *labels, const void *primary, const void *secondary);

/* One of its labels begins with the prefix. */
bool labels_match(struct labels *labels, const void *buffer, const char *prefix);

#endif
