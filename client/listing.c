#include "client/listing.h"

#include <stdio.h>
#include <stdlib.h>

struct printing {
	const struct listing *listing;
	const struct profctl *profctl;
};

static bool print(void *context, const json_t *record)
{
	const struct printing *printing = context;
	if (printing->profctl->json) {
		profctl_print_json(stdout, record);
	} else {
		printing->listing->print(printing->profctl, record);
	}
	return true;
}

int listing_run(const struct listing *listing, struct profctl *profctl, int argc, char **argv)
{
	int status = EXIT_SUCCESS;
	struct profclient *client = NULL;
	struct printing printing = {listing, profctl};
	struct error err = {0};
	if (!profctl_operands(profctl, listing->command, argc, argv, 0, 0, &status) ||
		(client = profctl_connect(profctl, true, &status)) == NULL) {
		return status;
	}
	if (!profctl->json) {
		puts(listing->heading);
	}
	if (!profctl_pages(client, listing->method, listing->member, print, &printing, &err)) {
		status = profctl_fail(profctl, &err);
	}
	profclient_close(client);
	return status;
}
