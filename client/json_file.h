#ifndef CLIENT_JSON_FILE_H
#define CLIENT_JSON_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

/* A file that a person or an editor wrote, of this size at most. */
#define JSON_FILE_BYTES (1024 * 1024)

/*
 * The JSON object in it; UTF-8, also with the mark that some editors begin it with. Files and pipes are read, to their end. Owned. NULL: why (size bytes) says what
 * is wrong, with the line where there is one ("line 3: …"), *is_read that this is the text, not the file.
 */
json_t *json_file_object(const char *path, bool *is_read, char *why, size_t size);

#endif
