#ifndef ANALYZER_EXPORT_QUALITY_H
#define ANALYZER_EXPORT_QUALITY_H

#include <jansson.h>

#include "analyzer/export/json.h"

/*
 * How good the stacks and names are. Owned by the caller; NULL: memory is out.
 *
 *   {"complete", "stitched", "truncated" (shares of the samples), "unsymbolized" (share of the frames, times samples)}
 */
json_t *quality_shares(const struct attribution *attribution);

/*
 * The same with "remedies": [{"what", "share", "images"?, "message", "hint"}], one for each reason for which a share of at least
 * QUALITY_REMEDY_SHARE is less good than it could be; the largest first. images: the paths of those that it is about, those with most of it first.
 */
#define QUALITY_REMEDY_SHARE  0.01
#define QUALITY_REMEDY_IMAGES 5
json_t *quality_json(const struct json_input *input);

/*
 * Why many stacks are cut or may be, when they are (QUALITY_DEPTH_SHARE of them at the depth limit, QUALITY_CUT_SHARE for another reason): "N % of the stacks …" into
 * text; returns what would help, a constant. NULL: they are not.
 */
#define QUALITY_DEPTH_SHARE 0.01
#define QUALITY_CUT_SHARE   0.05
const char *quality_stack_warning(const struct json_input *input, char *text, size_t room);

/* What would help against the stacks that end in an image, a constant; NULL: none does, or nothing would. */
const char *quality_image_fix(const struct json_input *input, uint32_t image);

#endif
