#ifndef UNWIND_CFI_POINTER_H
#define UNWIND_CFI_POINTER_H

#include <stdint.h>

#include "base/bytes.h"

/* What call-frame information can answer. Never a guess: what is not understood is unknown. */
enum cfi_result {
	CFI_FOUND,
	CFI_NONE,    /* there is none for this address */
	CFI_UNKNOWN, /* there is some, of a form that we do not know */
	CFI_BROKEN,  /* it contradicts itself, or cannot be read */
};

/* Pointer encodings: LSB Core 5.0, 10.5.1. The low four bits are the form, the next three what it is relative to. */
#define CFI_POINTER_OMIT     0xff
#define CFI_POINTER_INDIRECT 0x80
#define CFI_POINTER_PCREL    0x10
#define CFI_POINTER_DATAREL  0x30
#define CFI_POINTER_ALIGNED  0x50
#define CFI_POINTER_SDATA4   0x0b

/* What pointers can be relative to: addresses of the image. */
struct cfi_bases {
	uint64_t address; /* of the first of the bytes that are read */
	uint64_t data;    /* 0: unknown, so that pointers relative to it are */
};

/* Reads one pointer of 64-bit code. Text- and function-relative and indirect ones are unknown. */
enum cfi_result cfi_pointer_read(
	struct bytes *in, uint8_t encoding, const struct cfi_bases *bases, uint64_t *value);
/* Reads past one, whatever it is relative to. */
enum cfi_result cfi_pointer_skip(struct bytes *in, uint8_t encoding, const struct cfi_bases *bases);
/* Reads a plain number of the encoding's form: an FDE's length. */
enum cfi_result cfi_pointer_number(struct bytes *in, uint8_t encoding, uint64_t *value);

#endif
