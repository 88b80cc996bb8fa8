/*
 * Walks real stacks of a program and compares each with what other unwinders say of the same copy, or with what the program itself says.
 *
 *   unwind-stacks [--hz N] [--samples N] [--bytes N] [--book] [--show N | --show-all N] -- PROGRAM ARGUMENTS
 *
 * Prints one line of JSON; before it, with --show, the first N stacks whole whose difference nobody explains
 * (difference.h; --show-all: every difference). With --book the program keeps a book of its own call
 * chain (book.h). Exit status 77: the kernel lets nobody sample.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <getopt.h>

#include "unwind/booked.h"
#include "unwind/difference.h"
#include "unwind/peers.h"

#define FRAMES 4096

struct options {
	uint64_t hz;
	size_t samples, bytes, show;
	unsigned least; /* what is shown: 1 every difference, else those that nobody explains */
	bool has_book;
};

struct tally {
	size_t stacks, frames, ends[UNWIND_LOOP + 1];
	size_t differences[2][DIFFERENCES]; /* of libdw and libunwind */
	size_t books[BOOKED_WRONG + 1];
};

static const struct peer_ops *const peers[] = {&peer_libdw, &peer_libunwind};
static const char *const booked_names[] = {"no_book", "exact", "between", "wrong"};
static const char *const end_names[] = {"root", "cut", "no_rule", "bad", "depth", "loop"};

static void show(const struct replay_process *process, const char *name, const uint64_t *addresses,
	size_t count, const char *end)
{
	char text[256];

	printf("%s: %zu frames, %s\n", name, count, end);
	for (size_t i = 0; i < count; i++) {
		replay_describe(process, addresses[i], text, sizeof(text));
		printf("  %zu %s\n", i, text);
	}
}

static void compare(struct tally *tally, struct options *options, struct peer **states,
	struct replay *replay, const struct replay_process *process, const struct corpus_event *event,
	const struct unwind_stack *ours)
{
	static struct peer_stack theirs[2];
	enum difference kinds[2];

	for (size_t i = 0; i < 2; i++) {
		peers[i]->walk(&states[i], process, event, &theirs[i]);
		kinds[i] = difference_of(replay, process, event, ours, peers[i], &theirs[i]);
		tally->differences[i][kinds[i]]++;
	}
	if (options->show > 0 && kinds[0] + kinds[1] >= options->least) {
		options->show--;
		show(process, "ours", ours->addresses, ours->count, end_names[ours->end]);
		for (size_t i = 0; i < 2; i++) {
			show(process, peers[i]->name, theirs[i].addresses, theirs[i].count,
				difference_names[kinds[i]]);
		}
	}
}

static void check_book(struct tally *tally, struct options *options, const struct booked *booked,
	const struct replay_process *process, const struct corpus_event *event,
	const struct unwind_stack *stack)
{
	struct book book;
	enum booked_result result = booked_check(booked, event, stack, &book);

	tally->books[result]++;
	if (result == BOOKED_WRONG && options->show > 0) {
		options->show--;
		show(process, "ours", stack->addresses, stack->count, end_names[stack->end]);
		show(process, "book", (uint64_t *)(uintptr_t)book.entries, book.depth, "outermost first");
	}
}

static void walk_all(const struct corpus *corpus, struct options *options,
	const struct booked *booked, struct tally *tally)
{
	static uint64_t addresses[FRAMES];
	static uint8_t kinds[FRAMES];
	struct unwind_stack stack = {.addresses = addresses, .kinds = kinds, .capacity = FRAMES};
	struct peer *states[2] = {NULL, NULL};
	struct replay replay;

	if (!replay_init(&replay)) {
		abort();
	}
	for (size_t i = 0; i < corpus->events.len; i++) {
		const struct corpus_event *event = &corpus->events.items[i];
		const struct replay_process *process = replay_apply(&replay, event);

		if (process == NULL) {
			continue;
		}
		const struct unwind_sample sample = replay_sample(event);

		unwind_walk(replay.unwinder, &process->space, &sample, &stack);
		tally->stacks++;
		tally->frames += stack.count;
		tally->ends[stack.end]++;
		if (options->has_book) {
			check_book(tally, options, booked, process, event, &stack);
		} else {
			compare(tally, options, states, &replay, process, event, &stack);
		}
	}
	peer_libdw.destroy(states[0]);
	peer_libunwind.destroy(states[1]);
	replay_finish(&replay);
}

static void print(
	const struct corpus *corpus, const struct options *options, const struct tally *tally)
{
	printf("{\"stacks\": %zu, \"frames\": %zu, \"lost\": %" PRIu64, tally->stacks, tally->frames,
		corpus->lost);
	for (size_t i = 0; i <= UNWIND_LOOP; i++) {
		printf(", \"%s\": %zu", end_names[i], tally->ends[i]);
	}
	if (options->has_book) {
		for (size_t i = 0; i <= BOOKED_WRONG; i++) {
			printf(", \"%s\": %zu", booked_names[i], tally->books[i]);
		}
		printf("}\n");
		return;
	}
	for (size_t i = 0; i < 2; i++) {
		printf(", \"%s\": {", peers[i]->name);
		for (size_t kind = 0; kind < DIFFERENCES; kind++) {
			printf("%s\"%s\": %zu", kind == 0 ? "" : ", ", difference_names[kind],
				tally->differences[i][kind]);
		}
		printf("}");
	}
	printf("}\n");
}

static bool read_options(int argc, char **argv, struct options *options)
{
	static const struct option names[] = {{"hz", 1, NULL, 'h'}, {"samples", 1, NULL, 'n'},
		{"bytes", 1, NULL, 'b'}, {"show", 1, NULL, 's'}, {"show-all", 1, NULL, 'a'},
		{"book", 0, NULL, 'k'}, {0}};
	int name;

	while ((name = getopt_long(argc, argv, "+", names, NULL)) != -1) {
		switch (name) {
		case 'h':
			options->hz = strtoull(optarg, NULL, 10);
			break;
		case 'n':
			options->samples = strtoull(optarg, NULL, 10);
			break;
		case 'b':
			options->bytes = strtoull(optarg, NULL, 10);
			break;
		case 's':
		case 'a':
			options->show = strtoull(optarg, NULL, 10);
			options->least = name == 'a' ? 1 : DIFFERENCE_UNEXPLAINED;
			break;
		case 'k':
			options->has_book = true;
			break;
		default:
			return false;
		}
	}
	return optind < argc;
}

int main(int argc, char **argv)
{
	struct options options = {.hz = 499, .samples = 2000, .bytes = CORPUS_STACK_BYTES};
	struct booked booked = {0};
	struct corpus corpus = {0};
	struct tally tally = {0};
	bool is_forbidden = false;

	if (!read_options(argc, argv, &options)) {
		fprintf(stderr, "usage: unwind-stacks [--hz N] [--samples N] [--bytes N] [--book] [--show "
						"N] -- PROGRAM…\n");
		return 2;
	}
	if (options.has_book) {
		booked_init(&booked, argv[optind]);
	}
	if (!corpus_record(
			&corpus, argv + optind, options.hz, options.samples, options.bytes, &is_forbidden)) {
		corpus_finish(&corpus);
		return is_forbidden ? 77 : 1;
	}
	walk_all(&corpus, &options, &booked, &tally);
	print(&corpus, &options, &tally);
	booked_finish(&booked);
	corpus_finish(&corpus);
	return 0;
}
