#ifndef PROTOCOL_TEXT_H
#define PROTOCOL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

/*
 * Bytes that should be text: paths, arguments, thread names, program output. None of it can be trusted to be
 * UTF-8 (RFC 3629: no overlong forms, no surrogates, at most U+10FFFF), and jansson refuses what is not.
 * Pure functions; any thread.
 */

/* Length of the valid UTF-8 sequence at bytes[0 … len), 1 to 4; 0 when there is none. code_point may be NULL. */
size_t text_decode(const char *bytes, size_t len, uint32_t *code_point);

bool text_is_utf8(const char *bytes, size_t len);

/* The largest length <= len at which the text can be cut without splitting a character. */
size_t text_cut(const char *bytes, size_t len);

/* How many bytes at the end (0 to 3) begin a character whose rest has not come yet. For streams. */
size_t text_incomplete_tail(const char *bytes, size_t len);

/* A copy in which every byte that is no UTF-8, and NUL, is U+FFFD. *out_len excludes the final NUL byte.
 * Owned by the caller (free); NULL when memory is out. */
char *text_repair(const char *bytes, size_t len, size_t *out_len);

/* Standard base64 with padding (RFC 4648 section 4). Owned by the caller (free); NULL when memory is out. */
char *text_base64(const void *bytes, size_t len);

/* A JSON string of the repaired bytes. Owned. */
json_t *text_json(const char *bytes, size_t len);

/*
 * Sets object[name] to the text; when the bytes are not UTF-8 (or hold NUL) to the repaired text, and
 * object[name + "_b64"] to the exact bytes (contract, chapter 3). False when memory is out.
 */
bool text_set(json_t *object, const char *name, const char *bytes, size_t len);

/* Several texts as one member: an array of them, and when one is not UTF-8 another, "<name>_b64", of all their exact bytes. Zero is an empty list. */
struct text_list {
	json_t *texts, *bytes; /* owned */
	bool is_repaired;      /* one of them is not UTF-8 */
};

bool text_list_add(struct text_list *list, const char *bytes, size_t len);
/* False: memory is out. The list stays. */
bool text_list_set(const struct text_list *list, json_t *object, const char *name);
void text_list_finish(struct text_list *list);

#endif
