#include "client/advice.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "client/reply.h"

struct phrase {
	const char *protocol, *shell;
};

/* Whole words and phrases; a longer one stands before one that it begins with. */
static const struct phrase methods[] = {
	{"call ListProcesses for the builds known", "profctl ps lists those known"},
	{"call ListCaptures for those known", "profctl captures lists those known"},
	{"call GetCapture for what it has become", "profctl show tells what it has become"},
	{"call Describe with this method for its parameters", "profctl(1) tells what it takes"},
	{"see the capabilities that Hello returns", "profctl doctor tells what works here"},
	{"choose another one that Hello's capabilities name", "profctl doctor tells what works here"},
	{"start it: profd --socket", "profctl daemon start --socket"},
	{"start it again, it replaces the socket: profd --socket", "profctl daemon start --socket"},
	{"launch with gpu: true", "run it with profctl gpu"},
	{"launch it with gpu: true", "run it with profctl gpu"},
	{"launch it with LaunchProcess and gpu, or behind profd-gate", "run it with profctl gpu"},
	{"launch it with that device in gpu, so that it sees no other",
		"run it with profctl gpu --device"},
	{"launch it with that device in gpu", "run it with profctl gpu --device"},
	{"is launched with gpu {api: gl}", "is run with --api gl"},
	{"is launched with gpu {api: vulkan}", "is run with --api vulkan"},
	{"say device in StartGpuTrace", "run it with profctl gpu --device"},
	{"use StartGpuTrace", "use profctl gpu"},
	{"StopCapture", "profctl stop --capture"},
	{"StopProcess", "profctl stop"},
	{"ResumeProcess", "profctl resume"},
	{"LaunchProcess", "profctl launch"},
	{"DeleteCapture", "profctl delete"},
	{"ListProcesses", "profctl ps"},
	{"ListCaptures", "profctl captures"},
	{"discard: true", "profctl stop --capture --discard"},
};

static const struct phrase parameters[] = {
	{"check argv[0], cwd and their permissions",
		"check the program, the folder and their permissions"},
	{"a later start_frame, or for the next frames with frames",
		"a later --gpu-trace-start-frame, or for the next frames with --frames"},
	{"start_frame", "--gpu-trace-start-frame"},
	{"end_frame", "--gpu-trace-end-frame"},
	{"frame_by is", "--frame-by is"},
	{"frame_by: ", "--frame-by "},
	{"frame_by", "--frame-by"},
	{"frames is", "--frames is"},
	{"duration_ms", "--duration"},
	{"timeout_ms", "--timeout"},
	{"an output_dir that", "a folder (-o) that"},
	{"a shorter output_dir", "a folder (-o) with a shorter path"},
	{"output_dir", "-o"},
	{"another build_id", "another --id"},
	{"build_id is", "--id is"},
	{"stdio is", "--stdio is"},
	{"on_daemon_exit leave", "--leave"},
	{"stdio pipe", "--stdio pipe"},
	{"ask for stdio file or null", "ask for --stdio file or null"},
	{"gpu.api", "--api"},
	{"gpu.device", "--device"},
	{"device is", "--device is"},
	{"label is", "--label is"},
	{"raise hz", "raise -F"},
	{"lower hz", "lower -F"},
	{"hz is", "-F is"},
	{"unwind: fp", "--unwind fp"},
	{"max_depth", "--max-depth"},
};

#define METHODS_COUNT    (sizeof(methods) / sizeof(methods[0]))
#define PARAMETERS_COUNT (sizeof(parameters) / sizeof(parameters[0]))

/* Of a name; also what makes a path of it. */
static bool continues(char byte)
{
	return isalnum((unsigned char)byte) || byte == '_' || byte == '/' || byte == '-';
}

static bool is_whole(const char *text, const char *at, size_t len)
{
	bool begins = at == text || !continues(at[-1]);
	return begins && (!continues(at[len - 1]) || !continues(at[len]));
}

/* The phrase that text has at that place, or NULL. */
static const struct phrase *find(
	const struct phrase *phrases, size_t count, const char *text, const char *at)
{
	for (size_t i = 0; i < count; i++) {
		size_t len = strlen(phrases[i].protocol);
		if (strncmp(at, phrases[i].protocol, len) == 0 && is_whole(text, at, len)) {
			return &phrases[i];
		}
	}
	return NULL;
}

static void print(FILE *out, const char *text, bool has_methods)
{
	char *copy = strdup(text);
	if (copy == NULL) {
		return;
	}
	char *begin = copy;
	for (const char *at = text; *at != '\0';) {
		const struct phrase *phrase = find(parameters, PARAMETERS_COUNT, text, at);
		if (phrase == NULL && has_methods) {
			phrase = find(methods, METHODS_COUNT, text, at);
		}
		if (phrase == NULL) {
			at++;
			continue;
		}
		copy[at - text] = '\0';
		reply_print(out, begin, 0);
		fputs(phrase->shell, out);
		at += strlen(phrase->protocol);
		begin = copy + (at - text);
	}
	reply_print(out, begin, 0);
	free(copy);
}

void advice_print(FILE *out, const char *hint)
{
	print(out, hint, true);
}

void advice_print_message(FILE *out, const char *message)
{
	print(out, message, false);
}
