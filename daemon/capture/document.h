#ifndef CAPTURE_DOCUMENT_H
#define CAPTURE_DOCUMENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "protocol/error.h"

/* One that was looked at. Whatever becomes of its name, this is it. */
struct document {
	int fd;                     /* owned; -1 */
	uint64_t bytes, written_us; /* its size, and CLOCK_REALTIME of its last change */
	struct stat status;         /* as it was then */
};
#define DOCUMENT_NONE ((struct document){.fd = -1})

/*
 * The document of a GPU trace in its capture's folder. A program writes it, under a name that begins with ARTIFACT_DOCUMENT_PREFIX, and is believed nothing.
 * Any thread; blocking; no link is followed.
 */

/*
 * Gives the file that path's last component names its final name, when it is a regular one of ours without other names, not empty, and begins with magic. It is open
 * and on the disk then, and whatever else begins with the prefix is gone. False: err is io (detail document_missing, document_broken), disk_full.
 */
bool document_take(int folder_fd, const char *path, const char *magic, const char *final_name,
	struct document *document, struct error *err);
/* The same of one that has its final name. */
bool document_open(int folder_fd, const char *magic, const char *final_name,
	struct document *document, struct error *err);
void document_close(struct document *document);
/* It has that name there, no other one, and nobody has changed it. */
bool document_is_at(const struct document *document, int folder_fd, const char *name);

/* The regular file with the prefix that was written last and is not empty: its name into name[NAME_MAX + 1], and its state. False: there is none. */
bool document_find(int folder_fd, char *name, struct stat *status);

#endif
