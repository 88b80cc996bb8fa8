#include "unwind/replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fcntl.h>

bool replay_init(struct replay *replay)
{
	*replay = (struct replay){.unwinder = unwinder_create(&unwind_machine_x86_64)};
	return replay->unwinder != NULL;
}

static void destroy_process(struct replay_process *process)
{
	unwind_space_finish(&process->space);
	VEC_FINISH(&process->mappings);
	free(process);
}

void replay_finish(struct replay *replay)
{
	for (size_t i = 0; i < replay->processes.len; i++) {
		destroy_process(replay->processes.items[i]);
	}
	for (size_t i = 0; i < replay->images.len; i++) {
		cfi_release(replay->images.items[i]->cfi);
		free(replay->images.items[i]->path);
		free(replay->images.items[i]);
	}
	VEC_FINISH(&replay->processes);
	VEC_FINISH(&replay->images);
	unwinder_destroy(replay->unwinder);
}

static struct replay_process *find_process(const struct replay *replay, pid_t pid)
{
	for (size_t i = 0; i < replay->processes.len; i++) {
		if (replay->processes.items[i]->pid == pid) {
			return replay->processes.items[i];
		}
	}
	return NULL;
}

static struct replay_process *get_process(struct replay *replay, pid_t pid)
{
	struct replay_process *process = find_process(replay, pid);

	if (process == NULL) {
		process = calloc(1, sizeof(*process));
		process->pid = pid;
		unwind_space_init(&process->space, unwinder_states(replay->unwinder));
		VEC_PUSH(&replay->processes, process);
	}
	return process;
}

static struct cfi *open_cfi(struct replay *replay, const struct corpus_event *event)
{
	struct error err = {0};
	int fd = event->inode == 0 ? -1 : open(event->path, O_RDONLY | O_CLOEXEC);
	struct image *image = strcmp(event->path, "[vdso]") == 0 ? image_open_vdso(&err)
						  : fd < 0                           ? NULL
															 : image_open(fd, &err);
	struct cfi *cfi = image == NULL ? NULL : cfi_create(image, unwinder_reader(replay->unwinder));

	image_release(image);
	return cfi;
}

static struct replay_image *get_image(struct replay *replay, const struct corpus_event *event)
{
	for (size_t i = 0; i < replay->images.len; i++) {
		struct replay_image *image = replay->images.items[i];

		if (image->inode == event->inode && image->device_major == event->device_major &&
			image->device_minor == event->device_minor && strcmp(image->path, event->path) == 0) {
			return image;
		}
	}
	struct replay_image *image = calloc(1, sizeof(*image));

	*image = (struct replay_image){event->inode, event->device_major, event->device_minor,
		strdup(event->path), open_cfi(replay, event)};
	VEC_PUSH(&replay->images, image);
	return image;
}

/* Cuts nothing: a later one is looked at first. */
static void remember(struct replay_process *process, const struct unwind_mapping *mapping,
	const struct replay_image *image)
{
	const struct unwind_range *range = unwind_space_find(&process->space, mapping->start);
	struct replay_mapping item = {mapping->start, mapping->start + mapping->length,
		range == NULL ? 0 : range->bias, range == NULL || range->cfi == NULL ? NULL : image};

	for (size_t i = 0; i < process->mappings.len; i++) {
		struct replay_mapping *old = &process->mappings.items[i];

		if (old->start < item.end && item.start < old->end) {
			*old = process->mappings.items[--process->mappings.len];
			i--;
		}
	}
	VEC_PUSH(&process->mappings, item);
}

static void map(struct replay *replay, const struct corpus_event *event)
{
	struct replay_process *process = get_process(replay, event->pid);
	const struct replay_image *image = get_image(replay, event);
	const struct unwind_mapping mapping = {
		.start = event->start,
		.length = event->length,
		.file_offset = event->file_offset,
		.is_executable = event->is_executable,
		.cfi = image->cfi,
	};

	if (!event->is_executable && unwind_space_find(&process->space, event->start) == NULL) {
		return;
	}
	unwind_space_put(&process->space, &mapping);
	remember(process, &mapping, image);
	process->changes = ++replay->changes;
}

static void fork_process(struct replay *replay, const struct corpus_event *event)
{
	struct replay_process *parent = find_process(replay, event->parent);
	struct replay_process *child = get_process(replay, event->pid);

	unwind_space_clear(&child->space);
	child->mappings.len = 0;
	child->changes = ++replay->changes;
	for (size_t i = 0; parent != NULL && i < parent->mappings.len; i++) {
		VEC_PUSH(&child->mappings, parent->mappings.items[i]);
	}
	if (parent != NULL) {
		unwind_space_copy(&child->space, &parent->space);
	}
}

const struct replay_process *replay_apply(struct replay *replay, const struct corpus_event *event)
{
	struct replay_process *process;

	switch (event->kind) {
	case CORPUS_MAPPING:
		map(replay, event);
		return NULL;
	case CORPUS_FORK:
		fork_process(replay, event);
		return NULL;
	case CORPUS_EXEC:
		process = get_process(replay, event->pid);
		unwind_space_clear(&process->space);
		process->mappings.len = 0;
		process->changes = ++replay->changes;
		return NULL;
	default:
		return find_process(replay, event->pid);
	}
}

struct unwind_sample replay_sample(const struct corpus_event *event)
{
	return (struct unwind_sample){
		.regs = {.pc = event->registers[16],
			.sp = event->registers[7],
			.fp = event->registers[6],
			.base = event->registers[3]},
		.others = event->registers,
		.others_known = (1u << CORPUS_REGISTERS) - 1,
		.memory = {event->stack, event->registers[7], event->stack_bytes},
	};
}

void replay_describe(const struct replay_process *process, uint64_t pc, char *to, size_t len)
{
	for (size_t i = 0; i < process->mappings.len; i++) {
		const struct replay_mapping *mapping = &process->mappings.items[i];

		if (pc >= mapping->start && pc < mapping->end) {
			const char *path = mapping->image == NULL ? "[code]" : mapping->image->path;
			const char *slash = strrchr(path, '/');

			snprintf(to, len, "%s+0x%llx", slash == NULL ? path : slash + 1,
				(unsigned long long)(pc - mapping->bias));
			return;
		}
	}
	snprintf(to, len, "0x%llx", (unsigned long long)pc);
}
