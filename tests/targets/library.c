/* A library with one function; two are built whose code lies at the same place, has another name and takes another piece of stack. */
#include "burn.h"

void LIBRARY_FUNCTION(unsigned ms);

void LIBRARY_FUNCTION(unsigned ms)
{
	char taken[LIBRARY_FRAME];

	__asm__ volatile("" ::"r"(taken) : "memory");
	burn_ms(ms);
	__asm__ volatile("" ::"r"(taken) : "memory");
}
