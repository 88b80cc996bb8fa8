#include "capture/trace_shaders.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/files.h"
#include "base/vec.h"
#include "gpu/spirv.h"
#include "gpu/spirv_language.h"
#include "protocol/gpu_wire.h"
#include "protocol/limits.h"
#include "protocol/names.h"
#include "protocol/sha256.h"
#include "protocol/text.h"

#define TEMPORARY_FOLDER ARTIFACT_DOCUMENT_PREFIX GPU_WIRE_SHADERS_FOLDER
#define NAME_BYTES       512 /* of a name that is listed */
#define FILE_BYTES       (SHA256_HEX_BYTES + 16)

struct module {
	char hash[SHA256_HEX_BYTES];
	uint64_t bytes;
	json_t *uses; /* owned: [{stage, entry}] */
};

struct trace_shaders {
	VEC(struct module) modules;
	size_t uses;
	uint64_t left_out;
};

/* What is at work in a worker. */
struct taking {
	int from_fd, to_fd; /* owned; -1 */
	int folder_fd;      /* the capture's */
	uint64_t bytes;     /* that were read */
	json_t *list;       /* owned */
	struct trace_shaders_counts *counts;
};

struct trace_shaders *trace_shaders_create(void)
{
	return calloc(1, sizeof(struct trace_shaders));
}

void trace_shaders_destroy(struct trace_shaders *shaders)
{
	if (shaders == NULL) {
		return;
	}
	for (size_t i = 0; i < shaders->modules.len; i++) {
		json_decref(shaders->modules.items[i].uses);
	}
	VEC_FINISH(&shaders->modules);
	free(shaders);
}

/* NULL: memory is out. */
static struct module *find_or_add(struct trace_shaders *shaders, const struct gpu_shader *shader)
{
	for (size_t i = shaders->modules.len; i > 0; i--) {
		if (strcmp(shaders->modules.items[i - 1].hash, shader->hash) == 0) {
			return &shaders->modules.items[i - 1];
		}
	}
	struct module module = {.bytes = shader->bytes, .uses = json_array()};
	snprintf(module.hash, sizeof(module.hash), "%s", shader->hash);
	if (module.uses == NULL || !VEC_PUSH(&shaders->modules, module)) {
		json_decref(module.uses);
		return NULL;
	}
	return &shaders->modules.items[shaders->modules.len - 1];
}

void trace_shaders_add(struct trace_shaders *shaders, const struct gpu_shader *shader)
{
	struct module *module = shaders->uses < GPU_WIRE_SHADERS ? find_or_add(shaders, shader) : NULL;
	json_t *use = json_object();
	if (module == NULL) {
		shaders->left_out++;
		json_decref(use);
		return;
	}
	shaders->uses++;
	text_set(use, "stage", shader->stage, strlen(shader->stage));
	text_set(use, "entry", shader->entry, strlen(shader->entry));
	json_array_append_new(module->uses, use);
}

void trace_shaders_add_found(struct trace_shaders *shaders, const char *hash, uint64_t bytes)
{
	struct gpu_shader shader = {.hash = hash, .bytes = bytes};
	if (shaders->modules.len == GPU_WIRE_SHADERS || find_or_add(shaders, &shader) == NULL) {
		shaders->left_out++;
	}
}

void trace_shaders_leave_out(struct trace_shaders *shaders, uint64_t count)
{
	shaders->left_out += count;
}

/* Listing. */

static void set_name(json_t *object, const char *key, struct bytes_text name)
{
	if (name.len == 0) {
		json_object_set_new(object, key, json_null());
	} else {
		text_set(object, key, name.data,
			name.len > NAME_BYTES ? text_cut(name.data, NAME_BYTES) : name.len);
	}
}

static json_t *list_entries(const struct spirv *spirv)
{
	json_t *list = json_array();
	for (size_t i = 0; i < spirv->entry_count; i++) {
		json_t *entry = json_object();
		json_object_set_new(entry, "stage", json_string(spirv->entries[i].stage));
		set_name(entry, "name", spirv->entries[i].name);
		json_array_append_new(list, entry);
	}
	return list;
}

static void set_path(json_t *object, const char *key, const char *file)
{
	char path[sizeof(ARTIFACT_SHADERS_FOLDER) + FILE_BYTES];
	snprintf(path, sizeof(path), "%s/%s", ARTIFACT_SHADERS_FOLDER, file);
	json_object_set_new(object, key, json_string(path));
}

/* A module as the list has it, without its sources. */
static json_t *describe(const struct module *module, const struct spirv *spirv, const char *file)
{
	char version[32];
	json_t *object = json_object();
	snprintf(
		version, sizeof(version), "%u.%u", spirv->version >> 16 & 0xff, spirv->version >> 8 & 0xff);
	json_object_set_new(object, "hash", json_string(module->hash));
	json_object_set_new(object, "bytes", json_integer((json_int_t)module->bytes));
	set_path(object, "path", file);
	json_object_set_new(object, "spirv_version", json_string(version));
	json_object_set_new(object, "generator", json_integer(spirv->generator));
	json_object_set(object, "used", module->uses);
	json_object_set_new(object, "entry_points", list_entries(spirv));
	json_object_set_new(object, "line_records", json_integer((json_int_t)spirv->lines));
	return object;
}

/* Taking. */

/* All or nothing of a file. */
static bool write_file(int folder_fd, const char *name, const struct spirv_piece *pieces,
	size_t count, struct error *err)
{
	int fd = files_create(folder_fd, name, err);
	bool ok = fd >= 0;
	for (size_t i = 0; ok && i < count; i++) {
		ok = files_write_all(fd, pieces[i].text.data, pieces[i].text.len, NULL, err);
	}
	ok = ok && files_sync(fd, err);
	if (fd >= 0) {
		close(fd);
	}
	if (fd >= 0 && !ok) {
		files_remove(folder_fd, name, NULL);
	}
	return ok;
}

/* HASH.wgsl, HASH-1.wgsl, …. */
static bool take_source(struct taking *taking, const struct module *module,
	const struct spirv *spirv, size_t i, json_t *list, struct error *err)
{
	char file[FILE_BYTES], number[16] = "";
	const struct spirv_source *source = &spirv->sources[i];
	const char *language = spirv_language(spirv, source);
	if (json_array_size(list) > 0) {
		snprintf(number, sizeof(number), "-%zu", json_array_size(list));
	}
	snprintf(file, sizeof(file), "%s%s.%s", module->hash, number, spirv_extension(language));
	if (!write_file(taking->to_fd, file, spirv->pieces + source->first, source->count, err)) {
		return false;
	}
	json_t *object = json_object();
	json_object_set_new(object, "language", language != NULL ? json_string(language) : json_null());
	set_name(object, "file", source->name);
	json_object_set_new(object, "bytes", json_integer((json_int_t)source->bytes));
	set_path(object, "path", file);
	json_array_append_new(list, object);
	return true;
}

/* NULL: err, and nothing of them is there. */
static json_t *take_sources(struct taking *taking, const struct module *module,
	const struct spirv *spirv, struct error *err)
{
	json_t *list = json_array();
	bool ok = true;
	for (size_t i = 0; ok && i < spirv->source_count; i++) {
		ok = spirv->sources[i].bytes == 0 || take_source(taking, module, spirv, i, list, err);
	}
	for (size_t i = 0; !ok && i < json_array_size(list); i++) {
		const char *path = json_string_value(json_object_get(json_array_get(list, i), "path"));
		files_remove(taking->to_fd, strrchr(path, '/') + 1, NULL);
	}
	if (!ok) {
		json_decref(list);
	}
	return ok ? list : NULL;
}

static const struct {
	uint16_t generator; /* 0: any other */
	const char *what;
} switches[] = {
	{SPIRV_BY_NAGA, "wgpu: InstanceFlags::DEBUG (wgpu-native: WGPUInstanceFlag_Debug; wgpu-py: "
					"set_instance_extras(flags=[\"Debug\"]))"},
	{SPIRV_BY_TINT, "Dawn: the toggle dump_shaders prints the WGSL"},
	{SPIRV_BY_GLSLANG, "glslangValidator: -g or -gVS"},
	{SPIRV_BY_SHADERC, "glslc: -g"},
	{SPIRV_BY_DXC, "dxc: -fspv-debug=vulkan-with-source"},
	{0, "other compilers: the switch that adds debug information to SPIR-V"},
};
#define SWITCHES (sizeof(switches) / sizeof(switches[0]))

static void count(struct trace_shaders_counts *counts, const struct spirv *spirv)
{
	size_t i = 0;
	while (switches[i].generator != 0 && switches[i].generator != spirv->generator) {
		i++;
	}
	counts->total++;
	counts->with_lines += spirv->lines > 0;
	if (spirv_first_source(spirv) != NULL) {
		counts->with_source++;
	} else {
		counts->sourceless |= UINT32_C(1) << i;
	}
}

/* The module's bytes, which have been read once and for all. */
static bool keep(struct taking *taking, const struct module *module, const char *bytes,
	const struct spirv *spirv, struct error *err)
{
	char file[FILE_BYTES];
	struct spirv_piece whole = {.text = {bytes, (size_t)module->bytes}};
	if (taking->to_fd < 0) {
		taking->to_fd = files_make_folder(taking->folder_fd, ARTIFACT_SHADERS_FOLDER, err);
	}
	snprintf(file, sizeof(file), "%s" GPU_WIRE_SHADERS_SUFFIX, module->hash);
	if (taking->to_fd < 0 || !write_file(taking->to_fd, file, &whole, 1, err)) {
		return false;
	}
	json_t *sources = take_sources(taking, module, spirv, err);
	if (sources == NULL) {
		files_remove(taking->to_fd, file, NULL);
		return false;
	}
	json_t *object = describe(module, spirv, file);
	json_object_set_new(object, "sources", sources);
	json_array_append_new(taking->list, object);
	count(taking->counts, spirv);
	return true;
}

static bool check(const struct module *module, const char *bytes, size_t len, struct error *err)
{
	char hash[SHA256_HEX_BYTES];
	if (len != module->bytes) {
		return error_set(
			err, ERROR_IO, "it has %zu bytes, %" PRIu64 " were told", len, module->bytes);
	}
	sha256_hex(bytes, len, hash);
	return strcmp(hash, module->hash) == 0 || error_set(err, ERROR_IO, "its hash is %.16s…", hash);
}

static bool take_module(struct taking *taking, const struct module *module, struct error *err)
{
	char file[FILE_BYTES];
	size_t len = 0;
	struct spirv spirv;
	uint64_t left = LIMIT_GPU_SHADERS_BYTES - taking->bytes;
	size_t max = left < LIMIT_GPU_SHADER_BYTES ? (size_t)left : LIMIT_GPU_SHADER_BYTES;
	if (taking->from_fd < 0) {
		return error_set(err, ERROR_IO, "its folder is not there");
	}
	snprintf(file, sizeof(file), "%s" GPU_WIRE_SHADERS_SUFFIX, module->hash);
	char *bytes = files_read(taking->from_fd, file, max, &len, err);
	if (bytes == NULL) {
		return false;
	}
	taking->bytes += len;
	bool ok = check(module, bytes, len, err) && spirv_read(bytes, len, &spirv, err);
	if (ok) {
		ok = keep(taking, module, bytes, &spirv, err);
		spirv_finish(&spirv);
	}
	free(bytes);
	return ok;
}

static void leave_out(
	struct trace_shaders_counts *counts, const char *hash, const struct error *err)
{
	if (counts->problem[0] == '\0') {
		snprintf(counts->problem, sizeof(counts->problem), "%.12s…: %.200s", hash, err->message);
	}
	counts->left_out++;
}

static bool write_list(const struct taking *taking, struct error *err)
{
	json_t *document = json_pack("{s:s, s:i, s:I, s:O}", "format", "profd-shaders", "version", 1,
		"left_out", (json_int_t)taking->counts->left_out, "shaders", taking->list);
	char *text = document != NULL ? json_dumps(document, JSON_INDENT(1)) : NULL;
	bool ok =
		text != NULL || error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for " ARTIFACT_SHADERS);
	if (ok) {
		ok = files_sync(taking->to_fd, err) &&
			 files_replace(taking->folder_fd, ARTIFACT_SHADERS, text, strlen(text), err);
		taking->counts->list_bytes = ok ? strlen(text) : 0;
	}
	free(text);
	json_decref(document);
	return ok;
}

/* The folder of its own is opened: no link is followed. -1: there is none. */
static int open_temporary(int folder_fd)
{
	return openat(folder_fd, TEMPORARY_FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Nobody would know what the modules are. */
static void give_up(struct trace_shaders_counts *counts, const struct error *err)
{
	uint64_t left_out = counts->left_out + counts->total;
	*counts = (struct trace_shaders_counts){.left_out = left_out};
	snprintf(counts->problem, sizeof(counts->problem), "%.250s", err->message);
}

void trace_shaders_take(
	struct trace_shaders *shaders, int folder_fd, struct trace_shaders_counts *counts)
{
	struct error err = {0};
	struct taking taking = {.from_fd = open_temporary(folder_fd),
		.to_fd = -1,
		.folder_fd = folder_fd,
		.list = json_array(),
		.counts = counts};
	*counts = (struct trace_shaders_counts){.left_out = shaders->left_out};
	for (size_t i = 0; taking.list != NULL && i < shaders->modules.len; i++) {
		err = (struct error){0};
		if (!take_module(&taking, &shaders->modules.items[i], &err)) {
			leave_out(counts, shaders->modules.items[i].hash, &err);
		}
	}
	if (counts->total > 0 && !write_list(&taking, &err)) {
		give_up(counts, &err);
	}
	json_decref(taking.list);
	if (taking.from_fd >= 0) {
		close(taking.from_fd);
	}
	if (taking.to_fd >= 0) {
		close(taking.to_fd);
	}
}

void trace_shaders_hint(const struct trace_shaders_counts *counts, char *out, size_t size)
{
	size_t len = 0;
	out[0] = '\0';
	for (size_t i = 0; i < SWITCHES; i++) {
		if ((counts->sourceless >> i & 1) != 0 && len < size) {
			len += (size_t)snprintf(
				out + len, size - len, "%s%s", len > 0 ? "; " : "", switches[i].what);
		}
	}
}
