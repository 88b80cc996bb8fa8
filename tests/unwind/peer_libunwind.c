/* nongnu libunwind: unw_create_addr_space(3), with accessors over the copy and the images' files. */
#include "unwind/peers.h"

#include <stdlib.h>
#include <string.h>

#include <libunwind.h>

/* Exported by libunwind-x86_64 for callers like us; its header is not installed. */
int _Ux86_64_dwarf_search_unwind_table(unw_addr_space_t space, unw_word_t ip, unw_dyn_info_t *info,
	unw_proc_info_t *found, int need_unwind_info, void *arg);

struct peer {
	unw_addr_space_t space;
	const struct replay_process *process;
	const struct corpus_event *event;
	struct image_cache *cache;
};

static const struct replay_mapping *find_mapping(const struct peer *peer, uint64_t address)
{
	for (size_t i = 0; i < peer->process->mappings.len; i++) {
		const struct replay_mapping *mapping = &peer->process->mappings.items[i];

		if (mapping->image != NULL && address >= mapping->start && address < mapping->end) {
			return mapping;
		}
	}
	return NULL;
}

/* A word of an image: its tables, wherever they are mapped. */
static bool read_image(const struct peer *peer, uint64_t address, uint64_t *value)
{
	for (size_t i = 0; i < peer->process->mappings.len; i++) {
		const struct replay_mapping *mapping = &peer->process->mappings.items[i];
		uint64_t offset, left;

		if (mapping->image == NULL) {
			continue;
		}
		const struct image *image = cfi_image(mapping->image->cfi);

		if (image_offset(image, address - mapping->bias, &offset, &left)) {
			*value = 0;
			return image_cache_read(peer->cache, image, offset, value, left < 8 ? (size_t)left : 8);
		}
	}
	return false;
}

static int access_memory(
	unw_addr_space_t space, unw_word_t address, unw_word_t *value, int is_write, void *arg)
{
	const struct peer *peer = arg;
	const struct corpus_event *event = peer->event;
	const struct unwind_memory memory = {event->stack, event->registers[7], event->stack_bytes};

	(void)space;
	if (is_write) {
		return -UNW_EINVAL;
	}
	return unwind_memory_read(&memory, address, value) || read_image(peer, address, value)
			   ? 0
			   : -UNW_EINVAL;
}

static int access_register(
	unw_addr_space_t space, unw_regnum_t number, unw_word_t *value, int is_write, void *arg)
{
	const struct peer *peer = arg;

	(void)space;
	if (is_write || number < 0 || number >= CORPUS_REGISTERS) {
		return -UNW_EBADREG;
	}
	*value = peer->event->registers[number]; /* libunwind's numbers are DWARF's */
	return 0;
}

static int find_information(
	unw_addr_space_t space, unw_word_t ip, unw_proc_info_t *found, int need_unwind_info, void *arg)
{
	const struct peer *peer = arg;
	const struct replay_mapping *mapping = find_mapping(peer, ip);
	uint32_t count;

	if (mapping == NULL) {
		return -UNW_ENOINFO;
	}
	const struct image *image = cfi_image(mapping->image->cfi);
	const struct image_part *header = &image_facts(image)->frame_header;

	/* version, encodings, a pointer of four bytes, and the count: as every linker writes it */
	if (header->bytes < 12 ||
		!image_cache_read(peer->cache, image, header->offset + 8, &count, sizeof(count))) {
		return -UNW_ENOINFO;
	}
	unw_dyn_info_t info = {
		.start_ip = mapping->start,
		.end_ip = mapping->end,
		.format = UNW_INFO_FORMAT_REMOTE_TABLE,
		.u.rti = {.segbase = header->address + mapping->bias,
			.table_data = header->address + mapping->bias + 12,
			.table_len = count * 8ul / sizeof(unw_word_t)},
	};

	return _Ux86_64_dwarf_search_unwind_table(space, ip, &info, found, need_unwind_info, arg);
}

static void put_information(unw_addr_space_t space, unw_proc_info_t *info, void *arg)
{
	(void)space, (void)info, (void)arg;
}

static int no_list(unw_addr_space_t space, unw_word_t *address, void *arg)
{
	(void)space, (void)address, (void)arg;
	return -UNW_ENOINFO;
}

static int no_float(
	unw_addr_space_t space, unw_regnum_t number, unw_fpreg_t *value, int is_write, void *arg)
{
	(void)space, (void)number, (void)value, (void)is_write, (void)arg;
	return -UNW_EINVAL;
}

static int no_resume(unw_addr_space_t space, unw_cursor_t *cursor, void *arg)
{
	(void)space, (void)cursor, (void)arg;
	return -UNW_EINVAL;
}

static int no_name(unw_addr_space_t space, unw_word_t address, char *name, size_t len,
	unw_word_t *offset, void *arg)
{
	(void)space, (void)address, (void)name, (void)len, (void)offset, (void)arg;
	return -UNW_EINVAL;
}

static unw_accessors_t accessors = {
	.find_proc_info = find_information,
	.put_unwind_info = put_information,
	.get_dyn_info_list_addr = no_list,
	.access_mem = access_memory,
	.access_reg = access_register,
	.access_fpreg = no_float,
	.resume = no_resume,
	.get_proc_name = no_name,
};

static struct peer *create(void)
{
	struct peer *peer = calloc(1, sizeof(*peer));

	peer->space = unw_create_addr_space(&accessors, 0);
	peer->cache = image_cache_create();
	return peer;
}

static void destroy(struct peer *peer)
{
	if (peer != NULL) {
		unw_destroy_addr_space(peer->space);
		image_cache_destroy(peer->cache);
		free(peer);
	}
}

static void walk(struct peer **peer, const struct replay_process *process,
	const struct corpus_event *event, struct peer_stack *stack)
{
	unw_cursor_t cursor;
	unw_word_t ip;

	if (*peer == NULL) {
		*peer = create();
	}
	(*peer)->process = process;
	(*peer)->event = event;
	stack->count = 0;
	if (unw_init_remote(&cursor, (*peer)->space, *peer) != 0) {
		return;
	}
	do {
		unw_get_reg(&cursor, UNW_REG_IP, &ip);
		if (ip == 0) {
			break;
		}
		stack->addresses[stack->count++] = ip;
	} while (stack->count < PEER_FRAMES && unw_step(&cursor) > 0);
}

const struct peer_ops peer_libunwind = {
	.name = "libunwind", .needs_table = true, .walk = walk, .destroy = destroy};
