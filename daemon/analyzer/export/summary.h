#ifndef ANALYZER_EXPORT_SUMMARY_H
#define ANALYZER_EXPORT_SUMMARY_H

#include <jansson.h>

#include "analyzer/export/json.h"

/*
 * What the end of a capture says about it, in few words: it travels in one packet and in one event, so that names and texts are cut
 * and lists are short. Bytes that are no UTF-8 are U+FFFD. Owned by the caller; NULL: memory is out.
 */
#define SUMMARY_TOP          10
#define SUMMARY_IMAGES       5
#define SUMMARY_NAME_BYTES   512
#define SUMMARY_TEXT_BYTES   512
#define SUMMARY_MAX_WARNINGS 16

/*
 * {"duration_ms", "threads", "quality", "top": [{"function", "self", "total"}], "images": [{"image", "samples", "complete", "stitched",
 * "truncated"}]} of SamplingProfileFinished. input's warnings and artifacts are not looked at.
 */
json_t *summary_create(const struct json_input *input, uint64_t duration_ms);

/* [{"code", "message", "hint"?}]: the journal's notes, and what reading and naming met. input's warnings and artifacts are not looked at. */
json_t *summary_warnings(const struct json_input *input);

#endif
