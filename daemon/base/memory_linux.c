#include "base/memory.h"

#include <features.h>

#ifdef __GLIBC__

#include <malloc.h>

#define LARGE_BYTES (128 * 1024)
#define HEAPS       2

void memory_set_up(void)
{
	/* Set at all, it does not grow with what is freed any more. */
	mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
	mallopt(M_ARENA_MAX, HEAPS);
}

void memory_give_back(void)
{
	malloc_trim(0);
}

#else

void memory_set_up(void)
{
}

void memory_give_back(void)
{
}

#endif
