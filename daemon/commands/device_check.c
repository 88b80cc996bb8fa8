#include "commands/device_check.h"

#include <stdlib.h>

#include <uv.h>

#include "commands/arming.h"
#include "gpu/devices.h"
#include "gpu/gpu.h"

struct checking {
	struct daemon *daemon;
	struct request *request; /* NULL: its client is gone */
	json_t *params;          /* owned */
	void (*run)(struct daemon *daemon, struct request *request, const json_t *params);
	uv_work_t work;
	/* The worker's until it is done. */
	char **environment; /* owned */
	const struct gpu_backend *backend;
	struct gpu_finding finding;
	bool is_good;
	struct error error;
};

static void probe(uv_work_t *work)
{
	struct checking *checking = work->data;
	checking->is_good = checking->backend->probe(
		(const char *const *)checking->environment, &checking->finding, &checking->error);
}

static void finish(struct checking *checking)
{
	json_decref(checking->params);
	free(checking->environment);
	free(checking);
}

static bool is_there(struct checking *checking)
{
	const char *device = arming_device(json_object_get(checking->params, "gpu"));
	if (checking->is_good && checking->daemon->shutdown != DAEMON_RUNS) {
		return error_set(&checking->error, ERROR_SHUTTING_DOWN, "profd is shutting down");
	}
	return checking->is_good &&
		   devices_check(checking->finding.list, checking->finding.device_count, device,
			   ERROR_BACKEND_UNAVAILABLE, &checking->error);
}

static void probed(uv_work_t *work, int status)
{
	struct checking *checking = work->data;
	struct request *request = checking->request;
	(void)status;
	if (request != NULL) {
		request_on_gone(request, NULL, NULL);
		if (is_there(checking)) {
			checking->run(checking->daemon, request, checking->params);
		} else {
			request_fail(request, &checking->error);
		}
	}
	finish(checking);
}

void device_check(struct daemon *daemon, struct request *request, const json_t *params,
	char **environment,
	void (*run)(struct daemon *daemon, struct request *request, const json_t *params))
{
	struct error err = {0};
	const struct gpu_backend *backend = gpu_backend_choose();
	struct checking *checking = backend != NULL ? calloc(1, sizeof(*checking)) : NULL;
	if (checking == NULL) {
		error_set(&err, backend == NULL ? ERROR_BACKEND_UNAVAILABLE : ERROR_LIMIT_EXCEEDED,
			backend == NULL ? "this profd was built without GPU traces" : "out of memory");
		request_fail(request, &err);
		free(environment);
		return;
	}
	checking->daemon = daemon;
	checking->request = request;
	checking->params = json_incref((json_t *)params);
	checking->run = run;
	checking->environment = environment;
	checking->backend = backend;
	checking->work.data = checking;
	request_forget_when_gone(request, &checking->request);
	uv_queue_work(daemon->loop, &checking->work, probe, probed);
}
