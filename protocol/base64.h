#ifndef PROTOCOL_BASE64_H
#define PROTOCOL_BASE64_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The bytes of standard base64 with its padding (RFC 4648 section 4), as it comes from the wire: false for anything else, also for bits behind
 * the last byte that are not 0. out takes (len / 4) * 3 bytes and may be text itself. Pure; any thread. protocol/text.h has the other direction.
 */
bool base64_decode(const char *text, size_t len, char *out, size_t *out_len);

#endif
