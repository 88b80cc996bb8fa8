#include "client/json_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MARK "\xef\xbb\xbf" /* U+FEFF: it says nothing in UTF-8, and is not JSON */

static bool say(char *why, size_t size, const char *text)
{
	snprintf(why, size, "%s", text);
	return false;
}

/* What has an end: a device like /dev/zero has none. */
static bool is_readable(FILE *file, char *why, size_t size)
{
	struct stat info;
	if (fstat(fileno(file), &info) != 0) {
		return say(why, size, strerror(errno));
	}
	if (S_ISDIR(info.st_mode)) {
		return say(why, size, "it is a folder; name the file in it");
	}
	if (S_ISBLK(info.st_mode)) {
		return say(why, size, "it is a disk; name a file");
	}
	return true;
}

/* Owned, of *len bytes. NULL: why. */
static char *read_all(FILE *file, size_t *len, char *why, size_t size)
{
	char *text = malloc(JSON_FILE_BYTES + 1);
	if (text == NULL) {
		say(why, size, "out of memory");
		return NULL;
	}
	*len = fread(text, 1, JSON_FILE_BYTES + 1, file);
	bool ok = !ferror(file) || say(why, size, strerror(errno));
	if (ok && *len > JSON_FILE_BYTES) {
		snprintf(why, size, "it is larger than %d KiB", JSON_FILE_BYTES / 1024);
		ok = false;
	}
	if (!ok) {
		free(text);
		return NULL;
	}
	return text;
}

static bool is_utf16(const char *text, size_t len)
{
	return len >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0);
}

static json_t *parse(const char *text, size_t len, char *why, size_t size)
{
	json_error_t problem;
	size_t skip = len >= strlen(MARK) && memcmp(text, MARK, strlen(MARK)) == 0 ? strlen(MARK) : 0;
	if (is_utf16(text, len)) {
		say(why, size, "it is UTF-16; save it as UTF-8");
		return NULL;
	}
	if (strspn(text + skip, " \t\r\n") == len - skip) {
		say(why, size, "it is empty");
		return NULL;
	}
	json_t *value = json_loadb(text + skip, len - skip, JSON_REJECT_DUPLICATES, &problem);
	if (value == NULL) {
		snprintf(why, size, "line %d: %s", problem.line, problem.text);
	} else if (!json_is_object(value)) {
		say(why, size, "it is no JSON object");
		json_decref(value);
		value = NULL;
	}
	return value;
}

json_t *json_file_object(const char *path, bool *is_read, char *why, size_t size)
{
	*is_read = false;
	size_t len = 0;
	json_t *value = NULL;
	FILE *file = fopen(path, "re");
	if (file == NULL) {
		say(why, size, strerror(errno));
		return NULL;
	}
	char *text = is_readable(file, why, size) ? read_all(file, &len, why, size) : NULL;
	if (text != NULL) {
		text[len] = '\0';
		value = parse(text, len, why, size);
	}
	*is_read = text != NULL;
	free(text);
	fclose(file);
	return value;
}
