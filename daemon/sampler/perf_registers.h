#ifndef SAMPLER_PERF_REGISTERS_H
#define SAMPLER_PERF_REGISTERS_H

#include <stddef.h>
#include <stdint.h>

#include "sampler/sampler.h"

/*
 * The registers of this machine that PERF_SAMPLE_REGS_USER copies (asm/perf_regs.h of the kernel), and their numbers in DWARF (System V psABI for
 * AMD64, figure 3.36; DWARF for the Arm 64-bit Architecture, section 4.1).
 */
extern const uint64_t
	perf_registers_mask; /* for sample_regs_user; 0: a machine that is not known */

/* As many as the mask has bits, in their order, into registers by DWARF number. The bits of those that are known; *pc beside them. */
uint64_t perf_registers_take(
	const uint64_t *values, uint64_t registers[SAMPLER_REGISTERS], uint64_t *pc);

#endif
