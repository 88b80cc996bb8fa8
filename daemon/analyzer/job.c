#include "analyzer/job.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "analyzer/export/folded.h"
#include "analyzer/export/json.h"
#include "analyzer/export/summary.h"
#include "analyzer/export/svg_capture.h"
#include "analyzer/model/input.h"
#include "analyzer/model/model.h"
#include "analyzer/symbol/symbol.h"
#include "analyzer/tree/attribution.h"
#include "base/files.h"
#include "protocol/clock.h"
#include "protocol/names.h"

#define PROGRESS_NS    50000000u
#define NAMED_PERMILLE 700 /* what naming has of the whole, in the progress */

enum output { OUTPUT_FOLDED, OUTPUT_JSON, OUTPUT_SVG, OUTPUT_SYMBOLS, OUTPUT_COUNT };

struct job {
	int channel;               /* borrowed */
	int outputs[OUTPUT_COUNT]; /* owned; -1: not wanted, or written */
	json_t *facts;             /* owned; NULL: none */
	struct strings *strings;
	struct model *model;
	struct symbols *symbols;
	struct attribution *attribution;
	struct error kept_problem; /* why an earlier capture.symbols was of no use */
	json_t *warnings;          /* owned */
	json_t *artifacts;         /* owned: what was written so far, for capture.json */
	json_t *written;           /* owned: the same for "done" */
	uint64_t told_ns;
};

/* One way to show a capture. write appends the document, and may add to facts (bytes are added for it). */
struct writer {
	const char *name, *file;
	bool (*write)(struct job *job, struct buffer *out, json_t *facts);
};

static bool write_folded(struct job *job, struct buffer *out, json_t *facts)
{
	size_t stacks;

	return folded_write(out, job->attribution->tree, &stacks) &&
		   json_object_set_new(facts, "stacks", json_integer((json_int_t)stacks)) == 0;
}

static struct json_input input_of(const struct job *job)
{
	return (struct json_input){
		.facts = job->facts,
		.model = job->model,
		.symbols = job->symbols,
		.strings = job->strings,
		.attribution = job->attribution,
		.warnings = job->warnings,
		.artifacts = job->artifacts,
	};
}

static bool write_json(struct job *job, struct buffer *out, json_t *facts)
{
	const struct json_input input = input_of(job);

	(void)facts;
	return json_write(out, &input);
}

static uint64_t duration_ms(const struct job *job)
{
	const json_t *told = json_object_get(job->facts, "duration_ms");
	const struct model *model = job->model;

	if (json_is_integer(told) && json_integer_value(told) >= 0) {
		return (uint64_t)json_integer_value(told);
	}
	return model->end_ns > model->begin_ns ? (model->end_ns - model->begin_ns) / 1000000 : 0;
}

static bool write_svg(struct job *job, struct buffer *out, json_t *facts)
{
	const struct svg_capture capture = {job->facts, job->model, job->attribution, duration_ms(job)};

	(void)facts;
	return svg_capture_write(out, &capture);
}

static bool write_symbols(struct job *job, struct buffer *out, json_t *facts)
{
	(void)facts;
	return symbols_keep(job->symbols, out);
}

/* In the order in which they are written: what scripts wait for comes first. */
static const struct writer WRITERS[OUTPUT_COUNT] = {
	[OUTPUT_FOLDED] = {"folded", ARTIFACT_FOLDED, write_folded},
	[OUTPUT_JSON] = {"json", ARTIFACT_JSON, write_json},
	[OUTPUT_SVG] = {"svg", ARTIFACT_SVG, write_svg},
	[OUTPUT_SYMBOLS] = {"symbols", ARTIFACT_SYMBOLS, write_symbols},
};

static void close_fd(int *fd)
{
	if (*fd >= 0) {
		close(*fd);
	}
	*fd = -1;
}

void job_destroy(struct job *job)
{
	if (job == NULL) {
		return;
	}
	for (size_t i = 0; i < OUTPUT_COUNT; i++) {
		close_fd(&job->outputs[i]);
	}
	attribution_destroy(job->attribution);
	symbols_destroy(job->symbols);
	model_destroy(job->model);
	strings_destroy(job->strings);
	json_decref(job->facts);
	json_decref(job->warnings);
	json_decref(job->artifacts);
	json_decref(job->written);
	free(job);
}

static bool out_of_memory(struct error *err)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
		return error_set(err, ERROR_LIMIT_EXCEEDED, "the analyzer has no memory left");
	}
	return error_set(err, ERROR_LIMIT_EXCEEDED,
		"the analyzer has no memory left, its limit is %" PRIu64 " MiB",
		(uint64_t)limit.rlim_cur >> 20);
}

/* Descriptor 0 of "begin" is the journal, the outputs follow in the order of their names. */
static bool take_outputs(struct job *job, struct analysis_message *begin, struct error *err)
{
	const json_t *names = json_object_get(begin->body, "outputs");

	for (size_t i = 0; i < json_array_size(names); i++) {
		const char *name = json_string_value(json_array_get(names, i));
		size_t which = 0;

		while (which < OUTPUT_COUNT && (name == NULL || strcmp(WRITERS[which].name, name) != 0)) {
			which++;
		}
		if (which == OUTPUT_COUNT || job->outputs[which] >= 0) {
			return error_set(err, ERROR_UNSUPPORTED, "output \"%s\" is unknown or was named twice",
				name == NULL ? "" : name);
		}
		job->outputs[which] = analysis_message_take_file(begin, i + 1);
		if (job->outputs[which] < 0) {
			return error_set(err, ERROR_INTERNAL, "no descriptor came for output \"%s\"", name);
		}
	}
	return true;
}

static bool read_journal(struct job *job, struct analysis_message *begin, struct error *err)
{
	struct buffer bytes = {0};
	int fd = analysis_message_take_file(begin, 0);

	if (fd < 0) {
		return error_set(err, ERROR_INTERNAL, "no descriptor came for the journal");
	}
	if (input_read(fd, MODEL_JOURNAL_BYTES, "the journal", &bytes, err)) {
		job->model = model_create(job->strings, bytes.data, bytes.len, err);
	}
	buffer_finish(&bytes);
	close(fd);
	return job->model != NULL;
}

static bool begin(struct job *job, struct analysis_message *message, struct error *err)
{
	json_t *facts = json_object_get(message->body, "facts");
	const json_t *version = json_object_get(message->body, "version");

	if (json_integer_value(version) != ANALYSIS_VERSION) {
		return error_set(err, ERROR_UNSUPPORTED, "analysis version %lld, this program speaks %d",
			(long long)json_integer_value(version), ANALYSIS_VERSION);
	}
	job->facts = json_is_object(facts) ? json_incref(facts) : NULL;
	job->strings = strings_create();
	job->artifacts = json_object();
	job->written = json_object();
	if (job->strings == NULL || job->artifacts == NULL || job->written == NULL) {
		return out_of_memory(err);
	}
	if (!take_outputs(job, message, err) || !read_journal(job, message, err)) {
		return false;
	}
	job->symbols = symbols_create(
		job->model, job->strings, !json_is_false(json_object_get(message->body, "symbols")));
	if (job->symbols == NULL) {
		return out_of_memory(err);
	}
	if (json_is_false(json_object_get(message->body, "same_kernel"))) {
		symbols_forget_vdso(job->symbols);
	}
	return true;
}

struct job *job_create(int channel, struct analysis_message *message, struct error *err)
{
	struct job *job = calloc(1, sizeof(*job));

	if (job == NULL) {
		out_of_memory(err);
		return NULL;
	}
	job->channel = channel;
	for (size_t i = 0; i < OUTPUT_COUNT; i++) {
		job->outputs[i] = -1;
	}
	if (!begin(job, message, err)) {
		job_destroy(job);
		return NULL;
	}
	return job;
}

bool job_give_image(struct job *job, struct analysis_message *message, struct error *err)
{
	const json_t *id = json_object_get(message->body, "image");
	int fd = analysis_message_take_file(message, 0);

	if (fd < 0) {
		return error_set(err, ERROR_INTERNAL, "no descriptor came for image %lld",
			(long long)json_integer_value(id));
	}
	symbols_give_image(job->symbols, (uint64_t)json_integer_value(id), fd);
	return true;
}

bool job_give_kernel(struct job *job, struct analysis_message *message, struct error *err)
{
	int fd = analysis_message_take_file(message, 0);

	if (fd < 0) {
		return error_set(err, ERROR_INTERNAL, "no descriptor came for the kernel's symbols");
	}
	symbols_give_kernel(job->symbols, fd);
	return true;
}

bool job_give_kept(struct job *job, struct analysis_message *message, struct error *err)
{
	int fd = analysis_message_take_file(message, 0);

	if (fd < 0) {
		return error_set(err, ERROR_INTERNAL, "no descriptor came for the kept symbols");
	}
	/* Names that cannot be read are no reason to have none. */
	if (!symbols_give_kept(job->symbols, fd, &job->kept_problem)) {
		error_hint(&job->kept_problem, "where a file is gone since, its functions have no names");
	}
	return true;
}

/* At most every PROGRESS_NS. Nobody has to hear it: a channel that is gone is met at the next message. */
static void tell(struct job *job, unsigned permille, const char *phase)
{
	uint64_t now = clock_monotonic_ns();

	if (now - job->told_ns < PROGRESS_NS) {
		return;
	}
	job->told_ns = now;
	json_t *body =
		json_pack("{s:s,s:i,s:s}", "type", "progress", "permille", (int)permille, "phase", phase);

	if (body != NULL) {
		analysis_send(job->channel, body, NULL, 0, NULL);
	}
	json_decref(body);
}

static void tell_naming(void *context, unsigned permille)
{
	tell(context, permille * NAMED_PERMILLE / 1000, "symbolizing");
}

/* What capture.json says of an artifact: its name too, and before it is written. */
static bool list_artifacts(struct job *job)
{
	for (size_t i = 0; i < OUTPUT_COUNT; i++) {
		if (job->outputs[i] >= 0 && json_object_set_new(job->artifacts, WRITERS[i].name,
										json_pack("{s:s}", "file", WRITERS[i].file)) != 0) {
			return false;
		}
	}
	return true;
}

static bool note_written(struct job *job, const struct writer *writer, json_t *facts, size_t bytes)
{
	return json_object_set_new(facts, "bytes", json_integer((json_int_t)bytes)) == 0 &&
		   json_object_update(json_object_get(job->artifacts, writer->name), facts) == 0 &&
		   json_object_set(job->written, writer->name, facts) == 0;
}

static bool write_output(struct job *job, enum output which, struct error *err)
{
	const struct writer *writer = &WRITERS[which];
	struct buffer out = {0};
	json_t *facts = json_object();
	bool done = false;

	if (facts == NULL || !writer->write(job, &out, facts)) {
		out_of_memory(err);
	} else if (!files_write_all(job->outputs[which], out.data, out.len, NULL, err)) {
		error_wrap(err, "%s", writer->file);
	} else {
		done = note_written(job, writer, facts, out.len) || out_of_memory(err);
	}
	close_fd(&job->outputs[which]);
	buffer_finish(&out);
	json_decref(facts);
	return done;
}

static bool write_outputs(struct job *job, struct error *err)
{
	for (unsigned i = 0; i < OUTPUT_COUNT; i++) {
		if (job->outputs[i] < 0) {
			continue;
		}
		if (!write_output(job, (enum output)i, err)) {
			return false;
		}
		tell(job, NAMED_PERMILLE + (i + 1) * (1000 - NAMED_PERMILLE) / OUTPUT_COUNT, "writing");
	}
	return true;
}

static bool warn_of_kept(struct job *job)
{
	const struct error *problem = &job->kept_problem;

	return problem->code == ERROR_NONE ||
		   json_array_append_new(
			   job->warnings, json_pack("{s:s,s:s,s:s}", "code", "kept_symbols_unreadable",
								  "message", problem->message, "hint", problem->hint)) == 0;
}

static bool attribute(struct job *job)
{
	job->attribution = attribution_create(job->model, job->symbols, job->strings, tell_naming, job);
	if (job->attribution == NULL) {
		return false;
	}
	const struct json_input input = input_of(job);

	job->warnings = summary_warnings(&input);
	return job->warnings != NULL && warn_of_kept(job) && list_artifacts(job);
}

static json_t *done_message(const struct job *job)
{
	const struct model *model = job->model;
	const struct json_input input = input_of(job);

	return json_pack("{s:s,s:o,s:O,s:I,s:I,s:I,s:I,s:O}", "type", "done", "summary",
		summary_create(&input, duration_ms(job)), "warnings", job->warnings, "samples",
		(json_int_t)model_samples(model), "lost", (json_int_t)model_lost(model), "threads",
		(json_int_t)model->threads.len, "truncated", (json_int_t)job->attribution->truncated,
		"outputs", job->written);
}

json_t *job_finish(struct job *job, struct error *err)
{
	if (job->attribution != NULL) {
		error_set(err, ERROR_INTERNAL, "\"finish\" came twice");
		return NULL;
	}
	if (!attribute(job)) {
		out_of_memory(err);
		return NULL;
	}
	if (!write_outputs(job, err)) {
		return NULL;
	}
	json_t *done = done_message(job);

	if (done == NULL) {
		out_of_memory(err);
	}
	return done;
}
