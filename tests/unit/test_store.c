#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "store/capture_id.h"
#include "store/store.h"
#include "support/entries.h"

struct fixture {
	char path[64], data[96], output[96];
	struct store *store;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	struct error err = {0};
	snprintf(fixture->path, sizeof(fixture->path), "/tmp/test-store-XXXXXX");
	assert_non_null(mkdtemp(fixture->path));
	snprintf(fixture->data, sizeof(fixture->data), "%s/some/data", fixture->path);
	snprintf(fixture->output, sizeof(fixture->output), "%s/output", fixture->path);
	assert_int_equal(mkdir(fixture->output, 0755), 0);
	fixture->store = store_open(fixture->data, &err);
	assert_non_null(fixture->store);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	char command[128];
	store_close(fixture->store);
	snprintf(command, sizeof(command), "rm -rf %s", fixture->path);
	assert_int_equal(system(command), 0);
	free(fixture);
	return 0;
}

static void reopen(struct fixture *fixture)
{
	struct error err = {0};
	store_close(fixture->store);
	fixture->store = store_open(fixture->data, &err);
	assert_non_null(fixture->store);
}

/* A capture with a record in that state; its id goes to id. */
static void make(struct fixture *fixture, const char *output_dir, const char *state, char id[32])
{
	struct error err = {0};
	struct store_folder folder;
	assert_true(store_create(fixture->store, output_dir, &folder, &err));
	json_t *record = json_pack(
		"{s:s, s:s, s:s}", "capture_id", folder.id, "state", state, "folder", folder.path);
	assert_true(store_put(fixture->store, &folder, record, &err));
	json_decref(record);
	strcpy(id, folder.id);
	store_folder_close(&folder);
}

static void write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static const char *state_of(struct fixture *fixture, const char *id)
{
	return json_string_value(json_object_get(store_get(fixture->store, id), "state"));
}

static void an_id_says_when_it_was_made(void **state)
{
	(void)state;
	char id[CAPTURE_ID_BYTES];
	uint64_t back;
	/* 2026-11-30 03:15:04 UTC, by date -u -d @1796008504 */
	capture_id_make(UINT64_C(1796008504123456), id);
	assert_memory_equal(id, "20261130-031504-1e240", 21); /* 0x1e240 is 123456 */
	assert_int_equal(strlen(id), 24);
	assert_true(capture_id_parse(id, &back));
	assert_int_equal(back, UINT64_C(1796008504123456));
}

static void other_names_are_no_ids(void **state)
{
	(void)state;
	uint64_t when;
	static const char *const names[] = {"", "a", "20261130-031504-1a2b3c4",
		"20261130-031504-1a2b3c4dd", "20261130_031504-1a2b3c4d", "20261130-031504-1A2B3C4D",
		"20261130-031504-ffffffff", "20261330-031504-1a2b3c4d", "../61130-031504-1a2b3c4d",
		"2026113 -031504-1a2b3c4d"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_false(capture_id_parse(names[i], &when));
	}
}

static void ids_rise_however_fast_they_are_made(void **state)
{
	struct fixture *fixture = *state;
	char last[32] = "", id[32];
	for (int i = 0; i < 50; i++) {
		make(fixture, NULL, "finished", id);
		assert_true(strcmp(id, last) > 0);
		strcpy(last, id);
	}
	assert_int_equal(store_count(fixture->store), 50);
}

static void ids_rise_over_a_restart_with_a_clock_that_was_set_back(void **state)
{
	struct fixture *fixture = *state;
	char path[256], future[CAPTURE_ID_BYTES], text[128], id[32];
	capture_id_make((uint64_t)(time(NULL) + 3600) * 1000000, future);
	snprintf(path, sizeof(path), "%s/captures/%s", fixture->data, future);
	assert_int_equal(mkdir(path, 0700), 0);
	strcat(path, "/record.json");
	snprintf(text, sizeof(text), "{\"capture_id\":\"%s\",\"state\":\"finished\"}", future);
	write_text(path, text);
	reopen(fixture);
	make(fixture, NULL, "finished", id);
	assert_true(strcmp(id, future) > 0);
}

static void folders_are_closed_to_others(void **state)
{
	struct fixture *fixture = *state;
	char id[32], path[256];
	struct stat status;
	make(fixture, fixture->output, "finished", id);
	snprintf(path, sizeof(path), "%s/captures/%s/record.json", fixture->data, id);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0600);
	*strrchr(path, '/') = '\0';
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0700);
	snprintf(path, sizeof(path), "%s/%s", fixture->output, id);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0700);
	assert_int_equal(stat(fixture->data, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0700);
}

static void a_record_survives_a_restart(void **state)
{
	struct fixture *fixture = *state;
	char id[32], other[32];
	make(fixture, NULL, "finished", id);
	make(fixture, fixture->output, "failed", other);
	reopen(fixture);
	assert_int_equal(store_count(fixture->store), 2);
	assert_string_equal(state_of(fixture, id), "finished");
	assert_string_equal(state_of(fixture, other), "failed");
	assert_ptr_equal(store_next(fixture->store, ""), store_get(fixture->store, id));
	assert_ptr_equal(store_next(fixture->store, id), store_get(fixture->store, other));
	assert_null(store_next(fixture->store, other));
	assert_null(store_get(fixture->store, "20261130-031504-1a2b3c4d"));
}

static void a_capture_that_had_not_ended_waits_for_its_end(void **state)
{
	struct fixture *fixture = *state;
	static const char *const states[] = {"armed", "sampling", "symbolizing", "writing"};
	char ids[4][32];
	struct store_entry entry = {0};
	for (size_t i = 0; i < 4; i++) {
		make(fixture, i % 2 == 0 ? NULL : fixture->output, states[i], ids[i]);
	}
	for (int round = 0; round < 2; round++) {
		reopen(fixture);
		entry.id[0] = '\0';
		for (size_t i = 0; i < 4; i++) {
			assert_string_equal(state_of(fixture, ids[i]), "symbolizing");
			assert_true(store_look(fixture->store, entry.id, &entry));
			assert_string_equal(entry.id, ids[i]);
			assert_false(entry.has_ended);
		}
		assert_false(store_look(fixture->store, entry.id, &entry));
		assert_null(store_problem(fixture->store, 0));
	}
}

static void a_journal_without_a_record_is_a_capture(void **state)
{
	struct fixture *fixture = *state;
	struct error err = {0};
	struct store_folder folder;
	char path[256], id[32];
	assert_true(store_create(fixture->store, NULL, &folder, &err));
	close(openat(folder.fd, "capture.journal", O_CREAT | O_WRONLY, 0600));
	strcpy(id, folder.id);
	store_folder_close(&folder);
	reopen(fixture);
	assert_string_equal(state_of(fixture, id), "symbolizing");
	assert_null(store_problem(fixture->store, 0));
	/* A record that a crash of the machine left without content. */
	snprintf(path, sizeof(path), "%s/captures/%s/record.json", fixture->data, id);
	write_text(path, "");
	reopen(fixture);
	assert_string_equal(state_of(fixture, id), "symbolizing");
	assert_non_null(store_problem(fixture->store, 0));
}

static void broken_records_are_skipped_and_told(void **state)
{
	struct fixture *fixture = *state;
	static const char *const texts[] = {"", "{", "[]", "7",
		"{\"capture_id\":7,\"state\":\"finished\"}",
		"{\"capture_id\":\"20261130-031504-00000001\",\"state\":\"finished\"}",
		"{\"state\":\"finished\"}", "{\"capture_id\":\"%s\"}",
		"{\"capture_id\":\"%s\",\"state\":\"x\"}", "{\"capture_id\":\"%s\",\"state\":[]}",
		"\xff\xfe"};
	size_t count = sizeof(texts) / sizeof(texts[0]);
	char good[32], id[32], path[256], text[256];
	for (size_t i = 0; i < count; i++) {
		make(fixture, NULL, "finished", id);
		snprintf(path, sizeof(path), "%s/captures/%s/record.json", fixture->data, id);
		const char *hole = strstr(texts[i], "%s");
		if (hole != NULL) {
			snprintf(
				text, sizeof(text), "%.*s%s%s", (int)(hole - texts[i]), texts[i], id, hole + 2);
		}
		write_text(path, hole != NULL ? text : texts[i]);
	}
	make(fixture, NULL, "finished", good);
	reopen(fixture);
	assert_int_equal(store_count(fixture->store), 1);
	assert_string_equal(state_of(fixture, good), "finished");
	for (size_t i = 0; i < count; i++) {
		assert_non_null(store_problem(fixture->store, i));
	}
	assert_null(store_problem(fixture->store, count));
}

static void a_record_that_nests_or_grows_without_end_is_skipped(void **state)
{
	struct fixture *fixture = *state;
	char id[32], path[256];
	make(fixture, NULL, "finished", id);
	snprintf(path, sizeof(path), "%s/captures/%s/record.json", fixture->data, id);
	char *text = malloc(2000001);
	memset(text, '[', 2000000);
	text[200000] = '\0';
	write_text(path, text);
	reopen(fixture);
	assert_int_equal(store_count(fixture->store), 0);
	text[200000] = '[';
	text[2000000] = '\0';
	write_text(path, text);
	reopen(fixture);
	assert_int_equal(store_count(fixture->store), 0);
	assert_non_null(store_problem(fixture->store, 0));
	free(text);
}

static void a_record_that_is_a_link_or_a_fifo_is_skipped(void **state)
{
	struct fixture *fixture = *state;
	char id[32], path[256];
	make(fixture, NULL, "finished", id);
	snprintf(path, sizeof(path), "%s/captures/%s/record.json", fixture->data, id);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	reopen(fixture);
	assert_int_equal(store_count(fixture->store), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("/etc/hostname", path), 0);
	reopen(fixture);
	assert_int_equal(store_count(fixture->store), 0);
}

static void an_unfinished_record_cannot_name_a_foreign_folder(void **state)
{
	struct fixture *fixture = *state;
	struct error err = {0};
	struct store_folder folder;
	char id[32], path[256];
	make(fixture, NULL, "sampling", id);
	snprintf(path, sizeof(path), "%s/%s", fixture->path, id);
	const char *const wrong[] = {
		fixture->output, "relative", "", "/", "/etc", "/nonexistent/x", path};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_true(store_reopen(fixture->store, id, wrong[i], &folder, &err));
		assert_int_equal(folder.fd, -1);
		assert_true(folder.record_fd >= 0);
		store_folder_close(&folder);
	}
	/* A link that bears the name. */
	assert_int_equal(symlink(fixture->output, path), 0);
	assert_true(store_reopen(fixture->store, id, path, &folder, &err));
	assert_int_equal(folder.fd, -1);
	store_folder_close(&folder);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_true(store_reopen(fixture->store, id, path, &folder, &err));
	assert_true(folder.fd >= 0 && folder.is_elsewhere);
	store_folder_close(&folder);
}

static void foreign_files_in_the_data_folder_are_left_alone(void **state)
{
	struct fixture *fixture = *state;
	char path[256];
	snprintf(path, sizeof(path), "%s/captures/notes.txt", fixture->data);
	write_text(path, "mine");
	reopen(fixture);
	assert_int_equal(access(path, F_OK), 0);
	assert_null(store_problem(fixture->store, 0));
}

static void a_folder_without_a_record_goes_when_it_is_empty(void **state)
{
	struct fixture *fixture = *state;
	struct error err = {0};
	struct store_folder folder;
	char path[256];
	assert_true(store_create(fixture->store, NULL, &folder, &err));
	snprintf(path, sizeof(path), "%s/captures", fixture->data);
	assert_int_equal(entries_count(path), 1);
	store_folder_close(&folder);
	reopen(fixture);
	assert_int_equal(entries_count(path), 0);
}

static void wrong_output_folders_are_named_and_leave_nothing(void **state)
{
	struct fixture *fixture = *state;
	struct error err = {0};
	struct store_folder folder;
	char path[256];
	size_t descriptors = entries_count("/proc/self/fd");
	assert_false(store_create(fixture->store, "output", &folder, &err));
	assert_int_equal(err.code, ERROR_BAD_PARAMS);
	snprintf(path, sizeof(path), "%s/missing", fixture->path);
	assert_false(store_create(fixture->store, path, &folder, &err));
	assert_int_equal(err.code, ERROR_BAD_PARAMS);
	assert_non_null(strstr(err.message, path));
	assert_non_null(strstr(err.hint, "mkdir"));
	snprintf(path, sizeof(path), "%s/file", fixture->path);
	write_text(path, "");
	assert_false(store_create(fixture->store, path, &folder, &err));
	assert_non_null(strstr(err.message, "is not a folder"));
	/* Where nobody may make a folder, root included. */
	assert_false(store_create(fixture->store, "/proc", &folder, &err));
	assert_non_null(strstr(err.message, "/proc"));
	char longest[4096];
	memset(longest, 'a', sizeof(longest));
	longest[0] = '/';
	longest[sizeof(longest) - 1] = '\0';
	assert_false(store_create(fixture->store, longest, &folder, &err));
	snprintf(path, sizeof(path), "%s/captures", fixture->data);
	assert_int_equal(entries_count(path), 0);
	assert_int_equal(entries_count("/proc/self/fd"), descriptors);
	assert_int_equal(store_count(fixture->store), 0);
}

static void an_output_folder_that_cannot_be_written_is_named(void **state)
{
	struct fixture *fixture = *state;
	struct error err = {0};
	struct store_folder folder;
	/* Root may write anywhere, so it is somebody else for a moment. */
	bool is_root = geteuid() == 0;
	if (is_root) {
		assert_int_equal(chown(fixture->path, 65534, 65534), 0);
		assert_int_equal(chown(fixture->output, 65534, 65534), 0);
	}
	assert_int_equal(chmod(fixture->output, 0500), 0);
	assert_int_equal(is_root ? seteuid(65534) : 0, 0);
	bool made = store_create(fixture->store, fixture->output, &folder, &err);
	assert_int_equal(is_root ? seteuid(0) : 0, 0);
	assert_false(made);
	assert_int_equal(err.code, ERROR_NOT_PERMITTED);
	assert_non_null(strstr(err.message, fixture->output));
	assert_non_null(strstr(err.hint, "chmod"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		cmocka_unit_test(an_id_says_when_it_was_made),
		cmocka_unit_test(other_names_are_no_ids),
		TEST(ids_rise_however_fast_they_are_made),
		TEST(ids_rise_over_a_restart_with_a_clock_that_was_set_back),
		TEST(folders_are_closed_to_others),
		TEST(a_record_survives_a_restart),
		TEST(a_capture_that_had_not_ended_waits_for_its_end),
		TEST(a_journal_without_a_record_is_a_capture),
		TEST(broken_records_are_skipped_and_told),
		TEST(a_record_that_nests_or_grows_without_end_is_skipped),
		TEST(a_record_that_is_a_link_or_a_fifo_is_skipped),
		TEST(an_unfinished_record_cannot_name_a_foreign_folder),
		TEST(foreign_files_in_the_data_folder_are_left_alone),
		TEST(a_folder_without_a_record_goes_when_it_is_empty),
		TEST(wrong_output_folders_are_named_and_leave_nothing),
		TEST(an_output_folder_that_cannot_be_written_is_named),
	};
	return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
