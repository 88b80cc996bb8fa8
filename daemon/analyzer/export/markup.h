#ifndef ANALYZER_EXPORT_MARKUP_H
#define ANALYZER_EXPORT_MARKUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

/*
 * Writes XML 1.0 and JSON inside XML into a buffer. Names come from the profiled process, so they may hold any bytes:
 * what is no UTF-8, or a code point that XML 1.0 forbids (section 2.2), is U+FFFD. Running out of memory is
 * remembered, so that a writer checks once at its end.
 */
struct markup {
	struct buffer *out; /* borrowed */
	bool failed;
};

/* Bytes that are markup already. */
void markup_raw(struct markup *markup, const char *bytes, size_t len);
/* Formats up to 1023 bytes; for numbers and constants. No floating point: the decimal sign follows the locale. */
void markup_printf(struct markup *markup, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Text to be read, for elements and for attributes in either quote; at most max_chars code points, the last one then being "…". DEL, C1
 * controls and what turns the direction of text are U+FFFD too: a name must not change what stands beside it.
 */
void markup_text(struct markup *markup, const char *bytes, size_t len, size_t max_chars);
/*
 * A quoted JSON string, cut alike. Nothing in it means anything to XML, HTML or JavaScript: < > & ' DEL, controls,
 * U+2028, U+2029 and what XML forbids are written as \uXXXX.
 */
void markup_json(struct markup *markup, const char *bytes, size_t len, size_t max_chars);
/* value with two decimals and a point. */
void markup_fixed(struct markup *markup, double value);
/* 1234567 as 1,234,567. */
void markup_grouped(struct markup *markup, uint64_t value);
/* "1 sample", "2,000 samples": the unit (at most 40 bytes) is a plural that ends in s. */
void markup_count(struct markup *markup, uint64_t value, const char *unit);
/* "12.34%"; "<0.01%" where two decimals would say that there is nothing. less: how "<" is written there. */
void markup_share(struct markup *markup, double part, double whole, const char *less);
/*
 * A number in base 32, lowest digit first, each digit a character of the base64 alphabet; 32 is added to every digit
 * but the last.
 */
void markup_vlq(struct markup *markup, uint64_t value);

#endif
