#ifndef GPU_SURVIVORS_H
#define GPU_SURVIVORS_H

#include <stddef.h>
#include <sys/types.h>

/*
 * A process of ours that began with this variable ("NAME=value") in its environment, and lives: whoever armed a program knows its descendants by that,
 * whatever became of their parents. 0: none is known; one that has overwritten its environment is not. name: its argv[0], for people. Reads all of
 * /proc: any thread that may block. survivors_linux.c.
 */
pid_t survivors_find(const char *variable, char *name, size_t size);

#endif
