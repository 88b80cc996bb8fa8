#ifndef CAPTURE_CODES_H
#define CAPTURE_CODES_H

#include <stddef.h>

#include "unwind/cfi.h"

/*
 * What is known of the code of files, shared by all captures of the daemon: whoever maps a file that another capture has in use finds its
 * call-frame information made already. Dropped when no capture uses it any more. Any thread; a lock that is held for look-ups and for
 * reading a new file's headers, never for a sample.
 */
struct codes;

/* With one reference. NULL: memory is out. */
struct codes *codes_create(void);
struct codes *codes_ref(struct codes *codes);
/* Whoever has code of it holds a reference for as long. NULL is fine. */
void codes_release(struct codes *codes);

/* The code of a file (fd is borrowed: it is duplicated), told apart by device, inode, size and times. NULL: it is no file of a known format, or cannot be
 * read. Goes back with codes_put. */
struct cfi *codes_get(struct codes *codes, int fd, struct cfi_reader *reader);
/* That of the kernel's own code in every process, the vDSO. */
struct cfi *codes_get_vdso(struct codes *codes, struct cfi_reader *reader);
/* NULL is fine. */
void codes_put(struct codes *codes, struct cfi *cfi);

#endif
