#ifndef TARGETS_GPU_SCENE_H
#define TARGETS_GPU_SCENE_H

#include <vulkan/vulkan.h>

#include "gpu/options.h"

/* What gpu_frames.c computes and draws with, from the instance to the pipelines. One at a time. */

#define NUMBERS 1024
#define SIDE    64 /* of the picture, in pixels */

struct memory {
	VkBuffer buffer;
	VkDeviceMemory memory;
	void *mapped;
};

struct scene {
	VkInstance instance;
	VkPhysicalDevice physical;
	VkDevice device;
	VkQueue queue;
	VkCommandPool commands;
	VkCommandBuffer buffer;
	VkFence fence;
	struct memory numbers, pixels;
	VkDescriptorSetLayout set_layout;
	VkDescriptorPool sets;
	VkDescriptorSet set;
	VkPipelineLayout layout;
	VkPipeline fill, triangle;
	VkImage image;
	VkDeviceMemory image_memory;
	VkImageView view;
	VkRenderPass pass;
	VkFramebuffer framebuffer;
	PFN_vkCmdBeginDebugUtilsLabelEXT begin_label;
	PFN_vkCmdEndDebugUtilsLabelEXT end_label;
	PFN_vkQueueSubmit2 submit2;
};

extern struct scene gpu;

/* As the options want it, anew. Ends the program with 2 where that fails. */
void scene_make(const struct options *options);
void scene_destroy(void);

#endif
