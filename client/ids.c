#include "client/ids.h"

#include <string.h>

#include "client/reply.h"
#include "protocol/limits.h"
#include "protocol/text.h"

/* What is looked for, and what was found. */
struct search {
	const char *member; /* its id's name */
	const char *text;
	json_t *found; /* owned */
	char found_id[LIMIT_ID_BYTES + 1];
	char other_id[LIMIT_ID_BYTES + 1]; /* another one that begins so; "" */
};

static bool visit(void *context, const json_t *record)
{
	struct search *search = context;
	char id[LIMIT_ID_BYTES + 1];
	reply_id(json_object_get(record, search->member), id, sizeof(id));
	if (strncmp(id, search->text, strlen(search->text)) != 0) {
		return true;
	}
	if (search->found != NULL && strcmp(search->found_id, id) != 0) {
		memcpy(search->other_id, id, sizeof(id));
		return false;
	}
	/* Later in the list is newer. */
	json_decref(search->found);
	search->found = json_incref((json_t *)record);
	memcpy(search->found_id, id, sizeof(id));
	return true;
}

struct kind {
	const char *noun, *member, *get, *list, *list_member, *command;
	enum error_code not_found;
};

static const struct kind build_kind = {
	"build", "build_id", "GetProcess", "ListProcesses", "processes", "ps", ERROR_BUILD_NOT_FOUND};
static const struct kind capture_kind = {"capture", "capture_id", "GetCapture", "ListCaptures",
	"captures", "captures", ERROR_CAPTURE_NOT_FOUND};

static json_t *find_prefix(
	const struct kind *kind, struct profclient *client, const char *text, struct error *err)
{
	struct error not_found = *err;
	struct search search = {.member = kind->member, .text = text};
	bool ok = profctl_pages(client, kind->list, kind->list_member, visit, &search, err);
	if (ok && search.other_id[0] != '\0') {
		error_set(err, kind->not_found, "%s is not the beginning of one %s id alone: %s, %s", text,
			kind->noun, search.found_id, search.other_id);
		error_detail(err, "ambiguous");
		error_hint(err, "give more of the id");
	} else if (ok && search.found == NULL) {
		*err = not_found;
		error_hint(err, "profctl %s lists them", kind->command);
	} else if (ok) {
		return search.found;
	}
	json_decref(search.found);
	return NULL;
}

bool ids_is_possible(const char *text)
{
	return text[0] != '\0' && strlen(text) <= LIMIT_ID_BYTES && text_is_utf8(text, strlen(text));
}

static json_t *find(
	const struct kind *kind, struct profclient *client, const char *text, struct error *err)
{
	if (!ids_is_possible(text)) {
		error_set(
			err, kind->not_found, "a %s id is a text of 1 to %d bytes", kind->noun, LIMIT_ID_BYTES);
		return NULL;
	}
	json_t *record = profctl_try(client, kind->get, json_pack("{s:s}", kind->member, text), err);
	if (record == NULL && err->code == kind->not_found) {
		record = find_prefix(kind, client, text, err);
	}
	return record;
}

json_t *ids_try_build(struct profclient *client, const char *text, struct error *err)
{
	return find(&build_kind, client, text, err);
}

static json_t *find_or_tell(const struct profctl *profctl, const struct kind *kind,
	struct profclient *client, const char *text, int *status)
{
	struct error err = {0};
	json_t *record = find(kind, client, text, &err);
	if (record == NULL) {
		*status = profctl_fail(profctl, &err);
	}
	return record;
}

json_t *ids_build(
	const struct profctl *profctl, struct profclient *client, const char *text, int *status)
{
	return find_or_tell(profctl, &build_kind, client, text, status);
}

json_t *ids_capture(
	const struct profctl *profctl, struct profclient *client, const char *text, int *status)
{
	return find_or_tell(profctl, &capture_kind, client, text, status);
}

static bool visit_last(void *context, const json_t *record)
{
	json_t **last = context;
	json_decref(*last);
	*last = json_incref((json_t *)record);
	return true;
}

json_t *ids_last_capture(const struct profctl *profctl, struct profclient *client, int *status)
{
	struct error err = {0};
	json_t *last = NULL;
	if (!profctl_pages(
			client, capture_kind.list, capture_kind.list_member, visit_last, &last, &err)) {
		*status = profctl_fail(profctl, &err);
		json_decref(last);
		return NULL;
	}
	if (last == NULL) {
		error_set(&err, ERROR_CAPTURE_NOT_FOUND, "there is no capture");
		error_hint(&err, "profctl record makes one");
		*status = profctl_fail(profctl, &err);
	}
	return last;
}
