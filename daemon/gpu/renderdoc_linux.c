#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/vec.h"
#include "gpu/channel.h"
#include "gpu/gpu.h"
#include "gpu/manifest.h"
#include "gpu/places.h"
#include "gpu/private_folder.h"
#include "gpu/renderdoc.h"
#include "gpu/rendezvous.h"
#include "gpu/survivors.h"
#include "process/environment.h"
#include "protocol/names.h"

/*
 * RenderDoc, driven by a Vulkan layer of ours in the program, which lies above RenderDoc's: below it would deadlock. Both are implicit
 * layers, which come in the order of the folders of XDG_DATA_DIRS, ours first; as an explicit one RenderDoc's would make vkCreateInstance
 * fail in programs that enable extensions which it does not know. Each armed program has a folder of its own:
 *
 *   socket                                                 what the layer connects to
 *   owner                                                  locked as long as this daemon lives (private_folder.h)
 *   vulkan/implicit_layer.d/VkLayer_profd_gpu.json         ours, where PROFD_GPU is 1
 *   renderdoc/vulkan/implicit_layer.d/renderdoc.json       RenderDoc's, where PROFD_GPU_RENDERDOC is 1
 *
 * A program of GL has the socket alone, and all libraries by LD_PRELOAD: ours before RenderDoc's.
 */

#define SOCKET_NAME       "socket"
#define SECOND_NAME       "renderdoc"
#define DATA_NAME         "vulkan"
#define LAYERS_NAME       "implicit_layer.d"
#define LAYER_NAME        "VkLayer_profd_gpu.json"
#define RENDERDOC_NAME    "renderdoc.json"
#define DATA_DIRS_DEFAULT "/usr/local/share:/usr/share"

struct gpu_armed {
	enum gpu_api api;
	char folder[PRIVATE_FOLDER_BYTES]; /* 0700, ours alone; "" until it is made */
	int folder_lock;                   /* owned; -1 */
	struct channel *channel;
	VEC(char *) additions; /* owned texts; NULL-terminated once complete */
	char **surroundings;   /* owned, environment_copy's; NULL */
};

static bool out_of_memory(struct error *err)
{
	return error_set(err, ERROR_LIMIT_EXCEEDED, "no memory to arm a program for GPU traces");
}

/* "NAME=first", or when there is a rest, that behind it. */
static bool add_before(struct gpu_armed *armed, const char *name, const char *first,
	const char *separator, const char *rest, struct error *err)
{
	char *text = NULL;
	bool has_rest = rest != NULL && *rest != '\0';
	if (asprintf(&text, "%s=%s%s%s", name, first, has_rest ? separator : "", has_rest ? rest : "") <
		0) {
		return out_of_memory(err);
	}
	if (!VEC_PUSH(&armed->additions, text)) {
		free(text);
		return out_of_memory(err);
	}
	return true;
}

static bool add(struct gpu_armed *armed, const char *name, const char *value, struct error *err)
{
	return add_before(armed, name, value, "", NULL, err);
}

/* Our two folders before those that the program has. */
static bool add_data_dirs(struct gpu_armed *armed, const char *const *old, struct error *err)
{
	char folders[2 * sizeof(armed->folder) + sizeof(SECOND_NAME) + 2];
	const char *dirs = places_variable(old, "XDG_DATA_DIRS");
	snprintf(folders, sizeof(folders), "%s:%s/" SECOND_NAME, armed->folder, armed->folder);
	return add_before(armed, "XDG_DATA_DIRS", folders, ":",
		dirs != NULL && *dirs != '\0' ? dirs : DATA_DIRS_DEFAULT, err);
}

static bool add_preload(
	struct gpu_armed *armed, const struct places *places, const char *const *old, struct error *err)
{
	char paths[3 * PLACES_PATH_BYTES];
	bool is_gl = armed->api == GPU_GL;
	snprintf(paths, sizeof(paths), "%s%s%s%s%s", is_gl ? places->gl : "", is_gl ? ":" : "",
		places->nobind, is_gl ? ":" : "", is_gl ? places->renderdoc : "");
	return add_before(armed, "LD_PRELOAD", paths, ":", places_variable(old, "LD_PRELOAD"), err);
}

static bool has(const char *const *environment, const char *name)
{
	const char *value = places_variable(environment, name);
	return value != NULL && *value != '\0';
}

/* Who keeps other layers out of the program has asked for these two (LoaderLayerInterface.md, "Layer Filtering": what is enabled so cannot be disabled). */
static bool add_exceptions(
	struct gpu_armed *armed, const struct places *places, const char *const *old, struct error *err)
{
	static const char name[] = "VK_LOADER_LAYERS_ENABLE";
	char layers[256];
	if (!has(old, "VK_LOADER_LAYERS_DISABLE")) {
		return true;
	}
	snprintf(layers, sizeof(layers), "%.128s," MANIFEST_RENDERDOC_LAYER,
		manifest_name(places->layer_manifest));
	return add_before(armed, name, layers, ",", places_variable(old, name), err);
}

/* Loaders since 1.3.296 look into no folder of XDG_DATA_DIRS where the program has this variable (the same, "Layer Discovery"). */
static bool add_only_path(struct gpu_armed *armed, const char *const *old, struct error *err)
{
	static const char name[] = "VK_IMPLICIT_LAYER_PATH", layers[] = DATA_NAME "/" LAYERS_NAME;
	char folders[2 * (sizeof(armed->folder) + sizeof(layers)) + sizeof(SECOND_NAME) + 2];
	if (!has(old, name)) {
		return true;
	}
	snprintf(folders, sizeof(folders), "%s/%s:%s/" SECOND_NAME "/%s", armed->folder, layers,
		armed->folder, layers);
	return add_before(armed, name, folders, ":", places_variable(old, name), err);
}

static bool add_layers(
	struct gpu_armed *armed, const struct places *places, const char *const *old, struct error *err)
{
	return add(armed, ENV_GPU_RENDERDOC, "1", err) && add_data_dirs(armed, old, err) &&
		   add_exceptions(armed, places, old, err) && add_only_path(armed, old, err);
}

static bool make_additions(struct gpu_armed *armed, const struct places *places,
	const struct gpu_arming *arming, struct error *err)
{
	const char *const *old = arming->environment;
	char socket[sizeof(armed->folder) + sizeof(SOCKET_NAME) + 1];
	snprintf(socket, sizeof(socket), "%s/" SOCKET_NAME, armed->folder);
	/* Programs whose wgpu reads it put names and sources into their shaders. */
	if (places_variable(old, "WGPU_DEBUG") == NULL && !add(armed, "WGPU_DEBUG", "1", err)) {
		return false;
	}
	const char *library = armed->api == GPU_GL ? places->gl : places->layer;
	return add(armed, ENV_GPU, "1", err) && add(armed, ENV_GPU_SOCKET, socket, err) &&
		   add(armed, ENV_GPU_TOKEN, channel_token(armed->channel), err) &&
		   add(armed, ENV_GPU_LIBRARY, arming->lets_program_ask ? library : "", err) &&
		   add(armed, ENV_GPU_DEVICE, arming->device != NULL ? arming->device : "", err) &&
		   (armed->api == GPU_GL || add_layers(armed, places, old, err)) &&
		   add_preload(armed, places, old, err) &&
		   (VEC_RESERVE(&armed->additions, armed->additions.len + 1) || out_of_memory(err));
}

static bool keep_surroundings(struct gpu_armed *armed, const char *const *old, struct error *err)
{
	char **all = environment_create(old, (const char *const *)armed->additions.items, err);
	if (all == NULL) {
		return false;
	}
	armed->surroundings = environment_copy((const char *const *)all);
	free(all);
	return armed->surroundings != NULL || out_of_memory(err);
}

static void close_fd(int fd)
{
	if (fd >= 0) {
		close(fd);
	}
}

/* As a file of that name, where the loader looks for implicit layers below a folder of XDG_DATA_DIRS. Takes manifest. */
static bool put(int data_dir, const char *name, json_t *manifest, struct error *err)
{
	char *text = manifest != NULL ? json_dumps(manifest, JSON_INDENT(1)) : NULL;
	int vulkan = text != NULL ? files_make_folder(data_dir, DATA_NAME, err) : -1;
	int layers = vulkan >= 0 ? files_make_folder(vulkan, LAYERS_NAME, err) : -1;
	bool ok = text != NULL ? layers >= 0 && files_put(layers, name, text, strlen(text), err)
						   : out_of_memory(err);
	close_fd(layers);
	close_fd(vulkan);
	free(text);
	json_decref(manifest);
	return ok;
}

static bool fill_folder(
	const struct gpu_armed *armed, const struct places *places, struct error *err)
{
	int folder = files_open_folder(armed->folder, true, err);
	int second = folder >= 0 ? files_make_folder(folder, SECOND_NAME, err) : -1;
	bool ok = second >= 0 &&
			  put(folder, LAYER_NAME, manifest_layer(places->layer_manifest, places->layer), err) &&
			  put(second, RENDERDOC_NAME,
				  manifest_renderdoc(places->renderdoc_manifest, places->renderdoc), err);
	close_fd(second);
	close_fd(folder);
	return ok;
}

static void finish(struct gpu_armed *armed)
{
	if (armed == NULL) {
		return;
	}
	channel_close(armed->channel);
	private_folder_remove(armed->folder);
	close_fd(armed->folder_lock);
	for (size_t i = 0; i < armed->additions.len; i++) {
		free(armed->additions.items[i]);
	}
	VEC_FINISH(&armed->additions);
	free(armed->surroundings);
	free(armed);
}

static bool open_channel(
	struct gpu_armed *armed, const struct gpu_arming *arming, struct error *err)
{
	char path[sizeof(armed->folder) + sizeof(SOCKET_NAME) + 1];
	snprintf(path, sizeof(path), "%s/" SOCKET_NAME, armed->folder);
	armed->channel = channel_open(arming->loop, arming->log, path, err);
	return armed->channel != NULL;
}

/* No other variable beats a layer's own switch. */
static bool check_switch(
	const struct places *places, const struct gpu_arming *arming, struct error *err)
{
	const char *name = manifest_off_switch(places->layer_manifest);
	if (arming->api == GPU_GL || name == NULL ||
		places_variable(arming->environment, name) == NULL) {
		return true;
	}
	error_set(err, ERROR_BACKEND_UNAVAILABLE,
		"%s is set in the program's environment, which keeps profd's layer out of it", name);
	error_detail(err, "layer_off");
	return error_hint(err, "unset it");
}

static bool make_folder(struct gpu_armed *armed, struct error *err)
{
	armed->folder_lock = private_folder_make(armed->folder, err);
	return armed->folder_lock >= 0;
}

static struct gpu_armed *arm(const struct gpu_arming *arming, struct error *err)
{
	struct places places;
	struct gpu_armed *armed = calloc(1, sizeof(*armed));
	if (armed == NULL) {
		out_of_memory(err);
		return NULL;
	}
	armed->api = arming->api;
	armed->folder_lock = -1;
	if (!places_find(arming->environment, &places, err)) {
		free(armed);
		return NULL;
	}
	bool ok = check_switch(&places, arming, err) && make_folder(armed, err) &&
			  (armed->api == GPU_GL || fill_folder(armed, &places, err)) &&
			  open_channel(armed, arming, err) && make_additions(armed, &places, arming, err);
	if (ok) {
		armed->additions.items[armed->additions.len] = NULL;
		ok = keep_surroundings(armed, arming->environment, err);
	}
	places_finish(&places);
	if (!ok) {
		finish(armed);
		return NULL;
	}
	return armed;
}

static const char *const *environment(const struct gpu_armed *armed)
{
	return (const char *const *)armed->additions.items;
}

static const char *const *surroundings(const struct gpu_armed *armed)
{
	return (const char *const *)armed->surroundings;
}

static void listen_to(struct gpu_armed *armed, const struct gpu_listener *listener, void *context)
{
	channel_listen(armed->channel, listener, context);
}

static void serve(struct gpu_armed *armed, const struct gpu_server *server, void *context)
{
	channel_serve(armed->channel, server, context);
}

static bool start(struct gpu_armed *armed, const struct gpu_range *range, struct error *err)
{
	return channel_start(armed->channel, range, err);
}

static bool stop(struct gpu_armed *armed)
{
	return channel_stop(armed->channel);
}

static void status(const struct gpu_armed *armed, struct gpu_status *out)
{
	channel_status(armed->channel, out);
	out->api = armed->api;
}

static pid_t survivor(const struct gpu_armed *armed, char *name, size_t size)
{
	char variable[sizeof(ENV_GPU_TOKEN) + RENDEZVOUS_TOKEN_BYTES + 1];
	snprintf(variable, sizeof(variable), ENV_GPU_TOKEN "=%s", channel_token(armed->channel));
	return survivors_find(variable, name, size);
}

static const char *const conversion[] = {
	"convert", "-f", VERIFYING_DOCUMENT, "-o", VERIFYING_OUTPUT, "-c", "xml", NULL};
static const struct verifying_reader reader = {
	.program = "renderdoccmd",
	.package = "renderdoccmd (Debian, Ubuntu) or renderdoc",
	.arguments = conversion,
	.magic = "<?xml",
	.variable = "RENDERDOC_TEMP", /* its log, which stays of one that is killed */
};

const struct gpu_backend gpu_renderdoc = {
	.name = "renderdoc",
	.document = ARTIFACT_RDC,
	.magic = "RDOC",
	.reader = &reader,
	.probe = renderdoc_probe,
	.arm = arm,
	.environment = environment,
	.surroundings = surroundings,
	.listen = listen_to,
	.serve = serve,
	.start = start,
	.stop = stop,
	.status = status,
	.survivor = survivor,
	.finish = finish,
};
