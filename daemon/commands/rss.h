#ifndef COMMANDS_RSS_H
#define COMMANDS_RSS_H

#include <stdbool.h>
#include <stdint.h>

/* What this process holds in memory. One implementation per system. */
struct rss {
	uint64_t resident_bytes;  /* resident, shared pages too */
	uint64_t anonymous_bytes; /* private: what the process costs alone */
};

/* False: the system does not say. */
bool rss_read(struct rss *rss);

#endif
