#include "options.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define IDLE_EXIT_MAX_S (10 * 365 * 24 * 3600)

enum option_value {
	OPTION_SOCKET = 1000,
	OPTION_DATA_DIR,
	OPTION_LOG_LEVEL,
	OPTION_IDLE_EXIT,
	OPTION_READY_FD
};

static const struct option long_options[] = {
	{"socket", required_argument, NULL, OPTION_SOCKET},
	{"data-dir", required_argument, NULL, OPTION_DATA_DIR},
	{"log-level", required_argument, NULL, OPTION_LOG_LEVEL},
	{"idle-exit", required_argument, NULL, OPTION_IDLE_EXIT},
	{"ready-fd", required_argument, NULL, OPTION_READY_FD},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{0},
};

static const char usage[] =
	"usage: profd [OPTION …]\n"
	"\n"
	"Serves profiles of programs over a Unix socket, in the foreground.\n"
	"\n"
	"  --socket PATH        where to listen\n"
	"                       (default: $PROFD_SOCKET, $XDG_RUNTIME_DIR/profd/profd.sock\n"
	"                       or /tmp/profd-UID/profd.sock)\n"
	"  --data-dir DIR       where captures are kept\n"
	"                       (default: $XDG_DATA_HOME/profd or ~/.local/share/profd)\n"
	"  --log-level LEVEL    error, warn, info (default) or debug, on standard error\n"
	"  --idle-exit SECONDS  end after so long without clients, builds and captures\n"
	"  --ready-fd N         write \"ready\" or \"error: MESSAGE\" as a line to descriptor N\n"
	"  --help, --version\n";

static bool parse_number(const char *text, long max, long *out)
{
	char *end = NULL;
	errno = 0;
	long number = strtol(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || number > max) {
		return false;
	}
	*out = number;
	return true;
}

static bool take_idle_exit(struct options *options, const char *text, struct error *err)
{
	long seconds = 0;
	if (!parse_number(text, IDLE_EXIT_MAX_S, &seconds) || seconds == 0) {
		return error_set(err, ERROR_BAD_PARAMS,
			"--idle-exit %s: a number of seconds from 1 to %d is needed", text, IDLE_EXIT_MAX_S);
	}
	options->idle_exit_ms = (uint64_t)seconds * 1000;
	return true;
}

static bool take_ready_fd(struct options *options, const char *text, struct error *err)
{
	long fd = -1;
	if (!parse_number(text, INT_MAX, &fd) || fcntl((int)fd, F_SETFD, FD_CLOEXEC) != 0) {
		return error_set(
			err, ERROR_BAD_PARAMS, "--ready-fd %s: an open descriptor is needed", text);
	}
	options->ready_fd = (int)fd;
	return true;
}

/* A relative path is relative to where profd was started. */
static bool take_data_dir(struct options *options, const char *path, struct error *err)
{
	char folder[PATH_MAX] = "";
	if (path[0] == '\0') {
		return error_set(err, ERROR_BAD_PARAMS, "--data-dir: the path is empty");
	}
	if (path[0] != '/' && getcwd(folder, sizeof(folder)) == NULL) {
		return error_errno(err, "--data-dir %s: the current folder", path);
	}
	size_t len = (size_t)snprintf(options->data_dir, sizeof(options->data_dir), "%s%s%s", folder,
		path[0] == '/' ? "" : "/", path);
	return len < sizeof(options->data_dir) ||
		   error_set(err, ERROR_BAD_PARAMS, "--data-dir: the path is longer than %zu bytes",
			   sizeof(options->data_dir) - 1);
}

static bool default_data_dir(struct options *options, struct error *err)
{
	const char *data = getenv("XDG_DATA_HOME");
	const char *home = getenv("HOME");
	bool has_data = data != NULL &&
					data[0] == '/'; /* a relative one is to be ignored, says the specification */
	if (!has_data && (home == NULL || home[0] != '/')) {
		error_set(err, ERROR_BAD_PARAMS,
			"there is no place for captures: neither XDG_DATA_HOME nor HOME is set");
		return error_hint(err, "give one with --data-dir");
	}
	size_t len = (size_t)snprintf(options->data_dir, sizeof(options->data_dir), "%s%s",
		has_data ? data : home, has_data ? "/profd" : "/.local/share/profd");
	return len < sizeof(options->data_dir) ||
		   error_set(err, ERROR_BAD_PARAMS, "the default data folder's path is too long");
}

static bool take(struct options *options, int option, char **argv, struct error *err)
{
	switch (option) {
	case OPTION_SOCKET:
		options->socket = optarg;
		return optarg[0] != '\0' || error_set(err, ERROR_BAD_PARAMS, "--socket: the path is empty");
	case OPTION_DATA_DIR:
		return take_data_dir(options, optarg, err);
	case OPTION_LOG_LEVEL:
		return log_level_from_name(optarg, &options->log_level) ||
			   error_set(err, ERROR_BAD_PARAMS,
				   "--log-level %s: one of error, warn, info, debug is needed", optarg);
	case OPTION_IDLE_EXIT:
		return take_idle_exit(options, optarg, err);
	case OPTION_READY_FD:
		return take_ready_fd(options, optarg, err);
	case ':':
		return error_set(err, ERROR_BAD_PARAMS, "option %s needs a value", argv[optind - 1]);
	default:
		return error_set(err, ERROR_BAD_PARAMS, "unknown option %s", argv[optind - 1]);
	}
}

static enum options_result bad(struct error *err)
{
	if (err->hint[0] == '\0') {
		error_hint(err, "profd --help lists the options");
	}
	return OPTIONS_BAD;
}

enum options_result options_parse(struct options *options, int argc, char **argv, struct error *err)
{
	*options = (struct options){.log_level = LOG_INFO, .ready_fd = -1};
	int option = 0;
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
		if (option == 'h' || option == 'V') {
			fputs(option == 'h' ? usage : "profd " PROFD_VERSION "\n", stdout);
			return OPTIONS_SHOWN;
		}
		if (!take(options, option, argv, err)) {
			return bad(err);
		}
	}
	if (optind < argc) {
		error_set(err, ERROR_BAD_PARAMS, "unexpected argument %s", argv[optind]);
		return bad(err);
	}
	if (options->data_dir[0] == '\0' && !default_data_dir(options, err)) {
		return bad(err);
	}
	return OPTIONS_RUN;
}
