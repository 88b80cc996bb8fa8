#include <string.h>

#include "capture/recording.h"
#include "protocol/clock.h"

/* What is kept. It is looked at at the start and when a capture has ended, by what is known in memory: nothing wakes for it. */

#define DAY_US UINT64_C(86400000000)

struct kept {
	uint64_t captures, bytes;
};

/* Pinned captures, and those that run, are kept beside what is counted. */
static bool counts(const struct store_entry *entry)
{
	return entry->has_ended && !entry->is_pinned;
}

static struct kept count(const struct store *store)
{
	struct kept kept = {0};
	struct store_entry entry = {0};
	while (store_look(store, entry.id, &entry)) {
		if (counts(&entry)) {
			kept.captures++;
			kept.bytes += entry.bytes;
		}
	}
	return kept;
}

/* Why it is to be deleted; NULL: it is not. */
static const char *surplus(const struct captures_keep *keep, const struct kept *kept,
	const struct store_entry *entry, uint64_t now_us)
{
	if (keep->captures != 0 && kept->captures > keep->captures) {
		return "more captures are kept than --keep-captures allows";
	}
	if (keep->bytes != 0 && kept->bytes > keep->bytes) {
		return "the captures are larger than --keep-bytes allows";
	}
	/* In days of ended_us, so that no number of days is too large. */
	if (keep->days != 0 && now_us > entry->ended_us &&
		(now_us - entry->ended_us) / DAY_US >= keep->days) {
		return "it is older than --keep-days allows";
	}
	return NULL;
}

static bool let_go(struct captures *captures, const char *id, const char *why)
{
	struct error err = {0};
	log_write(captures->options.log, LOG_INFO, "capture", "%s is deleted: %s", id, why);
	bool ok = captures_delete(captures, id, NULL, NULL, &err);
	if (!ok) {
		log_write(captures->options.log, LOG_WARN, "capture", "%s", err.message);
	}
	return ok;
}

void retention_apply(struct captures *captures, const char *spared)
{
	const struct store *store = captures->options.store;
	struct kept kept = count(store);
	struct store_entry entry = {0};
	uint64_t now_us = clock_unix_us();
	while (store_look(store, entry.id, &entry)) {
		/* One without a size has only just ended. */
		bool may_go = counts(&entry) && entry.bytes > 0 &&
					  (spared == NULL || strcmp(entry.id, spared) != 0) &&
					  !captures_is_symbolizing(captures, entry.id);
		const char *why = may_go ? surplus(&captures->options.keep, &kept, &entry, now_us) : NULL;
		if (why != NULL && let_go(captures, entry.id, why)) {
			kept.captures--;
			kept.bytes -= entry.bytes;
		}
	}
}
