#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/verifying.h"
#include "protocol/clock.h"
#include "support/entries.h"

/* A folder that is PATH, and one in which private folders are made. */
static char root[64], tools[96], runtime[96];
static int document; /* without any name */
static const char *const arguments[] = {"-f", VERIFYING_DOCUMENT, "-o", VERIFYING_OUTPUT, NULL};
static const struct verifying_reader reader = {"reader", "the-package", arguments, "<?xml", NULL};

static int set_up(void **state)
{
	(void)state;
	strcpy(root, "/tmp/profd-verifying-XXXXXX");
	assert_non_null(mkdtemp(root));
	snprintf(tools, sizeof(tools), "%s/tools", root);
	snprintf(runtime, sizeof(runtime), "%s/run", root);
	assert_int_equal(mkdir(tools, 0700) | mkdir(runtime, 0700), 0);
	document = open(root, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	assert_true(document >= 0 && write(document, "what it says\n", 13) == 13);
	setenv("PATH", tools, 1);
	setenv("XDG_RUNTIME_DIR", runtime, 1);
	return 0;
}

static int tear_down(void **state)
{
	char path[128];
	(void)state;
	close(document);
	snprintf(path, sizeof(path), "%s/reader", tools);
	unlink(path);
	snprintf(path, sizeof(path), "%s/pid", root);
	unlink(path);
	return rmdir(tools) | rmdir(runtime) | rmdir(root);
}

static void write_reader(const char *script)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/reader", tools);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file, "#!/bin/sh\n%s\n", script);
	assert_int_equal(fclose(file) | chmod(path, 0700), 0);
}

struct result {
	struct verdict verdict;
	int count;
};

static void take(void *context, const struct verdict *verdict)
{
	struct result *result = context;
	result->verdict = *verdict;
	result->count++;
}

static struct verifying *begin(
	uv_loop_t *loop, unsigned limit_ms, struct result *result, struct verdict *verdict)
{
	struct verifying_options options = {.loop = loop,
		.reader = &reader,
		.document_fd = document,
		.name = "the-document",
		.limit_ms = limit_ms,
		.done = take,
		.context = result};
	return verifying_start(&options, verdict);
}

/* Once told, and nothing is left: no child, no folder, no handle. */
static void run(unsigned limit_ms, struct result *result)
{
	uv_loop_t loop;
	struct verdict verdict;
	assert_int_equal(uv_loop_init(&loop), 0);
	assert_non_null(begin(&loop, limit_ms, result, &verdict));
	assert_int_equal(result->count, 0);
	uv_run(&loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&loop), 0);
	assert_int_equal(result->count, 1);
	assert_int_equal(entries_count(runtime), 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void what_a_reader_makes_of_a_document_is_believed(void **state)
{
	struct result good = {0}, bad = {0};
	(void)state;
	write_reader(
		"[ \"$2\" = the-document ] && read line < \"$2\" && [ \"$line\" = 'what it says' ] && "
		"printf '<?xml' > \"$4\"");
	run(5000, &good);
	assert_int_equal(good.verdict.is, VERDICT_GOOD);
	assert_string_equal(good.verdict.why, "");
	write_reader("echo first; printf 'the last'; exit 7");
	run(5000, &bad);
	assert_int_equal(bad.verdict.is, VERDICT_BROKEN);
	assert_string_equal(bad.verdict.why, "reader ended with status 7: the last");
}

/* Of what it started: gone, or a zombie that its new parent has not looked at yet. */
static void assert_dies(pid_t pid)
{
	char path[64], line[256] = "";
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	for (int i = 0; i < 500; i++) {
		FILE *file = fopen(path, "r");
		bool is_alive = file != NULL && fgets(line, sizeof(line), file) != NULL &&
						strstr(line, ") Z ") == NULL && strstr(line, ") X ") == NULL;
		if (file != NULL) {
			fclose(file);
		}
		if (!is_alive) {
			return;
		}
		usleep(10000);
	}
	fail_msg("process %d lives on: %s", (int)pid, line);
}

static void one_that_hangs_is_ended_with_all_that_it_started(void **state)
{
	struct result result = {0};
	char script[256], path[128];
	int child = 0;
	(void)state;
	snprintf(path, sizeof(path), "%s/pid", root);
	snprintf(script, sizeof(script), "PATH=/usr/bin:/bin\nsleep 300 &\necho $! > %s\nwait", path);
	write_reader(script);
	uint64_t began_ns = clock_monotonic_ns();
	run(300, &result);
	uint64_t took_ms = (clock_monotonic_ns() - began_ns) / 1000000;
	assert_in_range(took_ms, 299, 5000);
	assert_int_equal(result.verdict.is, VERDICT_UNREAD);
	assert_non_null(strstr(result.verdict.why, "it took longer than 300 ms"));
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%d", &child), 1);
	fclose(file);
	assert_dies(child);
}

static void what_a_limit_ends_is_not_called_broken(void **state)
{
	(void)state;
	static const struct {
		const char *script, *why;
	} cases[] = {{"kill -XCPU $$", "CPU time"}, {"kill -XFSZ $$", "more than it may"},
		{"kill -KILL $$", "killed"}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct result result = {0};
		write_reader(cases[i].script);
		run(5000, &result);
		assert_int_equal(result.verdict.is, VERDICT_UNREAD);
		assert_non_null(strstr(result.verdict.why, cases[i].why));
	}
}

/* One that takes minutes. */
static struct verifying *begin_long(uv_loop_t *loop, struct result *result)
{
	struct verdict verdict;
	write_reader("exec /bin/sleep 300");
	assert_int_equal(uv_loop_init(loop), 0);
	struct verifying *verifying = begin(loop, 60000, result, &verdict);
	assert_non_null(verifying);
	return verifying;
}

static void a_cancelled_one_says_why(void **state)
{
	struct result result = {0};
	uv_loop_t loop;
	(void)state;
	struct verifying *verifying = begin_long(&loop, &result);
	verifying_cancel(verifying, "the test wants it");
	verifying_cancel(verifying, "a second reason");
	assert_int_equal(result.count, 0);
	uv_run(&loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&loop), 0);
	assert_int_equal(result.verdict.is, VERDICT_UNREAD);
	assert_non_null(strstr(result.verdict.why, "the test wants it"));
	assert_int_equal(entries_count(runtime), 0);
}

static void an_abandoned_one_leaves_nothing_at_once(void **state)
{
	struct result result = {0};
	uv_loop_t loop;
	(void)state;
	struct verifying *verifying = begin_long(&loop, &result);
	assert_int_equal(entries_count(runtime), 1);
	verifying_abandon(verifying);
	assert_int_equal(entries_count(runtime), 0);
	uv_run(&loop, UV_RUN_DEFAULT); /* its child has ended, or this would not */
	assert_int_equal(uv_loop_close(&loop), 0);
	assert_int_equal(result.verdict.is, VERDICT_UNREAD);
}

static void one_that_is_not_there_is_told_with_its_package(void **state)
{
	struct result result = {0};
	struct verdict verdict;
	char path[256];
	uv_loop_t loop;
	(void)state;
	assert_int_equal(uv_loop_init(&loop), 0);
	assert_null(begin(&loop, 5000, &result, &verdict));
	assert_int_equal(verdict.is, VERDICT_UNREAD);
	assert_non_null(strstr(verdict.why, "reader is not in profd's PATH"));
	assert_non_null(strstr(verdict.hint, "the-package"));
	assert_int_equal(uv_loop_close(&loop), 0);
	assert_int_equal(result.count, 0);
	/* Only a file that may be run, in an absolute folder. */
	write_reader("");
	assert_true(verifying_find("reader", path, sizeof(path)));
	setenv("PATH", "", 1);
	assert_false(verifying_find("reader", path, sizeof(path)));
	assert_int_equal(chdir(tools), 0);
	setenv("PATH", ":.:relative", 1);
	assert_false(verifying_find("reader", path, sizeof(path)));
	assert_int_equal(chdir("/"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			what_a_reader_makes_of_a_document_is_believed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			one_that_hangs_is_ended_with_all_that_it_started, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_a_limit_ends_is_not_called_broken, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_cancelled_one_says_why, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_abandoned_one_leaves_nothing_at_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			one_that_is_not_there_is_told_with_its_package, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
