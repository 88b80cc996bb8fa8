#include "unwind/cfi_pointer.h"

#define FORM_MASK     0x0f
#define RELATIVE_MASK 0x70

enum cfi_result cfi_pointer_number(struct bytes *in, uint8_t encoding, uint64_t *value)
{
	uint64_t number;

	switch (encoding & FORM_MASK) {
	case 0x00: /* absptr, of 64-bit code */
	case 0x04: /* udata8 */
	case 0x0c: /* sdata8 */
		number = bytes_u64(in);
		break;
	case 0x01:
		number = bytes_varint(in);
		break;
	case 0x02:
		number = bytes_u16(in);
		break;
	case 0x03:
		number = bytes_u32(in);
		break;
	case 0x09:
		number = (uint64_t)bytes_signed_varint(in);
		break;
	case 0x0a:
		number = (uint64_t)(int16_t)bytes_u16(in);
		break;
	case CFI_POINTER_SDATA4:
		number = (uint64_t)(int32_t)bytes_u32(in);
		break;
	default:
		return CFI_UNKNOWN;
	}
	if (in->bad) {
		return CFI_BROKEN;
	}
	*value = number;
	return CFI_FOUND;
}

/* An aligned pointer is a plain one at the next multiple of its size. */
static void align(struct bytes *in, const struct cfi_bases *bases)
{
	uint64_t address = bases->address + in->pos;

	bytes_take(in, (size_t)(-address & 7));
}

enum cfi_result cfi_pointer_read(
	struct bytes *in, uint8_t encoding, const struct cfi_bases *bases, uint64_t *value)
{
	uint64_t base = 0;

	if (encoding == CFI_POINTER_ALIGNED) {
		align(in, bases);
		return cfi_pointer_number(in, 0, value);
	}
	if ((encoding & CFI_POINTER_INDIRECT) != 0) {
		return CFI_UNKNOWN;
	}
	switch (encoding & RELATIVE_MASK) {
	case 0:
		break;
	case CFI_POINTER_PCREL:
		base = bases->address + in->pos;
		break;
	case CFI_POINTER_DATAREL:
		if (bases->data == 0) {
			return CFI_UNKNOWN;
		}
		base = bases->data;
		break;
	default:
		return CFI_UNKNOWN;
	}
	enum cfi_result result = cfi_pointer_number(in, encoding, value);

	if (result == CFI_FOUND) {
		*value += base;
	}
	return result;
}

enum cfi_result cfi_pointer_skip(struct bytes *in, uint8_t encoding, const struct cfi_bases *bases)
{
	uint64_t value;

	if (encoding == CFI_POINTER_OMIT) {
		return CFI_FOUND;
	}
	if (encoding == CFI_POINTER_ALIGNED) {
		align(in, bases);
		encoding = 0;
	}
	return cfi_pointer_number(in, encoding, &value);
}
