#ifndef CLIENT_LISTING_H
#define CLIENT_LISTING_H

#include "client/profctl.h"

/* A command that prints all records of a paged method, one a line. */
struct listing {
	const struct profctl_command *command;
	const char *method, *member; /* "ListCaptures", "captures" */
	const char *heading;
	void (*print)(const struct profctl *profctl,
		const json_t *record); /* for people; --json prints the record */
};

/* The command's exit status. */
int listing_run(const struct listing *listing, struct profctl *profctl, int argc, char **argv);

#endif
