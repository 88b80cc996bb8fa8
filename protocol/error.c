#include "protocol/error.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "protocol/text.h"

struct code_info {
	const char *name;
	int number;
	bool retryable;
	const char *hint;
};

static const struct code_info infos[ERROR_COUNT] = {[ERROR_NONE] = {"none", 0, false, ""},
#define ERROR_INFO(name, wire, number, retryable, hint)                                            \
	[ERROR_##name] = {wire, number, retryable, hint},
	ERROR_LIST(ERROR_INFO)
#undef ERROR_INFO
};

static const struct code_info *info(enum error_code code)
{
	return (unsigned)code < ERROR_COUNT ? &infos[code] : &infos[ERROR_INTERNAL];
}

const char *error_code_name(enum error_code code)
{
	return info(code)->name;
}

int error_code_number(enum error_code code)
{
	return info(code)->number;
}

bool error_code_retryable(enum error_code code)
{
	return info(code)->retryable;
}

const char *error_code_hint(enum error_code code)
{
	return info(code)->hint;
}

enum error_code error_code_from_name(const char *name)
{
	for (int code = 1; code < ERROR_COUNT; code++) {
		if (strcmp(infos[code].name, name) == 0) {
			return (enum error_code)code;
		}
	}
	return ERROR_NONE;
}

/* vsnprintf that never leaves half a character at the cut. */
static void print(char *buffer, size_t size, const char *format, va_list args)
{
	int length = vsnprintf(buffer, size, format, args);
	if (length >= 0 && (size_t)length >= size) {
		buffer[text_cut(buffer, size - 1)] = '\0';
	}
}

static void append(char *buffer, size_t size, const char *text)
{
	size_t used = strlen(buffer);
	size_t length = strlen(text);
	if (length >= size - used) {
		length = text_cut(text, size - used - 1);
	}
	memcpy(buffer + used, text, length);
	buffer[used + length] = '\0';
}

static void begin(struct error *err, enum error_code code, const char *format, va_list args)
{
	err->code = code;
	err->detail[0] = '\0';
	err->hint[0] = '\0';
	print(err->message, sizeof(err->message), format, args);
}

bool error_set(struct error *err, enum error_code code, const char *format, ...)
{
	if (err != NULL) {
		va_list args;
		va_start(args, format);
		begin(err, code, format, args);
		va_end(args);
	}
	return false;
}

static enum error_code code_of_errno(int value)
{
	switch (value) {
	case EACCES:
	case EPERM:
		return ERROR_NOT_PERMITTED;
	case ENOSPC:
	case EDQUOT:
	case EFBIG:
		return ERROR_DISK_FULL;
	case EMFILE:
	case ENFILE:
	case ENOMEM:
	case EAGAIN:
		return ERROR_LIMIT_EXCEEDED;
	default:
		return ERROR_IO;
	}
}

static void add_errno(struct error *err, int value)
{
	append(err->message, sizeof(err->message), ": ");
	append(err->message, sizeof(err->message), strerror(value));
	const char *name = strerrorname_np(value);
	size_t i = 0;
	for (; name != NULL && name[i] != '\0' && i + 1 < sizeof(err->detail); i++) {
		err->detail[i] = (char)tolower((unsigned char)name[i]);
	}
	err->detail[i] = '\0';
}

bool error_errno(struct error *err, const char *format, ...)
{
	int value = errno;
	if (err != NULL) {
		va_list args;
		va_start(args, format);
		begin(err, code_of_errno(value), format, args);
		va_end(args);
		add_errno(err, value);
	}
	errno = value;
	return false;
}

bool error_errno_as(
	struct error *err, enum error_code code, int errno_value, const char *format, ...)
{
	if (err != NULL) {
		va_list args;
		va_start(args, format);
		begin(err, code, format, args);
		va_end(args);
		add_errno(err, errno_value < 0 ? -errno_value : errno_value);
	}
	return false;
}

bool error_wrap(struct error *err, const char *format, ...)
{
	if (err != NULL) {
		char old[ERROR_MESSAGE_BYTES];
		memcpy(old, err->message, sizeof(old));
		va_list args;
		va_start(args, format);
		print(err->message, sizeof(err->message), format, args);
		va_end(args);
		append(err->message, sizeof(err->message), ": ");
		append(err->message, sizeof(err->message), old);
	}
	return false;
}

bool error_hint(struct error *err, const char *format, ...)
{
	if (err != NULL) {
		va_list args;
		va_start(args, format);
		print(err->hint, sizeof(err->hint), format, args);
		va_end(args);
	}
	return false;
}

bool error_detail(struct error *err, const char *detail)
{
	if (err != NULL) {
		err->detail[0] = '\0';
		append(err->detail, sizeof(err->detail), detail);
	}
	return false;
}

json_t *error_to_json(const struct error *err)
{
	const char *hint = err->hint[0] != '\0' ? err->hint : error_code_hint(err->code);
	json_t *data = json_object();
	json_object_set_new(data, "code", json_string(error_code_name(err->code)));
	json_object_set_new(data, "retryable", json_boolean(error_code_retryable(err->code)));
	if (hint[0] != '\0') {
		text_set(data, "hint", hint, strlen(hint));
	}
	if (err->detail[0] != '\0') {
		text_set(data, "detail", err->detail, strlen(err->detail));
	}
	json_t *object = json_object();
	json_object_set_new(object, "code", json_integer(error_code_number(err->code)));
	text_set(object, "message", err->message, strlen(err->message));
	json_object_set_new(object, "data", data);
	return object;
}

static void copy_member(char *buffer, size_t size, const json_t *object, const char *key)
{
	const char *value = json_string_value(json_object_get(object, key));
	buffer[0] = '\0';
	append(buffer, size, value != NULL ? value : "");
}

bool error_from_json(struct error *err, const json_t *object)
{
	const json_t *data = json_object_get(object, "data");
	const char *name = json_string_value(json_object_get(data, "code"));
	if (!json_is_string(json_object_get(object, "message"))) {
		return false;
	}
	enum error_code code = name != NULL ? error_code_from_name(name) : ERROR_NONE;
	err->code = code != ERROR_NONE ? code : ERROR_INTERNAL;
	copy_member(err->message, sizeof(err->message), object, "message");
	copy_member(err->detail, sizeof(err->detail), data, "detail");
	copy_member(err->hint, sizeof(err->hint), data, "hint");
	return true;
}
