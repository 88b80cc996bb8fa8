#ifndef CLIENT_GPU_SETTINGS_H
#define CLIENT_GPU_SETTINGS_H

#include <stdbool.h>

#include <jansson.h>

/*
 * What `profctl gpu` is to record, under the names that engines' settings have. Each may come as an option, from the environment or from a file, and
 * the first of these that has it counts:
 *
 *   file (JSON)                  environment                          option
 *   enable_gpu_tracing           PROFD_ENABLE_GPU_TRACING             -
 *   gpu_trace_start_frame        PROFD_GPU_TRACE_START_FRAME          --gpu-trace-start-frame
 *   gpu_trace_end_frame          PROFD_GPU_TRACE_END_FRAME            --gpu-trace-end-frame
 *   gpu_trace_output_directory   PROFD_GPU_TRACE_OUTPUT_DIRECTORY     --gpu-trace-output-directory
 *   gpu_trace_device             PROFD_GPU_TRACE_DEVICE               --device
 *
 * A value that another beats is not looked at. What is wrong is told on stderr with its name there, the value, and what is needed.
 */
enum gpu_setting {
	GPU_ENABLE,     /* boolean; in the environment true, false, 1, 0, yes, no, on, off */
	GPU_START,      /* integer, 0 to LIMIT_INTEGER */
	GPU_END,        /* the same */
	GPU_OUTPUT_DIR, /* string; kept as an absolute path */
	GPU_DEVICE,     /* string, in a file also an integer (an index); kept as a string */
	GPU_SETTINGS,
};

/* In the order in which they count. */
enum gpu_source { GPU_OPTION, GPU_ENVIRONMENT, GPU_FILE };

struct gpu_settings {
	json_t *values[GPU_SETTINGS]; /* owned; NULL: not set */
	char *names[GPU_SETTINGS];    /* owned; where each comes from, for a person */
	enum gpu_source sources[GPU_SETTINGS];
};

/* Zero-initialise; options first. False: told. */
bool gpu_settings_option(struct gpu_settings *settings, enum gpu_setting setting, const char *text);
/* What is set in the environment and not empty. Variables that look like ours and are none are told as unknown. */
bool gpu_settings_environment(struct gpu_settings *settings);
/* A JSON object (json_file.h). Members with other names are an engine's own, but for those that look like ours: told as unknown. */
bool gpu_settings_file(struct gpu_settings *settings, const char *path);

/* Whether the frames make sense together. has_range: an option asks for another kind of range, which beats frames that no option asks for. An end
 * before a start that counts more was meant for another start: it is left out. */
bool gpu_settings_check(struct gpu_settings *settings, bool has_range);
/* True unless it was switched off. */
bool gpu_settings_is_enabled(const struct gpu_settings *settings);

void gpu_settings_finish(struct gpu_settings *settings);

#endif
