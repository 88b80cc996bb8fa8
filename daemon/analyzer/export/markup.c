#include "analyzer/export/markup.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "protocol/text.h"

#define REPLACEMENT 0xfffdu
#define ELLIPSIS    0x2026u

#define UNIT_BYTES    40
#define LEAST_PERCENT 0.01 /* what two decimals can say */

void markup_raw(struct markup *markup, const char *bytes, size_t len)
{
	if (!markup->failed && len > 0) {
		markup->failed = !buffer_append(markup->out, bytes, len);
	}
}

void markup_printf(struct markup *markup, const char *format, ...)
{
	char text[1024];
	va_list args;
	va_start(args, format);
	int len = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (len < 0 || (size_t)len >= sizeof(text)) {
		markup->failed = true;
		return;
	}
	markup_raw(markup, text, (size_t)len);
}

/* XML 1.0, section 2.2. Surrogates never come out of text_decode. */
static bool allowed_in_xml(uint32_t code_point)
{
	return code_point == '\t' || code_point == '\n' || code_point == '\r' ||
		   (code_point >= 0x20 && code_point != 0xfffe && code_point != 0xffff);
}

/* The next code point and how many bytes it took; broken bytes are replaced one by one. */
static uint32_t next(const char *bytes, size_t len, size_t *size)
{
	uint32_t code_point = 0;
	*size = text_decode(bytes, len, &code_point);
	if (*size == 0) {
		*size = 1;
		return REPLACEMENT;
	}
	return code_point;
}

static void put_utf8(struct markup *markup, uint32_t code_point)
{
	char bytes[4];
	size_t len = 0;
	if (code_point < 0x80) {
		bytes[len++] = (char)code_point;
	} else if (code_point < 0x800) {
		bytes[len++] = (char)(0xc0 | code_point >> 6);
		bytes[len++] = (char)(0x80 | (code_point & 0x3f));
	} else if (code_point < 0x10000) {
		bytes[len++] = (char)(0xe0 | code_point >> 12);
		bytes[len++] = (char)(0x80 | (code_point >> 6 & 0x3f));
		bytes[len++] = (char)(0x80 | (code_point & 0x3f));
	} else {
		bytes[len++] = (char)(0xf0 | code_point >> 18);
		bytes[len++] = (char)(0x80 | (code_point >> 12 & 0x3f));
		bytes[len++] = (char)(0x80 | (code_point >> 6 & 0x3f));
		bytes[len++] = (char)(0x80 | (code_point & 0x3f));
	}
	markup_raw(markup, bytes, len);
}

/* What would turn the text around it to another direction: Unicode's Bidi_Control (UAX 9, section 2). */
static bool turns_text(uint32_t code_point)
{
	return code_point == 0x61c || code_point == 0x200e || code_point == 0x200f ||
		   (code_point >= 0x202a && code_point <= 0x202e) ||
		   (code_point >= 0x2066 && code_point <= 0x2069);
}

/* White space other than a blank is written as a reference, else parsers normalise it away in attributes. */
static void put_xml(struct markup *markup, uint32_t code_point)
{
	if (!allowed_in_xml(code_point) || (code_point >= 0x7f && code_point < 0xa0) ||
		turns_text(code_point)) {
		put_utf8(markup, REPLACEMENT);
	} else if (code_point < 0x20 || code_point == 0x2028 ||
			   (code_point < 0x80 && strchr("<>&'\"", (int)code_point) != NULL)) {
		markup_printf(markup, "&#%" PRIu32 ";", code_point);
	} else {
		put_utf8(markup, code_point);
	}
}

static void put_json(struct markup *markup, uint32_t code_point)
{
	if (code_point == '"' || code_point == '\\') {
		char bytes[2] = {'\\', (char)code_point};
		markup_raw(markup, bytes, 2);
	} else if (!allowed_in_xml(code_point) || code_point < 0x20 ||
			   (code_point >= 0x7f && code_point < 0xa0) || code_point == 0x2028 ||
			   code_point == 0x2029 ||
			   (code_point < 0x80 && strchr("<>&'", (int)code_point) != NULL)) {
		markup_printf(markup, "\\u%04" PRIx32, code_point);
	} else {
		put_utf8(markup, code_point);
	}
}

/* How many bytes at the start are letters that nothing needs to escape: nearly all of every name. */
static size_t plain(const char *bytes, size_t len)
{
	size_t i = 0;
	while (i < len && bytes[i] >= 0x20 && bytes[i] < 0x7f && bytes[i] != '<' && bytes[i] != '>' &&
		   bytes[i] != '&' && bytes[i] != '\'' && bytes[i] != '"' && bytes[i] != '\\') {
		i++;
	}
	return i;
}

static void put_all(struct markup *markup, const char *bytes, size_t len, size_t max_chars,
	void (*put)(struct markup *, uint32_t))
{
	size_t size;
	for (size_t i = 0, chars = 0; i < len && !markup->failed; i += size) {
		size_t left = max_chars - chars;
		size = plain(bytes + i, len - i < left ? len - i : left);
		if (size > 0 && size == left && i + size < len) {
			size--; /* room for the ellipsis */
		}
		if (size > 0) {
			markup_raw(markup, bytes + i, size);
			chars += size;
			continue;
		}
		uint32_t code_point = next(bytes + i, len - i, &size);
		if (++chars >= max_chars && i + size < len) {
			put_utf8(markup, ELLIPSIS);
			return;
		}
		put(markup, code_point);
	}
}

void markup_text(struct markup *markup, const char *bytes, size_t len, size_t max_chars)
{
	put_all(markup, bytes, len, max_chars, put_xml);
}

void markup_json(struct markup *markup, const char *bytes, size_t len, size_t max_chars)
{
	markup_raw(markup, "\"", 1);
	put_all(markup, bytes, len, max_chars, put_json);
	markup_raw(markup, "\"", 1);
}

void markup_fixed(struct markup *markup, double value)
{
	uint64_t hundredths = value > 0 ? (uint64_t)(value * 100 + 0.5) : 0;
	markup_printf(markup, "%" PRIu64 ".%02u", hundredths / 100, (unsigned)(hundredths % 100));
}

void markup_grouped(struct markup *markup, uint64_t value)
{
	char text[32];
	size_t pos = sizeof(text), digits = 0;
	do {
		if (digits > 0 && digits % 3 == 0) {
			text[--pos] = ',';
		}
		text[--pos] = (char)('0' + value % 10);
		value /= 10;
		digits++;
	} while (value > 0);
	markup_raw(markup, text + pos, sizeof(text) - pos);
}

void markup_count(struct markup *markup, uint64_t value, const char *unit)
{
	size_t len = strnlen(unit, UNIT_BYTES);

	if (value == 1 && len > 0 && unit[len - 1] == 's') {
		len--;
	}
	markup_grouped(markup, value);
	markup_raw(markup, " ", 1);
	markup_text(markup, unit, len, UNIT_BYTES);
}

void markup_share(struct markup *markup, double part, double whole, const char *less)
{
	double percent = whole > 0 ? part * 100 / whole : 0;

	if (percent > 0 && percent < LEAST_PERCENT) {
		markup_raw(markup, less, strlen(less));
		percent = LEAST_PERCENT;
	}
	markup_fixed(markup, percent);
	markup_raw(markup, "%", 1);
}

void markup_vlq(struct markup *markup, uint64_t value)
{
	static const char alphabet[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char text[13]; /* 64 bits in digits of 5 */
	size_t len = 0;
	do {
		unsigned digit = value & 31;
		value >>= 5;
		text[len++] = alphabet[value > 0 ? digit | 32 : digit];
	} while (value > 0);
	markup_raw(markup, text, len);
}
