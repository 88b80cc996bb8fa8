/* elfutils' libdwfl: libdwfl.h is its documentation. */
#include "unwind/peers.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

struct peer {
	Dwfl *dwfl;
	const struct replay_process *process;
	uint64_t changes;
	const struct corpus_event *event;
	struct peer_stack *stack;
};

static int find_no_debuginfo(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base,
	const char *file, const char *link, GElf_Word crc, char **found)
{
	(void)module, (void)user, (void)name, (void)base, (void)file, (void)link, (void)crc;
	(void)found;
	return -1;
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = find_no_debuginfo,
	.section_address = dwfl_offline_section_address,
};

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
	const struct corpus_event *event = ((const struct peer *)arg)->event;
	const struct unwind_memory memory = {event->stack, event->registers[7], event->stack_bytes};

	(void)dwfl;
	return unwind_memory_read(&memory, address, result);
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	const struct corpus_event *event = ((const struct peer *)arg)->event;

	return dwfl_thread_state_registers(thread, 0, CORPUS_REGISTERS, event->registers);
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = next_thread,
	.memory_read = read_memory,
	.set_initial_registers = set_registers,
};

static int open_vdso(void)
{
	const void *memory = (const void *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
	int fd = memfd_create("vdso", MFD_CLOEXEC);

	if (memory == NULL || write(fd, memory, 8192) != 8192) {
		close(fd);
		return -1;
	}
	return fd;
}

static void report(struct peer *peer)
{
	const struct replay_process *process = peer->process;

	dwfl_report_begin(peer->dwfl);
	for (size_t i = 0; i < process->mappings.len; i++) {
		const struct replay_mapping *mapping = &process->mappings.items[i];
		bool is_first = mapping->image != NULL;

		for (size_t j = 0; j < i; j++) {
			is_first &= process->mappings.items[j].image != mapping->image ||
						process->mappings.items[j].bias != mapping->bias;
		}
		if (is_first) {
			const char *path = mapping->image->path;
			char name[PATH_MAX + 32];

			/* V8 maps its own file a second time elsewhere: a module of its own, not the first one moved */
			snprintf(name, sizeof(name), "%s@%llx", path, (unsigned long long)mapping->bias);
			int fd = strcmp(path, "[vdso]") == 0 ? open_vdso() : open(path, O_RDONLY | O_CLOEXEC);

			if (fd >= 0 &&
				dwfl_report_elf(peer->dwfl, name, path, fd, mapping->bias, true) == NULL) {
				close(fd);
			}
		}
	}
	dwfl_report_end(peer->dwfl, NULL, NULL);
}

static void destroy(struct peer *peer)
{
	if (peer != NULL) {
		dwfl_end(peer->dwfl);
		free(peer);
	}
}

static struct peer *create(const struct replay_process *process)
{
	struct peer *peer = calloc(1, sizeof(*peer));

	peer->process = process;
	peer->changes = process->changes;
	peer->dwfl = dwfl_begin(&callbacks);
	report(peer);
	dwfl_attach_state(peer->dwfl, NULL, process->pid, &thread_callbacks, peer);
	return peer;
}

static int take_frame(Dwfl_Frame *frame, void *arg)
{
	struct peer_stack *stack = arg;
	Dwarf_Addr pc;

	if (stack->count == PEER_FRAMES || !dwfl_frame_pc(frame, &pc, NULL)) {
		return DWARF_CB_ABORT;
	}
	stack->addresses[stack->count++] = pc;
	return DWARF_CB_OK;
}

static void walk(struct peer **peer, const struct replay_process *process,
	const struct corpus_event *event, struct peer_stack *stack)
{
	if (*peer != NULL && ((*peer)->process != process || (*peer)->changes != process->changes)) {
		destroy(*peer);
		*peer = NULL;
	}
	if (*peer == NULL) {
		*peer = create(process);
	}
	(*peer)->event = event;
	stack->count = 0;
	dwfl_getthread_frames((*peer)->dwfl, 1, take_frame, stack);
}

const struct peer_ops peer_libdw = {.name = "libdw", .walk = walk, .destroy = destroy};
