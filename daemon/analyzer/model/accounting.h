#ifndef ANALYZER_MODEL_ACCOUNTING_H
#define ANALYZER_MODEL_ACCOUNTING_H

#include <stdbool.h>
#include <stdint.h>

#include "analyzer/model/model.h"

/*
 * Where the samples are that should be there. The kernel's accounting says how much CPU time a process and its threads have consumed;
 * a sample stands for a period of it. In samples, and exactly:
 *
 *   expected = count + lost + throttled + not_permitted + too_short + unexplained
 *
 *   lost           told by the kernel's rings, the profiler, the disk. The rings count records: some may not have been samples
 *   throttled      the kernel took none for so long, because too many came in one of its ticks
 *   not_permitted  time in the kernel, where that may not be sampled
 *   too_short      each thread's event begins with a full period on each processor, and takes what is left of it to the thread's end: a
 *                  thread loses up to one period there, and all when it lived shorter. As many as are missing still, up to that
 *   unexplained    the rest, of either sign: timers that came late, a clock that went on while a hypervisor had the processor
 *
 * A thread's row adds up in the same way without lost and throttled, which are told for no thread: its unexplained holds them, and
 * also that the kernel swaps the events of two threads of a process when it switches between them, so that a sample may be of the
 * other one's period. Rows of threads do not add up to the whole: what is known of them is less.
 */
struct accounting_row {
	bool is_told; /* expected and what follows is known */
	uint64_t count, expected, not_permitted, too_short;
	int64_t unexplained;
	uint64_t cpu_ns, cpu_user_ns, cpu_system_ns; /* both 0: the division is not told */
	/* A thread's last look may be some time before its end: of what its process consumed since, this much of cpu_ns is given to it by its samples. */
	uint64_t estimated_ns;
};

struct accounting {
	struct accounting_row whole;
	struct accounting_row *threads; /* owned; by index in the model */
	uint64_t lost, throttled;
	uint64_t unseen_threads; /* that have no sample */
	bool
		is_division_unknown; /* the kernel may not be sampled, and nobody knows how much of the time it was */
};

/* What the journal does not say. */
struct accounting_terms {
	bool kernel_sampled;
	uint64_t cpus; /* processors that were sampled; 0: not known */
	uint64_t user_ns,
		system_ns; /* of the process's whole life, where the journal does not know them; both 0: not known */
};

/* False: memory is out. accounting_finish works then, and on zeros. */
bool accounting_init(
	struct accounting *accounting, const struct model *model, const struct accounting_terms *terms);
void accounting_finish(struct accounting *accounting);

#endif
