#ifndef PROTOCOL_SHA256_H
#define PROTOCOL_SHA256_H

#include <stddef.h>
#include <stdint.h>

/*
 * SHA-256 (FIPS 180-4), by which shaders are named on the wire and in files: without a library, because this is linked into foreign
 * programs too. Not for secrets. Pure; any thread.
 */
#define SHA256_HEX_BYTES 65 /* 64 hexadecimal digits in lower case, and a NUL */

void sha256_hex(const void *bytes, size_t len, char hex[SHA256_HEX_BYTES]);

#endif
