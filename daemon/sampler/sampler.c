#include "sampler/sampler.h"

#include <string.h>

static const struct sampler_ops *const backends[] = {
	&sampler_perf_ops,
	NULL,
};

/* The best one that works here; the first one's error is the one that helps. */
static const struct sampler_ops *choose_any(const struct sampler_config *config, struct error *err)
{
	struct error first = {0};
	for (size_t i = 0; backends[i]; i++) {
		struct error why = {0};
		if (backends[i]->probe(config, &why)) {
			return backends[i];
		}
		if (i == 0) {
			first = why;
		}
	}
	if (err) {
		*err = first;
	}
	return NULL;
}

const struct sampler_ops *sampler_choose(
	const char *name, const struct sampler_config *config, struct error *err)
{
	if (strcmp(name, "auto") == 0) {
		return choose_any(config, err);
	}
	for (size_t i = 0; backends[i]; i++) {
		if (strcmp(name, backends[i]->name) == 0) {
			return backends[i]->probe(config, err) ? backends[i] : NULL;
		}
	}
	error_set(err, ERROR_UNSUPPORTED, "there is no sampler \"%s\" in this profd", name);
	return NULL;
}
