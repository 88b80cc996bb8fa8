#ifndef IMAGE_IMAGE_SOURCE_H
#define IMAGE_IMAGE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/error.h"

/*
 * The bytes of a file that holds code, or of memory that looks like one (the vDSO). Files of a target are read with pread(2), never
 * mapped: a mapped file that shrinks kills its reader. Any number of threads may read at once.
 */
struct image_source {
	int fd;                /* owned; -1: memory */
	const uint8_t *memory; /* borrowed for ever */
	uint64_t bytes;        /* when it was opened; later reads may find less */
};

/* Takes fd, whose file must be a regular one (a memfd is). False: err, and fd is closed. */
bool image_source_open(struct image_source *source, int fd, struct error *err);
/* The code that the kernel puts into every process of this machine, and so into ours: the vDSO. False: err. */
bool image_source_vdso(struct image_source *source, struct error *err);
void image_source_close(struct image_source *source);
/* How many of len bytes could be read, from the front. */
size_t image_source_read(const struct image_source *source, uint64_t offset, void *to, size_t len);

#endif
