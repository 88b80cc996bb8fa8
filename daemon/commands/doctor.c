#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <uv.h>

#include "base/checks.h"
#include "base/sandbox.h"
#include "commands/methods.h"
#include "gpu/gpu.h"
#include "sampler/checks.h"

#define LITTLE_BYTES ((uint64_t)1024 * 1024 * 1024)

static void check_data_folder(struct checks *checks, const struct daemon *daemon)
{
	struct statvfs status;
	struct check *check = checks_add(checks, "data_folder");
	const char *path = daemon->data_dir;
	if (statvfs(path, &status) != 0 || access(path, W_OK | X_OK) != 0) {
		struct error err = {0};
		error_errno(&err, "%s", path);
		check_value(check, "%.100s", path);
		check_say(check, CHECK_FAIL, "choose another folder with --data-dir, or make it writable",
			"captures cannot be kept: %.400s", err.message);
		return;
	}
	if (!store_is_in_place(daemon->store)) {
		check_value(check, "%.100s", path);
		check_say(check, CHECK_FAIL,
			"restart profd: profctl daemon stop, and the next client starts it",
			"captures cannot be kept: %.400s was removed or replaced while profd runs", path);
		return;
	}
	uint64_t free_bytes = (uint64_t)status.f_bavail * status.f_frsize;
	check_value(
		check, "%" PRIu64 " MiB free, %zu captures", free_bytes >> 20, store_count(daemon->store));
	if (free_bytes >= LITTLE_BYTES) {
		check_say(check, CHECK_OK, NULL, "captures are kept in %.400s", path);
	} else {
		check_say(check, CHECK_WARN, "delete captures, or choose another folder with --data-dir",
			"little space is left for captures in %.400s", path);
	}
}

static void check_programs(struct checks *checks, const struct daemon *daemon)
{
	const char *const paths[] = {daemon->gate_path, daemon->analyzer_path};
	struct check *check = checks_add(checks, "programs");
	check_value(check, "profd-gate, profd-analyzer");
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		if (access(paths[i], X_OK) != 0) {
			struct error err = {0};
			error_errno(&err, "%s", paths[i]);
			check_say(
				check, CHECK_FAIL, "install profd again, and restart it", "%.500s", err.message);
			return;
		}
	}
	check_say(check, CHECK_OK, NULL, "they are where this daemon expects them");
}

/* What confines the analyzer (analyzer/sandbox.h), by what the kernel has. */
static void check_sandbox(struct checks *checks)
{
	int landlock = sandbox_landlock_version();
	bool has_seccomp = sandbox_has_seccomp();
	struct check *check = checks_add(checks, "analyzer_sandbox");
	check_value(check, "%s, Landlock %d", has_seccomp ? "seccomp" : "no seccomp", landlock);
	if (!has_seccomp) {
		check_say(check, CHECK_FAIL, "run a kernel with CONFIG_SECCOMP_FILTER=y",
			"profd-analyzer does not run without filters of system calls: captures get no "
			"artifacts");
	} else if (landlock == 0) {
		check_say(check, CHECK_WARN,
			"run Linux 5.13 or newer with CONFIG_SECURITY_LANDLOCK=y, and landlock in its lsm=",
			"profd-analyzer is confined by a filter of system calls alone");
	} else {
		check_say(check, CHECK_OK, NULL,
			"profd-analyzer is confined by a filter of system calls and by Landlock");
	}
}

static void check_versions(struct checks *checks)
{
	struct utsname system = {0};
	uname(&system);
	struct check *check = checks_add(checks, "versions");
	check_value(check, "profd " PROFD_VERSION ", %.40s %.60s", system.sysname, system.release);
	check_say(check, CHECK_OK, NULL, "libuv %s, jansson %s, %.60s", uv_version_string(),
		jansson_version_str(), system.machine);
}

/* One Doctor whose slow checks are on a worker. */
struct doctoring {
	struct request *request; /* NULL: its client is gone */
	struct checks checks;    /* the worker's until it is done */
	uv_work_t work;
};

static void fail_without_memory(struct request *request)
{
	struct error err = {0};
	error_set(&err, ERROR_LIMIT_EXCEEDED, "out of memory");
	request_fail(request, &err);
}

static void look_slowly(uv_work_t *work)
{
	struct doctoring *doctoring = work->data;
	gpu_checks(&doctoring->checks);
}

static void looked(uv_work_t *work, int status)
{
	struct doctoring *doctoring = work->data;
	(void)status;
	json_t *list = doctoring->checks.is_short ? NULL : checks_json(&doctoring->checks);
	if (doctoring->request == NULL) {
		json_decref(list);
	} else if (list == NULL) {
		fail_without_memory(doctoring->request);
	} else {
		request_reply(doctoring->request, json_pack("{s:o}", "checks", list));
	}
	checks_finish(&doctoring->checks);
	free(doctoring);
}

static void doctor(struct daemon *daemon, struct request *request, const json_t *params)
{
	(void)params;
	struct doctoring *doctoring = calloc(1, sizeof(*doctoring));
	if (doctoring == NULL) {
		fail_without_memory(request);
		return;
	}
	doctoring->request = request;
	doctoring->work.data = doctoring;
	sampler_checks(&doctoring->checks);
	check_data_folder(&doctoring->checks, daemon);
	check_programs(&doctoring->checks, daemon);
	check_sandbox(&doctoring->checks);
	check_versions(&doctoring->checks);
	request_forget_when_gone(request, &doctoring->request);
	request_allow_cancel(request);
	uv_queue_work(daemon->loop, &doctoring->work, look_slowly, looked);
}

static const struct param params_table[] = {
	{.name = "build_id",
		.type = PARAM_ID,
		.is_unsupported = true,
		.about = "What will work for this build."},
	{.name = "pid",
		.type = PARAM_INTEGER,
		.is_unsupported = true,
		.about = "What will work for this process."},
	{.name = NULL},
};

const struct command doctor_command = {
	.name = "Doctor",
	.params = params_table,
	.run = doctor,
	.about = "Says what will work here, and what to change.",
	.result = "checks [{id, status (ok, warn, fail), value, message, fix}]",
	.runs_while_stopping = true,
};
