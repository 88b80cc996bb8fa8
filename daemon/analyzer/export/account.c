#include "analyzer/export/account.h"

#include <stdlib.h>

#include "analyzer/export/values.h"

/* What is missing is worth a word from this share of what is expected, and this many samples. */
#define HINT_PERCENT 2
#define HINT_SAMPLES 10

static uint64_t microseconds(const json_t *object, const char *name)
{
	json_int_t value = json_integer_value(json_object_get(object, name));

	return value > 0 ? (uint64_t)value * 1000 : 0;
}

struct accounting_terms account_terms(const json_t *facts)
{
	const json_t *effective = json_object_get(facts, "effective");
	const json_t *target = json_object_get(facts, "target");
	json_int_t cpus = json_integer_value(json_object_get(effective, "cpus"));

	return (struct accounting_terms){
		/* Of a capture whose record was lost nobody knows it. */
		.kernel_sampled = !json_is_string(json_object_get(effective, "sampler")) ||
						  json_is_true(json_object_get(effective, "kernel_sampled")),
		.cpus = cpus > 0 ? (uint64_t)cpus : 0,
		.user_ns = microseconds(target, "user_us"),
		.system_ns = microseconds(target, "system_us"),
	};
}

static const char *unit_name(uint64_t unit)
{
	static const char *const names[] = {"nanoseconds", "count", "bytes", "cycles"};

	return unit < sizeof(names) / sizeof(names[0]) ? names[unit] : "unknown";
}

struct cause {
	uint64_t samples;
	const char *hint;
};

static const char *unexplained_hint(const struct accounting *accounting)
{
	if (accounting->whole.unexplained < 0) {
		return "there are more samples than CPU time: the clock of the samples went on where the "
			   "accounting's did not (a busy virtual machine), or lost records were no samples";
	}
	if (accounting->is_division_unknown) {
		return "time in the kernel may not be sampled, and how much it was is not known: as root: "
			   "sysctl kernel.perf_event_paranoid=1, or give profd CAP_PERFMON";
	}
	return "timers came late or not at all, as in a busy virtual machine: choose a lower hz";
}

/* The largest of what is missing says what would help; NULL: nothing is missing that is worth it. */
static const char *hint_of(const struct accounting *accounting)
{
	const struct accounting_row *whole = &accounting->whole;
	uint64_t odd = (uint64_t)(whole->unexplained < 0 ? -whole->unexplained : whole->unexplained);
	const struct cause causes[] = {
		{accounting->lost, "samples were lost, see lost_by_cause: raise the locked-memory limit "
						   "(ulimit -l) of profd for larger rings, or choose a lower hz"},
		{accounting->throttled,
			"the kernel stopped sampling for parts of its ticks: choose a lower "
			"hz, or as root raise kernel.perf_event_max_sample_rate"},
		{whole->not_permitted, "time in the kernel is not in the samples: as root: sysctl "
							   "kernel.perf_event_paranoid=1, or give profd CAP_PERFMON"},
		{whole->too_short, "threads that live shorter than a period are not seen: choose a higher "
						   "hz, or let fewer threads live longer"},
		{odd, unexplained_hint(accounting)},
	};
	const struct cause *largest = &causes[0];

	for (size_t i = 1; i < sizeof(causes) / sizeof(causes[0]); i++) {
		largest = causes[i].samples > largest->samples ? &causes[i] : largest;
	}
	return largest->samples > HINT_SAMPLES &&
				   largest->samples * 100 > whole->expected * HINT_PERCENT
			   ? largest->hint
			   : NULL;
}

/* The CPU time of a process or thread, and what it means in samples. */
static bool set_row(json_t *object, const struct accounting_row *row)
{
	return !row->is_told ||
		   (value_set(object, "cpu_time_ns", value_number(row->cpu_ns)) &&
			   (row->estimated_ns == 0 ||
				   value_set(object, "cpu_time_estimated_ns", value_number(row->estimated_ns))) &&
			   ((row->cpu_user_ns == 0 && row->cpu_system_ns == 0) ||
				   (value_set(object, "cpu_user_ns", value_number(row->cpu_user_ns)) &&
					   value_set(object, "cpu_system_ns", value_number(row->cpu_system_ns)))) &&
			   value_set(object, "expected", value_number(row->expected)) &&
			   value_set(object, "not_permitted", value_number(row->not_permitted)) &&
			   value_set(object, "too_short", value_number(row->too_short)) &&
			   value_set(object, "unexplained", value_signed(row->unexplained)));
}

static json_t *lost_by_cause(const struct model *model)
{
	return json_pack("{s:o,s:o,s:o,s:o}", "ring", value_number(model->lost[JOURNAL_LOSS_RING]),
		"malformed", value_number(model->lost[JOURNAL_LOSS_MALFORMED]), "memory",
		value_number(model->lost[JOURNAL_LOSS_MEMORY]), "disk",
		value_number(model->lost[JOURNAL_LOSS_DISK]));
}

static json_t *elsewhere(const struct attribution_elsewhere *counts)
{
	return json_pack("{s:o,s:o,s:o,s:o}", "kernel", value_number(counts->kernel), "unmapped",
		value_number(counts->unmapped), "other", value_number(counts->other), "no_stack",
		value_number(counts->nowhere));
}

static bool set_told(json_t *object, const struct accounting *accounting, uint64_t sampled_ns)
{
	const char *hint = hint_of(accounting);

	return set_row(object, &accounting->whole) &&
		   value_set(object, "sampled_share", value_share(sampled_ns, accounting->whole.cpu_ns)) &&
		   (hint == NULL || value_set(object, "hint", json_string(hint)));
}

static bool set_times(
	json_t *object, const struct model *model, const struct accounting *accounting)
{
	uint64_t sampled_ns = model_samples(model) * model_period(model);

	if (model->metrics.len == 0 || model->metrics.items[0].unit != JOURNAL_UNIT_NANOSECONDS) {
		return true;
	}
	return value_set(object, "sampled_ns", value_number(sampled_ns)) &&
		   (!accounting->whole.is_told || set_told(object, accounting, sampled_ns));
}

json_t *account_samples(const struct json_input *input, const struct accounting *accounting)
{
	const struct model *model = input->model;
	uint64_t others = 0;

	for (size_t i = 1; i < model->metrics.len; i++) {
		others += model->metrics.items[i].samples;
	}
	json_t *object = json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:s,s:s,s:o,s:o}", "count",
		value_number(model_samples(model)), "lost", value_number(accounting->lost), "lost_by_cause",
		lost_by_cause(model), "throttled", value_number(accounting->throttled), "throttle_events",
		value_number(model->lost[JOURNAL_LOSS_THROTTLED]), "unseen_threads",
		value_number(accounting->unseen_threads), "other_metrics", value_number(others), "unit",
		"samples", "weight_unit",
		unit_name(model->metrics.len > 0 ? model->metrics.items[0].unit : UINT64_MAX), "period",
		value_number(model_period(model)), "elsewhere", elsewhere(&input->attribution->elsewhere));

	if (object == NULL || !set_times(object, model, accounting)) {
		json_decref(object);
		return NULL;
	}
	return object;
}

static json_t *thread(
	const struct json_input *input, const struct accounting *accounting, uint32_t index)
{
	const struct model_thread *item = &input->model->threads.items[index];
	json_t *object = json_pack("{s:o,s:o,s:o}", "tid", value_number(item->tid), "pid",
		value_number(item->pid), "samples", value_number(item->samples));

	if (object == NULL ||
		!value_set_text(object, "name", input->strings, model_thread_name(input->model, item)) ||
		!set_row(object, &accounting->threads[index])) {
		json_decref(object);
		return NULL;
	}
	return object;
}

json_t *account_threads(const struct json_input *input, const struct accounting *accounting)
{
	size_t count = input->model->threads.len;
	struct value_ranked *ranked = calloc(count + 1, sizeof(*ranked));
	json_t *array = ranked == NULL ? NULL : json_array();

	for (size_t i = 0; ranked != NULL && i < count; i++) {
		ranked[i] = (struct value_ranked){input->model->threads.items[i].samples, (uint32_t)i};
	}
	if (ranked != NULL) {
		value_rank(ranked, count);
	}
	for (size_t i = 0; array != NULL && i < count; i++) {
		if (json_array_append_new(array, thread(input, accounting, ranked[i].index)) != 0) {
			json_decref(array);
			array = NULL;
		}
	}
	free(ranked);
	return array;
}
