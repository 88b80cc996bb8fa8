#include "capture/trace_verifying.h"

#include <stdio.h>
#include <string.h>

#include "capture/trace_record.h"
#include "capture/tracing.h"
#include "protocol/limits.h"

static void warn_unread(struct capture *capture, const struct verdict *verdict)
{
	char message[sizeof(verdict->why) + 64];
	snprintf(message, sizeof(message), "the document was not verified: %s", verdict->why);
	record_warn(&capture->record, "not_verified", message, verdict->hint);
}

/* It is kept: what it has may still be of use, and shows what went wrong. */
static void fail_broken(struct capture *capture, const struct verdict *verdict)
{
	struct error err = {0};
	const struct gpu_backend *backend = capture->tracing->backend;
	error_set(&err, ERROR_IO, "the document cannot be read again: %s", verdict->why);
	error_detail(&err, "document_broken");
	error_hint(
		&err, "it was kept as %.600s/%s; record it again", capture->folder.path, backend->document);
	ending_fail(capture, &err);
}

/* The program that wrote it said nothing any more: it may be half of one. */
static void fail_unread(struct capture *capture, const struct verdict *verdict)
{
	struct error err = {0};
	const struct gpu_backend *backend = capture->tracing->backend;
	error_set(&err, ERROR_INTERRUPTED,
		"profd ended before the capture %s had ended, and whether the document that the program "
		"left is whole could not be found out: %s",
		capture->record.id, verdict->why);
	error_detail(&err, "not_verified");
	error_hint(&err, "it was kept as %.600s/%s: open it%s%s", capture->folder.path,
		backend->document, verdict->hint[0] != '\0' ? "; " : "", verdict->hint);
	ending_fail(capture, &err);
}

static void document_judged(void *context, const struct verdict *verdict)
{
	struct capture *capture = context;
	capture->tracing->verifying = NULL;
	if (capture->discard) {
		ending_cancel(capture);
		return;
	}
	trace_record_set_verified(capture->record.trace, verdict->is == VERDICT_GOOD);
	if (verdict->is == VERDICT_BROKEN) {
		fail_broken(capture, verdict);
		return;
	}
	if (verdict->is == VERDICT_UNREAD && !capture->tracing->is_vouched) {
		fail_unread(capture, verdict);
		return;
	}
	if (verdict->is == VERDICT_UNREAD) {
		warn_unread(capture, verdict);
	}
	ending_finish(capture);
}

void trace_verifying_begin(struct capture *capture)
{
	struct tracing *tracing = capture->tracing;
	struct verdict verdict = {.is = VERDICT_UNREAD};
	const char *path = json_string_value(json_object_get(capture->record.trace, "trace_path"));
	struct verifying_options options = {
		.loop = capture->captures->options.loop,
		.processes = capture->captures->options.processes,
		.reader = tracing->backend->reader,
		.path = path != NULL ? path : "",
		.bytes = tracing->document.bytes,
		.limit_ms = LIMIT_GPU_VERIFY_MS,
		.done = document_judged,
		.context = capture,
	};
	if (!tracing->is_verified) {
		trace_record_set_verified(capture->record.trace, false);
		ending_finish(capture);
		return;
	}
	if (tracing->haste != NULL) {
		snprintf(verdict.why, sizeof(verdict.why), "%s", tracing->haste);
	} else {
		tracing->verifying = verifying_start(&options, &verdict);
	}
	if (tracing->verifying == NULL) {
		document_judged(capture, &verdict);
	}
}

void trace_verifying_hasten(struct capture *capture, const char *reason)
{
	struct tracing *tracing = capture->tracing;
	if (!capture->discard && strcmp(reason, "daemon_shutdown") != 0) {
		return;
	}
	tracing->haste = capture->discard ? "the trace is thrown away" : "profd was ended meanwhile";
	if (tracing->verifying != NULL) {
		verifying_cancel(tracing->verifying, tracing->haste);
	}
}

void tracing_abandon(const struct tracing *tracing)
{
	if (tracing->verifying != NULL) {
		verifying_abandon(tracing->verifying);
	}
}
