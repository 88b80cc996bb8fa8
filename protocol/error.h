#ifndef PROTOCOL_ERROR_H
#define PROTOCOL_ERROR_H

#include <stdarg.h>
#include <stdbool.h>

#include <jansson.h>

/*
 * The one error type. The caller owns the struct (zero is "no error") and passes it last; a function that
 * fails fills it and returns false (or NULL, or -1). Codes are the wire's (docs/protocol.md, "Errors").
 * Messages are one sentence: lower case, no full stop, naming the thing and the number. No function here
 * allocates, except error_to_json. Any thread.
 *
 * X(enumerator, wire name, JSON-RPC number, retryable, default hint)
 */
#define ERROR_LIST(X)                                                                              \
	X(PARSE, "parse_error", -32700, false, "send one JSON object per line, in UTF-8")              \
	X(INVALID_REQUEST, "invalid_request", -32600, false,                                           \
		"send {\"id\":1,\"method\":\"Ping\"}, one object per line")                                \
	X(UNKNOWN_METHOD, "unknown_method", -32601, false, "call Describe for the list of methods")    \
	X(BAD_PARAMS, "bad_params", -32602, false,                                                     \
		"call Describe with this method for its parameters")                                       \
	X(BUILD_NOT_FOUND, "build_not_found", -32001, false,                                           \
		"call ListProcesses for the builds known")                                                 \
	X(BUILD_EXISTS, "build_exists", -32001, false,                                                 \
		"choose another build_id, or stop that build first")                                       \
	X(BUILD_NOT_RUNNING, "build_not_running", -32001, false, "launch it again")                    \
	X(PROCESS_NOT_FOUND, "process_not_found", -32001, false, "check that the process still runs")  \
	X(CAPTURE_NOT_FOUND, "capture_not_found", -32001, false, "call ListCaptures for those known")  \
	X(CAPTURE_BUSY, "capture_busy", -32001, true, "stop that capture, or wait for its end")        \
	X(CAPTURE_NOT_RUNNING, "capture_not_running", -32001, false,                                   \
		"call GetCapture for what it has become")                                                  \
	X(LAUNCH_FAILED, "launch_failed", -32001, false, "check argv[0], cwd and their permissions")   \
	X(NOT_PERMITTED, "not_permitted", -32001, false,                                               \
		"run profd as the user that owns it, or as root")                                          \
	X(UNSUPPORTED, "unsupported", -32001, false, "see the capabilities that Hello returns")        \
	X(BACKEND_UNAVAILABLE, "backend_unavailable", -32001, false,                                   \
		"choose another one that Hello's capabilities name")                                       \
	X(HZ_TOO_HIGH, "hz_too_high", -32001, false, "ask for a lower hz")                             \
	X(LIMIT_EXCEEDED, "limit_exceeded", -32001, true,                                              \
		"ask for less, or again once something has ended")                                         \
	X(TARGET_EXITED, "target_exited", -32001, false, "launch it again")                            \
	X(TARGET_PRIVILEGED, "target_privileged", -32001, false,                                       \
		"run profd as root, or profile a copy of the program that you own")                        \
	X(NO_SAMPLES, "no_samples", -32001, false,                                                     \
		"give it more work, raise hz, or sample for longer")                                       \
	X(TIMEOUT, "timeout", -32001, true, "what was waited for goes on: ask again")                  \
	X(CANCELLED, "cancelled", -32001, false, "start it again if that was not meant")               \
	X(DISK_FULL, "disk_full", -32001, true, "free some space on that file system")                 \
	X(IO, "io", -32001, false, "check that file system and the folder's permissions")              \
	X(INTERRUPTED, "interrupted", -32001, true,                                                    \
		"the daemon ended in the middle of it: start it again")                                    \
	X(SHUTTING_DOWN, "shutting_down", -32001, true, "connect again once the daemon has restarted") \
	X(GPU_NOT_ARMED, "gpu_not_armed", -32001, false, "launch with gpu: true")                      \
	X(GPU_NO_CALLS, "gpu_no_calls", -32001, false,                                                 \
		"check that the program draws with a supported API")                                       \
	X(GPU_FRAME_NOT_REACHED, "gpu_frame_not_reached", -32001, false,                               \
		"choose an earlier frame, or wait for longer")                                             \
	X(INTERNAL, "internal", -32001, false, "this is a fault of profd: please report it")

enum error_code {
	ERROR_NONE = 0,
#define ERROR_ENUM(name, wire, number, retryable, hint) ERROR_##name,
	ERROR_LIST(ERROR_ENUM)
#undef ERROR_ENUM
		ERROR_COUNT,
};

#define ERROR_MESSAGE_BYTES 4608 /* holds a path of PATH_MAX and a sentence around it */
#define ERROR_HINT_BYTES    512
#define ERROR_DETAIL_BYTES  64

struct error {
	enum error_code code;
	char detail[ERROR_DETAIL_BYTES]; /* a finer snake_case name from an open list, or "" */
	char message[ERROR_MESSAGE_BYTES];
	char hint[ERROR_HINT_BYTES]; /* "" means the code's default hint */
};

/* Fill err (NULL is allowed everywhere) and return false, so that `return error_set(…)` reads well. A message
 * that does not fit is cut at a character boundary. */
bool error_set(struct error *err, enum error_code code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* From errno, which is read first: EACCES and EPERM become not_permitted, ENOSPC, EDQUOT and EFBIG disk_full,
 * EMFILE, ENFILE, ENOMEM and EAGAIN limit_exceeded, everything else io. The message is "<format>: <strerror>",
 * detail the errno's name in lower case ("enoent"). */
bool error_errno(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* As error_errno, but with a given code and errno value (libuv's negative ones are accepted). */
bool error_errno_as(struct error *err, enum error_code code, int errno_value, const char *format,
	...) __attribute__((format(printf, 4, 5)));

/* Puts "<format>: " before the message that is there. Code, detail and hint stay. */
bool error_wrap(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Replace one part of an error that is set. Return false too. */
bool error_hint(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool error_detail(struct error *err, const char *detail);

/* The wire's name ("build_not_found"), number (-32001), whether trying again can help, default hint. Never NULL. */
const char *error_code_name(enum error_code code);
int error_code_number(enum error_code code);
bool error_code_retryable(enum error_code code);
const char *error_code_hint(enum error_code code);
/* ERROR_NONE when the name is unknown. */
enum error_code error_code_from_name(const char *name);

/* The wire's object {"code":number,"message":…,"data":{"code":name,"hint":…,"retryable":…,"detail":…}}; hint and
 * detail are left out when empty. Owned by the caller; NULL when memory is out. */
json_t *error_to_json(const struct error *err);
/* The reverse, for clients: unknown names become internal. Returns false when the object is not such an error. */
bool error_from_json(struct error *err, const json_t *object);

#endif
