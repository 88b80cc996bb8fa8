#ifndef SUPPORT_UNWIND_STAGE_H
#define SUPPORT_UNWIND_STAGE_H

#include <stddef.h>
#include <stdint.h>

#include "support/made_image.h"
#include "unwind/unwind.h"

/* A stack of words, an image of functions of 0x100 bytes each (function n at CODE + n * 0x100), and a JIT's code, for unit tests of walks. */

#define BASE  0x7f0000000000 /* where the image's address 0 is */
#define CODE  (BASE + MADE_CODE)
#define JIT   0x7e0000000000
#define STACK 0x7ffc00000000
#define WORDS 128
#define DEPTH 16

struct unwind_stage {
	struct made_image made;
	struct unwinder *unwinder;
	struct unwind_space space;
	size_t cie;
	uint64_t words[WORDS], addresses[DEPTH];
	uint8_t kinds[DEPTH];
	struct unwind_sample sample;
	struct unwind_stack stack;
};

extern uint8_t unwind_stage_bytes[MADE_BYTES]; /* the image that was mapped last */

void unwind_stage_begin(struct unwind_stage *stage, const struct unwind_machine *machine);
void unwind_stage_finish(struct unwind_stage *stage);
/* Before it is mapped: a function with a program of call-frame instructions. */
void unwind_stage_function(
	struct unwind_stage *stage, uint64_t number, const uint8_t *program, size_t len);
void unwind_stage_map(struct unwind_stage *stage);

/* Walks and compares; count addresses. The second walk finds its rules in the cache. */
void unwind_stage_expect(
	struct unwind_stage *stage, enum unwind_end end, size_t count, const uint64_t *wanted);

#define EXPECT(stage, end, ...)                                                                    \
	unwind_stage_expect((stage), (end), sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t),      \
		(const uint64_t[]){__VA_ARGS__})

#define SAVES_FP MADE_PROGRAM(0x0c, 7, 16, 0x86, 2) /* CFA = sp+16, fp at CFA-16 */
#define HAS_FP   MADE_PROGRAM(0x0c, 6, 16, 0x86, 2) /* CFA = fp+16, fp at CFA-16 */
#define IS_LEAF  MADE_PROGRAM(0)                    /* CFA = sp+8 */
#define IS_ROOT  MADE_PROGRAM(0x07, 16)             /* ra undefined */

#endif
