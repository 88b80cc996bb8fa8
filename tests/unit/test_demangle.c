#include "analyzer/symbol/demangle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "protocol/limits.h"

#define LINE_BYTES 65536
#define NAMES      3000

static char *demangled(const char *name)
{
	struct buffer out = {0};

	assert_true(demangle(name, strlen(name), &out));
	assert_true(buffer_byte(&out, 0));
	return (char *)out.data;
}

static void assert_name(const char *mangled, const char *expected)
{
	char *text = demangled(mangled);

	assert_string_equal(text, expected);
	free(text);
}

/* Expected texts after the Itanium C++ ABI, chapter 5.1, and the examples of Rust's RFC 2603. */
static void reads_names_of_each_language(void **state)
{
	(void)state;
	assert_name("_ZN3foo3barEiPKc", "foo::bar(int, char const*)");
	assert_name("_ZplRK1AS1_", "operator+(A const&, A const&)");
	assert_name("_Z3maxIiET_S0_S0_", "int max<int>(int, int)");
	assert_name("_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()() const");
	assert_name("_RNvC6_123foo3bar", "123foo::bar");
	assert_name("_RINvNtC3std3mem8align_ofdE", "std::mem::align_of::<f64>");
	assert_name("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad");
	assert_name("_D3std5stdio7writelnFAyaZv", "std.stdio.writeln(immutable(char)[])");
}

static void keeps_names_that_are_not_mangled(void **state)
{
	(void)state;
	assert_name("main", "main");
	assert_name("", "");
	assert_name("_", "_");
	assert_name("_start", "_start");
	assert_name("_Z", "_Z");
	assert_name("_ZN3fo", "_ZN3fo");
	assert_name("_RNv", "_RNv");
	assert_name("_DYNAMIC", "_DYNAMIC");
	assert_name("Zoo", "Zoo");
	assert_name("\xff\xfe", "\xff\xfe");
}

static void cuts_versions_and_keeps_the_parts_that_a_compiler_split_off(void **state)
{
	(void)state;
	assert_name("memcpy@@GLIBC_2.14", "memcpy");
	assert_name("_ZNSo3putEc@GLIBCXX_3.4", "std::ostream::put(char)");
	assert_name("@", "@");
	assert_name("foo@plt.cold.1234", "foo@plt.cold.1234");
	assert_name("foo@", "foo@");
	assert_name("foo@@", "foo@@");
	assert_name("_Z3foov.cold", "foo() [clone .cold]");
	assert_name("_Z3foov.part.0", "foo() [clone .part.0]");
	assert_name("foo.cold", "foo.cold");
}

/* Each line nests the one before twice: some hundred bytes stand for more than any memory. */
static void gives_up_on_a_name_that_explodes(void **state)
{
	char name[4096] = "_Z1f1BI1AS0_E"; /* S_ is B, S0_ A, S1_ B<A, A> */
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	(void)state;
	for (int i = 1; i < 34; i++) {
		char part[32];

		snprintf(part, sizeof(part), "S_IS%c_S%c_E", digits[i], digits[i]);
		strcat(name, part);
	}
	char *text = demangled(name);

	assert_true(strlen(text) <= LIMIT_NAME_BYTES);
	assert_string_equal(text, name);
	free(text);
}

/* The lifetimes of a binder are counted one by one where nothing is printed: millions, and with more digits more than time has. */
static void gives_up_on_a_binder_of_countless_lifetimes(void **state)
{
	(void)state;
	assert_name("_RMIC1aFG_EuEu", "<()>");
	assert_name("_RMIC1aFG3_EuEu", "<()>");
	assert_name("_RMIC1aFGzzzzzzzzzz_EuEu", "_RMIC1aFGzzzzzzzzzz_EuEu");
	assert_name("_RMIC1aDGzzzzzzzzzz_EL_Eu", "_RMIC1aDGzzzzzzzzzz_EL_Eu");
	/* the same, reached by a reference into an identifier */
	assert_name("_RINvC20MIC1aFGzzzzzzzz_EuEu1bB5_E", "_RINvC20MIC1aFGzzzzzzzz_EuEu1bB5_E");
	assert_name("_RNvC3CFG4main", "CFG::main");
	assert_name("_RNvC7CFGNode4main", "CFGNode::main");
}

/* "Q" and how far back, in base 26. */
static void refer(char *name, size_t to)
{
	size_t distance = strlen(name) - to;
	char *end = name + strlen(name);

	if (distance >= 26) {
		end += sprintf(end, "Q%c%c", (char)('A' + distance / 26), (char)('a' + distance % 26));
	} else {
		sprintf(end, "Q%c", (char)('a' + distance));
	}
}

/* Each parameter is an array of the one before it, by it: some hundred bytes stand for more than any memory. */
static void name_of_arrays(char *name, int count)
{
	size_t before = strlen(strcpy(name, "_D1aF"));

	strcat(name, "Hii");
	for (int i = 1; i < count; i++) {
		size_t here = strlen(name);

		strcat(name, "H");
		refer(name, before);
		refer(name, before);
		before = here;
	}
	strcat(name, "Zv");
}

static void gives_up_on_a_name_whose_references_explode(void **state)
{
	char name[1024];

	(void)state;
	name_of_arrays(name, 2);
	assert_name(name, "a(int[int], int[int][int[int]])");
	name_of_arrays(name, 100);
	assert_name(name, name);
	assert_name("_D3abcQe1fFS3defQeZv", "abc.abc.f(def.def)");
}

static void keeps_names_that_are_too_long_to_read(void **state)
{
	static const size_t sizes[] = {
		DEMANGLE_INPUT_BYTES - 8, DEMANGLE_INPUT_BYTES + 1, LIMIT_NAME_BYTES, LIMIT_NAME_BYTES + 1};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct buffer out = {0};
		char *name = malloc(sizes[i] + 1);

		memset(name, 'x', sizes[i]);
		memcpy(name, "_Z", 2);
		assert_true(demangle(name, sizes[i], &out));
		assert_int_equal(out.len, sizes[i] < LIMIT_NAME_BYTES ? sizes[i] : LIMIT_NAME_BYTES);
		free(name);
		buffer_finish(&out);
	}
}

static void survives_every_cut_and_every_changed_byte(void **state)
{
	static const char *const names[] = {"_ZNSt6vectorIiSaIiEE9push_backERKiS_IS_IcEE",
		"_RINvNtC3std3mem8align_ofNtC3foo3BaruC4abcdE", "_D3std5stdio7writelnFAyaZv"};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		size_t len = strlen(names[i]);

		for (size_t at = 0; at <= len; at++) {
			for (int byte = 1; byte < 256; byte += 3) {
				struct buffer out = {0};
				char *name = malloc(len + 1);

				strcpy(name, names[i]);
				name[at < len ? at : 0] = (char)byte;
				assert_true(demangle(name, at == len ? (size_t)byte % len : len, &out));
				buffer_finish(&out);
				free(name);
			}
		}
	}
}

/* The mangled names that a library of this machine exports. Owned, in *count. */
static char **real_names(size_t *count)
{
	FILE *nm = popen("nm -D --defined-only $(ldconfig -p 2>/dev/null | "
					 "sed -n 's/.*libstdc++\\.so\\.6 .*=> //p' | head -n 1) 2>/dev/null",
		"r");
	char **names = calloc(NAMES, sizeof(*names));
	static char line[LINE_BYTES];

	*count = 0;
	while (nm != NULL && *count < NAMES && fgets(line, sizeof(line), nm) != NULL) {
		char *name = strrchr(line, ' ');

		line[strcspn(line, "\n")] = '\0';
		line[strcspn(line, "@")] = '\0';
		if (name != NULL && strncmp(name + 1, "_Z", 2) == 0) {
			names[(*count)++] = strdup(name + 1);
		}
	}
	if (nm != NULL) {
		pclose(nm);
	}
	return names;
}

static void without_blanks(char *text)
{
	char *to = text;

	for (; *text != '\0'; text++) {
		if (*text != ' ') {
			*to++ = *text;
		}
	}
	*to = '\0';
}

/* How many of the names the tool reads as we do, blanks aside. -1: the tool is missing. */
static long agreeing(const char *tool, char *const *names, size_t count)
{
	char path[] = "/tmp/profd-names-XXXXXX";
	char command[256];
	static char line[LINE_BYTES];
	FILE *file = fdopen(mkstemp(path), "w");
	long agreed = 0;
	size_t read = 0;

	assert_non_null(file);
	for (size_t i = 0; i < count; i++) {
		fprintf(file, "%s\n", names[i]);
	}
	fclose(file);
	snprintf(command, sizeof(command), "%s < %s 2>/dev/null", tool, path);
	FILE *output = popen(command, "r");

	for (; read < count && fgets(line, sizeof(line), output) != NULL; read++) {
		char *ours = demangled(names[read]);

		line[strcspn(line, "\n")] = '\0';
		without_blanks(line);
		without_blanks(ours);
		agreed += strcmp(line, ours) == 0;
		free(ours);
	}
	pclose(output);
	unlink(path);
	return read == count ? agreed : -1;
}

static void agree(const char *tool, long percent)
{
	size_t count;
	char **names = real_names(&count);
	long agreed = count < 500 ? -1 : agreeing(tool, names, count);

	for (size_t i = 0; i < count; i++) {
		free(names[i]);
	}
	free(names);
	if (agreed < 0) {
		print_message("# %s, nm or libstdc++.so.6 is missing\n", tool);
		skip();
	}
	print_message("# %s: %ld of %zu\n", tool, agreed, count);
	assert_true(agreed * 100 >= (long)count * percent);
}

static void agrees_with_cxxfilt_on_a_real_library(void **state)
{
	(void)state;
	agree("c++filt --no-verbose", 100);
}

/* LLVM spells some names otherwise ("'lambda'", abi tags, std::string): most, not all, are the same. */
static void agrees_with_llvm_on_most_names_of_a_real_library(void **state)
{
	(void)state;
	agree("llvm-cxxfilt", 90);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_names_of_each_language),
		cmocka_unit_test(keeps_names_that_are_not_mangled),
		cmocka_unit_test(cuts_versions_and_keeps_the_parts_that_a_compiler_split_off),
		cmocka_unit_test(gives_up_on_a_name_that_explodes),
		cmocka_unit_test(gives_up_on_a_binder_of_countless_lifetimes),
		cmocka_unit_test(gives_up_on_a_name_whose_references_explode),
		cmocka_unit_test(keeps_names_that_are_too_long_to_read),
		cmocka_unit_test(survives_every_cut_and_every_changed_byte),
		cmocka_unit_test(agrees_with_cxxfilt_on_a_real_library),
		cmocka_unit_test(agrees_with_llvm_on_most_names_of_a_real_library),
	};

	return cmocka_run_group_tests_name("demangle", tests, NULL, NULL);
}
