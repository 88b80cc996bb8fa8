#ifndef ANALYZER_SYMBOL_NAMING_H
#define ANALYZER_SYMBOL_NAMING_H

#include "analyzer/symbol/kallsyms.h"
#include "analyzer/symbol/kept.h"
#include "analyzer/symbol/symbol.h"
#include "analyzer/symbol/symtab.h"
#include "base/map.h"

/* The inside of symbols, for this folder alone: symbol.c finds names, keeping.c keeps them. */
struct image {
	int fd; /* -1: not given, or the symtab's */
	enum symbols_state state;
	struct symtab *symtab;         /* NULL: not parsed */
	uint32_t name;                 /* string id, 0: not made yet */
	size_t first, count;           /* of its frames' offsets */
	const struct kept_image *kept; /* borrowed; what was known of it before; NULL */
};

/* Keys of symbols.places: the image's index, the offset, is_return. Their values: string id << 1 | is_named. */
#define PLACE_OFFSET_BITS 47
#define PLACE_KEY(image, offset, is_return)                                                        \
	((uint64_t)(image) << (PLACE_OFFSET_BITS + 1) | (offset) << 1 | (is_return))
#define PLACE_VALUE(symbol) ((uint64_t)(symbol)->name << 1 | (symbol)->is_named)

struct symbols {
	const struct model *model;
	struct strings *strings;
	bool look_into_images, is_vdso_another;
	struct image *images; /* of the model's image with the same index */
	uint64_t *offsets;    /* of all frames with an image, by image */
	int kernel_fd;
	bool kernel_was_asked;
	struct kallsyms *kallsyms;
	struct map places;           /* in files */
	struct map kernel_places[2]; /* address -> as in places; [1]: of return addresses */
	struct map functions;        /* source, symbol -> string id */
	struct kept *kept;           /* what was known before; NULL */
	const struct kept_image *kept_kernel;
	char *name, *scratch; /* LIMIT_NAME_BYTES each */
	struct buffer text;
};

/* What was known of a place before: fills symbol unless it is named already. */
void keeping_recall(
	const struct kept_image *image, uint64_t offset, bool is_return, struct symbol *symbol);

#endif
