#include "gpu/layer/queue.h"

#include <stddef.h>

#include "gpu/layer/chain.h"
#include "gpu/layer/semaphores.h"
#include "gpu/layer/session.h"

/* The command buffers of one call, whichever of Vulkan's two forms it has. */
struct batch {
	const struct layer_device *device;
	uint32_t count;
	const VkSubmitInfo *infos;
	const VkSubmitInfo2 *infos2; /* when infos is NULL */
};

static uint32_t buffers_in(const struct batch *batch, uint32_t info)
{
	return batch->infos != NULL ? batch->infos[info].commandBufferCount
								: batch->infos2[info].commandBufferInfoCount;
}

static VkCommandBuffer buffer_at(const struct batch *batch, uint32_t info, uint32_t index)
{
	return batch->infos != NULL ? batch->infos[info].pCommandBuffers[index]
								: batch->infos2[info].pCommandBufferInfos[index].commandBuffer;
}

static bool has_buffers(const struct batch *batch)
{
	uint32_t info = 0;
	while (info < batch->count && buffers_in(batch, info) == 0) {
		info++;
	}
	return info < batch->count;
}

static bool has_label(const void *context, const char *prefix)
{
	const struct batch *batch = context;
	struct labels *labels = batch->device->labels;
	for (uint32_t info = 0; labels != NULL && info < batch->count; info++) {
		for (uint32_t i = 0; i < buffers_in(batch, info); i++) {
			if (labels_match(labels, buffer_at(batch, info, i), prefix)) {
				return true;
			}
		}
	}
	return false;
}

static void note_shaders(const void *context)
{
	const struct batch *batch = context;
	const struct layer_device *device = batch->device;
	for (uint32_t info = 0; device->shaders != NULL && info < batch->count; info++) {
		for (uint32_t i = 0; i < buffers_in(batch, info); i++) {
			shaders_used(device->shaders, device->key, buffer_at(batch, info, i));
		}
	}
}

/* False: the call is nothing to the session; then nothing follows it. batch NULL: it has no command buffers. */
static bool begin(
	struct layer_device *device, const struct batch *batch, struct session_submit *submit)
{
	bool is_frame = batch != NULL && has_buffers(batch);
	if (!session_is_open() || (!is_frame && !semaphores_matter(device))) {
		return false;
	}
	*submit = (struct session_submit){
		.is_frame = is_frame,
		.counts = &device->counts,
		.instance = device->instance_key,
		.has_label = has_label,
		.note_shaders = note_shaders,
		.submit = batch,
	};
	session_before_submit(submit);
	return true;
}

VKAPI_ATTR VkResult VKAPI_CALL queue_submit(
	VkQueue queue, uint32_t count, const VkSubmitInfo *infos, VkFence fence)
{
	struct layer_device *device = chain_device(queue);
	struct session_submit submit;
	struct batch batch = {.device = device, .count = count, .infos = infos};
	bool is_told = begin(device, &batch, &submit);
	VkResult result = device->submit(queue, count, infos, fence);
	if (is_told && result == VK_SUCCESS && semaphores_matter(device)) {
		semaphores_submitted(device, queue, count, infos);
	}
	if (is_told) {
		session_after_submit(&submit);
	}
	return result;
}

static VkResult pass_submit2(PFN_vkQueueSubmit2 pass, struct layer_device *device, VkQueue queue,
	uint32_t count, const VkSubmitInfo2 *infos, VkFence fence)
{
	struct session_submit submit;
	struct batch batch = {.device = device, .count = count, .infos2 = infos};
	bool is_told = begin(device, &batch, &submit);
	VkResult result = pass(queue, count, infos, fence);
	if (is_told && result == VK_SUCCESS && semaphores_matter(device)) {
		semaphores_submitted2(device, queue, count, infos);
	}
	if (is_told) {
		session_after_submit(&submit);
	}
	return result;
}

VKAPI_ATTR VkResult VKAPI_CALL queue_bind_sparse(
	VkQueue queue, uint32_t count, const VkBindSparseInfo *infos, VkFence fence)
{
	struct layer_device *device = chain_device(queue);
	struct session_submit submit;
	bool is_told = begin(device, NULL, &submit);
	VkResult result = device->bind_sparse(queue, count, infos, fence);
	if (is_told && result == VK_SUCCESS) {
		semaphores_bound(device, queue, count, infos);
	}
	if (is_told) {
		session_after_submit(&submit);
	}
	return result;
}

VKAPI_ATTR VkResult VKAPI_CALL queue_submit2(
	VkQueue queue, uint32_t count, const VkSubmitInfo2 *infos, VkFence fence)
{
	struct layer_device *device = chain_device(queue);
	return pass_submit2(device->submit2, device, queue, count, infos, fence);
}

VKAPI_ATTR VkResult VKAPI_CALL queue_submit2_khr(
	VkQueue queue, uint32_t count, const VkSubmitInfo2 *infos, VkFence fence)
{
	struct layer_device *device = chain_device(queue);
	return pass_submit2(device->submit2_khr, device, queue, count, infos, fence);
}

VKAPI_ATTR VkResult VKAPI_CALL queue_present(VkQueue queue, const VkPresentInfoKHR *info)
{
	struct layer_device *device = chain_device(queue);
	if (session_is_open()) {
		session_before_present(&device->counts, device->instance_key);
	}
	VkResult result = device->present(queue, info);
	if (session_is_open()) {
		session_after_present(&device->counts, device->instance_key);
	}
	swapchains_presented(device, info);
	return result;
}
