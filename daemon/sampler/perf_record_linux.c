#include "sampler/perf_record.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "sampler/perf_registers.h"

#define SAMPLE_ID_BYTES 16 /* at the end of every other record: pid, tid, time */
#define DELETED         " (deleted)"

void perf_records_finish(struct perf_records *records)
{
	map_finish(&records->tasks);
	map_finish(&records->living);
	VEC_FINISH(&records->names);
	VEC_FINISH(&records->unused);
	VEC_FINISH(&records->throttles);
}

/* What only a few records need, without their headers and tails. */
static struct bytes body_of(const struct perf_event_header *header)
{
	size_t outer = sizeof(*header) + SAMPLE_ID_BYTES;
	return bytes_of(header + 1, header->size > outer ? header->size - outer : 0);
}

/* A fixed field that holds a string, NUL-terminated if the kernel kept its word. NULL when it did not. */
static const char *rest_as_string(struct bytes *body)
{
	size_t len = bytes_left(body);
	const uint8_t *text = bytes_take(body, len);
	return text && len > 0 && memchr(text, '\0', len) ? (const char *)text : NULL;
}

/* One writer: no locked instruction is needed. */
static void count(_Atomic uint64_t *counter, uint64_t more)
{
	uint64_t value = atomic_load_explicit(counter, memory_order_relaxed);
	atomic_store_explicit(counter, value + more, memory_order_relaxed);
}

static void malformed(struct perf_records *records, int cpu)
{
	records->sink.loss(records->sink.context, records->last_ns, SAMPLER_LOSS_MALFORMED, 1, cpu);
}

/* Living threads */

static struct perf_task *find_task(const struct perf_records *records, pid_t tid)
{
	const uint64_t *index = map_get(&records->tasks, (uint64_t)tid);
	return index ? &records->names.items[*index] : NULL;
}

static bool new_index(struct perf_records *records, size_t *index)
{
	if (records->unused.len > 0) {
		*index = records->unused.items[--records->unused.len];
		return true;
	}
	if (!VEC_RESERVE(&records->names, records->names.len + 1) ||
		!VEC_RESERVE(&records->unused, records->names.len + 1)) {
		return false;
	}
	*index = records->names.len++;
	return true;
}

static void count_living(struct perf_records *records, pid_t pid)
{
	uint64_t *living = map_get(&records->living, (uint64_t)pid);
	if (living) {
		++*living;
	} else {
		map_put(&records->living, (uint64_t)pid, 1);
	}
}

/* True when it was the last of its process. */
static bool remove_task(struct perf_records *records, pid_t pid, pid_t tid)
{
	const uint64_t *index = map_get(&records->tasks, (uint64_t)tid);
	if (!index) {
		return false;
	}
	records->names.items[*index].pid = 0;
	records->unused.items[records->unused.len++] = (size_t)*index;
	map_remove(&records->tasks, (uint64_t)tid);
	uint64_t *living = map_get(&records->living, (uint64_t)pid);
	if (!living || --*living > 0) {
		return false;
	}
	map_remove(&records->living, (uint64_t)pid);
	return true;
}

/* Without memory a thread is unknown: it has no name, and its end is not the end of its process. */
static struct perf_task *add_task(struct perf_records *records, pid_t pid, pid_t tid)
{
	struct perf_task *task = find_task(records, tid);
	size_t index;
	if (task && task->pid == pid) {
		return task;
	}
	if (task) { /* its number came again before its end was seen */
		remove_task(records, task->pid, tid);
	}
	if (!new_index(records, &index)) {
		return NULL;
	}
	if (!map_put(&records->tasks, (uint64_t)tid, index)) {
		records->unused.items[records->unused.len++] = index;
		return NULL;
	}
	count_living(records, pid);
	task = &records->names.items[index];
	*task = (struct perf_task){.pid = pid, .tid = tid};
	return task;
}

static void set_name(struct perf_task *task, const char *name)
{
	size_t len = strnlen(name, sizeof(task->name) - 1);
	memcpy(task->name, name, len);
	task->name[len] = '\0';
}

/* One function per record */

struct chain_part {
	const uint64_t *frames;
	size_t count;
};

/* The kernel marks in the chain where its part and the user's begin. */
static void split_chain(
	const uint64_t *chain, size_t len, struct chain_part *kernel, struct chain_part *user)
{
	struct chain_part other = {0}, *part = &other;
	for (size_t i = 0; i < len; i++) {
		if (chain[i] < PERF_CONTEXT_MAX) {
			part->count++;
			continue;
		}
		part = chain[i] == PERF_CONTEXT_KERNEL ? kernel
			   : chain[i] == PERF_CONTEXT_USER ? user
											   : &other;
		part = part->frames ? &other : part;
		part->frames = &chain[i + 1];
	}
}

/* u64 nr; u64 ips[nr] */
static void take_chain(
	const struct perf_records *records, struct bytes *body, struct sampler_sample *sample)
{
	uint64_t frames = bytes_u64(body);
	struct chain_part kernel = {0}, user = {0};
	const uint8_t *chain =
		frames <= bytes_left(body) / 8 ? bytes_take(body, (size_t)frames * 8) : NULL;
	if (chain == NULL) {
		body->bad = true;
		return;
	}
	split_chain((const void *)chain, (size_t)frames, &kernel, &user);
	sample->kernel_frames = kernel.frames;
	sample->kernel_count = kernel.count;
	sample->user_frames = user.frames;
	sample->user_count = user.count;
	sample->cut = kernel.count + user.count >= records->max_depth;
}

/* u64 abi; u64 registers[bits of the mask], when it has any */
static void take_registers(
	struct bytes *body, uint64_t registers[SAMPLER_REGISTERS], struct sampler_sample *sample)
{
	uint64_t abi = bytes_u64(body);
	size_t count = (size_t)__builtin_popcountll(perf_registers_mask);
	const uint8_t *values = abi != PERF_SAMPLE_REGS_ABI_NONE ? bytes_take(body, count * 8) : NULL;
	if (values != NULL && abi == PERF_SAMPLE_REGS_ABI_64) {
		sample->registers_known = perf_registers_take((const void *)values, registers, &sample->pc);
		sample->registers = registers;
	}
}

/* u64 size; u8 bytes[size]; u64 those of them that are the stack's, unless size is 0 */
static void take_stack(struct bytes *body, struct sampler_sample *sample)
{
	uint64_t size = bytes_u64(body);
	const uint8_t *stack = size <= bytes_left(body) ? bytes_take(body, (size_t)size) : NULL;
	if (size == 0) {
		return;
	}
	uint64_t used = bytes_u64(body);
	if (stack == NULL || used > size) {
		body->bad = true;
		return;
	}
	sample->stack = stack;
	sample->stack_bytes = (size_t)used;
	sample->stack_ended = used < size;
}

/* u32 pid, tid; u64 time; and what sample_type says, in this order */
static void take_sample(
	struct perf_records *records, const struct perf_event_header *header, int cpu)
{
	struct bytes body =
		bytes_of(header + 1, header->size > sizeof(*header) ? header->size - sizeof(*header) : 0);
	uint64_t registers[SAMPLER_REGISTERS];
	struct sampler_sample sample = {.time_ns = records->last_ns};
	sample.pid = (pid_t)bytes_u32(&body);
	sample.tid = (pid_t)bytes_u32(&body);
	bytes_u64(&body);
	if (records->sample_type & PERF_SAMPLE_CALLCHAIN) {
		take_chain(records, &body, &sample);
	}
	if (records->sample_type & PERF_SAMPLE_REGS_USER) {
		take_registers(&body, registers, &sample);
	}
	if (records->sample_type & PERF_SAMPLE_STACK_USER) {
		take_stack(&body, &sample);
	}
	if (body.bad) {
		malformed(records, cpu);
		return;
	}
	count(&records->counters->samples, 1);
	records->sink.sample(records->sink.context, &sample);
}

/* u32 pid, tid; u64 addr, len, pgoff; u32 maj, min; u64 ino, ino_generation; u32 prot, flags; char filename[] */
static bool read_mapping(const struct perf_event_header *header, struct sampler_mapping *mapping)
{
	struct bytes body = body_of(header);
	mapping->pid = (pid_t)bytes_u32(&body);
	bytes_u32(&body);
	mapping->start = bytes_u64(&body);
	mapping->length = bytes_u64(&body);
	mapping->file_offset = bytes_u64(&body);
	mapping->device_major = bytes_u32(&body);
	mapping->device_minor = bytes_u32(&body);
	mapping->inode = bytes_u64(&body);
	mapping->inode_generation = bytes_u64(&body);
	mapping->protection = bytes_u32(&body);
	bytes_u32(&body);
	mapping->path = rest_as_string(&body);
	return !body.bad && mapping->path && mapping->length <= UINT64_MAX - mapping->start;
}

/* Tells the sink of it unless it is no code. False: it is malformed. */
static bool tell_mapping(const struct perf_event_header *header, uint64_t time_ns,
	void (*tell)(void *context, const struct sampler_mapping *mapping), void *context)
{
	struct sampler_mapping mapping = {.time_ns = time_ns};
	if (!read_mapping(header, &mapping)) {
		return false;
	}
	if (!(mapping.protection & 4 /* PROT_EXEC */)) {
		return true;
	}
	char path[4096 + 64]; /* the kernel writes PATH_MAX at most */
	size_t len = strnlen(mapping.path, sizeof(path) - 1), tail = sizeof(DELETED) - 1;
	if (len > tail && memcmp(mapping.path + len - tail, DELETED, tail) == 0) {
		len -= tail;
	}
	memcpy(path, mapping.path, len);
	path[len] = '\0';
	mapping.path = path;
	tell(context, &mapping);
	return true;
}

static bool take_mapping(struct perf_records *records, const struct perf_event_header *header)
{
	return tell_mapping(header, records->last_ns, records->sink.mapping, records->sink.context);
}

void perf_records_take_early(
	const struct perf_records *records, const struct perf_event_header *header)
{
	if (header->type == PERF_RECORD_MMAP2 && records->sink.mapped) {
		tell_mapping(header, 0, records->sink.mapped, records->sink.context);
	}
}

static void tell_thread(struct perf_records *records, pid_t pid, pid_t tid, const char *name)
{
	struct sampler_thread thread = {records->last_ns, pid, tid, name};
	records->sink.thread(records->sink.context, &thread);
}

/* u32 pid, tid; char comm[] */
static bool take_name(struct perf_records *records, const struct perf_event_header *header)
{
	struct bytes body = body_of(header);
	pid_t pid = (pid_t)bytes_u32(&body), tid = (pid_t)bytes_u32(&body);
	const char *name = rest_as_string(&body);
	if (body.bad || !name) {
		return false;
	}
	struct perf_task *task = add_task(records, pid, tid), unknown = {0};
	task = task ? task : &unknown;
	set_name(task, name);
	if (header->misc & PERF_RECORD_MISC_COMM_EXEC) {
		struct sampler_process process = {
			.time_ns = records->last_ns,
			.pid = pid,
			.parent_pid = pid == records->pid ? records->parent_pid : 0,
			.name = task->name,
			.is_exec = true,
		};
		map_put(&records->living, (uint64_t)pid, 1); /* the exec has ended all others */
		records->sink.process(records->sink.context, &process);
	}
	tell_thread(records, pid, tid, task->name);
	return true;
}

/* u32 pid, ppid, tid, ptid; u64 time: the new one first, with the name of the one that made it */
static bool take_fork(struct perf_records *records, const struct perf_event_header *header)
{
	struct bytes body = body_of(header);
	pid_t pid = (pid_t)bytes_u32(&body), parent = (pid_t)bytes_u32(&body);
	pid_t tid = (pid_t)bytes_u32(&body), maker = (pid_t)bytes_u32(&body);
	if (body.bad) {
		return false;
	}
	char name[16] = "";
	const struct perf_task *made_by = find_task(records, maker);
	if (made_by) {
		memcpy(name, made_by->name, sizeof(name));
	}
	struct perf_task *task = add_task(records, pid, tid);
	if (task) {
		memcpy(task->name, name, sizeof(name));
	}
	if (pid == tid) {
		struct sampler_process process = {
			.time_ns = records->last_ns,
			.pid = pid,
			.parent_pid = parent,
			.name = name,
			.is_fork = true,
		};
		records->sink.process(records->sink.context, &process);
	}
	tell_thread(records, pid, tid, name);
	return true;
}

/* As FORK */
static bool take_exit(struct perf_records *records, const struct perf_event_header *header)
{
	struct bytes body = body_of(header);
	pid_t pid = (pid_t)bytes_u32(&body);
	bytes_u32(&body);
	pid_t tid = (pid_t)bytes_u32(&body);
	if (body.bad) {
		return false;
	}
	bool is_last = remove_task(records, pid, tid);
	records->sink.thread_end(records->sink.context, records->last_ns, pid, tid);
	if (is_last) {
		records->sink.process_end(records->sink.context, records->last_ns, pid);
	}
	return true;
}

/* u64 id, lost; LOST_SAMPLES: u64 lost */
static bool take_lost(struct perf_records *records, const struct perf_event_header *header, int cpu)
{
	struct bytes body = body_of(header);
	if (header->type == PERF_RECORD_LOST) {
		bytes_u64(&body);
	}
	uint64_t lost = bytes_u64(&body);
	if (body.bad) {
		return false;
	}
	records->lost += lost;
	count(&records->counters->lost, lost);
	records->sink.loss(records->sink.context, records->last_ns, SAMPLER_LOSS_RING, lost, cpu);
	return true;
}

void perf_records_lost(struct perf_records *records, uint64_t time_ns, uint64_t lost)
{
	if (lost <= records->lost) {
		return;
	}
	uint64_t more = lost - records->lost;
	records->lost = lost;
	count(&records->counters->lost, more);
	records->sink.loss(records->sink.context, time_ns, SAMPLER_LOSS_RING, more, -1);
}

/* NULL: memory is out. */
static struct perf_throttle *throttle_of(struct perf_records *records, int cpu)
{
	for (size_t i = 0; i < records->throttles.len; i++) {
		if (records->throttles.items[i].cpu == cpu) {
			return &records->throttles.items[i];
		}
	}
	const struct perf_throttle none = {.cpu = cpu};
	return VEC_PUSH(&records->throttles, none)
			   ? &records->throttles.items[records->throttles.len - 1]
			   : NULL;
}

/*
 * The event goes on at the next tick of its processor or, when its thread has left that, when it comes back: then it ran for less than a tick. What
 * throttles next on the same processor is another thread's event.
 */
static void end_throttle(struct perf_records *records, struct perf_throttle *throttle)
{
	uint64_t past_ns = records->last_ns - throttle->since_ns;
	if (throttle->stream != 0) {
		records->withheld_ns += past_ns < records->tick_ns ? past_ns : records->tick_ns;
	}
	throttle->stream = 0;
}

/* u64 time, id, stream_id */
static bool take_throttle(
	struct perf_records *records, const struct perf_event_header *header, int cpu)
{
	struct bytes body = body_of(header);
	bytes_u64(&body);
	bytes_u64(&body);
	uint64_t stream = bytes_u64(&body);
	if (body.bad) {
		return false;
	}
	struct perf_throttle *throttle = throttle_of(records, cpu);
	bool begins = header->type == PERF_RECORD_THROTTLE;
	if (throttle && (begins || throttle->stream == stream)) {
		end_throttle(records, throttle);
	}
	if (!begins) {
		return true;
	}
	if (throttle) {
		throttle->stream = stream;
		throttle->since_ns = records->last_ns;
	}
	count(&records->counters->throttled, 1);
	records->sink.loss(records->sink.context, records->last_ns, SAMPLER_LOSS_THROTTLED, 1, cpu);
	return true;
}

static bool take_other(
	struct perf_records *records, const struct perf_event_header *header, int cpu)
{
	switch (header->type) {
	case PERF_RECORD_MMAP2:
		return take_mapping(records, header);
	case PERF_RECORD_COMM:
		return take_name(records, header);
	case PERF_RECORD_FORK:
		return take_fork(records, header);
	case PERF_RECORD_EXIT:
		return take_exit(records, header);
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
		return take_lost(records, header, cpu);
	case PERF_RECORD_THROTTLE:
	case PERF_RECORD_UNTHROTTLE:
		return take_throttle(records, header, cpu);
	default:
		return true;
	}
}

void perf_records_take(
	void *context, uint64_t time_ns, const struct perf_event_header *header, int cpu)
{
	struct perf_records *records = context;
	/* An interrupt that comes while a record is written puts a later time before an earlier one. */
	if (time_ns > records->last_ns) {
		records->last_ns = time_ns;
	}
	if (header->type == PERF_RECORD_SAMPLE) {
		take_sample(records, header, cpu);
	} else if (!take_other(records, header, cpu)) {
		malformed(records, cpu);
	}
}

void perf_records_broken(void *context, int cpu)
{
	malformed(context, cpu);
}

void perf_records_add_thread(struct perf_records *records, uint64_t time_ns, pid_t pid, pid_t tid,
	const char name[16], const struct target_cpu_time *before)
{
	struct perf_task *task = add_task(records, pid, tid);
	if (task) {
		set_name(task, name);
		task->before = *before;
	}
	records->last_ns = time_ns > records->last_ns ? time_ns : records->last_ns;
	tell_thread(records, pid, tid, name);
}
