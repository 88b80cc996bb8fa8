/* A library with one function; two are built whose code lies at the same place and has another name. */
#include "burn.h"

void LIBRARY_FUNCTION(unsigned ms);

void LIBRARY_FUNCTION(unsigned ms)
{
	burn_ms(ms);
}
