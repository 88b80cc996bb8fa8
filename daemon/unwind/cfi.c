#include "unwind/cfi.h"

#include <stdatomic.h>
#include <stdlib.h>

#include <pthread.h>

#include "image/image_unpack.h"
#include "unwind/cfi_index.h"
#include "unwind/cfi_program.h"
#include "unwind/cfi_table.h"

/* A section that is searched by an index, which the first who needs it makes. */
struct indexed {
	struct cfi_section section;
	bool is_there;     /* the image has it; section changes while the index is made */
	uint8_t *unpacked; /* owned */
	_Atomic(struct cfi_index *) index; /* owned; NULL: not made yet */
};

struct cfi {
	struct image *image; /* owned reference */
	const struct unwind_machine *machine;
	struct cfi_table table;
	struct indexed frames, debug_frames;
	pthread_mutex_t making;
	atomic_uint references;
};

bool cfi_reader_init(struct cfi_reader *reader)
{
	reader->cache = image_cache_create();
	reader->scratch = malloc(sizeof(*reader->scratch));
	if (reader->cache == NULL || reader->scratch == NULL) {
		cfi_reader_finish(reader);
		return false;
	}
	return true;
}

void cfi_reader_finish(struct cfi_reader *reader)
{
	image_cache_destroy(reader->cache);
	free(reader->scratch);
	*reader = (struct cfi_reader){0};
}

static const struct unwind_machine *machine_of(enum image_machine machine)
{
	return machine == unwind_machine_x86_64.image    ? &unwind_machine_x86_64
		   : machine == unwind_machine_aarch64.image ? &unwind_machine_aarch64
													 : NULL;
}

/* Without section headers .eh_frame is where the header says, and ends somewhere in its segment. */
static void find_frames(struct cfi *cfi)
{
	struct image_part *part = &cfi->frames.section.part;
	uint64_t offset, left;

	if (part->bytes == 0 && cfi->table.frames != 0 &&
		image_offset(cfi->image, cfi->table.frames, &offset, &left)) {
		*part = (struct image_part){.offset = offset, .bytes = left, .address = cfi->table.frames};
	}
}

struct cfi *cfi_create(struct image *image, struct cfi_reader *reader)
{
	const struct image_facts *facts = image_facts(image);
	struct cfi *cfi = calloc(1, sizeof(*cfi));

	if (cfi == NULL) {
		return NULL;
	}
	cfi->image = image_hold(image);
	cfi->machine = machine_of(facts->machine);
	cfi->frames.section = (struct cfi_section){.image = image, .part = facts->frames};
	cfi->debug_frames.section =
		(struct cfi_section){.image = image, .part = facts->debug_frames, .is_debug = true};
	pthread_mutex_init(&cfi->making, NULL);
	atomic_init(&cfi->references, 1);
	cfi_table_open(&cfi->table, image, reader->cache);
	find_frames(cfi);
	cfi->frames.is_there = cfi->frames.section.part.bytes > 0;
	cfi->debug_frames.is_there = facts->debug_frames.bytes > 0;
	return cfi;
}

struct cfi *cfi_hold(struct cfi *cfi)
{
	atomic_fetch_add_explicit(&cfi->references, 1, memory_order_relaxed);
	return cfi;
}

void cfi_release(struct cfi *cfi)
{
	if (cfi == NULL || atomic_fetch_sub_explicit(&cfi->references, 1, memory_order_acq_rel) != 1) {
		return;
	}
	cfi_index_destroy(atomic_load(&cfi->frames.index));
	cfi_index_destroy(atomic_load(&cfi->debug_frames.index));
	free(cfi->debug_frames.unpacked);
	pthread_mutex_destroy(&cfi->making);
	image_release(cfi->image);
	free(cfi);
}

const struct image *cfi_image(const struct cfi *cfi)
{
	return cfi->image;
}

const struct unwind_machine *cfi_machine(const struct cfi *cfi)
{
	return cfi->machine;
}

/* A part that cannot be unpacked is one without entries. */
static void unpack(struct indexed *indexed)
{
	struct cfi_section *section = &indexed->section;
	size_t len = 0;

	if (section->part.packing == IMAGE_PACKING_NONE) {
		return;
	}
	indexed->unpacked = image_unpack(section->image, &section->part, &len);
	section->unpacked = indexed->unpacked;
	section->part.bytes = len;
}

/* The index, made when nobody did yet. NULL: memory is out now. */
static const struct cfi_index *get_index(
	struct cfi *cfi, struct indexed *indexed, struct cfi_reader *reader)
{
	struct cfi_index *index = atomic_load_explicit(&indexed->index, memory_order_acquire);

	if (index != NULL) {
		return index;
	}
	pthread_mutex_lock(&cfi->making);
	index = atomic_load_explicit(&indexed->index, memory_order_relaxed);
	if (index == NULL) {
		if (indexed->unpacked == NULL) {
			unpack(indexed);
		}
		index = cfi_index_create(&indexed->section, reader->cache, reader->scratch);
		atomic_store_explicit(&indexed->index, index, memory_order_release);
	}
	pthread_mutex_unlock(&cfi->making);
	return index;
}

static enum cfi_result covers(enum cfi_result result, const struct cfi_entry *entry, uint64_t pc)
{
	if (result == CFI_FOUND && (pc < entry->begin || pc >= entry->end)) {
		return CFI_NONE;
	}
	return result;
}

static enum cfi_result find_in_table(
	struct cfi *cfi, struct cfi_reader *reader, uint64_t pc, struct cfi_entry *entry)
{
	const struct cfi_section *section = &cfi->frames.section;
	uint64_t fde = 0, begin = 0;
	enum cfi_result result =
		cfi_table_find(&cfi->table, cfi->image, reader->cache, pc, &fde, &begin);

	if (result != CFI_FOUND) {
		return result;
	}
	result =
		cfi_entry_read(section, reader->cache, fde - section->part.address, reader->scratch, entry);
	/* Who disagrees with its table is not to be trusted with the next frame. */
	return result == CFI_FOUND && entry->begin != begin ? CFI_BROKEN : covers(result, entry, pc);
}

static enum cfi_result find_in_index(struct cfi *cfi, struct indexed *indexed,
	struct cfi_reader *reader, uint64_t pc, struct cfi_entry *entry)
{
	uint64_t at;

	if (!indexed->is_there) {
		return CFI_NONE;
	}
	const struct cfi_index *index = get_index(cfi, indexed, reader);

	if (index == NULL) {
		return CFI_UNKNOWN;
	}
	if (!cfi_index_find(index, pc, &at)) {
		return CFI_NONE;
	}
	return covers(
		cfi_entry_read(&indexed->section, reader->cache, at, reader->scratch, entry), entry, pc);
}

enum cfi_result cfi_entry_at(
	struct cfi *cfi, struct cfi_reader *reader, uint64_t pc, struct cfi_entry *entry)
{
	enum cfi_result result = cfi->table.is_usable
								 ? find_in_table(cfi, reader, pc, entry)
								 : find_in_index(cfi, &cfi->frames, reader, pc, entry);

	return result == CFI_NONE ? find_in_index(cfi, &cfi->debug_frames, reader, pc, entry) : result;
}

enum cfi_result cfi_row_at(struct cfi *cfi, struct cfi_reader *reader, uint64_t pc,
	struct cfi_row *row, struct cfi_range *range)
{
	struct cfi_entry entry;

	if (cfi->machine == NULL) {
		return CFI_UNKNOWN;
	}
	enum cfi_result result = cfi_entry_at(cfi, reader, pc, &entry);

	return result == CFI_FOUND ? cfi_program_run(cfi->machine, &entry, pc, row, range) : result;
}
