#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "gpu/places.h"

#define MANIFEST_BYTES     65536
#define LAYER_MANIFESTS    "vulkan/implicit_layer.d"
#define RENDERDOC_MANIFEST LAYER_MANIFESTS "/renderdoc_capture.json"
#define LAYER_MANIFEST     "VkLayer_profd_gpu.json"
#define LAYER              "libprofd_gpu.so"
#define NOBIND             "libprofd_gpu_nobind.so"
#define GL                 "libprofd_gpu_gl.so"
#define DRIVER_MANIFESTS   "vulkan/icd.d"
#define DATA_DIRS_DEFAULT  "/usr/local/share:/usr/share"

extern char **environ;

const char *places_variable(const char *const *environment, const char *name)
{
	size_t len = strlen(name);
	const char *const *texts = environment != NULL ? environment : (const char *const *)environ;
	for (; texts != NULL && *texts != NULL; texts++) {
		if (strncmp(*texts, name, len) == 0 && (*texts)[len] == '=') {
			return *texts + len + 1;
		}
	}
	return NULL;
}

static bool join(
	char out[PLACES_PATH_BYTES], const char *folder, size_t folder_len, const char *name)
{
	int wanted = snprintf(out, PLACES_PATH_BYTES, "%.*s/%s", (int)folder_len, folder, name);
	return wanted > 0 && wanted < PLACES_PATH_BYTES;
}

/* Calls look(context, path) for name in each folder of a list with colons, until one is true. */
static bool each_folder(const char *list, const char *name,
	bool (*look)(void *context, const char *path), void *context)
{
	char path[PLACES_PATH_BYTES];
	while (list != NULL && *list != '\0') {
		size_t len = strcspn(list, ":");
		if (list[0] == '/' && join(path, list, len, name) && look(context, path)) {
			return true;
		}
		list += len + (list[len] == ':');
	}
	return false;
}

/* In the loader's order: the user's own, the system's configuration, the shared ones. */
static bool each_data_folder(const char *const *environment, const char *name,
	bool (*look)(void *context, const char *path), void *context)
{
	char home[PLACES_PATH_BYTES] = "";
	const char *own = places_variable(environment, "XDG_DATA_HOME");
	const char *user = places_variable(environment, "HOME");
	const char *shared = places_variable(environment, "XDG_DATA_DIRS");
	if ((own == NULL || *own == '\0') && user != NULL) {
		snprintf(home, sizeof(home), "%s/.local/share", user);
		own = home;
	}
	return each_folder(own, name, look, context) ||
		   each_folder("/etc/xdg:/etc", name, look, context) ||
		   each_folder(
			   shared != NULL && *shared != '\0' ? shared : DATA_DIRS_DEFAULT, name, look, context);
}

/* Owned; NULL: it is none. */
static json_t *read_manifest(const char *path)
{
	char folder[PLACES_PATH_BYTES];
	size_t len = 0;
	const char *name = strrchr(path, '/');
	if (name == NULL) {
		return NULL;
	}
	snprintf(folder, sizeof(folder), "%.*s", name == path ? 1 : (int)(name - path), path);
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char *text = fd >= 0 ? files_read(fd, name + 1, MANIFEST_BYTES, &len, NULL) : NULL;
	json_t *manifest = text != NULL ? json_loadb(text, len, 0, NULL) : NULL;
	free(text);
	if (fd >= 0) {
		close(fd);
	}
	return manifest;
}

/* The library that a layer's manifest names. With a slash in it, it is relative to the manifest; a bare name is the dynamic linker's to find. */
static bool library_of(const json_t *manifest, const char *path, char out[PLACES_PATH_BYTES])
{
	const char *library =
		json_string_value(json_object_get(json_object_get(manifest, "layer"), "library_path"));
	if (library == NULL || strchr(library, '/') == NULL) {
		return false;
	}
	return library[0] == '/' ? snprintf(out, PLACES_PATH_BYTES, "%s", library) < PLACES_PATH_BYTES
							 : join(out, path, (size_t)(strrchr(path, '/') - path), library);
}

static bool is_there(const char *path)
{
	return access(path, R_OK) == 0;
}

static bool look_for_renderdoc(void *context, const char *path)
{
	struct places *places = context;
	json_t *manifest = read_manifest(path);
	if (manifest != NULL && library_of(manifest, path, places->renderdoc) &&
		is_there(places->renderdoc)) {
		places->renderdoc_manifest = manifest;
		return true;
	}
	json_decref(manifest);
	places->renderdoc[0] = '\0';
	return false;
}

/* A file that begins as shared libraries do. */
static bool is_library(const char *path)
{
	char magic[SELFMAG] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	bool is = fd >= 0 && is_there(path) && read(fd, magic, SELFMAG) == SELFMAG &&
			  memcmp(magic, ELFMAG, SELFMAG) == 0;
	if (fd >= 0) {
		close(fd);
	}
	return is;
}

static bool look_for_library(void *context, const char *path)
{
	struct places *places = context;
	if (!is_library(path)) {
		return false;
	}
	snprintf(places->renderdoc, sizeof(places->renderdoc), "%s", path);
	return true;
}

static bool find_renderdoc(const char *const *environment, struct places *places, struct error *err)
{
	const char *given = getenv("PROFD_RENDERDOC");
	if (given != NULL && *given != '\0') {
		if (look_for_library(places, given)) {
			return true;
		}
		error_set(err, ERROR_BACKEND_UNAVAILABLE,
			"PROFD_RENDERDOC is %s, which is no shared library that can be read", given);
	} else if (each_data_folder(environment, RENDERDOC_MANIFEST, look_for_renderdoc, places) ||
			   each_folder(
				   "/usr/lib:/usr/lib/x86_64-linux-gnu:/usr/lib/aarch64-linux-gnu:/usr/lib64:"
				   "/usr/local/lib:/usr/lib/renderdoc:/usr/lib64/renderdoc",
				   "librenderdoc.so", look_for_library, places)) {
		return true;
	} else {
		error_set(err, ERROR_BACKEND_UNAVAILABLE,
			"RenderDoc is not installed: there is neither " RENDERDOC_MANIFEST
			" in the data folders, nor librenderdoc.so in the usual ones");
	}
	error_detail(err, "renderdoc_missing");
	return error_hint(err, "install the package librenderdoc (Debian, Ubuntu) or renderdoc, or set "
						   "PROFD_RENDERDOC to the path of librenderdoc.so in profd's environment");
}

/* The library beside ours, or of that name beside a file. */
static bool beside(const char *path, const char *name, char out[PLACES_PATH_BYTES])
{
	return join(out, path, (size_t)(strrchr(path, '/') - path), name) && is_there(out);
}

/* What it names is installed; before that, the library is where the manifest is. */
static bool take_layer(void *context, const char *path)
{
	struct places *places = context;
	json_t *manifest = read_manifest(path);
	bool ok = manifest != NULL &&
			  ((library_of(manifest, path, places->layer) && is_there(places->layer)) ||
				  beside(path, LAYER, places->layer)) &&
			  beside(places->layer, NOBIND, places->nobind) &&
			  beside(places->layer, GL, places->gl);
	if (!ok) {
		json_decref(manifest);
		return false;
	}
	places->layer_manifest = manifest;
	return true;
}

/* In a folder of data, as it is installed; or all of it in one. */
static bool look_for_layer(struct places *places, const char *folder)
{
	return each_folder(folder, LAYER_MANIFESTS "/" LAYER_MANIFEST, take_layer, places) ||
		   each_folder(folder, LAYER_MANIFEST, take_layer, places);
}

static bool look_beside_us(struct places *places)
{
	static const char *const folders[] = {"gpu/layer", "../daemon/gpu/layer", "../share/profd/gpu"};
	char own[PLACES_PATH_BYTES], folder[PLACES_PATH_BYTES];
	ssize_t len = readlink("/proc/self/exe", own, sizeof(own) - 1);
	own[len > 0 ? len : 0] = '\0';
	char *slash = strrchr(own, '/');
	for (size_t i = 0; slash != NULL && i < sizeof(folders) / sizeof(folders[0]); i++) {
		if (join(folder, own, (size_t)(slash - own), folders[i]) &&
			look_for_layer(places, folder)) {
			return true;
		}
	}
	return false;
}

static bool find_layer(struct places *places, struct error *err)
{
	const char *given = getenv("PROFD_GPU_LAYER");
	bool is_given = given != NULL && *given != '\0';
	if (is_given ? look_for_layer(places, given)
				 : look_beside_us(places) || look_for_layer(places, PROFD_GPU_SHARE)) {
		return true;
	}
	error_set(err, ERROR_BACKEND_UNAVAILABLE,
		"profd's Vulkan layer is not there: no " LAYER_MANIFEST " with " LAYER ", " NOBIND
		" and " GL " in %s",
		is_given ? given : PROFD_GPU_SHARE);
	error_detail(err, "layer_missing");
	return error_hint(err,
		"install profd again, built where libvulkan-dev is installed, or set PROFD_GPU_LAYER to "
		"the layer's folder in profd's environment");
}

bool places_find(const char *const *environment, struct places *places, struct error *err)
{
	*places = (struct places){0};
	if (find_layer(places, err) && find_renderdoc(environment, places, err)) {
		return true;
	}
	places_finish(places);
	return false;
}

void places_finish(struct places *places)
{
	json_decref(places->layer_manifest);
	json_decref(places->renderdoc_manifest);
	places->layer_manifest = places->renderdoc_manifest = NULL;
}

/* Drivers. */

static size_t count_files(const char *list)
{
	size_t count = 0;
	char path[PLACES_PATH_BYTES];
	while (*list != '\0') {
		size_t len = strcspn(list, ":");
		if (snprintf(path, sizeof(path), "%.*s", (int)len, list) < (int)sizeof(path)) {
			count += is_there(path);
		}
		list += len + (list[len] == ':');
	}
	return count;
}

static bool count_manifests(void *context, const char *path)
{
	size_t *count = context;
	DIR *folder = opendir(path);
	struct dirent *entry = NULL;
	while (folder != NULL && (entry = readdir(folder)) != NULL) {
		size_t len = strlen(entry->d_name);
		*count += len > 5 && strcmp(entry->d_name + len - 5, ".json") == 0;
	}
	if (folder != NULL) {
		closedir(folder);
	}
	return false;
}

size_t places_drivers(const char *const *environment, char *where, size_t size)
{
	static const char *const variables[] = {"VK_DRIVER_FILES", "VK_ICD_FILENAMES"};
	size_t count = 0;
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		const char *list = places_variable(environment, variables[i]);
		if (list != NULL && *list != '\0') {
			snprintf(where, size, "%s=%s", variables[i], list);
			return count_files(list);
		}
	}
	snprintf(where, size, "%s", DRIVER_MANIFESTS " of the data folders");
	each_data_folder(environment, DRIVER_MANIFESTS, count_manifests, &count);
	return count;
}
