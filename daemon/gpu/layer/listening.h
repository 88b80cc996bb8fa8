#ifndef GPU_LAYER_LISTENING_H
#define GPU_LAYER_LISTENING_H

#include "gpu/layer/channel.h"

/*
 * What profd says to this process (protocol/gpu_wire.h), and what becomes of the session when profd is gone. On the channel's thread: a
 * start takes effect in the program's next calls, and so does a stop, unless there is none for a while.
 */
extern const struct channel_listener listening;

#endif
