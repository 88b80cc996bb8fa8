#ifndef GPU_GPU_H
#define GPU_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <uv.h>

#include "base/log.h"
#include "gpu/verifying.h"
#include "protocol/error.h"
#include "protocol/gpu_pick.h"

/*
 * Recording what a program does with the GPU. A backend is a const struct gpu_backend; what it does to one program goes
 * through these steps, and only in this order:
 *
 *   probe ──► arm ──► (the program runs) ──► start ──► stop ──► … start … ──► finish
 *
 * No backend can get into a program that runs already: it is armed before its first instruction, by what is in its environment,
 * and asked to record then or later. All of it on the loop thread, except probe.
 */
struct gpu_armed;
struct checks;

/* The programming interface of the GPU that a program uses. */
enum gpu_api {
	GPU_VULKAN,
	GPU_GL, /* OpenGL and OpenGL ES, by EGL or GLX */
};

/* How a program's work is divided into frames. */
enum gpu_boundary {
	GPU_BY_AUTO,    /* present once one was seen, until then submit */
	GPU_BY_PRESENT, /* an image is shown */
	GPU_BY_SUBMIT,  /* work is handed to a queue */
	GPU_BY_LABEL,   /* a submit with a label that begins with a prefix */
	GPU_BY_MANUAL,  /* only start and stop */
};

#define GPU_LABEL_BYTES 128 /* of that prefix */

/* "auto", "present", … */
const char *gpu_boundary_name(enum gpu_boundary boundary);
/* Of "auto", …, "label:PREFIX"; the prefix is copied to label[GPU_LABEL_BYTES]. False: it is none of them, or the prefix is empty or too long. Pure. */
bool gpu_boundary_parse(const char *text, enum gpu_boundary *boundary, char *label);

/* What is to be recorded. Frames count from 0 since the program made its device. */
struct gpu_range {
	enum gpu_boundary by;
	char label[GPU_LABEL_BYTES]; /* of GPU_BY_LABEL */
	bool has_frames;
	uint64_t first, last; /* with has_frames; both included */
	uint64_t next;        /* without: so many from the next on; 0: from the next until stop */
	/* Of the program's devices (protocol/gpu_pick.h); "": each. */
	char device[GPU_PICK_WISH_BYTES];
	/* What is written begins with this path (borrowed for the call); the backend adds to the name. */
	const char *path_template;
};

/* A GPU as the program sees it. */
struct gpu_device {
	char name[256], driver[256], uuid[33];
	char type[16]; /* cpu, discrete, integrated, virtual, other */
	uint64_t index;
};

/* A document that its writer says is complete. Nothing of it is to be believed before it was looked at. */
struct gpu_document {
	const char *path;
	uint64_t bytes, first, last;
	bool by_program; /* the program itself ended the recording */
	bool is_open;    /* its last frame has not come to its end */
	bool by_window;  /* it ended because the swapchain that was presented last went */
};

/* An entry point of a shader module that the recorded frames used, as the program says: it is to be believed as the document is. */
struct gpu_shader {
	const char *hash; /* SHA-256 of its code, 64 hexadecimal digits in lower case */
	uint64_t bytes;
	const char *stage; /* vertex, fragment, compute, …, other */
	const char *entry;
};

/* Told about what start began, on the loop thread, never from within start or stop. Any of it may end the listening by gpu_listen(armed, NULL, NULL). */
struct gpu_listener {
	/* The recording process is in this frame now (at most 10 a second beside the first 16). */
	void (*frame)(void *context, uint64_t frame);
	/* From this frame on it is recorded. mono_ns is CLOCK_MONOTONIC, wall_ns CLOCK_REALTIME, both the program's; 0: not known. */
	void (*capturing)(void *context, uint64_t frame, uint64_t wall_ns, uint64_t mono_ns);
	/* Before the document: one of the shaders that it used, borrowed for the call; and how many are not told of. */
	void (*shader)(void *context, const struct gpu_shader *shader);
	void (*shaders_left_out)(void *context, uint64_t count);
	/* It is written; nothing follows. Borrowed for the call. */
	void (*document)(void *context, const struct gpu_document *document);
	/* It failed, by the error's code, detail and hint; nothing follows. */
	void (*fault)(void *context, const struct error *err);
	/* The process that was recorded is gone without either. */
	void (*gone)(void *context);
};

/* Who answers an armed program that asks for itself to be recorded (client/gpu/profd_gpu.h). On the loop thread, never from within a call. */
struct gpu_server {
	/*
	 * What is started from within is the answer: the process that asks begins at once, whatever the range says. label is the program's, of any content; "" is
	 * none. False: nothing was started, and the program is told err.
	 */
	bool (*asked)(void *context, const char *label, struct error *err);
};

/* What helps against it. */
#define GPU_WAITS_HINT                                                                             \
	"let the program signal before a recorded frame begins and behind it what its submits wait "   \
	"for, or ask for other frames; by frames, or without a range, it begins where that is so"

/* That the recording started last cannot begin, or end, because the program's GPU cannot come to its end. */
struct gpu_waits {
	uint64_t since_ns; /* CLOCK_MONOTONIC, as the program says */
	bool is_end;
	char text[512]; /* a sentence; "": it is not so, or not known */
};

/* What is known of an armed program. Counts are of all its processes, also those that have ended. */
struct gpu_status {
	enum gpu_api api;  /* that it was armed for */
	size_t connected;  /* processes that are at the other end now */
	size_t processes;  /* that ever used the GPU's programming interface */
	size_t devices;    /* that they made */
	bool has_frame;    /* a frame was told of, by the process that records or would */
	uint64_t frame;    /* the last of them */
	bool has_begun;    /* the recording that was started last has begun, */
	pid_t pid;         /* in this process (0: none yet) */
	char exe[512];     /* of that process, as it says itself */
	char frame_by[16]; /* how it counts: submit, present, label; "" until it is known */
	char version[32];  /* of what records, as that process says; "" when it is not known */
	/* That process's last or, since a recording has begun, the one that is recorded; name "" until there is one. */
	struct gpu_device device;
	bool has_wished; /* a device was made that the recording started last is for */
	struct gpu_waits waits;
	bool
		has_closed; /* a program of it closed its connection to us since the recording started last was; it is there again by another */
	char made[1024]; /* those that its processes have made, and that were made since, for people */
};

#define GPU_FINDING_MOST 16

/* What a probe found. */
struct gpu_finding {
	char version[64];  /* of what records; "" */
	char devices[512]; /* names, separated by ", "; "" */
	size_t device_count;
	struct gpu_device list[GPU_FINDING_MOST]; /* device_count of them, without their drivers */
};

struct gpu_arming {
	enum gpu_api api;
	uv_loop_t *loop;
	const struct log *log;
	/* All of the environment that the program would have, "NAME=value", NULL-terminated; borrowed for the call. */
	const char *const *environment;
	bool lets_program_ask; /* else its own calls do nothing */
	const char *device; /* the GPU that the program is to see (protocol/gpu_pick.h); NULL: each */
};

/* One way to record. Each has a fake in tests/support or tests/integration. */
struct gpu_backend {
	const char *name;                      /* the wire's: "renderdoc" */
	const char *document;                  /* the file's final name in a capture's folder */
	const char *magic;                     /* what it begins with */
	const struct verifying_reader *reader; /* who can read all of it */
	/*
	 * Would it work here? True: *finding says with what. False: err is backend_unavailable, with the first thing that is missing, its detail and what
	 * helps. environment is what a program would have (NULL: the daemon's own). Runs programs and reads files, so it blocks (seconds at most): any thread
	 * but the loop's.
	 */
	bool (*probe)(const char *const *environment, struct gpu_finding *finding, struct error *err);
	/*
	 * Makes what a program needs to be recorded. Looks at files, runs nothing. Owned: finish ends it. NULL: err (backend_unavailable with the detail of
	 * what is missing, io, limit_exceeded).
	 */
	struct gpu_armed *(*arm)(const struct gpu_arming *arming, struct error *err);
	/* What must be added to the program's environment: "NAME=value", NULL-terminated, behind everything else. Borrowed until finish. */
	const char *const *(*environment)(const struct gpu_armed *armed);
	/* All of the environment that the armed program has, for a probe. Borrowed until finish. */
	const char *const *(*surroundings)(const struct gpu_armed *armed);
	/* Who is told from now on; NULL: nobody. */
	void (*listen)(struct gpu_armed *armed, const struct gpu_listener *listener, void *context);
	/* Who answers from now on; NULL: nobody, and every wish is refused. */
	void (*serve)(struct gpu_armed *armed, const struct gpu_server *server, void *context);
	/*
	 * Records range, in the process that works with the GPU, or in the first that will. False: err; it is being recorded already (capture_busy), or has made
	 * its devices and none is range's (gpu_no_calls, device_not_used), or several may be (bad_params, device_ambiguous).
	 */
	bool (*start)(struct gpu_armed *armed, const struct gpu_range *range, struct error *err);
	/* Ends what start began: what was recorded is written, and told as a document, or as a fault. False: there is no process that could do either, and
	 * nothing will be told. */
	bool (*stop)(struct gpu_armed *armed);
	void (*status)(const struct gpu_armed *armed, struct gpu_status *status);
	/* A process that has what was armed in its environment, and lives; 0: none is known. name: what it runs, for people. Blocks as reading /proc does: any
	 * thread, while nothing else is done with it. */
	pid_t (*survivor)(const struct gpu_armed *armed, char *name, size_t size);
	/* Nobody is told any more. The memory goes with a later turn of the loop. NULL is fine. */
	void (*finish)(struct gpu_armed *armed);
};

/* The best that this system has; NULL: none was built. */
const struct gpu_backend *gpu_backend_choose(void);

/* An armed program for as long as anybody holds it: whoever launched it, and whoever records it. */
struct gpu_program {
	const struct gpu_backend *backend;
	struct gpu_armed *armed; /* owned */
	size_t holds;
};

/* Held once. NULL: err is arm's, or limit_exceeded. */
struct gpu_program *gpu_program_arm(
	const struct gpu_backend *backend, const struct gpu_arming *arming, struct error *err);
struct gpu_program *gpu_program_hold(struct gpu_program *program);
/* The last one finishes it. NULL is fine. */
void gpu_program_release(struct gpu_program *program);

/* Doctor's check "gpu": what a probe says. Blocks as probe does. */
void gpu_checks(struct checks *checks);

#endif
