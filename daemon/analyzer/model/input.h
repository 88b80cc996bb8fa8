#ifndef ANALYZER_MODEL_INPUT_H
#define ANALYZER_MODEL_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "protocol/error.h"

/*
 * All bytes of a descriptor, appended to out with pread (the file's position is left alone). Never mapped: a file that
 * shrinks while it is mapped kills its reader. Works for files of /proc too, whose size is said to be 0.
 * what names it in errors: limit_exceeded above max_bytes or without memory, io otherwise.
 */
bool input_read(
	int fd, uint64_t max_bytes, const char *what, struct buffer *out, struct error *err);

#endif
