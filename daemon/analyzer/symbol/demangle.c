#include "analyzer/symbol/demangle.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/demangle.h>

#include "protocol/limits.h"

#define FLAGS (DMGL_PARAMS | DMGL_ANSI)
/* Of a D name, all references in it replaced by what they stand for. */
#define MAX_EXPANDED_BYTES (4 * LIMIT_NAME_BYTES)
/* Of a Rust name's binders together; people write one or two. */
#define MAX_LIFETIMES 256

struct output {
	struct buffer *out;
	size_t begin;
	jmp_buf too_long;
};

typedef int (*demangle_fn)(
	const char *mangled, int options, demangle_callbackref callback, void *opaque);

/*
 * A few hundred bytes can stand for a name of more bytes than there are atoms, and libiberty has no way to be stopped from
 * its callback. Its callback form keeps everything on the stack, so that leaving it by a jump loses at most one
 * identifier of a Rust name.
 */
static void receive(const char *text, size_t len, void *opaque)
{
	struct output *output = opaque;

	if (output->out->len - output->begin + len > LIMIT_NAME_BYTES ||
		!buffer_append(output->out, text, len)) {
		longjmp(output->too_long, 1);
	}
}

static bool run(demangle_fn fn, const char *mangled, struct buffer *out)
{
	struct output output = {.out = out, .begin = out->len};

	if (setjmp(output.too_long) == 0 && fn(mangled, FLAGS, receive, &output) != 0 &&
		out->len > output.begin) {
		return true;
	}
	out->len = output.begin;
	return false;
}

/* How far back a D name refers here (behind "Q": base 26, capitals, then a small letter). 0: that is no reference. */
static size_t distance_at(const char *at)
{
	size_t distance = 0;

	for (; *at >= 'A' && *at <= 'Z' && distance <= DEMANGLE_INPUT_BYTES; at++) {
		distance = distance * 26 + (size_t)(*at - 'A');
	}
	return *at >= 'a' && *at <= 'z' ? distance * 26 + (size_t)(*at - 'a') : 0;
}

/*
 * A D type may refer to one before it that refers to another twice, and so on: libiberty would fill all memory. What a reference
 * stands for lies between there and here, so that sums of what stands before each place bound it: too high now and then, never
 * too low.
 */
static bool is_short_dlang(const char *mangled, size_t len)
{
	size_t sums[DEMANGLE_INPUT_BYTES + 1];

	sums[0] = 0;
	for (size_t i = 0; i < len; i++) {
		size_t distance = mangled[i] == 'Q' ? distance_at(mangled + i + 1) : 0;
		size_t more = 1;

		if (distance > 0 && distance <= i) {
			bool is_identifier = mangled[i - distance] >= '0' && mangled[i - distance] <= '9';

			more += is_identifier ? len : sums[i] - sums[i - distance];
		}
		sums[i + 1] = sums[i] + more;
		if (sums[i + 1] > MAX_EXPANDED_BYTES) {
			return false;
		}
	}
	return true;
}

/* libiberty has no callback form for D. */
static bool run_dlang(const char *mangled, struct buffer *out)
{
	if (!is_short_dlang(mangled, strlen(mangled))) {
		return false;
	}
	char *text = dlang_demangle(mangled, FLAGS);
	bool done = text != NULL && strlen(text) <= LIMIT_NAME_BYTES && buffer_text(out, text);

	free(text);
	return done;
}

static bool starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/*
 * libiberty counts the lifetimes of a Rust binder (behind F or D: "G", a number to the base 62, "_") one by one, also where it prints
 * nothing and so cannot be stopped: "_RMIC1aFGzzzzzzzz_EuEu" would take years. Whether it is a binder, or letters of an identifier,
 * cannot be told without reading all of the name, and any part of it can be referred to: a few harmless names ("…7CFGNode…_") stay
 * as the linker knows them.
 */
static bool has_few_lifetimes(const char *mangled)
{
	static const char base_62[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	size_t count = 0;

	for (const char *at = strchr(mangled, 'G'); at != NULL; at = strchr(at + 1, 'G')) {
		if (at == mangled || (at[-1] != 'F' && at[-1] != 'D')) {
			continue;
		}
		size_t digits = strspn(at + 1, base_62);

		if (at[1 + digits] != '_') {
			at += digits; /* no number ends there */
			continue;
		}
		/* "G_" is one, "G0_" two; numbers of more digits begin with 62 */
		count += digits == 0 ? 1 : (size_t)(strchr(base_62, at[1]) - base_62) + 2;
		if (digits > 1 || count > MAX_LIFETIMES) {
			return false;
		}
	}
	return true;
}

/* Older Rust names are also C++ names: Rust is asked first. */
static bool run_any(const char *mangled, struct buffer *out)
{
	if (starts_with(mangled, "_R")) {
		return has_few_lifetimes(mangled) && run(rust_demangle_callback, mangled, out);
	}
	if (starts_with(mangled, "_Z")) {
		return run(rust_demangle_callback, mangled, out) ||
			   run(cplus_demangle_v3_callback, mangled, out);
	}
	if (starts_with(mangled, "_GLOBAL_")) {
		return run(cplus_demangle_v3_callback, mangled, out);
	}
	return starts_with(mangled, "_D") && run_dlang(mangled, out);
}

/*
 * "memcpy@@GLIBC_2.14", "put@GLIBCXX_3.4": the linker writes versions into .symtab so (GNU ld, "VERSION Command"). Their names begin with
 * a capital by custom; anything else behind "@" belongs to the name.
 */
static size_t without_version(const char *name, size_t len)
{
	const char *at = len > 1 ? memchr(name + 1, '@', len - 1) : NULL;
	size_t cut = at == NULL ? len : (size_t)(at - name);
	size_t version = cut + 1 < len && name[cut + 1] == '@' ? cut + 2 : cut + 1;
	bool has_version = version < len && name[version] >= 'A' && name[version] <= 'Z';

	return has_version ? cut : len;
}

bool demangle(const char *name, size_t len, struct buffer *out)
{
	char mangled[DEMANGLE_INPUT_BYTES + 1];

	len = without_version(name, len);
	if (len < 3 || name[0] != '_' || len > DEMANGLE_INPUT_BYTES) {
		return buffer_append(out, name, len < LIMIT_NAME_BYTES ? len : LIMIT_NAME_BYTES);
	}
	memcpy(mangled, name, len);
	mangled[len] = '\0';
	return run_any(mangled, out) || buffer_append(out, name, len);
}
