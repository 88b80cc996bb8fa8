#include "sampler/perf_registers.h"

#define NO_NUMBER 0xff
#define NUMBER_PC 0xfe /* beside the others */

/* By the bits of the mask, from the lowest. */
#if defined(__x86_64__)
/* ax bx cx dx si di bp sp ip, and r8 to r15 */
const uint64_t perf_registers_mask = 0xff01ff;
static const uint8_t numbers[] = {0, 3, 2, 1, 4, 5, 6, 7, NUMBER_PC, 8, 9, 10, 11, 12, 13, 14, 15};
#elif defined(__aarch64__)
/* x0 to x30, sp, pc */
const uint64_t perf_registers_mask = 0x1ffffffff;
static const uint8_t numbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18,
	19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, NUMBER_PC};
#else
const uint64_t perf_registers_mask = 0;
static const uint8_t numbers[] = {NO_NUMBER};
#endif

uint64_t perf_registers_take(
	const uint64_t *values, uint64_t registers[SAMPLER_REGISTERS], uint64_t *pc)
{
	uint64_t known = 0;
	*pc = 0;
	for (size_t i = 0; i < sizeof(numbers); i++) {
		if (numbers[i] == NUMBER_PC) {
			*pc = values[i];
		} else if (numbers[i] < SAMPLER_REGISTERS) {
			registers[numbers[i]] = values[i];
			known |= UINT64_C(1) << numbers[i];
		}
	}
	return known;
}
