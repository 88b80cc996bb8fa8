#ifndef GPU_LAYER_SESSION_STATE_H
#define GPU_LAYER_SESSION_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpu/layer/channel.h"
#include "gpu/layer/fault.h"
#include "gpu/layer/frames.h"
#include "gpu/layer/renderdoc.h"
#include "gpu/layer/session.h"
#include "gpu/layer/shaders.h"
#include "gpu/layer/wish.h"
#include "protocol/clock.h"

/* What the parts of the session (session.c, presence.c, recording.c, devices.c, program.c, listening.c) share, and nobody else. All of it under the lock, but what is atomic. */

enum asking_state {
	ASKING_NOT,
	ASKING_WAITS, /* for profd's answer */
	ASKING_GRANTED,
	ASKING_REFUSED,
};

/* The program's own wish to be captured. One thread asks at a time. */
struct asking {
	enum asking_state state;
	uint64_t number;    /* of the last ask */
	struct wish wish;   /* what was granted */
	struct fault fault; /* why it was refused */
};

struct session_state {
	pthread_mutex_t lock;
	pthread_cond_t heard; /* profd said a word, or is gone; made with the connection */
	atomic_bool is_open;
	atomic_bool wants_work; /* session_working may have something to do */
	atomic_uint in_flight;  /* submits that are passed on without the lock */
	bool has_hello, is_greeted, is_lost;
	atomic_bool has_exit_handler;
	enum session_api api;
	struct channel channel;
	struct renderdoc renderdoc;
	struct shaders *shaders; /* owned; NULL until hello */
	bool has_no_shaders;     /* at the end, when they cannot be looked at any more */
	const char *order;
	struct frames frames;
	struct wish wish;
	struct asking asking;
	char *socket, *token; /* owned; NULL: until hello */
	char *device_wish;    /* owned; NULL: none */
	/* That one cannot be had; code NULL: it can, or was not looked for yet. */
	struct fault no_device;
	bool is_programs;  /* what is captured, the program itself began */
	bool is_end_due;   /* what is captured ends as soon as it can */
	uint64_t waits_ns; /* since when it cannot begin, or end; 0: it can, or was not to */
	_Atomic uint64_t
		renderdoc_ns; /* since when RenderDoc begins or ends; 0: it does not. Without the lock */
	atomic_bool renderdoc_ends;         /* then: which of them */
	void *instance;                     /* what is captured is of this one */
	struct session_device *devices;     /* the newest first */
	const struct frame_counts *current; /* the device whose frame began last; NULL: none */
	uint64_t told_ns, told_frame;
	enum frame_rule told_rule;
	bool has_told;
	uint64_t stop_ns; /* when our own thread ends what is captured, */
	bool is_ending;   /* and another does it for it */
};

extern struct session_state session;

/* Tells of the current frame; must: also when it was told already, or a moment ago by the same rule. */
void session_tell_frame(bool must);

/* A start is possible in this process; the lock is held. */
bool session_check(struct fault *fault);

#endif
