#ifndef PROTOCOL_LIMITS_H
#define PROTOCOL_LIMITS_H

/* Every size that comes from outside is bounded by a number here. Those of the wire are told by Hello. */

#define LIMIT_REQUEST_BYTES (1024 * 1024) /* one request line, without its line end */
#define LIMIT_SKIPPED_BYTES                                                                        \
	(8 * 1024 * 1024)                 /* of one over-long line, then the connection is closed */
#define LIMIT_HEADER_BYTES       4096 /* before one message, with header framing */
#define LIMIT_LINE_BYTES         (60 * 1024) /* one line that the daemon sends */
#define LIMIT_JSON_DEPTH         32
#define LIMIT_CLIENTS            64
#define LIMIT_REQUESTS_IN_FLIGHT 64  /* per client */
#define LIMIT_BUILDS             64  /* alive at once */
#define LIMIT_EXITED_BUILDS      256 /* remembered */
#define LIMIT_EXITED_BUILD_MS    (60 * 60 * 1000)
#define LIMIT_RUNNING_CAPTURES   16
#define LIMIT_HELPERS            32 /* of those, and of recoveries, that are to die with the daemon */
#define LIMIT_SYMBOLIZINGS       4                /* captures whose names are made again at once */
#define LIMIT_INTEGER            9007199254740992 /* 2^53: beyond it JavaScript is not exact */

#define LIMIT_ID_BYTES           128 /* build_id, request ids, request_key */
#define LIMIT_LABEL_BYTES        256
#define LIMIT_ARGV_SHOWN_BYTES   4096 /* of argv in a record */
#define LIMIT_ARGUMENTS          16384
#define LIMIT_ENVIRONMENT        16384         /* variables */
#define LIMIT_OUTPUT_EVENT_BYTES 8192          /* program output in one event */
#define LIMIT_OUTPUT_BYTES       (1024 * 1024) /* kept of each stream while the program runs */
#define LIMIT_OUTPUT_LAST_BYTES  (64 * 1024)   /* and after its exit */
#define LIMIT_GET_OUTPUT_BYTES   (44 * 1024)   /* in one reply: as base64 they fit a line */
#define LIMIT_OUTPUT_FILES_MS                                                                      \
	(14 * 24 * 60 * 60 *                                                                           \
		UINT64_C(1000)) /* what programs wrote into files, when nobody knows them */
#define LIMIT_INPUT_BYTES   (1024 * 1024) /* that wait for a program to read them */
#define LIMIT_TERMINAL_SIDE 65535         /* rows, columns */
#define LIMIT_DESCENDANTS   4096          /* of a build that is stopped, looked after */
#define LIMIT_SURVIVORS     20            /* named in a reply */
#define LIMIT_EVENT_LIST    20            /* entries of a list in an event */

#define LIMIT_SUBSCRIPTIONS 64   /* per client, with Subscribe */
#define LIMIT_KEPT_EVENTS   4096 /* for since_seq */
#define LIMIT_KEPT_EVENT_BYTES                                                                     \
	(3 * 1024 * 1024)             /* of their lines; all of them must fit a client's queue */
#define LIMIT_REQUEST_KEYS   1024 /* remembered */
#define LIMIT_REQUEST_KEY_MS (10 * 60 * 1000)

/* The queue of one client. */
#define LIMIT_QUEUE_EVENT_BYTES (1024 * 1024) /* above it output events are dropped */
#define LIMIT_QUEUE_PAUSE_BYTES                                                                    \
	(1024 * 1024) /* of replies and state changes; above it no more requests are read */
#define LIMIT_QUEUE_HARD_BYTES (4 * 1024 * 1024) /* above it the client is disconnected */
#define LIMIT_STALL_MS         30000 /* no progress for so long with a full queue: disconnected */

/* Captures. */
#define LIMIT_HZ_DEFAULT          999
#define LIMIT_DURATION_MS         604800000 /* a week */
#define LIMIT_PROGRESS_MS_DEFAULT 250
#define LIMIT_GRACE_MS_DEFAULT    5000
#define LIMIT_MAX_DEPTH           4096          /* of stacks that are unwound */
#define LIMIT_STACK_FRAMES        127           /* the kernel's perf_event_max_stack by default */
#define LIMIT_IMAGES              65536         /* files with code, per capture */
#define LIMIT_PROCESSES           65536         /* per capture */
#define LIMIT_NAME_BYTES          (64 * 1024)   /* a symbol's demangled name */
#define LIMIT_CHUNK_BYTES         (1024 * 1024) /* a journal chunk's payload */

/* GPU traces: what processes with our layer in them may say (protocol/gpu_wire.h). */
#define LIMIT_GPU_LINKS         8  /* processes of one armed build at once */
#define LIMIT_GPU_DEVICES       16 /* different ones that are remembered of a process */
#define LIMIT_GPU_BYTES_PER_S   (1024 * 1024)
#define LIMIT_GPU_HELLO_MS      5000                  /* until the first line is there */
#define LIMIT_GPU_WAIT_MS       (24 * 60 * 60 * 1000) /* the largest timeout_ms */
#define LIMIT_GPU_WAIT_DEFAULT  60000
#define LIMIT_GPU_ANSWER_MS     5000 /* until a program that records nothing yet answers a stop */
#define LIMIT_GPU_FREE_BYTES    (16 * 1024 * 1024) /* with less space left nothing is recorded */
#define LIMIT_GPU_SHADER_BYTES  (16 * 1024 * 1024) /* of one module's SPIR-V */
#define LIMIT_GPU_SHADERS_BYTES (64 * 1024 * 1024) /* of all modules of a trace */
#define LIMIT_GPU_VERIFY_MS     30000              /* for reading a whole document */
#define LIMIT_GPU_VERIFY_OUTPUT (UINT64_C(1024) * 1024 * 1024)     /* what its reader may write */
#define LIMIT_GPU_VERIFY_MEMORY (UINT64_C(4) * 1024 * 1024 * 1024) /* what it may map, and the */
#define LIMIT_GPU_VERIFY_TIMES  16                                 /* document's size so often */
#define LIMIT_GPU_ASKS          1000  /* captures that one build's program has asked for itself */
#define LIMIT_GPU_DOCUMENT_MS   60000 /* from the end of a recording until its document is there */

#endif
