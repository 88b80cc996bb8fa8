/*
 * A program that uses Vulkan without ever presenting: each frame is one submit of a compute shader, which goes on with 1024 numbers, and of a
 * triangle off-screen. It says what it has computed, compares that with its own arithmetic, and ends with 1 where they differ.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <vulkan/vulkan.h>

#include "gpu/module_file.h"
#include "gpu/options.h"
#include "gpu/phases.h"
#include "gpu/shaders.inc"

#define NUMBERS        1024
#define GROUP          64
#define SIDE           64 /* of the picture, in pixels */
#define EXTENSIONS_MAX 256
#define CHECK(call)    check((call), #call)

struct memory {
	VkBuffer buffer;
	VkDeviceMemory memory;
	void *mapped;
};

static struct {
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
} gpu;

static void check(VkResult result, const char *what)
{
	if (result != VK_SUCCESS) {
		fprintf(stderr, "gpu_frames: %s: %d\n", what, (int)result);
		exit(2);
	}
}

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

static void begin_label(const char *name)
{
	VkDebugUtilsLabelEXT label = {
		.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_LABEL_EXT, .pLabelName = name};
	if (gpu.begin_label != NULL) {
		gpu.begin_label(gpu.buffer, &label);
	}
}

static void end_label(void)
{
	if (gpu.end_label != NULL) {
		gpu.end_label(gpu.buffer);
	}
}

static void record_fill(uint32_t frame)
{
	begin_label("fill");
	vkCmdBindPipeline(gpu.buffer, VK_PIPELINE_BIND_POINT_COMPUTE, gpu.fill);
	vkCmdBindDescriptorSets(
		gpu.buffer, VK_PIPELINE_BIND_POINT_COMPUTE, gpu.layout, 0, 1, &gpu.set, 0, NULL);
	vkCmdPushConstants(gpu.buffer, gpu.layout,
		VK_SHADER_STAGE_COMPUTE_BIT | VK_SHADER_STAGE_FRAGMENT_BIT, 0, sizeof(frame), &frame);
	vkCmdDispatch(gpu.buffer, NUMBERS / GROUP, 1, 1);
	end_label();
}

static void record_triangle(uint32_t frame)
{
	VkClearValue black = {.color = {.float32 = {0, 0, 0, 1}}};
	VkRenderPassBeginInfo pass = {.sType = VK_STRUCTURE_TYPE_RENDER_PASS_BEGIN_INFO,
		.renderPass = gpu.pass,
		.framebuffer = gpu.framebuffer,
		.renderArea = {{0, 0}, {SIDE, SIDE}},
		.clearValueCount = 1,
		.pClearValues = &black};
	VkBufferImageCopy whole = {
		.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1}, .imageExtent = {SIDE, SIDE, 1}};
	begin_label("triangle");
	vkCmdBeginRenderPass(gpu.buffer, &pass, VK_SUBPASS_CONTENTS_INLINE);
	vkCmdBindPipeline(gpu.buffer, VK_PIPELINE_BIND_POINT_GRAPHICS, gpu.triangle);
	vkCmdPushConstants(gpu.buffer, gpu.layout,
		VK_SHADER_STAGE_COMPUTE_BIT | VK_SHADER_STAGE_FRAGMENT_BIT, 0, sizeof(frame), &frame);
	vkCmdDraw(gpu.buffer, 3, 1, 0, 0);
	vkCmdEndRenderPass(gpu.buffer);
	vkCmdCopyImageToBuffer(
		gpu.buffer, gpu.image, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, gpu.pixels.buffer, 1, &whole);
	end_label();
}

static void record(const struct options *options, uint32_t frame)
{
	char name[32];
	VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
	CHECK(vkBeginCommandBuffer(gpu.buffer, &info));
	snprintf(name, sizeof(name), "frame %u", frame);
	begin_label(name);
	record_fill(frame);
	if (!options->compute_only) {
		record_triangle(frame);
	}
	end_label();
	CHECK(vkEndCommandBuffer(gpu.buffer));
}

static void submit(bool is_submit2)
{
	VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
		.commandBufferCount = 1,
		.pCommandBuffers = &gpu.buffer};
	VkCommandBufferSubmitInfo buffer = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO, .commandBuffer = gpu.buffer};
	VkSubmitInfo2 info2 = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2,
		.commandBufferInfoCount = 1,
		.pCommandBufferInfos = &buffer};
	if (is_submit2) {
		CHECK(gpu.submit2(gpu.queue, 1, &info2, gpu.fence));
	} else {
		CHECK(vkQueueSubmit(gpu.queue, 1, &info, gpu.fence));
	}
	CHECK(vkWaitForFences(gpu.device, 1, &gpu.fence, VK_TRUE, UINT64_MAX));
	CHECK(vkResetFences(gpu.device, 1, &gpu.fence));
}

static uint32_t hash_bytes(const void *bytes, size_t count)
{
	uint32_t hash = 2166136261u;
	for (size_t i = 0; i < count; i++) {
		hash = (hash ^ ((const unsigned char *)bytes)[i]) * 16777619u;
	}
	return hash;
}

/* What fill.comp makes of it. */
static void fill_here(uint32_t *numbers, uint32_t frame)
{
	for (uint32_t i = 0; i < NUMBERS; i++) {
		uint32_t value = numbers[i] ^ (i * 2654435761u + frame * 40503u + 1u);
		for (int j = 0; j < 16; j++) {
			value ^= value << 13;
			value ^= value >> 17;
			value ^= value << 5;
		}
		numbers[i] = value;
	}
}

static void make_all(const struct options *options)
{
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

static void destroy_all(void)
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

static int run_frames(const struct options *options)
{
	uint32_t expected[NUMBERS] = {0};
	struct timespec pause = {options->frame_ms / 1000, (long)(options->frame_ms % 1000) * 1000000};
	for (unsigned frame = 0; frame < options->frames; frame++) {
		if (frame == options->exit_at) {
			exit(0);
		}
		record(options, frame);
		phases_run(options->own_phases, frame, false, options->own_thread);
		submit(options->submit2);
		phases_run(options->own_phases, frame, true, options->own_thread);
		fill_here(expected, frame);
		nanosleep(&pause, NULL);
	}
	bool is_right = memcmp(expected, gpu.numbers.mapped, sizeof(expected)) == 0;
	printf("numbers %08x %s\n", hash_bytes(gpu.numbers.mapped, sizeof(expected)),
		is_right ? "right" : "WRONG");
	if (!options->compute_only) {
		printf("pixels %08x\n", hash_bytes(gpu.pixels.mapped, SIDE * SIDE * 4));
	}
	return is_right ? 0 : 1;
}

static uint64_t clock_us(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void sleep_until(uint64_t us)
{
	struct timespec until = {(time_t)(us / 1000000), (long)(us % 1000000) * 1000};
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

/* CPU time of this thread alone: what the driver's threads do is theirs. */
static int run_idle(const struct options *options)
{
	VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
		.flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT};
	VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
		.commandBufferCount = 1,
		.pCommandBuffers = &gpu.buffer};
	CHECK(vkBeginCommandBuffer(gpu.buffer, &begin));
	CHECK(vkEndCommandBuffer(gpu.buffer));
	uint64_t start = clock_us(CLOCK_MONOTONIC), cpu = clock_us(CLOCK_THREAD_CPUTIME_ID);
	for (unsigned i = 0; i < options->idle_submits; i++) {
		CHECK(vkQueueSubmit(gpu.queue, 1, &info, VK_NULL_HANDLE));
		if (options->rate > 0) {
			sleep_until(start + (uint64_t)(i + 1) * 1000000 / options->rate);
		}
	}
	cpu = clock_us(CLOCK_THREAD_CPUTIME_ID) - cpu;
	CHECK(vkQueueWaitIdle(gpu.queue));
	printf("submits %u wall_us %llu thread_cpu_us %llu\n", options->idle_submits,
		(unsigned long long)(clock_us(CLOCK_MONOTONIC) - start), (unsigned long long)cpu);
	return 0;
}

/* What the device is said to have. */
static void print_functions(void)
{
	static const char *const names[] = {"vkQueueSubmit", "vkQueueSubmit2", "vkQueueSubmit2KHR",
		"vkQueuePresentKHR", "vkCreateSwapchainKHR", "vkCmdBeginDebugUtilsLabelEXT",
		"vkCmdInsertDebugUtilsLabelEXT", "vkCmdExecuteCommands", "vkNoSuchFunction"};
	printf("functions");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (vkGetDeviceProcAddr(gpu.device, names[i]) != NULL) {
			printf(" %s", names[i]);
		}
	}
	printf("\n");
}

static int wait_for(pid_t child)
{
	int status = 0;
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}

static int run(const struct options *options)
{
	memset(&gpu, 0, sizeof(gpu));
	make_instance(options);
	make_all(options);
	if (options->functions) {
		print_functions();
	}
	int status = options->idle_submits > 0 ? run_idle(options) : run_frames(options);
	destroy_all();
	return status;
}

static int run_all(const struct options *options)
{
	int status = 0;
	for (unsigned i = 0; i < options->rounds && status == 0; i++) {
		status = run(options);
	}
	if (options->forks) {
		fflush(stdout);
		pid_t child = fork();
		status |= child == 0 ? run(options) : wait_for(child);
	}
	return status;
}

/* The process ends with it. */
static void *run_as_last(void *options)
{
	int status = run_all(options);
	if (status != 0) {
		exit(status);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static struct options options;
	pthread_t last;
	(void)argc;
	options_read(argv, &options);
	phases_early(options.own_phases);
	if (options.first_thread_ends && pthread_create(&last, NULL, run_as_last, &options) == 0) {
		pthread_exit(NULL);
	}
	return run_all(&options);
}
