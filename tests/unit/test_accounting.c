#include "analyzer/model/accounting.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/recorded.h"

enum { TEXT_CPU = 1, TEXT_NAME };

#define PERIOD  1000000ull
#define MS      1000000ull
#define ALLOWED ((struct accounting_terms){.kernel_sampled = true, .cpus = 2})
#define DENIED  ((struct accounting_terms){.kernel_sampled = false, .cpus = 2})

struct fixture {
	struct recorded journal;
	struct strings *strings;
	struct model *model;
	struct accounting accounting;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	fixture->strings = strings_create();
	recorded_begin(&fixture->journal);
	recorded_metric(&fixture->journal, 1, TEXT_CPU, PERIOD);
	recorded_text(&fixture->journal, TEXT_NAME, "name");
	recorded_process(&fixture->journal, 10, 1, TEXT_NAME);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	accounting_finish(&fixture->accounting);
	model_destroy(fixture->model);
	strings_destroy(fixture->strings);
	recorded_finish(&fixture->journal);
	free(fixture);
	return 0;
}

static void born(struct fixture *fixture, uint64_t tid, uint64_t time_ns)
{
	recorded_add(&fixture->journal,
		&(struct journal_record){.type = JOURNAL_THREAD, .thread = {time_ns, 10, tid, TEXT_NAME}});
}

static void ended(struct fixture *fixture, uint64_t tid, uint64_t time_ns)
{
	recorded_add(&fixture->journal,
		&(struct journal_record){.type = JOURNAL_THREAD_END, .thread_end = {time_ns, tid}});
}

/* tid 0: the process. */
static void told(
	struct fixture *fixture, uint64_t tid, uint64_t time_ns, uint64_t user_ns, uint64_t system_ns)
{
	recorded_add(&fixture->journal,
		&(struct journal_record){.type = JOURNAL_CPU_TIME,
			.cpu_time = {time_ns, 10, tid, user_ns + system_ns, user_ns, system_ns}});
}

static void lost(
	struct fixture *fixture, enum journal_loss cause, uint64_t count, uint64_t withheld_ns)
{
	recorded_add(&fixture->journal,
		&(struct journal_record){.type = JOURNAL_LOSS, .loss = {1, cause, count, 0, withheld_ns}});
}

static const struct accounting *settled(struct fixture *fixture, struct accounting_terms terms)
{
	recorded_add(&fixture->journal,
		&(struct journal_record){.type = JOURNAL_END, .end = {1000 * MS, 0, 0, 0}});
	recorded_seal(&fixture->journal);
	fixture->model = model_create(
		fixture->strings, fixture->journal.bytes.data, fixture->journal.bytes.len, NULL);
	assert_non_null(fixture->model);
	assert_int_equal(fixture->model->contradictions, 0);
	assert_true(accounting_init(&fixture->accounting, fixture->model, &terms));
	const struct accounting *all = &fixture->accounting;

	if (all->whole.is_told) { /* whatever else is true */
		assert_int_equal((int64_t)all->whole.expected,
			(int64_t)(all->whole.count + all->lost + all->throttled + all->whole.not_permitted +
					  all->whole.too_short) +
				all->whole.unexplained);
	}
	for (size_t i = 0; i < fixture->model->threads.len; i++) {
		const struct accounting_row *row = &all->threads[i];

		assert_int_equal(row->count, fixture->model->threads.items[i].samples);
		if (row->is_told) {
			assert_int_equal((int64_t)row->expected,
				(int64_t)(row->count + row->not_permitted + row->too_short) + row->unexplained);
		}
	}
	return all;
}

static void knows_every_cause_of_a_missing_sample(void **state)
{
	struct fixture *fixture = *state;

	born(fixture, 10, 1);
	recorded_samples(&fixture->journal, 10, 0, 500);
	lost(fixture, JOURNAL_LOSS_RING, 30, 0);
	lost(fixture, JOURNAL_LOSS_DISK, 10, 0);
	lost(fixture, JOURNAL_LOSS_THROTTLED, 7, 0);
	lost(fixture, JOURNAL_LOSS_THROTTLED, 0, 60 * MS);
	told(fixture, 0, 1000 * MS, 600 * MS, 400 * MS);
	const struct accounting *all = settled(fixture, DENIED);

	assert_int_equal(all->whole.expected, 1000);
	assert_int_equal(all->lost, 40);
	assert_int_equal(all->throttled, 60);
	assert_int_equal(all->whole.not_permitted, 400);
	assert_int_equal(all->whole.too_short, 0);
	assert_int_equal(all->whole.unexplained, 0);
	assert_int_equal(all->unseen_threads, 0);
	assert_false(all->is_division_unknown);
}

/* One thread loses a period on each of two processors at most: more has another reason. */
static void says_openly_what_has_no_reason(void **state)
{
	struct fixture *fixture = *state;

	born(fixture, 10, 1);
	recorded_samples(&fixture->journal, 10, 0, 950);
	told(fixture, 0, 1000 * MS, 600 * MS, 400 * MS);
	const struct accounting *all = settled(fixture, ALLOWED);

	assert_int_equal(all->whole.not_permitted, 0);
	assert_int_equal(all->whole.too_short, 2);
	assert_int_equal(all->whole.unexplained, 48);
	assert_int_equal(all->threads[0].cpu_ns, 1000 * MS); /* it is the only one */
	assert_int_equal(all->threads[0].unexplained, 48);
}

static void says_openly_that_there_are_too_many(void **state)
{
	struct fixture *fixture = *state;

	born(fixture, 10, 1);
	recorded_samples(&fixture->journal, 10, 0, 1050);
	told(fixture, 0, 1000 * MS, 1000 * MS, 0);
	const struct accounting *all = settled(fixture, DENIED);

	assert_int_equal(all->whole.too_short, 0);
	assert_int_equal(all->whole.unexplained, -50);
}

/* 100 threads of half a period each, which nobody has looked at, beside one that computes. */
static void finds_the_time_of_threads_that_were_too_short(void **state)
{
	struct fixture *fixture = *state;

	born(fixture, 10, 1);
	recorded_samples(&fixture->journal, 10, 0, 500);
	for (uint64_t i = 0; i < 100; i++) {
		born(fixture, 100 + i, 500 * MS + i * MS);
		ended(fixture, 100 + i, 500 * MS + i * MS + PERIOD / 2);
	}
	told(fixture, 10, 999 * MS, 500 * MS, 0);
	told(fixture, 0, 1000 * MS, 550 * MS, 0);
	const struct accounting *all = settled(fixture, ALLOWED);

	assert_int_equal(all->whole.expected, 550);
	assert_int_equal(all->whole.too_short, 50);
	assert_int_equal(all->whole.unexplained, 0);
	assert_int_equal(all->unseen_threads, 100);
	assert_int_equal(all->threads[0].expected, 500);
	assert_false(all->threads[1].is_told);
}

/* They cannot have consumed more than they lived. */
static void does_not_blame_short_threads_for_more_than_their_lives(void **state)
{
	struct fixture *fixture = *state;

	born(fixture, 10, 1);
	recorded_samples(&fixture->journal, 10, 0, 500);
	for (uint64_t i = 0; i < 100; i++) {
		born(fixture, 100 + i, 500 * MS);
		ended(fixture, 100 + i, 500 * MS + PERIOD / 10);
	}
	told(fixture, 10, 1000 * MS, 500 * MS, 0);
	told(fixture, 0, 1000 * MS, 550 * MS, 0);
	const struct accounting *all = settled(fixture, ALLOWED);

	assert_int_equal(all->whole.too_short, 10 + 2); /* two of the long one's periods */
	assert_int_equal(all->whole.unexplained, 38);
}

/* What its process consumed behind the last look at its threads is theirs as their samples are, and no more than there is. */
static void estimates_what_came_behind_the_last_look(void **state)
{
	struct fixture *fixture = *state;

	born(fixture, 10, 1);
	born(fixture, 11, 2);
	recorded_samples(&fixture->journal, 10, 0, 100);
	recorded_samples(&fixture->journal, 11, 0, 200);
	told(fixture, 10, 300 * MS, 90 * MS, 10 * MS);
	told(fixture, 11, 300 * MS, 200 * MS, 0);
	recorded_samples(&fixture->journal, 10, 0, 20);
	recorded_samples(&fixture->journal, 11, 0, 60);
	told(fixture, 0, 1000 * MS, 330 * MS, 10 * MS);
	const struct accounting *all = settled(fixture, ALLOWED);

	assert_int_equal(all->whole.expected, 340);
	assert_int_equal(all->whole.estimated_ns, 0);
	assert_int_equal(all->whole.unexplained, -40);
	assert_int_equal(all->threads[0].estimated_ns, 10 * MS); /* 20 of 80, of 40 ms */
	assert_int_equal(all->threads[0].cpu_ns, 110 * MS);
	assert_int_equal(all->threads[1].estimated_ns, 30 * MS);
	assert_int_equal(all->threads[1].cpu_ns, 230 * MS);
	assert_int_equal(all->threads[0].cpu_system_ns, 10 * MS);
}

static void gives_each_thread_its_own_time_in_the_kernel(void **state)
{
	struct fixture *fixture = *state;

	born(fixture, 10, 1);
	born(fixture, 11, 2);
	recorded_samples(&fixture->journal, 10, 0, 100);
	recorded_samples(&fixture->journal, 11, 0, 10);
	told(fixture, 10, 1000 * MS, 100 * MS, 0);
	told(fixture, 11, 1000 * MS, 10 * MS, 190 * MS);
	told(fixture, 0, 1000 * MS, 110 * MS, 190 * MS);
	const struct accounting *all = settled(fixture, DENIED);

	assert_int_equal(all->whole.not_permitted, 190);
	assert_int_equal(all->whole.unexplained, 0);
	assert_int_equal(all->threads[0].not_permitted, 0);
	assert_int_equal(all->threads[1].expected, 200);
	assert_int_equal(all->threads[1].not_permitted, 190);
}

static void takes_the_division_from_elsewhere_or_says_that_it_is_unknown(void **state)
{
	struct fixture *fixture = *state;
	struct accounting_terms terms = DENIED;
	const struct journal_cpu_time time = {1000 * MS, 10, 0, 400 * MS, 0, 0};

	terms.user_ns = 30 * MS;
	terms.system_ns = 90 * MS;
	born(fixture, 10, 1);
	recorded_samples(&fixture->journal, 10, 0, 100);
	recorded_add(
		&fixture->journal, &(struct journal_record){.type = JOURNAL_CPU_TIME, .cpu_time = time});
	const struct accounting *all = settled(fixture, terms);

	assert_int_equal(all->whole.not_permitted, 300);
	assert_false(all->is_division_unknown);
	accounting_finish(&fixture->accounting);
	assert_true(accounting_init(&fixture->accounting, fixture->model, &DENIED));
	assert_int_equal(all->whole.not_permitted, 0);
	assert_int_equal(all->whole.unexplained, 298);
	assert_true(all->is_division_unknown);
}

/* Of a daemon that was killed: the last look came before the last samples. */
static void goes_on_from_the_last_look_at_the_process(void **state)
{
	struct fixture *fixture = *state;

	born(fixture, 10, 1);
	recorded_samples(&fixture->journal, 10, 0, 250);
	told(fixture, 0, 250 * MS, 250 * MS, 0);
	recorded_samples(&fixture->journal, 10, 0, 100);
	const struct accounting *all = settled(fixture, ALLOWED);

	assert_int_equal(all->whole.expected, 350);
	assert_int_equal(all->whole.estimated_ns, 100 * MS);
	assert_int_equal(all->whole.cpu_ns, 350 * MS);
	assert_int_equal(all->whole.unexplained, 0);
	assert_int_equal(all->threads[0].cpu_ns, 350 * MS);
}

static void expects_nothing_without_the_kernels_word(void **state)
{
	struct fixture *fixture = *state;

	born(fixture, 10, 1);
	recorded_samples(&fixture->journal, 10, 0, 250);
	lost(fixture, JOURNAL_LOSS_RING, 3, 0);
	const struct accounting *all = settled(fixture, ALLOWED);

	assert_false(all->whole.is_told);
	assert_int_equal(all->whole.count, 250);
	assert_int_equal(all->lost, 3);
}

/* A hostile journal: every number as large as it can be. */
static void adds_up_whatever_the_numbers_are(void **state)
{
	struct fixture *fixture = *state;
	const struct journal_cpu_time time = {1, 10, 0, UINT64_MAX, UINT64_MAX, UINT64_MAX};

	recorded_metric(&fixture->journal, 1, TEXT_CPU, 1);
	born(fixture, 10, INT64_MAX);
	recorded_samples(&fixture->journal, 10, 0, 3);
	recorded_samples(&fixture->journal, 99, 0, 2); /* whose process nobody knows */
	lost(fixture, JOURNAL_LOSS_RING, UINT64_MAX, 0);
	lost(fixture, JOURNAL_LOSS_THROTTLED, UINT64_MAX, UINT64_MAX);
	recorded_add(
		&fixture->journal, &(struct journal_record){.type = JOURNAL_CPU_TIME, .cpu_time = time});
	const struct accounting *all = settled(fixture, DENIED);

	assert_true(all->whole.is_told);
	assert_true(llabs(all->whole.unexplained) < 1ll << 53);
	assert_int_equal(all->threads[1].count, 2);
	assert_false(all->threads[1].is_told);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(knows_every_cause_of_a_missing_sample),
		CASE(says_openly_what_has_no_reason),
		CASE(says_openly_that_there_are_too_many),
		CASE(finds_the_time_of_threads_that_were_too_short),
		CASE(does_not_blame_short_threads_for_more_than_their_lives),
		CASE(estimates_what_came_behind_the_last_look),
		CASE(gives_each_thread_its_own_time_in_the_kernel),
		CASE(takes_the_division_from_elsewhere_or_says_that_it_is_unknown),
		CASE(goes_on_from_the_last_look_at_the_process),
		CASE(expects_nothing_without_the_kernels_word),
		CASE(adds_up_whatever_the_numbers_are),
	};

	return cmocka_run_group_tests_name("accounting", tests, NULL, NULL);
}
