#include "gpu/gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checks.h"

#define LABEL_WORD "label:"

static const char *const names[] = {
	[GPU_BY_AUTO] = "auto",
	[GPU_BY_PRESENT] = "present",
	[GPU_BY_SUBMIT] = "submit",
	[GPU_BY_LABEL] = "label",
	[GPU_BY_MANUAL] = "manual",
};

const char *gpu_boundary_name(enum gpu_boundary boundary)
{
	return names[boundary];
}

bool gpu_boundary_parse(const char *text, enum gpu_boundary *boundary, char *label)
{
	size_t word = strlen(LABEL_WORD);
	if (strncmp(text, LABEL_WORD, word) == 0) {
		size_t len = strlen(text + word);
		if (len == 0 || len >= GPU_LABEL_BYTES) {
			return false;
		}
		memcpy(label, text + word, len + 1);
		*boundary = GPU_BY_LABEL;
		return true;
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (i != GPU_BY_LABEL && strcmp(names[i], text) == 0) {
			*boundary = (enum gpu_boundary)i;
			label[0] = '\0';
			return true;
		}
	}
	return false;
}

struct gpu_program *gpu_program_arm(
	const struct gpu_backend *backend, const struct gpu_arming *arming, struct error *err)
{
	struct gpu_program *program = calloc(1, sizeof(*program));
	if (program == NULL) {
		error_set(err, ERROR_LIMIT_EXCEEDED, "no memory to arm a program for GPU traces");
		return NULL;
	}
	program->backend = backend;
	program->holds = 1;
	program->armed = backend->arm(arming, err);
	if (program->armed == NULL) {
		free(program);
		return NULL;
	}
	return program;
}

struct gpu_program *gpu_program_hold(struct gpu_program *program)
{
	program->holds++;
	return program;
}

void gpu_program_release(struct gpu_program *program)
{
	if (program != NULL && --program->holds == 0) {
		program->backend->finish(program->armed);
		free(program);
	}
}

/* Who reads documents when they are written: where, or what to install. */
static void describe_reader(const struct gpu_backend *backend, char *text, size_t size)
{
	char path[512];
	if (verifying_find(backend->reader->program, path, sizeof(path))) {
		snprintf(text, size, "each is verified by %s", path);
	} else {
		snprintf(text, size, "none is verified: %s is not in profd's PATH (package %s)",
			backend->reader->program, backend->reader->package);
	}
}

void gpu_checks(struct checks *checks)
{
	const struct gpu_backend *backend = gpu_backend_choose();
	struct gpu_finding finding = {0};
	struct error err = {0};
	char reader[640];
	struct check *check = checks_add(checks, "gpu");
	if (backend == NULL) {
		check_value(check, "none");
		check_say(check, CHECK_WARN, NULL, "this profd was built without GPU traces");
		return;
	}
	bool ok = backend->probe(NULL, &finding, &err);
	check_value(check, "%s%s%s, %zu device%s", backend->name, finding.version[0] != '\0' ? " " : "",
		finding.version, finding.device_count, finding.device_count == 1 ? "" : "s");
	if (ok) {
		describe_reader(backend, reader, sizeof(reader));
		check_say(check, CHECK_OK, NULL, "documents of GPU work can be recorded on: %.300s; %s",
			finding.devices, reader);
	} else {
		check_say(check, CHECK_WARN, err.hint, "GPU traces do not work: %.400s", err.message);
	}
}
