/*
 * A program of Vulkan whose work waits for what it does later. It does what standard input says, one line each, and answers each with "done":
 *   submit [wait=N] [signal=N] [empty] [2]        one submit of a label "frame N", after and before these values of the timeline semaphore; empty: of no
 *                                                 command buffer; 2: by vkQueueSubmit2KHR
 *   events                                        one that waits for an event of the host's
 *   set                                           sets that event
 *   signal N, later MS N                          the host signals that value, now, or in so many ms by a thread
 *   new                                           another semaphore, at 0; the old one is destroyed
 *   chain N                                       N submits of one empty command buffer, each of which waits for the one before it; answered with the CPU time of one, in ns
 *   closefrom                                     closes all descriptors from 3 on
 *   plug                                          the same, and has its own in their places then: /dev/null, and at 500 one end of a socket
 *   heard                                         answered with how many bytes have come to the other end
 *   idle                                          waits for the device
 *   device N                                      the next lines are of the device N, 0 or 1
 *   begin, end                                    the program's own start and stop (client/gpu/profd_gpu.h); answered with "begin N" and "end N", the status
 * At the end of the input it destroys all, and at "exit" nothing.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <vulkan/vulkan.h>

#include "client/gpu/profd_gpu.h"
#include "gpu/check.h"

#define DEVICES    2
#define PLUG       500
#define FRAMES_MAX 1024

struct gpu {
	VkInstance instance;
	VkDevice device;
	VkQueue queue;
	VkCommandPool commands;
	VkSemaphore timeline;
	VkEvent event;
	VkCommandBuffer buffers[FRAMES_MAX];
	unsigned frames;
	PFN_vkCmdBeginDebugUtilsLabelEXT begin_label;
	PFN_vkCmdEndDebugUtilsLabelEXT end_label;
	PFN_vkQueueSubmit2KHR submit2;
};

static struct gpu gpus[DEVICES];

static void make_timeline(struct gpu *gpu)
{
	VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
		.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
	VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
	CHECK(vkCreateSemaphore(gpu->device, &info, NULL, &gpu->timeline));
}

static void make_instance(struct gpu *gpu)
{
	const char *extension = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
	VkApplicationInfo application = {
		.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = VK_API_VERSION_1_2};
	VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
		.pApplicationInfo = &application,
		.enabledExtensionCount = 1,
		.ppEnabledExtensionNames = &extension};
	CHECK(vkCreateInstance(&info, NULL, &gpu->instance));
}

static void make_device(struct gpu *gpu)
{
	VkPhysicalDevice physical;
	uint32_t count = 1;
	float priority = 1;
	const char *extension = VK_KHR_SYNCHRONIZATION_2_EXTENSION_NAME;
	if (vkEnumeratePhysicalDevices(gpu->instance, &count, &physical) < 0 || count == 0) {
		fprintf(stderr, "gpu_waits: no device\n");
		exit(2);
	}
	VkPhysicalDeviceSynchronization2Features second = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SYNCHRONIZATION_2_FEATURES,
		.synchronization2 = VK_TRUE};
	VkPhysicalDeviceTimelineSemaphoreFeatures timelines = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES,
		.pNext = &second,
		.timelineSemaphore = VK_TRUE};
	VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
		.queueCount = 1,
		.pQueuePriorities = &priority};
	VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
		.pNext = &timelines,
		.queueCreateInfoCount = 1,
		.pQueueCreateInfos = &queue,
		.enabledExtensionCount = 1,
		.ppEnabledExtensionNames = &extension};
	CHECK(vkCreateDevice(physical, &info, NULL, &gpu->device));
	vkGetDeviceQueue(gpu->device, 0, 0, &gpu->queue);
	gpu->submit2 = (PFN_vkQueueSubmit2KHR)vkGetDeviceProcAddr(gpu->device, "vkQueueSubmit2KHR");
	gpu->begin_label = (PFN_vkCmdBeginDebugUtilsLabelEXT)vkGetDeviceProcAddr(
		gpu->device, "vkCmdBeginDebugUtilsLabelEXT");
	gpu->end_label = (PFN_vkCmdEndDebugUtilsLabelEXT)vkGetDeviceProcAddr(
		gpu->device, "vkCmdEndDebugUtilsLabelEXT");
}

static void make(struct gpu *gpu)
{
	make_instance(gpu);
	make_device(gpu);
	VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
	CHECK(vkCreateCommandPool(gpu->device, &pool, NULL, &gpu->commands));
	VkCommandBufferAllocateInfo buffers = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
		.commandPool = gpu->commands,
		.commandBufferCount = FRAMES_MAX};
	CHECK(vkAllocateCommandBuffers(gpu->device, &buffers, gpu->buffers));
	VkEventCreateInfo event = {.sType = VK_STRUCTURE_TYPE_EVENT_CREATE_INFO};
	CHECK(vkCreateEvent(gpu->device, &event, NULL, &gpu->event));
	make_timeline(gpu);
}

/* The next frame's commands: its label, which may wait for the host's event. */
static VkCommandBuffer record(struct gpu *gpu, bool has_event)
{
	char name[32];
	VkCommandBuffer buffer = gpu->buffers[gpu->frames % FRAMES_MAX];
	VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
	snprintf(name, sizeof(name), "frame %u", gpu->frames++);
	VkDebugUtilsLabelEXT label = {
		.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_LABEL_EXT, .pLabelName = name};
	CHECK(vkBeginCommandBuffer(buffer, &info));
	gpu->begin_label(buffer, &label);
	if (has_event) {
		vkCmdWaitEvents(buffer, 1, &gpu->event, VK_PIPELINE_STAGE_HOST_BIT,
			VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, 0, NULL, 0, NULL, 0, NULL);
	}
	gpu->end_label(buffer);
	CHECK(vkEndCommandBuffer(buffer));
	return buffer;
}

/* One submit. A value of 0: none. */
struct work {
	VkCommandBuffer buffer; /* NULL: none */
	uint64_t wait, signal;
};

static VkTimelineSemaphoreSubmitInfo values_of(const struct work *work)
{
	return (VkTimelineSemaphoreSubmitInfo){
		.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
		.waitSemaphoreValueCount = work->wait > 0,
		.pWaitSemaphoreValues = &work->wait,
		.signalSemaphoreValueCount = work->signal > 0,
		.pSignalSemaphoreValues = &work->signal};
}

static void submit(struct gpu *gpu, const struct work *work)
{
	VkPipelineStageFlags stage = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
	VkTimelineSemaphoreSubmitInfo values = values_of(work);
	VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
		.pNext = &values,
		.waitSemaphoreCount = work->wait > 0,
		.pWaitSemaphores = &gpu->timeline,
		.pWaitDstStageMask = &stage,
		.commandBufferCount = work->buffer != NULL,
		.pCommandBuffers = &work->buffer,
		.signalSemaphoreCount = work->signal > 0,
		.pSignalSemaphores = &gpu->timeline};
	CHECK(vkQueueSubmit(gpu->queue, 1, &info, VK_NULL_HANDLE));
}

static void submit2(struct gpu *gpu, const struct work *work)
{
	VkCommandBufferSubmitInfo buffer = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO, .commandBuffer = work->buffer};
	VkSemaphoreSubmitInfo wait = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO,
		.semaphore = gpu->timeline,
		.value = work->wait,
		.stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT};
	VkSemaphoreSubmitInfo signal = wait;
	signal.value = work->signal;
	VkSubmitInfo2 info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2,
		.waitSemaphoreInfoCount = work->wait > 0,
		.pWaitSemaphoreInfos = &wait,
		.commandBufferInfoCount = work->buffer != NULL,
		.pCommandBufferInfos = &buffer,
		.signalSemaphoreInfoCount = work->signal > 0,
		.pSignalSemaphoreInfos = &signal};
	CHECK(gpu->submit2(gpu->queue, 1, &info, VK_NULL_HANDLE));
}

static uint64_t number_behind(const char *line, const char *word)
{
	const char *at = strstr(line, word);
	return at != NULL ? strtoull(at + strlen(word), NULL, 10) : 0;
}

static void do_submit(struct gpu *gpu, const char *line)
{
	struct work work = {.buffer = strstr(line, "empty") != NULL ? NULL : record(gpu, false),
		.wait = number_behind(line, "wait="),
		.signal = number_behind(line, "signal=")};
	if (strstr(line, " 2") != NULL) {
		submit2(gpu, &work);
	} else {
		submit(gpu, &work);
	}
}

static uint64_t cpu_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* A semaphore of its own: the other's values stay. */
static void do_chain(struct gpu *gpu, uint64_t count)
{
	VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
		.flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT};
	struct gpu own = *gpu;
	struct work work = {.buffer = gpu->buffers[gpu->frames++ % FRAMES_MAX], .signal = 1};
	make_timeline(&own);
	CHECK(vkBeginCommandBuffer(work.buffer, &info));
	CHECK(vkEndCommandBuffer(work.buffer));
	uint64_t cpu = cpu_ns();
	for (uint64_t i = 0; i < count; i++) {
		submit(&own, &work);
		work.wait = work.signal++;
	}
	printf("%llu\n", (unsigned long long)((cpu_ns() - cpu) / (count > 0 ? count : 1)));
	CHECK(vkDeviceWaitIdle(gpu->device));
	vkDestroySemaphore(gpu->device, own.timeline, NULL);
}

static void do_plug(void)
{
	int ends[2];
	closefrom(3);
	int null = open("/dev/null", O_RDWR);
	while (null >= 0 && null < PLUG) {
		null = dup(null);
	}
	if (null != PLUG || socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0 || ends[0] != PLUG + 1 ||
		dup2(ends[0], PLUG) != PLUG) {
		exit(2);
	}
}

static void do_heard(void)
{
	char bytes[4096];
	ssize_t count = recv(PLUG + 2, bytes, sizeof(bytes), MSG_DONTWAIT);
	printf("%zd\n", count > 0 ? count : 0);
}

struct signal {
	struct gpu *gpu;
	uint64_t value;
	unsigned long ms;
};

static void *signal_value(void *context)
{
	struct signal *signal = context;
	struct timespec pause = {(time_t)(signal->ms / 1000), (long)(signal->ms % 1000) * 1000000};
	VkSemaphoreSignalInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO,
		.semaphore = signal->gpu->timeline,
		.value = signal->value};
	nanosleep(&pause, NULL);
	CHECK(vkSignalSemaphore(signal->gpu->device, &info));
	free(signal);
	return NULL;
}

static void do_signal(struct gpu *gpu, const char *line)
{
	char *end = NULL;
	pthread_t thread;
	struct signal *signal = malloc(sizeof(*signal));
	if (signal == NULL) {
		exit(2);
	}
	*signal = (struct signal){.gpu = gpu, .value = number_behind(line, "signal ")};
	if (strncmp(line, "later ", 6) == 0) {
		signal->ms = strtoul(line + 6, &end, 10);
		signal->value = strtoull(end, NULL, 10);
		pthread_create(&thread, NULL, signal_value, signal);
		pthread_detach(thread);
	} else {
		signal_value(signal);
	}
}

static void do_new(struct gpu *gpu)
{
	vkDestroySemaphore(gpu->device, gpu->timeline, NULL);
	make_timeline(gpu);
}

static void destroy(struct gpu *gpu)
{
	if (gpu->device != NULL) {
		vkDestroySemaphore(gpu->device, gpu->timeline, NULL);
		vkDestroyEvent(gpu->device, gpu->event, NULL);
		vkDestroyCommandPool(gpu->device, gpu->commands, NULL);
		vkDestroyDevice(gpu->device, NULL);
		vkDestroyInstance(gpu->instance, NULL);
	}
}

static void do_line(struct gpu *gpu, const char *line)
{
	if (strncmp(line, "submit", 6) == 0) {
		do_submit(gpu, line);
	} else if (strcmp(line, "events") == 0) {
		submit(gpu, &(struct work){.buffer = record(gpu, true)});
	} else if (strcmp(line, "set") == 0) {
		CHECK(vkSetEvent(gpu->device, gpu->event));
	} else if (strncmp(line, "signal ", 7) == 0 || strncmp(line, "later ", 6) == 0) {
		do_signal(gpu, line);
	} else if (strcmp(line, "closefrom") == 0) {
		closefrom(3);
	} else if (strcmp(line, "plug") == 0) {
		do_plug();
	} else if (strcmp(line, "heard") == 0) {
		do_heard();
	} else if (strncmp(line, "chain ", 6) == 0) {
		do_chain(gpu, number_behind(line, "chain "));
	} else if (strcmp(line, "new") == 0) {
		do_new(gpu);
	} else if (strcmp(line, "idle") == 0) {
		CHECK(vkDeviceWaitIdle(gpu->device));
	} else if (strcmp(line, "begin") == 0) {
		printf("begin %d\n", (int)profd_gpu_start("waits"));
	} else if (strcmp(line, "end") == 0) {
		printf("end %d\n", (int)profd_gpu_stop());
	} else if (strcmp(line, "exit") == 0) {
		exit(0);
	}
	printf("done\n");
	fflush(stdout);
}

int main(void)
{
	char line[128];
	struct gpu *gpu = &gpus[0];
	make(gpu);
	while (fgets(line, sizeof(line), stdin) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, "device ", 7) == 0) {
			gpu = &gpus[line[7] == '1'];
			if (gpu->device == NULL) {
				make(gpu);
			}
		}
		do_line(gpu, line);
	}
	destroy(&gpus[1]);
	destroy(&gpus[0]);
	return 0;
}
