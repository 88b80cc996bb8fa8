#ifndef GPU_SPIRV_TEXTS_H
#define GPU_SPIRV_TEXTS_H

#include "gpu/spirv.h"

/*
 * Texts and languages that a module says by ids, looked up in a second pass over its words behind the header. False: err is parse, of texts that are more than
 * the module, or limit_exceeded. Pure.
 */
bool spirv_find_texts(struct spirv *spirv, struct bytes words, struct error *err);

#endif
