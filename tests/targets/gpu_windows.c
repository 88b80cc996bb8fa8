/*
 * A Vulkan program with a window on $DISPLAY. Each frame fills a picture of the swapchain with a color, whose red is the frame's number in
 * 1/256, and presents it.
 *
 *   gpu_windows [--frames N] [--frame-ms MS]
 *               [--resize FRAME]   before this frame: a new swapchain from the old one, which is destroyed then
 *               [--replace FRAME]  before this frame: the swapchain is destroyed, then another one made
 *               [--close FRAME]    before this frame: swapchain, surface and window are destroyed; what follows is submitted, not presented
 *               [--two]            a second window, presented together with the first; only the first is changed by the above
 *               [--exit]           ends without destroying anything
 *               [--instance]       destroys the instance first, and nothing else
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <X11/Xlib.h>
#define VK_USE_PLATFORM_XLIB_KHR
#include <vulkan/vulkan.h>

#include "gpu/check.h"

#define SIDE       64 /* of the window, in pixels */
#define IMAGES_MAX 16
#define WINDOWS    2

struct options {
	unsigned frames, frame_ms, resize, replace, close;
	bool exits, two, instance_first;
};

static struct {
	Display *display;
	VkInstance instance;
	VkPhysicalDevice physical;
	VkDevice device;
	VkQueue queue;
	struct window {
		Window window;
		VkSurfaceKHR surface;
		VkSwapchainKHR swapchain;
		VkImage images[IMAGES_MAX];
	} windows[WINDOWS];
	VkCommandPool pool;
	VkCommandBuffer commands;
	VkFence fence;
} gpu;

static void open_display(void)
{
	gpu.display = XOpenDisplay(NULL);
	if (gpu.display == NULL) {
		fputs("gpu_windows: no display\n", stderr);
		exit(2);
	}
}

static void make_window(struct window *window)
{
	window->window =
		XCreateSimpleWindow(gpu.display, DefaultRootWindow(gpu.display), 0, 0, SIDE, SIDE, 0, 0, 0);
	XMapWindow(gpu.display, window->window);
	XSync(gpu.display, False);
	VkXlibSurfaceCreateInfoKHR surface = {.sType = VK_STRUCTURE_TYPE_XLIB_SURFACE_CREATE_INFO_KHR,
		.dpy = gpu.display,
		.window = window->window};
	CHECK(vkCreateXlibSurfaceKHR(gpu.instance, &surface, NULL, &window->surface));
}

static void make_instance(void)
{
	const char *extensions[] = {VK_KHR_SURFACE_EXTENSION_NAME, VK_KHR_XLIB_SURFACE_EXTENSION_NAME};
	VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
		.enabledExtensionCount = 2,
		.ppEnabledExtensionNames = extensions};
	CHECK(vkCreateInstance(&info, NULL, &gpu.instance));
	uint32_t count = 1;
	if (vkEnumeratePhysicalDevices(gpu.instance, &count, &gpu.physical) < 0 || count == 0) {
		fputs("gpu_windows: no device\n", stderr);
		exit(2);
	}
}

static void make_device(void)
{
	float priority = 1;
	const char *extension = VK_KHR_SWAPCHAIN_EXTENSION_NAME;
	VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
		.queueCount = 1,
		.pQueuePriorities = &priority};
	VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
		.queueCreateInfoCount = 1,
		.pQueueCreateInfos = &queue,
		.enabledExtensionCount = 1,
		.ppEnabledExtensionNames = &extension};
	CHECK(vkCreateDevice(gpu.physical, &info, NULL, &gpu.device));
	vkGetDeviceQueue(gpu.device, 0, 0, &gpu.queue);
	VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
		.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT};
	CHECK(vkCreateCommandPool(gpu.device, &pool, NULL, &gpu.pool));
	VkCommandBufferAllocateInfo buffer = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
		.commandPool = gpu.pool,
		.commandBufferCount = 1};
	CHECK(vkAllocateCommandBuffers(gpu.device, &buffer, &gpu.commands));
	VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
	CHECK(vkCreateFence(gpu.device, &fence, NULL, &gpu.fence));
}

static void make_swapchain(struct window *window, VkSwapchainKHR old)
{
	VkBool32 can_present;
	VkSurfaceCapabilitiesKHR can;
	VkSurfaceFormatKHR format;
	uint32_t formats = 1, images = IMAGES_MAX;
	CHECK(vkGetPhysicalDeviceSurfaceSupportKHR(gpu.physical, 0, window->surface, &can_present));
	CHECK(vkGetPhysicalDeviceSurfaceCapabilitiesKHR(gpu.physical, window->surface, &can));
	if (vkGetPhysicalDeviceSurfaceFormatsKHR(gpu.physical, window->surface, &formats, &format) <
		0) {
		exit(2);
	}
	VkSwapchainCreateInfoKHR info = {.sType = VK_STRUCTURE_TYPE_SWAPCHAIN_CREATE_INFO_KHR,
		.surface = window->surface,
		.minImageCount = can.minImageCount,
		.imageFormat = format.format,
		.imageColorSpace = format.colorSpace,
		.imageExtent = can.currentExtent,
		.imageArrayLayers = 1,
		.imageUsage = VK_IMAGE_USAGE_TRANSFER_DST_BIT | VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT,
		.preTransform = can.currentTransform,
		.compositeAlpha = VK_COMPOSITE_ALPHA_OPAQUE_BIT_KHR,
		.presentMode = VK_PRESENT_MODE_FIFO_KHR,
		.oldSwapchain = old};
	CHECK(vkCreateSwapchainKHR(gpu.device, &info, NULL, &window->swapchain));
	CHECK(vkGetSwapchainImagesKHR(gpu.device, window->swapchain, &images, window->images));
}

static void change_layout(VkImage image, VkImageLayout from, VkImageLayout to)
{
	VkImageMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER,
		.dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT,
		.oldLayout = from,
		.newLayout = to,
		.srcQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
		.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
		.image = image,
		.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1}};
	vkCmdPipelineBarrier(gpu.commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
		VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0, 0, NULL, 0, NULL, 1, &barrier);
}

/* image: VK_NULL_HANDLE: none, as there is no window any more. */
static void submit(VkImage image, unsigned frame)
{
	VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
	VkClearColorValue color = {.float32 = {(float)(frame % 256) / 256, 0, 0, 1}};
	VkImageSubresourceRange all = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
	CHECK(vkBeginCommandBuffer(gpu.commands, &begin));
	if (image != VK_NULL_HANDLE) {
		change_layout(image, VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL);
		vkCmdClearColorImage(
			gpu.commands, image, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, &color, 1, &all);
		change_layout(image, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, VK_IMAGE_LAYOUT_PRESENT_SRC_KHR);
	}
	CHECK(vkEndCommandBuffer(gpu.commands));
	VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
		.commandBufferCount = 1,
		.pCommandBuffers = &gpu.commands};
	CHECK(vkQueueSubmit(gpu.queue, 1, &info, gpu.fence));
	CHECK(vkWaitForFences(gpu.device, 1, &gpu.fence, VK_TRUE, UINT64_MAX));
	CHECK(vkResetFences(gpu.device, 1, &gpu.fence));
}

/* The next picture of a window. */
static uint32_t acquire(const struct window *window)
{
	uint32_t index;
	CHECK(vkAcquireNextImageKHR(
		gpu.device, window->swapchain, UINT64_MAX, VK_NULL_HANDLE, gpu.fence, &index));
	CHECK(vkWaitForFences(gpu.device, 1, &gpu.fence, VK_TRUE, UINT64_MAX));
	CHECK(vkResetFences(gpu.device, 1, &gpu.fence));
	return index;
}

static void show(unsigned frame, bool two)
{
	uint32_t indices[WINDOWS], count = two ? WINDOWS : 1;
	VkSwapchainKHR swapchains[WINDOWS];
	for (uint32_t i = 0; i < count; i++) {
		swapchains[i] = gpu.windows[i].swapchain;
		indices[i] = acquire(&gpu.windows[i]);
		submit(gpu.windows[i].images[indices[i]], frame);
	}
	VkPresentInfoKHR info = {.sType = VK_STRUCTURE_TYPE_PRESENT_INFO_KHR,
		.swapchainCount = count,
		.pSwapchains = swapchains,
		.pImageIndices = indices};
	CHECK(vkQueuePresentKHR(gpu.queue, &info));
}

static void destroy_window(struct window *window)
{
	CHECK(vkDeviceWaitIdle(gpu.device));
	vkDestroySwapchainKHR(gpu.device, window->swapchain, NULL);
	vkDestroySurfaceKHR(gpu.instance, window->surface, NULL);
	XDestroyWindow(gpu.display, window->window);
	window->swapchain = VK_NULL_HANDLE;
}

static void change_swapchain(const struct options *options, unsigned frame)
{
	struct window *window = &gpu.windows[0];
	if (frame == options->resize) {
		VkSwapchainKHR old = window->swapchain;
		make_swapchain(window, old);
		vkDestroySwapchainKHR(gpu.device, old, NULL);
	}
	if (frame == options->replace) {
		vkDestroySwapchainKHR(gpu.device, window->swapchain, NULL);
		make_swapchain(window, VK_NULL_HANDLE);
	}
	if (frame == options->close) {
		destroy_window(window);
	}
}

static void run_frames(const struct options *options)
{
	for (unsigned frame = 0; frame < options->frames; frame++) {
		change_swapchain(options, frame);
		if (gpu.windows[0].swapchain != VK_NULL_HANDLE) {
			show(frame, options->two);
		} else {
			submit(VK_NULL_HANDLE, frame);
		}
		usleep(options->frame_ms * 1000);
	}
}

static void destroy_all(void)
{
	CHECK(vkDeviceWaitIdle(gpu.device));
	for (uint32_t i = 0; i < WINDOWS; i++) {
		if (gpu.windows[i].swapchain != VK_NULL_HANDLE) {
			destroy_window(&gpu.windows[i]);
		}
	}
	XCloseDisplay(gpu.display);
	vkDestroyFence(gpu.device, gpu.fence, NULL);
	vkDestroyCommandPool(gpu.device, gpu.pool, NULL);
	vkDestroyDevice(gpu.device, NULL);
	vkDestroyInstance(gpu.instance, NULL);
}

static bool read_number(char **at, const char *name, unsigned *out)
{
	if (at[1] == NULL || strcmp(*at, name) != 0) {
		return false;
	}
	*out = (unsigned)strtoul(at[1], NULL, 10);
	return true;
}

static void read_options(char **argv, struct options *options)
{
	*options = (struct options){
		.frames = 10, .resize = UINT32_MAX, .replace = UINT32_MAX, .close = UINT32_MAX};
	for (char **at = argv + 1; *at != NULL; at++) {
		if (read_number(at, "--frames", &options->frames) ||
			read_number(at, "--frame-ms", &options->frame_ms) ||
			read_number(at, "--resize", &options->resize) ||
			read_number(at, "--replace", &options->replace) ||
			read_number(at, "--close", &options->close)) {
			at++;
		} else if (strcmp(*at, "--exit") == 0) {
			options->exits = true;
		} else if (strcmp(*at, "--two") == 0) {
			options->two = true;
		} else if (strcmp(*at, "--instance") == 0) {
			options->instance_first = true;
		} else {
			fprintf(stderr, "gpu_windows: unknown option %s\n", *at);
			exit(2);
		}
	}
}

int main(int argc, char **argv)
{
	(void)argc;
	struct options options;
	read_options(argv, &options);
	open_display();
	make_instance();
	make_device();
	for (uint32_t i = 0; i < (options.two ? WINDOWS : 1); i++) {
		make_window(&gpu.windows[i]);
		make_swapchain(&gpu.windows[i], VK_NULL_HANDLE);
	}
	run_frames(&options);
	printf("%u frames\n", options.frames);
	if (options.instance_first) {
		vkDestroyInstance(gpu.instance, NULL);
	} else if (!options.exits) {
		destroy_all();
	}
	return 0;
}
