#ifndef TESTS_UNWIND_DIFFERENCE_H
#define TESTS_UNWIND_DIFFERENCE_H

#include "unwind/peers.h"

/* What makes another unwinder's stack differ from ours: each kind has its proof in the stack's own data. */
enum difference {
	DIFFERENCE_NONE,
	/* The innermost function has popped rbp and its row still says that rbp is at CFA - 16, now below sp, where no copy is. They do not know rbp
	 * then and stop at the first frame that needs it; rbp is in its register. */
	DIFFERENCE_EPILOGUE,
	/* Both are led to an address where no code is, because the unwinder of exceptions overwrites the stack that it leaves (uw_install_context).
	 * They give it as a frame, we do not. */
	DIFFERENCE_NO_CODE,
	/* The image has no .eh_frame_hdr, without which this peer finds nothing. */
	DIFFERENCE_NO_TABLE,
	/* Code without call-frame information, from which they step to an address where no code is, or past what the frame record at rbp says. */
	DIFFERENCE_GUESSED,
	/* An entry of a linkage table without rows (lld's, mold's), at which they stop: the return address is at sp, or above the word that it pushed. */
	DIFFERENCE_STUB,
	DIFFERENCE_UNEXPLAINED,
	DIFFERENCES,
};

extern const char *const difference_names[DIFFERENCES];

enum difference difference_of(struct replay *replay, const struct replay_process *process,
	const struct corpus_event *event, const struct unwind_stack *ours, const struct peer_ops *peer,
	const struct peer_stack *theirs);

#endif
