#ifndef CAPTURE_MOVED_CODE_H
#define CAPTURE_MOVED_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/images.h"
#include "capture/mappings.h"
#include "sampler/sampler.h"

/*
 * Code that a program has copied in place to memory without a file, so that large pages hold it (node --use-largepages, databases, games): it is
 * still that of the file that was mapped there. Believed only when the bytes are the file's. Zero-initialise. One thread.
 */
struct moved_code {
	struct mappings files; /* where files were mapped, whatever has come over them */
};

/* A mapping of a file. */
void moved_code_put(
	struct moved_code *moved, const struct sampler_mapping *mapping, uint32_t image);
/* Of an anonymous mapping: the image and the offset in its file of what it holds. False: it is nothing that was moved. */
bool moved_code_find(const struct moved_code *moved, const struct images *images,
	const struct sampler_mapping *mapping, struct images_image *image, uint64_t *file_offset);
/* The process runs another program. */
void moved_code_clear(struct moved_code *moved);
void moved_code_finish(struct moved_code *moved);

#endif
