#include "analyzer/export/images.h"

#include <string.h>

#include "analyzer/export/quality.h"
#include "analyzer/export/values.h"
#include "base/vec.h"

static const struct {
	const char *name, *fix;
} LACKS[IMAGE_LACKS] = {
	[IMAGE_NOT_LOOKED_INTO] = {"not_named",
		"no file was looked into, because making names had failed (warnings): make them with "
		"profctl symbolize CAPTURE"},
	[IMAGE_IS_GENERATED] = {"generated_code",
		"code that was made while the program ran has no file, and the maps that run times can "
		"write are not "
		"read yet: run it without its compiler (node --jitless, java -Xint)"},
	[IMAGE_NOT_OPENED] = {"file_not_opened",
		"the file could not be opened when it was first seen: make it readable for the user of "
		"profd "
		"(chmod a+r), do not delete it while the program runs, or run profd as root"},
	[IMAGE_DELETED] = {"file_deleted", "the file had been deleted when it was first seen: start to "
									   "profile before that (profctl record, "
									   "or launch --profile)"},
	[IMAGE_REPLACED] = {"file_replaced",
		"the file was replaced or overwritten since it was mapped: record again, and install with "
		"mv or install(1), not with cp over it"},
	[IMAGE_UNREADABLE] = {"file_unreadable", "the file is broken, or of a format that profd does "
											 "not read: readelf -h says what is wrong; "
											 "build it anew"},
	[IMAGE_STRIPPED_SYSTEM] = {"stripped_system", "the system's files come without names for what "
												  "they do not export, and separate debug files "
												  "are not read yet: nothing can be done about it"},
	[IMAGE_STRIPPED] = {"stripped",
		"the file is stripped, and separate debug files are not read yet: link it without -s and "
		"install it without strip (meson: -Dstrip=false, cargo: strip = false in the profile)"},
};

static enum image_lack not_opened(const struct model_image *image)
{
	return image->access == JOURNAL_IMAGE_DELETED    ? IMAGE_DELETED
		   : image->access == JOURNAL_IMAGE_REPLACED ? IMAGE_REPLACED
													 : IMAGE_NOT_OPENED;
}

/* Files of packages are nobody's to link anew; what is below /usr/local is. */
static bool is_of_system(const struct json_input *input, uint32_t index)
{
	static const char *const folders[] = {
		"/usr/lib", "/usr/bin/", "/usr/sbin/", "/lib", "/bin/", "/sbin/"};
	struct bytes_text path = strings_text(input->strings, input->model->images.items[index].path);

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		size_t len = strlen(folders[i]);

		if (path.len > len && memcmp(path.data, folders[i], len) == 0) {
			return true;
		}
	}
	return false;
}

enum image_lack image_lack_of(const struct json_input *input, uint32_t index)
{
	uint64_t kind = input->model->images.items[index].kind;

	if (input->attribution->images[index].unnamed == 0 || kind == JOURNAL_IMAGE_VDSO) {
		return IMAGE_LACKS_NOTHING; /* the kernel's own has the names that it has */
	}
	if (!symbols_look_into_images(input->symbols)) {
		return IMAGE_NOT_LOOKED_INTO;
	}
	if (kind == JOURNAL_IMAGE_ANONYMOUS || kind == JOURNAL_IMAGE_UNKNOWN) {
		return IMAGE_IS_GENERATED; /* also on a heap or stack */
	}
	switch (symbols_state(input->symbols, index)) {
	case SYMBOLS_NOT_OPENED:
		return not_opened(&input->model->images.items[index]);
	case SYMBOLS_CHANGED:
		return IMAGE_REPLACED;
	case SYMBOLS_UNREADABLE:
		return IMAGE_UNREADABLE;
	case SYMBOLS_NONE:
	case SYMBOLS_DYNSYM:
		return is_of_system(input, index) ? IMAGE_STRIPPED_SYSTEM : IMAGE_STRIPPED;
	default:
		return IMAGE_LACKS_NOTHING;
	}
}

const char *image_fix(enum image_lack lack)
{
	return LACKS[lack].fix;
}

const char *image_lack_name(enum image_lack lack)
{
	return LACKS[lack].name;
}

static const char *kind_name(uint64_t kind)
{
	static const char *const names[] = {
		"unknown", "elf", "macho", "dyld_cache", "vdso", "kernel", "anonymous"};

	return kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "unknown";
}

static const char *symbols_name(enum symbols_state state)
{
	return state == SYMBOLS_SYMTAB ? "symtab" : state == SYMBOLS_DYNSYM ? "dynsym" : "none";
}

static bool set_hex(json_t *object, const char *name, const uint8_t *bytes, size_t len)
{
	static const char digits[] = "0123456789abcdef";
	char hex[MODEL_BUILD_ID_BYTES * 2 + 1];

	for (size_t i = 0; i < len; i++) {
		hex[i * 2] = digits[bytes[i] >> 4];
		hex[i * 2 + 1] = digits[bytes[i] & 15];
	}
	hex[len * 2] = '\0';
	return value_set(object, name, json_string(hex));
}

static bool set_build_id(const struct json_input *input, json_t *object, uint32_t index)
{
	const struct model_image *image = &input->model->images.items[index];
	size_t len = image->build_id_bytes;
	const uint8_t *id = len > 0 ? image->build_id : symbols_build_id(input->symbols, index, &len);

	return id == NULL || set_hex(object, "build_id", id, len);
}

/* Of the samples with a frame in it, and of those whose stacks end in it. */
static bool set_stacks(const struct json_input *input, json_t *object, uint32_t index)
{
	const struct attribution_image *counts = &input->attribution->images[index];
	const char *fix = quality_image_fix(input, index);
	json_t *stacks = json_pack("{s:o,s:o,s:o,s:o,s:o,s:o}", "complete",
		value_share(counts->complete, counts->samples), "stitched",
		value_share(counts->stitched, counts->samples), "truncated",
		value_share(counts->truncated, counts->samples), "broken_in", value_number(counts->broken),
		"no_rule_in", value_number(counts->unruled), "unknown_in", value_number(counts->open));

	return value_set(object, "stacks", stacks) &&
		   (fix == NULL || value_set(stacks, "fix", json_string(fix)));
}

static json_t *image(const struct json_input *input, uint32_t index)
{
	const struct model_image *item = &input->model->images.items[index];
	const struct attribution_image *counts = &input->attribution->images[index];
	const char *fix = image_fix(image_lack_of(input, index));
	json_t *object = json_pack("{s:s,s:o,s:o,s:o,s:o,s:b,s:s,s:o}", "kind", kind_name(item->kind),
		"samples", value_number(counts->samples), "share",
		value_share(counts->samples, input->attribution->samples), "self",
		value_number(counts->self), "frames", value_number(counts->frames), "opened",
		(int)(item->access == JOURNAL_IMAGE_OPENED), "symbols",
		symbols_name(symbols_state(input->symbols, index)), "unsymbolized",
		value_share(counts->unnamed, counts->frames));

	if (object == NULL || !value_set_text(object, "path", input->strings, item->path) ||
		!set_build_id(input, object, index) || !set_stacks(input, object, index) ||
		(fix != NULL && !value_set(object, "fix", json_string(fix)))) {
		json_decref(object);
		return NULL;
	}
	return object;
}

json_t *images_json(const struct json_input *input)
{
	VEC(struct value_ranked) ranked = {0};
	bool done = true;

	for (size_t i = 0; done && i < input->model->images.len; i++) {
		const struct value_ranked item = {input->attribution->images[i].samples, (uint32_t)i};

		done = item.samples == 0 || VEC_PUSH(&ranked, item);
	}
	value_rank(ranked.items, ranked.len);
	json_t *array = done ? json_array() : NULL;

	for (size_t i = 0; array != NULL && i < ranked.len; i++) {
		if (json_array_append_new(array, image(input, ranked.items[i].index)) != 0) {
			json_decref(array);
			array = NULL;
		}
	}
	VEC_FINISH(&ranked);
	return array;
}
