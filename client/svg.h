#ifndef CLIENT_SVG_H
#define CLIENT_SVG_H

#include <stdbool.h>

#include <jansson.h>

/* --svg KEY=VALUE of record, capture and launch: how the flame graph looks (protocol/svg_options.h). */

/* For the commands' help. */
#define SVG_HELP                                                                                   \
	"      --svg KEY=VALUE     the flame graph's title, width_px, min_share_ppm, order,\n"         \
	"                          layout, colors or threads; may be repeated\n"

/* Sets the member in svg, an object. False: told, with the right keys or values. */
bool svg_set(json_t *svg, const char *text);
/* The same in the member "svg" of a StartSamplingProfile's parameters, made when there is none. */
bool svg_set_in(json_t *params, const char *text);

#endif
