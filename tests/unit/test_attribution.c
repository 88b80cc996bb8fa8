#include "analyzer/tree/attribution.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/recorded.h"

enum {
	TEXT_CPU = 1,
	TEXT_NAME,
	TEXT_CHILD,
	TEXT_FIRST,
	TEXT_SECOND,
	TEXT_LIBRARY,
	TEXT_ANONYMOUS,
	TEXT_HEAP,
	TEXT_MEMFD
};
enum { IMAGE_FIRST = 1, IMAGE_SECOND, IMAGE_LIBRARY, IMAGE_ANONYMOUS, IMAGE_HEAP, IMAGE_MEMFD };

struct fixture {
	struct recorded journal;
	struct strings *strings;
	struct model *model;
	struct symbols *symbols;
	struct attribution *attribution;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	struct recorded *journal = &fixture->journal;

	fixture->strings = strings_create();
	recorded_begin(journal);
	recorded_metric(journal, 1, TEXT_CPU, 1000);
	recorded_text(journal, TEXT_NAME, "name");
	recorded_text(journal, TEXT_CHILD, "child");
	recorded_text(journal, TEXT_FIRST, "/bin/first");
	recorded_text(journal, TEXT_SECOND, "/bin/second");
	recorded_text(journal, TEXT_LIBRARY, "/lib/library.so");
	recorded_text(journal, TEXT_ANONYMOUS, "//anon");
	recorded_text(journal, TEXT_HEAP, "[heap]");
	recorded_text(journal, TEXT_MEMFD, "/memfd:doublemapper");
	recorded_image(journal, IMAGE_FIRST, JOURNAL_IMAGE_ELF, TEXT_FIRST);
	recorded_image(journal, IMAGE_SECOND, JOURNAL_IMAGE_ELF, TEXT_SECOND);
	recorded_image(journal, IMAGE_LIBRARY, JOURNAL_IMAGE_ELF, TEXT_LIBRARY);
	recorded_image(journal, IMAGE_ANONYMOUS, JOURNAL_IMAGE_ANONYMOUS, TEXT_ANONYMOUS);
	recorded_image(journal, IMAGE_HEAP, JOURNAL_IMAGE_UNKNOWN, TEXT_HEAP);
	recorded_image(journal, IMAGE_MEMFD, JOURNAL_IMAGE_ANONYMOUS, TEXT_MEMFD);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	attribution_destroy(fixture->attribution);
	symbols_destroy(fixture->symbols);
	model_destroy(fixture->model);
	strings_destroy(fixture->strings);
	recorded_finish(&fixture->journal);
	free(fixture);
	return 0;
}

/* A process whose only thread has its number. */
static void add_process(
	struct fixture *fixture, uint64_t pid, uint64_t name, uint64_t executable, bool is_exec)
{
	const struct journal_process process = {1500, pid, 1, name, executable, is_exec, 0};

	recorded_add(
		&fixture->journal, &(struct journal_record){.type = JOURNAL_PROCESS, .process = process});
	if (!is_exec) {
		recorded_thread(&fixture->journal, pid, pid, name);
	}
}

/* Image number i is mapped at i << 16. */
static void map(struct fixture *fixture, uint64_t pid, uint64_t image)
{
	recorded_map(&fixture->journal, pid, image << 16, 0x1000, 0, image);
}

/* One sample in each image, in one stack whose leaf is in the last of them. */
static void sample(
	struct fixture *fixture, uint64_t pid, uint64_t stack, const uint64_t *images, size_t count)
{
	struct recorded_frame frames[8];

	for (size_t i = 0; i < count; i++) {
		frames[count - 1 - i] =
			(struct recorded_frame){images[i] << 16 | 0x10, JOURNAL_FRAME_EXACT};
	}
	recorded_stack(&fixture->journal, stack, pid, JOURNAL_STACK_COMPLETE, frames, count);
	recorded_samples(&fixture->journal, pid, stack, 1);
}

static void attribute(struct fixture *fixture)
{
	recorded_seal(&fixture->journal);
	fixture->model = model_create(
		fixture->strings, fixture->journal.bytes.data, fixture->journal.bytes.len, NULL);
	fixture->symbols = symbols_create(fixture->model, fixture->strings, false);
	fixture->attribution =
		attribution_create(fixture->model, fixture->symbols, fixture->strings, NULL, NULL);
	assert_non_null(fixture->attribution);
}

/* Of the first frame with this name below that thread. */
static int kind_of(const struct fixture *fixture, const char *thread, const char *name)
{
	size_t count;
	const struct tree_node *nodes = tree_nodes(fixture->attribution->tree, &count);
	const char *below = "";

	for (size_t i = 1; i < count; i++) {
		const char *text = strings_text(fixture->strings, nodes[i].name).data;

		below = nodes[i].depth == 1 ? text : below;
		if (strcmp(text, name) == 0 && strcmp(below, thread) == 0) {
			return nodes[i].kind;
		}
	}
	fail_msg("no frame %s below %s", name, thread);
	return -1;
}

static void tells_the_program_from_libraries_and_code_without_a_file(void **state)
{
	struct fixture *fixture = *state;
	static const uint64_t images[] = {
		IMAGE_FIRST, IMAGE_LIBRARY, IMAGE_ANONYMOUS, IMAGE_HEAP, IMAGE_MEMFD, 9};

	add_process(fixture, 10, TEXT_NAME, 0, false);
	map(fixture, 10, IMAGE_ANONYMOUS); /* what comes first without a file is no program */
	map(fixture, 10, IMAGE_FIRST);
	map(fixture, 10, IMAGE_LIBRARY);
	map(fixture, 10, IMAGE_HEAP);
	map(fixture, 10, IMAGE_MEMFD);
	sample(fixture, 10, 1, images, 6);
	attribute(fixture);
	assert_int_equal(kind_of(fixture, "name", "name"), TREE_THREAD);
	assert_int_equal(kind_of(fixture, "name", "[first+0x10]"), TREE_PROGRAM);
	assert_int_equal(kind_of(fixture, "name", "[library.so+0x10]"), TREE_LIBRARY);
	assert_int_equal(kind_of(fixture, "name", "[anon+0x10]"), TREE_JIT);
	assert_int_equal(kind_of(fixture, "name", "[heap+0x10]"), TREE_JIT);
	assert_int_equal(kind_of(fixture, "name", "[memfd:doublemapper+0x10]"), TREE_JIT);
	assert_int_equal(kind_of(fixture, "name", "[unknown]"), TREE_UNKNOWN);
}

static void believes_the_journal_about_the_executable(void **state)
{
	struct fixture *fixture = *state;
	static const uint64_t images[] = {IMAGE_FIRST, IMAGE_LIBRARY};

	add_process(fixture, 10, TEXT_NAME, TEXT_FIRST, false);
	map(fixture, 10, IMAGE_LIBRARY);
	map(fixture, 10, IMAGE_FIRST);
	sample(fixture, 10, 1, images, 2);
	attribute(fixture);
	assert_int_equal(kind_of(fixture, "name", "[first+0x10]"), TREE_PROGRAM);
	assert_int_equal(kind_of(fixture, "name", "[library.so+0x10]"), TREE_LIBRARY);
}

static void knows_both_programs_of_an_exec_and_the_other_process_s_as_a_library(void **state)
{
	struct fixture *fixture = *state;
	static const uint64_t first = IMAGE_FIRST, second = IMAGE_SECOND;

	add_process(fixture, 10, TEXT_NAME, 0, false);
	map(fixture, 10, IMAGE_FIRST);
	sample(fixture, 10, 1, &first, 1);
	add_process(fixture, 11, TEXT_CHILD, 0, false);
	map(fixture, 11, IMAGE_LIBRARY);
	map(fixture, 11, IMAGE_FIRST);
	sample(fixture, 11, 2, &first, 1);
	add_process(fixture, 10, TEXT_NAME, 0, true);
	map(fixture, 10, IMAGE_SECOND);
	sample(fixture, 10, 3, &second, 1);
	attribute(fixture);
	assert_int_equal(kind_of(fixture, "name", "[first+0x10]"), TREE_PROGRAM);
	assert_int_equal(kind_of(fixture, "name", "[second+0x10]"), TREE_PROGRAM);
	assert_int_equal(kind_of(fixture, "child", "[first+0x10]"), TREE_LIBRARY);
}

static void a_forked_child_runs_its_parent_s_program(void **state)
{
	struct fixture *fixture = *state;
	static const uint64_t first = IMAGE_FIRST;
	const struct journal_process child = {1500, 11, 10, TEXT_CHILD, 0, 0, 1};

	add_process(fixture, 10, TEXT_NAME, 0, false);
	map(fixture, 10, IMAGE_FIRST);
	recorded_add(
		&fixture->journal, &(struct journal_record){.type = JOURNAL_PROCESS, .process = child});
	recorded_thread(&fixture->journal, 11, 11, TEXT_CHILD);
	map(fixture, 11, IMAGE_LIBRARY);
	sample(fixture, 11, 1, &first, 1);
	attribute(fixture);
	assert_int_equal(kind_of(fixture, "child", "[first+0x10]"), TREE_PROGRAM);
}

static void an_exec_that_names_no_executable_has_its_first_file(void **state)
{
	struct fixture *fixture = *state;
	static const uint64_t second = IMAGE_SECOND;

	add_process(fixture, 10, TEXT_NAME, TEXT_FIRST, false);
	map(fixture, 10, IMAGE_FIRST);
	add_process(fixture, 10, TEXT_NAME, 0, true);
	map(fixture, 10, IMAGE_SECOND);
	map(fixture, 10, IMAGE_LIBRARY);
	sample(fixture, 10, 1, &second, 1);
	attribute(fixture);
	assert_int_equal(kind_of(fixture, "name", "[second+0x10]"), TREE_PROGRAM);
	assert_int_equal(fixture->model->processes.items[0].executable, 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(tells_the_program_from_libraries_and_code_without_a_file),
		CASE(believes_the_journal_about_the_executable),
		CASE(knows_both_programs_of_an_exec_and_the_other_process_s_as_a_library),
		CASE(an_exec_that_names_no_executable_has_its_first_file),
		CASE(a_forked_child_runs_its_parent_s_program),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
