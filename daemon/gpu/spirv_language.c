#include "gpu/spirv_language.h"

#include <string.h>

/* Source languages by number (section 3.2), and what their files end in. */
static const struct {
	const char *name, *extension;
} languages[] = {
	[1] = {"essl", "glsl"},
	[2] = {"glsl", "glsl"},
	[3] = {"opencl_c", "txt"},
	[4] = {"opencl_cpp", "txt"},
	[5] = {"hlsl", "hlsl"},
	[6] = {"cpp_for_opencl", "txt"},
	[7] = {"sycl", "txt"},
	[8] = {"hero_c", "txt"},
	[9] = {"nzsl", "txt"},
	[10] = {"wgsl", "wgsl"},
	[11] = {"slang", "slang"},
	[12] = {"zig", "txt"},
};
#define LANGUAGES (sizeof(languages) / sizeof(languages[0]))

static bool ends_in(struct bytes_text name, const char *extension)
{
	size_t len = strlen(extension);
	return name.len > len && name.data[name.len - len - 1] == '.' &&
		   memcmp(name.data + name.len - len, extension, len) == 0;
}

static bool begins_with(
	const struct spirv *spirv, const struct spirv_source *source, const char *text)
{
	const struct spirv_piece *piece = source->count > 0 ? &spirv->pieces[source->first] : NULL;
	size_t len = strlen(text);
	return piece != NULL && piece->text.len >= len && memcmp(piece->text.data, text, len) == 0;
}

const char *spirv_language(const struct spirv *spirv, const struct spirv_source *source)
{
	if (source->language < LANGUAGES && languages[source->language].name != NULL) {
		return languages[source->language].name;
	}
	for (size_t i = LANGUAGES; i > 0; i--) {
		const char *name = languages[i - 1].name;
		if (name != NULL && ends_in(source->name, name)) {
			return name;
		}
	}
	/* naga and tint knew WGSL before the specification had a number for it. */
	bool is_of_wgsl = spirv->generator == SPIRV_BY_NAGA || spirv->generator == SPIRV_BY_TINT;
	return is_of_wgsl && !begins_with(spirv, source, "#version") ? "wgsl" : NULL;
}

const char *spirv_extension(const char *language)
{
	for (size_t i = 0; language != NULL && i < LANGUAGES; i++) {
		if (languages[i].name != NULL && strcmp(languages[i].name, language) == 0) {
			return languages[i].extension;
		}
	}
	return "txt";
}
