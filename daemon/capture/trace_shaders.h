#ifndef CAPTURE_TRACE_SHADERS_H
#define CAPTURE_TRACE_SHADERS_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/gpu.h"

/*
 * The shaders of a GPU trace beside its document: shaders/HASH.spv, their sources where they carry them, and shaders.json, which says of each
 * what it is. The program wrote the modules, into a folder for temporaries, and told of them; it is believed nothing: what is kept is what was
 * read here, has that hash, and is SPIR-V. One thread at a time: the loop as long as it is told of them, then a worker.
 */
struct trace_shaders;

struct trace_shaders_counts {
	uint64_t total;       /* modules that are beside the trace */
	uint64_t with_source; /* of these, with the text that they were made of; */
	uint64_t with_lines;  /* with records of its lines */
	uint64_t left_out;    /* and those that are not there, for whatever reason */
	uint64_t list_bytes;  /* of shaders.json; 0: there is none */
	uint32_t
		sourceless; /* the makers of those without source: a bit for each of trace_shaders_hint's */
	char problem[256]; /* why the first was left out; "" */
};

/* Owned. NULL: memory is out. */
struct trace_shaders *trace_shaders_create(void);
void trace_shaders_destroy(struct trace_shaders *shaders);

/* More than GPU_WIRE_SHADERS are left out. */
void trace_shaders_add(struct trace_shaders *shaders, const struct gpu_shader *shader);
/* One that is there although nobody told of it: who used it is not known. */
void trace_shaders_add_found(struct trace_shaders *shaders, const char *hash, uint64_t bytes);
void trace_shaders_leave_out(struct trace_shaders *shaders, uint64_t count);

/* Blocking. Whatever goes wrong leaves shaders out, and nothing half made. */
void trace_shaders_take(
	struct trace_shaders *shaders, int folder_fd, struct trace_shaders_counts *counts);

/* What puts the source into modules, for those that lack it. out is NUL-terminated. */
void trace_shaders_hint(const struct trace_shaders_counts *counts, char *out, size_t size);

#endif
