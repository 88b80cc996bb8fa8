#ifndef ANALYZER_EXPORT_SVG_CAPTURE_H
#define ANALYZER_EXPORT_SVG_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "analyzer/model/model.h"
#include "analyzer/tree/attribution.h"
#include "base/buffer.h"

/*
 * The flame graph of a capture: what stands above it, and how it looks. That is what was asked for with the capture (facts.options.svg,
 * protocol/svg_options.h), so that artifacts which are made again look the same.
 *
 *   title       svg.title, else the label, else the program's name
 *   subtitle    program (pid) · rate · duration · samples
 *   note        why functions are not named, when the analyzer failed with them (facts.warnings); and what is not in the picture: samples
 *               lost, stacks cut, CPU time that is not in the samples
 */
struct svg_capture {
	const json_t *facts; /* an object, or NULL; borrowed, as everything here */
	const struct model *model;
	const struct attribution *attribution;
	uint64_t duration_ms;
};

/* Appends capture.svg. False: memory is out. */
bool svg_capture_write(struct buffer *out, const struct svg_capture *capture);

#endif
