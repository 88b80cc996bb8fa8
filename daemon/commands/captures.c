#include "commands/captures.h"

json_t *captures_record(const struct daemon *daemon, const char *capture_id, struct error *err)
{
	struct capture *capture = captures_find(daemon->captures, capture_id);
	if (capture != NULL) {
		return capture_record(capture);
	}
	json_t *record = json_incref(store_get(daemon->store, capture_id));
	if (record == NULL) {
		error_set(err, ERROR_CAPTURE_NOT_FOUND, "there is no capture \"%s\"", capture_id);
	}
	return record;
}
