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
#include <unistd.h>

#include "support/store_stage.h"
#include "support/entries.h"

/* The whole way of a deletion. left: what must be told of a folder that stays, or NULL. */
static bool delete_one(
	struct store_stage *stage, const char *id, const char *left, struct error *err)
{
	char *told = NULL;
	struct store_removal *removal = store_removal_begin(stage->store, id, err);
	if (removal == NULL) {
		return false;
	}
	assert_null(store_get(stage->store, id));
	store_removal_run(removal);
	bool ok = store_removal_end(stage->store, removal, &told, err);
	if (left != NULL) {
		assert_non_null(told);
		assert_string_equal(told, left);
	} else {
		assert_null(told);
	}
	free(told);
	return ok;
}

static size_t count_captures(const struct store_stage *stage)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/captures", stage->data);
	return entries_count(path);
}

static void a_deleted_capture_leaves_nothing(void **state)
{
	struct store_stage *stage = *state;
	struct error err = {0};
	char id[32], other[32], path[256];
	static const char *const names[] = {"capture.folded", "capture.svg", "capture.json",
		"capture.symbols", ".capture.svg.tmp", "record.json.tmp"};
	for (int elsewhere = 0; elsewhere < 2; elsewhere++) {
		store_stage_make(stage, elsewhere ? stage->output : NULL, "finished", id, path);
		store_stage_make(stage, elsewhere ? stage->output : NULL, "failed", other, path);
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			store_stage_write(path, names[i], "x");
		}
		assert_true(delete_one(stage, other, NULL, &err));
		assert_int_equal(access(path, F_OK), -1);
		assert_false(delete_one(stage, other, NULL, &err));
		assert_int_equal(err.code, ERROR_CAPTURE_NOT_FOUND);
		assert_non_null(store_get(stage->store, id));
		assert_true(delete_one(stage, id, NULL, &err));
		assert_int_equal(store_count(stage->store), 0);
		assert_int_equal(count_captures(stage), 0);
		assert_int_equal(entries_count(stage->output), 0);
	}
}

static void what_is_not_ours_stays_with_its_folder(void **state)
{
	struct store_stage *stage = *state;
	struct error err = {0};
	char id[32], path[256], folder[512];
	for (int elsewhere = 0; elsewhere < 2; elsewhere++) {
		store_stage_make(stage, elsewhere ? stage->output : NULL, "finished", id, path);
		store_stage_write(path, "notes.txt", "mine");
		store_stage_write(path, "capture.journal.bak", "mine");
		/* A name of ours that is a folder was not made by us. */
		snprintf(folder, sizeof(folder), "%s/capture.svg", path);
		assert_int_equal(mkdir(folder, 0700), 0);
		assert_true(delete_one(stage, id, path, &err));
		assert_int_equal(entries_count(path), 3);
		assert_true(store_stage_exists(path, "notes.txt"));
		assert_int_equal(count_captures(stage), elsewhere ? 1 : 1);
		store_stage_reopen(stage);
		assert_int_equal(store_count(stage->store), 0);
		assert_null(store_problem(stage->store, 0));
		assert_int_equal(entries_count(path), 3);
	}
}

static void a_link_is_removed_and_what_it_leads_to_is_not(void **state)
{
	struct store_stage *stage = *state;
	struct error err = {0};
	char id[32], path[256], link[512], precious[512];
	store_stage_write(stage->path, "precious", "mine");
	snprintf(precious, sizeof(precious), "%s/precious", stage->path);
	store_stage_make(stage, stage->output, "finished", id, path);
	snprintf(link, sizeof(link), "%s/capture.folded", path);
	assert_int_equal(symlink(precious, link), 0);
	assert_true(delete_one(stage, id, NULL, &err));
	assert_true(store_stage_exists(stage->path, "precious"));
}

/* The folder of the artifacts has become something else since. */
static void what_took_the_folders_place_is_not_touched(void **state)
{
	struct store_stage *stage = *state;
	struct error err = {0};
	char id[32], path[256], moved[256];
	store_stage_make(stage, stage->output, "finished", id, path);
	snprintf(moved, sizeof(moved), "%s/moved", stage->path);
	assert_int_equal(rename(path, moved), 0);
	assert_int_equal(symlink(moved, path), 0);
	assert_true(delete_one(stage, id, path, &err));
	assert_true(store_stage_exists(moved, "capture.journal"));
	assert_int_equal(count_captures(stage), 0);

	store_stage_make(stage, stage->output, "finished", id, path);
	if (geteuid() == 0) {
		assert_int_equal(chown(path, 65534, 65534), 0);
		assert_true(delete_one(stage, id, path, &err));
		assert_true(store_stage_exists(path, "capture.journal"));
	}
}

static void a_folder_that_is_gone_already_is_no_obstacle(void **state)
{
	struct store_stage *stage = *state;
	struct error err = {0};
	char id[32], path[256], command[300];
	store_stage_make(stage, stage->output, "finished", id, path);
	snprintf(command, sizeof(command), "rm -r %s", path);
	assert_int_equal(system(command), 0);
	assert_true(delete_one(stage, id, NULL, &err));
	store_stage_make(stage, NULL, "finished", id, path);
	snprintf(command, sizeof(command), "rm -r %s", path);
	assert_int_equal(system(command), 0);
	assert_true(delete_one(stage, id, NULL, &err));
	assert_int_equal(count_captures(stage), 0);
}

/* Killed between the first and the last step. */
static void a_deletion_that_was_begun_is_known_at_the_next_start(void **state)
{
	struct store_stage *stage = *state;
	struct error err = {0};
	char id[32], path[256], own[256], from[512], to[512];
	for (int broken = 0; broken < 2; broken++) {
		store_stage_make(stage, broken ? NULL : stage->output, "finished", id, path);
		store_stage_record_path(stage, id, own);
		snprintf(from, sizeof(from), "%s/record.json", own);
		snprintf(to, sizeof(to), "%s/deleting.json", own);
		assert_int_equal(rename(from, to), 0);
		if (broken) {
			store_stage_write(own, "deleting.json", "{");
		}
		store_stage_reopen(stage);
		assert_null(store_get(stage->store, id));
		assert_int_equal(store_count(stage->store), 0);
		assert_string_equal(store_next_doomed(stage->store, ""), id);
		assert_true(delete_one(stage, id, NULL, &err));
		assert_null(store_next_doomed(stage->store, ""));
		assert_int_equal(count_captures(stage), 0);
		assert_int_equal(entries_count(stage->output), 0);
	}
}

static void what_cannot_be_begun_brings_the_capture_back(void **state)
{
	struct store_stage *stage = *state;
	struct error err = {0};
	char id[32], path[256], own[256];
	store_stage_make(stage, stage->output, "finished", id, path);
	store_stage_record_path(stage, id, own);
	/* Root may write anywhere, so it is somebody else for a moment. */
	bool is_root = geteuid() == 0;
	if (is_root) {
		char command[256];
		snprintf(command, sizeof(command), "chown -R 65534:65534 %s", stage->path);
		assert_int_equal(system(command), 0);
	}
	for (int where = 0; where < 2; where++) {
		assert_int_equal(chmod(where == 0 ? path : own, 0500), 0);
		assert_int_equal(is_root ? seteuid(65534) : 0, 0);
		bool deleted = delete_one(stage, id, NULL, &err);
		assert_int_equal(is_root ? seteuid(0) : 0, 0);
		assert_false(deleted);
		assert_int_equal(err.code, ERROR_NOT_PERMITTED);
		assert_non_null(store_get(stage->store, id));
		assert_true(store_stage_exists(path, "capture.journal"));
		assert_true(store_stage_exists(own, "record.json"));
		assert_int_equal(chmod(where == 0 ? path : own, 0700), 0);
	}
}

static void a_capture_that_nobody_was_told_of_is_deleted(void **state)
{
	struct store_stage *stage = *state;
	struct error err = {0};
	struct store_folder folder;
	/* Killed after the folder elsewhere was made, before the first record. */
	assert_true(store_create(stage->store, stage->output, &folder, &err));
	store_stage_write(folder.path, "capture.journal", "x");
	store_folder_close(&folder);
	store_stage_reopen(stage);
	assert_int_equal(store_count(stage->store), 0);
	assert_string_equal(store_next_doomed(stage->store, ""), folder.id);
	assert_true(delete_one(stage, folder.id, NULL, &err));
	assert_int_equal(entries_count(stage->output), 0);
	assert_int_equal(count_captures(stage), 0);
}

static void discarding_removes_both_folders(void **state)
{
	struct store_stage *stage = *state;
	struct error err = {0};
	struct store_folder folder;
	assert_true(store_create(stage->store, stage->output, &folder, &err));
	json_t *record = json_pack("{s:s, s:s}", "capture_id", folder.id, "state", "sampling");
	assert_true(store_put(stage->store, &folder, record, &err));
	json_decref(record);
	store_stage_write(folder.path, "capture.journal", "x");
	assert_true(store_folder_discard(&folder, &err));
	store_forget(stage->store, folder.id);
	assert_null(store_get(stage->store, folder.id));
	store_folder_close(&folder);
	assert_int_equal(entries_count(stage->output), 0);
	assert_int_equal(count_captures(stage), 0);
	assert_int_equal(store_count(stage->store), 0);
}

static void a_change_survives_a_restart(void **state)
{
	struct store_stage *stage = *state;
	struct error err = {0};
	struct store_entry entry = {0};
	char id[32], path[256];
	store_stage_make(stage, stage->output, "finished", id, path);
	assert_true(store_update(stage->store, id, "mine", 1, &err));
	store_stage_reopen(stage);
	const json_t *record = store_get(stage->store, id);
	assert_string_equal(json_string_value(json_object_get(record, "label")), "mine");
	assert_true(store_look(stage->store, "", &entry));
	assert_true(entry.is_pinned && entry.has_ended);
	assert_true(store_update(stage->store, id, "", -1, &err));
	assert_true(store_update(stage->store, id, NULL, 0, &err));
	store_stage_reopen(stage);
	assert_true(json_is_null(json_object_get(store_get(stage->store, id), "label")));
	assert_true(store_look(stage->store, "", &entry));
	assert_false(entry.is_pinned);
	assert_false(store_update(stage->store, "nothing", "x", -1, &err));
	assert_int_equal(err.code, ERROR_CAPTURE_NOT_FOUND);
}

static void the_sizes_of_all_files_are_known_after_the_start(void **state)
{
	struct store_stage *stage = *state;
	struct store_entry entry = {0};
	struct stat status;
	char id[32], path[256], own[256], record[300];
	for (int elsewhere = 0; elsewhere < 2; elsewhere++) {
		store_stage_make(stage, elsewhere ? stage->output : NULL, "finished", id, path);
		store_stage_write(path, "capture.svg", "12345");
		store_stage_write(path, "notes.txt", "these do not count");
		store_stage_record_path(stage, id, own);
		snprintf(record, sizeof(record), "%s/record.json", own);
		assert_int_equal(stat(record, &status), 0);
		store_stage_reopen(stage);
		assert_true(store_look(stage->store, entry.id, &entry));
		assert_string_equal(entry.id, id);
		assert_int_equal(entry.bytes, 10 + 5 + status.st_size);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, store_stage_set_up, store_stage_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_deleted_capture_leaves_nothing),
		TEST(what_is_not_ours_stays_with_its_folder),
		TEST(a_link_is_removed_and_what_it_leads_to_is_not),
		TEST(what_took_the_folders_place_is_not_touched),
		TEST(a_folder_that_is_gone_already_is_no_obstacle),
		TEST(a_deletion_that_was_begun_is_known_at_the_next_start),
		TEST(what_cannot_be_begun_brings_the_capture_back),
		TEST(a_capture_that_nobody_was_told_of_is_deleted),
		TEST(discarding_removes_both_folders),
		TEST(a_change_survives_a_restart),
		TEST(the_sizes_of_all_files_are_known_after_the_start),
	};
	return cmocka_run_group_tests_name("store_removal", tests, NULL, NULL);
}
