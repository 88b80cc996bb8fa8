#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "protocol/sha256.h"

#define MILLION 1000000

static void expect(const char *text, size_t len, const char *wanted)
{
	char hex[SHA256_HEX_BYTES];
	sha256_hex(text, len, hex);
	assert_string_equal(hex, wanted);
}

/* FIPS 180-4's examples (csrc.nist.gov, "SHA256.pdf" and "SHA2_Additional.pdf"). */
static void the_standards_examples_come_out(void **state)
{
	(void)state;
	expect("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	expect("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
		"248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	expect("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	expect("\xbd", 1, "68325720aabd7c82f30f554b313d0570c95accbb7dc4b5aae11204c08ffe732b");
}

/* As sha256sum says. */
static void all_places_of_the_end_in_a_block_come_out(void **state)
{
	static const struct {
		size_t zeros;
		const char *hash;
	} examples[] = {
		{55, "02779466cdec163811d078815c633f21901413081449002f24aa3e80f0b88ef7"},
		{56, "d4817aa5497628e7c77e6b606107042bbba3130888c5f47a375e6179be789fbb"},
		{57, "65a16cb7861335d5ace3c60718b5052e44660726da4cd13bb745381b235a1785"},
		{64, "f5a5fd42d16a20302798ef6ed309979b43003d2320d9f0e8ea9831a92759fb4b"},
	};
	static const char zeros[64];
	(void)state;
	for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++) {
		expect(zeros, examples[i].zeros, examples[i].hash);
	}
}

static void many_blocks_come_out(void **state)
{
	char *text = malloc(MILLION);
	(void)state;
	assert_non_null(text);
	memset(text, 'a', MILLION);
	expect(text, MILLION, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_standards_examples_come_out),
		cmocka_unit_test(all_places_of_the_end_in_a_block_come_out),
		cmocka_unit_test(many_blocks_come_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
