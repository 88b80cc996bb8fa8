#ifndef TARGETS_GPU_CHECK_H
#define TARGETS_GPU_CHECK_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <vulkan/vulkan.h>

/* Ends the program with 2 when the call did not do what it was to. A swapchain that does not quite fit its window (VK_SUBOPTIMAL_KHR) is presented to all the same. */
#define CHECK(call) check((call), #call)

static inline void check(VkResult result, const char *what)
{
	if (result != VK_SUCCESS && result != VK_SUBOPTIMAL_KHR) {
		fprintf(stderr, "%s: %s: %d\n", program_invocation_short_name, what, (int)result);
		exit(2);
	}
}

#endif
