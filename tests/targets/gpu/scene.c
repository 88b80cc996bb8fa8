#include "gpu/scene.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/check.h"
#include "gpu/module_file.h"
#include "gpu/shaders.inc"

#define EXTENSIONS_MAX 256

struct scene gpu;

/* All that there are, or debug labels alone where they are and are wished for. */
static uint32_t choose_extensions(const struct options *options, const char **chosen)
{
	static VkExtensionProperties all[EXTENSIONS_MAX];
	uint32_t found = EXTENSIONS_MAX, count = 0;
	CHECK(vkEnumerateInstanceExtensionProperties(NULL, &found, all));
	for (uint32_t i = 0; i < found; i++) {
		bool is_labels = strcmp(all[i].extensionName, VK_EXT_DEBUG_UTILS_EXTENSION_NAME) == 0;
		if (options->every_extension || (is_labels && !options->no_labels)) {
			chosen[count++] = all[i].extensionName;
		}
	}
	return count;
}

static void make_instance(const struct options *options)
{
	const char *extensions[EXTENSIONS_MAX];
	VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
		.pApplicationName = "gpu_frames",
		.apiVersion = VK_API_VERSION_1_2};
	VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
		.pApplicationInfo = &application,
		.enabledExtensionCount = choose_extensions(options, extensions),
		.ppEnabledExtensionNames = extensions};
	CHECK(vkCreateInstance(&info, NULL, &gpu.instance));
	uint32_t count = 1;
	VkResult result = vkEnumeratePhysicalDevices(gpu.instance, &count, &gpu.physical);
	if (result < 0 || count == 0) {
		fprintf(stderr, "gpu_frames: no device\n");
		exit(2);
	}
}

/* The first family does everything on the drivers that tests run on. */
static void make_device(const struct options *options)
{
	float priority = 1;
	const char *extension = VK_KHR_SYNCHRONIZATION_2_EXTENSION_NAME;
	VkPhysicalDeviceSynchronization2Features feature = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SYNCHRONIZATION_2_FEATURES,
		.synchronization2 = VK_TRUE};
	VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
		.queueCount = 1,
		.pQueuePriorities = &priority};
	VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
		.pNext = options->submit2 ? &feature : NULL,
		.queueCreateInfoCount = 1,
		.pQueueCreateInfos = &queue,
		.enabledExtensionCount = options->submit2,
		.ppEnabledExtensionNames = &extension};
	CHECK(vkCreateDevice(gpu.physical, &info, NULL, &gpu.device));
	vkGetDeviceQueue(gpu.device, 0, 0, &gpu.queue);
	VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
		.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT};
	CHECK(vkCreateCommandPool(gpu.device, &pool, NULL, &gpu.commands));
	VkCommandBufferAllocateInfo buffer = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
		.commandPool = gpu.commands,
		.commandBufferCount = 1};
	CHECK(vkAllocateCommandBuffers(gpu.device, &buffer, &gpu.buffer));
	VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
	CHECK(vkCreateFence(gpu.device, &fence, NULL, &gpu.fence));
	gpu.submit2 = (PFN_vkQueueSubmit2)vkGetDeviceProcAddr(gpu.device, "vkQueueSubmit2KHR");
	if (!options->no_labels) {
		gpu.begin_label = (PFN_vkCmdBeginDebugUtilsLabelEXT)vkGetDeviceProcAddr(
			gpu.device, "vkCmdBeginDebugUtilsLabelEXT");
		gpu.end_label = (PFN_vkCmdEndDebugUtilsLabelEXT)vkGetDeviceProcAddr(
			gpu.device, "vkCmdEndDebugUtilsLabelEXT");
	}
}

static VkDeviceMemory make_memory(VkMemoryRequirements needs, VkMemoryPropertyFlags flags)
{
	VkDeviceMemory memory;
	VkPhysicalDeviceMemoryProperties kinds;
	vkGetPhysicalDeviceMemoryProperties(gpu.physical, &kinds);
	uint32_t kind = 0;
	while (kind < kinds.memoryTypeCount &&
		   ((needs.memoryTypeBits & (1u << kind)) == 0 ||
			   (kinds.memoryTypes[kind].propertyFlags & flags) != flags)) {
		kind++;
	}
	VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
		.allocationSize = needs.size,
		.memoryTypeIndex = kind};
	CHECK(vkAllocateMemory(gpu.device, &info, NULL, &memory));
	return memory;
}

static void make_buffer(struct memory *out, size_t bytes, VkBufferUsageFlags usage)
{
	VkBufferCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = bytes, .usage = usage};
	VkMemoryRequirements needs;
	CHECK(vkCreateBuffer(gpu.device, &info, NULL, &out->buffer));
	vkGetBufferMemoryRequirements(gpu.device, out->buffer, &needs);
	out->memory = make_memory(
		needs, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT);
	CHECK(vkBindBufferMemory(gpu.device, out->buffer, out->memory, 0));
	CHECK(vkMapMemory(gpu.device, out->memory, 0, VK_WHOLE_SIZE, 0, &out->mapped));
	memset(out->mapped, 0, bytes);
}

static void make_set(void)
{
	VkDescriptorSetLayoutBinding binding = {.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
		.descriptorCount = 1,
		.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
	VkDescriptorSetLayoutCreateInfo layout = {
		.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
		.bindingCount = 1,
		.pBindings = &binding};
	CHECK(vkCreateDescriptorSetLayout(gpu.device, &layout, NULL, &gpu.set_layout));
	VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1};
	VkDescriptorPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
		.maxSets = 1,
		.poolSizeCount = 1,
		.pPoolSizes = &size};
	CHECK(vkCreateDescriptorPool(gpu.device, &pool, NULL, &gpu.sets));
	VkDescriptorSetAllocateInfo set = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
		.descriptorPool = gpu.sets,
		.descriptorSetCount = 1,
		.pSetLayouts = &gpu.set_layout};
	CHECK(vkAllocateDescriptorSets(gpu.device, &set, &gpu.set));
	VkDescriptorBufferInfo whole = {gpu.numbers.buffer, 0, VK_WHOLE_SIZE};
	VkWriteDescriptorSet write = {.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
		.dstSet = gpu.set,
		.descriptorCount = 1,
		.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
		.pBufferInfo = &whole};
	vkUpdateDescriptorSets(gpu.device, 1, &write, 0, NULL);
}

static VkPipelineShaderStageCreateInfo make_stage(
	VkShaderStageFlagBits stage, const uint32_t *code, size_t bytes)
{
	VkShaderModule module;
	VkShaderModuleCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = bytes, .pCode = code};
	CHECK(vkCreateShaderModule(gpu.device, &info, NULL, &module));
	return (VkPipelineShaderStageCreateInfo){
		.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
		.stage = stage,
		.module = module,
		.pName = "main"};
}

static void make_fill(const struct options *options)
{
	size_t bytes = sizeof(gpu_fill_comp);
	const uint32_t *code =
		options->fill == NULL ? gpu_fill_comp : module_file_read(options->fill, &bytes);
	VkPushConstantRange constants = {
		VK_SHADER_STAGE_COMPUTE_BIT | VK_SHADER_STAGE_FRAGMENT_BIT, 0, sizeof(uint32_t)};
	VkPipelineLayoutCreateInfo layout = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
		.setLayoutCount = 1,
		.pSetLayouts = &gpu.set_layout,
		.pushConstantRangeCount = 1,
		.pPushConstantRanges = &constants};
	CHECK(vkCreatePipelineLayout(gpu.device, &layout, NULL, &gpu.layout));
	VkComputePipelineCreateInfo info = {.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
		.stage = make_stage(VK_SHADER_STAGE_COMPUTE_BIT, code, bytes),
		.layout = gpu.layout};
	CHECK(vkCreateComputePipelines(gpu.device, VK_NULL_HANDLE, 1, &info, NULL, &gpu.fill));
	vkDestroyShaderModule(gpu.device, info.stage.module, NULL);
}

static void make_picture(void)
{
	VkImageCreateInfo info = {.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
		.imageType = VK_IMAGE_TYPE_2D,
		.format = VK_FORMAT_R8G8B8A8_UNORM,
		.extent = {SIDE, SIDE, 1},
		.mipLevels = 1,
		.arrayLayers = 1,
		.samples = VK_SAMPLE_COUNT_1_BIT,
		.usage = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT | VK_IMAGE_USAGE_TRANSFER_SRC_BIT};
	VkMemoryRequirements needs;
	CHECK(vkCreateImage(gpu.device, &info, NULL, &gpu.image));
	vkGetImageMemoryRequirements(gpu.device, gpu.image, &needs);
	gpu.image_memory = make_memory(needs, 0);
	CHECK(vkBindImageMemory(gpu.device, gpu.image, gpu.image_memory, 0));
	VkImageViewCreateInfo view = {.sType = VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO,
		.image = gpu.image,
		.viewType = VK_IMAGE_VIEW_TYPE_2D,
		.format = info.format,
		.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1}};
	CHECK(vkCreateImageView(gpu.device, &view, NULL, &gpu.view));
}

static void make_pass(void)
{
	VkAttachmentDescription color = {.format = VK_FORMAT_R8G8B8A8_UNORM,
		.samples = VK_SAMPLE_COUNT_1_BIT,
		.loadOp = VK_ATTACHMENT_LOAD_OP_CLEAR,
		.storeOp = VK_ATTACHMENT_STORE_OP_STORE,
		.finalLayout = VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL};
	VkAttachmentReference reference = {0, VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL};
	VkSubpassDescription subpass = {.colorAttachmentCount = 1, .pColorAttachments = &reference};
	VkSubpassDependency copied = {.dstSubpass = VK_SUBPASS_EXTERNAL,
		.srcStageMask = VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT,
		.dstStageMask = VK_PIPELINE_STAGE_TRANSFER_BIT,
		.srcAccessMask = VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT,
		.dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT};
	VkRenderPassCreateInfo info = {.sType = VK_STRUCTURE_TYPE_RENDER_PASS_CREATE_INFO,
		.attachmentCount = 1,
		.pAttachments = &color,
		.subpassCount = 1,
		.pSubpasses = &subpass,
		.dependencyCount = 1,
		.pDependencies = &copied};
	CHECK(vkCreateRenderPass(gpu.device, &info, NULL, &gpu.pass));
	VkFramebufferCreateInfo framebuffer = {.sType = VK_STRUCTURE_TYPE_FRAMEBUFFER_CREATE_INFO,
		.renderPass = gpu.pass,
		.attachmentCount = 1,
		.pAttachments = &gpu.view,
		.width = SIDE,
		.height = SIDE,
		.layers = 1};
	CHECK(vkCreateFramebuffer(gpu.device, &framebuffer, NULL, &gpu.framebuffer));
}

static void make_triangle(void)
{
	VkPipelineShaderStageCreateInfo stages[] = {
		make_stage(VK_SHADER_STAGE_VERTEX_BIT, gpu_triangle_vert, sizeof(gpu_triangle_vert)),
		make_stage(VK_SHADER_STAGE_FRAGMENT_BIT, gpu_triangle_frag, sizeof(gpu_triangle_frag))};
	VkPipelineVertexInputStateCreateInfo vertices = {
		.sType = VK_STRUCTURE_TYPE_PIPELINE_VERTEX_INPUT_STATE_CREATE_INFO};
	VkPipelineInputAssemblyStateCreateInfo assembly = {
		.sType = VK_STRUCTURE_TYPE_PIPELINE_INPUT_ASSEMBLY_STATE_CREATE_INFO,
		.topology = VK_PRIMITIVE_TOPOLOGY_TRIANGLE_LIST};
	VkViewport viewport = {0, 0, SIDE, SIDE, 0, 1};
	VkRect2D scissor = {{0, 0}, {SIDE, SIDE}};
	VkPipelineViewportStateCreateInfo view = {
		.sType = VK_STRUCTURE_TYPE_PIPELINE_VIEWPORT_STATE_CREATE_INFO,
		.viewportCount = 1,
		.pViewports = &viewport,
		.scissorCount = 1,
		.pScissors = &scissor};
	VkPipelineRasterizationStateCreateInfo raster = {
		.sType = VK_STRUCTURE_TYPE_PIPELINE_RASTERIZATION_STATE_CREATE_INFO, .lineWidth = 1};
	VkPipelineMultisampleStateCreateInfo samples = {
		.sType = VK_STRUCTURE_TYPE_PIPELINE_MULTISAMPLE_STATE_CREATE_INFO,
		.rasterizationSamples = VK_SAMPLE_COUNT_1_BIT};
	VkPipelineColorBlendAttachmentState target = {.colorWriteMask = 0xf};
	VkPipelineColorBlendStateCreateInfo blend = {
		.sType = VK_STRUCTURE_TYPE_PIPELINE_COLOR_BLEND_STATE_CREATE_INFO,
		.attachmentCount = 1,
		.pAttachments = &target};
	VkGraphicsPipelineCreateInfo info = {.sType = VK_STRUCTURE_TYPE_GRAPHICS_PIPELINE_CREATE_INFO,
		.stageCount = 2,
		.pStages = stages,
		.pVertexInputState = &vertices,
		.pInputAssemblyState = &assembly,
		.pViewportState = &view,
		.pRasterizationState = &raster,
		.pMultisampleState = &samples,
		.pColorBlendState = &blend,
		.layout = gpu.layout,
		.renderPass = gpu.pass};
	CHECK(vkCreateGraphicsPipelines(gpu.device, VK_NULL_HANDLE, 1, &info, NULL, &gpu.triangle));
	vkDestroyShaderModule(gpu.device, stages[0].module, NULL);
	vkDestroyShaderModule(gpu.device, stages[1].module, NULL);
}

void scene_make(const struct options *options)
{
	memset(&gpu, 0, sizeof(gpu));
	make_instance(options);
	make_device(options);
	make_buffer(&gpu.numbers, NUMBERS * sizeof(uint32_t), VK_BUFFER_USAGE_STORAGE_BUFFER_BIT);
	make_set();
	make_fill(options);
	if (!options->compute_only) {
		make_buffer(&gpu.pixels, SIDE * SIDE * 4, VK_BUFFER_USAGE_TRANSFER_DST_BIT);
		make_picture();
		make_pass();
		make_triangle();
	}
}

static void free_memory(struct memory *memory)
{
	vkDestroyBuffer(gpu.device, memory->buffer, NULL);
	vkFreeMemory(gpu.device, memory->memory, NULL);
}

void scene_destroy(void)
{
	vkDestroyPipeline(gpu.device, gpu.triangle, NULL);
	vkDestroyFramebuffer(gpu.device, gpu.framebuffer, NULL);
	vkDestroyRenderPass(gpu.device, gpu.pass, NULL);
	vkDestroyImageView(gpu.device, gpu.view, NULL);
	vkDestroyImage(gpu.device, gpu.image, NULL);
	vkFreeMemory(gpu.device, gpu.image_memory, NULL);
	vkDestroyPipeline(gpu.device, gpu.fill, NULL);
	vkDestroyPipelineLayout(gpu.device, gpu.layout, NULL);
	vkDestroyDescriptorPool(gpu.device, gpu.sets, NULL);
	vkDestroyDescriptorSetLayout(gpu.device, gpu.set_layout, NULL);
	free_memory(&gpu.numbers);
	free_memory(&gpu.pixels);
	vkDestroyFence(gpu.device, gpu.fence, NULL);
	vkDestroyCommandPool(gpu.device, gpu.commands, NULL);
	vkDestroyDevice(gpu.device, NULL);
	vkDestroyInstance(gpu.instance, NULL);
}
