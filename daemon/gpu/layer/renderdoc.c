#include "gpu/layer/renderdoc.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIBRARY "librenderdoc.so"

static void find_api(struct renderdoc *renderdoc, renderdoc_get_api_fn get_api)
{
	void *api = NULL;
	int major = 0, minor = 0, patch = 0;
	if (get_api(RENDERDOC_API_1_4_1_NUMBER, &api) != 1 || api == NULL) {
		return;
	}
	renderdoc->api = api;
	renderdoc->api->GetAPIVersion(&major, &minor, &patch);
	snprintf(renderdoc->version, sizeof(renderdoc->version), "%d.%d.%d", major & 0xffff,
		minor & 0xffff, patch & 0xffff);
	renderdoc->api->SetFocusToggleKeys(NULL, 0);
	renderdoc->api->SetCaptureKeys(NULL, 0);
	renderdoc->api->MaskOverlayBits(0, 0);
}

void renderdoc_find(struct renderdoc *renderdoc)
{
	/* The handle is kept: the loader closes its own with the program's instance. */
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_NOLOAD);
	void *symbol = library != NULL ? dlsym(library, "RENDERDOC_GetAPI") : NULL;
	Dl_info where;
	renderdoc->log.fd = -1;
	if (library == NULL) {
		return;
	}
	renderdoc->is_loaded = true;
	renderdoc_log_find(&renderdoc->log);
	if (symbol == NULL) {
		return;
	}
	if (dladdr(symbol, &where) != 0) {
		renderdoc->base = where.dli_fbase;
		snprintf(renderdoc->path, sizeof(renderdoc->path), "%s", where.dli_fname);
	}
	renderdoc_get_api_fn get_api;
	memcpy(&get_api, &symbol, sizeof(get_api));
	find_api(renderdoc, get_api);
}

bool renderdoc_holds(const struct renderdoc *renderdoc, const void *code)
{
	Dl_info where;
	return renderdoc->base != NULL && dladdr(code, &where) != 0 &&
		   where.dli_fbase == renderdoc->base;
}

bool renderdoc_check(const struct renderdoc *renderdoc, struct fault *fault)
{
	if (!renderdoc->is_loaded) {
		return fault_set(fault, "renderdoc_missing", LIBRARY " was not loaded into this process");
	}
	if (renderdoc->api == NULL) {
		return fault_set(fault, "renderdoc_too_old",
			"%s does not have version 1.4.1 of its in-application API: RenderDoc 1.5 or later is "
			"needed",
			renderdoc->path[0] != '\0' ? renderdoc->path : LIBRARY);
	}
	return true;
}

bool renderdoc_can_write(const char *template, struct fault *fault)
{
	char path[GPU_WIRE_PATH_BYTES + 8];
	snprintf(path, sizeof(path), "%s.XXXXXX", template);
	int fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0) {
		return fault_set(fault, "output_not_writable", "no file can be made at %.512s: %s",
			template, strerror(errno));
	}
	close(fd);
	unlink(path);
	return true;
}

bool renderdoc_begin(
	struct renderdoc *renderdoc, void *device, const char *template, struct fault *fault)
{
	const struct renderdoc_api *api = renderdoc->api;
	if (!renderdoc_log_mend(&renderdoc->log, fault)) {
		return false;
	}
	api->SetCaptureFilePathTemplate(template);
	renderdoc->captures = api->GetNumCaptures();
	api->StartFrameCapture(device, NULL);
	if (api->IsFrameCapturing() != 1) {
		return fault_set(
			fault, "start_failed", "%s says that it captures nothing", renderdoc->path);
	}
	return true;
}

static bool find_document(
	const struct renderdoc *renderdoc, struct renderdoc_document *document, struct fault *fault)
{
	const struct renderdoc_api *api = renderdoc->api;
	uint32_t count = api->GetNumCaptures(), size = 0;
	struct stat status;
	if (count <= renderdoc->captures) {
		return fault_set(fault, "document_missing", "RenderDoc has written no document");
	}
	if (api->GetCapture(count - 1, NULL, &size, NULL) != 1 || size > sizeof(document->path)) {
		return fault_set(fault, "document_missing",
			"the path of RenderDoc's document has %u bytes, %zu are possible", size,
			sizeof(document->path));
	}
	api->GetCapture(count - 1, document->path, &size, NULL);
	document->path[sizeof(document->path) - 1] = '\0';
	if (stat(document->path, &status) != 0) {
		return fault_set(fault, "document_missing", "RenderDoc's document %.512s is not there: %s",
			document->path, strerror(errno));
	}
	if (!S_ISREG(status.st_mode) || status.st_size <= 0) {
		return fault_set(
			fault, "document_missing", "RenderDoc's document %.512s is empty", document->path);
	}
	document->bytes = (uint64_t)status.st_size;
	return true;
}

bool renderdoc_end(struct renderdoc *renderdoc, void *device, struct renderdoc_document *document,
	struct fault *fault)
{
	bool is_sound = renderdoc_log_mend(&renderdoc->log, fault);
	renderdoc->api->EndFrameCapture(device, NULL);
	return is_sound && find_document(renderdoc, document, fault);
}
