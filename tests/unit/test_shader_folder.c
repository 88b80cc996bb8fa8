#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "protocol/names.h"
#include "store/contents.h"
#include "store/shader_folder.h"

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

struct place {
	char path[64];
	int fd, shaders_fd;
};

static int create(void **state)
{
	static struct place place;
	snprintf(place.path, sizeof(place.path), "/tmp/profd-shaders-XXXXXX");
	if (mkdtemp(place.path) == NULL) {
		return 1;
	}
	place.fd = open(place.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	place.shaders_fd = files_make_folder(place.fd, ARTIFACT_SHADERS_FOLDER, NULL);
	*state = &place;
	return place.fd < 0 || place.shaders_fd < 0;
}

static int destroy(void **state)
{
	struct place *place = *state;
	int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	close(place->fd);
	close(place->shaders_fd);
	bool ok = files_remove_tree(tmp, strrchr(place->path, '/') + 1, NULL);
	close(tmp);
	return !ok;
}

static void put(int folder_fd, const char *name, size_t bytes)
{
	char text[256] = {0};
	int fd = files_create(folder_fd, name, NULL);
	assert_true(fd >= 0);
	assert_true(files_write_all(fd, text, bytes, NULL, NULL));
	close(fd);
}

static bool is_there(int folder_fd, const char *name)
{
	struct stat status;
	return fstatat(folder_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

static void names_of_modules_and_sources_are_ours(void **state)
{
	static const char *const ours[] = {HASH ".spv", HASH ".wgsl", HASH ".glsl", HASH ".hlsl",
		HASH ".slang", HASH ".txt", HASH "-1.wgsl", HASH "-31.txt"};
	static const char *const others[] = {"", ".spv", HASH, HASH ".", HASH ".rdc", HASH "0.spv",
		HASH "-.spv", HASH "-a.wgsl", HASH "-1", HASH ".spv.txt", "a" HASH ".spv", "notes.txt",
		"0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef.spv"};
	(void)state;
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
		assert_true(shader_folder_owns(ours[i]));
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		assert_false(shader_folder_owns(others[i]));
	}
}

static void what_is_ours_is_counted_and_removed(void **state)
{
	struct place *place = *state;
	put(place->shaders_fd, HASH ".spv", 100);
	put(place->shaders_fd, HASH "-1.wgsl", 20);
	put(place->fd, ARTIFACT_SHADERS, 3);
	assert_int_equal(shader_folder_bytes(place->fd, ARTIFACT_SHADERS_FOLDER), 120);
	assert_int_equal(contents_bytes(place->fd), 123);
	assert_true(contents_remove(place->fd, CONTENTS_TEMPORARIES | CONTENTS_OUTPUTS, NULL));
	assert_int_equal(contents_bytes(place->fd), 123);
	assert_true(contents_remove(place->fd, CONTENTS_SHADERS, NULL));
	assert_false(is_there(place->fd, ARTIFACT_SHADERS_FOLDER));
	assert_false(is_there(place->fd, ARTIFACT_SHADERS));
	assert_true(contents_remove(place->fd, CONTENTS_ALL, NULL));
}

static void what_is_somebodys_stays_with_its_folder(void **state)
{
	struct place *place = *state;
	put(place->shaders_fd, HASH ".spv", 100);
	put(place->shaders_fd, "notes.txt", 50);
	assert_int_equal(mkdirat(place->shaders_fd, HASH ".wgsl", 0700), 0);
	assert_int_equal(shader_folder_bytes(place->fd, ARTIFACT_SHADERS_FOLDER), 100);
	assert_true(contents_remove(place->fd, CONTENTS_ALL, NULL));
	assert_false(is_there(place->shaders_fd, HASH ".spv"));
	assert_true(is_there(place->shaders_fd, "notes.txt"));
	assert_true(is_there(place->shaders_fd, HASH ".wgsl"));
	assert_true(is_there(place->fd, ARTIFACT_SHADERS_FOLDER));
}

static void links_are_not_followed(void **state)
{
	struct place *place = *state;
	put(place->fd, "victim", 10);
	put(place->shaders_fd, HASH ".spv", 100);
	assert_int_equal(symlinkat("../victim", place->shaders_fd, HASH ".wgsl"), 0);
	assert_int_equal(
		symlinkat(ARTIFACT_SHADERS_FOLDER, place->fd, ARTIFACT_DOCUMENT_PREFIX ".shaders"), 0);
	assert_int_equal(contents_bytes_of_documents(place->fd), 0);
	assert_true(contents_remove(place->fd, CONTENTS_TEMPORARIES, NULL));
	assert_false(is_there(place->fd, ARTIFACT_DOCUMENT_PREFIX ".shaders"));
	assert_true(is_there(place->shaders_fd, HASH ".spv"));
	assert_true(contents_remove(place->fd, CONTENTS_ALL, NULL));
	assert_false(is_there(place->fd, ARTIFACT_SHADERS_FOLDER));
	assert_true(is_there(place->fd, "victim"));
}

static void what_a_program_left_half_written_is_a_temporary(void **state)
{
	struct place *place = *state;
	int fd = files_make_folder(place->fd, ARTIFACT_DOCUMENT_PREFIX ".shaders", NULL);
	assert_true(fd >= 0);
	put(fd, HASH ".spv", 30);
	close(fd);
	put(place->fd, ARTIFACT_DOCUMENT_PREFIX "_capture.rdc", 8);
	assert_int_equal(contents_bytes_of_documents(place->fd), 38);
	assert_true(contents_remove(place->fd, CONTENTS_TEMPORARIES, NULL));
	assert_false(is_there(place->fd, ARTIFACT_DOCUMENT_PREFIX ".shaders"));
	assert_false(is_there(place->fd, ARTIFACT_DOCUMENT_PREFIX "_capture.rdc"));
	assert_true(is_there(place->fd, ARTIFACT_SHADERS_FOLDER));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_modules_and_sources_are_ours),
		cmocka_unit_test_setup_teardown(what_is_ours_is_counted_and_removed, create, destroy),
		cmocka_unit_test_setup_teardown(what_is_somebodys_stays_with_its_folder, create, destroy),
		cmocka_unit_test_setup_teardown(links_are_not_followed, create, destroy),
		cmocka_unit_test_setup_teardown(
			what_a_program_left_half_written_is_a_temporary, create, destroy),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
