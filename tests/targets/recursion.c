/* Calls itself until 100 frames of descend() stand on the stack, and computes there, in a leaf of its own. */
#include "burn.h"

#define DEPTH 100

static NOINLINE void bottom(unsigned ms)
{
	burn_ms(ms);
}

static NOINLINE void descend(unsigned level, unsigned ms)
{
	if (level == DEPTH) {
		bottom(ms);
	} else {
		descend(level + 1, ms);
	}
	KEEP_FRAME();
}

int main(void)
{
	descend(1, 300);
	return 0;
}
