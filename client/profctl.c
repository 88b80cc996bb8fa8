#include "client/profctl.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static const struct profctl_command *const commands[] = {
	&record_command, &ps_command, &captures_command, &status_command, &call_command, NULL};

void profctl_complain(const struct error *err)
{
	const char *hint = err->hint[0] != '\0' ? err->hint : error_code_hint(err->code);
	fprintf(stderr, "profctl: %s\n", err->message);
	if (hint[0] != '\0') {
		fprintf(stderr, "profctl: %s\n", hint);
	}
}

int profctl_usage(const struct profctl_command *command)
{
	fprintf(stderr, "usage: profctl %s %s\n", command->name, command->synopsis);
	return EXIT_USAGE;
}

void profctl_print_json(FILE *out, const json_t *value)
{
	json_dumpf(value, out, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_ENCODE_ANY);
	fputc('\n', out);
}

static void help(FILE *out)
{
	fprintf(out, "usage: profctl [--socket PATH] [--json] [--no-start] COMMAND …\n\n");
	for (size_t i = 0; commands[i] != NULL; i++) {
		fprintf(out, "  %-10s %s\n", commands[i]->name, commands[i]->about);
	}
	fprintf(out, "\nprofctl record ./program profiles a program; profctl(1) has the rest.\n");
}

static int run(const struct profctl *profctl, const char *name, int argc, char **argv)
{
	for (size_t i = 0; commands[i] != NULL; i++) {
		if (strcmp(commands[i]->name, name) == 0) {
			return commands[i]->run(profctl, argc, argv);
		}
	}
	fprintf(stderr, "profctl: there is no command '%s'; profctl --help lists them\n", name);
	return EXIT_USAGE;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"socket", required_argument, NULL, 's'},
		{"json", no_argument, NULL, 'j'}, {"no-start", no_argument, NULL, 'n'},
		{"help", no_argument, NULL, 'h'}, {"version", no_argument, NULL, 'V'}, {NULL, 0, NULL, 0}};
	struct profctl profctl = {0};
	for (int option; (option = getopt_long(argc, argv, "+h", options, NULL)) != -1;) {
		switch (option) {
		case 's':
			profctl.socket_given = optarg;
			break;
		case 'j':
			profctl.json = true;
			break;
		case 'n':
			profctl.no_start = true;
			break;
		case 'h':
			help(stdout);
			return EXIT_SUCCESS;
		case 'V':
			printf("profctl %s\n", PROFD_VERSION);
			return EXIT_SUCCESS;
		default:
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
	return run(&profctl, command, argc - first, argv + first);
}
