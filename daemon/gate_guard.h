#ifndef GATE_GUARD_H
#define GATE_GUARD_H

/*
 * profd-gate --guard, as protocol/gate.h describes it: becomes a process that belongs to nobody and outlives its owner by the moment it takes to
 * kill the owner's groups. fd is the guard's end. Never returns.
 */
_Noreturn void gate_guard(int fd);

#endif
