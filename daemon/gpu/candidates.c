#include "gpu/candidates.h"

#include <stdio.h>

#include "gpu/devices.h"

bool candidates_add(struct candidates *candidates, struct link *link)
{
	if (candidates->count == LIMIT_GPU_LINKS) {
		return false;
	}
	candidates->links[candidates->count++] = link;
	return true;
}

void candidates_remove(struct candidates *candidates, const struct link *link)
{
	size_t i = 0;
	while (candidates->links[i] != link) {
		i++;
	}
	candidates->links[i] = candidates->links[--candidates->count];
}

bool candidates_has_wished(const struct candidates *candidates, const struct link *link)
{
	const struct link_facts *facts = link_facts(link);
	return facts->devices > 0 &&
		   (candidates->device[0] == '\0' || devices_pick(facts->made, facts->made_count,
												 candidates->device, NULL) != GPU_PICK_NONE);
}

int candidates_rank(const struct candidates *candidates, const struct link *link)
{
	return candidates_has_wished(candidates, link) ? 2 : link_facts(link)->devices == 0;
}

struct link *candidates_choose(const struct candidates *candidates)
{
	struct link *best = NULL;
	for (size_t i = 0; i < candidates->count; i++) {
		struct link *link = candidates->links[i];
		if (link_facts(link)->is_greeted &&
			(best == NULL ||
				candidates_rank(candidates, link) > candidates_rank(candidates, best) ||
				(candidates_rank(candidates, link) == candidates_rank(candidates, best) &&
					link_facts(link)->frame > link_facts(best)->frame))) {
			best = link;
		}
	}
	return best;
}

/* What there is, and whether the wish can still come true. */
struct offer {
	size_t working, others; /* with devices; and without, so far */
	bool has_wished;
};

/* False: err; one of its devices may be meant as well as another. */
static bool look_at(const struct candidates *candidates, const struct link *link,
	struct offer *offer, struct error *err)
{
	const struct link_facts *facts = link_facts(link);
	bool has_device = candidates_has_wished(candidates, link);
	offer->has_wished = offer->has_wished || has_device;
	offer->working += facts->devices > 0;
	offer->others += facts->is_greeted && facts->devices == 0;
	return !has_device || candidates->device[0] == '\0' ||
		   devices_check(facts->made, facts->made_count, candidates->device, ERROR_BAD_PARAMS, err);
}

static void add_names(const struct link *link, char *made, size_t made_size)
{
	const struct link_facts *facts = link_facts(link);
	for (size_t i = 0; i < facts->made_count; i++) {
		devices_add_name(made, made_size, &facts->made[i]);
	}
}

bool candidates_wish(struct candidates *candidates, const char *device, bool *has_wished,
	char *made, size_t made_size, struct error *err)
{
	struct offer offer = {0};
	bool is_clear = true;
	snprintf(candidates->device, sizeof(candidates->device), "%s", device);
	made[0] = '\0';
	for (size_t i = 0; i < candidates->count && is_clear; i++) {
		add_names(candidates->links[i], made, made_size);
		is_clear = look_at(candidates, candidates->links[i], &offer, err);
	}
	*has_wished = offer.has_wished;
	if (!is_clear || offer.has_wished || offer.working == 0 || offer.others > 0) {
		return is_clear;
	}
	error_set(
		err, ERROR_GPU_NO_CALLS, "the program does not use a GPU %.80s: it uses %s", device, made);
	error_detail(err, "device_not_used");
	return error_hint(err, "name one that it uses, or launch it with that device in gpu");
}
