#include "client/advice.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "client/reply.h"

/* Whole words and phrases; a longer one stands before one that it begins with. */
static const struct {
	const char *protocol, *shell;
} words[] = {
	{"call ListProcesses for the builds known", "profctl ps lists those known"},
	{"call ListCaptures for those known", "profctl captures lists those known"},
	{"call Describe with this method for its parameters", "profctl(1) tells what it takes"},
	{"start it: profd --socket", "profctl daemon start --socket"},
	{"start it again, it replaces the socket: profd --socket", "profctl daemon start --socket"},
	{"launch with gpu: true", "run it with profctl gpu"},
	{"launch it with LaunchProcess and gpu, or behind profd-gate", "run it with profctl gpu"},
	{"frame_by: submit", "--frame-by submit"},
	{"a later start_frame, or for the next frames with frames",
		"a later --gpu-trace-start-frame, or for the next frames with --frames"},
	{"StopCapture", "profctl stop --capture"},
	{"StopProcess", "profctl stop"},
	{"ResumeProcess", "profctl resume"},
	{"LaunchProcess", "profctl launch"},
	{"DeleteCapture", "profctl delete"},
	{"ListProcesses", "profctl ps"},
	{"ListCaptures", "profctl captures"},
	{"discard: true", "profctl stop --capture --discard"},
};

#define WORDS_COUNT (sizeof(words) / sizeof(words[0]))

/* The entry that text begins with, or WORDS_COUNT. */
static size_t find(const char *text)
{
	size_t i = 0;
	while (i < WORDS_COUNT && strncmp(text, words[i].protocol, strlen(words[i].protocol)) != 0) {
		i++;
	}
	return i;
}

void advice_print(FILE *out, const char *hint)
{
	char *copy = strdup(hint);
	if (copy == NULL) {
		return;
	}
	char *begin = copy;
	for (char *at = copy; *at != '\0';) {
		size_t word = find(at);
		if (word == WORDS_COUNT) {
			at++;
			continue;
		}
		size_t len = strlen(words[word].protocol);
		*at = '\0';
		reply_print(out, begin, 0);
		fputs(words[word].shell, out);
		at += len;
		begin = at;
	}
	reply_print(out, begin, 0);
	free(copy);
}
