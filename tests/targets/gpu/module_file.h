#ifndef TARGETS_GPU_MODULE_FILE_H
#define TARGETS_GPU_MODULE_FILE_H

#include <stddef.h>
#include <stdint.h>

/* The words of a file of SPIR-V, which live as long as the program; *bytes: how long. Ends the program with 2 where it cannot be read. */
const uint32_t *module_file_read(const char *path, size_t *bytes);

#endif
