#include "gpu/options.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool read_number(const char *word, const char *name, const char *value, unsigned *out)
{
	if (value == NULL || strcmp(word, name) != 0) {
		return false;
	}
	*out = (unsigned)strtoul(value, NULL, 10);
	return true;
}

static bool read_text(const char *word, const char *name, const char *value, const char **out)
{
	if (value == NULL || strcmp(word, name) != 0) {
		return false;
	}
	*out = value;
	return true;
}

static bool read_switch(const char *word, const char *name, bool *out)
{
	*out |= strcmp(word, name) == 0;
	return strcmp(word, name) == 0;
}

void options_read(char **argv, struct options *options)
{
	*options = (struct options){.frames = 5, .exit_at = UINT32_MAX, .rate = 10000, .rounds = 1};
	for (char **at = argv + 1; *at != NULL; at++) {
		if (read_number(*at, "--frames", at[1], &options->frames) ||
			read_number(*at, "--frame-ms", at[1], &options->frame_ms) ||
			read_number(*at, "--exit-at", at[1], &options->exit_at) ||
			read_number(*at, "--idle-submits", at[1], &options->idle_submits) ||
			read_text(*at, "--own-phases", at[1], &options->own_phases) ||
			read_text(*at, "--fill", at[1], &options->fill) ||
			read_number(*at, "--rounds", at[1], &options->rounds) ||
			read_number(*at, "--rate", at[1], &options->rate)) {
			at++;
		} else if (!read_switch(*at, "--no-labels", &options->no_labels) &&
				   !read_switch(*at, "--compute-only", &options->compute_only) &&
				   !read_switch(*at, "--every-extension", &options->every_extension) &&
				   !read_switch(*at, "--forks", &options->forks) &&
				   !read_switch(*at, "--own-thread", &options->own_thread) &&
				   !read_switch(*at, "--first-thread-ends", &options->first_thread_ends) &&
				   !read_switch(*at, "--functions", &options->functions) &&
				   !read_switch(*at, "--submit2", &options->submit2)) {
			fprintf(stderr, "gpu_frames: unknown option %s\n", *at);
			exit(2);
		}
	}
}
