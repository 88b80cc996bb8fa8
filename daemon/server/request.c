#include "server/request.h"

#include <stdlib.h>
#include <string.h>

#include "protocol/limits.h"
#include "protocol/message.h"
#include "server/client.h"

struct request {
	struct client *client; /* NULL: gone */
	json_t *id;            /* owned; NULL: a notification, never answered */
	void (*gone)(struct request *request, void *context);
	void *context;
	void (*answered)(void *context, const json_t *result, const struct error *err);
	void *answered_context;
	bool can_be_cancelled, is_cancelled;
	struct request *next;
};

/* What a message says, borrowed from it. */
struct call {
	const json_t *id; /* NULL: none, or not a good one */
	const char *method;
	json_t *params;       /* NULL: none */
	bool is_notification; /* a good message without an id */
};

static bool is_good_id(const json_t *id)
{
	if (json_is_string(id)) {
		return json_string_length(id) <= LIMIT_ID_BYTES;
	}
	if (json_is_integer(id)) {
		json_int_t exact = json_integer_value(id);
		return exact >= -LIMIT_INTEGER && exact <= LIMIT_INTEGER;
	}
	double value = json_number_value(id);
	return json_is_real(id) && value >= -(double)LIMIT_INTEGER && value <= (double)LIMIT_INTEGER &&
		   (double)(json_int_t)value == value;
}

static bool is_same_id(const json_t *one, const json_t *other)
{
	if (json_is_number(one) && json_is_number(other)) {
		return json_number_value(one) == json_number_value(other);
	}
	return json_equal(one, other);
}

/* The request with this id that has no reply yet; NULL. */
static struct request *find(const struct requests *requests, const json_t *id)
{
	struct request *request = requests->first;
	while (request != NULL && (request->id == NULL || !is_same_id(request->id, id))) {
		request = request->next;
	}
	return request;
}

static bool read_id(struct call *call, const json_t *message, struct error *err)
{
	const json_t *id = json_object_get(message, "id");
	if (id != NULL && !is_good_id(id)) {
		return error_set(err, ERROR_INVALID_REQUEST,
			"id must be a string of at most %d bytes or an integer up to 2^53", LIMIT_ID_BYTES);
	}
	call->id = id;
	return true;
}

static bool read_params(struct call *call, json_t *message, struct error *err)
{
	json_t *params = json_object_get(message, "params");
	if (params == NULL || json_is_null(params) ||
		(json_is_array(params) && json_array_size(params) == 0)) {
		return true;
	}
	if (!json_is_object(params)) {
		return error_set(err, ERROR_BAD_PARAMS, "params must be an object: parameters go by name");
	}
	call->params = params;
	return true;
}

/* NULL: no string, or one that C would see cut. */
static const char *text_of(const json_t *value)
{
	const char *text = json_string_value(value);
	return text != NULL && strlen(text) == json_string_length(value) ? text : NULL;
}

static bool read_call(struct call *call, json_t *message, struct error *err)
{
	if (json_is_array(message)) {
		error_set(err, ERROR_INVALID_REQUEST, "a batch of %zu messages: batches are not supported",
			json_array_size(message));
		return error_detail(err, "batch");
	}
	if (!read_id(call, message, err)) {
		return false;
	}
	const json_t *version = json_object_get(message, "jsonrpc");
	if (version != NULL && (text_of(version) == NULL || strcmp(text_of(version), "2.0") != 0)) {
		return error_set(err, ERROR_INVALID_REQUEST, "jsonrpc must be \"2.0\" or left out");
	}
	call->method = text_of(json_object_get(message, "method"));
	if (call->method == NULL) {
		return error_set(
			err, ERROR_INVALID_REQUEST, "method is missing or not a string without NUL");
	}
	call->is_notification = call->id == NULL;
	return read_params(call, message, err);
}

/* There is room for it, and its reply will be told apart. */
static bool is_admitted(const struct requests *requests, struct call *call, struct error *err)
{
	if (call->id != NULL && find(requests, call->id) != NULL) {
		char *id = json_dumps(call->id, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
		/* Answered to null: the id's one reply is that of the first request. */
		call->id = NULL;
		error_set(err, ERROR_INVALID_REQUEST, "id %s is in use by a request without reply",
			id != NULL ? id : "");
		free(id);
		return error_detail(err, "duplicate_id");
	}
	if (requests->count >= LIMIT_REQUESTS_IN_FLIGHT) {
		error_set(err, ERROR_LIMIT_EXCEEDED, "%zu requests of this connection have no reply yet",
			requests->count);
		error_detail(err, "requests_in_flight");
		return error_hint(err, "wait for replies before sending more");
	}
	return true;
}

/* The id as it will be echoed. A real is the same number as an integer, and only so exact beyond 15 digits. */
static json_t *copy_id(const json_t *id)
{
	return json_is_real(id) ? json_integer((json_int_t)json_real_value(id))
							: json_copy((json_t *)id);
}

static void begin(struct client *client, const struct call *call)
{
	struct requests *requests = client_requests(client);
	struct request *request = calloc(1, sizeof(*request));
	json_t *id = call->id != NULL ? copy_id(call->id) : NULL;
	if (request == NULL || (call->id != NULL && id == NULL)) {
		/* No reply can be promised any more. */
		free(request);
		client_close(client);
		return;
	}
	*request = (struct request){.client = client, .id = id, .next = requests->first};
	requests->first = request;
	requests->count++;
	const struct server_options *options = client_options(client);
	options->request(options->context, request, call->method, call->params);
}

void request_receive(struct client *client, const char *text, size_t len)
{
	struct error err;
	json_t *message = message_parse(text, len, &err);
	if (message == NULL) {
		client_fail(client, NULL, &err);
		return;
	}
	struct call call = {0};
	if (!read_call(&call, message, &err)) {
		if (!call.is_notification) {
			client_fail(client, call.id, &err);
		}
	} else if (call.is_notification && strncmp(call.method, "$/", 2) == 0) {
		/* Other protocols' notices to whoever understands them. */
	} else if (is_admitted(client_requests(client), &call, &err)) {
		begin(client, &call);
	} else if (!call.is_notification) {
		client_fail(client, call.id, &err);
	}
	json_decref(message);
}

static void leave(struct requests *requests, const struct request *request)
{
	struct request **link = &requests->first;
	while (*link != request) {
		link = &(*link)->next;
	}
	*link = request->next;
	requests->count--;
}

static void fail(struct request *request, const struct error *err)
{
	if (request->client != NULL && request->id != NULL) {
		client_fail(request->client, request->id, err);
	}
}

/* Tells who wants to know, once; the rest of the ending is request_drop. */
static void tell_answer(struct request *request, const json_t *result, const struct error *err)
{
	if (request->answered != NULL) {
		request->answered(request->answered_context, result, err);
		request->answered = NULL;
	}
}

void request_drop(struct request *request)
{
	struct error err = {0};
	if (request->is_cancelled) {
		error_set(&err, ERROR_CANCELLED, "the request was cancelled");
		fail(request, &err);
	}
	tell_answer(request, NULL, NULL);
	if (request->client != NULL) {
		leave(client_requests(request->client), request);
		client_settle(request->client);
	}
	json_decref(request->id);
	free(request);
}

void request_reply(struct request *request, json_t *result)
{
	tell_answer(request, result, NULL);
	if (request->client != NULL && request->id != NULL) {
		/* Not json_pack: it refuses a result that is NULL for want of memory. */
		json_t *reply = json_object();
		json_object_set_new(reply, "jsonrpc", json_string("2.0"));
		json_object_set(reply, "id", request->id);
		json_object_set(reply, "result", result);
		if (result == NULL) {
			json_object_set_new(reply, "result", json_object());
		}
		if (!client_send(request->client, reply)) {
			struct error err;
			error_set(&err, ERROR_INTERNAL, "the result is longer than %d bytes", LIMIT_LINE_BYTES);
			error_detail(&err, "result_too_long");
			fail(request, &err);
		}
		json_decref(reply);
	}
	json_decref(result);
	request_drop(request);
}

void request_fail(struct request *request, const struct error *err)
{
	tell_answer(request, NULL, err);
	fail(request, err);
	request_drop(request);
}

struct client *request_client(const struct request *request)
{
	return request->client;
}

void request_on_gone(
	struct request *request, void (*gone)(struct request *request, void *context), void *context)
{
	request->gone = gone;
	request->context = context;
}

static void forget(struct request *request, void *context)
{
	struct request **slot = context;
	*slot = NULL;
	request_drop(request);
}

void request_forget_when_gone(struct request *request, struct request **slot)
{
	request_on_gone(request, forget, slot);
}

void request_allow_cancel(struct request *request)
{
	request->can_be_cancelled = true;
}

bool request_cancel(struct client *client, const json_t *id)
{
	struct request *request = find(client_requests(client), id);
	if (request == NULL || !request->can_be_cancelled || request->gone == NULL) {
		return false;
	}
	request->is_cancelled = true;
	request->gone(request, request->context);
	return true;
}

void request_on_answer(struct request *request,
	void (*answered)(void *context, const json_t *result, const struct error *err), void *context)
{
	request->answered = answered;
	request->answered_context = context;
}

void requests_refuse(struct client *client, const struct error *err)
{
	struct request *request = client_requests(client)->first;
	for (; request != NULL; request = request->next) {
		fail(request, err);
		json_decref(request->id);
		request->id = NULL;
	}
}

void requests_gone(struct requests *requests)
{
	while (requests->first != NULL) {
		struct request *request = requests->first;
		requests->first = request->next;
		requests->count--;
		request->client = NULL;
		if (request->gone != NULL) {
			request->gone(request, request->context);
		}
	}
}
