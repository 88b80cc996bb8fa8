/*
 * Rows of an image's call-frame information as our reader makes them, to compare with another reader's.
 *
 *   unwind-rows FILE
 *
 * Standard input has addresses of the image, hexadecimal, one a line; for each a line "address result" or "address cfa fp ra" comes back,
 * where rules are written as binutils does: r7+8, c-16, v+0, u, s, r5, exp, vexp.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <fcntl.h>

#include "unwind/cfi.h"

static void print_rule(const struct cfi_rule *rule)
{
	switch (rule->kind) {
	case CFI_RULE_SAME:
		printf(" s");
		break;
	case CFI_RULE_AT:
		printf(" c%+" PRId64, rule->offset);
		break;
	case CFI_RULE_VALUE:
		printf(" v%+" PRId64, rule->offset);
		break;
	case CFI_RULE_REGISTER:
		printf(" r%" PRIu64, rule->number);
		break;
	case CFI_RULE_AT_EXPRESSION:
		printf(" exp");
		break;
	case CFI_RULE_EXPRESSION:
		printf(" vexp");
		break;
	default:
		printf(" u");
	}
}

static void print_row(const struct cfi_row *row)
{
	if (row->cfa.kind == CFI_RULE_REGISTER) {
		printf(" r%" PRIu64 "%+" PRId64, row->cfa.number, row->cfa.offset);
	} else {
		printf(row->cfa.kind == CFI_RULE_EXPRESSION ? " exp" : " none");
	}
	print_rule(&row->rules[CFI_FP]);
	print_rule(&row->rules[CFI_RA]);
}

static void answer(struct cfi *cfi, struct cfi_reader *reader, uint64_t pc)
{
	static const char *const results[] = {" found", " none", " unknown", " broken"};
	struct cfi_row row = {0};
	struct cfi_range range = {0};
	enum cfi_result result = cfi_row_at(cfi, reader, pc, &row, &range);

	printf("%" PRIx64, pc);
	if (result == CFI_FOUND) {
		print_row(&row);
		printf(" %" PRIx64 "..%" PRIx64, range.begin, range.end);
	} else {
		printf("%s", results[result]);
	}
	printf("\n");
}

int main(int argc, char **argv)
{
	struct error err = {0};
	struct cfi_reader reader;
	struct image *image = argc == 2 ? image_open(open(argv[1], O_RDONLY | O_CLOEXEC), &err) : NULL;
	uint64_t pc;

	if (image == NULL || !cfi_reader_init(&reader)) {
		fprintf(stderr, "unwind-rows: %s\n", argc == 2 ? err.message : "one FILE is needed");
		return 2;
	}
	struct cfi *cfi = cfi_create(image, &reader);

	while (cfi != NULL && scanf("%" SCNx64, &pc) == 1) {
		answer(cfi, &reader, pc);
	}
	cfi_release(cfi);
	image_release(image);
	cfi_reader_finish(&reader);
	return 0;
}
