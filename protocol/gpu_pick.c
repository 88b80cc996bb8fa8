#include "protocol/gpu_pick.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UUID_DIGITS  32
#define INDEX_DIGITS 9 /* more are no index */

/* uuid[UUID_DIGITS + 1] in lower case, without dashes. False: it is none. */
static bool read_uuid(const char *text, char *uuid)
{
	size_t len = 0;
	for (; *text != '\0'; text++) {
		if (*text == '-') {
			continue;
		}
		if (!isxdigit((unsigned char)*text) || len == UUID_DIGITS) {
			return false;
		}
		uuid[len++] = (char)tolower((unsigned char)*text);
	}
	uuid[len] = '\0';
	return len == UUID_DIGITS;
}

static bool is_unknown(const char *uuid)
{
	return uuid[strspn(uuid, "0")] == '\0';
}

static bool is_index(const char *text)
{
	size_t len = strlen(text);
	return len > 0 && len <= INDEX_DIGITS && strspn(text, "0123456789") == len;
}

static bool has_name(const struct gpu_pick_device *device, const char *wish)
{
	return strcmp(device->name, wish) == 0;
}

static bool has_index(const struct gpu_pick_device *device, const char *wish)
{
	return device->index == strtoull(wish, NULL, 10);
}

static bool has_uuid(const struct gpu_pick_device *device, const char *wish)
{
	char wished[UUID_DIGITS + 1], known[UUID_DIGITS + 1];
	return read_uuid(wish, wished) && read_uuid(device->uuid, known) && !is_unknown(known) &&
		   strcmp(wished, known) == 0;
}

static bool begins_alike(const char *text, const char *part)
{
	while (*part != '\0' && tolower((unsigned char)*text) == tolower((unsigned char)*part)) {
		text++;
		part++;
	}
	return *part == '\0';
}

static bool has_part(const struct gpu_pick_device *device, const char *wish)
{
	const char *at = device->name;
	while (*at != '\0' && !begins_alike(at, wish)) {
		at++;
	}
	return *at != '\0' && *wish != '\0';
}

typedef bool (*matches_fn)(const struct gpu_pick_device *device, const char *wish);

static size_t mark(const char *wish, const struct gpu_pick_device *devices, size_t count,
	matches_fn matches, bool *chosen)
{
	size_t found = 0;
	for (size_t i = 0; i < count; i++) {
		chosen[i] = matches(&devices[i], wish);
		found += chosen[i];
	}
	return found;
}

static bool have_one_name(const struct gpu_pick_device *devices, size_t count, const bool *chosen)
{
	const char *name = NULL;
	for (size_t i = 0; i < count; i++) {
		if (chosen[i] && name != NULL && strcmp(name, devices[i].name) != 0) {
			return false;
		}
		name = chosen[i] ? devices[i].name : name;
	}
	return true;
}

enum gpu_pick gpu_pick(
	const char *wish, const struct gpu_pick_device *devices, size_t count, bool *chosen)
{
	char uuid[UUID_DIGITS + 1];
	if (mark(wish, devices, count, has_name, chosen) > 0) {
		return GPU_PICK_FOUND;
	}
	matches_fn matches = is_index(wish) ? has_index : read_uuid(wish, uuid) ? has_uuid : has_part;
	if (mark(wish, devices, count, matches, chosen) == 0) {
		return GPU_PICK_NONE;
	}
	return matches != has_part || have_one_name(devices, count, chosen) ? GPU_PICK_FOUND
																		: GPU_PICK_AMBIGUOUS;
}

void gpu_pick_names(
	const struct gpu_pick_device *devices, size_t count, const bool *chosen, char *out, size_t size)
{
	static const char more[] = "…";
	size_t used = 0;
	snprintf(out, size, "none");
	for (size_t i = 0; i < count; i++) {
		char text[512];
		bool has_uuid = !is_unknown(devices[i].uuid);
		if (chosen != NULL && !chosen[i]) {
			continue;
		}
		int len = snprintf(text, sizeof(text), "%s%" PRIu64 ": %.300s%s%s%s", used > 0 ? ", " : "",
			devices[i].index, devices[i].name, has_uuid ? " (" : "",
			has_uuid ? devices[i].uuid : "", has_uuid ? ")" : "");
		if (used + (size_t)len + sizeof(more) > size) {
			snprintf(out + used, size - used, "%s", more);
			return;
		}
		memcpy(out + used, text, (size_t)len + 1);
		used += (size_t)len;
	}
}
