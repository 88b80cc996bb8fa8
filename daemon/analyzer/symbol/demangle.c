#include "analyzer/symbol/demangle.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/demangle.h>

#include "protocol/limits.h"

#define FLAGS (DMGL_PARAMS | DMGL_ANSI)

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

/* libiberty has no callback form for D. */
static bool run_dlang(const char *mangled, struct buffer *out)
{
	char *text = dlang_demangle(mangled, FLAGS);
	bool done = text != NULL && strlen(text) <= LIMIT_NAME_BYTES && buffer_text(out, text);

	free(text);
	return done;
}

static bool starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Older Rust names are also C++ names: Rust is asked first. */
static bool run_any(const char *mangled, struct buffer *out)
{
	if (starts_with(mangled, "_R")) {
		return run(rust_demangle_callback, mangled, out);
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

static size_t without_version(const char *name, size_t len)
{
	const char *at = len > 1 ? memchr(name + 1, '@', len - 1) : NULL;

	return at == NULL ? len : (size_t)(at - name);
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
