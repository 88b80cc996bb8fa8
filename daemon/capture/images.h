#ifndef CAPTURE_IMAGES_H
#define CAPTURE_IMAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/pipeline.h"
#include "sampler/sampler.h"

/*
 * The files that hold the target's code. Each is opened when it is first seen, while the target lives, and kept open: afterwards a file
 * in its container, or a deleted one, is gone. One thread.
 */
struct images;

/* How many of the target's files one capture may keep open: a share of the descriptors that we may have. */
size_t images_fd_limit(void);

/* At most fd_limit files are kept open. */
struct images *images_create(size_t fd_limit);
/* Closes the files. */
void images_destroy(struct images *images);

struct images_image {
	uint32_t id; /* from 1 */
	bool is_new;
	uint64_t kind;   /* enum journal_image_kind */
	uint64_t access; /* enum journal_image_access */
	int fd;          /* of its file; borrowed; -1: none */
};

/* Finds or adds the image of a mapping. False when memory is out, or LIMIT_IMAGES are known. */
bool images_find(
	struct images *images, const struct sampler_mapping *mapping, struct images_image *image);

/* The image of an id. False: there is none. */
bool images_get(const struct images *images, uint32_t id, struct images_image *image);

/*
 * Is the open file of an image no longer what it was when it was opened (cp over it, a linker that writes in place)? True once: it is closed, and a
 * mapping of it is another image from then on.
 */
bool images_was_overwritten(struct images *images, uint32_t id);
size_t images_count(const struct images *images);
/* What is known of an image's file as a mapping tells it: path (borrowed), device and inode. */
void images_describe(const struct images *images, uint32_t id, struct sampler_mapping *mapping);

/* How many files were not opened because descriptors ran out. */
size_t images_not_opened(const struct images *images);
const struct pipeline_image *images_opened(const struct images *images, size_t *count);

#endif
