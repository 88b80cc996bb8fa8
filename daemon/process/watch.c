#include <assert.h>

#include "process/record.h"

/* A list is a dozen at most: connections and captures of one process. */
static void append_watch(struct process_watch **list, struct process_watch *watch)
{
	while (*list != NULL) {
		list = &(*list)->next;
	}
	*list = watch;
}

static bool remove_watch(struct process_watch **list, const struct process_watch *watch)
{
	while (*list != NULL && *list != watch) {
		list = &(*list)->next;
	}
	if (*list == NULL) {
		return false;
	}
	*list = watch->next;
	return true;
}

void process_watch(struct process *process, struct process_watch *watch)
{
	assert(watch->process == NULL);
	watch->process = process;
	watch->next = NULL;
	append_watch(process->telling ? &process->added : &process->watches, watch);
}

void process_unwatch(struct process_watch *watch)
{
	struct process *process = watch->process;
	if (process == NULL) {
		return;
	}
	if (process->cursor == watch) {
		process->cursor = watch->next;
	}
	if (!remove_watch(&process->watches, watch)) {
		remove_watch(&process->added, watch);
	}
	watch->process = NULL;
	watch->next = NULL;
	process_unwatched(process);
}

/* Telling: watchers may come and go meanwhile; those that come are not told of what they came during. */
static void begin_telling(struct process *process)
{
	assert(!process->telling);
	process->telling = true;
	process->cursor = process->watches;
}

static const struct process_watch *next_told(struct process *process)
{
	struct process_watch *watch = process->cursor;
	if (watch != NULL) {
		process->cursor = watch->next;
	}
	return watch;
}

static void end_telling(struct process *process)
{
	process->telling = false;
	if (process->added != NULL) {
		append_watch(&process->watches, process->added);
		process->added = NULL;
	}
}

void process_tell_ready(struct process *process)
{
	const struct process_watch *watch;
	begin_telling(process);
	while ((watch = next_told(process)) != NULL) {
		if (watch->ops->ready != NULL) {
			watch->ops->ready(watch->context, process);
		}
	}
	end_telling(process);
}

void process_tell_running(struct process *process)
{
	const struct process_watch *watch;
	begin_telling(process);
	while ((watch = next_told(process)) != NULL) {
		if (watch->ops->running != NULL) {
			watch->ops->running(watch->context, process);
		}
	}
	end_telling(process);
}

void process_tell_output(struct process *process, enum process_stream stream, uint64_t offset,
	const char *bytes, size_t len)
{
	const struct process_watch *watch;
	begin_telling(process);
	while ((watch = next_told(process)) != NULL) {
		if (watch->ops->output != NULL) {
			watch->ops->output(watch->context, process, stream, offset, bytes, len);
		}
	}
	end_telling(process);
}

/* For what is told last: takes the watch off the list first, so that its owner may free it. */
static bool pop_watch(struct process *process, struct process_watch *copy)
{
	struct process_watch *watch = process->watches;
	if (watch == NULL) {
		return false;
	}
	process->watches = watch->next;
	*copy = *watch;
	watch->process = NULL;
	watch->next = NULL;
	return true;
}

void process_end_watching(struct process *process)
{
	struct process_watch watch;
	while (pop_watch(process, &watch)) {
	}
}

void process_tell_failed(struct process *process, const struct error *err)
{
	struct process_watch watch;
	begin_telling(process);
	while (pop_watch(process, &watch)) {
		if (watch.ops->failed != NULL) {
			watch.ops->failed(watch.context, process, err);
		}
	}
	end_telling(process);
	process_end_watching(process);
}

void process_tell_exited(struct process *process)
{
	struct process_watch watch;
	begin_telling(process);
	while (pop_watch(process, &watch)) {
		if (watch.ops->exited != NULL) {
			watch.ops->exited(watch.context, process);
		}
	}
	end_telling(process);
}
