#ifndef GPU_LAYER_WISH_H
#define GPU_LAYER_WISH_H

#include "gpu/layer/fault.h"
#include "gpu/layer/frames.h"
#include "protocol/gpu_pick.h"

/* What a start asks for. */
struct wish {
	struct frame_wish frames;
	char device[GPU_PICK_WISH_BYTES]; /* which of the process's; "": each */
	char template[GPU_WIRE_PATH_BYTES];
};

/* False: start_failed, with what is wrong in the message. Pure. */
bool wish_read(const struct gpu_wire_message *message, struct wish *wish, struct fault *fault);

/* The name of a rule on the wire. */
const char *wish_rule_name(enum frame_rule rule);

#endif
