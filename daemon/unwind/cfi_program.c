#include "unwind/cfi_program.h"

#include "base/bytes.h"

/* DWARF 5, table 7.29; GNU and Arm: binutils' include/dwarf2.def. */
enum {
	DW_CFA_advance_loc = 0x40, /* the operand is in the low six bits of these three */
	DW_CFA_offset = 0x80,
	DW_CFA_restore = 0xc0,
	DW_CFA_nop = 0x00,
	DW_CFA_set_loc = 0x01,
	DW_CFA_advance_loc1 = 0x02,
	DW_CFA_advance_loc2 = 0x03,
	DW_CFA_advance_loc4 = 0x04,
	DW_CFA_offset_extended = 0x05,
	DW_CFA_restore_extended = 0x06,
	DW_CFA_undefined = 0x07,
	DW_CFA_same_value = 0x08,
	DW_CFA_register = 0x09,
	DW_CFA_remember_state = 0x0a,
	DW_CFA_restore_state = 0x0b,
	DW_CFA_def_cfa = 0x0c,
	DW_CFA_def_cfa_register = 0x0d,
	DW_CFA_def_cfa_offset = 0x0e,
	DW_CFA_def_cfa_expression = 0x0f,
	DW_CFA_expression = 0x10,
	DW_CFA_offset_extended_sf = 0x11,
	DW_CFA_def_cfa_sf = 0x12,
	DW_CFA_def_cfa_offset_sf = 0x13,
	DW_CFA_val_offset = 0x14,
	DW_CFA_val_offset_sf = 0x15,
	DW_CFA_val_expression = 0x16,
	DW_CFA_MIPS_advance_loc8 = 0x1d,
	DW_CFA_AARCH64_negate_ra_state = 0x2d,
	DW_CFA_GNU_args_size = 0x2e,
	DW_CFA_GNU_negative_offset_extended = 0x2f,
};

struct program {
	const struct unwind_machine *machine;
	const struct cfi_entry *entry;
	struct bytes in;
	uint64_t address;    /* of the first of the bytes */
	uint64_t pc, target; /* where the row holds that is made; the row that is wanted */
	uint64_t end;        /* where it holds no more */
	struct cfi_row row, initial;
	bool has_initial; /* the CIE's program is done */
	bool is_there;    /* the next row begins behind the target */
	struct cfi_row remembered[CFI_REMEMBERED];
	size_t remembered_len;
};

/* The rule of a register in a row; NULL: not a column that is followed. */
static struct cfi_rule *rule_of(const struct program *program, struct cfi_row *row, uint64_t number)
{
	if (number == program->entry->cie.ra_register) {
		return &row->rules[CFI_RA];
	}
	if (number == program->machine->base) {
		return &row->rules[CFI_BASE];
	}
	return number == program->machine->sp   ? &row->rules[CFI_SP]
		   : number == program->machine->fp ? &row->rules[CFI_FP]
											: NULL;
}

static enum cfi_result set_rule(struct program *program, uint64_t number, struct cfi_rule rule)
{
	struct cfi_rule *place = rule_of(program, &program->row, number);

	if (place != NULL) {
		*place = rule;
	}
	return CFI_FOUND;
}

/* Products of foreign numbers wrap as the machine's do. */
static int64_t scaled(const struct program *program, uint64_t factor)
{
	return (int64_t)(factor * (uint64_t)program->entry->cie.data_align);
}

static enum cfi_result advance_to(struct program *program, uint64_t pc)
{
	if (pc < program->pc) {
		return CFI_BROKEN;
	}
	if (pc > program->target) {
		program->is_there = true;
		program->end = pc;
	} else {
		program->pc = pc;
	}
	return CFI_FOUND;
}

static enum cfi_result advance(struct program *program, uint64_t delta)
{
	uint64_t align = program->entry->cie.code_align;

	if (align != 0 && delta > (UINT64_MAX - program->pc) / align) {
		return CFI_BROKEN;
	}
	return advance_to(program, program->pc + delta * align);
}

static enum cfi_result set_loc(struct program *program)
{
	const struct cfi_bases bases = {.address = program->address};
	uint64_t pc = 0;
	enum cfi_result result =
		cfi_pointer_read(&program->in, program->entry->cie.encoding, &bases, &pc);

	return result == CFI_FOUND ? advance_to(program, pc) : result;
}

static enum cfi_result restore(struct program *program, uint64_t number)
{
	struct cfi_rule *place = rule_of(program, &program->row, number);

	if (!program->has_initial) {
		return CFI_BROKEN;
	}
	if (place != NULL) {
		*place = *rule_of(program, &program->initial, number);
	}
	return CFI_FOUND;
}

static enum cfi_result remember(struct program *program)
{
	if (program->remembered_len == CFI_REMEMBERED) {
		return CFI_UNKNOWN;
	}
	program->remembered[program->remembered_len++] = program->row;
	return CFI_FOUND;
}

static enum cfi_result recall(struct program *program)
{
	if (program->remembered_len == 0) {
		return CFI_BROKEN;
	}
	program->row = program->remembered[--program->remembered_len];
	return CFI_FOUND;
}

static enum cfi_result define_cfa(struct program *program, uint64_t number, int64_t offset)
{
	program->row.cfa =
		(struct cfi_rule){.kind = CFI_RULE_REGISTER, .number = number, .offset = offset};
	return CFI_FOUND;
}

/* Half a definition changes one that there must be already. */
static enum cfi_result change_cfa(struct program *program, const uint64_t *number, int64_t offset)
{
	struct cfi_rule *cfa = &program->row.cfa;

	if (cfa->kind != CFI_RULE_REGISTER) {
		return CFI_BROKEN;
	}
	if (number != NULL) {
		cfa->number = *number;
	} else {
		cfa->offset = offset;
	}
	return CFI_FOUND;
}

static struct cfi_rule read_expression(struct program *program, enum cfi_rule_kind kind)
{
	struct bytes_text text = bytes_text(&program->in);

	return (struct cfi_rule){.kind = kind,
		.expression = (const uint8_t *)text.data,
		.expression_len = (uint32_t)text.len};
}

static struct cfi_rule offset_rule(enum cfi_rule_kind kind, int64_t offset)
{
	return (struct cfi_rule){.kind = kind, .offset = offset};
}

static enum cfi_result step_place(struct program *program, uint8_t code)
{
	switch (code) {
	case DW_CFA_nop:
		return CFI_FOUND;
	case DW_CFA_set_loc:
		return set_loc(program);
	case DW_CFA_advance_loc1:
		return advance(program, bytes_u8(&program->in));
	case DW_CFA_advance_loc2:
		return advance(program, bytes_u16(&program->in));
	case DW_CFA_advance_loc4:
		return advance(program, bytes_u32(&program->in));
	case DW_CFA_MIPS_advance_loc8:
		return advance(program, bytes_u64(&program->in));
	case DW_CFA_remember_state:
		return remember(program);
	case DW_CFA_restore_state:
		return recall(program);
	case DW_CFA_GNU_args_size: /* for landing pads; the CFA is right without it */
		bytes_varint(&program->in);
		return CFI_FOUND;
	case DW_CFA_AARCH64_negate_ra_state:
		program->row.is_signed = !program->row.is_signed;
		return program->machine->has_signed_returns ? CFI_FOUND : CFI_UNKNOWN;
	default: /* 0x2c too, negate_ra_state_with_pc: what it signs cannot be stripped of its place */
		return CFI_UNKNOWN;
	}
}

static enum cfi_result step_cfa(struct program *program, uint8_t code)
{
	struct bytes *in = &program->in;
	uint64_t number;

	switch (code) {
	case DW_CFA_def_cfa:
		number = bytes_varint(in);
		return define_cfa(program, number, (int64_t)bytes_varint(in));
	case DW_CFA_def_cfa_sf:
		number = bytes_varint(in);
		return define_cfa(program, number, scaled(program, (uint64_t)bytes_signed_varint(in)));
	case DW_CFA_def_cfa_register:
		number = bytes_varint(in);
		return change_cfa(program, &number, 0);
	case DW_CFA_def_cfa_offset:
		return change_cfa(program, NULL, (int64_t)bytes_varint(in));
	case DW_CFA_def_cfa_offset_sf:
		return change_cfa(program, NULL, scaled(program, (uint64_t)bytes_signed_varint(in)));
	case DW_CFA_def_cfa_expression:
		program->row.cfa = read_expression(program, CFI_RULE_EXPRESSION);
		return CFI_FOUND;
	default:
		return step_place(program, code);
	}
}

static struct cfi_rule read_register(struct program *program)
{
	return (struct cfi_rule){.kind = CFI_RULE_REGISTER, .number = bytes_varint(&program->in)};
}

/* The rules of one register; its number is the first operand of them all. */
static enum cfi_result step_rule(struct program *program, uint8_t code, uint64_t number)
{
	struct bytes *in = &program->in;

	switch (code) {
	case DW_CFA_offset_extended:
		return set_rule(
			program, number, offset_rule(CFI_RULE_AT, scaled(program, bytes_varint(in))));
	case DW_CFA_offset_extended_sf:
		return set_rule(program, number,
			offset_rule(CFI_RULE_AT, scaled(program, (uint64_t)bytes_signed_varint(in))));
	case DW_CFA_GNU_negative_offset_extended:
		return set_rule(
			program, number, offset_rule(CFI_RULE_AT, scaled(program, -bytes_varint(in))));
	case DW_CFA_val_offset:
		return set_rule(
			program, number, offset_rule(CFI_RULE_VALUE, scaled(program, bytes_varint(in))));
	case DW_CFA_val_offset_sf:
		return set_rule(program, number,
			offset_rule(CFI_RULE_VALUE, scaled(program, (uint64_t)bytes_signed_varint(in))));
	case DW_CFA_register:
		return set_rule(program, number, read_register(program));
	case DW_CFA_expression:
		return set_rule(program, number, read_expression(program, CFI_RULE_AT_EXPRESSION));
	case DW_CFA_val_expression:
		return set_rule(program, number, read_expression(program, CFI_RULE_EXPRESSION));
	case DW_CFA_undefined:
		return set_rule(program, number, offset_rule(CFI_RULE_UNDEFINED, 0));
	case DW_CFA_same_value:
		return set_rule(program, number, offset_rule(CFI_RULE_SAME, 0));
	default:
		return restore(program, number);
	}
}

static bool has_register(uint8_t code)
{
	switch (code) {
	case DW_CFA_offset_extended:
	case DW_CFA_offset_extended_sf:
	case DW_CFA_GNU_negative_offset_extended:
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
	case DW_CFA_register:
	case DW_CFA_expression:
	case DW_CFA_val_expression:
	case DW_CFA_undefined:
	case DW_CFA_same_value:
	case DW_CFA_restore_extended:
		return true;
	default:
		return false;
	}
}

static enum cfi_result step(struct program *program)
{
	uint8_t code = bytes_u8(&program->in);
	uint8_t operand = code & 0x3f;

	switch (code & 0xc0) {
	case DW_CFA_advance_loc:
		return advance(program, operand);
	case DW_CFA_offset:
		return set_rule(program, operand,
			offset_rule(CFI_RULE_AT, scaled(program, bytes_varint(&program->in))));
	case DW_CFA_restore:
		return restore(program, operand);
	default:
		if (has_register(code)) {
			return step_rule(program, code, bytes_varint(&program->in));
		}
		return step_cfa(program, code);
	}
}

static enum cfi_result run(struct program *program, const struct cfi_code *code)
{
	enum cfi_result result = CFI_FOUND;

	program->in = bytes_of(code->bytes, code->len);
	program->address = code->address;
	while (result == CFI_FOUND && !program->is_there && bytes_left(&program->in) > 0) {
		result = step(program);
		if (program->in.bad) {
			return CFI_BROKEN;
		}
	}
	return result;
}

enum cfi_result cfi_program_run(const struct unwind_machine *machine, const struct cfi_entry *entry,
	uint64_t pc, struct cfi_row *row, struct cfi_range *range)
{
	struct program program;

	program.machine = machine;
	program.entry = entry;
	program.pc = entry->begin;
	program.end = entry->end;
	program.target = pc;
	program.has_initial = program.is_there = false;
	program.remembered_len = 0;
	program.row = (struct cfi_row){
		.is_signal = entry->cie.is_signal,
		.is_ra_in_lr = machine->lr != UNWIND_NO_REGISTER && entry->cie.ra_register == machine->lr,
	};
	enum cfi_result result = run(&program, &entry->cie.program);

	if (result != CFI_FOUND || program.is_there) {
		return result == CFI_FOUND ? CFI_BROKEN : result;
	}
	program.initial = program.row;
	program.has_initial = true;
	result = run(&program, &entry->program);
	if (result == CFI_FOUND) {
		*row = program.row;
	}
	if (range != NULL) {
		*range = (struct cfi_range){program.pc, program.end};
	}
	return result;
}
