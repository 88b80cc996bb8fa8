#include "options.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEEP_CAPTURES 200
#define KEEP_DAYS     14
#define KEEP_BYTES    (UINT64_C(2) << 30)
#define KEEP_MAX      1000000000

#define IDLE_EXIT_MAX_S (10 * 365 * 24 * 3600)

enum option_value {
	OPTION_SOCKET = 1000,
	OPTION_DATA_DIR,
	OPTION_LOG_LEVEL,
	OPTION_IDLE_EXIT,
	OPTION_KEEP_CAPTURES,
	OPTION_KEEP_DAYS,
	OPTION_KEEP_BYTES,
	OPTION_READY_FD
};

static const struct option long_options[] = {
	{"socket", required_argument, NULL, OPTION_SOCKET},
	{"data-dir", required_argument, NULL, OPTION_DATA_DIR},
	{"log-level", required_argument, NULL, OPTION_LOG_LEVEL},
	{"idle-exit", required_argument, NULL, OPTION_IDLE_EXIT},
	{"keep-captures", required_argument, NULL, OPTION_KEEP_CAPTURES},
	{"keep-days", required_argument, NULL, OPTION_KEEP_DAYS},
	{"keep-bytes", required_argument, NULL, OPTION_KEEP_BYTES},
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
	"  --keep-captures N    delete the oldest captures when there are more than N\n"
	"                       (default: 200; here and below 0 means no limit)\n"
	"  --keep-days N        delete captures that ended N days ago (default: 14)\n"
	"  --keep-bytes SIZE    delete the oldest captures when all take more than SIZE bytes,\n"
	"                       or with K, M, G or T behind it (default: 2G)\n"
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

static bool take_keep(const char *option, const char *text, uint64_t *limit, struct error *err)
{
	long number = 0;
	if (!parse_number(text, KEEP_MAX, &number)) {
		error_set(err, ERROR_BAD_PARAMS, "%s %s: a number from 0 to %d is needed", option, text,
			KEEP_MAX);
		return error_hint(err, "0 means no limit");
	}
	*limit = (uint64_t)number;
	return true;
}

/* "2G": a number of bytes, or of the unit behind it. */
static bool take_keep_bytes(struct options *options, const char *text, struct error *err)
{
	static const char units[] = "KMGT";
	char digits[32];
	size_t len = strspn(text, "0123456789");
	const char *unit = text[len] != '\0' ? strchr(units, text[len]) : NULL;
	int shift = unit != NULL ? 10 * (int)(unit - units + 1) : 0;
	long number = 0;
	snprintf(digits, sizeof(digits), "%.*s", (int)(len < sizeof(digits) ? len : 0), text);
	if (text[len] != '\0' && (unit == NULL || text[len + 1] != '\0')) {
		digits[0] = '\0'; /* something else stands behind it */
	}
	if (!parse_number(digits, LONG_MAX >> shift, &number)) {
		error_set(err, ERROR_BAD_PARAMS,
			"--keep-bytes %s: a number of bytes is needed, or one with K, M, G or T behind it",
			text);
		return error_hint(err, "0 means no limit");
	}
	options->keep.bytes = (uint64_t)number << shift;
	return true;
}

static bool take_ready_fd(struct options *options, const char *text, struct error *err)
{
	long fd = -1;
	/* Below 3 is where the log and the programs' defaults are. */
	if (!parse_number(text, INT_MAX, &fd) || fd <= STDERR_FILENO ||
		fcntl((int)fd, F_SETFD, FD_CLOEXEC) != 0) {
		return error_set(err, ERROR_BAD_PARAMS,
			"--ready-fd %s: an open descriptor of 3 or above is needed", text);
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
	case OPTION_KEEP_CAPTURES:
		return take_keep("--keep-captures", optarg, &options->keep.captures, err);
	case OPTION_KEEP_DAYS:
		return take_keep("--keep-days", optarg, &options->keep.days, err);
	case OPTION_KEEP_BYTES:
		return take_keep_bytes(options, optarg, err);
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
	*options = (struct options){
		.log_level = LOG_INFO,
		.ready_fd = -1,
		.keep = {.captures = KEEP_CAPTURES, .bytes = KEEP_BYTES, .days = KEEP_DAYS},
	};
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
