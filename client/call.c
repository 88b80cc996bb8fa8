#include "client/profctl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The params as given on the command line, or from standard input for "-". NULL: told. */
static json_t *parse(const char *text)
{
	json_error_t problem;
	size_t flags = JSON_REJECT_DUPLICATES;
	json_t *params = strcmp(text, "-") == 0 ? json_loadf(stdin, flags, &problem)
											: json_loads(text, flags, &problem);
	if (params == NULL && ferror(stdin)) {
		fprintf(stderr, "profctl: standard input: %s\n", strerror(errno));
	} else if (params == NULL) {
		fprintf(stderr, "profctl: the parameters are not JSON: %s at column %d\n", problem.text,
			problem.column);
	}
	return params;
}

static int run(struct profctl *profctl, int argc, char **argv)
{
	int status = EXIT_SUCCESS;
	if (!profctl_operands(profctl, &call_command, argc, argv, 1, 2, &status)) {
		return status;
	}
	const char *method = argv[optind];
	json_t *params = NULL;
	if (argc - optind == 2 && (params = parse(argv[optind + 1])) == NULL) {
		return EXIT_USAGE;
	}
	struct profclient *client = profctl_connect(profctl, true, &status);
	if (client == NULL) {
		json_decref(params);
		return status;
	}
	json_t *result = profctl_call(profctl, client, method, params, &status);
	if (result != NULL) {
		profctl_print_json(stdout, result);
	}
	json_decref(result);
	profclient_close(client);
	return status;
}

const struct profctl_command call_command = {
	.name = "call",
	.synopsis = "METHOD [JSON|-]",
	.about = "call any method; prints its result as one line of JSON",
	.help = "  JSON  its parameters, an object; - reads them from standard input\n",
	.run = run,
};
