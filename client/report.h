#ifndef CLIENT_REPORT_H
#define CLIENT_REPORT_H

#include <stdio.h>

#include <jansson.h>

/* A capture's record or terminal event, told to a person. */

/* The ten top functions with their shares; nothing when there are no samples. */
void report_top(FILE *out, const json_t *record);
/* "recorded frames 2 to 3 (asked for: frames 2 to 3) by submit on <device>", as far as that is known. Of GPU traces. */
void report_frames(FILE *out, const json_t *record);
/* "profctl: the <what> ended: it was stopped"; nothing when it ended as it was to. */
void report_reason(FILE *out, const char *what, const json_t *record);
/* "warning: <message> (<hint>)", a line each. */
void report_warnings(FILE *out, const json_t *record);
/* The paths of the GPU trace, or of flame graph, folded stacks and metadata, a line each. */
void report_paths(FILE *out, const json_t *record);

#endif
