#include "analyzer/export/svg_capture.h"

#include <inttypes.h>
#include <string.h>

#include "analyzer/export/markup.h"
#include "analyzer/export/svg.h"
#include "analyzer/tree/shape.h"
#include "protocol/svg_options.h"

#define DOT           " \xc2\xb7 "
#define SHARE_TO_TELL 0.95 /* of the CPU time in the samples: with less the rest is told */
#define LONG_MS       600000
#define NS_PER_S      1000000000.0

struct texts {
	struct buffer subtitle, note; /* NUL-terminated */
};

static const char *text_of(const json_t *object, const char *name)
{
	return json_string_value(json_object_get(object, name));
}

static uint64_t number_of(const json_t *object, const char *name)
{
	json_int_t value = json_integer_value(json_object_get(object, name));

	return value > 0 ? (uint64_t)value : 0;
}

static const json_t *asked(const struct svg_capture *capture)
{
	return json_object_get(json_object_get(capture->facts, "options"), "svg");
}

/* --- title --- */

static const char *program_of(const struct svg_capture *capture)
{
	const json_t *argv = json_object_get(json_object_get(capture->facts, "target"), "argv");

	return json_string_value(json_array_get(argv, 0));
}

static const char *title_of(const struct svg_capture *capture)
{
	const char *title = text_of(asked(capture), SVG_OPTION_TITLE);
	const char *label = text_of(capture->facts, "label");
	const char *program = program_of(capture);
	const char *slash = program == NULL ? NULL : strrchr(program, '/');

	if (title != NULL && title[0] != '\0') {
		return title;
	}
	if (label != NULL && label[0] != '\0') {
		return label;
	}
	program = slash != NULL && slash[1] != '\0' ? slash + 1 : program;
	return program != NULL && program[0] != '\0' ? program : "profile";
}

/* --- subtitle --- */

static void add_program(const struct svg_capture *capture, struct markup *markup)
{
	const char *program = program_of(capture);
	uint64_t pid = number_of(json_object_get(capture->facts, "target"), "pid");

	if (program != NULL) {
		markup_raw(markup, program, strlen(program));
	}
	if (pid > 0) {
		markup_printf(markup, program != NULL ? " (pid %" PRIu64 ")" : "pid %" PRIu64, pid);
	}
	if (program != NULL || pid > 0) {
		markup_printf(markup, DOT);
	}
}

static void add_rate(const struct svg_capture *capture, struct markup *markup)
{
	uint64_t hz = number_of(json_object_get(capture->facts, "effective"), "hz");
	uint64_t period = model_period(capture->model);

	if (hz == 0 && period > 0) {
		hz = (uint64_t)(NS_PER_S / (double)period + 0.5);
	}
	if (hz > 0) {
		markup_printf(markup, "%" PRIu64 " Hz" DOT, hz);
	}
}

static void add_duration(struct markup *markup, uint64_t ms)
{
	if (ms < 1000) {
		markup_printf(markup, "%" PRIu64 " ms" DOT, ms);
	} else if (ms < LONG_MS) {
		markup_printf(markup, "%" PRIu64 ".%02" PRIu64 " s" DOT, ms / 1000, ms / 10 % 100);
	} else {
		markup_printf(markup, "%" PRIu64 " min %" PRIu64 " s" DOT, ms / 60000, ms / 1000 % 60);
	}
}

static void make_subtitle(const struct svg_capture *capture, struct markup *markup)
{
	add_program(capture, markup);
	add_rate(capture, markup);
	add_duration(markup, capture->duration_ms);
	markup_count(markup, model_samples(capture->model), "samples");
}

/* --- note --- */

static void begin_part(struct markup *markup)
{
	if (markup->out->len > 0) {
		markup_printf(markup, DOT);
	}
}

static void add_share(struct markup *markup, double part, double whole)
{
	markup_printf(markup, " (");
	markup_share(markup, part, whole, "<");
	markup_printf(markup, ")");
}

/* The daemon's warning ends with what is said before it here. */
static void add_unnamed(const struct svg_capture *capture, struct markup *markup)
{
	static const char tail[] = "; functions are not named";
	const json_t *warning;
	size_t i;

	json_array_foreach(json_object_get(capture->facts, "warnings"), i, warning)
	{
		const char *code = text_of(warning, "code"), *message = text_of(warning, "message");

		if (code != NULL && message != NULL && strcmp(code, "analyzer_failed") == 0) {
			const char *end = strstr(message, tail);
			size_t len = end != NULL ? (size_t)(end - message) : strlen(message);

			begin_part(markup);
			markup_printf(markup, "functions are not named: ");
			markup_raw(markup, message, len);
			return;
		}
	}
}

static void add_lost(const struct svg_capture *capture, struct markup *markup)
{
	uint64_t lost = model_lost(capture->model);

	if (lost > 0) {
		begin_part(markup);
		markup_count(markup, lost, "samples");
		markup_printf(markup, " lost");
		add_share(markup, (double)lost, (double)lost + (double)model_samples(capture->model));
	}
}

static void add_cut(const struct svg_capture *capture, struct markup *markup)
{
	const struct attribution *attribution = capture->attribution;

	if (attribution->truncated > 0) {
		begin_part(markup);
		markup_count(markup, attribution->truncated, "stacks");
		markup_printf(markup, " cut");
		add_share(markup, (double)attribution->truncated, (double)attribution->samples);
	}
}

/* Time by the kernel's accounting that no sample stands for. */
static void add_outside(const struct svg_capture *capture, struct markup *markup)
{
	const struct model *model = capture->model;
	double cpu = (double)model_cpu_ns(model);
	double sampled = (double)model_samples(model) * (double)model_period(model);
	const json_t *kernel =
		json_object_get(json_object_get(capture->facts, "effective"), "kernel_sampled");

	if (model->metrics.len == 0 || model->metrics.items[0].unit != JOURNAL_UNIT_NANOSECONDS ||
		cpu <= 0 || sampled / cpu >= SHARE_TO_TELL) {
		return;
	}
	begin_part(markup);
	markup_fixed(markup, (cpu - sampled) / NS_PER_S);
	markup_printf(markup, " s of CPU time not in the samples");
	add_share(markup, cpu - sampled, cpu);
	if (json_is_false(kernel)) {
		markup_printf(markup, ": the kernel could not be sampled");
	}
}

/* --- the whole --- */

static bool make_texts(const struct svg_capture *capture, struct texts *texts)
{
	struct markup subtitle = {.out = &texts->subtitle}, note = {.out = &texts->note};

	make_subtitle(capture, &subtitle);
	add_unnamed(capture, &note);
	add_lost(capture, &note);
	add_cut(capture, &note);
	add_outside(capture, &note);
	return !subtitle.failed && !note.failed && buffer_byte(&texts->subtitle, 0) &&
		   buffer_byte(&texts->note, 0);
}

static struct svg_options options_of(const struct svg_capture *capture, const struct texts *texts)
{
	const json_t *svg = asked(capture);
	uint64_t width = number_of(svg, SVG_OPTION_WIDTH);
	bool is_width = width >= SVG_OPTION_WIDTH_LEAST && width <= SVG_OPTION_WIDTH_MOST;

	return (struct svg_options){
		.title = title_of(capture),
		.subtitle = (const char *)texts->subtitle.data,
		.note = (const char *)texts->note.data,
		.unit = "samples",
		.width_px = is_width ? (uint32_t)width : 0,
		.layout =
			(enum svg_layout)svg_option_choice(svg_option_layouts, text_of(svg, SVG_OPTION_LAYOUT)),
		.colors =
			(enum svg_colors)svg_option_choice(svg_option_colors, text_of(svg, SVG_OPTION_COLORS)),
	};
}

static struct tree_shape shape_of(const struct svg_capture *capture)
{
	const json_t *svg = asked(capture);
	uint64_t least = number_of(svg, SVG_OPTION_MIN_SHARE);

	return (struct tree_shape){
		.order =
			(enum tree_order)svg_option_choice(svg_option_orders, text_of(svg, SVG_OPTION_ORDER)),
		.merges_threads =
			svg_option_choice(svg_option_threads, text_of(svg, SVG_OPTION_THREADS)) == 1,
		.least_ppm = least <= SVG_OPTION_MIN_SHARE_PPM ? (uint32_t)least : 0,
	};
}

static bool write_shaped(
	struct buffer *out, const struct svg_capture *capture, const struct svg_options *options)
{
	struct tree_shape shape = shape_of(capture);

	if (shape_is_plain(&shape)) {
		return svg_write(out, capture->attribution->tree, options);
	}
	struct tree *tree = shape_apply(&shape, capture->attribution->tree);
	bool done = tree != NULL && svg_write(out, tree, options);

	tree_destroy(tree);
	return done;
}

bool svg_capture_write(struct buffer *out, const struct svg_capture *capture)
{
	struct texts texts = {{0}, {0}};
	bool done = make_texts(capture, &texts);

	if (done) {
		const struct svg_options options = options_of(capture, &texts);

		done = write_shaped(out, capture, &options);
	}
	buffer_finish(&texts.subtitle);
	buffer_finish(&texts.note);
	return done;
}
