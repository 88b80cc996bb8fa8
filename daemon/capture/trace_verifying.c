#include "capture/trace_verifying.h"

#include <stdio.h>
#include <string.h>

#include "capture/document.h"
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

/* What was looked at is not what the record would name: whoever follows that path would find another file, or none. */
static void fail_replaced(struct capture *capture)
{
	struct error err = {0};
	error_set(&err, ERROR_IO,
		"%.600s/%s is not the document any more that was recorded: it, or the capture's folder, "
		"was "
		"moved, replaced or changed meanwhile",
		capture->folder.path, capture->tracing->backend->document);
	error_detail(&err, "document_replaced");
	error_hint(&err, "let nobody else write in the folder of captures, and record it again");
	trace_record_clear_document(capture->record.trace);
	trace_record_set_verified(capture->record.trace, false);
	ending_fail(capture, &err);
}

/* The name is in the folder of which we have the descriptor, and that is where its path says. */
static bool is_in_its_place(const struct capture *capture)
{
	const struct tracing *tracing = capture->tracing;
	return store_folder_is_at_its_path(&capture->folder) &&
		   document_is_at(&tracing->document, capture->folder.fd, tracing->backend->document);
}

static void finish(struct capture *capture)
{
	if (is_in_its_place(capture)) {
		ending_finish(capture);
	} else {
		fail_replaced(capture);
	}
}

static void take_verdict(struct capture *capture, const struct verdict *verdict)
{
	bool is_whole = capture->tracing->is_vouched || verdict->is == VERDICT_GOOD;
	trace_record_set_verified(capture->record.trace, verdict->is == VERDICT_GOOD);
	if (!is_in_its_place(capture)) {
		fail_replaced(capture);
	} else if (verdict->is == VERDICT_BROKEN) {
		fail_broken(capture, verdict);
	} else if (!is_whole) {
		fail_unread(capture, verdict);
	} else {
		if (verdict->is == VERDICT_UNREAD) {
			warn_unread(capture, verdict);
		}
		ending_finish(capture);
	}
}

static void document_judged(void *context, const struct verdict *verdict)
{
	struct capture *capture = context;
	capture->tracing->verifying = NULL;
	if (capture->discard) {
		ending_cancel(capture);
	} else {
		take_verdict(capture, verdict);
	}
}

void trace_verifying_begin(struct capture *capture)
{
	struct tracing *tracing = capture->tracing;
	struct verdict verdict = {.is = VERDICT_UNREAD};
	struct verifying_options options = {
		.loop = capture->captures->options.loop,
		.processes = capture->captures->options.processes,
		.reader = tracing->backend->reader,
		.document_fd = tracing->document.fd,
		.name = tracing->backend->document,
		.bytes = tracing->document.bytes,
		.limit_ms = LIMIT_GPU_VERIFY_MS,
		.done = document_judged,
		.context = capture,
	};
	if (!tracing->is_verified) {
		trace_record_set_verified(capture->record.trace, false);
		finish(capture);
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
