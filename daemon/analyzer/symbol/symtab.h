#ifndef ANALYZER_SYMBOL_SYMTAB_H
#define ANALYZER_SYMBOL_SYMTAB_H

#include <stdbool.h>
#include <stdint.h>

#include "analyzer/symbol/elf.h"
#include "analyzer/symbol/source.h"
#include "analyzer/symbol/table.h"
#include "analyzer/symbol/wanted.h"

/*
 * The functions that .symtab and .dynsym of an ELF file know, by address: STT_FUNC, STT_GNU_IFUNC and, in executable sections,
 * STT_NOTYPE. Ranked: functions above labels, then global, weak, local. Local labels of ARM, AArch64 and RISC-V are left out: they are
 * mapping symbols ($x, $d …). Names stay in the file until they are asked for.
 */
enum symtab_kind { SYMTAB_NONE, SYMTAB_DYNSYM, SYMTAB_SYMTAB };

struct symtab {
	struct elf_image elf;
	struct table table;
	struct elf_section strings[2]; /* of .symtab, .dynsym */
	enum symtab_kind kind;         /* the better of the tables that hold a function */
	struct wanted wanted;          /* while it is loaded */
	bool is_selective;
};

/*
 * Takes source. file_offsets (borrowed): the places that will be asked for, so that no other symbols need be kept; NULL: all are. NULL: no
 * ELF file, or memory is out. A file without symbols is fine: it still tells addresses.
 */
struct symtab *symtab_create(
	struct image_source source, const uint64_t *file_offsets, size_t count);
void symtab_destroy(struct symtab *symtab);

/* self is a struct symtab. */
extern const struct source_ops symtab_source;

#endif
