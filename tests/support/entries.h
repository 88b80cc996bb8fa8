#ifndef SUPPORT_ENTRIES_H
#define SUPPORT_ENTRIES_H

#include <stddef.h>

/* How many names are in a folder. Fails the test when it cannot be read. */
size_t entries_count(const char *path);

#endif
