#include "commands/params.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands/signal_names.h"
#include "protocol/limits.h"
#include "protocol/text.h"

#define ALLOWED_BYTES    512
#define SHOWN_TEXT_BYTES 48

static const char *const type_names[] = {
	[PARAM_BOOLEAN] = "boolean",
	[PARAM_INTEGER] = "integer",
	[PARAM_STRING] = "string",
	[PARAM_ID] = "id",
	[PARAM_STRINGS] = "strings",
	[PARAM_OBJECT] = "object",
	[PARAM_OPTIONS] = "options",
	[PARAM_ENUM] = "enum",
	[PARAM_SIGNAL] = "signal",
	[PARAM_PATH] = "path",
};

const char *params_type_name(enum param_type type)
{
	return type_names[type];
}

static void show_string(const json_t *value, char out[PARAMS_SHOWN_BYTES])
{
	const char *text = json_string_value(value);
	size_t len = json_string_length(value);
	bool cut = len > SHOWN_TEXT_BYTES;
	if (cut) {
		len = text_cut(text, SHOWN_TEXT_BYTES);
	}
	json_t *head = json_stringn(text, len);
	char *dump = head == NULL ? NULL : json_dumps(head, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
	/* Escapes may make it longer than what is shown; then the precision cuts it, between ASCII characters. */
	snprintf(out, PARAMS_SHOWN_BYTES, "%.*s%s", PARAMS_SHOWN_BYTES - 4, dump == NULL ? "?" : dump,
		cut ? "..." : "");
	free(dump);
	json_decref(head);
}

void params_show(const json_t *value, char out[PARAMS_SHOWN_BYTES])
{
	switch (json_typeof(value)) {
	case JSON_STRING:
		show_string(value, out);
		return;
	case JSON_INTEGER:
		snprintf(out, PARAMS_SHOWN_BYTES, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
		return;
	case JSON_REAL:
		snprintf(out, PARAMS_SHOWN_BYTES, "%g", json_real_value(value));
		return;
	case JSON_OBJECT:
		snprintf(out, PARAMS_SHOWN_BYTES, "an object of %zu", json_object_size(value));
		return;
	case JSON_ARRAY:
		snprintf(out, PARAMS_SHOWN_BYTES, "an array of %zu", json_array_size(value));
		return;
	default:
		snprintf(out, PARAMS_SHOWN_BYTES, "%s",
			json_is_null(value)   ? "null"
			: json_is_true(value) ? "true"
								  : "false");
	}
}

static bool refuse(struct error *err, const char *detail, const char *name, const json_t *value,
	const char *allowed)
{
	char shown[PARAMS_SHOWN_BYTES];
	params_show(value, shown);
	error_set(err, ERROR_BAD_PARAMS, "%s is %s but must be %s", name, shown, allowed);
	return error_detail(err, detail);
}

bool params_refuse(struct error *err, const char *name, const json_t *value, const char *allowed)
{
	return refuse(err, "wrong_type", name, value, allowed);
}

static bool unsupported(struct error *err, const char *name, const json_t *value)
{
	char shown[PARAMS_SHOWN_BYTES];
	params_show(value, shown);
	return error_set(err, ERROR_UNSUPPORTED, "%s %s is not supported by this version", name, shown);
}

static bool is_listed(const char *const *list, const json_t *value)
{
	for (; list != NULL && *list != NULL; list++) {
		if (json_string_length(value) == strlen(*list) &&
			strcmp(json_string_value(value), *list) == 0) {
			return true;
		}
	}
	return false;
}

/* "one of "a", "b"" */
static void list_choices(char out[ALLOWED_BYTES], const char *before, const char *const *choices)
{
	size_t used = (size_t)snprintf(out, ALLOWED_BYTES, "%s", before);
	for (size_t i = 0; choices[i] != NULL && used < ALLOWED_BYTES; i++) {
		used += (size_t)snprintf(
			out + used, ALLOWED_BYTES - used, "%s\"%s\"", i == 0 ? "" : ", ", choices[i]);
	}
}

static bool has_nul(const json_t *value)
{
	return strlen(json_string_value(value)) != json_string_length(value);
}

/* The integer that a number stands for. */
static bool to_integer(const json_t *value, int64_t *out)
{
	if (json_is_integer(value)) {
		*out = json_integer_value(value);
		return true;
	}
	double real = json_is_real(value) ? json_real_value(value) : 0.5;
	bool is_exact = real >= -(double)LIMIT_INTEGER && real <= (double)LIMIT_INTEGER;
	if (!is_exact || (double)(int64_t)real != real) {
		return false;
	}
	*out = (int64_t)real;
	return true;
}

static bool check_integer(
	const struct param *param, const char *name, json_t **value, struct error *err)
{
	char allowed[ALLOWED_BYTES];
	snprintf(allowed, sizeof(allowed), "an integer from %" PRId64 " to %" PRId64, param->min,
		param->max);
	int64_t number = 0;
	if (!to_integer(*value, &number)) {
		return refuse(err, "wrong_type", name, *value, allowed);
	}
	if (number < param->min || number > param->max) {
		return refuse(err, "out_of_range", name, *value, allowed);
	}
	*value = json_integer(number);
	return *value != NULL || error_set(err, ERROR_LIMIT_EXCEEDED, "out of memory");
}

static bool check_string(
	const struct param *param, const char *name, const json_t *value, struct error *err)
{
	char allowed[ALLOWED_BYTES];
	int64_t max = param->max == 0 ? LIMIT_REQUEST_BYTES : param->max;
	snprintf(allowed, sizeof(allowed), "a string of %" PRId64 " to %" PRId64 " bytes without NUL",
		param->min, max);
	if (!json_is_string(value) || has_nul(value)) {
		return refuse(err, "wrong_type", name, value, allowed);
	}
	int64_t len = (int64_t)json_string_length(value);
	return (len >= param->min && len <= max) || refuse(err, "out_of_range", name, value, allowed);
}

static bool check_id(const char *name, json_t **value, struct error *err)
{
	char allowed[ALLOWED_BYTES];
	snprintf(allowed, sizeof(allowed), "a string of 1 to %d bytes without NUL, or an integer",
		LIMIT_ID_BYTES);
	if (json_is_string(*value) && !has_nul(*value)) {
		size_t len = json_string_length(*value);
		if (len < 1 || len > LIMIT_ID_BYTES) {
			return refuse(err, "out_of_range", name, *value, allowed);
		}
		json_incref(*value);
		return true;
	}
	int64_t number = 0;
	if (!to_integer(*value, &number)) {
		return refuse(err, "wrong_type", name, *value, allowed);
	}
	if (number < -LIMIT_INTEGER || number > LIMIT_INTEGER) {
		return refuse(err, "out_of_range", name, *value, allowed);
	}
	*value = json_integer(number);
	return *value != NULL || error_set(err, ERROR_LIMIT_EXCEEDED, "out of memory");
}

static bool check_strings(
	const struct param *param, const char *name, const json_t *value, struct error *err)
{
	char allowed[ALLOWED_BYTES], each[160];
	snprintf(allowed, sizeof(allowed), "an array of %" PRId64 " to %" PRId64 " strings", param->min,
		param->max);
	if (!json_is_array(value)) {
		return refuse(err, "wrong_type", name, value, allowed);
	}
	int64_t count = (int64_t)json_array_size(value);
	if (count < param->min || count > param->max) {
		return refuse(err, "out_of_range", name, value, allowed);
	}
	for (size_t i = 0; i < (size_t)count; i++) {
		const json_t *item = json_array_get(value, i);
		snprintf(each, sizeof(each), "%s[%zu]", name, i);
		if (!json_is_string(item) || has_nul(item)) {
			return refuse(err, "wrong_type", each, item, "a string without NUL");
		}
		if (param->choices != NULL && !is_listed(param->choices, item)) {
			if (is_listed(param->later, item)) {
				return unsupported(err, each, item);
			}
			list_choices(allowed, "one of ", param->choices);
			return refuse(err, "out_of_range", each, item, allowed);
		}
	}
	return true;
}

static bool check_enum(
	const struct param *param, const char *name, const json_t *value, struct error *err)
{
	if (json_is_string(value) && is_listed(param->choices, value)) {
		return true;
	}
	if (json_is_string(value) && is_listed(param->later, value)) {
		return unsupported(err, name, value);
	}
	char allowed[ALLOWED_BYTES];
	list_choices(allowed, "one of ", param->choices);
	return refuse(err, json_is_string(value) ? "out_of_range" : "wrong_type", name, value, allowed);
}

static bool check_path(const char *name, const json_t *value, struct error *err)
{
	const char *allowed = "an absolute path without NUL";
	if (!json_is_string(value) || has_nul(value)) {
		return refuse(err, "wrong_type", name, value, allowed);
	}
	return json_string_value(value)[0] == '/' || refuse(err, "out_of_range", name, value, allowed);
}

static bool check_object(const struct param *param, const char *owner, const char *name,
	json_t **value, struct error *err)
{
	if (!json_is_object(*value)) {
		return refuse(err, "wrong_type", name, *value, "an object");
	}
	if (param->members == NULL) {
		json_incref(*value);
		return true;
	}
	char prefix[160];
	snprintf(prefix, sizeof(prefix), "%s.", name);
	json_t *checked = params_check(param->members, owner, prefix, *value, err);
	if (checked == NULL) {
		return false;
	}
	*value = checked;
	return true;
}

static bool check_options(const struct param *param, const char *owner, const char *name,
	json_t **value, struct error *err)
{
	if (json_is_true(*value)) {
		*value = json_object();
		return *value != NULL || error_set(err, ERROR_LIMIT_EXCEEDED, "out of memory");
	}
	if (json_is_false(*value)) {
		json_incref(*value);
		return true;
	}
	return json_is_object(*value)
			   ? check_object(param, owner, name, value, err)
			   : refuse(err, "wrong_type", name, *value, "true, false or an object of options");
}

/* Replaces *value by an owned one that is checked. */
static bool check_value(const struct param *param, const char *owner, const char *name,
	json_t **value, struct error *err)
{
	bool fine = false;
	switch (param->type) {
	case PARAM_INTEGER:
		return check_integer(param, name, value, err);
	case PARAM_ID:
		return check_id(name, value, err);
	case PARAM_OBJECT:
		return check_object(param, owner, name, value, err);
	case PARAM_OPTIONS:
		return check_options(param, owner, name, value, err);
	case PARAM_BOOLEAN:
		fine = json_is_boolean(*value) || params_refuse(err, name, *value, "true or false");
		break;
	case PARAM_STRING:
		fine = check_string(param, name, *value, err);
		break;
	case PARAM_STRINGS:
		fine = check_strings(param, name, *value, err);
		break;
	case PARAM_ENUM:
		fine = check_enum(param, name, *value, err);
		break;
	case PARAM_SIGNAL:
		fine = signal_from_json(*value) > 0 ||
			   refuse(err, "out_of_range", name, *value,
				   "the name or number of a signal (\"TERM\", \"SIGTERM\", 15)");
		break;
	case PARAM_PATH:
		fine = check_path(name, *value, err);
		break;
	}
	json_incref(fine ? *value : NULL);
	return fine;
}

/* A value of something not built yet may still ask for what happens anyway. */
static bool is_fallback(const struct param *param, const json_t *value)
{
	if (param->fallback == NULL) {
		return false;
	}
	json_t *fallback = json_loads(param->fallback, JSON_DECODE_ANY, NULL);
	bool equal = fallback != NULL && json_equal(fallback, value) != 0;
	json_decref(fallback);
	return equal;
}

static bool check_row(const struct param *param, const char *owner, const char *prefix,
	json_t *checked, struct error *err)
{
	char name[128];
	snprintf(name, sizeof(name), "%s%s", prefix, param->name);
	json_t *value = json_object_get(checked, param->name);
	if (value == NULL || json_is_null(value)) {
		json_object_del(checked, param->name);
		if (!param->required) {
			return true;
		}
		error_set(err, ERROR_BAD_PARAMS, "parameter %s of %s is missing", name, owner);
		return error_detail(err, "missing_parameter");
	}
	if (param->is_unsupported) {
		return is_fallback(param, value) || unsupported(err, name, value);
	}
	if (!check_value(param, owner, name, &value, err)) {
		return false;
	}
	return json_object_set_new(checked, param->name, value) == 0 ||
		   error_set(err, ERROR_LIMIT_EXCEEDED, "out of memory");
}

static bool is_known(const struct param *table, const char *name)
{
	for (; table != NULL && table->name != NULL; table++) {
		if (strcmp(table->name, name) == 0) {
			return true;
		}
	}
	return false;
}

static bool check_names(const struct param *table, const char *owner, const char *prefix,
	json_t *checked, struct error *err)
{
	const char *name = NULL;
	json_t *value = NULL;
	json_object_foreach(checked, name, value)
	{
		if (is_known(table, name)) {
			continue;
		}
		char shown[PARAMS_SHOWN_BYTES], whole[LIMIT_ID_BYTES];
		snprintf(whole, sizeof(whole), "%s%s", prefix, name);
		json_t *text = text_json(whole, text_cut(whole, strlen(whole)));
		params_show(text == NULL ? json_null() : text, shown);
		json_decref(text);
		error_set(err, ERROR_BAD_PARAMS, "unknown parameter %s of %s", shown, owner);
		return error_detail(err, "unknown_parameter");
	}
	return true;
}

json_t *params_check(const struct param *table, const char *owner, const char *prefix,
	const json_t *values, struct error *err)
{
	json_t *checked = values == NULL ? json_object() : json_copy((json_t *)values);
	if (checked == NULL) {
		error_set(err, ERROR_LIMIT_EXCEEDED, "out of memory");
		return NULL;
	}
	if (!json_is_object(checked)) {
		params_refuse(err, "params", checked, "an object");
		goto fail;
	}
	if (!check_names(table, owner, prefix, checked, err)) {
		goto fail;
	}
	for (const struct param *row = table; row != NULL && row->name != NULL; row++) {
		if (!check_row(row, owner, prefix, checked, err)) {
			goto fail;
		}
	}
	return checked;

fail:
	json_decref(checked);
	return NULL;
}
