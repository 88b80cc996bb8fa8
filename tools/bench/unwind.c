/*
 * What a walk costs: nanoseconds a frame on real stacks of a program, when its pcs are seen for the first time and when they are known, beside libdw on
 * the same stacks. Usage: bench-unwind [--bytes N] [--samples N] -- PROGRAM ARGUMENTS
 *
 * The stacks were copied long before and lie in cold memory; "in cache" are those that were just walked.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <getopt.h>
#include <time.h>

#include "unwind/peers.h"

#define FRAMES        4096
#define WARM_PASSES   5
#define CACHED_STACKS 16
#define BATCH_STACKS  1000
#define EARLY_STACKS  10000 /* behind them most pcs are known */

struct pass {
	uint64_t ns, frames, stacks;
};

struct costs {
	struct pass first, warm, cached, libdw;
	uint64_t misses, ends[UNWIND_LOOP + 1];
	uint64_t early_misses, early_frames; /* of the first EARLY_STACKS; 0: there were no more */
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The samples between two changes of what is mapped, walked in one go: reading the clock for each would cost as much as a walk. */
struct batch {
	const struct replay_process *process;
	uint64_t changes;
	VEC(const struct corpus_event *) events;
};

static void walk_part(struct replay *replay, const struct batch *batch, size_t first, size_t count,
	struct pass *pass, uint64_t *ends)
{
	static uint64_t addresses[FRAMES];
	static uint8_t kinds[FRAMES];
	struct unwind_stack stack = {.addresses = addresses, .kinds = kinds, .capacity = FRAMES};
	uint64_t begin = now_ns();

	for (size_t i = first; i < first + count; i++) {
		const struct unwind_sample sample = replay_sample(batch->events.items[i]);

		unwind_walk(replay->unwinder, &batch->process->space, &sample, &stack);
		pass->frames += stack.count;
		ends[stack.end]++;
	}
	pass->ns += now_ns() - begin;
	pass->stacks += count;
}

static void walk_batch(
	struct replay *replay, const struct batch *batch, struct pass *pass, uint64_t *ends)
{
	walk_part(replay, batch, 0, batch->events.len, pass, ends);
}

/* Few stacks at a time, twice: the second time they are in the cache, as in a ring that the kernel has just written to. */
static void walk_cached(
	struct replay *replay, const struct batch *batch, struct pass *pass, uint64_t *ends)
{
	for (size_t i = 0; i < batch->events.len; i += CACHED_STACKS) {
		size_t left = batch->events.len - i, count = left < CACHED_STACKS ? left : CACHED_STACKS;
		struct pass ignored = {0};

		walk_part(replay, batch, i, count, &ignored, ends);
		walk_part(replay, batch, i, count, pass, ends);
	}
}

#ifdef HAS_LIBDW
static void walk_with_libdw(struct peer **peer, const struct batch *batch, struct pass *pass)
{
	static struct peer_stack stack;
	uint64_t begin = now_ns();

	for (size_t i = 0; i < batch->events.len; i++) {
		peer_libdw.walk(peer, batch->process, batch->events.items[i], &stack);
		pass->frames += stack.count;
	}
	pass->ns += now_ns() - begin;
	pass->stacks += batch->events.len;
}
#endif

/* The best of some: what else runs only makes them slower. */
static void walk_warm(
	struct replay *replay, const struct batch *batch, struct pass *pass, uint64_t *ends)
{
	struct pass best = {.ns = UINT64_MAX};

	for (int i = 0; i < WARM_PASSES; i++) {
		struct pass one = {0};

		walk_batch(replay, batch, &one, ends);
		best = one.ns < best.ns ? one : best;
	}
	pass->ns += best.ns;
	pass->frames += best.frames;
	pass->stacks += best.stacks;
}

static void flush(
	struct replay *replay, struct batch *batch, struct peer **peer, struct costs *costs)
{
	uint64_t ends[UNWIND_LOOP + 1] = {0};

	if (batch->events.len == 0) {
		return;
	}
	if (costs->first.stacks >= EARLY_STACKS && costs->early_frames == 0) {
		costs->early_misses = unwinder_counters(replay->unwinder)->misses;
		costs->early_frames = costs->first.frames;
	}
	walk_batch(replay, batch, &costs->first, costs->ends);
	walk_warm(replay, batch, &costs->warm, ends);
	walk_cached(replay, batch, &costs->cached, ends);
#ifdef HAS_LIBDW
	walk_with_libdw(peer, batch, &costs->libdw);
#else
	(void)peer;
#endif
	batch->events.len = 0;
}

static void run(const struct corpus *corpus, struct costs *costs)
{
	struct batch batch = {0};
	struct peer *peer = NULL;
	struct replay replay;

	if (!replay_init(&replay)) {
		abort();
	}
	for (size_t i = 0; i < corpus->events.len; i++) {
		const struct corpus_event *event = &corpus->events.items[i];

		if (event->kind != CORPUS_SAMPLE) {
			flush(&replay, &batch, &peer, costs);
		}
		const struct replay_process *process = replay_apply(&replay, event);

		if (process != NULL && process != batch.process) {
			flush(&replay, &batch, &peer, costs);
			batch.process = process;
		}
		if (process != NULL) {
			VEC_PUSH(&batch.events, event);
		}
		if (batch.events.len == BATCH_STACKS) {
			flush(&replay, &batch, &peer, costs);
		}
	}
	flush(&replay, &batch, &peer, costs);
	costs->misses = unwinder_counters(replay.unwinder)->misses;
#ifdef HAS_LIBDW
	peer_libdw.destroy(peer);
#endif
	VEC_FINISH(&batch.events);
	replay_finish(&replay);
}

static void print_pass(const char *name, const struct pass *pass)
{
	if (pass->frames > 0) {
		printf("%-12s %8.1f ns a frame %8.2f us a stack\n", name,
			(double)pass->ns / (double)pass->frames, (double)pass->ns / 1e3 / (double)pass->stacks);
	}
}

int main(int argc, char **argv)
{
	static const struct option names[] = {{"samples", 1, NULL, 'n'}, {"bytes", 1, NULL, 'b'}, {0}};
	size_t samples = 5000, bytes = 16384;
	struct corpus corpus = {0};
	struct costs costs = {0};
	bool is_forbidden;
	int name;

	while ((name = getopt_long(argc, argv, "+", names, NULL)) != -1) {
		*(name == 'n' ? &samples : &bytes) = strtoull(optarg, NULL, 10);
	}
	if (optind >= argc ||
		!corpus_record(&corpus, argv + optind, 999, samples, bytes, &is_forbidden)) {
		fprintf(stderr, "usage: bench-unwind [--samples N] [--bytes N] -- PROGRAM ARGUMENTS\n");
		return 2;
	}
	run(&corpus, &costs);
	printf("%zu stacks of %zu bytes, %.1f frames each; to the root %.1f %%, cut %.1f %%; rules "
		   "made %" PRIu64 " (%.2f %% of the first pass)\n",
		(size_t)costs.first.stacks, bytes, (double)costs.first.frames / (double)costs.first.stacks,
		100.0 * (double)costs.ends[UNWIND_ROOT] / (double)costs.first.stacks,
		100.0 * (double)costs.ends[UNWIND_CUT] / (double)costs.first.stacks, costs.misses,
		100.0 * (double)costs.misses / (double)costs.first.frames);
	if (costs.early_frames > 0) {
		printf("rules made behind the first %d stacks: %.2f %% of the frames\n", EARLY_STACKS,
			100.0 * (double)(costs.misses - costs.early_misses) /
				(double)(costs.first.frames - costs.early_frames));
	}
	print_pass("first pass", &costs.first);
	print_pass("known pcs", &costs.warm);
	print_pass("and in cache", &costs.cached);
	print_pass("libdw, first", &costs.libdw);
	corpus_finish(&corpus);
	return 0;
}
