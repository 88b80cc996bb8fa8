/*
 * Call-frame information that contradicts itself, and walks by it: the image's headers are made here, the sections are the input.
 *
 *   flags  lengths of .eh_frame_hdr, .eh_frame, .debug_frame (2 bytes each)  registers (5 × 8 bytes)  the sections  the stack
 *
 * Every walk ends, and a second one, whose rules are in the cache, is equal to the first; so is one in a copy of the space.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <elf.h>

#include "unwind/cfi_expression.h"
#include "unwind/unwind.h"

#define CODE        0x10000
#define CODE_BYTES  0x1000
#define BASE        0x7f0000000000
#define STACK       0x7ffc00000000
#define STACK_BYTES 1024
#define FRAMES      64
#define HEAD_BYTES  (1 + 3 * 2 + 5 * 8)

enum { FLAG_AARCH64 = 1, FLAG_NO_SECTIONS = 2, FLAG_EXPRESSION = 4 };

/* Sections are where the ELF header says: each at an address that is its offset. */
enum {
	HEADER_AT = 0x1000,
	FRAMES_AT = 0x3000,
	DEBUG_AT = 0x8000,
	IMAGE_BYTES = 0x11000,
	NAMES_AT = 0x800,
	SECTIONS_AT = 0x900
};

static const char names[] = "\0.s\0.eh_frame_hdr\0.eh_frame\0.debug_frame";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	uint8_t flags;
	uint16_t lengths[3];
	uint64_t registers[5]; /* pc, sp, fp, lr, base */
	const uint8_t *rest;
	size_t len;
};

static bool read_input(struct input *input, const uint8_t *data, size_t size)
{
	if (size < HEAD_BYTES) {
		return false;
	}
	input->flags = data[0];
	memcpy(input->lengths, data + 1, sizeof(input->lengths));
	memcpy(input->registers, data + 7, sizeof(input->registers));
	input->rest = data + HEAD_BYTES;
	input->len = size - HEAD_BYTES;
	return true;
}

static void write_headers(const struct input *input, uint8_t *image, const size_t *lengths)
{
	static const size_t places[] = {HEADER_AT, FRAMES_AT, DEBUG_AT};
	static const uint32_t name_at[] = {4, 18, 28};
	const Elf64_Ehdr header = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_machine = input->flags & FLAG_AARCH64 ? EM_AARCH64 : EM_X86_64,
		.e_phoff = sizeof(header),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 3,
		.e_shoff = input->flags & FLAG_NO_SECTIONS ? 0 : SECTIONS_AT,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 5,
		.e_shstrndx = 1,
	};
	const Elf64_Phdr segments[] = {
		{.p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = CODE},
		{.p_type = PT_LOAD,
			.p_flags = PF_R | PF_X,
			.p_offset = CODE,
			.p_vaddr = CODE,
			.p_filesz = CODE_BYTES},
		{.p_type = PT_GNU_EH_FRAME,
			.p_offset = HEADER_AT,
			.p_vaddr = HEADER_AT,
			.p_filesz = lengths[0]},
	};
	Elf64_Shdr sections[5] = {{0},
		{.sh_name = 1, .sh_type = SHT_STRTAB, .sh_offset = NAMES_AT, .sh_size = sizeof(names)}};

	for (size_t i = 0; i < 3; i++) {
		sections[2 + i] = (Elf64_Shdr){.sh_name = name_at[i],
			.sh_type = SHT_PROGBITS,
			.sh_offset = places[i],
			.sh_addr = i == 2 ? 0 : places[i],
			.sh_size = lengths[i]};
	}
	memcpy(image, &header, sizeof(header));
	memcpy(image + sizeof(header), segments, sizeof(segments));
	memcpy(image + NAMES_AT, names, sizeof(names));
	memcpy(image + SECTIONS_AT, sections, sizeof(sections));
}

/* Fills in the sections; what is left is the stack. */
static void make_image(struct input *input, uint8_t *image)
{
	static const size_t places[] = {HEADER_AT, FRAMES_AT, DEBUG_AT},
						rooms[] = {0x2000, 0x5000, 0x8000};
	size_t lengths[3];

	memset(image, 0, IMAGE_BYTES);
	for (size_t i = 0; i < 3; i++) {
		lengths[i] = input->lengths[i] < rooms[i] ? input->lengths[i] : rooms[i];
		lengths[i] = lengths[i] < input->len ? lengths[i] : input->len;
		memcpy(image + places[i], input->rest, lengths[i]);
		input->rest += lengths[i];
		input->len -= lengths[i];
	}
	write_headers(input, image, lengths);
}

struct walked {
	uint64_t addresses[FRAMES];
	uint8_t kinds[FRAMES];
	uint64_t sps[FRAMES];
	struct unwind_stack stack;
};

static void walk(struct unwinder *unwinder, const struct unwind_space *space,
	const struct input *input, struct walked *walked)
{
	const size_t len = input->len < STACK_BYTES ? input->len : STACK_BYTES;
	const struct unwind_sample sample = {
		.regs = {.pc = BASE + CODE + input->registers[0] % CODE_BYTES,
			.sp = STACK + input->registers[1] % 64,
			.fp = input->registers[2],
			.lr = input->registers[3],
			.base = input->registers[4]},
		.others = input->registers,
		.others_known = 0x1f,
		.memory = {input->rest, STACK, len},
	};

	walked->stack = (struct unwind_stack){
		.addresses = walked->addresses,
		.kinds = walked->kinds,
		.capacity = FRAMES,
		.sps = walked->sps,
	};
	unwind_walk(unwinder, space, &sample, &walked->stack);
}

static void compare(const struct walked *first, const struct walked *second)
{
	size_t count = first->stack.count;

	if (count == 0 || count > FRAMES || count != second->stack.count ||
		first->stack.end != second->stack.end ||
		memcmp(first->addresses, second->addresses, count * sizeof(uint64_t)) != 0 ||
		memcmp(first->kinds, second->kinds, count) != 0 ||
		memcmp(first->sps, second->sps, count * sizeof(uint64_t)) != 0) {
		fprintf(stderr, "two walks of one stack: %zu frames, end %d, then %zu, %d\n", count,
			first->stack.end, second->stack.count, second->stack.end);
		abort();
	}
}

/* One for all inputs: what it knows of one must not be found for the next. */
static struct unwinder *get_unwinder(bool is_aarch64)
{
	static struct unwinder *unwinders[2];

	if (unwinders[is_aarch64] == NULL) {
		unwinders[is_aarch64] =
			unwinder_create(is_aarch64 ? &unwind_machine_aarch64 : &unwind_machine_x86_64);
	}
	return unwinders[is_aarch64];
}

static void walk_twice(struct input *input, const uint8_t *bytes)
{
	static struct walked first, second;
	struct unwinder *unwinder = get_unwinder(input->flags & FLAG_AARCH64);
	struct error err = {0};
	struct image *image = image_open_memory(bytes, IMAGE_BYTES, &err);
	struct cfi *cfi = cfi_create(image, unwinder_reader(unwinder));
	struct unwind_space space, copy;
	const struct unwind_mapping code = {.start = BASE + CODE,
		.length = CODE_BYTES,
		.file_offset = CODE,
		.is_executable = true,
		.cfi = cfi};

	unwind_space_init(&space, unwinder_states(unwinder));
	unwind_space_put(&space, &code);
	walk(unwinder, &space, input, &first);
	walk(unwinder, &space, input, &second);
	compare(&first, &second);
	unwind_space_init(&copy, unwinder_states(unwinder));
	unwind_space_copy(&copy, &space);
	walk(unwinder, &copy, input, &second);
	compare(&first, &second);
	unwind_space_finish(&copy);
	unwind_space_finish(&space);
	cfi_release(cfi);
	image_release(image);
}

/* The bytes behind the registers as one expression. */
static void evaluate(const struct input *input)
{
	const struct unwind_memory memory = {input->rest, STACK, input->len};
	const struct unwind_frame frame = {.machine = &unwind_machine_x86_64,
		.regs = {.pc = input->registers[0], .sp = STACK, .fp = STACK + 8},
		.is_fp_known = true,
		.memory = &memory};
	const struct cfi_expression expression = {input->rest, input->len};
	uint64_t value, address;

	cfi_expression_run(
		&expression, &frame, input->flags & 8 ? &input->registers[1] : NULL, &value, &address);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t image[IMAGE_BYTES];
	struct input input;

	if (!read_input(&input, data, size)) {
		return 0;
	}
	if (input.flags & FLAG_EXPRESSION) {
		evaluate(&input);
		return 0;
	}
	make_image(&input, image);
	walk_twice(&input, image);
	return 0;
}
