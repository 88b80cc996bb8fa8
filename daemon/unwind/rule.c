#include "unwind/rule.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"

static void clear_row(struct rule_row *row)
{
	free(row->expressions);
}

void rule_rows_clear(struct rule_rows *rows)
{
	for (size_t i = 0; i < rows->rows.len; i++) {
		clear_row(&rows->rows.items[i]);
	}
	rows->rows.len = 0;
}

void rule_rows_finish(struct rule_rows *rows)
{
	rule_rows_clear(rows);
	VEC_FINISH(&rows->rows);
}

static bool fits(int64_t offset)
{
	return offset >= INT32_MIN && offset <= INT32_MAX;
}

static bool make_cfa(
	const struct unwind_machine *machine, const struct cfi_rule *cfa, struct rule *rule)
{
	if (cfa->kind != CFI_RULE_REGISTER || !fits(cfa->offset) ||
		(cfa->number != machine->sp && cfa->number != machine->fp)) {
		return false;
	}
	rule->kind = cfa->number == machine->sp ? RULE_SP : RULE_FP;
	rule->cfa_offset = (int32_t)cfa->offset;
	return true;
}

static bool make_ra(const struct cfi_row *row, struct rule *rule)
{
	const struct cfi_rule *ra = &row->rules[CFI_RA];

	if (ra->kind == CFI_RULE_AT && fits(ra->offset)) {
		rule->ra_offset = (int32_t)ra->offset;
		return true;
	}
	rule->flags |= RULE_RA_IN_LR;
	return row->is_ra_in_lr && (ra->kind == CFI_RULE_UNSPECIFIED || ra->kind == CFI_RULE_SAME);
}

static bool make_fp(const struct cfi_rule *fp, struct rule *rule)
{
	if (fp->kind == CFI_RULE_AT && fits(fp->offset)) {
		rule->fp_offset = (int32_t)fp->offset;
		rule->flags |= RULE_FP_AT;
		return true;
	}
	return fp->kind == CFI_RULE_UNSPECIFIED || fp->kind == CFI_RULE_SAME;
}

static bool make_base(const struct cfi_rule *base, struct rule *rule)
{
	int64_t slot = base->offset / RULE_SLOT_BYTES;

	if (base->kind == CFI_RULE_AT && base->offset % RULE_SLOT_BYTES == 0 && slot >= INT16_MIN &&
		slot <= INT16_MAX) {
		rule->base_slot = (int16_t)slot;
		rule->flags |= RULE_BASE_AT;
		return true;
	}
	return base->kind == CFI_RULE_UNSPECIFIED || base->kind == CFI_RULE_SAME;
}

/* The forms that are no row of the table. A signal frame always is one: where it is from matters. */
static bool make_plain(
	const struct unwind_machine *machine, const struct cfi_row *row, struct rule *rule)
{
	return !row->is_signal && row->rules[CFI_SP].kind == CFI_RULE_UNSPECIFIED &&
		   make_cfa(machine, &row->cfa, rule) && make_ra(row, rule) &&
		   make_fp(&row->rules[CFI_FP], rule) && make_base(&row->rules[CFI_BASE], rule);
}

static const struct cfi_rule *rule_at(const struct cfi_row *row, size_t i)
{
	return i == CFI_COLUMNS ? &row->cfa : &row->rules[i];
}

static uint64_t hash_rule(const struct cfi_rule *rule)
{
	const uint64_t words[] = {
		rule->kind, rule->expression_len, rule->number, (uint64_t)rule->offset};

	return map_hash_bytes(words, sizeof(words)) ^
		   map_hash(map_hash_bytes(rule->expression, rule->expression_len));
}

static uint64_t hash_row(const struct cfi_row *row)
{
	uint64_t hash = map_hash(
		(uint64_t)row->is_signal << 2 | (uint64_t)row->is_signed << 1 | (uint64_t)row->is_ra_in_lr);

	for (size_t i = 0; i <= CFI_COLUMNS; i++) {
		hash = map_hash(hash ^ hash_rule(rule_at(row, i)));
	}
	return hash;
}

static bool is_same_rule(const struct cfi_rule *first, const struct cfi_rule *second)
{
	return first->kind == second->kind && first->number == second->number &&
		   first->offset == second->offset && first->expression_len == second->expression_len &&
		   (first->expression_len == 0 ||
			   memcmp(first->expression, second->expression, first->expression_len) == 0);
}

static bool is_same_row(const struct cfi_row *first, const struct cfi_row *second)
{
	bool is_same = first->is_signal == second->is_signal && first->is_signed == second->is_signed &&
				   first->is_ra_in_lr == second->is_ra_in_lr;

	for (size_t i = 0; is_same && i <= CFI_COLUMNS; i++) {
		is_same = is_same_rule(rule_at(first, i), rule_at(second, i));
	}
	return is_same;
}

/* The row's expressions become the table's own. */
static bool keep_expressions(struct rule_row *row)
{
	size_t len = 0;

	for (size_t i = 0; i <= CFI_COLUMNS; i++) {
		len += rule_at(&row->row, i)->expression_len;
	}
	row->expressions = malloc(len + 1);
	for (size_t i = 0, at = 0; row->expressions != NULL && i <= CFI_COLUMNS; i++) {
		struct cfi_rule *rule = i == CFI_COLUMNS ? &row->row.cfa : &row->row.rules[i];

		if (rule->expression_len > 0) {
			memcpy(row->expressions + at, rule->expression, rule->expression_len);
		}
		rule->expression = row->expressions + at;
		at += rule->expression_len;
	}
	return row->expressions != NULL;
}

/* The number of the row in the table, added when it is not there. False: no room. */
static bool intern(struct rule_rows *rows, const struct cfi_row *row, size_t *number)
{
	struct rule_row added = {.row = *row, .hash = hash_row(row)};

	for (size_t i = 0; i < rows->rows.len; i++) {
		if (rows->rows.items[i].hash == added.hash && is_same_row(&rows->rows.items[i].row, row)) {
			*number = i;
			return true;
		}
	}
	if (rows->rows.len == RULE_ROWS || !keep_expressions(&added)) {
		return false;
	}
	if (!VEC_PUSH(&rows->rows, added)) {
		clear_row(&added);
		return false;
	}
	*number = rows->rows.len - 1;
	return true;
}

bool rule_make(const struct unwind_machine *machine, const struct cfi_row *row,
	struct rule_rows *rows, struct rule *rule)
{
	struct rule made = {.flags = row->is_signed ? RULE_SIGNED : 0};
	size_t number;

	if (row->rules[CFI_RA].kind == CFI_RULE_UNDEFINED) {
		*rule = (struct rule){.kind = RULE_END};
		return true;
	}
	if (row->is_signal && machine->has_wrong_signal_rows) {
		*rule = (struct rule){.kind = RULE_SIGNAL};
		return true;
	}
	if (make_plain(machine, row, &made)) {
		*rule = made;
		return true;
	}
	if (!intern(rows, row, &number)) {
		return false;
	}
	*rule = (struct rule){.kind = RULE_ROW, .cfa_offset = (int32_t)number};
	return true;
}
