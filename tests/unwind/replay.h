#ifndef TESTS_UNWIND_REPLAY_H
#define TESTS_UNWIND_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/corpus.h"
#include "unwind/unwind.h"

/* What a corpus' processes had mapped at each of its samples, as the unwinder wants it. */
struct replay_image {
	uint64_t inode;
	uint32_t device_major, device_minor;
	char *path;      /* owned */
	struct cfi *cfi; /* owned reference; NULL: cannot be read */
};

struct replay_mapping {
	uint64_t start, end, bias;
	const struct replay_image *image; /* NULL: no file */
};

struct replay_process {
	pid_t pid;
	struct unwind_space space;
	uint64_t changes;                    /* rises with each */
	VEC(struct replay_mapping) mappings; /* of images, for other unwinders; the newest last */
};

struct replay {
	struct unwinder *unwinder; /* owned */
	VEC(struct replay_image *) images;
	VEC(struct replay_process *) processes;
	uint64_t changes;
};

bool replay_init(struct replay *replay);
void replay_finish(struct replay *replay);
/* Takes over what the event says. NULL: it is no sample, or of an unknown process; else the sample's process. */
const struct replay_process *replay_apply(struct replay *replay, const struct corpus_event *event);
/* The sample in the unwinder's form; borrows from the event. */
struct unwind_sample replay_sample(const struct corpus_event *event);
/* "name+0xoffset" of a pc, in to. */
void replay_describe(const struct replay_process *process, uint64_t pc, char *to, size_t len);

#endif
