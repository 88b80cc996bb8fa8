#include "client/each.h"

#include "client/reply.h"
#include "protocol/limits.h"

static int do_one(const struct each *each, struct profclient *client, const char *text)
{
	int status = EXIT_SUCCESS;
	json_t *record = each->find(each->profctl, client, text, &status);
	if (record == NULL) {
		return status;
	}
	char id[LIMIT_ID_BYTES + 1];
	json_t *params = each->params != NULL ? json_copy((json_t *)each->params) : json_object();
	json_object_set(params, each->id_name, json_object_get(record, each->id_name));
	reply_id(json_object_get(record, each->id_name), id, sizeof(id));
	json_t *result = profctl_call(each->profctl, client, each->method, params, &status);
	if (result != NULL && each->profctl->json) {
		profctl_print_json(stdout, result);
	} else if (result != NULL && each->print != NULL) {
		each->print(id, result);
	}
	json_decref(result);
	json_decref(record);
	return status;
}

int each_run(const struct each *each, int count, char **texts)
{
	int status = EXIT_SUCCESS;
	struct profclient *client = profctl_connect(each->profctl, true, &status);
	for (int i = 0; client != NULL && i < count; i++) {
		int one = do_one(each, client, texts[i]);
		status = status == EXIT_SUCCESS ? one : status;
	}
	profclient_close(client);
	return status;
}
