#ifndef GPU_LAYER_SHADER_FILES_H
#define GPU_LAYER_SHADER_FILES_H

#include "gpu/layer/channel.h"
#include "gpu/layer/shaders.h"

/*
 * Writes the modules that the capture used into the folder beside the template (protocol/gpu_wire.h), as files of mode 0600 in a folder of
 * mode 0700, follows no link, and tells profd of each. What cannot be written is left out, and told so.
 */
void shader_files_write(struct shaders *shaders, const char *template, struct channel *channel);

#endif
