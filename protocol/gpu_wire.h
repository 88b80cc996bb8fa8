#ifndef PROTOCOL_GPU_WIRE_H
#define PROTOCOL_GPU_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What profd and its layer in a program that uses the GPU (daemon/gpu/layer/) say to each other: lines of text, made and read here
 * without allocation and without a library, because this is linked into foreign programs too. Pure functions; any thread.
 *
 * A stream socket of profd's, one for each armed build, mode 0600 in a folder of mode 0700; its path is in PROFD_GPU_SOCKET, a random
 * token of 32 hexadecimal digits in PROFD_GPU_TOKEN. Every process that loads the layer connects by itself (children inherit the
 * environment).
 *
 * A line has at most GPU_WIRE_LINE_BYTES with its line end: a word, then pairs " key=value". Words and keys are [a-z0-9_]; in values every
 * byte but [A-Za-z0-9._/:+,-] is %XX, and NUL is none. A key stands once. What is no such line is refused (the connection is closed).
 * Unknown words and keys are ignored by the layer and refused by profd, which trusts nothing of what it reads: all numbers are checked,
 * at most 8 connections a build, 1 MiB/s.
 *
 * layer → profd
 *   hello token= pid= ppid= exe= api=vulkan|gl order= renderdoc= renderdoc_api= [again=closed]
 *       first, when the program makes its first VkInstance or first makes a context of EGL or GLX current. order: "above" (RenderDoc is below this layer: captures work), "below"
 *       (RenderDoc is above: a start is refused, it would deadlock), "alone" (RenderDoc is not there; renderdoc, its path, and
 *       renderdoc_api, as "1.6.0", are empty). Names above GPU_WIRE_NAME_BYTES are cut.
 *       again: the program has closed the descriptor of this process's connection before; its devices follow, as they are now
 *   device name= type=cpu|discrete|integrated|virtual|other driver= uuid= index=
 *       at each vkCreateDevice, and when a context is first current (uuid all 0, index 0, type cpu or other); uuid: 32 hexadecimal digits, all 0 when an old instance does not tell; index: among the instance's devices
 *   frame n= by=submit|present|label
 *       the frame that has begun last, at most 10 a second beside the first 16, the last one before a document and a bye, and where it is counted in another way from then
 *       on: with a start, and by auto again when that is over
 *   capturing frame= wall_ns= mono_ns= name= uuid= index=
 *       a document begins with this frame; CLOCK_REALTIME, CLOCK_MONOTONIC; of the device that was told so
 *   shader hash= bytes= stage= entry=
 *       before the document that it belongs to: a submit of the captured frames used this entry point of a module of so many bytes, for
 *       this stage (vertex, tess_control, tess_evaluation, geometry, fragment, compute, task, mesh, other). hash: SHA-256 of its
 *       SPIR-V, which is the file TEMPLATE.shaders/HASH.spv. Each of the three together once, at most GPU_WIRE_SHADERS lines a document;
 *       an entry's name above GPU_WIRE_ENTRY_BYTES is cut
 *   shaders left_out=
 *       behind them, when there are any: so many were used too, and are not told of: over the limits, or not to be written
 *   document path= bytes= first= last= [open=1] [by=program|window]
 *       it is written: RenderDoc counts one more, the file is there and is not empty; by=program: the program itself ended it; open=1: the last frame was submitted in part, and not presented; by=window: the
 *       swapchain, window or context that was shown last was about to go, which RenderDoc does not survive
 *   ask n= label=
 *       the program itself wants to be recorded from here until it says so (client/gpu/profd_gpu.h); n grows with each ask of a process, the
 *       label is for people and may be empty. Answered at once by a start with asked=n, or by refused
 *   waits for=begin|end mono_ns= text=
 *       what was started cannot begin, or end, since then (CLOCK_MONOTONIC), because RenderDoc waits for the device, which cannot come to the end of its work:
 *       found before RenderDoc is asked (the beginning is put off to the next place where it can, the end to the first), or because RenderDoc
 *       does not come back. It is over with capturing, document and fault
 *   fault code= text=
 *       codes: layer_order renderdoc_missing renderdoc_too_old document_missing not_capturing busy start_failed frame_passed output_not_writable
 *       nothing_recorded (it was begun, and nothing was submitted or presented until its end)
 *       no_such_boundary device_waits (what was to begin or end here, or never, cannot) descriptor_closed (RenderDoc's
 *       log is another file now) device_not_found device_ambiguous. The last two: of what PROFD_GPU_DEVICE says (protocol/gpu_pick.h); an instance sees all devices
 *       then, and each start is answered by it until another instance has the device
 *   bye why=destroyed|exit
 *       the program's last device is gone (it may make another), or it exits normally
 *
 * profd → layer
 *   start by=auto|submit|present|label|manual [counts=submit|present|label] [label=PREFIX] [device=WISH] first=N last=N template=PATH
 *       frames from 0, both included, counted since the device was made; by label from this start when that was later. submit: each submit
 *       with command buffers is a frame; present: a frame ends with a present; label: a submit with a debug label that begins with the
 *       prefix opens a frame; auto: present once the device has a swapchain or has presented, until then submit. manual has neither first
 *       nor last: from the next submit or present until stop; its frames are numbered as counts says, else as by auto. A PATH has less than GPU_WIRE_PATH_BYTES and is absolute; RenderDoc adds to it.
 *       WISH: only the process's devices that it means (protocol/gpu_pick.h) come into question, also those that are still to be made; when it may mean several,
 *       the first of them to come to the frame.
 *   start by=… next=N template=PATH
 *       the next N frames
 *   start by=manual asked=N template=PATH
 *       the answer to ask n=N: it begins at once, on the thread that asked. One that waits no longer, after GPU_WIRE_ASK_MS, answers with
 *       fault code=not_capturing
 *   refused asked=N code= text=
 *       the other answer: the name of an error of docs/protocol.md, and a sentence
 *   stop
 *       ends a capture under way, answered by document or fault, or one that waits, answered by fault code=not_capturing
 *   status
 *       answered by frame
 *
 * In a program of GL a frame ends with each swap of a context, auto is present, submit is refused (no_such_boundary), a label is a debug
 * group's, and manual begins with the next swap or call that draws, clears or computes.
 *
 * At its first vkCreateDevice, or before its first context is current, the program waits up to GPU_WIRE_GREETING_MS for profd's first line after hello, so that a start at launch
 * can have frame 0: profd answers each hello at once, by start or status.
 */

#define GPU_WIRE_LINE_BYTES  4096
#define GPU_WIRE_PAIRS       12
#define GPU_WIRE_PATH_BYTES  1024 /* of a template or document, with NUL: escaped it fits a line */
#define GPU_WIRE_NAME_BYTES  512  /* of other names, with NUL */
#define GPU_WIRE_LABEL_BYTES 256  /* of a prefix, with NUL */
#define GPU_WIRE_TEXT_BYTES  768  /* of a fault's text, with NUL */
#define GPU_WIRE_ENTRY_BYTES 128  /* of an entry point's name, with NUL */
#define GPU_WIRE_SHADERS     1000 /* lines of shaders a document; below 1 MiB together */
#define GPU_WIRE_GREETING_MS 200
#define GPU_WIRE_ASK_MS      2000 /* the program's own start waits so long for its answer */

/* The folder for shaders is the template and this; a module's file is its hash and that. */
#define GPU_WIRE_SHADERS_FOLDER ".shaders"
#define GPU_WIRE_SHADERS_SUFFIX ".spv"

/* A line that is being made: begin, any number of members, end. */
struct gpu_wire_line {
	size_t len;
	bool is_full; /* something did not fit: the line is not to be sent */
	char text[GPU_WIRE_LINE_BYTES];
};

void gpu_wire_begin(struct gpu_wire_line *line, const char *word);
void gpu_wire_text(struct gpu_wire_line *line, const char *key, const char *value);
void gpu_wire_number(struct gpu_wire_line *line, const char *key, uint64_t value);
/* Adds the line end. False: it did not fit, there is no line. */
bool gpu_wire_end(struct gpu_wire_line *line);

/* A line that was read. All strings are borrowed from the line. */
struct gpu_wire_message {
	const char *word;
	size_t count;
	struct gpu_wire_pair {
		const char *key, *value; /* the value as it was before it was escaped */
	} pairs[GPU_WIRE_PAIRS];
};

/* Takes text[0 … len) apart in place; text[len], where its line end was, becomes NUL. False: it is no line of this wire. */
bool gpu_wire_parse(char *text, size_t len, struct gpu_wire_message *message);

/* NULL when there is no such key. */
const char *gpu_wire_get(const struct gpu_wire_message *message, const char *key);
/* False when there is no such key, or its value is not a decimal number below 2^64; then out is untouched. */
bool gpu_wire_get_number(const struct gpu_wire_message *message, const char *key, uint64_t *out);

/* Bytes as they come from a stream, until they are lines. Zero is empty. */
struct gpu_wire_input {
	size_t begin, end; /* of what was not taken yet */
	char text[GPU_WIRE_LINE_BYTES];
};

enum gpu_wire_found {
	GPU_WIRE_NOTHING, /* read more */
	GPU_WIRE_MESSAGE,
	GPU_WIRE_GARBLED, /* no such line, or one that is too long: close the connection */
};

/* Where the next bytes of the stream are to be read to, and how many (at least 1 after GPU_WIRE_NOTHING); messages are invalid after it. */
char *gpu_wire_room(struct gpu_wire_input *input, size_t *room);
/* So many were read. */
void gpu_wire_filled(struct gpu_wire_input *input, size_t count);
/* The next line. Its message is valid until gpu_wire_room. */
enum gpu_wire_found gpu_wire_next(struct gpu_wire_input *input, struct gpu_wire_message *message);

#endif
