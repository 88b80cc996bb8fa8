#include "gpu/words.h"

#include <stdio.h>
#include <string.h>

#include "protocol/sha256.h"

#define HASH_LEN (SHA256_HEX_BYTES - 1)

static void copy(char *to, size_t size, const char *text)
{
	snprintf(to, size, "%s", text != NULL ? text : "");
}

static bool is_token(const char *text, const char *token)
{
	unsigned char difference = 0;
	size_t len = strlen(token);
	if (text == NULL || strlen(text) != len) {
		return false;
	}
	for (size_t i = 0; i < len; i++) {
		difference |= (unsigned char)(text[i] ^ token[i]);
	}
	return difference == 0;
}

static bool take_number(
	const struct gpu_wire_message *message, const char *key, uint64_t max, uint64_t *value)
{
	uint64_t number = 0;
	if (!gpu_wire_get_number(message, key, &number) || number > max) {
		return false;
	}
	*value = number;
	return true;
}

static bool is_one_of(const char *text, const char *const *choices)
{
	while (text != NULL && *choices != NULL && strcmp(text, *choices) != 0) {
		choices++;
	}
	return text != NULL && *choices != NULL;
}

static bool take_hello(const struct words_hearer *hearer, const struct gpu_wire_message *message)
{
	static const char *const orders[] = {"above", "below", "alone", NULL};
	struct link_facts *facts = hearer->facts;
	const char *again = gpu_wire_get(message, "again");
	uint64_t pid, ppid;
	if (!is_one_of(gpu_wire_get(message, "order"), orders) ||
		!take_number(message, "pid", INT32_MAX, &pid) ||
		!take_number(message, "ppid", INT32_MAX, &ppid) ||
		(again != NULL && strcmp(again, "closed") != 0)) {
		return false;
	}
	copy(facts->exe, sizeof(facts->exe), gpu_wire_get(message, "exe"));
	copy(facts->version, sizeof(facts->version), gpu_wire_get(message, "renderdoc_api"));
	facts->is_greeted = true;
	facts->is_again = again != NULL;
	hearer->options->ops->hello(hearer->options->context, hearer->link);
	return true;
}

/* NULL: it was not told of. */
static const struct gpu_device *find_made(
	const struct link_facts *facts, const char *name, const char *uuid, uint64_t index)
{
	for (size_t i = 0; i < facts->made_count; i++) {
		const struct gpu_device *made = &facts->made[i];
		if (strcmp(made->name, name) == 0 && strcmp(made->uuid, uuid) == 0 &&
			made->index == index) {
			return made;
		}
	}
	return NULL;
}

static bool take_device(const struct words_hearer *hearer, const struct gpu_wire_message *message)
{
	static const char *const types[] = {"cpu", "discrete", "integrated", "virtual", "other", NULL};
	struct gpu_device device = {0};
	const char *uuid = gpu_wire_get(message, "uuid"), *type = gpu_wire_get(message, "type");
	if (gpu_wire_get(message, "name") == NULL || !is_one_of(type, types) || uuid == NULL ||
		strlen(uuid) != 32 || strspn(uuid, "0123456789abcdefABCDEF") != 32 ||
		!take_number(message, "index", UINT32_MAX, &device.index)) {
		return false;
	}
	copy(device.name, sizeof(device.name), gpu_wire_get(message, "name"));
	copy(device.driver, sizeof(device.driver), gpu_wire_get(message, "driver"));
	copy(device.uuid, sizeof(device.uuid), uuid);
	copy(device.type, sizeof(device.type), type);
	hearer->facts->device = device;
	hearer->facts->devices++;
	if (find_made(hearer->facts, device.name, device.uuid, device.index) == NULL &&
		hearer->facts->made_count < LIMIT_GPU_DEVICES) {
		hearer->facts->made[hearer->facts->made_count++] = device;
	}
	hearer->options->ops->device(hearer->options->context, hearer->link);
	return true;
}

static bool take_frame(const struct words_hearer *hearer, const struct gpu_wire_message *message)
{
	static const char *const boundaries[] = {"submit", "present", "label", NULL};
	uint64_t frame = 0;
	const char *by = gpu_wire_get(message, "by");
	if (!take_number(message, "n", LIMIT_INTEGER, &frame) || !is_one_of(by, boundaries)) {
		return false;
	}
	hearer->facts->has_frame = true;
	hearer->facts->frame = frame;
	copy(hearer->facts->frame_by, sizeof(hearer->facts->frame_by), by);
	hearer->options->ops->frame(hearer->options->context, hearer->link);
	return true;
}

/* What is told of the device is for the record alone; a device that was not told of before changes nothing. */
static void take_recorded(const struct words_hearer *hearer, const struct gpu_wire_message *message)
{
	uint64_t index = 0;
	const char *name = gpu_wire_get(message, "name"), *uuid = gpu_wire_get(message, "uuid");
	const struct gpu_device *made = NULL;
	if (name != NULL && uuid != NULL && take_number(message, "index", UINT32_MAX, &index)) {
		made = find_made(hearer->facts, name, uuid, index);
	}
	if (made != NULL) {
		hearer->facts->device = *made;
	}
}

static bool take_capturing(
	const struct words_hearer *hearer, const struct gpu_wire_message *message)
{
	uint64_t frame, wall_ns, mono_ns;
	if (!take_number(message, "frame", LIMIT_INTEGER, &frame) ||
		!take_number(message, "wall_ns", INT64_MAX, &wall_ns) ||
		!take_number(message, "mono_ns", INT64_MAX, &mono_ns)) {
		return false;
	}
	take_recorded(hearer, message);
	hearer->options->ops->capturing(
		hearer->options->context, hearer->link, frame, wall_ns, mono_ns);
	return true;
}

static bool take_shader(const struct words_hearer *hearer, const struct gpu_wire_message *message)
{
	static const char *const stages[] = {"vertex", "tess_control", "tess_evaluation", "geometry",
		"fragment", "compute", "task", "mesh", "other", NULL};
	struct gpu_shader shader = {.hash = gpu_wire_get(message, "hash"),
		.stage = gpu_wire_get(message, "stage"),
		.entry = gpu_wire_get(message, "entry")};
	if (shader.hash == NULL || strlen(shader.hash) != HASH_LEN ||
		strspn(shader.hash, "0123456789abcdef") != HASH_LEN || !is_one_of(shader.stage, stages) ||
		shader.entry == NULL || strlen(shader.entry) >= GPU_WIRE_ENTRY_BYTES ||
		!take_number(message, "bytes", LIMIT_INTEGER, &shader.bytes)) {
		return false;
	}
	hearer->options->ops->shader(hearer->options->context, hearer->link, &shader);
	return true;
}

static bool take_shaders(const struct words_hearer *hearer, const struct gpu_wire_message *message)
{
	uint64_t left_out;
	if (!take_number(message, "left_out", LIMIT_INTEGER, &left_out)) {
		return false;
	}
	hearer->options->ops->shaders_left_out(hearer->options->context, hearer->link, left_out);
	return true;
}

static bool take_document(const struct words_hearer *hearer, const struct gpu_wire_message *message)
{
	struct gpu_document document = {.path = gpu_wire_get(message, "path")};
	const char *by = gpu_wire_get(message, "by");
	if (document.path == NULL || !take_number(message, "bytes", INT64_MAX, &document.bytes) ||
		!take_number(message, "first", LIMIT_INTEGER, &document.first) ||
		!take_number(message, "last", LIMIT_INTEGER, &document.last) ||
		document.last < document.first ||
		(by != NULL && strcmp(by, "program") != 0 && strcmp(by, "window") != 0)) {
		return false;
	}
	document.is_open = gpu_wire_get(message, "open") != NULL;
	document.by_program = by != NULL && strcmp(by, "program") == 0;
	document.by_window = by != NULL && !document.by_program;
	hearer->options->ops->document(hearer->options->context, hearer->link, &document);
	return true;
}

static bool take_waits(const struct words_hearer *hearer, const struct gpu_wire_message *message)
{
	static const char *const places[] = {"begin", "end", NULL};
	const char *place = gpu_wire_get(message, "for"), *text = gpu_wire_get(message, "text");
	uint64_t mono_ns;
	if (text == NULL || !is_one_of(place, places) ||
		!take_number(message, "mono_ns", INT64_MAX, &mono_ns)) {
		return false;
	}
	hearer->options->ops->waits(
		hearer->options->context, hearer->link, strcmp(place, "end") == 0, mono_ns, text);
	return true;
}

static bool take_fault(const struct words_hearer *hearer, const struct gpu_wire_message *message)
{
	const char *code = gpu_wire_get(message, "code"), *text = gpu_wire_get(message, "text");
	if (code == NULL) {
		return false;
	}
	hearer->options->ops->fault(
		hearer->options->context, hearer->link, code, text != NULL ? text : "");
	return true;
}

static bool take_ask(const struct words_hearer *hearer, const struct gpu_wire_message *message)
{
	const char *label = gpu_wire_get(message, "label");
	uint64_t number = 0;
	if (label == NULL || !take_number(message, "n", LIMIT_INTEGER, &number)) {
		return false;
	}
	hearer->options->ops->ask(hearer->options->context, hearer->link, number, label);
	return true;
}

static bool take_bye(const struct words_hearer *hearer, const struct gpu_wire_message *message)
{
	(void)message;
	hearer->options->ops->bye(hearer->options->context, hearer->link);
	return true;
}

static const struct word {
	const char *word;
	bool (*take)(const struct words_hearer *hearer, const struct gpu_wire_message *message);
	const char *const keys[10]; /* those that it may have; NULL-terminated */
} words[] = {
	{"hello", take_hello,
		{"token", "pid", "ppid", "exe", "api", "order", "renderdoc", "renderdoc_api", "again"}},
	{"device", take_device, {"name", "type", "driver", "uuid", "index"}},
	{"frame", take_frame, {"n", "by"}},
	{"capturing", take_capturing, {"frame", "wall_ns", "mono_ns", "name", "uuid", "index"}},
	{"shader", take_shader, {"hash", "bytes", "stage", "entry"}},
	{"shaders", take_shaders, {"left_out"}},
	{"document", take_document, {"path", "bytes", "first", "last", "open", "by"}},
	{"waits", take_waits, {"for", "mono_ns", "text"}},
	{"fault", take_fault, {"code", "text"}},
	{"ask", take_ask, {"n", "label"}},
	{"bye", take_bye, {"why"}},
};

static bool has_known_keys(const struct word *word, const struct gpu_wire_message *message)
{
	for (size_t i = 0; i < message->count; i++) {
		if (!is_one_of(message->pairs[i].key, word->keys)) {
			return false;
		}
	}
	return true;
}

static const struct word *find_word(const char *text)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(words[i].word, text) == 0) {
			return &words[i];
		}
	}
	return NULL;
}

const char *words_take(const struct words_hearer *hearer, const struct gpu_wire_message *message)
{
	const struct word *word = find_word(message->word);
	if (word == NULL || !has_known_keys(word, message)) {
		return "it said a word or a key that is not of the wire";
	}
	if ((word->take == take_hello) == hearer->facts->is_greeted) {
		return "its line lacks what it must have, or comes out of its order";
	}
	if (word->take == take_hello &&
		!is_token(gpu_wire_get(message, "token"), hearer->options->token)) {
		return "it does not know the token";
	}
	return word->take(hearer, message)
			   ? NULL
			   : "its line lacks what it must have, or comes out of its order";
}
