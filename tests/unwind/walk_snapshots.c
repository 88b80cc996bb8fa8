/*
 * Walks the snapshots that a static program of aarch64 took of itself (snapshots.h), on any machine, and compares each with the program's own book
 * and with libdw.
 *
 *   unwind-snapshots PROGRAM FILE
 *
 * Prints one line of JSON.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <elfutils/libdwfl.h>
#include <fcntl.h>

#include "unwind/booked.h"
#include "unwind/snapshots.h"
#include "unwind/unwind.h"

#define FRAMES      1024
#define STACK_BYTES (1 << 20)
#define REGISTERS   32 /* x0 to x30, sp */

struct walker {
	struct unwinder *unwinder;
	struct unwind_space space;
	struct booked booked;
	Dwfl *dwfl;
	/* the present snapshot */
	struct snapshot snapshot;
	uint64_t registers[REGISTERS];
	uint8_t stack[STACK_BYTES];
	uint64_t theirs[FRAMES];
	size_t their_count;
	size_t identical, stub, differ, ends[UNWIND_LOOP + 1], books[BOOKED_WRONG + 1];
};

static int find_no_debuginfo(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base,
	const char *file, const char *link, GElf_Word crc, char **found)
{
	(void)module, (void)user, (void)name, (void)base, (void)file, (void)link, (void)crc;
	(void)found;
	return -1;
}

static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = find_no_debuginfo,
	.section_address = dwfl_offline_section_address};

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread)
{
	(void)dwfl;
	if (*thread != NULL) {
		return 0;
	}
	*thread = arg;
	return 1;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *result, void *arg)
{
	const struct walker *walker = arg;
	const struct unwind_memory memory = {
		walker->stack, walker->snapshot.sp, (size_t)walker->snapshot.stack_bytes};

	(void)dwfl;
	return unwind_memory_read(&memory, address, result);
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	const struct walker *walker = arg;

	dwfl_thread_state_register_pc(thread, walker->snapshot.pc);
	return dwfl_thread_state_registers(thread, 0, REGISTERS, walker->registers);
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = next_thread, .memory_read = read_memory, .set_initial_registers = set_registers};

static int take_frame(Dwfl_Frame *frame, void *arg)
{
	struct walker *walker = arg;
	Dwarf_Addr pc;

	if (walker->their_count == FRAMES || !dwfl_frame_pc(frame, &pc, NULL)) {
		return DWARF_CB_ABORT;
	}
	walker->theirs[walker->their_count++] = pc;
	return DWARF_CB_OK;
}

static void open_dwfl(struct walker *walker, const char *program)
{
	walker->dwfl = dwfl_begin(&callbacks);
	dwfl_report_begin(walker->dwfl);
	dwfl_report_elf(walker->dwfl, program, program, open(program, O_RDONLY | O_CLOEXEC), 0, true);
	dwfl_report_end(walker->dwfl, NULL, NULL);
	dwfl_attach_state(walker->dwfl, NULL, 1, &thread_callbacks, walker);
}

/* The program is not relocated: each segment is where it says. */
static void map_program(struct walker *walker, const char *program)
{
	struct error err = {0};
	struct image *image = image_open(open(program, O_RDONLY | O_CLOEXEC), &err);

	if (image == NULL) {
		fprintf(stderr, "%s: %s\n", program, err.message);
		exit(2);
	}
	struct cfi *cfi = cfi_create(image, unwinder_reader(walker->unwinder));

	for (size_t i = 0; i < image_facts(image)->segments.len; i++) {
		const struct image_segment *segment = &image_facts(image)->segments.items[i];
		const struct unwind_mapping mapping = {.start = segment->address,
			.length = segment->bytes,
			.file_offset = segment->offset,
			.is_executable = segment->is_executable,
			.cfi = cfi};

		unwind_space_put(&walker->space, &mapping);
	}
	cfi_release(cfi);
	image_release(image);
}

static bool read_snapshot(struct walker *walker, FILE *file)
{
	struct snapshot *snapshot = &walker->snapshot;

	if (fread(snapshot, sizeof(*snapshot), 1, file) != 1 || snapshot->mark != SNAPSHOT_MARK ||
		snapshot->stack_bytes > STACK_BYTES) {
		return false;
	}
	memcpy(walker->registers, snapshot->registers, sizeof(snapshot->registers));
	walker->registers[31] = snapshot->sp;
	return fread(walker->stack, 1, (size_t)snapshot->stack_bytes, file) == snapshot->stack_bytes;
}

/*
 * libdw leaves code without call-frame information by lr and by the frame record, which in a linkage table's entry is the caller's: it gives one
 * frame twice or leaves one out. There lr is the caller, and nothing else was touched.
 */
static bool is_stub(struct walker *walker, const struct unwind_stack *ours)
{
	const struct unwind_range *range = unwind_space_find(&walker->space, walker->snapshot.pc);
	struct cfi_row row;

	return range != NULL && ours->count > 1 &&
		   ours->addresses[1] == walker->snapshot.registers[30] &&
		   cfi_row_at(range->cfi, unwinder_reader(walker->unwinder), walker->snapshot.pc, &row,
			   NULL) == CFI_NONE;
}

static void check(struct walker *walker, const struct unwind_stack *ours)
{
	const struct corpus_event event = {
		.stack = walker->stack, .stack_bytes = (size_t)walker->snapshot.stack_bytes};
	struct book book;

	walker->ends[ours->end]++;
	walker->books[booked_check(&walker->booked, &event, ours, &book)]++;
	walker->their_count = 0;
	dwfl_getthread_frames(walker->dwfl, 1, take_frame, walker);
	if (walker->their_count == ours->count &&
		memcmp(walker->theirs, ours->addresses, ours->count * sizeof(uint64_t)) == 0) {
		walker->identical++;
	} else if (is_stub(walker, ours)) {
		walker->stub++;
	} else {
		walker->differ++;
	}
}

static void walk_snapshot(struct walker *walker)
{
	static uint64_t addresses[FRAMES];
	static uint8_t kinds[FRAMES];
	struct unwind_stack stack = {.addresses = addresses, .kinds = kinds, .capacity = FRAMES};
	const uint64_t *x = walker->snapshot.registers;
	const struct unwind_sample sample = {
		.regs = {.pc = walker->snapshot.pc,
			.sp = walker->snapshot.sp,
			.fp = x[29],
			.lr = x[30],
			.base = x[19]},
		.others = walker->registers,
		.others_known = UINT32_MAX,
		.memory = {walker->stack, walker->snapshot.sp, (size_t)walker->snapshot.stack_bytes},
	};

	unwind_walk(walker->unwinder, &walker->space, &sample, &stack);
	check(walker, &stack);
}

int main(int argc, char **argv)
{
	static struct walker walker;
	FILE *file = argc == 3 ? fopen(argv[2], "rb") : NULL;

	walker.unwinder = unwinder_create(&unwind_machine_aarch64);
	if (file == NULL || walker.unwinder == NULL) {
		fprintf(stderr, "usage: unwind-snapshots PROGRAM FILE\n");
		return 2;
	}
	unwind_space_init(&walker.space, unwinder_states(walker.unwinder));
	booked_init(&walker.booked, argv[1]);
	map_program(&walker, argv[1]);
	open_dwfl(&walker, argv[1]);
	while (read_snapshot(&walker, file)) {
		walk_snapshot(&walker);
	}
	printf("{\"stacks\": %zu, \"frames\": %zu, \"root\": %zu, \"cut\": %zu, \"no_rule\": %zu, "
		   "\"bad\": %zu, "
		   "\"no_book\": %zu, \"exact\": %zu, \"between\": %zu, \"wrong\": %zu, \"libdw\": %zu, "
		   "\"libdw_in_stubs\": %zu}\n",
		walker.identical + walker.stub + walker.differ,
		(size_t)unwinder_counters(walker.unwinder)->frames, walker.ends[UNWIND_ROOT],
		walker.ends[UNWIND_CUT], walker.ends[UNWIND_NO_RULE], walker.ends[UNWIND_BAD],
		walker.books[BOOKED_NONE], walker.books[BOOKED_EXACT], walker.books[BOOKED_BETWEEN],
		walker.books[BOOKED_WRONG], walker.identical, walker.stub);
	dwfl_end(walker.dwfl);
	unwind_space_finish(&walker.space);
	unwinder_destroy(walker.unwinder);
	booked_finish(&walker.booked);
	fclose(file);
	return 0;
}
