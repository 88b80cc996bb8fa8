/*
 * The demangler behind its bounds. The library that it calls counts no branches, so that a fuzzer is blind in there:
 * beside the bytes as they are it gets names that are put together of what mangled names are made of.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/symbol/demangle.h"
#include "protocol/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Itanium C++, Rust v0 and older, D; each byte of the input chooses one. */
static const char *const words[] = {"_Z", "_R", "_D", "_GLOBAL__I_", "_ZN", "N", "E", "I", "J", "L",
	"X", "Z", "T_", "T0_", "S_", "S0_", "S1_", "St", "Sa", "Ss", "K", "V", "P", "R", "O", "F", "M",
	"A", "A3_", "Dp", "Dt", "DT", "Dv4_", "DnE", "1a", "2ab", "3abc", "10abcdefghij", "99",
	"17h0123456789abcdefE", "cv", "nw", "ad", "pl", "cl", "dt", "sZ", "sp", "fp_", "fL0p_", "il",
	"tl", "C1", "D1", "v", "i", "c", "f", "TV", "TI", "GV", "Th16_", "Ut_", "UlvE_", "L_Z", "Li0E",
	"Lb1E", "B5cxx11", "Cs_", "Nv", "Nt", "Mp", "Xs_", "Yp", "Ba_", "B_", "B1_", "B2_", "H", "p",
	"u", "u4ab_c", "Q", "Qa", "Qb", "QBa", "G", "__T", "__S", "Ya", "Zv", "FZv", "DFNaZv", "Hii",
	"Bi1", "Vi1", "_", "$", "."};

#define WORDS (sizeof(words) / sizeof(words[0]))

static size_t compose(char *name, const uint8_t *data, size_t size)
{
	size_t len = 0;
	for (size_t i = 0; i < size && len < DEMANGLE_INPUT_BYTES; i++) {
		const char *word = words[data[i] % WORDS];
		memcpy(name + len, word, strlen(word));
		len += strlen(word);
	}
	return len;
}

/* What was there stays, and what is added is a name that is neither empty nor too long. */
static void check(const char *name, size_t len)
{
	struct buffer out = {0};
	if (!buffer_text(&out, "before") || !demangle(name, len, &out)) {
		abort();
	}
	if (memcmp(out.data, "before", 6) != 0 || (len > 0 && name[0] != '@' && out.len == 6) ||
		out.len - 6 > LIMIT_NAME_BYTES) {
		abort();
	}
	buffer_finish(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char name[DEMANGLE_INPUT_BYTES + 64];
	if (size < 1) {
		return 0;
	}
	if (data[0] % 4 == 0) {
		check((const char *)data + 1, size - 1);
	} else {
		check(name, compose(name, data + 1, size - 1));
	}
	return 0;
}
