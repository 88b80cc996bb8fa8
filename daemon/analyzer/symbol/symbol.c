#include "analyzer/symbol/naming.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyzer/model/input.h"
#include "analyzer/symbol/demangle.h"
#include "protocol/limits.h"

#define KERNEL_SYMBOLS_BYTES (256ull << 20)
#define PLACE_NAME_BYTES     512 /* of an image's name in "[image+0x…]" */

/* Where frames are in each image, so that only symbols at those places are kept. False: memory is out. */
static bool group_offsets(struct symbols *symbols)
{
	const struct model *model = symbols->model;
	size_t first = 0;

	symbols->offsets = calloc(model->frames.len + 1, sizeof(*symbols->offsets));
	if (symbols->offsets == NULL) {
		return false;
	}
	for (size_t i = 0; i < model->frames.len; i++) {
		if (model->frames.items[i].image != MODEL_NONE) {
			symbols->images[model->frames.items[i].image].count++;
		}
	}
	for (size_t i = 0; i < model->images.len; i++) {
		symbols->images[i].first = first;
		first += symbols->images[i].count;
		symbols->images[i].count = 0;
	}
	for (size_t i = 0; i < model->frames.len; i++) {
		const struct model_frame *frame = &model->frames.items[i];

		if (frame->image != MODEL_NONE) {
			struct image *image = &symbols->images[frame->image];

			symbols->offsets[image->first + image->count++] = frame->offset;
		}
	}
	return true;
}

struct symbols *symbols_create(
	const struct model *model, struct strings *strings, bool look_into_images)
{
	struct symbols *symbols = calloc(1, sizeof(*symbols));

	if (symbols == NULL) {
		return NULL;
	}
	symbols->model = model;
	symbols->strings = strings;
	symbols->look_into_images = look_into_images;
	symbols->kernel_fd = -1;
	symbols->name = malloc(LIMIT_NAME_BYTES);
	symbols->scratch = malloc(LIMIT_NAME_BYTES);
	symbols->images = calloc(model->images.len + 1, sizeof(*symbols->images));
	for (size_t i = 0; symbols->images != NULL && i < model->images.len; i++) {
		symbols->images[i].fd = -1;
	}
	if (symbols->name == NULL || symbols->scratch == NULL || symbols->images == NULL ||
		!group_offsets(symbols)) {
		symbols_destroy(symbols);
		return NULL;
	}
	return symbols;
}

static void close_fd(int *fd)
{
	if (*fd >= 0) {
		close(*fd);
	}
	*fd = -1;
}

void symbols_destroy(struct symbols *symbols)
{
	if (symbols == NULL) {
		return;
	}
	for (size_t i = 0; symbols->images != NULL && i < symbols->model->images.len; i++) {
		symtab_destroy(symbols->images[i].symtab);
		close_fd(&symbols->images[i].fd);
	}
	close_fd(&symbols->kernel_fd);
	kallsyms_destroy(symbols->kallsyms);
	kept_destroy(symbols->kept);
	map_finish(&symbols->places);
	map_finish(&symbols->kernel_places[0]);
	map_finish(&symbols->kernel_places[1]);
	map_finish(&symbols->functions);
	buffer_finish(&symbols->text);
	free(symbols->images);
	free(symbols->offsets);
	free(symbols->name);
	free(symbols->scratch);
	free(symbols);
}

void symbols_give_image(struct symbols *symbols, uint64_t journal_id, int fd)
{
	const struct model_image *known = model_image(symbols->model, journal_id);

	if (known == NULL || !known->is_met || !symbols->look_into_images) {
		close_fd(&fd);
		return;
	}
	struct image *image = &symbols->images[known - symbols->model->images.items];

	close_fd(&image->fd);
	image->fd = fd;
}

void symbols_give_kernel(struct symbols *symbols, int fd)
{
	close_fd(&symbols->kernel_fd);
	symbols->kernel_fd = fd;
}

void symbols_forget_vdso(struct symbols *symbols)
{
	symbols->is_vdso_another = true;
}

/* The symtab of an image that was given; NULL: none could be made. */
static struct symtab *open_image(
	const struct symbols *symbols, struct image *image, const struct model_image *known)
{
	struct error err = {0};
	struct image_source source = {.fd = image->fd};
	bool is_vdso = known->kind == JOURNAL_IMAGE_VDSO;

	if (is_vdso && (symbols->is_vdso_another || !image_source_vdso(&source, &err))) {
		return NULL;
	}
	if (source.fd >= 0 || source.memory != NULL) {
		image->fd = source.fd >= 0 ? -1 : image->fd;
		return symtab_create(source, symbols->offsets + image->first, image->count);
	}
	return NULL;
}

static bool is_changed(const struct symtab *symtab, const struct model_image *known)
{
	return known->build_id_bytes > 0 && symtab->elf.build_id_bytes > 0 &&
		   (known->build_id_bytes != symtab->elf.build_id_bytes ||
			   memcmp(known->build_id, symtab->elf.build_id, known->build_id_bytes) != 0);
}

static void parse_image(struct symbols *symbols, uint32_t index)
{
	static const enum symbols_state states[] = {
		[SYMTAB_NONE] = SYMBOLS_NONE,
		[SYMTAB_DYNSYM] = SYMBOLS_DYNSYM,
		[SYMTAB_SYMTAB] = SYMBOLS_SYMTAB,
	};
	const struct model_image *known = &symbols->model->images.items[index];
	struct image *image = &symbols->images[index];

	if (image->state != SYMBOLS_NOT_ASKED || !symbols->look_into_images) {
		return;
	}
	bool is_ours = known->kind == JOURNAL_IMAGE_VDSO && !symbols->is_vdso_another;
	image->state = is_ours ? SYMBOLS_NONE : image->fd < 0 ? SYMBOLS_NOT_OPENED : SYMBOLS_UNREADABLE;
	image->symtab = open_image(symbols, image, known);
	if (image->symtab == NULL) {
		return;
	}
	image->state = image->symtab->kind == SYMTAB_NONE && image->symtab->elf.is_broken
					   ? SYMBOLS_UNREADABLE
					   : states[image->symtab->kind];
	if (is_changed(image->symtab, known)) {
		symtab_destroy(image->symtab);
		image->symtab = NULL;
		image->state = SYMBOLS_CHANGED;
	}
}

static struct bytes_text file_name(struct bytes_text path)
{
	static const char deleted[] = " (deleted)";
	size_t suffix = sizeof(deleted) - 1;

	if (path.len > suffix && memcmp(path.data + path.len - suffix, deleted, suffix) == 0) {
		path.len -= suffix;
	}
	const char *slash = path.len > 0 ? memrchr(path.data, '/', path.len) : NULL;

	if (slash != NULL) {
		path.len -= (size_t)(slash + 1 - path.data);
		path.data = slash + 1;
	}
	if (path.len > 2 && path.data[0] == '[' && path.data[path.len - 1] == ']') {
		path.data++;
		path.len -= 2;
	}
	return path;
}

#define MEMFD                                                                                      \
	"memfd:" /* memory that its maker gave a name (memfd_create(2)): a run time's, for code that it makes */
#define MEMFD_LEN (sizeof(MEMFD) - 1)

uint32_t symbols_image_name(struct symbols *symbols, uint32_t image)
{
	const struct model_image *known = &symbols->model->images.items[image];
	struct bytes_text name = file_name(strings_text(symbols->strings, known->path));

	if (symbols->images[image].name != 0) {
		return symbols->images[image].name;
	}
	bool has_name = name.len > MEMFD_LEN && memcmp(name.data, MEMFD, MEMFD_LEN) == 0;
	if (name.len == 0 || (known->kind == JOURNAL_IMAGE_ANONYMOUS && !has_name)) {
		name = bytes_text_of("anon");
	}
	name.len = name.len < PLACE_NAME_BYTES ? name.len : PLACE_NAME_BYTES;
	symbols->images[image].name = strings_intern(symbols->strings, name.data, name.len, NULL);
	return symbols->images[image].name;
}

static uint32_t place(struct symbols *symbols, struct bytes_text where, uint64_t offset)
{
	char number[32];

	snprintf(number, sizeof(number), "+0x%" PRIx64 "]", offset);
	symbols->text.len = 0;
	if (!buffer_byte(&symbols->text, '[') ||
		!buffer_append(&symbols->text, where.data, where.len) ||
		!buffer_text(&symbols->text, number)) {
		return 0;
	}
	return strings_intern(
		symbols->strings, (const char *)symbols->text.data, symbols->text.len, NULL);
}

/* The function's name, made once: string id; 0: it has none, or memory is out. */
static uint32_t function(struct symbols *symbols, const struct source_ops *ops, void *self,
	const struct table *table, const struct table_range *range, uint32_t image)
{
	uint64_t key = (uint64_t)image << 32 | range->first;
	const uint64_t *known = map_get(&symbols->functions, key);

	if (known != NULL) {
		return (uint32_t)*known;
	}
	size_t len = source_best_name(
		ops, self, table, range, symbols->name, symbols->scratch, LIMIT_NAME_BYTES);
	uint32_t id = 0;

	symbols->text.len = 0;
	if (len > 0 && demangle(symbols->name, len, &symbols->text) && symbols->text.len > 0) {
		id = strings_intern(
			symbols->strings, (const char *)symbols->text.data, symbols->text.len, NULL);
	}
	return map_put(&symbols->functions, key, id) ? id : 0;
}

static void name_by_symtab(struct symbols *symbols, const struct model_frame *frame,
	uint64_t address, struct symbol *symbol)
{
	struct symtab *symtab = symbols->images[frame->image].symtab;
	const struct table_range *range = table_find(&symtab->table, address);

	if (range != NULL) {
		symbol->name =
			function(symbols, &symtab_source, symtab, &symtab->table, range, frame->image);
		symbol->is_named = symbol->name != 0;
	}
}

static bool name_native(
	struct symbols *symbols, const struct model_frame *frame, struct symbol *symbol)
{
	const struct symtab *symtab = symbols->images[frame->image].symtab;
	uint64_t address = frame->offset;

	if (symtab != NULL && elf_address(&symtab->elf, frame->offset, &address)) {
		name_by_symtab(symbols, frame, address, symbol);
	}
	keeping_recall(symbols->images[frame->image].kept, frame->offset, frame->is_return, symbol);
	if (symbol->name == 0) {
		symbol->name = place(
			symbols, strings_text(symbols->strings, symbol->image), address + frame->is_return);
	}
	return symbol->name != 0;
}

static bool find_native(
	struct symbols *symbols, const struct model_frame *frame, struct symbol *symbol)
{
	uint64_t key = PLACE_KEY(frame->image, frame->offset, frame->is_return);
	bool fits = frame->offset >> PLACE_OFFSET_BITS == 0;
	const uint64_t *known = fits ? map_get(&symbols->places, key) : NULL;

	symbol->image = symbols_image_name(symbols, frame->image);
	if (symbol->image == 0) {
		return false;
	}
	if (known != NULL) {
		symbol->name = (uint32_t)(*known >> 1);
		symbol->is_named = *known & 1;
		return true;
	}
	parse_image(symbols, frame->image);
	return name_native(symbols, frame, symbol) &&
		   (!fits || map_put(&symbols->places, key, PLACE_VALUE(symbol)));
}

/* Making the text of /proc/kallsyms takes the kernel tens of milliseconds: only when it is needed. */
static void ask_kernel(struct symbols *symbols)
{
	struct buffer text = {0};

	if (symbols->kernel_was_asked) {
		return;
	}
	symbols->kernel_was_asked = true;
	if (symbols->kernel_fd >= 0 &&
		input_read(symbols->kernel_fd, KERNEL_SYMBOLS_BYTES, "kernel symbols", &text, NULL)) {
		symbols->kallsyms = kallsyms_create(&text);
	}
	buffer_finish(&text);
	close_fd(&symbols->kernel_fd);
}

static void name_kernel(
	struct symbols *symbols, const struct model_frame *frame, struct symbol *symbol)
{
	ask_kernel(symbols);
	struct kallsyms *kallsyms = symbols->kallsyms;
	const struct table_range *range =
		kallsyms == NULL ? NULL : table_find(&kallsyms->table, frame->address - frame->is_return);

	if (range != NULL) {
		symbol->name =
			function(symbols, &kallsyms_source, kallsyms, &kallsyms->table, range, MODEL_NONE);
		symbol->is_named = symbol->name != 0;
	}
	keeping_recall(symbols->kept_kernel, frame->address, frame->is_return, symbol);
	if (symbol->name == 0) {
		symbol->name = place(symbols, bytes_text_of("kernel"), frame->address);
	}
}

static bool find_kernel(
	struct symbols *symbols, const struct model_frame *frame, struct symbol *symbol)
{
	struct map *places = &symbols->kernel_places[frame->is_return];
	const uint64_t *known = map_get(places, frame->address);

	symbol->image = strings_intern(symbols->strings, "kernel", 6, NULL);
	if (symbol->image != 0 && known != NULL) {
		symbol->name = (uint32_t)(*known >> 1);
		symbol->is_named = *known & 1;
		return true;
	}
	name_kernel(symbols, frame, symbol);
	return symbol->image != 0 && symbol->name != 0 &&
		   map_put(places, frame->address, PLACE_VALUE(symbol));
}

bool symbols_find(struct symbols *symbols, const struct model_frame *frame, struct symbol *symbol)
{
	static const char unknown[] = "[unknown]";

	*symbol = (struct symbol){0};
	if (frame->kind == JOURNAL_FRAME_KERNEL) {
		return find_kernel(symbols, frame, symbol);
	}
	if (frame->kind == JOURNAL_FRAME_NATIVE && frame->image != MODEL_NONE) {
		return find_native(symbols, frame, symbol);
	}
	symbol->name = frame->name;
	symbol->is_named = frame->name != 0;
	if (symbol->name == 0) {
		symbol->name = strings_intern(symbols->strings, unknown, sizeof(unknown) - 1, NULL);
	}
	return symbol->name != 0;
}

static bool has_names(uint64_t state)
{
	return state == SYMBOLS_DYNSYM || state == SYMBOLS_SYMTAB;
}

bool symbols_look_into_images(const struct symbols *symbols)
{
	return symbols->look_into_images;
}

enum symbols_state symbols_state(const struct symbols *symbols, uint32_t index)
{
	const struct image *image = &symbols->images[index];

	if (image->kept != NULL && has_names(image->kept->state) && !has_names(image->state)) {
		return (enum symbols_state)image->kept->state;
	}
	return image->state;
}

const uint8_t *symbols_build_id(const struct symbols *symbols, uint32_t index, size_t *len)
{
	const struct image *image = &symbols->images[index];

	if (image->symtab != NULL && image->symtab->elf.build_id_bytes > 0) {
		*len = image->symtab->elf.build_id_bytes;
		return image->symtab->elf.build_id;
	}
	if (image->kept != NULL && image->kept->file_build_id_bytes > 0) {
		*len = image->kept->file_build_id_bytes;
		return image->kept->file_build_id;
	}
	return NULL;
}

bool symbols_kernel_is_hidden(const struct symbols *symbols)
{
	return symbols->kernel_was_asked && (symbols->kallsyms == NULL || symbols->kallsyms->is_hidden);
}
