#include "analyzer/export/quality.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/export/images.h"
#include "analyzer/export/values.h"
#include "base/vec.h"
#include "protocol/limits.h"
#include "protocol/text.h"

json_t *quality_shares(const struct attribution *attribution)
{
	uint64_t count = attribution->samples;

	return json_pack("{s:o,s:o,s:o,s:o}", "complete", value_share(attribution->complete, count),
		"stitched", value_share(attribution->stitched, count), "truncated",
		value_share(attribution->truncated, count), "unsymbolized",
		value_share(attribution->unnamed, attribution->frames));
}

/* How many of an image's frames or samples a remedy is about. */
typedef uint64_t (*part_fn)(const struct json_input *input, uint32_t image, int context);

struct remedy {
	const char *what;
	uint64_t part, whole;
	part_fn of_image; /* NULL: it is about no image */
	int context;
	const char *message; /* behind "N % of the " */
	const char *hint;
};

static uint64_t unnamed_of(const struct json_input *input, uint32_t image, int lack)
{
	return (int)image_lack_of(input, image) == lack ? input->attribution->images[image].unnamed : 0;
}

/* Stacks without a rule for the last frame: three reasons, each with a remedy of its own. */
enum rule_lack { RULE_LACKS_TABLES, RULE_LACKS_FILE, RULE_IS_GENERATED };

static enum rule_lack rule_lack_of(const struct model_image *image)
{
	if (image->access == JOURNAL_IMAGE_OPENED || image->kind == JOURNAL_IMAGE_VDSO) {
		return RULE_LACKS_TABLES;
	}
	return image->kind == JOURNAL_IMAGE_ELF ? RULE_LACKS_FILE : RULE_IS_GENERATED;
}

static uint64_t unruled_in(const struct json_input *input, uint32_t image, int lack)
{
	return (int)rule_lack_of(&input->model->images.items[image]) == lack
			   ? input->attribution->images[image].unruled
			   : 0;
}

/* end: enum journal_stack_end. */
static uint64_t ends_in(const struct json_input *input, uint32_t image, int end)
{
	const struct attribution_image *counts = &input->attribution->images[image];

	return end == JOURNAL_STACK_BROKEN ? counts->broken : counts->open;
}

static bool is_unwound(const struct json_input *input)
{
	const json_t *effective = json_object_get(input->facts, "effective");
	const char *unwinder = json_string_value(json_object_get(effective, "unwinder"));

	return unwinder != NULL && strcmp(unwinder, "dwarf") == 0;
}

static json_t *paths(const struct json_input *input, const struct remedy *remedy)
{
	VEC(struct value_ranked) ranked = {0};
	bool done = true;

	for (size_t i = 0; done && i < input->model->images.len; i++) {
		const struct value_ranked item = {
			remedy->of_image(input, (uint32_t)i, remedy->context), (uint32_t)i};

		done = item.samples == 0 || VEC_PUSH(&ranked, item);
	}
	value_rank(ranked.items, ranked.len);
	json_t *array = done ? json_array() : NULL;

	for (size_t i = 0; array != NULL && i < ranked.len && i < QUALITY_REMEDY_IMAGES; i++) {
		struct bytes_text path =
			strings_text(input->strings, input->model->images.items[ranked.items[i].index].path);

		if (json_array_append_new(array, text_json(path.data, path.len)) != 0) {
			json_decref(array);
			array = NULL;
		}
	}
	VEC_FINISH(&ranked);
	return array;
}

static json_t *remedy_json(const struct json_input *input, const struct remedy *remedy)
{
	char message[192];
	double percent = (double)remedy->part * 100 / (double)remedy->whole;

	snprintf(message, sizeof(message), "%.1f %% of the %s", percent, remedy->message);
	json_t *object = json_pack("{s:s,s:o,s:s,s:s}", "what", remedy->what, "share",
		value_share(remedy->part, remedy->whole), "message", message, "hint", remedy->hint);

	if (object != NULL && remedy->of_image != NULL &&
		!value_set(object, "images", paths(input, remedy))) {
		json_decref(object);
		return NULL;
	}
	return object;
}

static struct remedy naming(const struct json_input *input, enum image_lack lack)
{
	static const char *const messages[IMAGE_LACKS] = {
		[IMAGE_NOT_LOOKED_INTO] = "frames are in files that were not looked into",
		[IMAGE_UNREADABLE] = "frames are in files that cannot be read as programs",
		[IMAGE_IS_GENERATED] = "frames are in code that was made while the program ran",
		[IMAGE_NOT_OPENED] = "frames are in files that could not be opened",
		[IMAGE_DELETED] = "frames are in files that had been deleted before they were seen",
		[IMAGE_STRIPPED_SYSTEM] = "frames are in files of the system that have no symbols for them",
		[IMAGE_REPLACED] = "frames are in files that were replaced while they were mapped",
		[IMAGE_STRIPPED] = "frames are in files that have no symbols for them",
	};
	struct remedy remedy = {
		.what = image_lack_name(lack),
		.whole = input->attribution->frames,
		.of_image = unnamed_of,
		.context = (int)lack,
		.message = messages[lack],
		.hint = image_fix(lack),
	};

	for (size_t i = 0; i < input->model->images.len; i++) {
		remedy.part += unnamed_of(input, (uint32_t)i, (int)lack);
	}
	return remedy;
}

/* Who asked for a depth has it raised there; else it is the kernel's. */
static const char *depth_hint(const struct json_input *input)
{
	const json_t *options = json_object_get(input->facts, "options");
	json_int_t asked = json_integer_value(json_object_get(options, "max_depth"));

	if (is_unwound(input) && asked >= LIMIT_MAX_DEPTH) {
		return "so many frames are the most that is kept of a stack";
	}
	return is_unwound(input) || asked > 0
			   ? "ask for a greater max_depth"
			   : "as root, while nothing is sampled: sysctl kernel.perf_event_max_stack=1024";
}

#define POINTERS                                                                                   \
	"build the named files with -fno-omit-frame-pointer (Rust: -C force-frame-pointers=yes), or "  \
	"use "                                                                                         \
	"a distribution that does"

#define UNUSUAL                                                                                    \
	"code that moves its own stack does that (coroutines, generated code without frame "           \
	"pointers); of other programs please report it"

/* Was this unwind asked for? */
static bool is_asked(const struct json_input *input, const char *method)
{
	const json_t *options = json_object_get(input->facts, "options");
	const char *unwind = json_string_value(json_object_get(options, "unwind"));

	return unwind != NULL && strcmp(unwind, method) == 0;
}

/* Who asked for frame pointers need not: whoever has nothing else (a machine that is not known) must build with them. */
static const char *pointers_hint(const struct json_input *input)
{
	return is_asked(input, "fp")
			   ? "unwind: auto (the default) needs no frame pointers; or build the named files "
				 "with "
				 "-fno-omit-frame-pointer"
			   : POINTERS;
}

static struct remedy ending(const struct json_input *input, enum journal_stack_end end)
{
	const struct attribution *attribution = input->attribution;
	struct remedy remedy = {
		.part = attribution->faults[end],
		.whole = attribution->samples,
		.of_image = ends_in,
		.context = (int)end,
	};

	switch (end) {
	case JOURNAL_STACK_DEPTH:
		remedy.what = "depth_limit";
		remedy.of_image = NULL;
		remedy.message = "stacks reached the depth limit and lack their outermost frames";
		remedy.hint = depth_hint(input);
		break;
	case JOURNAL_STACK_BROKEN:
		remedy.what = is_unwound(input) ? "contradiction" : "no_frame_pointers";
		remedy.part += attribution->faults[JOURNAL_STACK_LOOP];
		remedy.message =
			is_unwound(input)
				? "stacks were cut where memory contradicts what the files say of their code"
				: "stacks were cut where the frame pointer leads nowhere";
		remedy.hint = is_unwound(input) ? UNUSUAL : pointers_hint(input);
		break;
	case JOURNAL_STACK_COPY:
		remedy.what = "stack_copy";
		remedy.of_image = NULL;
		remedy.message = "stacks are longer than what was copied of them (16 KiB at first, 64 KiB "
						 "once many are longer; up to a page that was never touched)";
		remedy.hint = "a longer recording, where only the first ones are cut; else less on the "
					  "stack: large arrays on the heap, recursion that is less deep";
		break;
	case JOURNAL_STACK_NONE:
		remedy.what = "no_stack";
		remedy.of_image = NULL;
		remedy.message = "samples have no stack";
		remedy.hint =
			"the thread had none to show (it ended, or was in the kernel): nothing has to be "
			"done; kernel: true shows what it did there";
		break;
	default:
		remedy.what = "end_unknown";
		remedy.message = "stacks end where nobody can tell whether callers are missing";
		remedy.hint = pointers_hint(input);
		break;
	}
	return remedy;
}

/* JOURNAL_STACK_NO_RULE, in parts. */
static struct remedy unruled(const struct json_input *input, enum rule_lack lack)
{
	static const struct {
		const char *what, *message, *hint;
	} texts[] = {
		[RULE_LACKS_TABLES] = {"no_call_frame_information",
			"stacks end in code of which nothing tells how to leave it",
			"build the named files with -fasynchronous-unwind-tables, or with "
			"-fno-omit-frame-pointer (of the system's own nothing can be done)"},
		[RULE_LACKS_FILE] = {"code_not_opened",
			"stacks end in files that could not be opened, so that nothing is known of their code",
			"let profd open them: \"images\" in capture.json says for each file what would help"},
		[RULE_IS_GENERATED] = {"generated_code_ends",
			"stacks end in generated code that keeps no frame pointers",
			"have its maker keep frame pointers (java -XX:+PreserveFramePointer), or run it "
			"without "
			"(node --jitless)"},
	};
	struct remedy remedy = {
		.what = texts[lack].what,
		.whole = input->attribution->samples,
		.of_image = unruled_in,
		.context = (int)lack,
		.message = texts[lack].message,
		.hint = texts[lack].hint,
	};

	if (lack != RULE_LACKS_FILE && is_asked(input, "dwarf")) {
		remedy.hint = "unwind: auto (the default) leaves such code by its frame pointer";
	}
	for (size_t i = 0; i < input->model->images.len; i++) {
		remedy.part += unruled_in(input, (uint32_t)i, (int)lack);
	}
	return remedy;
}

static void take_larger(struct remedy *most, const struct remedy *remedy, double least)
{
	if (remedy->part > most->part && (double)remedy->part >= least * (double)remedy->whole) {
		*most = *remedy;
	}
}

/* Behind the text: the file that most of it is in. What does not fit is left out. */
static void tell_image(
	const struct json_input *input, const struct remedy *remedy, char *text, size_t room)
{
	json_t *images = remedy->of_image != NULL ? paths(input, remedy) : NULL;
	const char *path = json_string_value(json_array_get(images, 0));
	size_t length = strlen(text);

	if (path != NULL && length + strlen(path) + sizeof(" (most in )") <= room) {
		snprintf(text + length, room - length,
			json_array_size(images) > 1 ? " (most in %s)" : " (in %s)", path);
	}
	json_decref(images);
}

const char *quality_stack_warning(const struct json_input *input, char *text, size_t room)
{
	static const enum journal_stack_end ends[] = {
		JOURNAL_STACK_DEPTH, JOURNAL_STACK_COPY, JOURNAL_STACK_BROKEN, JOURNAL_STACK_UNKNOWN};
	struct remedy most = {0};

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		struct remedy remedy = ending(input, ends[i]);

		take_larger(&most, &remedy,
			ends[i] == JOURNAL_STACK_DEPTH ? QUALITY_DEPTH_SHARE : QUALITY_CUT_SHARE);
	}
	for (int lack = RULE_LACKS_TABLES; lack <= RULE_IS_GENERATED; lack++) {
		struct remedy remedy = unruled(input, (enum rule_lack)lack);

		take_larger(&most, &remedy, QUALITY_CUT_SHARE);
	}
	if (most.part > 0) {
		snprintf(text, room, "%.0f %% of the %s", (double)most.part * 100 / (double)most.whole,
			most.message);
		tell_image(input, &most, text, room);
	}
	return most.hint;
}

const char *quality_image_fix(const struct json_input *input, uint32_t image)
{
	static const enum journal_stack_end ends[] = {JOURNAL_STACK_BROKEN, JOURNAL_STACK_UNKNOWN};
	const char *fix = NULL;
	uint64_t most = 0;

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		uint64_t samples = ends_in(input, image, (int)ends[i]);

		if (samples > most) {
			most = samples;
			fix = ending(input, ends[i]).hint;
		}
	}
	for (int lack = RULE_LACKS_TABLES; lack <= RULE_IS_GENERATED; lack++) {
		if (unruled_in(input, image, lack) > most) {
			fix = unruled(input, (enum rule_lack)lack).hint;
		}
	}
	return fix;
}

static struct remedy hidden_kernel(const struct json_input *input)
{
	bool is_hidden = symbols_kernel_is_hidden(input->symbols);

	return (struct remedy){
		.what = "kernel_names_hidden",
		.part = is_hidden ? input->attribution->elsewhere.kernel : 0,
		.whole = input->attribution->samples,
		.message = "samples are in functions of the kernel whose names it hides",
		.hint = "as root: sysctl kernel.kptr_restrict=0, or give profd CAP_SYSLOG",
	};
}

static int compare(const void *left, const void *right)
{
	const struct remedy *a = left;
	const struct remedy *b = right;
	double difference = (double)b->part * (double)a->whole - (double)a->part * (double)b->whole;

	return difference < 0 ? -1 : difference > 0;
}

static json_t *remedies(const struct json_input *input)
{
	struct remedy all[] = {
		naming(input, IMAGE_NOT_LOOKED_INTO),
		naming(input, IMAGE_STRIPPED),
		naming(input, IMAGE_STRIPPED_SYSTEM),
		naming(input, IMAGE_DELETED),
		naming(input, IMAGE_UNREADABLE),
		naming(input, IMAGE_NOT_OPENED),
		naming(input, IMAGE_REPLACED),
		naming(input, IMAGE_IS_GENERATED),
		hidden_kernel(input),
		ending(input, JOURNAL_STACK_DEPTH),
		ending(input, JOURNAL_STACK_BROKEN),
		ending(input, JOURNAL_STACK_COPY),
		unruled(input, RULE_LACKS_TABLES),
		unruled(input, RULE_LACKS_FILE),
		unruled(input, RULE_IS_GENERATED),
		ending(input, JOURNAL_STACK_UNKNOWN),
		ending(input, JOURNAL_STACK_NONE),
	};
	size_t count = sizeof(all) / sizeof(all[0]);
	json_t *array = json_array();

	qsort(all, count, sizeof(*all), compare);
	for (size_t i = 0; array != NULL && i < count; i++) {
		bool is_much =
			all[i].part > 0 && (double)all[i].part >= QUALITY_REMEDY_SHARE * (double)all[i].whole;

		if (is_much && json_array_append_new(array, remedy_json(input, &all[i])) != 0) {
			json_decref(array);
			array = NULL;
		}
	}
	return array;
}

json_t *quality_json(const struct json_input *input)
{
	json_t *object = quality_shares(input->attribution);

	if (object != NULL && !value_set(object, "remedies", remedies(input))) {
		json_decref(object);
		return NULL;
	}
	return object;
}
