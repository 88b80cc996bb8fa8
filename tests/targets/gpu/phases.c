#include "gpu/phases.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/gpu/profd_gpu.h"

__attribute__((visibility("default"))) void (*phases_hook)(unsigned frame, int is_behind);

struct call {
	bool is_stop;
	const char *where;
};

static void *make_call(void *context)
{
	const struct call *call = context;
	char label[64];
	snprintf(label, sizeof(label), "phase %s", call->where);
	int status = call->is_stop ? profd_gpu_stop() : profd_gpu_start(label);
	printf("own %s %s: %d%s%s\n", call->is_stop ? "stop" : "start", call->where, status,
		status != 0 ? " " : "", status != 0 ? profd_gpu_error() : "");
	fflush(stdout);
	return NULL;
}

static void run_call(struct call *call, bool on_thread)
{
	pthread_t thread;
	if (!on_thread || pthread_create(&thread, NULL, make_call, call) != 0) {
		make_call(call);
	} else {
		pthread_join(thread, NULL);
	}
}

static void run_calls(const char *list, const char *where, bool is_behind, bool on_thread)
{
	char words[1024], *rest = words, *word;
	snprintf(words, sizeof(words), "%s", list != NULL ? list : "");
	while ((word = strsep(&rest, ",")) != NULL) {
		char *equals = strchr(word, '=');
		struct call call = {strncmp(word, "stop", 4) == 0, where};
		if (equals != NULL && strcmp(equals + 1, where) == 0 && call.is_stop == is_behind) {
			run_call(&call, on_thread);
		}
	}
}

void phases_early(const char *list)
{
	run_calls(list, "early", false, false);
	run_calls(list, "early", true, false);
}

void phases_run(const char *list, unsigned frame, bool is_behind, bool on_thread)
{
	char where[16];
	snprintf(where, sizeof(where), "%u", frame);
	run_calls(list, where, is_behind, on_thread);
	if (phases_hook != NULL) {
		phases_hook(frame, is_behind);
	}
}
