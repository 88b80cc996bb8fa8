#ifndef TESTS_UNWIND_SNAPSHOTS_H
#define TESTS_UNWIND_SNAPSHOTS_H

#include <stdint.h>

/* What a program of aarch64 writes of itself when its timer fires: registers, then so many bytes of its stack, from sp upwards. */
#define SNAPSHOT_MARK 0x746f687370616e73u /* "snapshot" */

struct snapshot {
	uint64_t mark;
	uint64_t registers[31]; /* x0 to x30 */
	uint64_t sp, pc;
	uint64_t stack_bytes;
};

#endif
