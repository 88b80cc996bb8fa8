#ifndef ANALYZER_MODEL_MODEL_H
#define ANALYZER_MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/strings.h"
#include "base/vec.h"
#include "profile/journal.h"
#include "protocol/error.h"

/*
 * A journal, read: who ran, what code was mapped, which distinct stacks were met and how often by whom. Texts are ids in
 * the strings given to model_create. A journal may be broken or hostile: every table is bounded below, what contradicts itself is
 * counted and left out, and reading ends at the first bad chunk with everything before it.
 *
 * Segments are merged: ids of strings, images, metrics, frames and stacks are the segment's own and forgotten at the next
 * one; processes and threads go on.
 */
#define MODEL_JOURNAL_BYTES    (4ull << 30)
#define MODEL_BUILD_ID_BYTES   64
#define MODEL_MAX_FRAMES       (64u << 20) /* over all distinct stacks */
#define MODEL_MAX_STACKS       (1u << 30)
#define MODEL_MAX_THREADS      (1u << 24)
#define MODEL_MAX_METRICS      255
#define MODEL_MAX_MAPPINGS     (4u << 20)   /* of all processes together */
#define MODEL_PROCESS_MAPPINGS (256u << 10) /* of one process */
#define MODEL_MAX_NOTES        256
#define MODEL_NONE             UINT32_MAX /* no image, no process */

struct model_metric {
	uint32_t name;
	uint64_t unit; /* enum journal_unit */
	uint64_t period;
	uint64_t samples;
};

struct model_process {
	uint64_t pid, parent_pid;
	uint32_t name, executable; /* the latest */
	uint32_t program;          /* the latest image that is its executable, or MODEL_NONE */
	bool has_ended;
	bool has_cpu; /* cpu_ns was told for the whole process */
	uint64_t
		cpu_ns; /* the kernel's accounting: told for the process, else the sum of its threads; 0: not told */
	uint64_t cpu_user_ns, cpu_system_ns; /* of that; both 0: not told */
	uint64_t samples;                    /* of the first metric */
	uint64_t told_samples;               /* those before cpu_ns was told */
};

struct model_thread {
	uint64_t pid, tid;
	uint32_t name;    /* the latest */
	uint32_t process; /* index, or MODEL_NONE */
	bool has_ended;
	uint64_t samples;          /* of the first metric */
	uint64_t begin_ns, end_ns; /* its birth, or the first word of it; its end, 0: not seen */
	uint64_t cpu_ns;           /* the kernel's accounting; 0: not told */
	uint64_t cpu_user_ns, cpu_system_ns; /* of that; both 0: not told */
	uint64_t told_samples, told_at_ns;   /* the samples before cpu_ns was told, and when that was */
};

struct model_image {
	uint64_t id;   /* in the journal */
	uint64_t kind; /* enum journal_image_kind */
	uint32_t path;
	uint64_t device, inode, inode_generation;
	uint8_t build_id[MODEL_BUILD_ID_BYTES];
	uint8_t build_id_bytes;
	uint8_t access; /* enum journal_image_access */
	bool is_met;    /* a frame of some stack is in it */
};

/*
 * A native frame is looked up where the call was made, one byte before the return address, so that the last call of a
 * function that never returns is not given to its neighbour. offset is that place in the image's file. Frames that are no
 * return addresses (the innermost of the process, and JOURNAL_FRAME_EXACT) are looked up where they are.
 */
struct model_frame {
	uint64_t address;  /* native and kernel: as recorded */
	uint64_t offset;   /* native with an image: of the place looked up */
	uint32_t image;    /* index, or MODEL_NONE */
	uint32_t name;     /* interpreted and marker: string id */
	uint8_t kind;      /* enum journal_frame_kind; EXACT has become NATIVE */
	uint8_t is_return; /* 1: offset belongs to address - 1 */
};

struct model_stack {
	uint64_t pid;
	uint64_t end; /* enum journal_stack_end */
	size_t first; /* index in frames: the leaf */
	size_t count;
};

/* How often a thread was met in a stack. */
struct model_cell {
	uint32_t thread, stack, metric; /* indices */
	uint64_t count;
	uint64_t weight; /* in the metric's unit */
};

struct model_note {
	uint32_t code, text;
};

struct model {
	VEC(struct model_metric) metrics;
	VEC(struct model_process) processes;
	VEC(struct model_thread) threads;
	VEC(struct model_image) images;
	VEC(struct model_frame) frames;
	VEC(struct model_stack) stacks; /* 0 is the stack that could not be taken */
	VEC(struct model_cell) cells;
	VEC(struct model_note) notes;

	uint64_t lost[JOURNAL_LOSS_DISK + 1]; /* by enum journal_loss */
	uint64_t withheld_ns;                 /* by throttling */
	uint64_t first_sample_ns, last_sample_ns;
	uint32_t capture_json; /* string id */

	/* of the first segment */
	uint64_t clock, begin_ns, begin_unix_us;
	uint32_t machine, system;
	uint64_t segments;

	bool has_end;
	uint64_t end_ns;
	uint32_t end_reason;

	uint64_t contradictions; /* records that were left out */
	bool is_damaged;         /* reading ended at a bad chunk */
	uint32_t damage;         /* string id: what the reader said */

	struct map image_ids; /* journal id -> index, the latest definition */
	struct map
		programs; /* process << 32 | image: the process's executable, now or before an exec */
};

/* Reads the whole journal. strings is borrowed for the model's life. NULL: limit_exceeded, memory is out. */
struct model *model_create(
	struct strings *strings, const uint8_t *journal, size_t len, struct error *err);
void model_destroy(struct model *model);

/* Samples of the first metric, the one that trees and folded stacks show. */
uint64_t model_samples(const struct model *model);
uint64_t model_period(const struct model *model);
/* Samples that are known to be missing: every cause but throttling, which counts events. */
uint64_t model_lost(const struct model *model);
/* CPU time by the kernel's accounting over all processes; 0: not told. */
uint64_t model_cpu_ns(const struct model *model);
/* By the journal's id; NULL: unknown. */
const struct model_image *model_image(const struct model *model, uint64_t journal_id);
/* Whether the image is what the process executes, or did before an exec: the file that the journal names as its executable, else the
 * first one that was mapped, which is where the kernel and the list of a running process's mappings begin. Indices, or MODEL_NONE. */
bool model_is_program(const struct model *model, uint32_t process, uint32_t image);
/* String id to show for a thread: its name, else its process's, else 0. */
uint32_t model_thread_name(const struct model *model, const struct model_thread *thread);

#endif
