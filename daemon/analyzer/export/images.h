#ifndef ANALYZER_EXPORT_IMAGES_H
#define ANALYZER_EXPORT_IMAGES_H

#include <jansson.h>

#include "analyzer/export/json.h"

/* What capture.json says of the files that hold the code. */

/* Why frames in an image have no names. */
enum image_lack {
	IMAGE_LACKS_NOTHING,   /* or nothing would help */
	IMAGE_NOT_LOOKED_INTO, /* nor was any other: the analyzer had failed with names */
	IMAGE_IS_GENERATED,    /* code without a file */
	IMAGE_NOT_OPENED,
	IMAGE_DELETED,
	IMAGE_REPLACED,
	IMAGE_UNREADABLE,      /* no file that can be read */
	IMAGE_STRIPPED_SYSTEM, /* a package's: see the next */
	IMAGE_STRIPPED,        /* no symbol table, or the exported functions alone */
	IMAGE_LACKS,           /* how many they are */
};

enum image_lack image_lack_of(const struct json_input *input, uint32_t index);
/* What would help, with the command or option; a constant. NULL of IMAGE_LACKS_NOTHING. */
const char *image_fix(enum image_lack lack);
/* A snake_case name, a constant: "stripped". */
const char *image_lack_name(enum image_lack lack);

/* Those that have samples, most first. Owned; NULL: memory is out. */
json_t *images_json(const struct json_input *input);

#endif
