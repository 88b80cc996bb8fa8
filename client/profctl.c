#include "client/profctl.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/advice.h"
#include "client/job.h"
#include "client/reply.h"
#include "client/witness.h"
#include "protocol/gate.h"
#include "protocol/limits.h"
#include "protocol/text.h"

static const struct profctl_command *const commands[] = {&record_command, &gpu_command,
	&launch_command, &ps_command, &resume_command, &stop_command, &signal_command, &output_command,
	&input_command, &capture_command, &captures_command, &wait_command, &show_command,
	&symbolize_command, &label_command, &pin_command, &unpin_command, &delete_command,
	&events_command, &daemon_command, &status_command, &doctor_command, &call_command, NULL};

static const struct option common_options[] = {PROFCTL_OPTIONS};

/* --- what is told --- */

static void print_plainly(FILE *out, const char *message)
{
	reply_print(out, message, 0);
}

static void complain(const struct error *err, void (*print_message)(FILE *out, const char *message))
{
	const char *hint = err->hint[0] != '\0' ? err->hint : error_code_hint(err->code);
	fputs("profctl: ", stderr);
	print_message(stderr, err->message);
	if (hint[0] != '\0') {
		fputs(" (", stderr);
		advice_print(stderr, hint);
		fputc(')', stderr);
	}
	fputc('\n', stderr);
}

void profctl_complain(const struct error *err)
{
	complain(err, print_plainly);
}

void profctl_complain_of_options(const struct error *err)
{
	complain(err, advice_print_message);
}

int profctl_status_of(const struct error *err)
{
	static const char *const unreachable[] = {"not_running", "not_a_socket", "path_too_long",
		"start_failed", "program_missing", "hung", "disconnected"};
	for (size_t i = 0; i < sizeof(unreachable) / sizeof(unreachable[0]); i++) {
		if (strcmp(err->detail, unreachable[i]) == 0) {
			return EXIT_UNREACHABLE;
		}
	}
	if (strcmp(err->detail, "version_mismatch") == 0) {
		return EXIT_OTHER_VERSION;
	}
	switch (err->code) {
	case ERROR_NOT_PERMITTED:
		return EXIT_NOT_PERMITTED;
	case ERROR_BUILD_NOT_FOUND:
	case ERROR_CAPTURE_NOT_FOUND:
	case ERROR_PROCESS_NOT_FOUND:
		return EXIT_NOT_FOUND;
	case ERROR_TIMEOUT:
		return EXIT_TIMEOUT;
	case ERROR_BAD_PARAMS: /* what it was given on the command line */
		return EXIT_USAGE;
	default:
		return EXIT_FAILED;
	}
}

static int fail(const struct profctl *profctl, const struct error *err,
	void (*complain_of)(const struct error *err))
{
	if (profctl->json) {
		json_t *error = error_to_json(err);
		profctl_print_json(stdout, error);
		json_decref(error);
	} else {
		complain_of(err);
	}
	return profctl_status_of(err);
}

int profctl_fail(const struct profctl *profctl, const struct error *err)
{
	return fail(profctl, err, profctl_complain);
}

int profctl_fail_of_options(const struct profctl *profctl, const struct error *err)
{
	return fail(profctl, err, profctl_complain_of_options);
}

bool profctl_colors(const struct profctl *profctl)
{
	if (profctl->color != NULL && strcmp(profctl->color, "auto") != 0) {
		return strcmp(profctl->color, "always") == 0;
	}
	const char *no_color = getenv("NO_COLOR");
	const char *term = getenv("TERM");
	return (no_color == NULL || no_color[0] == '\0') && term != NULL && strcmp(term, "dumb") != 0 &&
		   isatty(STDOUT_FILENO);
}

void profctl_print_json(FILE *out, const json_t *value)
{
	json_dumpf(value, out, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_ENCODE_ANY);
	fputc('\n', out);
}

/* --- the command line --- */

int profctl_usage(const struct profctl_command *command)
{
	fprintf(stderr, "usage: profctl %s %s\n", command->name, command->synopsis);
	return EXIT_USAGE;
}

static void command_help(const struct profctl_command *command)
{
	printf("usage: profctl %s%s%s\n\n%s\n", command->name, command->synopsis[0] != '\0' ? " " : "",
		command->synopsis, command->about);
	if (command->help != NULL) {
		printf("\n%s", command->help);
	}
}

/* Takes a common option; false when it is none or its value is wrong (told). */
static bool take_common(struct profctl *profctl, int option, const char *value)
{
	switch (option) {
	case PROFCTL_SOCKET:
		profctl->socket_given = value;
		return true;
	case PROFCTL_JSON:
		profctl->json = true;
		return true;
	case PROFCTL_NO_START:
		profctl->no_start = true;
		return true;
	case PROFCTL_COLOR:
		if (strcmp(value, "auto") != 0 && strcmp(value, "always") != 0 &&
			strcmp(value, "never") != 0) {
			fprintf(stderr, "profctl: --color %s: one of auto, always, never is needed\n", value);
			return false;
		}
		profctl->color = value;
		return true;
	default:
		return false;
	}
}

int profctl_option(
	struct profctl *profctl, const struct profctl_command *command, int argc, char **argv)
{
	char short_options[64];
	snprintf(short_options, sizeof(short_options), "%sh",
		command->short_options != NULL ? command->short_options : "");
	const struct option *options = command->options != NULL ? command->options : common_options;
	for (;;) {
		int option = getopt_long(argc, argv, short_options, options, NULL);
		if (option == 'h') {
			command_help(command);
			return PROFCTL_HELP;
		}
		if (option == '?') {
			fprintf(stderr, "profctl: profctl %s --help lists its options\n", command->name);
			return '?';
		}
		if (option < PROFCTL_SOCKET || option >= PROFCTL_HELP) {
			return option;
		}
		if (!take_common(profctl, option, optarg)) {
			return '?';
		}
	}
}

int profctl_end(int option)
{
	return option == PROFCTL_HELP ? EXIT_SUCCESS : EXIT_USAGE;
}

bool profctl_program(struct profctl *profctl, const struct profctl_command *command, int argc,
	char **argv, bool (*take)(void *context, int option, const char *value), void *context,
	char ***program, int *status)
{
	*status = GATE_EXIT_NO_GO;
	for (int option; (option = profctl_option(profctl, command, argc, argv)) != -1;) {
		if (option == PROFCTL_HELP || option == '?') {
			*status = option == PROFCTL_HELP ? EXIT_SUCCESS : GATE_EXIT_NO_GO;
			return false;
		}
		if (!take(context, option, optarg)) {
			return false;
		}
	}
	*program = argv + optind;
	if (optind == argc || argv[optind][0] == '\0') {
		profctl_usage(command);
		return false;
	}
	return true;
}

bool profctl_operands(struct profctl *profctl, const struct profctl_command *command, int argc,
	char **argv, int min, int max, int *status)
{
	int option = profctl_option(profctl, command, argc, argv);
	if (option != -1) {
		*status = profctl_end(option);
		return false;
	}
	if (argc - optind < min || argc - optind > max) {
		*status = profctl_usage(command);
		return false;
	}
	return true;
}

/* strtoll and strtod take more: blanks and signs, hexadecimal digits, "inf". */
static bool is_written_with(const char *text, const char *characters)
{
	return text[0] != '\0' && text[strspn(text, characters)] == '\0';
}

bool profctl_whole(
	const char *option, const char *text, json_int_t min, json_int_t max, json_int_t *value)
{
	char *end = NULL;
	errno = 0;
	long long number = strtoll(text, &end, 10);
	if (errno != 0 || !is_written_with(text, "0123456789") || *end != '\0' || number < min ||
		number > max) {
		fprintf(stderr, "profctl: %s %s: a whole number from %lld to %lld is needed\n", option,
			text, (long long)min, (long long)max);
		return false;
	}
	*value = number;
	return true;
}

bool profctl_text(const char *what, const char *text)
{
	bool ok = text_is_utf8(text, strlen(text));
	if (!ok) {
		fprintf(stderr, "profctl: %s is not UTF-8 (profd takes no other text)\n", what);
	}
	return ok;
}

bool profctl_set_text(json_t *object, const char *member, const char *what, const char *text)
{
	return profctl_text(what, text) && json_object_set_new(object, member, json_string(text)) == 0;
}

bool profctl_seconds(
	const char *option, const char *text, bool zero_allowed, json_int_t *milliseconds)
{
	char *end = NULL;
	double seconds = strtod(text, &end);
	if (!is_written_with(text, "0123456789.e-") || end == text || *end != '\0' ||
		!isfinite(seconds) || seconds < 0 ||
		(seconds * 1000 < 1 && (!zero_allowed || seconds > 0)) ||
		seconds * 1000 > LIMIT_DURATION_MS) {
		fprintf(stderr, "profctl: %s %s: seconds are a number from %s to %d\n", option, text,
			zero_allowed ? "0" : "0.001", LIMIT_DURATION_MS / 1000);
		return false;
	}
	*milliseconds = (json_int_t)(seconds * 1000);
	return true;
}

static void help(FILE *out)
{
	fprintf(
		out, "usage: profctl [--socket PATH] [--json] [--no-start] [--color WHEN] COMMAND …\n\n");
	for (size_t i = 0; commands[i] != NULL; i++) {
		fprintf(out, "  %-10s %s\n", commands[i]->name, commands[i]->about);
	}
	fprintf(out, "\nprofctl record ./program profiles a program; profctl COMMAND --help tells "
				 "more, profctl(1) "
				 "the rest.\n");
}

static int run(struct profctl *profctl, const char *name, int argc, char **argv)
{
	for (size_t i = 0; commands[i] != NULL; i++) {
		if (strcmp(commands[i]->name, name) == 0) {
			return commands[i]->run(profctl, argc, argv);
		}
	}
	fprintf(stderr, "profctl: there is no command '%s' (profctl --help lists them)\n", name);
	return EXIT_USAGE;
}

/* What was printed must have arrived: a full disk is no success. */
static int finish(int status)
{
	if (fflush(stdout) != 0 || ferror(stdout)) {
		fprintf(stderr, "profctl: standard output: %s\n", strerror(errno));
		return status == EXIT_SUCCESS ? EXIT_FAILED : status;
	}
	return status;
}

/* Our connection must not become a standard descriptor that was closed, and what is used of those must fail. A program of record's finds them closed. */
static void hold_standard_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) < 0) {
			open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
		}
	}
}

int main(int argc, char **argv)
{
	witness_know_arguments(argc, argv);
	hold_standard_descriptors();
	static const struct option options[] = {{"version", no_argument, NULL, 'V'}, PROFCTL_OPTIONS};
	struct profctl profctl = {0};
	for (int option; (option = getopt_long(argc, argv, "+hV", options, NULL)) != -1;) {
		if (option == 'h') {
			help(stdout);
			return finish(EXIT_SUCCESS);
		}
		if (option == 'V') {
			printf("profctl %s\n", PROFD_VERSION);
			return finish(EXIT_SUCCESS);
		}
		if (!take_common(&profctl, option, optarg)) {
			return EXIT_USAGE;
		}
	}
	if (optind == argc) {
		help(stderr);
		return EXIT_USAGE;
	}
	int first = optind;
	char name[64]; /* what getopt says comes from here */
	snprintf(name, sizeof(name), "profctl %.40s", argv[first]);
	const char *command = argv[first];
	argv[first] = name;
	optind = 0; /* the command parses its own options from the beginning (glibc) */
	int status = finish(run(&profctl, command, argc - first, argv + first));
	job_die_with_it(status);
	return status;
}
