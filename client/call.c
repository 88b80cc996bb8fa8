#include "client/profctl.h"

#include <stdlib.h>
#include <string.h>

/* The params as given on the command line, or from standard input for "-". NULL: told. */
static json_t *parse(const char *text)
{
	json_error_t problem;
	size_t flags = JSON_REJECT_DUPLICATES;
	json_t *params = strcmp(text, "-") == 0 ? json_loadf(stdin, flags, &problem)
											: json_loads(text, flags, &problem);
	if (params == NULL) {
		fprintf(stderr, "profctl: the parameters are not JSON: %s at column %d\n", problem.text,
			problem.column);
	}
	return params;
}

static int run(const struct profctl *profctl, int argc, char **argv)
{
	if (argc < 2 || argc > 3 || argv[1][0] == '-') {
		return profctl_usage(&call_command);
	}
	json_t *params = NULL;
	if (argc == 3 && (params = parse(argv[2])) == NULL) {
		return EXIT_USAGE;
	}
	struct profclient *client = profctl_connect(profctl, true);
	if (client == NULL) {
		json_decref(params);
		return EXIT_UNREACHABLE;
	}
	struct error err = {0};
	json_t *result = profclient_call(client, argv[1], params, &err);
	if (result != NULL) {
		profctl_print_json(stdout, result);
	} else if (profctl->json) {
		json_t *error = error_to_json(&err);
		profctl_print_json(stdout, error);
		json_decref(error);
	} else {
		profctl_complain(&err);
	}
	int status = result != NULL ? EXIT_SUCCESS : EXIT_FAILED;
	json_decref(result);
	profclient_close(client);
	return status;
}

const struct profctl_command call_command = {
	.name = "call",
	.synopsis = "METHOD [JSON|-]",
	.about = "call any method; prints its result as one line of JSON",
	.run = run,
};
