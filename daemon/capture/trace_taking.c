#include "capture/trace_taking.h"

#include <inttypes.h>
#include <stdio.h>

#include "capture/document.h"
#include "capture/trace_record.h"
#include "capture/trace_shaders.h"
#include "capture/trace_verifying.h"
#include "capture/tracing.h"
#include "store/contents.h"

#define BY_WINDOW      ", as what the program showed was about to go (its window, swapchain or context)"
#define BY_WINDOW_HINT "record frames of one window"

void trace_taking_fail(struct capture *capture, const struct error *err)
{
	if (capture->discard) {
		ending_cancel(capture);
	} else {
		contents_remove_documents(capture->folder.fd, NULL);
		ending_fail(capture, err);
	}
}

/* Worker. */
static void take_document(uv_work_t *work)
{
	struct capture *capture = work->data;
	struct tracing *tracing = capture->tracing;
	const struct gpu_backend *backend = tracing->backend;
	/* Before the document, because what is temporary goes with that. */
	trace_shaders_take(tracing->shaders, capture->folder.fd, &tracing->shader_counts);
	tracing->is_document_good = document_take(capture->folder.fd, tracing->document_path,
		backend->magic, backend->document, &tracing->document, &tracing->error);
	if (!tracing->is_document_good) {
		contents_remove(capture->folder.fd, CONTENTS_SHADERS, NULL);
	}
}

uint64_t trace_taking_frames_asked(const struct gpu_range *range)
{
	return range->has_frames ? range->last - range->first + 1 : range->next;
}

static void warn_of_range(struct capture *capture)
{
	const struct tracing *tracing = capture->tracing;
	uint64_t asked = trace_taking_frames_asked(&tracing->range);
	uint64_t got = tracing->last_frame - tracing->first_frame + 1;
	char message[256];
	if (asked > got) {
		snprintf(message, sizeof(message),
			"the recording ended early%s: it has %" PRIu64 " of the %" PRIu64 " frames",
			tracing->is_cut_by_window ? BY_WINDOW : "", got, asked);
		record_warn(&capture->record, "range_cut", message,
			tracing->is_cut_by_window ? BY_WINDOW_HINT : "let the program run longer");
	} else if (asked > 0 && got > asked) {
		snprintf(message, sizeof(message),
			"the recording could end only later: it has %" PRIu64
			" frames, asked for were %" PRIu64,
			got, asked);
		record_warn(&capture->record, "range_exceeded", message, GPU_WAITS_HINT);
	} else if (asked == 0 && tracing->is_cut_by_window) {
		record_warn(
			&capture->record, "range_cut", "the recording ended early" BY_WINDOW, BY_WINDOW_HINT);
	} else if (asked > 0 && tracing->is_last_open) {
		snprintf(message, sizeof(message),
			"the recording ended within frame %" PRIu64 ", before the program presented it",
			tracing->last_frame);
		record_warn(&capture->record, "range_cut", message,
			"let the program run longer, or count by frame_by: submit where it presents nothing");
	}
}

void trace_taking_warn_of_shaders(struct capture *capture)
{
	const struct trace_shaders_counts *counts = &capture->tracing->shader_counts;
	char message[512], hint[512];
	if (counts->left_out > 0) {
		snprintf(message, sizeof(message),
			"%" PRIu64 " shader%s of the frames %s not beside the trace%s%s", counts->left_out,
			counts->left_out == 1 ? "" : "s", counts->left_out == 1 ? "is" : "are",
			counts->problem[0] != '\0' ? "; " : "", counts->problem);
		record_warn(&capture->record, "shaders_left_out", message, NULL);
	}
	if (counts->total > counts->with_source) {
		snprintf(message, sizeof(message), "%" PRIu64 " of %" PRIu64 " shaders carry no source",
			counts->total - counts->with_source, counts->total);
		trace_shaders_hint(counts, hint, sizeof(hint));
		record_warn(&capture->record, "shader_no_source", message, hint);
	}
}

static void document_taken(uv_work_t *work, int status)
{
	struct capture *capture = work->data;
	struct tracing *tracing = capture->tracing;
	json_t *trace = capture->record.trace;
	(void)status;
	if (capture->discard || !tracing->is_document_good) {
		trace_taking_fail(capture, &tracing->error);
		return;
	}
	trace_record_set_document(
		trace, capture->folder.path, tracing->backend->document, tracing->document.bytes);
	trace_record_set_frames(trace, tracing->first_frame, tracing->last_frame);
	trace_record_set_shaders(trace, capture->folder.path, &tracing->shader_counts);
	warn_of_range(capture);
	trace_taking_warn_of_shaders(capture);
	/* A daemon that is killed while it is read leaves all that the next one must know. */
	capture_keep(capture);
	trace_verifying_begin(capture);
}

void trace_taking_begin(struct capture *capture)
{
	capture->record.state = "writing";
	capture->work.data = capture;
	uv_queue_work(capture->captures->options.loop, &capture->work, take_document, document_taken);
}
