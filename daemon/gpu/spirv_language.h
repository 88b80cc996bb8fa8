#ifndef GPU_SPIRV_LANGUAGE_H
#define GPU_SPIRV_LANGUAGE_H

#include "gpu/spirv.h"

/* What the sources of a module are written in. Pure. */

/* "glsl", "essl", "hlsl", "wgsl", …: as it says, or as its file's name or its maker tells. NULL: nobody does. Static. */
const char *spirv_language(const struct spirv *spirv, const struct spirv_source *source);
/* What files of a language (may be NULL) end in: "glsl", "hlsl", "wgsl", "slang", "txt". */
const char *spirv_extension(const char *language);

#endif
