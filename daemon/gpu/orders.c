#include "gpu/orders.h"

#include <stdio.h>
#include <string.h>

bool orders_make_start(
	struct gpu_wire_line *line, const struct gpu_range *range, const uint64_t *asked)
{
	gpu_wire_begin(line, "start");
	bool has_frames = range->has_frames || range->next > 0;
	enum gpu_boundary by = has_frames ? range->by : GPU_BY_MANUAL;
	gpu_wire_text(line, "by", gpu_boundary_name(by));
	if (by != range->by && range->by != GPU_BY_AUTO) {
		gpu_wire_text(line, "counts", gpu_boundary_name(range->by));
	}
	if (range->by == GPU_BY_LABEL) {
		gpu_wire_text(line, "label", range->label);
	}
	if (range->has_frames) {
		gpu_wire_number(line, "first", range->first);
		gpu_wire_number(line, "last", range->last);
	} else if (range->next > 0) {
		gpu_wire_number(line, "next", range->next);
	}
	if (range->device[0] != '\0') {
		gpu_wire_text(line, "device", range->device);
	}
	if (asked != NULL) {
		gpu_wire_number(line, "asked", *asked);
	}
	gpu_wire_text(line, "template", range->path_template);
	return strlen(range->path_template) < GPU_WIRE_PATH_BYTES && gpu_wire_end(line);
}

bool orders_send_word(struct link *link, const char *word)
{
	struct gpu_wire_line line;
	gpu_wire_begin(&line, word);
	return gpu_wire_end(&line) && link_send(link, &line);
}

void orders_send_refusal(struct link *link, uint64_t number, const struct error *err)
{
	struct gpu_wire_line line;
	char text[GPU_WIRE_TEXT_BYTES];
	snprintf(text, sizeof(text), "%.500s (%.250s)", err->message,
		err->hint[0] != '\0' ? err->hint : error_code_hint(err->code));
	gpu_wire_begin(&line, "refused");
	gpu_wire_number(&line, "asked", number);
	gpu_wire_text(&line, "code", error_code_name(err->code));
	gpu_wire_text(&line, "text", text);
	if (gpu_wire_end(&line)) {
		link_send(link, &line);
	}
}
