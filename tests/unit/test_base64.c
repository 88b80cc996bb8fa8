#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "protocol/base64.h"
#include "protocol/text.h"

static void check(const char *text, const char *bytes)
{
	char out[64];
	size_t len = 99;
	assert_true(base64_decode(text, strlen(text), out, &len));
	assert_int_equal(len, strlen(bytes));
	assert_memory_equal(out, bytes, len);
}

static void reads_the_vectors_of_the_standard(void **state)
{
	(void)state; /* RFC 4648 section 10 */
	check("", "");
	check("Zg==", "f");
	check("Zm8=", "fo");
	check("Zm9v", "foo");
	check("Zm9vYg==", "foob");
	check("Zm9vYmE=", "fooba");
	check("Zm9vYmFy", "foobar");
}

static void reads_back_every_length_of_bytes(void **state)
{
	(void)state;
	char bytes[260], out[400];
	for (size_t i = 0; i < sizeof(bytes); i++) {
		bytes[i] = (char)(255 - i);
	}
	for (size_t count = 0; count <= sizeof(bytes); count++) {
		char *text = text_base64(bytes, count);
		size_t len = 0;
		assert_true(base64_decode(text, strlen(text), out, &len));
		assert_int_equal(len, count);
		assert_memory_equal(out, bytes, count);
		/* In place. */
		assert_true(base64_decode(text, strlen(text), text, &len));
		assert_memory_equal(text, bytes, count);
		free(text);
	}
}

static void refuses_everything_else(void **state)
{
	(void)state;
	static const char *const wrong[] = {"Z", "Zg", "Zg=", "Zg===", "====", "Z===", "Zm9v\n",
		"Zm 9v", "Zm-_", "Zg==Zg==", "=Zg=", "Zh==", "Zm9=", "Zm9v=", "Zm\xc3\xa4"};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char out[64];
		size_t len = 77;
		assert_false(base64_decode(wrong[i], strlen(wrong[i]), out, &len));
		assert_int_equal(len, 77);
	}
	char out[8];
	size_t len;
	assert_false(base64_decode("Zm\0v", 4, out, &len));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_the_vectors_of_the_standard),
		cmocka_unit_test(reads_back_every_length_of_bytes),
		cmocka_unit_test(refuses_everything_else),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
