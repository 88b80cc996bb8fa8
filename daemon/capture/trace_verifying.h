#ifndef CAPTURE_TRACE_VERIFYING_H
#define CAPTURE_TRACE_VERIFYING_H

struct capture;

/*
 * The last step of a GPU trace whose document has its final name: who knows the format reads all of it (gpu/verifying.h). The record says `verified`; what
 * cannot be read is a failure that keeps its document, what was not read a warning. Loop thread.
 */

/* Ends the capture, now or in a later turn. */
void trace_verifying_begin(struct capture *capture);
/* Of a stop for that reason: for an end of the daemon, and for what is thrown away, nobody waits until a document was read. */
void trace_verifying_hasten(struct capture *capture, const char *reason);

#endif
