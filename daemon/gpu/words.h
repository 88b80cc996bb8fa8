#ifndef GPU_WORDS_H
#define GPU_WORDS_H

#include "gpu/link.h"
#include "protocol/gpu_wire.h"

/* What a process of an armed program says, word by word: checked, kept as its facts, and told to who listens. */

/* Whose words they are, what they become, and who is told. All borrowed. */
struct words_hearer {
	struct link *link;
	struct link_facts *facts;
	const struct link_options *options;
};

/* NULL: it was taken. Else why nothing of this process is to be believed any more. The hello is the first, and comes once. */
const char *words_take(const struct words_hearer *hearer, const struct gpu_wire_message *message);

#endif
