/*
 * profd-analyzer: reads what a capture recorded and writes what people look at. The daemon starts it with a channel at descriptor
 * 3 and sends every file through it (profile/analysis.h); it opens none, because what it parses was chosen by the program that was
 * profiled, and what it could do besides it gives up before the first one comes (analyzer/sandbox.h). It ends with its channel.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/job.h"
#include "analyzer/sandbox.h"

#define RESERVE_BYTES (256 * 1024)

struct analyzer {
	int channel;
	struct job *job; /* NULL: before "begin", and after a failure */
	void *reserve;   /* memory for saying that there is none; NULL: used */
	bool has_failed; /* told once; what follows is of no use */
};

/* One type of message. False: err. */
struct handler {
	const char *type;
	bool needs_job;
	bool (*handle)(struct analyzer *analyzer, struct analysis_message *message, struct error *err);
};

static bool handle_begin(
	struct analyzer *analyzer, struct analysis_message *message, struct error *err)
{
	if (analyzer->job != NULL) {
		return error_set(err, ERROR_INTERNAL, "\"begin\" came twice");
	}
	analyzer->job = job_create(analyzer->channel, message, err);
	return analyzer->job != NULL;
}

static bool handle_image(
	struct analyzer *analyzer, struct analysis_message *message, struct error *err)
{
	return job_give_image(analyzer->job, message, err);
}

static bool handle_kernel(
	struct analyzer *analyzer, struct analysis_message *message, struct error *err)
{
	return job_give_kernel(analyzer->job, message, err);
}

static bool handle_kept(
	struct analyzer *analyzer, struct analysis_message *message, struct error *err)
{
	return job_give_kept(analyzer->job, message, err);
}

static bool handle_finish(
	struct analyzer *analyzer, struct analysis_message *message, struct error *err)
{
	json_t *done = job_finish(analyzer->job, err);
	bool sent = done != NULL && analysis_send(analyzer->channel, done, NULL, 0, err);

	(void)message;
	json_decref(done);
	return sent;
}

static const struct handler HANDLERS[] = {
	{"begin", false, handle_begin},
	{"image", true, handle_image},
	{"kernel_symbols", true, handle_kernel},
	{"kept_symbols", true, handle_kept},
	{"finish", true, handle_finish},
};

static bool dispatch(struct analyzer *analyzer, struct analysis_message *message, struct error *err)
{
	const char *type = analysis_message_type(message);

	for (size_t i = 0; i < sizeof(HANDLERS) / sizeof(HANDLERS[0]); i++) {
		const struct handler *handler = &HANDLERS[i];

		if (strcmp(handler->type, type) != 0) {
			continue;
		}
		if (handler->needs_job && analyzer->job == NULL) {
			return error_set(err, ERROR_INTERNAL, "\"%s\" came before \"begin\"", type);
		}
		return handler->handle(analyzer, message, err);
	}
	return error_set(err, ERROR_UNSUPPORTED, "the analyzer knows no message \"%.64s\"", type);
}

/* Drops what it had, and says so once. False: it could not be said; the exit status must. */
static bool fail(struct analyzer *analyzer, const struct error *err)
{
	job_destroy(analyzer->job);
	free(analyzer->reserve);
	analyzer->job = NULL;
	analyzer->reserve = NULL;
	analyzer->has_failed = true;
	json_t *body = json_pack("{s:s,s:o}", "type", "failed", "error", error_to_json(err));
	bool sent = body != NULL && analysis_send(analyzer->channel, body, NULL, 0, NULL);

	json_decref(body);
	if (!sent) {
		fprintf(stderr, "profd-analyzer: %s\n", err->message);
	}
	return sent;
}

/* Until the channel ends. The exit status. */
static int serve(struct analyzer *analyzer)
{
	for (;;) {
		struct analysis_message message = {0};
		struct error err = {0};
		bool goes_on;

		switch (analysis_receive(analyzer->channel, &message, &err)) {
		case ANALYSIS_MESSAGE:
			goes_on =
				analyzer->has_failed || dispatch(analyzer, &message, &err) || fail(analyzer, &err);
			analysis_message_finish(&message);
			if (!goes_on) {
				return 1;
			}
			break;
		case ANALYSIS_CLOSED:
			return 0;
		case ANALYSIS_AGAIN: /* the analyzer's end blocks */
		case ANALYSIS_BROKEN:
			fail(analyzer, &err);
			return 1;
		}
	}
}

/* What would ask the system for something later is done now. */
static bool prepare(struct analyzer *analyzer, struct error *err)
{
	const struct sandbox_limits limits = sandbox_default_limits();

	signal(SIGXFSZ, SIG_IGN); /* a file over RLIMIT_FSIZE is an error like a full disk */
	json_object_seed(0);      /* opens /dev/urandom */
	analyzer->reserve = malloc(RESERVE_BYTES);
	if (analyzer->reserve == NULL) {
		return error_set(err, ERROR_LIMIT_EXCEEDED, "no memory to start the analyzer with");
	}
	return sandbox_enter(&limits, err);
}

int main(int argc, char **argv)
{
	struct analyzer analyzer = {.channel = ANALYSIS_FD};

	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		printf("profd-analyzer %s\n", PROFD_VERSION);
		return 0;
	}
	if (argc != 1) {
		fprintf(stderr, "profd-analyzer is started by profd, with its channel at descriptor %d\n",
			ANALYSIS_FD);
		return 2;
	}
	struct error err = {0};
	int status = 1;

	if (prepare(&analyzer, &err)) {
		status = serve(&analyzer);
	} else {
		fail(&analyzer, &err);
	}
	job_destroy(analyzer.job);
	free(analyzer.reserve);
	return status;
}
