#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gpu/layer/semaphores.h"

/* The driver is these functions, and a dispatchable handle what begins with its dispatch table. A queue and its device have the same. */
static int table;
static struct {
	void *key;
} made = {&table};
#define DEVICE ((VkDevice)(void *)&made)
#define QUEUE  ((VkQueue)(void *)&made)

static struct layer_device device;
static VkResult answer; /* the driver's */
static uint64_t next_handle, destroyed;
static unsigned released;

/* In the session's place. */
void session_released(struct frame_counts *counts)
{
	assert_ptr_equal(counts, &device.counts);
	released++;
}

static VkSemaphore semaphore(uint64_t handle)
{
	return (VkSemaphore)handle;
}

static VKAPI_ATTR VkResult VKAPI_CALL create(VkDevice handle, const VkSemaphoreCreateInfo *info,
	const VkAllocationCallbacks *allocator, VkSemaphore *out)
{
	assert_ptr_equal(handle, DEVICE);
	(void)info, (void)allocator;
	*out = semaphore(++next_handle);
	return answer;
}

static VKAPI_ATTR void VKAPI_CALL destroy(
	VkDevice handle, VkSemaphore gone, const VkAllocationCallbacks *allocator)
{
	assert_ptr_equal(handle, DEVICE);
	(void)allocator;
	destroyed = (uint64_t)gone;
}

static VKAPI_ATTR VkResult VKAPI_CALL signal_it(VkDevice handle, const VkSemaphoreSignalInfo *info)
{
	assert_ptr_equal(handle, DEVICE);
	assert_non_null(info);
	return answer;
}

static VKAPI_ATTR VkResult VKAPI_CALL import_it(
	VkDevice handle, const VkImportSemaphoreFdInfoKHR *info)
{
	assert_ptr_equal(handle, DEVICE);
	assert_non_null(info);
	return answer;
}

static int set_up(void **state)
{
	(void)state;
	device = (struct layer_device){.key = &table,
		.create_semaphore = create,
		.destroy_semaphore = destroy,
		.signal = signal_it,
		.signal_khr = signal_it,
		.import_fd = import_it,
		.timelines = timelines_create()};
	answer = VK_SUCCESS;
	released = 0;
	next_handle = destroyed = 0;
	chain_add_device(&device);
	return device.timelines == NULL;
}

static int tear_down(void **state)
{
	(void)state;
	chain_remove_device(&device);
	timelines_destroy(device.timelines);
	return 0;
}

/* A timeline semaphore at 10, which may be exported. */
static VkSemaphore make(bool is_exported)
{
	VkExportSemaphoreCreateInfo exported = {.sType = VK_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO,
		.handleTypes = is_exported ? VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT : 0};
	VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
		.pNext = &exported,
		.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE,
		.initialValue = 10};
	VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
	VkSemaphore out = VK_NULL_HANDLE;
	assert_int_equal(semaphores_create(DEVICE, &info, NULL, &out), answer);
	return out;
}

/* The value that is waited for; 0: none. */
static uint64_t held(void)
{
	struct timelines_hold hold = {0};
	return timelines_hold(device.timelines, &hold) ? hold.value : 0;
}

/* A submit of the older form: a binary semaphore, which has no value of meaning, and then the timeline. */
static void submit(VkSemaphore timeline, uint64_t wait, uint64_t signal, bool is_sparse)
{
	VkSemaphore waits[] = {semaphore(900), timeline}, signals[] = {timeline, semaphore(901)};
	uint64_t wait_values[] = {77, wait}, signal_values[] = {signal};
	VkBaseInStructure other = {.sType = VK_STRUCTURE_TYPE_DEVICE_GROUP_SUBMIT_INFO};
	VkTimelineSemaphoreSubmitInfo values = {
		.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
		.waitSemaphoreValueCount = 2,
		.pWaitSemaphoreValues = wait_values,
		.signalSemaphoreValueCount = 1,
		.pSignalSemaphoreValues = signal_values};
	other.pNext = (const VkBaseInStructure *)&values;
	VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
		.pNext = &other,
		.waitSemaphoreCount = wait > 0 ? 2 : 1,
		.pWaitSemaphores = waits,
		.signalSemaphoreCount = signal > 0 ? 2 : 0,
		.pSignalSemaphores = signals};
	VkBindSparseInfo sparse = {.sType = VK_STRUCTURE_TYPE_BIND_SPARSE_INFO,
		.pNext = &other,
		.waitSemaphoreCount = info.waitSemaphoreCount,
		.pWaitSemaphores = waits,
		.signalSemaphoreCount = info.signalSemaphoreCount,
		.pSignalSemaphores = signals};
	VkSubmitInfo without = {
		.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .waitSemaphoreCount = 2, .pWaitSemaphores = waits};
	VkSubmitInfo infos[] = {without, info};
	if (is_sparse) {
		semaphores_bound(&device, QUEUE, 1, &sparse);
	} else {
		semaphores_submitted(&device, QUEUE, 2, infos);
	}
}

static void submit2(VkSemaphore timeline, uint64_t wait, uint64_t signal)
{
	VkSemaphoreSubmitInfo waits[] = {{.semaphore = semaphore(900), .value = 77},
		{.semaphore = timeline, .value = wait}},
						  signals[] = {{.semaphore = timeline, .value = signal}};
	VkSubmitInfo2 infos[] = {{.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2,
		.waitSemaphoreInfoCount = wait > 0 ? 2 : 1,
		.pWaitSemaphoreInfos = waits,
		.signalSemaphoreInfoCount = signal > 0,
		.pSignalSemaphoreInfos = signals}};
	semaphores_submitted2(&device, QUEUE, 1, infos);
}

static VkResult signal_host(VkSemaphore timeline, uint64_t value, bool is_khr)
{
	VkSemaphoreSignalInfo info = {
		.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO, .semaphore = timeline, .value = value};
	return (is_khr ? semaphores_signal_khr : semaphores_signal)(DEVICE, &info);
}

static void each_form_of_a_submit_is_understood(void **state)
{
	(void)state;
	VkSemaphore timeline = make(false);
	assert_true(semaphores_matter(&device));
	submit(timeline, 10, 11, false);
	submit(timeline, 11, 12, true);
	submit2(timeline, 12, 13);
	assert_int_equal(held(), 0);
	for (uint64_t value = 14; value < 20; value += 3) {
		submit(timeline, value, 0, false);
		assert_int_equal(held(), value);
		signal_host(timeline, value, false);
		submit(timeline, value + 1, 0, true);
		assert_int_equal(held(), value + 1);
		signal_host(timeline, value + 1, true);
		submit2(timeline, value + 2, 0);
		assert_int_equal(held(), value + 2);
		signal_host(timeline, value + 2, false);
		assert_int_equal(held(), 0);
	}
	assert_int_equal(released, 6);
	signal_host(timeline, 30, false);
	assert_int_equal(released, 6);
}

static void calls_that_fail_change_nothing(void **state)
{
	(void)state;
	answer = VK_ERROR_OUT_OF_DEVICE_MEMORY;
	make(false);
	assert_false(semaphores_matter(&device));
	answer = VK_SUCCESS;
	VkSemaphore timeline = make(false);
	submit(timeline, 20, 0, false);
	answer = VK_ERROR_OUT_OF_DEVICE_MEMORY;
	assert_int_equal(signal_host(timeline, 20, false), answer);
	VkImportSemaphoreFdInfoKHR import = {.semaphore = timeline};
	assert_int_equal(semaphores_import_fd(DEVICE, &import), answer);
	assert_int_equal(held(), 20);
	assert_int_equal(released, 0);
}

static void what_others_may_signal_is_not_waited_for(void **state)
{
	(void)state;
	VkSemaphoreCreateInfo binary = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO};
	VkSemaphore out, exported = make(true);
	assert_int_equal(semaphores_create(DEVICE, &binary, NULL, &out), VK_SUCCESS);
	assert_false(semaphores_matter(&device));
	VkSemaphore timeline = make(false);
	submit(exported, 20, 0, false);
	submit(out, 20, 0, false);
	assert_int_equal(held(), 0);
	submit(timeline, 20, 0, false);
	assert_int_equal(held(), 20);
	VkImportSemaphoreFdInfoKHR import = {.semaphore = timeline};
	assert_int_equal(semaphores_import_fd(DEVICE, &import), VK_SUCCESS);
	assert_int_equal(held(), 0);
}

static void what_is_destroyed_is_forgotten(void **state)
{
	(void)state;
	VkSemaphore timeline = make(false);
	submit(timeline, 20, 0, false);
	semaphores_destroy(DEVICE, timeline, NULL);
	assert_int_equal(destroyed, (uint64_t)timeline);
	assert_int_equal(held(), 0);
	semaphores_destroy(DEVICE, VK_NULL_HANDLE, NULL);
}

static void nobody_who_listens_is_fine(void **state)
{
	(void)state;
	timelines_destroy(device.timelines);
	device.timelines = NULL;
	VkSemaphore timeline = make(false);
	assert_false(semaphores_matter(&device));
	assert_int_equal(signal_host(timeline, 20, true), VK_SUCCESS);
	semaphores_destroy(DEVICE, timeline, NULL);
	assert_int_equal(destroyed, (uint64_t)timeline);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_form_of_a_submit_is_understood, set_up, tear_down),
		cmocka_unit_test_setup_teardown(calls_that_fail_change_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			what_others_may_signal_is_not_waited_for, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_destroyed_is_forgotten, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nobody_who_listens_is_fine, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
