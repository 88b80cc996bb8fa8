#ifndef STORE_OUTPUT_DIR_H
#define STORE_OUTPUT_DIR_H

#include "protocol/error.h"

/*
 * Opens a folder that a client named, so that nobody but us and root decided which one it is. The path is walked by descriptors:
 *
 *   absolute                                    else bad_params
 *   the last component no symbolic link         else bad_params (a link may be changed between two looks at it)
 *   a link on the way is ours or root's         else not_permitted, detail "foreign_link"
 *   the folder is ours                          else not_permitted, detail "not_ours"
 *   not writable for everyone, or sticky        else not_permitted, detail "open_to_all": others could put theirs in our folder's place
 *
 * Owned; -1: err. Any thread; blocking.
 */
int output_dir_open(const char *path, struct error *err);

#endif
