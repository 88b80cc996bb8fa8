#include <string.h>

#include "client/profctl.h"
#include "client/reply.h"

/* What will work here, and what to change: the daemon's own checks. */

static void print_check(const struct profctl *profctl, const json_t *check)
{
	static const struct {
		const char *status, *color;
	} colors[] = {{"ok", "\033[32m"}, {"warn", "\033[33m"}, {"fail", "\033[31m"}};
	const char *status = reply_string(check, "status");
	const char *color = "", *end = "";
	for (size_t i = 0; profctl_colors(profctl) && i < sizeof(colors) / sizeof(colors[0]); i++) {
		if (strcmp(colors[i].status, status) == 0) {
			color = colors[i].color;
			end = "\033[m";
		}
	}
	char value[256] = "";
	const json_t *told = json_object_get(check, "value");
	reply_id(told, value, sizeof(value));
	printf("%s%-4s%s ", color, status, end);
	reply_print(stdout, reply_string(check, "id"), 20);
	putchar(' ');
	if (value[0] != '\0') {
		reply_print(stdout, value, 0);
		fputs(": ", stdout);
	}
	reply_print(stdout, reply_string(check, "message"), 0);
	putchar('\n');
	if (reply_string(check, "fix")[0] != '\0') {
		fputs("     ", stdout);
		reply_print(stdout, reply_string(check, "fix"), 0);
		putchar('\n');
	}
}

static int run_doctor(struct profctl *profctl, int argc, char **argv)
{
	int status = EXIT_SUCCESS;
	struct profclient *client = NULL;
	if (!profctl_operands(profctl, &doctor_command, argc, argv, 0, 0, &status) ||
		(client = profctl_connect(profctl, true, &status)) == NULL) {
		return status;
	}
	json_t *result = profctl_call(profctl, client, "Doctor", NULL, &status);
	size_t index;
	const json_t *check;
	json_array_foreach(json_object_get(result, "checks"), index, check)
	{
		if (profctl->json) {
			profctl_print_json(stdout, check);
		} else {
			print_check(profctl, check);
		}
		if (strcmp(reply_string(check, "status"), "fail") == 0) {
			status = EXIT_FAILED;
		}
	}
	json_decref(result);
	profclient_close(client);
	return status;
}

const struct profctl_command doctor_command = {
	.name = "doctor",
	.synopsis = "",
	.about = "what will work here, and what to change; fails when something does not",
	.run = run_doctor,
};
