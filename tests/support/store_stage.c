#include "support/store_stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/descriptors.h"

int store_stage_set_up(void **state)
{
	struct store_stage *stage = calloc(1, sizeof(*stage));
	struct error err = {0};
	stage->descriptors = descriptors_open();
	snprintf(stage->path, sizeof(stage->path), "/tmp/test-store-XXXXXX");
	assert_non_null(mkdtemp(stage->path));
	snprintf(stage->data, sizeof(stage->data), "%s/data", stage->path);
	snprintf(stage->output, sizeof(stage->output), "%s/output", stage->path);
	assert_int_equal(mkdir(stage->output, 0755), 0);
	stage->store = store_open(stage->data, &err);
	assert_non_null(stage->store);
	*state = stage;
	return 0;
}

int store_stage_tear_down(void **state)
{
	struct store_stage *stage = *state;
	char command[128];
	store_close(stage->store);
	assert_int_equal(descriptors_open(), stage->descriptors);
	snprintf(command, sizeof(command), "rm -rf %s", stage->path);
	assert_int_equal(system(command), 0);
	free(stage);
	return 0;
}

void store_stage_reopen(struct store_stage *stage)
{
	struct error err = {0};
	store_close(stage->store);
	stage->store = store_open(stage->data, &err);
	assert_non_null(stage->store);
}

void store_stage_write(const char *folder, const char *name, const char *text)
{
	char path[512];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

void store_stage_make(struct store_stage *stage, const char *output_dir, const char *state,
	char id[32], char path[256])
{
	struct error err = {0};
	struct store_folder folder;
	assert_true(store_create(stage->store, output_dir, &folder, &err));
	store_stage_write(folder.path, "capture.journal", "0123456789");
	json_t *record = json_pack(
		"{s:s, s:s, s:s}", "capture_id", folder.id, "state", state, "folder", folder.path);
	assert_true(store_put(stage->store, &folder, record, &err));
	json_decref(record);
	strcpy(id, folder.id);
	assert_true(strlen(folder.path) < 256);
	strcpy(path, folder.path);
	store_folder_close(&folder);
}

void store_stage_record_path(const struct store_stage *stage, const char *id, char path[256])
{
	snprintf(path, 256, "%s/captures/%s", stage->data, id);
}

bool store_stage_exists(const char *folder, const char *name)
{
	char path[512];
	struct stat status;
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return lstat(path, &status) == 0;
}
