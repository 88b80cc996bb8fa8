#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "capture/stacks.h"
#include "support/pipeline_desk.h"

static void defines_each_stack_once(void **state)
{
	desk_thread(*state, 1, 100, "main");
	SAMPLE(*state, 2, 0x10, 0x20);
	SAMPLE(*state, 3, 0x10, 0x20);
	SAMPLE(*state, 4, 0x10);
	SAMPLE(*state, 5, 0x10, 0x21);
	SAMPLE(*state, 6, 0x10, 0x20);
	assert_string_equal(desk_read_back(*state),
		"s2=main\n1 thread 100/100 s2\n"
		"stack 1 of 100 end 1: 0/10 0/20\n2 sample 100 stack 1 metric 1 weight 0\n"
		"3 sample 100 stack 1 metric 1 weight 0\n"
		"stack 2 of 100 end 1: 0/10\n4 sample 100 stack 2 metric 1 weight 0\n"
		"stack 3 of 100 end 1: 0/10 0/21\n5 sample 100 stack 3 metric 1 weight 0\n"
		"6 sample 100 stack 1 metric 1 weight 0\n");
	const struct pipeline_counters *counters = pipeline_counters(((struct desk *)*state)->pipeline);
	assert_int_equal(counters->samples, 5);
	assert_int_equal(counters->stacks, 3);
	assert_int_equal(counters->threads, 1);
	assert_int_equal(counters->first_sample_ns, 2);
}

static void sample_with_kernel(
	struct desk *desk, uint64_t time_ns, size_t kernel, size_t user, bool cut)
{
	static const uint64_t kernel_frames[] = {0xffffffff81000010, 0xffffffff81000020};
	static const uint64_t user_frames[] = {0x10, 0x20};
	desk->sink.sample(desk->pipeline, &(struct sampler_sample){
										  .time_ns = time_ns,
										  .pid = 100,
										  .tid = 100,
										  .kernel_frames = kernel_frames,
										  .kernel_count = kernel,
										  .user_frames = user_frames,
										  .user_count = user,
										  .cut = cut,
									  });
}

static void leaves_the_kernel_out_when_it_is_not_wanted(void **state)
{
	desk_thread(*state, 1, 100, "main");
	sample_with_kernel(*state, 2, 2, 2, false);
	sample_with_kernel(*state, 3, 0, 2, false);
	sample_with_kernel(*state, 4, 2, 0, false);
	assert_string_equal(desk_read_back(*state),
		"s2=main\n1 thread 100/100 s2\n"
		"stack 1 of 100 end 1: 0/10 0/20\n2 sample 100 stack 1 metric 1 weight 0\n"
		"3 sample 100 stack 1 metric 1 weight 0\n"
		"4 sample 100 stack 0 metric 1 weight 0\n");
}

static void puts_the_kernel_before_the_user_when_it_is_wanted(void **state)
{
	desk_thread(*state, 1, 100, "main");
	sample_with_kernel(*state, 2, 1, 2, false);
	sample_with_kernel(*state, 3, 2, 0, false);
	sample_with_kernel(*state, 4, 0, 0, false);
	assert_string_equal(desk_read_back(*state),
		"s2=main\n1 thread 100/100 s2\n"
		"stack 1 of 100 end 1: 1/ffffffff81000010 0/10 0/20\n2 sample 100 stack 1 metric 1 weight "
		"0\n"
		"stack 2 of 100 end 5: 1/ffffffff81000010 1/ffffffff81000020\n"
		"3 sample 100 stack 2 metric 1 weight 0\n"
		"4 sample 100 stack 0 metric 1 weight 0\n");
}

static void cuts_a_stack_where_its_return_addresses_leave_the_code(void **state)
{
	struct desk *desk = *state;
	desk_thread(*state, 1, 100, "main");
	desk_map(*state, 2, 0x1000, 0x1000, 0, "/no/such/a.so");
	SAMPLE(*state, 3, 0x10, 0x1800,
		0x2000); /* the leaf may be anywhere; a call can be the last of the code */
	SAMPLE(*state, 4, 0x1010, 0x1800, 0x2001, 0x1900);
	SAMPLE(*state, 5, 0x1010, 0x1800, 0x2001, 0x1900);
	desk->sink.loss(desk->pipeline, 6, SAMPLER_LOSS_RING, 1, 0);
	SAMPLE(*state, 7, 0x1010, 0x3000); /* its mapping may be what was lost */
	const char *said = desk_read_back(*state);
	assert_non_null(strstr(said, "stack 1 of 100 end 1: 0/10 0/1800 0/2000\n"));
	assert_non_null(strstr(said, "stack 2 of 100 end 4: 0/1010 0/1800\n4 sample"));
	assert_non_null(strstr(said, "5 sample 100 stack 2 "));
	assert_non_null(strstr(said, "stack 3 of 100 end 1: 0/1010 0/3000\n"));
}

static void tells_a_cut_stack_from_a_whole_one(void **state)
{
	desk_thread(*state, 1, 100, "main");
	sample_with_kernel(*state, 2, 0, 2, true);
	sample_with_kernel(*state, 3, 0, 2, false);
	assert_string_equal(desk_read_back(*state),
		"s2=main\n1 thread 100/100 s2\n"
		"stack 1 of 100 end 2: 0/10 0/20\n2 sample 100 stack 1 metric 1 weight 0\n"
		"stack 2 of 100 end 1: 0/10 0/20\n3 sample 100 stack 2 metric 1 weight 0\n");
	assert_int_equal(pipeline_counters(((struct desk *)*state)->pipeline)->truncated, 1);
}

static void defines_stacks_anew_when_code_was_replaced(void **state)
{
	struct desk *desk = *state;
	desk_thread(desk, 1, 100, "main");
	desk_map(desk, 2, 0x1000, 0x2000, 0, "/no/such/a.so");
	SAMPLE(desk, 3, 0x1010);
	desk_map(desk, 4, 0x1000, 0x2000, 0, "/no/such/a.so");      /* the same again */
	desk_map(desk, 4, 0x2000, 0x1000, 0x1000, "/no/such/a.so"); /* a part of it */
	desk_map(desk, 4, 0x3000, 0x1000, 0, "/no/such/b.so");      /* behind it */
	SAMPLE(desk, 5, 0x1010);
	desk_map(desk, 6, 0x2fff, 1, 0, "/no/such/b.so"); /* its last byte */
	SAMPLE(desk, 7, 0x1010);
	desk_map(desk, 8, 0x1000, 0x1000, 0x5000, "/no/such/a.so"); /* another part of the same file */
	SAMPLE(desk, 9, 0x1010);
	assert_string_equal(desk_read_back(desk),
		"s2=main\n1 thread 100/100 s2\n"
		"s3=/no/such/a.so\nimage 1 kind 1 s3\n2 mapping 1000+2000 @0 image 1\n"
		"stack 1 of 100 end 1: 0/1010\n3 sample 100 stack 1 metric 1 weight 0\n"
		"4 mapping 1000+2000 @0 image 1\n4 mapping 2000+1000 @1000 image 1\n"
		"s4=/no/such/b.so\nimage 2 kind 1 s4\n4 mapping 3000+1000 @0 image 2\n"
		"5 sample 100 stack 1 metric 1 weight 0\n"
		"6 mapping 2fff+1 @0 image 2\n"
		"stack 2 of 100 end 1: 0/1010\n7 sample 100 stack 2 metric 1 weight 0\n"
		"8 mapping 1000+1000 @5000 image 1\n"
		"stack 3 of 100 end 1: 0/1010\n9 sample 100 stack 3 metric 1 weight 0\n");
}

static void begins_anew_after_an_exec(void **state)
{
	struct desk *desk = *state;
	desk_thread(desk, 1, 100, "main");
	desk_map(desk, 2, 0x1000, 0x2000, 0, "/no/such/a.so");
	SAMPLE(desk, 3, 0x1010);
	desk->sink.process(desk->pipeline,
		&(struct sampler_process){
			.time_ns = 4, .pid = 100, .parent_pid = 7, .name = "next", .is_exec = true});
	desk_thread(desk, 4, 100, "next");
	SAMPLE(desk, 5, 0x1010);
	assert_non_null(strstr(desk_read_back(desk),
		"3 sample 100 stack 1 metric 1 weight 0\n"
		"s4=next\n4 process 100 of 7 s4 exec\n4 thread 100/100 s4\n"
		"stack 2 of 100 end 1: 0/1010\n5 sample 100 stack 2 metric 1 weight 0\n"));
}

static void does_not_define_stacks_anew_for_generated_code(void **state)
{
	struct desk *desk = *state;
	desk_thread(desk, 1, 100, "main");
	desk_map(desk, 2, 0x1000, 0x2000, 0, "//anon");
	desk_map(desk, 2, 0x7000, 0x1000, 0, "[vdso]");
	desk_map(desk, 2, 0x9000, 0x1000, 0, "[heap]");
	SAMPLE(desk, 3, 0x1010);
	desk_map(desk, 4, 0x1000, 0x1000, 0, "//anon"); /* protected again */
	SAMPLE(desk, 5, 0x1010);
	assert_string_equal(desk_read_back(desk),
		"s2=main\n1 thread 100/100 s2\n"
		"s3=//anon\nimage 1 kind 6 s3\n2 mapping 1000+2000 @0 image 1\n"
		"s4=[vdso]\nimage 2 kind 4 s4\n2 mapping 7000+1000 @0 image 2\n"
		"s5=[heap]\nimage 3 kind 0 s5\n2 mapping 9000+1000 @0 image 3\n"
		"stack 1 of 100 end 1: 0/1010\n3 sample 100 stack 1 metric 1 weight 0\n"
		"4 mapping 1000+1000 @0 image 1\n5 sample 100 stack 1 metric 1 weight 0\n");
}

static void never_gives_an_id_twice_when_the_table_is_full(void **state)
{
	(void)state;
	struct stacks *stacks = stacks_create();
	assert_non_null(stacks);
	const uint64_t *frames;
	uint32_t last = 0;
	for (uint64_t i = 0; i < 3 * STACKS_MAX; i++) {
		uint64_t own[2] = {i, i * i};
		struct stacks_key key = {.pid = 1, .end = 1, .user_frames = own, .user_count = 2};
		uint32_t id = stacks_id(stacks, &key, &frames);
		assert_int_equal(id, last + 1);
		assert_memory_equal(frames, own, sizeof(own));
		assert_int_equal(stacks_id(stacks, &key, &frames), id);
		assert_null(frames);
		last = id;
	}
	stacks_destroy(stacks);
	stacks_destroy(NULL);
}

static void tells_kernel_from_user_in_a_stack(void **state)
{
	(void)state;
	struct stacks *stacks = stacks_create();
	const uint64_t *frames, own[] = {1, 2, 3};
	uint32_t ids[4];
	for (size_t i = 0; i < 4; i++) {
		struct stacks_key key = {.pid = 1,
			.kernel_frames = own,
			.kernel_count = i,
			.user_frames = own + i,
			.user_count = 3 - i};
		ids[i] = stacks_id(stacks, &key, &frames);
		assert_memory_equal(frames, own, sizeof(own));
		for (size_t before = 0; before < i; before++) {
			assert_int_not_equal(ids[i], ids[before]);
		}
	}
	stacks_destroy(stacks);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, desk_set_up, desk_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(defines_each_stack_once),
		CASE(leaves_the_kernel_out_when_it_is_not_wanted),
		cmocka_unit_test_setup_teardown(puts_the_kernel_before_the_user_when_it_is_wanted,
			desk_set_up_with_kernel, desk_tear_down),
		CASE(cuts_a_stack_where_its_return_addresses_leave_the_code),
		CASE(tells_a_cut_stack_from_a_whole_one),
		CASE(defines_stacks_anew_when_code_was_replaced),
		CASE(begins_anew_after_an_exec),
		CASE(does_not_define_stacks_anew_for_generated_code),
		cmocka_unit_test(never_gives_an_id_twice_when_the_table_is_full),
		cmocka_unit_test(tells_kernel_from_user_in_a_stack),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
