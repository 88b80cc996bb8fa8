#ifndef CAPTURE_SALVAGE_H
#define CAPTURE_SALVAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/vec.h"
#include "capture/pipeline.h"
#include "protocol/error.h"

/*
 * What a journal holds that nobody ended: read chunk by chunk up to the last whole one, so that its size costs no memory, and only what
 * is needed to have it analyzed. The file may be broken or hostile. Any thread; blocking.
 */
struct salvage_image {
	uint32_t id; /* the journal's */
	char *path;  /* owned */
	uint64_t device, inode;
};

struct salvage {
	uint64_t samples;
	uint64_t begin_ns, begin_unix_us; /* of the first segment */
	uint64_t first_ns, last_ns; /* of the first sample; of the last sample, or the END record */
	uint64_t period_ns;
	bool has_end;
	uint64_t good_bytes;              /* from the beginning: whole chunks without a fault */
	bool is_damaged;                  /* behind them there is more */
	json_t *capture;                  /* the CAPTURE record, an object; owned; NULL: none */
	VEC(struct salvage_image) images; /* files with code */
	VEC(struct pipeline_image) opened;
};

/* Zero-initialise. False: err, it could not be read or memory is out; a journal without anything good is one without samples. */
bool salvage_read(struct salvage *salvage, int journal_fd, struct error *err);
void salvage_finish(struct salvage *salvage);

/* The wall clock's time of a moment of the capture's clock. */
uint64_t salvage_unix_us(const struct salvage *salvage, uint64_t time_ns);
/* Has the machine been up since? Then addresses of the kernel mean what they meant. Suspended time makes it a no. */
bool salvage_is_of_this_boot(const struct salvage *salvage);

/*
 * Opens the images by their paths, at most limit of them: those that are still the same file, by device and inode, and were not changed since.
 * The inode of a deleted file is used again soon, so a file whose status changed after the last sample is another one.
 */
void salvage_open_images(struct salvage *salvage, size_t limit);

#endif
