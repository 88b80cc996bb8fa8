/*
 * exec_chain [PROGRAM]: computes for 200 ms and becomes PROGRAM. Two are built, at fixed addresses, whose code lies at the same place
 * and has another name.
 */
#include <unistd.h>

#include "burn.h"

static NOINLINE void CHAIN_FUNCTION(void)
{
	burn_ms(200);
}

int main(int argc, char **argv)
{
	CHAIN_FUNCTION();
	if (argc > 1) {
		execv(argv[1], &argv[1]);
		return 1;
	}
	return 0;
}
