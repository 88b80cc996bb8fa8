#ifndef GPU_LAYER_STRUCTURES_H
#define GPU_LAYER_STRUCTURES_H

#include <stddef.h>

#include <vulkan/vulkan.h>

/* The first structure of that type in a list of pNext (the specification's "pNext chain"), which begins with chain; NULL: there is none. Borrowed. */
static inline const void *structures_find(const void *chain, VkStructureType type)
{
	const VkBaseInStructure *at = chain;
	while (at != NULL && at->sType != type) {
		at = at->pNext;
	}
	return at;
}

#endif
