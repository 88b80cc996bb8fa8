#ifndef TESTS_SUPPORT_STORE_STAGE_H
#define TESTS_SUPPORT_STORE_STAGE_H

#include <stddef.h>

#include "store/store.h"

/* A store in a folder of its own, a folder for captures elsewhere, and captures in them. */
struct store_stage {
	char path[64], data[96], output[96];
	struct store *store;
	size_t descriptors;
};

/* cmocka's. The end checks that no descriptor was left open. */
int store_stage_set_up(void **state);
int store_stage_tear_down(void **state);

void store_stage_reopen(struct store_stage *stage);
/* A capture with a journal and a record in that state, in the data folder or in output_dir; its id and the path of its artifacts' folder. */
void store_stage_make(struct store_stage *stage, const char *output_dir, const char *state,
	char id[32], char path[256]);
/* The path of its record's folder. */
void store_stage_record_path(const struct store_stage *stage, const char *id, char path[256]);
void store_stage_write(const char *folder, const char *name, const char *text);
bool store_stage_exists(const char *folder, const char *name);

#endif
