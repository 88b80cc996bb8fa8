#include "gpu/gpu.h"
#include "gpu/renderdoc.h"

const struct gpu_backend *gpu_backend_choose(void)
{
	return &gpu_renderdoc;
}
