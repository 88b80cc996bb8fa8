#ifndef ANALYZER_EXPORT_ACCOUNT_H
#define ANALYZER_EXPORT_ACCOUNT_H

#include <jansson.h>

#include "analyzer/export/json.h"
#include "analyzer/model/accounting.h"

/*
 * What capture.json says of the accounting (model/accounting.h): "samples" and "threads". Owned by the caller; NULL: memory is out.
 */

/* Takes from the daemon's facts (NULL: none) what accounting_init has to know. */
struct accounting_terms account_terms(const json_t *facts);

json_t *account_samples(const struct json_input *input, const struct accounting *accounting);
/* All threads, those with most samples first. */
json_t *account_threads(const struct json_input *input, const struct accounting *accounting);

#endif
