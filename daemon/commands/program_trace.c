#include "commands/program_trace.h"

#include <stdlib.h>
#include <string.h>

#include "commands/command.h"
#include "commands/gpu_trace.h"
#include "commands/methods.h"
#include "protocol/limits.h"
#include "protocol/text.h"

/* What a client would have sent. Owned; NULL: err. */
static json_t *describe(const struct program_trace *trace, const char *label, struct error *err)
{
	json_t *asked =
		json_pack("{s:O, s:s}", "build_id", process_build_id(trace->process), "frame_by", "manual");
	if (asked == NULL) {
		error_set(err, ERROR_LIMIT_EXCEEDED, "out of memory");
		return NULL;
	}
	/* Three bytes stand for each that is no text, so it is cut afterwards. */
	size_t len = 0;
	char *text = text_repair(label, strlen(label), &len);
	if (text != NULL && len > 0) {
		len = len > LIMIT_LABEL_BYTES ? text_cut(text, LIMIT_LABEL_BYTES) : len;
		json_object_set_new(asked, "label", json_stringn(text, len));
	}
	free(text);
	json_t *params = command_check(&start_gpu_trace_command, asked, err);
	json_decref(asked);
	return params;
}

static bool check(const struct program_trace *trace, struct error *err)
{
	if (!trace->is_allowed) {
		error_set(err, ERROR_NOT_PERMITTED,
			"the build %s was launched with program: false in gpu: it may not start GPU traces",
			process_key(trace->process));
		return error_hint(err, "launch it with gpu: true");
	}
	if (trace->daemon->shutdown != DAEMON_RUNS) {
		return error_set(err, ERROR_SHUTTING_DOWN, "profd is shutting down");
	}
	if (trace->count >= LIMIT_GPU_ASKS) {
		error_set(err, ERROR_LIMIT_EXCEEDED,
			"the build %s has started %d GPU traces itself, which is all it may",
			process_key(trace->process), LIMIT_GPU_ASKS);
		return error_hint(err, "launch it again, or use StartGpuTrace");
	}
	return true;
}

static bool asked(void *context, const char *label, struct error *err)
{
	struct program_trace *trace = context;
	json_t *params = check(trace, err) ? describe(trace, label, err) : NULL;
	if (params == NULL) {
		return false;
	}
	bool is_started = gpu_trace_start(trace->daemon, params, trace->process, NULL, err) != NULL;
	trace->count += is_started;
	json_decref(params);
	return is_started;
}

static const struct gpu_server server = {.asked = asked};

void program_trace_begin(
	struct program_trace *trace, struct process *process, struct gpu_program *program)
{
	if (program != NULL) {
		trace->process = process;
		trace->program = program;
		program->backend->serve(program->armed, &server, trace);
	}
}

void program_trace_end(struct program_trace *trace)
{
	if (trace->program != NULL) {
		trace->program->backend->serve(trace->program->armed, NULL, NULL);
		trace->program = NULL;
		trace->process = NULL;
	}
}
