#ifndef ANALYZER_SYMBOL_SYMBOL_H
#define ANALYZER_SYMBOL_SYMBOL_H

#include <stdbool.h>
#include <stdint.h>

#include "analyzer/model/model.h"
#include "base/buffer.h"
#include "base/strings.h"
#include "protocol/error.h"

/*
 * Names for frames. Sources are asked in order; whoever has none gets a name that says where it is:
 *
 *   [libfoo.so.1+0x1234]  no symbol there. The number is the address in the image's own space, as nm and addr2line take it, when
 *                         its file could be read, else the offset in the file. It is that of the frame itself, not of the call.
 *   [anon+0x1234]         executable memory without a file
 *   [memfd:name+0x1234]   the same, when its maker gave it a name (memfd_create(2)); the number is the offset in it
 *   [kernel+0xffff…]      the kernel does not tell its symbols
 *   [unknown]             nothing was mapped there
 *
 * An image's file is parsed at its first frame, once. A file whose build id is not the one that was mapped is not asked.
 */
struct symbols;

enum symbols_state {
	SYMBOLS_NOT_ASKED,  /* no frame of it was named, or images are not to be looked into */
	SYMBOLS_NOT_OPENED, /* its file was not given */
	SYMBOLS_CHANGED,    /* the file is another one than was mapped */
	SYMBOLS_UNREADABLE, /* the file is none that can be read: another format, or broken */
	SYMBOLS_NONE,       /* it has no symbols */
	SYMBOLS_DYNSYM,
	SYMBOLS_SYMTAB,
};

struct symbol {
	uint32_t name;  /* string id; never 0 */
	uint32_t image; /* string id of the image's file name; 0: none */
	bool is_named;  /* the name is a function's, not a place */
};

/* model and strings (the model's) are borrowed. look_into_images false: only places. NULL: memory is out. */
struct symbols *symbols_create(
	const struct model *model, struct strings *strings, bool look_into_images);
void symbols_destroy(struct symbols *symbols);

/* Takes fd: the file of an image (by its journal id), or /proc/kallsyms. Closed at once when no frame needs it. */
void symbols_give_image(struct symbols *symbols, uint64_t journal_id, int fd);
void symbols_give_kernel(struct symbols *symbols, int fd);

/* The vDSO of this process is not that of the journal: another kernel runs. Before the first symbols_find. */
void symbols_forget_vdso(struct symbols *symbols);

/*
 * Takes fd: an earlier capture.symbols of the same journal (kept.h). Its names are used where no file that was given has one: naming again only
 * improves. Once, before the first symbols_find. False: err, it cannot be read; nothing of it is used.
 */
bool symbols_give_kept(struct symbols *symbols, int fd, struct error *err);
/* Appends what was found so far as a capture.symbols. False: memory is out. */
bool symbols_keep(const struct symbols *symbols, struct buffer *out);

/* False: memory is out. */
bool symbols_find(struct symbols *symbols, const struct model_frame *frame, struct symbol *symbol);

/* As symbols_create was asked. */
bool symbols_look_into_images(const struct symbols *symbols);
/* By index in the model's images. */
enum symbols_state symbols_state(const struct symbols *symbols, uint32_t image);
/* The file's name without its folders, "[anon]"-like names without brackets; a string id. 0: memory is out. */
uint32_t symbols_image_name(struct symbols *symbols, uint32_t image);
/* Build id of the file, when it was parsed. NULL: unknown. */
const uint8_t *symbols_build_id(const struct symbols *symbols, uint32_t image, size_t *len);
/* A kernel frame was met, and /proc/kallsyms did not tell its addresses. */
bool symbols_kernel_is_hidden(const struct symbols *symbols);

#endif
