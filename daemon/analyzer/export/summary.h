#ifndef ANALYZER_EXPORT_SUMMARY_H
#define ANALYZER_EXPORT_SUMMARY_H

#include <jansson.h>

#include "analyzer/model/model.h"
#include "analyzer/symbol/symbol.h"
#include "analyzer/tree/attribution.h"

/*
 * What the end of a capture says about it, in few words: it travels in one packet and in one event, so that names and texts are cut
 * and lists are short. Bytes that are no UTF-8 are U+FFFD. Owned by the caller; NULL: memory is out.
 */
#define SUMMARY_TOP          10
#define SUMMARY_NAME_BYTES   512
#define SUMMARY_TEXT_BYTES   512
#define SUMMARY_MAX_WARNINGS 16

/* {"duration_ms", "threads", "quality", "top": [{"function", "self", "total"}]} of SamplingProfileFinished. */
json_t *summary_create(const struct model *model, const struct strings *strings,
	const struct attribution *attribution, uint64_t duration_ms);

/* [{"code", "message", "hint"?}]: the journal's notes, and what reading and naming met. facts: what the daemon told, or NULL. */
json_t *summary_warnings(const json_t *facts, const struct model *model,
	const struct symbols *symbols, const struct strings *strings,
	const struct attribution *attribution);

#endif
