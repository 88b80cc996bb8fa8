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

#include "gpu/check.h"
#include "gpu/options.h"
#include "gpu/phases.h"
#include "gpu/scene.h"

#define GROUP 64

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
	scene_make(options);
	if (options->functions) {
		print_functions();
	}
	int status = options->idle_submits > 0 ? run_idle(options) : run_frames(options);
	scene_destroy();
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
