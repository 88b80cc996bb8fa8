#include "analyzer/model/loading.h"

#include <string.h>

#include "protocol/limits.h"

static uint64_t end_of(uint64_t start, uint64_t length)
{
	return length > UINT64_MAX - start ? UINT64_MAX : start + length;
}

/* The index of the living process, made when it is new; MODEL_NONE: too many. False: memory is out. */
static bool find_process(struct loader *loader, uint64_t pid, uint32_t *index)
{
	struct model *model = loader->model;
	const uint64_t *known = map_get(&loader->processes, pid);
	const struct model_process process = {.pid = pid, .program = MODEL_NONE};
	const struct space space = {0};

	if (known != NULL && !model->processes.items[*known].has_ended) {
		*index = (uint32_t)*known;
		return true;
	}
	if (model->processes.len >= LIMIT_PROCESSES) {
		*index = MODEL_NONE;
		return true;
	}
	if (!VEC_PUSH(&model->processes, process)) {
		return false;
	}
	if (!VEC_PUSH(&loader->spaces, space)) {
		model->processes.len--;
		return false;
	}
	*index = (uint32_t)model->processes.len - 1;
	return map_put(&loader->processes, pid, *index);
}

struct space *loading_space(struct loader *loader, uint64_t pid)
{
	const uint64_t *index = map_get(&loader->processes, pid);

	return index == NULL ? NULL : &loader->spaces.items[*index];
}

/* Mappings of all processes are counted, because a few bytes of FORK copy many. */
static bool copy_space(struct loader *loader, struct space *space, const struct space *from)
{
	if (loader->mapping_count + from->mappings.len > MODEL_MAX_MAPPINGS) {
		return loading_contradict(loader);
	}
	loader->mapping_count -= space->mappings.len;
	if (!space_copy(space, from)) {
		return false;
	}
	loader->mapping_count += space->mappings.len;
	return true;
}

static bool set_program(struct loader *loader, uint32_t process, uint32_t image)
{
	uint64_t key = (uint64_t)process << 32 | image;

	loader->model->processes.items[process].program = image;
	return map_put(&loader->model->programs, key, 1);
}

/* A child runs what its parent does. */
static bool inherit_program(struct loader *loader, uint64_t parent_pid, uint32_t process)
{
	const uint64_t *parent = map_get(&loader->processes, parent_pid);
	uint32_t image = parent == NULL ? MODEL_NONE : loader->model->processes.items[*parent].program;

	return image == MODEL_NONE || set_program(loader, process, image);
}

static bool begin_space(
	struct loader *loader, const struct journal_process *process, uint32_t index)
{
	struct space *space = &loader->spaces.items[index];
	const struct space *parent = loading_space(loader, process->parent_pid);

	if (process->is_fork && parent != NULL && parent != space) {
		return copy_space(loader, space, parent) &&
			   inherit_program(loader, process->parent_pid, index);
	}
	if (process->is_exec) {
		loader->model->processes.items[index].program = MODEL_NONE;
		loader->mapping_count -= space->mappings.len;
		space_clear(space);
	}
	return true;
}

bool loading_process(struct loader *loader, const struct journal_record *record)
{
	const struct journal_process *process = &record->process;
	uint32_t index;

	if (!find_process(loader, process->pid, &index)) {
		return false;
	}
	if (index == MODEL_NONE) {
		return loading_contradict(loader);
	}
	struct model_process *item = &loader->model->processes.items[index];

	item->parent_pid = process->parent_pid;
	item->name = process->name != 0 ? loading_text(loader, process->name) : item->name;
	if (process->executable != 0 || process->is_exec) {
		item->executable = loading_text(loader, process->executable);
	}
	return begin_space(loader, process, index);
}

bool loading_process_end(struct loader *loader, const struct journal_record *record)
{
	const uint64_t *index = map_get(&loader->processes, record->process_end.pid);

	if (index == NULL) {
		return loading_contradict(loader);
	}
	loader->model->processes.items[*index].has_ended = true;
	loader->mapping_count -= loader->spaces.items[*index].mappings.len;
	space_finish(&loader->spaces.items[*index]);
	return true;
}

bool loading_add_thread(
	struct loader *loader, uint64_t time_ns, uint64_t pid, uint64_t tid, uint32_t name)
{
	struct model *model = loader->model;
	const uint64_t *process = map_get(&loader->processes, pid);
	const struct model_thread thread = {
		.pid = pid,
		.tid = tid,
		.name = name,
		.begin_ns = time_ns,
		.process = process == NULL ? MODEL_NONE : (uint32_t)*process,
	};

	if (model->threads.len >= MODEL_MAX_THREADS) {
		return loading_contradict(loader);
	}
	return VEC_PUSH(&model->threads, thread) &&
		   map_put(&loader->threads, tid, model->threads.len - 1);
}

/* A living thread gets a new name; whatever has the id of another process is another thread. */
bool loading_thread(struct loader *loader, const struct journal_record *record)
{
	const struct journal_thread *thread = &record->thread;
	uint32_t name = loading_text(loader, thread->name);
	const uint64_t *index = map_get(&loader->threads, thread->tid);

	struct model_thread *item = index == NULL ? NULL : &loader->model->threads.items[*index];

	if (item != NULL && item->pid == thread->pid && !item->has_ended) {
		item->name = name != 0 ? name : item->name;
		return true;
	}
	return loading_add_thread(loader, thread->time_ns, thread->pid, thread->tid, name);
}

bool loading_thread_end(struct loader *loader, const struct journal_record *record)
{
	const uint64_t *index = map_get(&loader->threads, record->thread_end.tid);

	if (index == NULL) {
		return loading_contradict(loader);
	}
	loader->model->threads.items[*index].has_ended = true;
	loader->model->threads.items[*index].end_ns = record->thread_end.time_ns;
	return true;
}

static bool is_same_image(const struct model_image *a, const struct model_image *b)
{
	return a->kind == b->kind && a->path == b->path && a->device == b->device &&
		   a->inode == b->inode && a->inode_generation == b->inode_generation &&
		   a->build_id_bytes == b->build_id_bytes &&
		   memcmp(a->build_id, b->build_id, sizeof(a->build_id)) == 0;
}

static struct model_image image_of(const struct loader *loader, const struct journal_image *image)
{
	struct model_image item = {
		.id = image->id,
		.kind = image->kind,
		.path = loading_text(loader, image->path),
		.device = image->device,
		.inode = image->inode,
		.inode_generation = image->inode_generation,
		.access = image->access <= JOURNAL_IMAGE_REPLACED ? (uint8_t)image->access
														  : JOURNAL_IMAGE_NOT_OPENED,
	};
	size_t len = image->build_id.len;

	len = len < sizeof(item.build_id) ? len : sizeof(item.build_id);
	if (len > 0) {
		memcpy(item.build_id, image->build_id.data, len);
	}
	item.build_id_bytes = (uint8_t)len;
	return item;
}

/* An image that an earlier segment knew under the same id stays one image. */
bool loading_image(struct loader *loader, const struct journal_record *record)
{
	struct model *model = loader->model;
	struct model_image image = image_of(loader, &record->image);
	const uint64_t *known = map_get(&model->image_ids, image.id);

	if (known != NULL && is_same_image(&model->images.items[*known], &image)) {
		if (image.access != JOURNAL_IMAGE_NOT_OPENED) {
			model->images.items[*known].access = image.access;
		}
		return map_put(&loader->images, image.id, *known);
	}
	if (model->images.len >= LIMIT_IMAGES) {
		return loading_contradict(loader);
	}
	uint64_t index = model->images.len;

	return VEC_PUSH(&model->images, image) && map_put(&model->image_ids, image.id, index) &&
		   map_put(&loader->images, image.id, index);
}

/* For one mapping more. */
static bool has_room(const struct loader *loader, const struct space *space)
{
	return space->mappings.len < MODEL_PROCESS_MAPPINGS &&
		   loader->mapping_count < MODEL_MAX_MAPPINGS;
}

/* Whether this image, mapped now, is the process's executable. */
static bool note_program(struct loader *loader, uint64_t pid, uint32_t image)
{
	const struct model *model = loader->model;
	const uint64_t *index = map_get(&loader->processes, pid);

	if (index == NULL || image == MODEL_NONE ||
		model->images.items[image].kind != JOURNAL_IMAGE_ELF) {
		return true;
	}
	const struct model_process *process = &model->processes.items[*index];
	bool is_first = process->executable == 0 && process->program == MODEL_NONE;
	bool is_told =
		process->executable != 0 && process->executable == model->images.items[image].path;

	return !(is_first || is_told) || set_program(loader, (uint32_t)*index, image);
}

bool loading_mapping(struct loader *loader, const struct journal_record *record)
{
	const struct journal_mapping *mapping = &record->mapping;
	struct space *space = loading_space(loader, mapping->pid);
	const uint64_t *image = map_get(&loader->images, mapping->image);
	struct space_mapping item = {
		.start = mapping->start,
		.end = end_of(mapping->start, mapping->length),
		.file_offset = mapping->file_offset,
		.image = image == NULL ? MODEL_NONE : (uint32_t)*image,
	};

	if (space == NULL || !has_room(loader, space)) {
		return loading_contradict(loader);
	}
	loader->mapping_count -= space->mappings.len;
	bool done = space_map(space, &item) && note_program(loader, mapping->pid, item.image);

	loader->mapping_count += space->mappings.len;
	return done;
}

/* A hole within one mapping leaves two. */
static bool is_split(const struct space *space, uint64_t start, uint64_t end)
{
	const struct space_mapping *mapping = space_find(space, start);

	return mapping != NULL && mapping->start < start && mapping->end > end;
}

bool loading_unmapping(struct loader *loader, const struct journal_record *record)
{
	const struct journal_unmapping *unmapping = &record->unmapping;
	struct space *space = loading_space(loader, unmapping->pid);
	uint64_t end = end_of(unmapping->start, unmapping->length);

	if (space == NULL || (!has_room(loader, space) && is_split(space, unmapping->start, end))) {
		return loading_contradict(loader);
	}
	loader->mapping_count -= space->mappings.len;
	bool done = space_unmap(space, unmapping->start, end);

	loader->mapping_count += space->mappings.len;
	return done;
}
