#ifndef ANALYZER_SYMBOL_DEMANGLE_H
#define ANALYZER_SYMBOL_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

/* Longer names are shown as they are: nobody reads them, and some are made to keep a demangler busy. */
#define DEMANGLE_INPUT_BYTES (16 * 1024)

/*
 * Appends the readable form of a linker's name: C++ (Itanium ABI), Rust (v0 and the older form, without its hash) and D, by
 * libiberty, as "nm -C" shows it. A version ("@@GLIBC_2.2.5") is cut off before. Whatever is not mangled, or not rightly, or would
 * become longer than LIMIT_NAME_BYTES, is appended as it is. False: memory is out. One thread.
 */
bool demangle(const char *name, size_t len, struct buffer *out);

#endif
