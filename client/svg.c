#include "client/svg.h"

#include <stdio.h>
#include <string.h>

#include "client/profctl.h"
#include "client/reply.h"
#include "protocol/svg_options.h"

/* "a, b or c" of names that come one by one; NULL ends them. */
static void tell_list(const char *(*name_at)(const void *list, size_t i), const void *list)
{
	for (size_t i = 0; name_at(list, i) != NULL; i++) {
		bool is_last = name_at(list, i + 1) == NULL;

		fprintf(stderr, "%s%s", i == 0 ? "" : is_last ? " or " : ", ", name_at(list, i));
	}
	fputc('\n', stderr);
}

static const char *key_at(const void *list, size_t i)
{
	return ((const struct svg_option *)list)[i].name;
}

static const char *choice_at(const void *list, size_t i)
{
	return ((const char *const *)list)[i];
}

static void begin(const char *text)
{
	fputs("profctl: --svg ", stderr);
	reply_print(stderr, text, 0);
}

static bool wrong_key(const char *text)
{
	begin(text);
	fputs(": KEY=VALUE is needed, with the key ", stderr);
	tell_list(key_at, svg_options);
	return false;
}

static bool set_choice(
	json_t *svg, const struct svg_option *option, const char *text, const char *value)
{
	for (size_t i = 0; option->choices[i] != NULL; i++) {
		if (strcmp(option->choices[i], value) == 0) {
			return json_object_set_new(svg, option->name, json_string(value)) == 0;
		}
	}
	begin(text);
	fprintf(stderr, ": %s is ", option->name);
	tell_list(choice_at, option->choices);
	return false;
}

static bool set_number(json_t *svg, const struct svg_option *option, const char *value)
{
	char name[64];
	json_int_t number;

	snprintf(name, sizeof(name), "--svg %s", option->name);
	return profctl_whole(name, value, option->min, option->max, &number) &&
		   json_object_set_new(svg, option->name, json_integer(number)) == 0;
}

static bool set_text(json_t *svg, const struct svg_option *option, const char *value)
{
	if (strlen(value) > SVG_OPTION_TITLE_BYTES) {
		fprintf(stderr, "profctl: the %s of --svg has %zu bytes, at most %d are taken\n",
			option->name, strlen(value), SVG_OPTION_TITLE_BYTES);
		return false;
	}
	char what[64];
	snprintf(what, sizeof(what), "the %s of --svg", option->name);
	return profctl_set_text(svg, option->name, what, value);
}

bool svg_set(json_t *svg, const char *text)
{
	const char *equals = strchr(text, '=');
	const struct svg_option *option =
		equals == NULL ? NULL : svg_option_find(text, (size_t)(equals - text));

	if (option == NULL) {
		return wrong_key(text);
	}
	if (option->choices != NULL) {
		return set_choice(svg, option, text, equals + 1);
	}
	return option->max != 0 ? set_number(svg, option, equals + 1)
							: set_text(svg, option, equals + 1);
}

bool svg_set_in(json_t *params, const char *text)
{
	json_t *svg = json_object_get(params, "svg");

	if (svg == NULL) {
		svg = json_object();
		json_object_set_new(params, "svg", svg);
	}
	return svg_set(svg, text);
}
