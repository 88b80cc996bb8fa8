#ifndef TESTS_SUPPORT_DESCRIPTORS_H
#define TESTS_SUPPORT_DESCRIPTORS_H

#include <stddef.h>

/* How many of the first 1024 descriptors of this process are open. */
size_t descriptors_open(void);

#endif
