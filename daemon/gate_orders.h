#ifndef GATE_ORDERS_H
#define GATE_ORDERS_H

/* What the owner says to a gate that is ready: variables of the environment, and "go" (protocol/gate.h). Nothing but libc; allocates nothing. */

/*
 * Waits for "go", and returns the environment for the target: the gate's own with what was set meanwhile; it lives as long as the process. Exits with
 * GATE_EXIT_NO_GO when the owner goes or says anything else, and by gate_fail when it sets too much.
 */
char **gate_take_orders(int fd);

#endif
