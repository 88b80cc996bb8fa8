#ifndef CAPTURE_DOCUMENT_H
#define CAPTURE_DOCUMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/error.h"

/*
 * The document of a GPU trace in its capture's folder. A program writes it, under a name that begins with ARTIFACT_DOCUMENT_PREFIX, and is believed nothing.
 * Any thread; blocking; no link is followed.
 */

/*
 * Gives the file that path's last component names its final name, when it is a regular one of ours, not empty, and begins with magic; *bytes are its
 * size. It is on the disk then, and whatever else begins with the prefix is gone. False: err is io (detail document_missing, document_broken), disk_full.
 */
bool document_take(int folder_fd, const char *path, const char *magic, const char *final_name,
	uint64_t *bytes, struct error *err);

#endif
