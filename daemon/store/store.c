#include "store/store.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "protocol/message.h"
#include "store/contents.h"
#include "store/table.h"

void store_add_problem(struct store *store, const char *name, const struct error *err)
{
	char *text = NULL;
	if (store->problems.len < STORE_PROBLEMS_MAX &&
		asprintf(&text, "capture %s: %s", name, err->message) >= 0 &&
		!VEC_PUSH(&store->problems, text)) {
		free(text);
	}
}

const char *store_problem(const struct store *store, size_t index)
{
	return index < store->problems.len ? store->problems.items[index] : NULL;
}

size_t store_lower_bound(const struct store *store, const char *id)
{
	size_t low = 0, high = store->entries.len;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (strcmp(store->entries.items[middle].id, id) < 0) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low;
}

struct entry *store_find(const struct store *store, const char *id)
{
	size_t at = store_lower_bound(store, id);
	bool found = at < store->entries.len && strcmp(store->entries.items[at].id, id) == 0;
	return found ? &store->entries.items[at] : NULL;
}

/* One that is known to the others. */
static struct entry *find_known(const struct store *store, const char *id)
{
	struct entry *entry = store_find(store, id);
	return entry != NULL && !entry->is_doomed ? entry : NULL;
}

/* The first known entry behind an id; NULL. */
static struct entry *next_known(const struct store *store, const char *after)
{
	size_t at = store_lower_bound(store, after);
	while (at < store->entries.len && (strcmp(store->entries.items[at].id, after) == 0 ||
										  store->entries.items[at].is_doomed)) {
		at++;
	}
	return at < store->entries.len ? &store->entries.items[at] : NULL;
}

/* What the record says, where it is needed without looking into it. The record may be a file of any content. */
static void describe(struct entry *entry)
{
	const char *state = json_string_value(json_object_get(entry->record, "state"));
	json_int_t ended_us = json_integer_value(json_object_get(entry->record, "ended_unix_us"));
	entry->has_ended =
		state != NULL && (strcmp(state, "finished") == 0 || strcmp(state, "failed") == 0);
	entry->is_pinned = json_is_true(json_object_get(entry->record, "pinned"));
	entry->ended_us =
		ended_us > 0 && (uint64_t)ended_us > entry->made_us ? (uint64_t)ended_us : entry->made_us;
}

static struct entry *add_entry(struct store *store, const char *id)
{
	if (!VEC_RESERVE(&store->entries, store->entries.len + 1)) {
		return NULL;
	}
	size_t at = store_lower_bound(store, id);
	struct entry *entry = &store->entries.items[at];
	memmove(entry + 1, entry, (store->entries.len - at) * sizeof(*entry));
	*entry = (struct entry){0};
	snprintf(entry->id, sizeof(entry->id), "%s", id);
	capture_id_parse(id, &entry->made_us);
	store->entries.len++;
	return entry;
}

bool store_keep(struct store *store, const char *id, json_t *record, struct error *err)
{
	struct entry *entry = store_find(store, id);
	entry = entry != NULL ? entry : add_entry(store, id);
	if (entry == NULL) {
		return error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for the record of capture %s", id);
	}
	json_incref(record);
	json_decref(entry->record);
	entry->record = record;
	describe(entry);
	return true;
}

void store_forget(struct store *store, const char *capture_id)
{
	struct entry *entry = store_find(store, capture_id);
	if (entry != NULL) {
		size_t at = (size_t)(entry - store->entries.items);
		json_decref(entry->record);
		memmove(entry, entry + 1, (store->entries.len - at - 1) * sizeof(*entry));
		store->entries.len--;
	}
}

bool store_write_record(int folder_fd, const json_t *record, bool sync, struct error *err)
{
	size_t len;
	char *text = message_dump(record, &len);
	if (text == NULL) {
		return error_set(err, ERROR_LIMIT_EXCEEDED, "no memory to write a record");
	}
	bool ok = sync ? files_replace(folder_fd, CONTENTS_RECORD, text, len, err)
				   : files_put(folder_fd, CONTENTS_RECORD, text, len, err);
	free(text);
	return ok;
}

struct store *store_open(const char *data_dir, struct error *err)
{
	struct store *store = calloc(1, sizeof(*store));
	if (store == NULL) {
		error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for the store");
		return NULL;
	}
	store->captures_fd = -1;
	size_t len = strlen(data_dir);
	while (len > 1 && data_dir[len - 1] == '/') {
		len--;
	}
	int length = snprintf(
		store->captures_path, sizeof(store->captures_path), "%.*s/captures", (int)len, data_dir);
	if (length >= (int)sizeof(store->captures_path) - 64) {
		error_set(
			err, ERROR_BAD_PARAMS, "the path of the data folder has %zu bytes, too many", len);
		goto fail;
	}
	store->captures_fd = files_open_or_make_folder(store->captures_path, err);
	if (store->captures_fd < 0) {
		error_wrap(err, "cannot use the data folder");
		goto fail;
	}
	if (!store_load(store, err)) {
		goto fail;
	}
	return store;

fail:
	store_close(store);
	return NULL;
}

void store_close(struct store *store)
{
	if (store == NULL) {
		return;
	}
	for (size_t i = 0; i < store->entries.len; i++) {
		json_decref(store->entries.items[i].record);
	}
	for (size_t i = 0; i < store->problems.len; i++) {
		free(store->problems.items[i]);
	}
	VEC_FINISH(&store->entries);
	VEC_FINISH(&store->problems);
	if (store->captures_fd >= 0) {
		close(store->captures_fd);
	}
	free(store);
}

bool store_put(struct store *store, struct store_folder *folder, json_t *record, struct error *err)
{
	return store_keep(store, folder->id, record, err) &&
		   store_write_record(folder->record_fd, record, false, err);
}

json_t *store_get(struct store *store, const char *capture_id)
{
	struct entry *entry = find_known(store, capture_id);
	return entry != NULL ? entry->record : NULL;
}

json_t *store_next(struct store *store, const char *after)
{
	struct entry *entry = next_known(store, after);
	return entry != NULL ? entry->record : NULL;
}

size_t store_count(const struct store *store)
{
	size_t count = 0;
	for (size_t i = 0; i < store->entries.len; i++) {
		count += !store->entries.items[i].is_doomed;
	}
	return count;
}

bool store_look(const struct store *store, const char *after, struct store_entry *entry)
{
	const struct entry *found = next_known(store, after);
	if (found == NULL) {
		return false;
	}
	*entry = (struct store_entry){
		.bytes = found->bytes,
		.ended_us = found->ended_us,
		.has_ended = found->has_ended,
		.is_pinned = found->is_pinned,
	};
	memcpy(entry->id, found->id, sizeof(found->id));
	return true;
}

void store_set_bytes(struct store *store, const char *capture_id, uint64_t bytes)
{
	struct entry *entry = store_find(store, capture_id);
	if (entry != NULL) {
		entry->bytes = bytes;
	}
}

const char *store_next_doomed(const struct store *store, const char *after)
{
	size_t at = store_lower_bound(store, after);
	while (at < store->entries.len && (strcmp(store->entries.items[at].id, after) == 0 ||
										  !store->entries.items[at].is_doomed)) {
		at++;
	}
	return at < store->entries.len ? store->entries.items[at].id : NULL;
}

/* A copy of the record with the changes in it. Owned; NULL when memory is out. */
static json_t *changed(const json_t *record, const char *label, int pinned)
{
	json_t *copy = json_copy((json_t *)record);
	bool ok = copy != NULL;
	if (ok && label != NULL) {
		ok = json_object_set_new(
				 copy, "label", label[0] != '\0' ? json_string(label) : json_null()) == 0;
	}
	if (ok && pinned >= 0) {
		ok = json_object_set_new(copy, "pinned", json_boolean(pinned)) == 0;
	}
	if (!ok) {
		json_decref(copy);
		return NULL;
	}
	return copy;
}

bool store_update(
	struct store *store, const char *capture_id, const char *label, int pinned, struct error *err)
{
	const struct entry *entry = find_known(store, capture_id);
	if (entry == NULL) {
		return error_set(err, ERROR_CAPTURE_NOT_FOUND, "there is no capture \"%s\"", capture_id);
	}
	json_t *record = changed(entry->record, label, pinned);
	if (record == NULL) {
		return error_set(
			err, ERROR_LIMIT_EXCEEDED, "no memory for the record of capture %s", capture_id);
	}
	int fd =
		openat(store->captures_fd, capture_id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	bool ok = fd >= 0 ? store_write_record(fd, record, false, err)
					  : error_errno(err, "cannot open the folder of capture %s", capture_id);
	ok = ok && store_keep(store, capture_id, record, err);
	if (fd >= 0) {
		close(fd);
	}
	json_decref(record);
	return ok;
}
