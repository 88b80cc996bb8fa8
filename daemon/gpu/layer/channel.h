#ifndef GPU_LAYER_CHANNEL_H
#define GPU_LAYER_CHANNEL_H

#include <stdbool.h>

#include <sys/types.h>

#include "protocol/gpu_wire.h"

/*
 * The connection to profd, and the thread that reads it. The program's signals never reach that thread. Nothing here ever blocks the
 * program for longer than CHANNEL_SEND_MS: a profd that does not read is left.
 *
 * The descriptor is in the program's table: programs that close what they did not open (closefrom) close it, and may have another file in its place. So it
 * is looked at before each use, and every CHANNEL_LOOK_MS by the thread, which also ends then when no other thread of the process lives, and whose own waiting keeps a closed connection open until then.
 */
#define CHANNEL_SEND_MS   1000
#define CHANNEL_LOWEST_FD 500 /* what it is at least, if that can be had */
#define CHANNEL_LOOK_MS   1000

struct channel {
	dev_t device; /* the socket's own, by which it is known again */
	ino_t inode;
	int fd; /* -1: closed; set under the owner's lock, and closed by the thread alone, which may send without that lock */
};

/* What the thread calls; without the owner's lock. */
struct channel_listener {
	void (*heard)(const struct gpu_wire_message *message);
	/* The connection is gone or was garbled. */
	void (*lost)(void);
	/* The program has closed the descriptor. True: the channel has another connection. */
	bool (*renew)(void);
	/* After each of the above, and when the time it returned last has passed: in how many ms again, -1 for never. */
	int (*tick)(void);
	/* The thread ends after lost() once this is true. */
	bool (*is_done)(void);
};

/*
 * Connects without waiting. False: nobody is there. is_high: only with a descriptor of CHANNEL_LOWEST_FD and more, because who had lower ones before all were
 * closed may write to them still (RenderDoc to its log).
 */
bool channel_connect(struct channel *channel, const char *path, bool is_high);
/* Starts the thread; both borrowed for ever. False: no thread could be made. */
bool channel_listen(struct channel *channel, const struct channel_listener *listener);
/* Closes the descriptor, unless it is another's by now. */
void channel_close(struct channel *channel);
/* Ends the line and sends it. must: wait for room; without it the line may be dropped. False: the connection is shut down now, or was. */
bool channel_send(struct channel *channel, struct gpu_wire_line *line, bool must);

#endif
