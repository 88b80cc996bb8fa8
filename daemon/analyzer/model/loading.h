#ifndef ANALYZER_MODEL_LOADING_H
#define ANALYZER_MODEL_LOADING_H

#include <stdbool.h>
#include <stdint.h>

#include "analyzer/model/loader.h"
#include "analyzer/model/space.h"
#include "base/map.h"
#include "base/vec.h"
#include "profile/journal.h"

/* The loader's inside: what loader.c, places.c and stacks.c need of each other. */

/* What the records read so far mean for the next one. The maps lead from ids of the journal to indices of the model. */
struct loader {
	struct model *model;
	struct strings *strings;
	struct map texts, images, metrics, frames, stacks; /* of this segment */
	struct map processes, threads; /* the latest of that id, also when it has ended */
	struct map cells;
	VEC(struct space) spaces;  /* of the process with the same index */
	VEC(uint32_t) frame_names; /* of FRAME records */
	size_t mapping_count;
};

/* Leaves a record out, and counts it. True. */
bool loading_contradict(struct loader *loader);
/* The string of a journal's string id; 0 when it is none. */
uint32_t loading_text(const struct loader *loader, uint64_t id);

/* places.c: processes, threads, images, mappings. Every handler of a record: false only when memory is out. */
bool loading_process(struct loader *loader, const struct journal_record *record);
bool loading_process_end(struct loader *loader, const struct journal_record *record);
bool loading_thread(struct loader *loader, const struct journal_record *record);
bool loading_thread_end(struct loader *loader, const struct journal_record *record);
bool loading_image(struct loader *loader, const struct journal_record *record);
bool loading_mapping(struct loader *loader, const struct journal_record *record);
bool loading_unmapping(struct loader *loader, const struct journal_record *record);
/* The thread of this id from now on; too many are left out. */
bool loading_add_thread(
	struct loader *loader, uint64_t time_ns, uint64_t pid, uint64_t tid, uint32_t name);
/* Borrowed until the next process; NULL: no such process. */
struct space *loading_space(struct loader *loader, uint64_t pid);

/* stacks.c: frames, stacks, samples. */
bool loading_frame(struct loader *loader, const struct journal_record *record);
bool loading_stack(struct loader *loader, const struct journal_record *record);
bool loading_sample(struct loader *loader, const struct journal_record *record);

#endif
