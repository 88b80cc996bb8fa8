#include "gate_orders.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gate_words.h"
#include "protocol/gate.h"

extern char **environ;

/* What was set, and what of it has a name that the environment has not. Pages that are not touched cost nothing. */
static struct {
	char text[GATE_SET_BYTES];
	size_t used, count;
	char *added[GATE_SETS];
	size_t added_count;
} sets;

/* The next byte; an owner that is gone ends us. */
static char next_byte(int fd)
{
	static char bytes[512];
	static ssize_t count, at;
	while (at == count) {
		at = 0;
		count = recv(fd, bytes, sizeof(bytes), 0);
		if (count < 0 && errno == EAGAIN) {
			struct pollfd owner = {.fd = fd, .events = POLLIN};
			poll(&owner, 1, -1);
		}
		if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) {
			_exit(GATE_EXIT_NO_GO);
		}
		count = count < 0 ? 0 : count;
	}
	return bytes[at++];
}

/* The rest of a word whose beginning decides which it is. */
static void expect(int fd, const char *rest)
{
	while (*rest != '\0') {
		if (next_byte(fd) != *rest++) {
			_exit(GATE_EXIT_NO_GO);
		}
	}
}

/* In place of the variable of that name; false when there is none. */
static bool replace(char **texts, size_t count, char *text, size_t name_len)
{
	for (size_t i = 0; i < count && texts[i] != NULL; i++) {
		if (strncmp(texts[i], text, name_len + 1) == 0) {
			texts[i] = text;
			return true;
		}
	}
	return false;
}

/* "NAME=VALUE" up to its NUL byte. */
static void read_set(int fd)
{
	char *text = sets.text + sets.used;
	size_t len = 0;
	do {
		if (sets.used == sizeof(sets.text) || sets.count == GATE_SETS) {
			gate_fail(fd, "environment", E2BIG,
				"more than %d variables or %d bytes of them are set: give them to profd-gate "
				"itself",
				GATE_SETS, GATE_SET_BYTES);
		}
		text[len] = next_byte(fd);
		sets.used++;
	} while (text[len++] != '\0');
	const char *equals = strchr(text, '=');
	if (equals == NULL || equals == text) {
		gate_fail(fd, "environment", EINVAL, "%s is set, which is not NAME=VALUE", text);
	}
	sets.count++;
	size_t name_len = (size_t)(equals - text);
	if (!replace(environ, SIZE_MAX, text, name_len) &&
		!replace(sets.added, sets.added_count, text, name_len)) {
		sets.added[sets.added_count++] = text;
	}
}

/* The array that the kernel made has no room for more. */
static char **extended(int fd)
{
	size_t count = 0;
	while (environ[count] != NULL) {
		count++;
	}
	size_t bytes = (count + sets.added_count + 1) * sizeof(char *);
	char **texts = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (texts == MAP_FAILED) {
		gate_fail(fd, "environment", errno, "no memory for %zu variables of the environment",
			count + sets.added_count);
	}
	memcpy(texts, environ, count * sizeof(char *));
	memcpy(texts + count, sets.added, sets.added_count * sizeof(char *));
	return texts;
}

char **gate_take_orders(int fd)
{
	static const char go[] = GATE_GO, set[] = GATE_SET;

	for (;;) {
		char first = next_byte(fd);
		if (first == go[0]) {
			expect(fd, &go[1]);
			return sets.added_count > 0 ? extended(fd) : environ;
		}
		if (first != set[0]) {
			_exit(GATE_EXIT_NO_GO);
		}
		expect(fd, &set[1]);
		read_set(fd);
	}
}
