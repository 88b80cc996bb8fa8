#ifndef ANALYZER_EXPORT_JSON_H
#define ANALYZER_EXPORT_JSON_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "analyzer/model/model.h"
#include "analyzer/symbol/symbol.h"
#include "analyzer/tree/attribution.h"
#include "base/buffer.h"

/*
 * capture.json: the facts that the daemon told (profile/analysis.h), and beside them
 *
 *   "samples", "threads"   see account.h
 *   "clock": {"name", "begin_ns", "begin_unix_us", "first_sample_ns", "last_sample_ns", "end_ns"}, "system", "machine"
 *   "processes": [{"pid", "parent_pid", "name", "executable", "cpu_time_ns", …}]
 *   "images"               see images.h
 *   "stacks": {"distinct", "frames", "nodes", "max_depth", "ends": {how many samples' stacks ended how}}
 *   "quality"              see quality.h
 *   "functions": [{"function", "image", "kernel", "self", "total"}]      the first 1000, by self
 *   "warnings", "artifacts": {"folded": {"file", "bytes", "stacks"}, …}
 *
 * docs/capture.schema.json says what each member is.
 * Shares are reals from 0 to 1 with 4 decimals. Bytes that are no UTF-8 are U+FFFD, and beside such a text is <its member>_b64.
 */
struct json_input {
	const json_t *facts; /* an object, or NULL; borrowed, as everything here */
	const struct model *model;
	struct symbols *symbols;
	struct strings *strings;
	const struct attribution *attribution;
	const json_t *warnings;  /* array: the analyzer's own, see summary.h */
	const json_t *artifacts; /* object, or NULL: of what was written before */
};

/* Appends the whole document, ASCII, indented. False: memory is out. */
bool json_write(struct buffer *out, const struct json_input *input);

#endif
