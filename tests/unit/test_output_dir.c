#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/clock.h"
#include "store/output_dir.h"
#include "support/store_stage.h"
#include "support/entries.h"

#define NOBODY  65534
#define RACE_NS UINT64_C(2000000000)

/* A path below the stage's folder. */
static const char *below(const struct store_stage *stage, const char *name)
{
	static char paths[4][256];
	static int next;
	char *path = paths[next++ % 4];
	snprintf(path, sizeof(paths[0]), "%s/%s", stage->path, name);
	return path;
}

static void assert_refused(const char *path, enum error_code code, const char *detail)
{
	struct error err = {0};
	int fd = output_dir_open(path, &err);
	assert_int_equal(fd, -1);
	assert_int_equal(err.code, code);
	assert_string_equal(err.detail, detail);
	assert_true(err.message[0] != '\0' && err.hint[0] != '\0');
}

static void assert_opened(const char *path)
{
	struct error err = {0};
	struct stat named, opened;
	int fd = output_dir_open(path, &err);
	assert_string_equal(err.message, "");
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &opened), 0);
	assert_int_equal(stat(path, &named), 0);
	assert_true(named.st_ino == opened.st_ino && named.st_dev == opened.st_dev);
	close(fd);
}

static void ways_to_a_folder_of_ours_are_followed(void **state)
{
	struct store_stage *stage = *state;
	assert_opened(stage->output);
	assert_opened(below(stage, "output///"));
	assert_opened(below(stage, "./output/../output/."));
	assert_int_equal(symlink(stage->path, below(stage, "absolute")), 0);
	assert_int_equal(symlink("absolute/../", below(stage, "relative")), 0);
	assert_opened(below(stage, "absolute/output"));
	char name[128];
	snprintf(name, sizeof(name), "relative/%s/output", strrchr(stage->path, '/') + 1);
	assert_opened(below(stage, name));
}

static void what_is_no_folder_of_its_own_is_refused(void **state)
{
	struct store_stage *stage = *state;
	assert_refused("output", ERROR_BAD_PARAMS, "not_absolute");
	assert_refused("", ERROR_BAD_PARAMS, "not_absolute");
	assert_refused(below(stage, "missing"), ERROR_BAD_PARAMS, "enoent");
	store_stage_write(stage->path, "file", "");
	assert_refused(below(stage, "file"), ERROR_BAD_PARAMS, "enotdir");
	assert_refused(below(stage, "file/more"), ERROR_BAD_PARAMS, "enotdir");
	assert_int_equal(symlink(stage->output, below(stage, "link")), 0);
	assert_refused(below(stage, "link"), ERROR_BAD_PARAMS, "eloop");
	assert_refused(below(stage, "link/"), ERROR_BAD_PARAMS, "eloop");
	assert_int_equal(symlink("loop", below(stage, "loop")), 0);
	struct error err = {0};
	assert_int_equal(output_dir_open(below(stage, "loop/more"), &err), -1);
	assert_non_null(strstr(err.message, "loop/more"));
}

static void a_folder_that_everyone_may_rename_in_is_refused(void **state)
{
	struct store_stage *stage = *state;
	assert_int_equal(chmod(stage->output, 0777), 0);
	assert_refused(stage->output, ERROR_NOT_PERMITTED, "open_to_all");
	assert_int_equal(chmod(stage->output, 0703), 0);
	assert_refused(stage->output, ERROR_NOT_PERMITTED, "open_to_all");
	/* As /tmp is: others may make theirs there, and not touch ours. */
	assert_int_equal(chmod(stage->output, 01777), 0);
	assert_opened(stage->output);
	assert_int_equal(chmod(stage->output, 0775), 0);
	assert_opened(stage->output);
}

static void what_belongs_to_others_is_refused(void **state)
{
	struct store_stage *stage = *state;
	if (geteuid() != 0) {
		/* Root's folder is another user's. */
		assert_refused("/tmp", ERROR_NOT_PERMITTED, "not_ours");
		return;
	}
	assert_opened("/tmp");
	assert_int_equal(mkdir(below(stage, "theirs"), 0777), 0);
	assert_int_equal(mkdir(below(stage, "theirs/ours"), 0700), 0);
	assert_int_equal(chown(below(stage, "theirs"), NOBODY, NOBODY), 0);
	assert_refused(below(stage, "theirs"), ERROR_NOT_PERMITTED, "not_ours");
	assert_opened(below(stage, "theirs/ours"));
	/* A link of theirs on the way: today it leads to us, tomorrow elsewhere. */
	assert_int_equal(symlink(stage->path, below(stage, "theirs/link")), 0);
	assert_opened(below(stage, "theirs/link/output"));
	assert_int_equal(lchown(below(stage, "theirs/link"), NOBODY, NOBODY), 0);
	assert_refused(below(stage, "theirs/link/output"), ERROR_NOT_PERMITTED, "foreign_link");
	/* Also when a link of ours leads over it. */
	assert_int_equal(symlink("theirs/link", below(stage, "over")), 0);
	assert_refused(below(stage, "over/output"), ERROR_NOT_PERMITTED, "foreign_link");
}

/* Somebody who swaps what bears a name, as fast as he can. */
struct swapper {
	pthread_t thread;
	const char *name, *others[2], *aside;
	atomic_bool must_end;
	size_t swaps;
};

static void *swap(void *context)
{
	struct swapper *swapper = context;
	while (!atomic_load(&swapper->must_end)) {
		for (int i = 0; i < 2; i++) {
			/* name goes aside, the other takes its place, and back again. */
			if (rename(swapper->name, swapper->aside) == 0 &&
				rename(swapper->others[i], swapper->name) == 0) {
				swapper->swaps++;
				rename(swapper->name, swapper->others[i]);
			}
			rename(swapper->aside, swapper->name);
		}
	}
	return NULL;
}

static ino_t inode_of(const char *path)
{
	struct stat status;
	assert_int_equal(lstat(path, &status), 0);
	return status.st_ino;
}

/* Makes captures in the folder while its name is swapped for a link to a victim, and for a folder of somebody else: each is refused, or is in the folder that was meant. */
static void a_name_that_is_swapped_never_leads_astray(void **state)
{
	struct store_stage *stage = *state;
	char output[256], link[256], theirs[256], aside[256], victim[256];
	snprintf(output, sizeof(output), "%s", stage->output);
	snprintf(link, sizeof(link), "%s", below(stage, "a-link"));
	snprintf(theirs, sizeof(theirs), "%s", below(stage, "theirs"));
	snprintf(aside, sizeof(aside), "%s", below(stage, "aside"));
	snprintf(victim, sizeof(victim), "%s", below(stage, "victim"));
	assert_int_equal(mkdir(victim, 0700), 0);
	assert_int_equal(mkdir(theirs, 0777), 0);
	assert_int_equal(symlink(victim, link), 0);
	if (geteuid() == 0) {
		assert_int_equal(chown(theirs, NOBODY, NOBODY), 0);
	} else {
		assert_int_equal(chmod(theirs, 0777), 0);
	}
	ino_t meant = inode_of(output);
	struct swapper swapper = {.name = output, .others = {link, theirs}, .aside = aside};
	assert_int_equal(pthread_create(&swapper.thread, NULL, swap, &swapper), 0);
	size_t made = 0, refused = 0;
	for (uint64_t end = clock_monotonic_ns() + RACE_NS; clock_monotonic_ns() < end;) {
		struct error err = {0};
		struct store_folder folder;
		struct stat status;
		if (!store_create(stage->store, output, &folder, &err)) {
			assert_true(err.message[0] != '\0');
			refused++;
			continue;
		}
		assert_int_equal(fstat(folder.parent_fd, &status), 0);
		assert_int_equal(status.st_ino, meant);
		assert_true(store_folder_discard(&folder, &err));
		store_folder_close(&folder);
		made++;
	}
	atomic_store(&swapper.must_end, true);
	pthread_join(swapper.thread, NULL);
	assert_true(swapper.swaps > 100 && made > 0 && refused > 0);
	assert_int_equal(entries_count(victim), 0);
	assert_int_equal(entries_count(theirs), 0);
	assert_int_equal(entries_count(output), 0);
	assert_int_equal(store_count(stage->store), 0);
}

static void the_folder_that_was_made_is_closed_to_others(void **state)
{
	struct store_stage *stage = *state;
	struct error err = {0};
	struct store_folder folder;
	struct stat status;
	mode_t before = umask(0);
	assert_true(store_create(stage->store, stage->output, &folder, &err));
	umask(before);
	assert_int_equal(fstat(folder.fd, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0700);
	assert_true(store_folder_discard(&folder, &err));
	store_folder_close(&folder);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, store_stage_set_up, store_stage_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(ways_to_a_folder_of_ours_are_followed),
		TEST(what_is_no_folder_of_its_own_is_refused),
		TEST(a_folder_that_everyone_may_rename_in_is_refused),
		TEST(what_belongs_to_others_is_refused),
		TEST(a_name_that_is_swapped_never_leads_astray),
		TEST(the_folder_that_was_made_is_closed_to_others),
	};
	return cmocka_run_group_tests_name("output_dir", tests, NULL, NULL);
}
