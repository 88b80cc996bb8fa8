#include "unwind/cfi_expression.h"

#include "base/bytes.h"

/* DWARF 5, table 7.9 */
enum {
	DW_OP_deref = 0x06,
	DW_OP_const1u = 0x08,
	DW_OP_const1s = 0x09,
	DW_OP_const2u = 0x0a,
	DW_OP_const2s = 0x0b,
	DW_OP_const4u = 0x0c,
	DW_OP_const4s = 0x0d,
	DW_OP_const8u = 0x0e,
	DW_OP_const8s = 0x0f,
	DW_OP_constu = 0x10,
	DW_OP_consts = 0x11,
	DW_OP_dup = 0x12,
	DW_OP_drop = 0x13,
	DW_OP_over = 0x14,
	DW_OP_pick = 0x15,
	DW_OP_swap = 0x16,
	DW_OP_rot = 0x17,
	DW_OP_abs = 0x19,
	DW_OP_and = 0x1a,
	DW_OP_div = 0x1b,
	DW_OP_minus = 0x1c,
	DW_OP_mod = 0x1d,
	DW_OP_mul = 0x1e,
	DW_OP_neg = 0x1f,
	DW_OP_not = 0x20,
	DW_OP_or = 0x21,
	DW_OP_plus = 0x22,
	DW_OP_plus_uconst = 0x23,
	DW_OP_shl = 0x24,
	DW_OP_shr = 0x25,
	DW_OP_shra = 0x26,
	DW_OP_xor = 0x27,
	DW_OP_bra = 0x28,
	DW_OP_eq = 0x29,
	DW_OP_ge = 0x2a,
	DW_OP_gt = 0x2b,
	DW_OP_le = 0x2c,
	DW_OP_lt = 0x2d,
	DW_OP_ne = 0x2e,
	DW_OP_skip = 0x2f,
	DW_OP_lit0 = 0x30,
	DW_OP_breg0 = 0x70,
	DW_OP_bregx = 0x92,
	DW_OP_deref_size = 0x94,
	DW_OP_nop = 0x96,
};

struct evaluation {
	const struct unwind_frame *frame;
	struct bytes in;
	uint64_t stack[CFI_EXPRESSION_STACK];
	size_t len;
	uint64_t unreadable;
};

static enum cfi_value push(struct evaluation *evaluation, uint64_t value)
{
	if (evaluation->len == CFI_EXPRESSION_STACK) {
		return CFI_VALUE_BROKEN;
	}
	evaluation->stack[evaluation->len++] = value;
	return CFI_VALUE;
}

/* The entry so far below the top; NULL: there are not so many. */
static uint64_t *below_top(struct evaluation *evaluation, size_t depth)
{
	return depth < evaluation->len ? &evaluation->stack[evaluation->len - 1 - depth] : NULL;
}

static enum cfi_value pick(struct evaluation *evaluation, size_t depth)
{
	const uint64_t *entry = below_top(evaluation, depth);

	return entry == NULL ? CFI_VALUE_BROKEN : push(evaluation, *entry);
}

static enum cfi_value drop(struct evaluation *evaluation)
{
	if (evaluation->len == 0) {
		return CFI_VALUE_BROKEN;
	}
	evaluation->len--;
	return CFI_VALUE;
}

static enum cfi_value push_register(struct evaluation *evaluation, uint64_t number)
{
	int64_t offset = bytes_signed_varint(&evaluation->in);
	uint64_t value;

	if (!unwind_frame_register(evaluation->frame, number, &value)) {
		return CFI_VALUE_UNKNOWN;
	}
	return push(evaluation, value + (uint64_t)offset);
}

static bool read_byte(const struct unwind_memory *memory, uint64_t address, uint8_t *byte)
{
	uint64_t at = address - memory->address;

	if (at >= memory->len) {
		return false;
	}
	*byte = memory->bytes[at];
	return true;
}

/* Little-endian, by bytes: the last word of a copy may be half there. */
static enum cfi_value dereference(struct evaluation *evaluation, size_t bytes)
{
	uint64_t *top = below_top(evaluation, 0);
	uint64_t value = 0;

	if (top == NULL || bytes == 0 || bytes > sizeof(value)) {
		return CFI_VALUE_BROKEN;
	}
	if (bytes == sizeof(value) && unwind_memory_read(evaluation->frame->memory, *top, &value)) {
		*top = value;
		return CFI_VALUE;
	}
	for (size_t i = 0; i < bytes; i++) {
		uint8_t byte;

		if (!read_byte(evaluation->frame->memory, *top + i, &byte)) {
			evaluation->unreadable = *top + i;
			return CFI_VALUE_UNREADABLE;
		}
		value |= (uint64_t)byte << (8 * i);
	}
	*top = value;
	return CFI_VALUE;
}

static enum cfi_value jump(struct evaluation *evaluation, bool is_taken)
{
	struct bytes *in = &evaluation->in;
	int16_t distance = (int16_t)bytes_u16(in);
	int64_t to = (int64_t)in->pos + distance;

	if (in->bad || (is_taken && (to < 0 || to > (int64_t)in->len))) {
		return CFI_VALUE_BROKEN;
	}
	if (is_taken) {
		in->pos = (size_t)to;
	}
	return CFI_VALUE;
}

static enum cfi_value branch(struct evaluation *evaluation)
{
	if (evaluation->len == 0) {
		return CFI_VALUE_BROKEN;
	}
	return jump(evaluation, evaluation->stack[--evaluation->len] != 0);
}

static enum cfi_value rotate(struct evaluation *evaluation)
{
	uint64_t *top = below_top(evaluation, 0);

	if (evaluation->len < 3) {
		return CFI_VALUE_BROKEN;
	}
	uint64_t value = top[0];

	top[0] = top[-1];
	top[-1] = top[-2];
	top[-2] = value;
	return CFI_VALUE;
}

static enum cfi_value swap(struct evaluation *evaluation)
{
	uint64_t *top = below_top(evaluation, 0);

	if (evaluation->len < 2) {
		return CFI_VALUE_BROKEN;
	}
	uint64_t value = top[0];

	top[0] = top[-1];
	top[-1] = value;
	return CFI_VALUE;
}

/* Operations on the top alone. */
static enum cfi_value change_top(struct evaluation *evaluation, uint8_t code)
{
	uint64_t *top = below_top(evaluation, 0);

	if (top == NULL) {
		return CFI_VALUE_BROKEN;
	}
	switch (code) {
	case DW_OP_abs:
		*top = (int64_t)*top < 0 ? -*top : *top;
		return CFI_VALUE;
	case DW_OP_neg:
		*top = -*top;
		return CFI_VALUE;
	case DW_OP_not:
		*top = ~*top;
		return CFI_VALUE;
	default: /* DW_OP_plus_uconst */
		*top += bytes_varint(&evaluation->in);
		return CFI_VALUE;
	}
}

static uint64_t shift_right(uint64_t value, uint64_t by)
{
	bool is_negative = (int64_t)value < 0;

	if (by > 63) {
		return is_negative ? UINT64_MAX : 0;
	}
	return is_negative ? ~(~value >> by) : value >> by;
}

/* Division is of signed numbers, modulo of unsigned ones. */
static uint64_t divide(uint64_t first, uint64_t second)
{
	if (second == UINT64_MAX) {
		return -first;
	}
	return (uint64_t)((int64_t)first / (int64_t)second);
}

static uint64_t compute(uint8_t code, uint64_t first, uint64_t second)
{
	switch (code) {
	case DW_OP_and:
		return first & second;
	case DW_OP_div:
		return divide(first, second);
	case DW_OP_minus:
		return first - second;
	case DW_OP_mod:
		return first % second;
	case DW_OP_mul:
		return first * second;
	case DW_OP_or:
		return first | second;
	case DW_OP_plus:
		return first + second;
	case DW_OP_shl:
		return second > 63 ? 0 : first << second;
	case DW_OP_shr:
		return second > 63 ? 0 : first >> second;
	case DW_OP_shra:
		return shift_right(first, second);
	case DW_OP_xor:
		return first ^ second;
	case DW_OP_eq:
		return first == second;
	case DW_OP_ge:
		return (int64_t)first >= (int64_t)second;
	case DW_OP_gt:
		return (int64_t)first > (int64_t)second;
	case DW_OP_le:
		return (int64_t)first <= (int64_t)second;
	case DW_OP_lt:
		return (int64_t)first < (int64_t)second;
	default: /* DW_OP_ne */
		return first != second;
	}
}

static enum cfi_value change_two(struct evaluation *evaluation, uint8_t code)
{
	uint64_t *top = below_top(evaluation, 0);

	if (evaluation->len < 2) {
		return CFI_VALUE_BROKEN;
	}
	if (top[0] == 0 && (code == DW_OP_div || code == DW_OP_mod)) {
		return CFI_VALUE_BROKEN;
	}
	top[-1] = compute(code, top[-1], top[0]);
	evaluation->len--;
	return CFI_VALUE;
}

static enum cfi_value push_constant(struct evaluation *evaluation, uint8_t code)
{
	struct bytes *in = &evaluation->in;

	switch (code) {
	case DW_OP_const1u:
		return push(evaluation, bytes_u8(in));
	case DW_OP_const1s:
		return push(evaluation, (uint64_t)(int8_t)bytes_u8(in));
	case DW_OP_const2u:
		return push(evaluation, bytes_u16(in));
	case DW_OP_const2s:
		return push(evaluation, (uint64_t)(int16_t)bytes_u16(in));
	case DW_OP_const4u:
		return push(evaluation, bytes_u32(in));
	case DW_OP_const4s:
		return push(evaluation, (uint64_t)(int32_t)bytes_u32(in));
	case DW_OP_const8u:
	case DW_OP_const8s:
		return push(evaluation, bytes_u64(in));
	case DW_OP_constu:
		return push(evaluation, bytes_varint(in));
	default: /* DW_OP_consts */
		return push(evaluation, (uint64_t)bytes_signed_varint(in));
	}
}

/* What moves things on the stack, and where the next operation is. */
static enum cfi_value move(struct evaluation *evaluation, uint8_t code)
{
	switch (code) {
	case DW_OP_dup:
		return pick(evaluation, 0);
	case DW_OP_over:
		return pick(evaluation, 1);
	case DW_OP_pick:
		return pick(evaluation, bytes_u8(&evaluation->in));
	case DW_OP_drop:
		return drop(evaluation);
	case DW_OP_swap:
		return swap(evaluation);
	case DW_OP_rot:
		return rotate(evaluation);
	case DW_OP_skip:
		return jump(evaluation, true);
	case DW_OP_bra:
		return branch(evaluation);
	case DW_OP_deref:
		return dereference(evaluation, sizeof(uint64_t));
	case DW_OP_deref_size:
		return dereference(evaluation, bytes_u8(&evaluation->in));
	case DW_OP_bregx:
		return push_register(evaluation, bytes_varint(&evaluation->in));
	case DW_OP_nop:
		return CFI_VALUE;
	default:
		return CFI_VALUE_UNKNOWN;
	}
}

static enum cfi_value step(struct evaluation *evaluation)
{
	uint8_t code = bytes_u8(&evaluation->in);

	if (code >= DW_OP_lit0 && code < DW_OP_lit0 + 32) {
		return push(evaluation, code - DW_OP_lit0);
	}
	if (code >= DW_OP_breg0 && code < DW_OP_breg0 + 32) {
		return push_register(evaluation, code - DW_OP_breg0);
	}
	if (code >= DW_OP_const1u && code <= DW_OP_consts) {
		return push_constant(evaluation, code);
	}
	switch (code) {
	case DW_OP_abs:
	case DW_OP_neg:
	case DW_OP_not:
	case DW_OP_plus_uconst:
		return change_top(evaluation, code);
	case DW_OP_bra:
		return move(evaluation, code);
	default:
		/* the others from "and" to "ne" take two values */
		return code >= DW_OP_and && code <= DW_OP_ne ? change_two(evaluation, code)
													 : move(evaluation, code);
	}
}

enum cfi_value cfi_expression_run(const struct cfi_expression *expression,
	const struct unwind_frame *frame, const uint64_t *initial, uint64_t *value, uint64_t *address)
{
	struct evaluation evaluation;
	enum cfi_value result = CFI_VALUE;

	evaluation.frame = frame;
	evaluation.in = bytes_of(expression->bytes, expression->len);
	evaluation.len = 0;
	if (expression->len > CFI_EXPRESSION_BYTES) {
		return CFI_VALUE_UNKNOWN;
	}
	if (initial != NULL) {
		push(&evaluation, *initial);
	}
	for (size_t steps = 0; bytes_left(&evaluation.in) > 0; steps++) {
		result = steps == CFI_EXPRESSION_STEPS ? CFI_VALUE_BROKEN : step(&evaluation);
		if (evaluation.in.bad) {
			return CFI_VALUE_BROKEN;
		}
		if (result != CFI_VALUE) {
			*address = evaluation.unreadable;
			return result;
		}
	}
	if (evaluation.len == 0) {
		return CFI_VALUE_BROKEN;
	}
	*value = evaluation.stack[evaluation.len - 1];
	return CFI_VALUE;
}
