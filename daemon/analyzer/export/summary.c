#include "analyzer/export/summary.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyzer/export/quality.h"
#include "analyzer/export/values.h"
#include "base/vec.h"
#include "protocol/text.h"

#define LOW_SHARE           0.95
#define HIGH_RATE_PERIOD_NS 100000

static size_t cut(struct bytes_text text, size_t max)
{
	return text.len > max ? text_cut(text.data, max) : text.len;
}

static json_t *cut_text(struct bytes_text text, size_t max)
{
	return text_json(text.data, cut(text, max));
}

static json_t *top_one(const struct strings *strings, const struct function *item)
{
	struct bytes_text name = strings_text(strings, item->name);
	json_t *object = json_object();
	bool done = text_set(object, "function", name.data, cut(name, SUMMARY_NAME_BYTES)) &&
				json_object_set_new(object, "self", value_number(item->self)) == 0 &&
				json_object_set_new(object, "total", value_number(item->total)) == 0;

	if (!done) {
		json_decref(object);
	}
	return done ? object : NULL;
}

static json_t *top(const struct strings *strings, const struct functions *functions)
{
	json_t *array = json_array();

	for (size_t i = 0; array != NULL && i < functions->len && i < SUMMARY_TOP; i++) {
		json_t *object = top_one(strings, &functions->items[i]);

		if (object == NULL || json_array_append_new(array, object) != 0) {
			json_decref(array);
			return NULL;
		}
	}
	return array;
}

static json_t *image(const struct json_input *input, uint32_t index)
{
	const struct attribution_image *counts = &input->attribution->images[index];
	struct bytes_text name =
		strings_text(input->strings, symbols_image_name(input->symbols, index));
	json_t *object = json_pack("{s:o,s:o,s:o,s:o}", "samples", value_number(counts->samples),
		"complete", value_share(counts->complete, counts->samples), "stitched",
		value_share(counts->stitched, counts->samples), "truncated",
		value_share(counts->truncated, counts->samples));

	if (object == NULL || !text_set(object, "image", name.data, cut(name, SUMMARY_NAME_BYTES))) {
		json_decref(object);
		return NULL;
	}
	return object;
}

/* Those with most samples. */
static json_t *images(const struct json_input *input)
{
	VEC(struct value_ranked) ranked = {0};
	bool done = true;

	for (size_t i = 0; done && i < input->model->images.len; i++) {
		const struct value_ranked item = {input->attribution->images[i].samples, (uint32_t)i};

		done = item.samples == 0 || VEC_PUSH(&ranked, item);
	}
	value_rank(ranked.items, ranked.len);
	json_t *array = done ? json_array() : NULL;

	for (size_t i = 0; array != NULL && i < ranked.len && i < SUMMARY_IMAGES; i++) {
		if (json_array_append_new(array, image(input, ranked.items[i].index)) != 0) {
			json_decref(array);
			array = NULL;
		}
	}
	VEC_FINISH(&ranked);
	return array;
}

json_t *summary_create(const struct json_input *input, uint64_t duration_ms)
{
	return json_pack("{s:o,s:o,s:o,s:o,s:o}", "duration_ms", value_number(duration_ms), "threads",
		value_number(input->model->threads.len), "quality", quality_shares(input->attribution),
		"top", top(input->strings, &input->attribution->functions), "images", images(input));
}

/* False: memory is out. A full list stays as it is. */
static bool warn(json_t *array, json_t *code, json_t *message, const char *hint)
{
	json_t *object = json_pack("{s:o,s:o}", "code", code, "message", message);
	bool done =
		object != NULL &&
		(hint == NULL || json_object_set_new(object, "hint", json_string(hint)) == 0) &&
		(json_array_size(array) >= SUMMARY_MAX_WARNINGS || json_array_append(array, object) == 0);

	json_decref(object);
	return done;
}

static bool warn_notes(json_t *array, const struct model *model, const struct strings *strings)
{
	for (size_t i = 0; i < model->notes.len; i++) {
		const struct model_note *note = &model->notes.items[i];

		if (!warn(array, cut_text(strings_text(strings, note->code), 64),
				cut_text(strings_text(strings, note->text), SUMMARY_TEXT_BYTES), NULL)) {
			return false;
		}
	}
	return true;
}

static bool warn_damage(json_t *array, const struct model *model, const struct strings *strings)
{
	char text[128];

	if (model->is_damaged && !warn(array, json_string("journal_damaged"),
								 cut_text(strings_text(strings, model->damage), SUMMARY_TEXT_BYTES),
								 "what was written before it is shown")) {
		return false;
	}
	snprintf(text, sizeof(text),
		"%" PRIu64 " records of the journal contradict others and were left out",
		model->contradictions);
	return model->contradictions == 0 ||
		   warn(array, json_string("journal_contradictions"), json_string(text), NULL);
}

static bool warn_kernel(json_t *array, const struct symbols *symbols)
{
	return !symbols_kernel_is_hidden(symbols) ||
		   warn(array, json_string("kernel_symbols_hidden"),
			   json_string("the kernel does not tell the addresses of its functions"),
			   "set kernel.kptr_restrict to 0, or run profd with CAP_SYSLOG");
}

/* One warning for all files that were replaced: the list of images names them. */
static bool warn_changed(json_t *array, const struct model *model, const struct symbols *symbols)
{
	char text[128];
	size_t count = 0;

	for (size_t i = 0; i < model->images.len; i++) {
		count += symbols_state(symbols, (uint32_t)i) == SYMBOLS_CHANGED;
	}
	snprintf(text, sizeof(text), "%zu files were replaced while they were mapped and have no names",
		count);
	return count == 0 ||
		   warn(array, json_string("images_changed"), json_string(text), "record again");
}

/* Names are what people look for: many missing ones are worth a word. */
static bool warn_unnamed(
	json_t *array, const struct symbols *symbols, const struct attribution *attribution)
{
	char text[128];
	uint64_t percent =
		attribution->frames == 0
			? 0
			: (uint64_t)((double)attribution->unnamed * 100.0 / (double)attribution->frames);

	snprintf(text, sizeof(text),
		"%" PRIu64 " %% of the frames are in files without symbols for them", percent);
	return percent < 50 || !symbols_look_into_images(symbols) ||
		   warn(array, json_string("unsymbolized"), json_string(text),
			   "\"images\" in capture.json says for each file what would help");
}

/* A picture whose stacks do not begin where the program does is easily misread. */
static bool warn_cut(json_t *array, const struct json_input *input)
{
	char text[512];
	const char *hint = quality_stack_warning(input, text, sizeof(text));

	return hint == NULL || warn(array, json_string("stacks_cut"), json_string(text), hint);
}

/*
 * A timer that comes too late takes no sample, and nobody counts it. Told when nothing else explains what is missing: kernel time that is
 * not sampled, losses, throttling, and (at lower rates) threads that live shorter than a period.
 */
static bool warn_rate(json_t *array, const json_t *facts, const struct model *model)
{
	char text[160];
	const json_t *effective = json_object_get(facts, "effective");
	uint64_t period = model_period(model), cpu = model_cpu_ns(model);
	double sampled = (double)model_samples(model) * (double)period + (double)model->withheld_ns;
	double part = cpu == 0 ? 1.0 : sampled / (double)cpu;

	if (period == 0 || period > HIGH_RATE_PERIOD_NS || part >= LOW_SHARE || model_lost(model) > 0 ||
		!json_is_true(json_object_get(effective, "kernel_sampled"))) {
		return true;
	}
	snprintf(text, sizeof(text),
		"%.0f %% of the CPU time has no samples: at %" PRIu64
		" Hz the system does not keep the rate",
		100 - part * 100, UINT64_C(1000000000) / period);
	return warn(array, json_string("rate_not_kept"), json_string(text),
		"shares are right, sums are not: choose a lower hz");
}

static bool warn_throttled(json_t *array, const struct model *model)
{
	char text[160];
	uint64_t cpu = model_cpu_ns(model);
	double part = cpu == 0 ? 0 : (double)model->withheld_ns / (double)cpu;

	snprintf(text, sizeof(text),
		"the kernel stopped sampling for parts of its ticks: for %.0f %% of the CPU time",
		part * 100);
	return part < 1 - LOW_SHARE ||
		   warn(array, json_string("throttled"), json_string(text),
			   "choose a lower hz, or as root raise kernel.perf_event_max_sample_rate");
}

json_t *summary_warnings(const struct json_input *input)
{
	const struct model *model = input->model;
	json_t *array = json_array();

	if (array == NULL || !warn_damage(array, model, input->strings) ||
		!warn_rate(array, input->facts, model) || !warn_throttled(array, model) ||
		!warn_kernel(array, input->symbols) || !warn_changed(array, model, input->symbols) ||
		!warn_cut(array, input) || !warn_unnamed(array, input->symbols, input->attribution) ||
		!warn_notes(array, model, input->strings)) {
		json_decref(array);
		return NULL;
	}
	return array;
}
