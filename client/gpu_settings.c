#include "client/gpu_settings.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "client/json_file.h"
#include "client/reply.h"
#include "protocol/limits.h"
#include "protocol/text.h"

#define SHOWN_BYTES  200 /* of a wrong value */
#define WHY_BYTES    512
#define SIMPLE_BYTES 64 /* longer than each of ours */

extern char **environ;

static const struct {
	const char *member, *variable, *option;
} names[GPU_SETTINGS] = {
	[GPU_ENABLE] = {"enable_gpu_tracing", "PROFD_ENABLE_GPU_TRACING", NULL},
	[GPU_START] = {"gpu_trace_start_frame", "PROFD_GPU_TRACE_START_FRAME",
		"--gpu-trace-start-frame"},
	[GPU_END] = {"gpu_trace_end_frame", "PROFD_GPU_TRACE_END_FRAME", "--gpu-trace-end-frame"},
	[GPU_OUTPUT_DIR] = {"gpu_trace_output_directory", "PROFD_GPU_TRACE_OUTPUT_DIRECTORY",
		"--gpu-trace-output-directory"},
	[GPU_DEVICE] = {"gpu_trace_device", "PROFD_GPU_TRACE_DEVICE", "--device"},
};

/* Where a value stands, and what it is. */
struct given {
	enum gpu_source source;
	const char *name, *file; /* file: NULL, or the file in which the name is */
	bool is_text;            /* any text, which is to become what the setting is */
	json_t *value;           /* borrowed */
};

static bool out_of_memory(void)
{
	fputs("profctl: out of memory\n", stderr);
	return false;
}

static void begin(const struct given *given)
{
	fprintf(stderr, "profctl: %s", given->name);
	if (given->file != NULL) {
		fputs(" in ", stderr);
		reply_print(stderr, given->file, 0);
	}
	char *value = json_dumps(given->value, JSON_ENCODE_ANY | JSON_COMPACT);
	size_t len = value != NULL ? strlen(value) : 0;
	bool is_long = len > SHOWN_BYTES;
	if (is_long) {
		value[text_cut(value, SHOWN_BYTES)] = '\0';
	}
	fputs(" is ", stderr);
	reply_print(stderr, value, 0);
	fputs(is_long ? "…: " : ": ", stderr);
	free(value);
}

/* NULL, so that `return wrong(…)` reads well. */
static json_t *wrong(const struct given *given, const char *what)
{
	begin(given);
	fprintf(stderr, "%s\n", what);
	return NULL;
}

static json_t *read_boolean(const struct given *given)
{
	static const char *const words[] = {
		"false", "true", "0", "1", "no", "yes", "off", "on"}; /* by turns */
	if (!given->is_text) {
		return json_is_boolean(given->value) ? json_incref(given->value)
											 : wrong(given, "true or false is needed");
	}
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcasecmp(json_string_value(given->value), words[i]) == 0) {
			return json_boolean(i % 2 == 1);
		}
	}
	return wrong(given, "true or false (1 or 0, yes or no, on or off) is needed");
}

static json_t *read_frame(const struct given *given)
{
	char need[80];
	json_int_t number = json_is_integer(given->value) ? json_integer_value(given->value) : -1;
	const char *text = given->is_text ? json_string_value(given->value) : "";
	if (text[0] >= '0' && text[0] <= '9') {
		char *end = NULL;
		errno = 0;
		number = strtoll(text, &end, 10);
		number = errno == 0 && *end == '\0' ? number : -1;
	}
	if (number >= 0 && number <= LIMIT_INTEGER) {
		return json_integer(number);
	}
	snprintf(need, sizeof(need), "a frame's number, from 0 to %lld, is needed",
		(long long)LIMIT_INTEGER);
	return wrong(given, need);
}

/* The folder as an absolute path: the daemon has another current folder. */
static json_t *read_folder(const struct given *given)
{
	const char *path = json_string_value(given->value);
	if (path == NULL || path[0] == '\0') {
		return wrong(given, "a folder's path is needed");
	}
	char *full = realpath(path, NULL);
	if (full == NULL) {
		begin(given);
		fprintf(stderr, "%s (make it with mkdir -p, or name one that is there)\n", strerror(errno));
		return NULL;
	}
	json_t *folder = json_string(full);
	free(full);
	return folder != NULL ? folder : wrong(given, "it is not UTF-8 (profd takes no other text)");
}

static json_t *read_device(const struct given *given)
{
	if (json_is_integer(given->value) && json_integer_value(given->value) >= 0) {
		return json_sprintf("%" JSON_INTEGER_FORMAT, json_integer_value(given->value));
	}
	return json_string_length(given->value) > 0
			   ? json_incref(given->value)
			   : wrong(given, "a GPU's name, index or uuid is needed");
}

static json_t *(*const readers[GPU_SETTINGS])(const struct given *given) = {
	[GPU_ENABLE] = read_boolean,
	[GPU_START] = read_frame,
	[GPU_END] = read_frame,
	[GPU_OUTPUT_DIR] = read_folder,
	[GPU_DEVICE] = read_device,
};

static bool set(struct gpu_settings *settings, enum gpu_setting setting, const struct given *given)
{
	json_t *value = readers[setting](given);
	char *name = NULL;
	if (value == NULL) {
		return false; /* told */
	}
	if (asprintf(&name, "%s%s%s", given->name, given->file != NULL ? " in " : "",
			given->file != NULL ? given->file : "") < 0) {
		json_decref(value);
		return out_of_memory();
	}
	json_decref(settings->values[setting]);
	free(settings->names[setting]);
	settings->values[setting] = value;
	settings->names[setting] = name;
	settings->sources[setting] = given->source;
	return true;
}

static bool set_text(struct gpu_settings *settings, enum gpu_setting setting,
	enum gpu_source source, const char *name, const char *text)
{
	json_t *value = text_json(text, strlen(text));
	if (value == NULL) {
		return out_of_memory();
	}
	const struct given given = {.source = source, .name = name, .is_text = true, .value = value};
	if (!text_is_utf8(text, strlen(text))) {
		wrong(&given, "it is not UTF-8 (profd takes no other text)");
		json_decref(value);
		return false;
	}
	bool ok = set(settings, setting, &given);
	json_decref(value);
	return ok;
}

bool gpu_settings_option(struct gpu_settings *settings, enum gpu_setting setting, const char *text)
{
	return set_text(settings, setting, GPU_OPTION, names[setting].option, text);
}

/* Letters and digits alone, in lower case: as "gputracestartframe" all ways to write it are one. */
static void simplify(const char *name, char *simple, size_t size)
{
	size_t len = 0;
	for (; *name != '\0' && len + 1 < size; name++) {
		if (isalnum((unsigned char)*name)) {
			simple[len++] = (char)tolower((unsigned char)*name);
		}
	}
	simple[len] = '\0';
}

static bool begins_with(const char *text, const char *beginning)
{
	return strncmp(text, beginning, strlen(beginning)) == 0;
}

/* Of a member, or a variable without its PROFD_. */
static bool looks_like_ours(const char *simple)
{
	return begins_with(simple, "gputrace") || begins_with(simple, "gputracing") ||
		   begins_with(simple, "enablegputrac");
}

/* In the environment what begins with PROFD is nobody else's. */
static bool is_unknown_variable(const char *name)
{
	char simple[SIMPLE_BYTES];
	for (size_t i = 0; i < GPU_SETTINGS; i++) {
		if (strcmp(name, names[i].variable) == 0) {
			return false;
		}
	}
	simplify(name, simple, sizeof(simple));
	return begins_with(simple, "profd") &&
		   (looks_like_ours(simple + 5) || strstr(simple, "enablegpu") != NULL ||
			   strstr(simple, "startframe") != NULL || strstr(simple, "endframe") != NULL ||
			   strstr(simple, "outputdir") != NULL);
}

static bool refuse_unknown(const char *where, const char *name, bool is_variable)
{
	fputs("profctl: ", stderr);
	reply_print(stderr, name, 0);
	fputs(" in ", stderr);
	reply_print(stderr, where, 0);
	fputs(" is no setting; those of GPU traces are", stderr);
	for (size_t i = 0; i < GPU_SETTINGS; i++) {
		fprintf(
			stderr, "%s %s", i > 0 ? "," : "", is_variable ? names[i].variable : names[i].member);
	}
	fputc('\n', stderr);
	return false;
}

static bool check_variables(void)
{
	for (char **text = environ; *text != NULL; text++) {
		const char *equals = strchr(*text, '=');
		if (equals == NULL || equals[1] == '\0') {
			continue;
		}
		char *name = strndup(*text, (size_t)(equals - *text));
		bool ok = name == NULL || !is_unknown_variable(name) ||
				  refuse_unknown("the environment", name, true);
		free(name);
		if (!ok) {
			return false;
		}
	}
	return true;
}

bool gpu_settings_environment(struct gpu_settings *settings)
{
	for (size_t i = 0; i < GPU_SETTINGS; i++) {
		const char *text = getenv(names[i].variable);
		if (settings->values[i] == NULL && text != NULL && text[0] != '\0' &&
			!set_text(settings, (enum gpu_setting)i, GPU_ENVIRONMENT, names[i].variable, text)) {
			return false;
		}
	}
	return check_variables();
}

static bool set_member(
	struct gpu_settings *settings, const char *path, const char *name, json_t *value)
{
	char simple[SIMPLE_BYTES];
	for (size_t i = 0; i < GPU_SETTINGS; i++) {
		const struct given given = {
			.source = GPU_FILE, .name = names[i].member, .file = path, .value = value};
		if (strcmp(name, names[i].member) == 0) {
			return settings->values[i] != NULL || set(settings, (enum gpu_setting)i, &given);
		}
	}
	simplify(name, simple, sizeof(simple));
	return !looks_like_ours(simple) || refuse_unknown(path, name, false);
}

static void tell_no_settings(const char *path, const char *why, bool is_read)
{
	fputs("profctl: settings file ", stderr);
	reply_print(stderr, path, 0);
	fputs(": ", stderr);
	reply_print(stderr, why, 0);
	fputs(is_read ? " (a JSON object like {\"gpu_trace_start_frame\": 2} is needed)\n" : "\n",
		stderr);
}

bool gpu_settings_file(struct gpu_settings *settings, const char *path)
{
	char why[WHY_BYTES];
	bool is_read = false;
	json_t *file = json_file_object(path, &is_read, why, sizeof(why));
	bool ok = file != NULL;
	if (!ok) {
		tell_no_settings(path, why, is_read);
	}
	const char *name;
	json_t *value;
	json_object_foreach(file, name, value)
	{
		ok = ok && set_member(settings, path, name, value);
	}
	json_decref(file);
	return ok;
}

static void forget(struct gpu_settings *settings, enum gpu_setting setting)
{
	json_decref(settings->values[setting]);
	free(settings->names[setting]);
	settings->values[setting] = NULL;
	settings->names[setting] = NULL;
}

/* Frames that no option asks for give way to another kind of range. */
static bool choose_range(struct gpu_settings *settings)
{
	for (enum gpu_setting i = GPU_START; i <= GPU_END; i++) {
		if (settings->values[i] != NULL && settings->sources[i] == GPU_OPTION) {
			fprintf(stderr, "profctl: %s does not go with --frames or --duration: one is needed\n",
				names[i].option);
			return false;
		}
		forget(settings, i);
	}
	return true;
}

static bool check_frames(struct gpu_settings *settings)
{
	json_int_t start = json_integer_value(settings->values[GPU_START]);
	json_int_t end = json_integer_value(settings->values[GPU_END]);
	if (settings->values[GPU_END] == NULL) {
		return true;
	}
	if (settings->values[GPU_START] == NULL) {
		fprintf(stderr, "profctl: %s is %lld, without a first frame (%s is needed)\n",
			settings->names[GPU_END], (long long)end, names[GPU_START].option);
		return false;
	}
	if (end < start && settings->sources[GPU_START] < settings->sources[GPU_END]) {
		forget(settings, GPU_END);
	} else if (end < start) {
		fprintf(stderr,
			"profctl: %s is %lld, before %s, which is %lld (both are included; leave the end out "
			"for one frame)\n",
			settings->names[GPU_END], (long long)end, settings->names[GPU_START], (long long)start);
		return false;
	}
	return true;
}

bool gpu_settings_check(struct gpu_settings *settings, bool has_range)
{
	return has_range ? choose_range(settings) : check_frames(settings);
}

bool gpu_settings_is_enabled(const struct gpu_settings *settings)
{
	return !json_is_false(settings->values[GPU_ENABLE]);
}

void gpu_settings_finish(struct gpu_settings *settings)
{
	for (enum gpu_setting i = 0; i < GPU_SETTINGS; i++) {
		forget(settings, i);
	}
}
