#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is accepted becomes one line of ASCII and is accepted again. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error err;
	json_t *value = message_parse((const char *)data, size, &err);
	if (value == NULL) {
		return 0;
	}
	size_t len = 0;
	char *line = message_dump(value, &len);
	if (line == NULL || len == 0 || line[len - 1] != '\n') {
		abort();
	}
	for (size_t i = 0; i + 1 < len; i++) {
		if (line[i] < ' ' || (line[i] & 0x80)) {
			abort();
		}
	}
	json_t *again = message_parse(line, len, &err);
	if (again == NULL) {
		abort();
	}
	json_decref(again);
	free(line);
	json_decref(value);
	return 0;
}
