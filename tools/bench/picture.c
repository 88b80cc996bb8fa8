/*
 * bench-picture STACKS [FILE.svg]: what a flame graph of so many distinct stacks costs, 50 to 200 frames deep: CPU to make the tree and to
 * write the picture, its size, and the memory per node of the tree.
 *
 * The stacks are those of a random walk: each is another one with its end walked anew, so that they share what profiles share;
 * functions have a few callees each, weights have a heavy tail, and names look like those of C, C++ and Rust.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "analyzer/export/svg.h"
#include "analyzer/tree/tree.h"

#define DEPTH_LEAST 50
#define DEPTH_MOST  200
#define POOL        1024
#define FUNCTIONS   20000
#define CALLEES     6
#define IMAGES      40
#define TAIL        8 /* frames that are walked anew, at most twice as many */

struct stack {
	size_t depth;
	uint32_t functions[DEPTH_MOST];
};

struct walk {
	uint64_t seed;
	struct stack pool[POOL];
	struct tree_frame frames[FUNCTIONS];
	uint64_t adding_ns; /* CPU in tree_add alone */
};

static uint64_t cpu_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* xorshift64 (Marsaglia 2003). */
static uint64_t draw(struct walk *walk, uint64_t below)
{
	walk->seed ^= walk->seed << 13;
	walk->seed ^= walk->seed >> 7;
	walk->seed ^= walk->seed << 17;
	return (walk->seed >> 11) % below;
}

static void name_functions(struct walk *walk, struct strings *names)
{
	static const char *const forms[] = {"do_thing_%u",
		"std::vector<item_%u, std::allocator<item_%u>>::push_back(item_%u const&)",
		"<alloc::vec::Vec<T%u> as core::ops::drop::Drop>::drop",
		"ns%u::parser::parse_expression(int)", "pool_%u_alloc"};
	char name[160];
	for (unsigned i = 0; i < FUNCTIONS; i++) {
		int len = snprintf(name, sizeof(name), forms[i % 5], i, i, i);
		uint32_t id = strings_intern(names, name, (size_t)len, NULL);
		len = snprintf(name, sizeof(name), "lib%u.so.1", i % IMAGES);
		uint32_t image = strings_intern(names, name, (size_t)len, NULL);
		walk->frames[i] =
			(struct tree_frame){id, image, i % IMAGES == 0 ? TREE_PROGRAM : TREE_LIBRARY};
	}
}

static uint32_t callee(struct walk *walk, uint32_t function)
{
	return (uint32_t)((function * UINT64_C(2654435761) + draw(walk, CALLEES) * 40503) % FUNCTIONS);
}

/* From its frame number on; the last frame may be any function, so that hardly two stacks are equal. */
static void walk_on(struct walk *walk, struct stack *stack, size_t from, size_t depth)
{
	for (size_t i = from; i < depth; i++) {
		stack->functions[i] = i == 0 ? 0 : callee(walk, stack->functions[i - 1]);
	}
	stack->functions[depth - 1] = (uint32_t)draw(walk, FUNCTIONS);
	stack->depth = depth;
}

static struct stack *next_stack(struct walk *walk)
{
	struct stack *stack = &walk->pool[draw(walk, POOL)];
	*stack = walk->pool[draw(walk, POOL)];
	size_t keep = stack->depth - 1 - draw(walk, TAIL);
	size_t depth = keep + 1 + draw(walk, TAIL);
	depth = depth < DEPTH_LEAST ? DEPTH_LEAST : depth > DEPTH_MOST ? DEPTH_MOST : depth;
	walk_on(walk, stack, keep < depth ? keep : depth - 1, depth);
	return stack;
}

static bool add(struct walk *walk, struct tree *tree, const struct stack *stack)
{
	struct tree_frame path[DEPTH_MOST];
	for (size_t i = 0; i < stack->depth; i++) {
		path[i] = walk->frames[stack->functions[i]];
	}
	path[0].kind = TREE_THREAD;
	uint64_t weight = 1 + 1000000 / (1 + draw(walk, 1000000));
	uint64_t before = cpu_ns();
	bool done = tree_add(tree, path, stack->depth, weight);
	walk->adding_ns += cpu_ns() - before;
	return done;
}

static size_t distinct(const struct tree *tree)
{
	size_t count, found = 0;
	const struct tree_node *nodes = tree_nodes(tree, &count);
	for (size_t i = 0; i < count; i++) {
		found += nodes[i].self > 0;
	}
	return found;
}

static long resident_kib(void)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_maxrss;
}

static bool save(const struct buffer *out, const char *path)
{
	FILE *file = fopen(path, "wb");
	bool done = file != NULL && fwrite(out->data, 1, out->len, file) == out->len;
	return file != NULL && fclose(file) == 0 && done;
}

static bool measure(struct walk *walk, struct strings *names, size_t stacks, const char *path)
{
	const struct svg_options options = {
		.title = "bench-picture", .subtitle = "a random walk", .unit = "samples"};
	struct tree *tree = tree_create(names);
	struct buffer out = {0};
	long before_kib = resident_kib();
	bool done = tree != NULL;
	for (size_t i = 0; i < stacks && done; i++) {
		done = add(walk, tree, next_stack(walk));
	}
	uint64_t begun = cpu_ns();
	done = done && tree_finish(tree);
	uint64_t finished = cpu_ns();
	done = done && svg_write(&out, tree, &options);
	uint64_t written = cpu_ns();
	if (done) {
		size_t nodes;
		tree_nodes(tree, &nodes);
		printf("%zu stacks, %zu nodes: tree %.2f + %.2f s, picture %.2f s of CPU, %.2f MB; %.1f "
			   "bytes of memory a node\n",
			distinct(tree), nodes, (double)walk->adding_ns / 1e9, (double)(finished - begun) / 1e9,
			(double)(written - finished) / 1e9, (double)out.len / 1e6,
			(double)(resident_kib() - before_kib) * 1024 / (double)nodes);
	}
	done = done && (path == NULL || save(&out, path));
	buffer_finish(&out);
	tree_destroy(tree);
	return done;
}

int main(int argc, char **argv)
{
	size_t stacks = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	if (stacks == 0) {
		fprintf(stderr, "usage: bench-picture STACKS [FILE.svg]\n");
		return 2;
	}
	struct walk *walk = calloc(1, sizeof(*walk));
	struct strings *names = strings_create();
	walk->seed = 88172645463325252u;
	name_functions(walk, names);
	for (size_t i = 0; i < POOL; i++) {
		size_t depth = DEPTH_LEAST + draw(walk, DEPTH_MOST - DEPTH_LEAST + 1);
		walk_on(walk, &walk->pool[i], 0, depth);
	}
	bool done = measure(walk, names, stacks, argc > 2 ? argv[2] : NULL);
	strings_destroy(names);
	free(walk);
	return done ? 0 : 1;
}
