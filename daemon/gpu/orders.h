#ifndef GPU_ORDERS_H
#define GPU_ORDERS_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/link.h"

/* What profd says to a process of an armed program (protocol/gpu_wire.h). */

/* The line of a start; without frames it is manual: from the next boundary until stop. asked: the number of the wish that it answers; NULL: none. False: it does
 * not fit. Pure. */
bool orders_make_start(
	struct gpu_wire_line *line, const struct gpu_range *range, const uint64_t *asked);
/* "stop" or "status". False: it cannot be told, and its link closes. */
bool orders_send_word(struct link *link, const char *word);
/* The answer to the wish of that number. */
void orders_send_refusal(struct link *link, uint64_t number, const struct error *err);

#endif
