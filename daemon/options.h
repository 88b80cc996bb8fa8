#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "capture/capture.h"
#include "protocol/error.h"

/* profd's command line (docs/man/profd.1). */
struct options {
	const char *socket;  /* NULL: the default; borrowed from argv */
	char data_dir[4096]; /* absolute */
	enum log_level log_level;
	uint64_t idle_exit_ms; /* 0: never */
	struct captures_keep keep;
	int ready_fd; /* -1: nobody waits */
};

enum options_result {
	OPTIONS_RUN,
	OPTIONS_SHOWN, /* --help or --version was printed: exit 0 */
	OPTIONS_BAD,   /* err names the option: exit 2 */
};

enum options_result options_parse(
	struct options *options, int argc, char **argv, struct error *err);

#endif
