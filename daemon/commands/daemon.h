#ifndef COMMANDS_DAEMON_H
#define COMMANDS_DAEMON_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "base/log.h"
#include "capture/capture.h"
#include "process/process.h"
#include "server/server.h"
#include "store/store.h"

enum daemon_shutdown { DAEMON_RUNS, DAEMON_DRAIN, DAEMON_STOP, DAEMON_NOW };

struct adoption;
struct build;
struct lease;
struct key;

/* Everything the daemon consists of; built in main.c, handed to every command. Loop thread only. */
struct daemon {
	uv_loop_t *loop;
	struct log log;
	char instance_id[33];  /* 128 random bits in hex: another daemon, another id */
	uint64_t started_ns;   /* CLOCK_MONOTONIC */
	uint64_t idle_exit_ms; /* 0: it stays */
	const char *data_dir, *gate_path, *analyzer_path; /* absolute; main.c's */
	struct server *server;
	struct events *events; /* the server's */
	struct processes *processes;
	struct captures *captures;
	struct store *store;
	struct build *builds;       /* commands/build.h: oldest first */
	struct adoption *adoptions; /* commands/adoption.h */
	struct lease *leases;       /* commands/lease.h */
	struct key *request_keys;   /* commands/request_keys.h: oldest first */
	enum daemon_shutdown
		shutdown; /* not DAEMON_RUNS: new launches and captures are refused with shutting_down */
	/* main.c's: begins or hardens the end of the daemon. */
	void (*begin_shutdown)(struct daemon *daemon, enum daemon_shutdown mode);
	/* main.c's: a client, build or capture has just ended; looks at what that means in a later turn of the loop. May be NULL. */
	void (*settled)(struct daemon *daemon);
};

#endif
