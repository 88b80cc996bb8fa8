#include "sampler/perf_accounts.h"

void perf_accounts_begin(
	struct perf_accounts *accounts, const struct perf_events *events, pid_t pid, bool is_gated)
{
	*accounts = (struct perf_accounts){
		.events = events,
		.pid = pid,
		.is_gated = is_gated,
		.process_pace = {.pause_ns = PERF_ACCOUNTS_FIRST_NS},
		.thread_pace = {.pause_ns = PERF_ACCOUNTS_FIRST_THREAD_NS},
		.withheld_share = 1,
	};
	target_process_cpu_time(pid, &accounts->before);
}

uint64_t perf_accounts_wait_ns(const struct perf_accounts *accounts, uint64_t now_ns)
{
	uint64_t next_ns = accounts->process_pace.next_ns;
	return next_ns > now_ns ? next_ns - now_ns : 0;
}

/* Is it time? Then the next is after twice the pause. */
static bool is_due(struct perf_pace *pace, uint64_t now_ns, uint64_t longest_ns)
{
	if (now_ns < pace->next_ns) {
		return false;
	}
	pace->next_ns = now_ns + pace->pause_ns;
	pace->pause_ns = pace->pause_ns * 2 < longest_ns ? pace->pause_ns * 2 : longest_ns;
	return true;
}

static bool see_process(struct perf_accounts *accounts)
{
	struct target_cpu_time now;
	if (!target_process_cpu_time(accounts->pid, &now)) {
		return false;
	}
	accounts->latest = target_cpu_time_between(&accounts->before, &now);
	return true;
}

static void tell(const struct perf_accounts *accounts, const struct perf_records *records,
	uint64_t time_ns, pid_t tid, const struct target_cpu_time *time)
{
	const struct sampler_cpu_time told = {
		.time_ns = time_ns,
		.pid = accounts->pid,
		.tid = tid,
		.total_ns = time->total_ns,
		.user_ns = time->user_ns,
		.system_ns = time->system_ns,
	};
	records->sink.cpu_time(records->sink.context, &told);
}

/*
 * The events' clock stands still while they are throttled, the process's does not: beyond what they counted is what was withheld. That is
 * less than the throttling lasted, for a thread may have waited meanwhile. A hypervisor's theft is in the events' clock alone.
 */
static void learn_withheld(
	struct perf_accounts *accounts, const struct perf_records *records, uint64_t counted_ns)
{
	uint64_t total_ns = accounts->latest.total_ns;
	double beyond = total_ns > counted_ns ? (double)(total_ns - counted_ns) : 0;
	double share = beyond / (double)records->withheld_ns;
	accounts->withheld_share = share < 1 ? share : 1;
}

static void look_at_thread(const struct perf_accounts *accounts, const struct perf_records *records,
	uint64_t now_ns, const struct perf_task *task)
{
	struct target_cpu_time now, since;
	/* What a gate has used is its first thread's. */
	bool was_gate = accounts->is_gated && task->tid == accounts->pid;
	if (target_thread_cpu_time(task->pid, task->tid, &now)) {
		since = target_cpu_time_between(was_gate ? &accounts->before : &task->before, &now);
		tell(accounts, records, now_ns, task->tid, &since);
	}
}

/* Of one thread alone everything is known by its process. */
static void look_at_threads(struct perf_accounts *accounts, const struct perf_records *records,
	uint64_t now_ns, size_t most)
{
	size_t count = records->names.len;
	if (count < 2) {
		return;
	}
	for (size_t i = 0, seen = 0; i < count && seen < most; i++) {
		const struct perf_task *task = &records->names.items[accounts->cursor++ % count];
		if (task->pid == accounts->pid) {
			look_at_thread(accounts, records, now_ns, task);
			seen++;
		}
	}
}

void perf_accounts_look(
	struct perf_accounts *accounts, const struct perf_records *records, uint64_t now_ns)
{
	if (records->names.len == 0) {
		return; /* a gate still waits */
	}
	/* Told with the time of the last record: those of the last millisecond are still to come. */
	if (is_due(&accounts->process_pace, now_ns, PERF_ACCOUNTS_PAUSE_NS) && see_process(accounts)) {
		tell(accounts, records, records->last_ns, 0, &accounts->latest);
		if (records->withheld_ns > 0) {
			learn_withheld(accounts, records, perf_events_count(accounts->events).cpu_ns);
		}
	}
	if (is_due(&accounts->thread_pace, now_ns, PERF_ACCOUNTS_THREAD_PAUSE_NS)) {
		look_at_threads(accounts, records, records->last_ns, PERF_ACCOUNTS_THREADS);
	}
}

void perf_accounts_look_back(struct perf_accounts *accounts)
{
	accounts->is_fresh = see_process(accounts);
	accounts->is_over = true;
}

void perf_accounts_end(struct perf_accounts *accounts, const struct perf_records *records,
	uint64_t end_ns, const struct perf_count *count)
{
	static const struct target_cpu_time none = {0};
	if (!accounts->is_over) {
		accounts->is_fresh = see_process(accounts);
	}
	if (accounts->is_fresh && records->withheld_ns > 0) {
		learn_withheld(accounts, records, count->cpu_ns);
	}
	uint64_t withheld_ns = (uint64_t)(accounts->withheld_share * (double)records->withheld_ns);
	if (withheld_ns > 0) {
		records->sink.throttled(records->sink.context, end_ns, withheld_ns);
	}
	look_at_threads(accounts, records, end_ns, PERF_ACCOUNTS_END_THREADS);
	/* The look may be some milliseconds old: its division stands for the whole. */
	struct target_cpu_time all = accounts->latest, divided;
	all.total_ns = count->cpu_ns + withheld_ns;
	divided = target_cpu_time_between(&none, &all);
	tell(accounts, records, end_ns, 0, &divided);
}
