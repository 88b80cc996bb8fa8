#include "protocol/sha256.h"

#include <string.h>

#define BLOCK_BYTES  64
#define LENGTH_BYTES 8 /* of the message, at the end of the last block */
#define ROUNDS       64
#define WORDS        8

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes (section 4.2.2). */
static const uint32_t constants[ROUNDS] = {0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5,
	0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
	0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc,
	0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
	0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
	0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5,
	0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
	0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t value, int by)
{
	return value >> by | value << (32 - by);
}

static uint32_t load(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void expand(const uint8_t *block, uint32_t schedule[ROUNDS])
{
	for (int i = 0; i < 16; i++) {
		schedule[i] = load(block + 4 * i);
	}
	for (int i = 16; i < ROUNDS; i++) {
		uint32_t a = schedule[i - 15], b = schedule[i - 2];
		schedule[i] = schedule[i - 16] + schedule[i - 7] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) +
					  (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
	}
}

/* The standard's letters; their shift through each other costs nothing, as they are registers. */
static void add_block(uint32_t state[WORDS], const uint8_t *block)
{
	uint32_t schedule[ROUNDS];
	uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
	uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
	expand(block, schedule);
	for (int i = 0; i < ROUNDS; i++) {
		uint32_t first = h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) +
						 constants[i] + schedule[i];
		uint32_t second =
			(rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
		h = g, g = f, f = e, e = d + first;
		d = c, c = b, b = a, a = first + second;
	}
	state[0] += a, state[1] += b, state[2] += c, state[3] += d;
	state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

/* What is left of the message, a 1 bit, and the number of its bits: one block or two. */
static void add_end(uint32_t state[WORDS], const uint8_t *rest, size_t left, uint64_t bits)
{
	uint8_t end[2 * BLOCK_BYTES] = {0};
	size_t len = left + 1 + LENGTH_BYTES <= BLOCK_BYTES ? BLOCK_BYTES : 2 * BLOCK_BYTES;
	if (left > 0) {
		memcpy(end, rest, left);
	}
	end[left] = 0x80;
	for (size_t i = 0; i < LENGTH_BYTES; i++) {
		end[len - 1 - i] = (uint8_t)(bits >> (8 * i));
	}
	for (size_t at = 0; at < len; at += BLOCK_BYTES) {
		add_block(state, end + at);
	}
}

void sha256_hex(const void *bytes, size_t len, char hex[SHA256_HEX_BYTES])
{
	static const char digits[] = "0123456789abcdef";
	uint32_t state[WORDS] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c,
		0x1f83d9ab, 0x5be0cd19};
	const uint8_t *data = bytes;
	size_t whole = len - len % BLOCK_BYTES;
	for (size_t at = 0; at < whole; at += BLOCK_BYTES) {
		add_block(state, data + at);
	}
	add_end(state, whole < len ? data + whole : NULL, len - whole, (uint64_t)len * 8);
	for (int i = 0; i < SHA256_HEX_BYTES - 1; i++) {
		hex[i] = digits[state[i / 8] >> (28 - 4 * (i % 8)) & 0xf];
	}
	hex[SHA256_HEX_BYTES - 1] = '\0';
}
