#include "analyzer/model/accounting.h"

#include <stdlib.h>

/* No sum of five of these is beyond what JSON's readers keep exact (2^53). */
#define MOST_SAMPLES (1ull << 50)
/* Of the CPU time, when a sample is taken for the kernel's time around it too. */
#define LEAST_USER_SHARE 0.01

/* Of a process, in nanoseconds. Reals, because the products of a hostile journal's numbers overflow. */
struct part {
	double kernel_share; /* of its CPU time: may not be sampled */
	double left;         /* of its CPU time: no thread was told of it */
	double after;        /* what its threads' samples behind their last looks stand for */
	uint64_t threads;
};

struct sums {
	const struct model *model;
	struct accounting *accounting;
	struct part *parts; /* by index of the process */
	double period, cpus;
	bool kernel_sampled;
	double denied; /* time in the kernel that may not be sampled */
	double room;   /* what all threads may have lost by being short */
};

static double least(double a, double b)
{
	return a < b ? a : b;
}

static double most(double a, double b)
{
	return a > b ? a : b;
}

static uint64_t rounded(double value)
{
	return value <= 0 ? 0 : value >= (double)MOST_SAMPLES ? MOST_SAMPLES : (uint64_t)(value + 0.5);
}

static double share_of(uint64_t part, uint64_t other)
{
	double both = (double)part + (double)other;

	return both == 0 ? 0 : (double)part / both;
}

/* What samples behind a last look stand for: not only for the time of the user when the kernel's cannot be sampled. */
static double stand_for(const struct sums *sums, const struct part *part, uint64_t samples)
{
	return (double)samples * sums->period / most(1 - part->kernel_share, LEAST_USER_SHARE);
}

static uint64_t samples_after(const struct model_thread *thread)
{
	return thread->samples - thread->told_samples;
}

static struct part *part_of(const struct sums *sums, const struct model_thread *thread)
{
	return thread->process == MODEL_NONE ? NULL : &sums->parts[thread->process];
}

/* Processes first, before their threads have taken anything. */
static void begin_process(struct sums *sums, size_t index, const struct accounting_terms *terms)
{
	const struct model_process *process = &sums->model->processes.items[index];
	struct accounting_row *whole = &sums->accounting->whole;
	struct part *part = &sums->parts[index];
	bool is_known = process->cpu_user_ns > 0 || process->cpu_system_ns > 0;

	if (!sums->kernel_sampled) {
		part->kernel_share = is_known ? share_of(process->cpu_system_ns, process->cpu_user_ns)
									  : share_of(terms->system_ns, terms->user_ns);
		sums->accounting->is_division_unknown |=
			!is_known && process->cpu_ns > 0 && terms->user_ns == 0 && terms->system_ns == 0;
	}
	/* Of a daemon that was killed the last look came before the last samples. */
	uint64_t after = rounded(
		stand_for(sums, part, process->has_cpu ? process->samples - process->told_samples : 0));

	part->left = (double)process->cpu_ns + (double)after;
	sums->denied += part->left * part->kernel_share;
	whole->cpu_ns += process->cpu_ns + after;
	whole->estimated_ns += after;
	whole->cpu_user_ns += process->cpu_user_ns;
	whole->cpu_system_ns += process->cpu_system_ns;
}

static void gather(struct sums *sums)
{
	for (size_t i = 0; i < sums->model->threads.len; i++) {
		const struct model_thread *thread = &sums->model->threads.items[i];
		struct part *part = part_of(sums, thread);

		if (part != NULL) {
			part->left = most(part->left - (double)thread->cpu_ns, 0);
			part->after += stand_for(sums, part, samples_after(thread));
			part->threads++;
		}
	}
}

static void give_cpu_time(const struct sums *sums, const struct part *part,
	const struct model_thread *thread, struct accounting_row *row)
{
	const struct model_process *process = &sums->model->processes.items[thread->process];
	double after = stand_for(sums, part, samples_after(thread));

	row->cpu_ns = thread->cpu_ns;
	row->cpu_user_ns = thread->cpu_user_ns;
	row->cpu_system_ns = thread->cpu_system_ns;
	if (!process->has_cpu) {
		return;
	}
	if (part->threads == 1) { /* has consumed what its process has */
		row->cpu_ns = process->cpu_ns;
		row->cpu_user_ns = process->cpu_user_ns;
		row->cpu_system_ns = process->cpu_system_ns;
		after = (double)(process->samples - process->told_samples) * sums->period;
	} else if (part->after > part->left) {
		after *= part->left / part->after;
	}
	row->estimated_ns = rounded(after);
	row->cpu_ns += row->estimated_ns;
}

/* The most that a thread can have lost by being short. Since the last look at it, it has consumed no more than the time that it lived. */
static double room_of(const struct sums *sums, const struct part *part,
	const struct model_thread *thread, const struct accounting_row *row)
{
	const struct model *model = sums->model;
	uint64_t end = model->has_end ? model->end_ns : model->last_sample_ns;
	uint64_t from = thread->told_at_ns > 0 ? thread->told_at_ns : thread->begin_ns;
	double unseen;

	end = thread->end_ns != 0 ? thread->end_ns : end;
	unseen = end > from && part->threads != 1 ? (double)(end - from) : 0;
	return least(sums->cpus * sums->period, (double)row->cpu_ns + unseen);
}

/* denied and room in nanoseconds; gone: samples whose fate is known already. */
static void settle(
	const struct sums *sums, struct accounting_row *row, double denied, double room, uint64_t gone)
{
	row->is_told = true;
	row->expected = rounded((double)row->cpu_ns / sums->period);
	row->not_permitted = rounded(denied / sums->period);

	int64_t missing =
		(int64_t)row->expected - (int64_t)row->count - (int64_t)gone - (int64_t)row->not_permitted;

	row->too_short = rounded(least((double)missing, room / sums->period));
	row->unexplained = missing - (int64_t)row->too_short;
}

static double denied_of(
	const struct sums *sums, const struct part *part, const struct accounting_row *row)
{
	bool is_known = row->cpu_user_ns > 0 || row->cpu_system_ns > 0;
	double share = is_known ? share_of(row->cpu_system_ns, row->cpu_user_ns) : part->kernel_share;

	return sums->kernel_sampled ? 0 : share * (double)row->cpu_ns;
}

static void settle_thread(struct sums *sums, size_t index)
{
	const struct model_thread *thread = &sums->model->threads.items[index];
	const struct part *part = part_of(sums, thread);
	struct accounting_row *row = &sums->accounting->threads[index];

	if (part == NULL) {
		return;
	}
	give_cpu_time(sums, part, thread, row);
	sums->room += room_of(sums, part, thread, row);
	if (row->cpu_ns > 0) {
		settle(sums, row, denied_of(sums, part, row),
			least(sums->cpus * sums->period, (double)row->cpu_ns), 0);
	}
}

static void count_threads(struct accounting *accounting, const struct model *model)
{
	for (size_t i = 0; i < model->threads.len; i++) {
		accounting->threads[i].count = model->threads.items[i].samples;
		accounting->unseen_threads += model->threads.items[i].samples == 0;
	}
}

static void settle_all(struct sums *sums, const struct accounting_terms *terms)
{
	struct accounting *accounting = sums->accounting;

	for (size_t i = 0; i < sums->model->processes.len; i++) {
		begin_process(sums, i, terms);
	}
	gather(sums);
	for (size_t i = 0; i < sums->model->threads.len; i++) {
		settle_thread(sums, i);
	}
	accounting->throttled = rounded((double)sums->model->withheld_ns / sums->period);
	if (accounting->whole.cpu_ns > 0) {
		settle(sums, &accounting->whole, sums->denied, sums->room,
			accounting->lost + accounting->throttled);
	}
}

bool accounting_init(
	struct accounting *accounting, const struct model *model, const struct accounting_terms *terms)
{
	struct sums sums = {
		.model = model,
		.accounting = accounting,
		.parts = calloc(model->processes.len + 1, sizeof(*sums.parts)),
		.period = (double)model_period(model),
		.cpus = terms->cpus > 0 ? (double)terms->cpus : 1,
		.kernel_sampled = terms->kernel_sampled,
	};
	*accounting = (struct accounting){
		.threads = calloc(model->threads.len + 1, sizeof(*accounting->threads)),
		.whole.count = model_samples(model),
		.lost = rounded((double)model_lost(model)),
	};
	bool done = sums.parts != NULL && accounting->threads != NULL;

	if (done) {
		count_threads(accounting, model);
	}
	if (done && sums.period > 0 && model->metrics.items[0].unit == JOURNAL_UNIT_NANOSECONDS) {
		settle_all(&sums, terms);
	}
	free(sums.parts);
	return done;
}

void accounting_finish(struct accounting *accounting)
{
	free(accounting->threads);
	*accounting = (struct accounting){0};
}
