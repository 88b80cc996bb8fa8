#include "gpu/layer/semaphores.h"

#include <stddef.h>

#include "gpu/layer/session.h"
#include "gpu/layer/structures.h"
#include "gpu/layer/timelines.h"

/* A handle is a pointer or, on 32 bits, a number. */
#define HANDLE(handle) ((uint64_t)(handle))

/* What may be exported, others may signal. */
static bool is_ours(const VkSemaphoreCreateInfo *info)
{
	const VkExportSemaphoreCreateInfo *exported =
		structures_find(info->pNext, VK_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO);
	return exported == NULL || exported->handleTypes == 0;
}

VKAPI_ATTR VkResult VKAPI_CALL semaphores_create(VkDevice handle, const VkSemaphoreCreateInfo *info,
	const VkAllocationCallbacks *allocator, VkSemaphore *semaphore)
{
	struct layer_device *device = chain_device(handle);
	const VkSemaphoreTypeCreateInfo *type =
		structures_find(info->pNext, VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
	VkResult result = device->create_semaphore(handle, info, allocator, semaphore);
	if (result == VK_SUCCESS && device->timelines != NULL && type != NULL &&
		type->semaphoreType == VK_SEMAPHORE_TYPE_TIMELINE && is_ours(info)) {
		timelines_add(device->timelines, HANDLE(*semaphore), type->initialValue);
	}
	return result;
}

/* Before the handle may be another's. */
static void forget(const struct layer_device *device, VkSemaphore semaphore)
{
	if (semaphores_matter(device)) {
		timelines_forget(device->timelines, HANDLE(semaphore));
	}
}

VKAPI_ATTR void VKAPI_CALL semaphores_destroy(
	VkDevice handle, VkSemaphore semaphore, const VkAllocationCallbacks *allocator)
{
	struct layer_device *device = chain_device(handle);
	forget(device, semaphore);
	device->destroy_semaphore(handle, semaphore, allocator);
}

static VkResult pass_signal(PFN_vkSignalSemaphore pass, struct layer_device *device,
	VkDevice handle, const VkSemaphoreSignalInfo *info)
{
	VkResult result = pass(handle, info);
	if (result == VK_SUCCESS && semaphores_matter(device) &&
		timelines_signalled(device->timelines, HANDLE(info->semaphore), info->value)) {
		session_released(&device->counts);
	}
	return result;
}

VKAPI_ATTR VkResult VKAPI_CALL semaphores_signal(VkDevice handle, const VkSemaphoreSignalInfo *info)
{
	struct layer_device *device = chain_device(handle);
	return pass_signal(device->signal, device, handle, info);
}

VKAPI_ATTR VkResult VKAPI_CALL semaphores_signal_khr(
	VkDevice handle, const VkSemaphoreSignalInfo *info)
{
	struct layer_device *device = chain_device(handle);
	return pass_signal(device->signal_khr, device, handle, info);
}

VKAPI_ATTR VkResult VKAPI_CALL semaphores_import_fd(
	VkDevice handle, const VkImportSemaphoreFdInfoKHR *info)
{
	struct layer_device *device = chain_device(handle);
	VkResult result = device->import_fd(handle, info);
	if (result == VK_SUCCESS) {
		forget(device, info->semaphore);
	}
	return result;
}

bool semaphores_matter(const struct layer_device *device)
{
	return device->timelines != NULL && timelines_are_used(device->timelines);
}

/* A batch's semaphores in the older form, whose values are in its chain. Those of timelines alone have any. */
struct batch {
	const void *chain;
	uint32_t wait_count, signal_count;
	const VkSemaphore *waits, *signals;
};

static void tell_batch(struct timelines *timelines, VkQueue queue, const struct batch *batch)
{
	const VkTimelineSemaphoreSubmitInfo none = {0}, *values;
	values = structures_find(batch->chain, VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO);
	values = values != NULL ? values : &none;
	timelines_begin(timelines, queue);
	for (uint32_t i = 0; i < batch->wait_count && i < values->waitSemaphoreValueCount; i++) {
		timelines_wait(timelines, HANDLE(batch->waits[i]), values->pWaitSemaphoreValues[i]);
	}
	for (uint32_t i = 0; i < batch->signal_count && i < values->signalSemaphoreValueCount; i++) {
		timelines_signal(timelines, HANDLE(batch->signals[i]), values->pSignalSemaphoreValues[i]);
	}
	timelines_end(timelines);
}

void semaphores_submitted(
	const struct layer_device *device, VkQueue queue, uint32_t count, const VkSubmitInfo *infos)
{
	for (uint32_t i = 0; i < count; i++) {
		struct batch batch = {infos[i].pNext, infos[i].waitSemaphoreCount,
			infos[i].signalSemaphoreCount, infos[i].pWaitSemaphores, infos[i].pSignalSemaphores};
		tell_batch(device->timelines, queue, &batch);
	}
}

void semaphores_bound(
	const struct layer_device *device, VkQueue queue, uint32_t count, const VkBindSparseInfo *infos)
{
	for (uint32_t i = 0; i < count; i++) {
		struct batch batch = {infos[i].pNext, infos[i].waitSemaphoreCount,
			infos[i].signalSemaphoreCount, infos[i].pWaitSemaphores, infos[i].pSignalSemaphores};
		tell_batch(device->timelines, queue, &batch);
	}
}

void semaphores_submitted2(
	const struct layer_device *device, VkQueue queue, uint32_t count, const VkSubmitInfo2 *infos)
{
	for (uint32_t i = 0; i < count; i++) {
		const VkSubmitInfo2 *info = &infos[i];
		timelines_begin(device->timelines, queue);
		for (uint32_t j = 0; j < info->waitSemaphoreInfoCount; j++) {
			timelines_wait(device->timelines, HANDLE(info->pWaitSemaphoreInfos[j].semaphore),
				info->pWaitSemaphoreInfos[j].value);
		}
		for (uint32_t j = 0; j < info->signalSemaphoreInfoCount; j++) {
			timelines_signal(device->timelines, HANDLE(info->pSignalSemaphoreInfos[j].semaphore),
				info->pSignalSemaphoreInfos[j].value);
		}
		timelines_end(device->timelines);
	}
}
