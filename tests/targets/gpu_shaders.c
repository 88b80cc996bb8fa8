/*
 * A program that uses compute shaders in the ways that programs do:
 *
 *   gpu_shaders FRAME…      FRAME: SHADER[+SHADER]…, or "none"
 *
 * Each frame is one submit that runs these shaders. All modules, pipelines and command buffers are made before the first submit, and each
 * module is destroyed as soon as its pipeline is there. SHADER is a name of gpu/modules.inc, behind any of
 *   /  it is recorded in a secondary command buffer
 *   !  its pipeline is destroyed when its frame is over
 *   =  its code is given with the pipeline, without a module (VK_EXT_graphics_pipeline_library)
 *   *  its code is padded to more than 16 MiB
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vulkan/vulkan.h>

#include "gpu/check.h"
#include "gpu/modules.inc"

#define FRAMES_MAX    64
#define USES_MAX      8 /* shaders of a frame */
#define HEADER_WORDS  5
#define BOUND_WORD    3 /* of the header: above all ids */
#define OP_SOURCE     3
#define OP_STRING     7
#define PADDING_WORDS 65535u /* of an instruction, at most */
#define PADDINGS      66     /* more than 16 MiB */

static const struct {
	const char *name, *entry;
	const uint32_t *code;
	size_t bytes;
} shaders[] = {
	{"plain", "main", module_plain, sizeof(module_plain)},
	{"glsl", "main", module_glsl, sizeof(module_glsl)},
	{"hlsl", "step", module_hlsl, sizeof(module_hlsl)},
	{"wgsl", "step", module_wgsl, sizeof(module_wgsl)},
};

struct frame {
	VkCommandBuffer buffer;
	VkPipeline gone[USES_MAX]; /* destroyed behind it */
	unsigned gone_count;
};

static struct {
	VkInstance instance;
	VkPhysicalDevice physical;
	VkDevice device;
	VkQueue queue;
	VkCommandPool commands;
	VkPipelineLayout layout;
	struct frame frames[FRAMES_MAX];
	VkPipeline kept[FRAMES_MAX * USES_MAX];
	unsigned frame_count, kept_count;
} gpu;

static void make_instance(void)
{
	VkApplicationInfo application = {
		.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = VK_API_VERSION_1_2};
	VkInstanceCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &application};
	uint32_t count = 1;
	CHECK(vkCreateInstance(&info, NULL, &gpu.instance));
	if (vkEnumeratePhysicalDevices(gpu.instance, &count, &gpu.physical) < 0 || count == 0) {
		fprintf(stderr, "gpu_shaders: no device\n");
		exit(2);
	}
}

static void make_device(bool has_inline)
{
	static const char *const extensions[] = {
		VK_KHR_PIPELINE_LIBRARY_EXTENSION_NAME, VK_EXT_GRAPHICS_PIPELINE_LIBRARY_EXTENSION_NAME};
	VkPhysicalDeviceGraphicsPipelineLibraryFeaturesEXT feature = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_GRAPHICS_PIPELINE_LIBRARY_FEATURES_EXT,
		.graphicsPipelineLibrary = VK_TRUE};
	float priority = 1;
	VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
		.queueCount = 1,
		.pQueuePriorities = &priority};
	VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
		.pNext = has_inline ? &feature : NULL,
		.queueCreateInfoCount = 1,
		.pQueueCreateInfos = &queue,
		.enabledExtensionCount = has_inline ? 2 : 0,
		.ppEnabledExtensionNames = extensions};
	CHECK(vkCreateDevice(gpu.physical, &info, NULL, &gpu.device));
	vkGetDeviceQueue(gpu.device, 0, 0, &gpu.queue);
	VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
	CHECK(vkCreateCommandPool(gpu.device, &pool, NULL, &gpu.commands));
	VkPipelineLayoutCreateInfo layout = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
	CHECK(vkCreatePipelineLayout(gpu.device, &layout, NULL, &gpu.layout));
}

/* Before the first OpSource, where strings belong; the code of a shader without one is not padded. Owned. */
static uint32_t *pad(const uint32_t *code, size_t *bytes)
{
	size_t words = *bytes / sizeof(*code), at = HEADER_WORDS;
	uint32_t *padded = calloc(words + (size_t)PADDINGS * PADDING_WORDS, sizeof(*code));
	while (at < words && (code[at] & 0xffff) != OP_SOURCE) {
		at += code[at] >> 16;
	}
	if (padded == NULL || at >= words) {
		exit(2);
	}
	memcpy(padded, code, at * sizeof(*code));
	size_t to = at;
	for (uint32_t i = 0; i < PADDINGS; i++, to += PADDING_WORDS) {
		memset(padded + to, ' ', PADDING_WORDS * sizeof(*padded) - 1); /* it ends with a NUL */
		padded[to] = PADDING_WORDS << 16 | OP_STRING;
		padded[to + 1] = padded[BOUND_WORD]++;
	}
	memcpy(padded + to, code + at, (words - at) * sizeof(*code));
	*bytes = (to + words - at) * sizeof(*code);
	return padded;
}

static VkPipeline make_pipeline(size_t shader, bool is_inline, bool is_padded)
{
	size_t bytes = shaders[shader].bytes;
	uint32_t *padded = is_padded ? pad(shaders[shader].code, &bytes) : NULL;
	VkShaderModuleCreateInfo code = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
		.codeSize = bytes,
		.pCode = is_padded ? padded : shaders[shader].code};
	VkComputePipelineCreateInfo info = {.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
		.stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
			.pNext = is_inline ? &code : NULL,
			.stage = VK_SHADER_STAGE_COMPUTE_BIT,
			.pName = shaders[shader].entry},
		.layout = gpu.layout};
	VkPipeline pipeline;
	if (!is_inline) {
		CHECK(vkCreateShaderModule(gpu.device, &code, NULL, &info.stage.module));
	}
	CHECK(vkCreateComputePipelines(gpu.device, VK_NULL_HANDLE, 1, &info, NULL, &pipeline));
	vkDestroyShaderModule(gpu.device, info.stage.module, NULL);
	free(padded);
	return pipeline;
}

static VkCommandBuffer make_buffer(VkCommandBufferLevel level)
{
	VkCommandBuffer buffer;
	VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
		.commandPool = gpu.commands,
		.level = level,
		.commandBufferCount = 1};
	VkCommandBufferInheritanceInfo inherited = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_INHERITANCE_INFO};
	VkCommandBufferBeginInfo begin = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, .pInheritanceInfo = &inherited};
	CHECK(vkAllocateCommandBuffers(gpu.device, &info, &buffer));
	CHECK(vkBeginCommandBuffer(buffer, &begin));
	return buffer;
}

static void run_in(VkCommandBuffer buffer, VkPipeline pipeline)
{
	vkCmdBindPipeline(buffer, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
	vkCmdDispatch(buffer, 1, 1, 1);
}

static size_t find_shader(const char *name)
{
	size_t i = 0;
	while (i < sizeof(shaders) / sizeof(shaders[0]) && strcmp(shaders[i].name, name) != 0) {
		i++;
	}
	if (i == sizeof(shaders) / sizeof(shaders[0])) {
		fprintf(stderr, "gpu_shaders: no shader %s\n", name);
		exit(2);
	}
	return i;
}

static void record_use(struct frame *frame, const char *word)
{
	size_t marks = strspn(word, "/!=*");
	const char *end = word + marks;
	VkPipeline pipeline = make_pipeline(
		find_shader(end), memchr(word, '=', marks) != NULL, memchr(word, '*', marks) != NULL);
	if (memchr(word, '/', marks) != NULL) {
		VkCommandBuffer secondary = make_buffer(VK_COMMAND_BUFFER_LEVEL_SECONDARY);
		run_in(secondary, pipeline);
		CHECK(vkEndCommandBuffer(secondary));
		vkCmdExecuteCommands(frame->buffer, 1, &secondary);
	} else {
		run_in(frame->buffer, pipeline);
	}
	if (memchr(word, '!', marks) != NULL) {
		frame->gone[frame->gone_count++] = pipeline;
	} else {
		gpu.kept[gpu.kept_count++] = pipeline;
	}
}

static void record_frame(struct frame *frame, char *words)
{
	char *rest = NULL;
	unsigned count = 0;
	frame->buffer = make_buffer(VK_COMMAND_BUFFER_LEVEL_PRIMARY);
	for (char *word = strtok_r(words, "+", &rest); word != NULL && count < USES_MAX;
		 word = strtok_r(NULL, "+", &rest)) {
		if (strcmp(word, "none") != 0) {
			record_use(frame, word);
			count++;
		}
	}
	CHECK(vkEndCommandBuffer(frame->buffer));
}

static void run_frame(const struct frame *frame)
{
	VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
		.commandBufferCount = 1,
		.pCommandBuffers = &frame->buffer};
	CHECK(vkQueueSubmit(gpu.queue, 1, &info, VK_NULL_HANDLE));
	CHECK(vkQueueWaitIdle(gpu.queue));
	for (unsigned i = 0; i < frame->gone_count; i++) {
		vkDestroyPipeline(gpu.device, frame->gone[i], NULL);
	}
}

int main(int argc, char **argv)
{
	bool has_inline = false;
	for (int i = 1; i < argc; i++) {
		has_inline = has_inline || strchr(argv[i], '=') != NULL;
	}
	make_instance();
	make_device(has_inline);
	for (int i = 1; i < argc && gpu.frame_count < FRAMES_MAX; i++) {
		record_frame(&gpu.frames[gpu.frame_count++], argv[i]);
	}
	for (unsigned i = 0; i < gpu.frame_count; i++) {
		run_frame(&gpu.frames[i]);
	}
	for (unsigned i = 0; i < gpu.kept_count; i++) {
		vkDestroyPipeline(gpu.device, gpu.kept[i], NULL);
	}
	vkDestroyPipelineLayout(gpu.device, gpu.layout, NULL);
	vkDestroyCommandPool(gpu.device, gpu.commands, NULL);
	vkDestroyDevice(gpu.device, NULL);
	vkDestroyInstance(gpu.instance, NULL);
	printf("%u frames\n", gpu.frame_count);
	return 0;
}
