#include "commands/lease.h"

#include <stdlib.h>

struct lease {
	struct daemon *daemon;
	struct capture_wait wait;
	struct client *client; /* compared, never looked into; NULL: none */
	struct lease *next;
};

static void destroy(struct lease *lease)
{
	struct lease **link = &lease->daemon->leases;
	while (*link != NULL && *link != lease) {
		link = &(*link)->next;
	}
	if (*link == lease) {
		*link = lease->next;
	}
	free(lease);
}

static void on_ended(struct capture_wait *wait, const json_t *record)
{
	(void)record;
	struct lease *lease = wait->context;
	struct daemon *daemon = lease->daemon;
	destroy(lease);
	if (daemon->settled != NULL) {
		daemon->settled(daemon);
	}
}

bool lease_create(struct daemon *daemon, struct capture *capture, struct client *stop_with)
{
	struct lease *lease = calloc(1, sizeof(*lease));
	if (lease == NULL) {
		return false;
	}
	lease->daemon = daemon;
	lease->client = stop_with;
	lease->wait = (struct capture_wait){.ended = on_ended, .context = lease};
	lease->next = daemon->leases;
	daemon->leases = lease;
	capture_wait(capture, &lease->wait);
	return true;
}

void leases_client_gone(struct daemon *daemon, const struct client *client)
{
	struct lease *next = NULL;
	for (struct lease *lease = daemon->leases; lease != NULL; lease = next) {
		next = lease->next; /* capture_stop tells of the end later, never from within */
		if (lease->client == client) {
			lease->client = NULL;
			capture_stop(lease->wait.capture, "client_exited", false);
		}
	}
}

void leases_finish(struct daemon *daemon)
{
	while (daemon->leases != NULL) {
		capture_unwait(&daemon->leases->wait);
		destroy(daemon->leases);
	}
}
