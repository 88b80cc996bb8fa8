#ifndef PROFILE_ANALYSIS_H
#define PROFILE_ANALYSIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "protocol/error.h"

/*
 * What daemon and profd-analyzer say to each other. The analyzer parses files that the target chose, so it is
 * treated as hostile: it opens nothing itself, every file reaches it as a descriptor, and what it says is checked.
 *
 * The channel is a SOCK_SEQPACKET Unix socket pair, descriptor 3 in the analyzer. A packet is one JSON object (UTF-8,
 * at most ANALYSIS_PACKET_BYTES) with a member "type", and up to ANALYSIS_FILES descriptors (SCM_RIGHTS), which belong to the receiver. What a
 * packet's descriptors are is said by its type.
 *
 * daemon → analyzer
 *   {"type":"begin","version":2,"capture_id":…,"symbols":bool,"same_kernel":bool,"outputs":["folded","svg","json","symbols"],"facts":{…}}
 *        descriptors: the journal (read-only), then one per output (write-only, empty), in that order.
 *        symbols false: do not look into images, name everything "[image+0xoffset]" (after a crash).
 *        same_kernel false: the machine has another kernel than when it was recorded; the vDSO is not ours.
 *        facts: what only the daemon knows, for capture.json and the pictures (below).
 *   {"type":"image","image":id}             descriptor: the file of that journal image (read-only, regular)
 *   {"type":"kernel_symbols"}               descriptor: /proc/kallsyms
 *   {"type":"kept_symbols"}                 descriptor: an earlier capture.symbols of this journal: its names are used where no file has one
 *   {"type":"file","request":n,"found":bool}  descriptor when found: the answer to "want" (later: debug links, .dwo)
 *   {"type":"finish"}                       everything was sent: write the outputs
 *   {"type":"query","request":n,"method":…,"params":{…}}  (later: the contract's Query… methods)
 *   {"type":"cancel","request":n}           (later)
 *   end of the channel                      exit
 *
 * analyzer → daemon
 *   {"type":"progress","permille":0…1000,"phase":"symbolizing"|"writing"}
 *   {"type":"want","request":n,"image":id,"kind":"debug_link"|"dwo"|…,"name":…}  (later)
 *   {"type":"done","summary":{…},"warnings":[{"code","message","hint"?}],"samples":n,"lost":n,"threads":n,
 *    "truncated":n, "outputs":{"folded":{"bytes":n,"stacks":n},…}}
 *        after it every output is complete, the analyzer has closed them. summary is the contract's.
 *   {"type":"failed","error":{…}}           error_to_json; outputs are to be thrown away
 *   {"type":"answer","request":n,"result"|"error":{…}}  (later)
 *
 * facts: {"schema":"profd.capture","version":1,"capture_id","build_id","label","target":{"pid","argv","cwd","exit_code","signal"},
 *   "options":{what was asked},"effective":{"sampler","unwinder","hz","period_ns","kernel","scope","rings_bytes"},
 *   "reason","started_unix_us","ended_unix_us","duration_ms","server_version","warnings":[…]}. The analyzer copies
 *   them into capture.json and adds what it finds in the journal.
 */

#define ANALYSIS_FD           3
#define ANALYSIS_VERSION      2
#define ANALYSIS_PACKET_BYTES (128 * 1024)
#define ANALYSIS_FILES        16

/* What an analyzer may use; more ends it, and the capture is finished without names. */
#define ANALYSIS_MEMORY_MIN  (UINT64_C(1) << 30) /* half of the machine's memory, within these two */
#define ANALYSIS_MEMORY_MAX  (UINT64_C(8) << 30)
#define ANALYSIS_CPU_SECONDS 600

/* One packet as it arrived. Zero-initialise. */
struct analysis_message {
	json_t *body;              /* an object with a string "type"; owned */
	int files[ANALYSIS_FILES]; /* owned, close-on-exec; -1 once taken */
	size_t file_count;
};

/* Releases body and the descriptors that were not taken. Zero again afterwards. */
void analysis_message_finish(struct analysis_message *message);

/* Takes descriptor number index out of the message: the caller owns it. -1 when there is none. */
int analysis_message_take_file(struct analysis_message *message, size_t index);

/* The "type"; never NULL for a received message. */
const char *analysis_message_type(const struct analysis_message *message);

/* A connected pair, both ends close-on-exec: [0] the daemon's, non-blocking; [1] the analyzer's, blocking. The send buffer holds a whole packet. */
bool analysis_channel(int pair[2], struct error *err);

/*
 * Sends body (borrowed) with file_count descriptors (borrowed, duplicated by the kernel). On a non-blocking end a full channel
 * is limit_exceeded with detail "eagain": nothing was sent, try again when writable. io with detail "epipe" when the peer is gone.
 */
bool analysis_send(
	int fd, const json_t *body, const int *files, size_t file_count, struct error *err);

enum analysis_result {
	ANALYSIS_MESSAGE,
	ANALYSIS_AGAIN,  /* nothing there now (non-blocking end) */
	ANALYSIS_CLOSED, /* the peer is gone */
	ANALYSIS_BROKEN, /* err: not an object, no type, too large, too many descriptors (all closed) */
};

enum analysis_result analysis_receive(int fd, struct analysis_message *message, struct error *err);

#endif
