#ifndef GPU_FAULT_H
#define GPU_FAULT_H

#include "protocol/error.h"

/*
 * What the layer's code of a fault ("layer_order", …) means to a client: err with the contract's code, that code as its detail, and what helps. text is the
 * layer's own, of any content. A code that nobody knows is io. Pure.
 */
void fault_set(struct error *err, const char *code, const char *text);

#endif
