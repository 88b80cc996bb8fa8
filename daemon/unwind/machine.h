#ifndef UNWIND_MACHINE_H
#define UNWIND_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "image/image.h"

/*
 * What the walk must know of a processor, as a table: no #ifdef, so that stacks of one machine can be walked on another. Register
 * numbers are DWARF's: System V psABI for AMD64, figure 3.36; DWARF for the Arm 64-bit Architecture, section 4.1.
 */
#define UNWIND_NO_REGISTER       255
#define UNWIND_SIGNAL_CODE_BYTES 16

struct unwind_machine {
	enum image_machine image; /* whose images have its code */
	uint8_t sp, fp;
	uint8_t
		base; /* saved by callees; code that moves sp around without a frame pointer counts its frame from it (ld.so) */
	uint8_t pc; /* the program counter's number in expressions */
	uint8_t lr; /* UNWIND_NO_REGISTER: calls push the return address */
	/* Where the next frame pointer and the return address are from a frame record's address. */
	uint8_t record_fp, record_ra;
	/* The bits of a signed return address that are address (pointer authentication); the others are stripped where a rule says so. */
	uint64_t code_mask;
	/* A byte that DW_CFA 0x2d means differently elsewhere: 0x2d toggles the signing of the return address. */
	bool has_signed_returns;
	/* The code that returns from a signal handler, for where no call-frame information tells it, and where from sp the kernel put the
	 * registers of what was interrupted. */
	uint8_t signal_code[UNWIND_SIGNAL_CODE_BYTES];
	uint8_t signal_code_bytes;
	uint16_t signal_fp, signal_base, signal_lr, signal_sp, signal_pc;
	/* Call-frame information of that code tells where lr is, but not pc: the kernel's layout is right and it is not. */
	bool has_wrong_signal_rows;
};

extern const struct unwind_machine unwind_machine_x86_64;
extern const struct unwind_machine unwind_machine_aarch64;

#endif
