/*
 * A client that measures a daemon, see server.py. Usage:
 *   bench-requests pipelined SOCKET COUNT        requests in batches of 500: how many a second
 *   bench-requests latency SOCKET COUNT          one request outstanding: microseconds to its reply
 *   bench-requests cycles SOCKET COUNT           connect, one request, close
 *   bench-requests subscribers SOCKET COUNT MUTE events of "emit" to COUNT subscribers, of which MUTE never read: microseconds from
 *                                                the program's write to the subscriber's read
 *   bench-requests emit HZ SECONDS               prints the time, HZ times a second
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define BATCH           500
#define SUBSCRIBERS_MAX 64
#define LINE_BYTES      (64 * 1024)
#define EMIT_HZ         "1000"
#define EMIT_SECONDS    "4"

static const char ping[] = "{\"id\":1,\"method\":\"Ping\"}\n";

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static int dial(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	while (connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
		if (errno != EAGAIN) {
			die("connect");
		}
		usleep(1000);
	}
	return fd;
}

static void say(int fd, const char *text, size_t len)
{
	for (size_t sent = 0; sent < len;) {
		ssize_t count = write(fd, text + sent, len - sent);
		if (count < 0) {
			die("write");
		}
		sent += (size_t)count;
	}
}

/* Reads until so many lines have come. */
static void hear_lines(int fd, size_t lines)
{
	static char bytes[LINE_BYTES];
	while (lines > 0) {
		ssize_t count = read(fd, bytes, sizeof(bytes));
		if (count <= 0) {
			die("read");
		}
		for (ssize_t i = 0; i < count; i++) {
			lines -= bytes[i] == '\n';
		}
	}
}

static void pipelined(const char *path, size_t count)
{
	size_t len = sizeof(ping) - 1;
	char *batch = malloc(BATCH * len);
	for (size_t i = 0; i < BATCH; i++) {
		memcpy(batch + i * len, ping, len);
	}
	int fd = dial(path);
	uint64_t begin = now_ns();
	for (size_t done = 0; done < count; done += BATCH) {
		say(fd, batch, BATCH * len);
		hear_lines(fd, BATCH);
	}
	double seconds = (double)(now_ns() - begin) / 1e9;
	printf("%.0f\n", (double)count / seconds);
	close(fd);
	free(batch);
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* The median, the 95th and the 99th percentile, in microseconds. */
static void print_times(uint64_t *times_ns, size_t count)
{
	if (count == 0) {
		fprintf(stderr, "nothing was measured\n");
		exit(1);
	}
	qsort(times_ns, count, sizeof(*times_ns), compare);
	printf("%.1f %.1f %.1f %zu\n", (double)times_ns[count / 2] / 1e3,
		(double)times_ns[count * 95 / 100] / 1e3, (double)times_ns[count * 99 / 100] / 1e3, count);
}

static void latency(const char *path, size_t count)
{
	uint64_t *times = calloc(count, sizeof(*times));
	int fd = dial(path);
	for (size_t i = 0; i < count; i++) {
		uint64_t begin = now_ns();
		say(fd, ping, sizeof(ping) - 1);
		hear_lines(fd, 1);
		times[i] = now_ns() - begin;
		usleep(200); /* a client that thinks, not one that spins */
	}
	print_times(times, count);
	free(times);
}

static void cycles(const char *path, size_t count)
{
	uint64_t begin = now_ns();
	for (size_t i = 0; i < count; i++) {
		int fd = dial(path);
		say(fd, ping, sizeof(ping) - 1);
		hear_lines(fd, 1);
		close(fd);
	}
	printf("%.0f\n", (double)count / ((double)(now_ns() - begin) / 1e9));
}

/* --- subscribers --- */

struct subscriber {
	int fd;
	char *bytes;
	size_t used;
	bool has_ended;
};

struct reading {
	struct subscriber *subscribers;
	size_t count;
	uint64_t *times;
	size_t len, capacity;
};

/* The times in one line's data: digits, each number with an escaped line end behind it. */
static void take_times(struct reading *reading, char *line, uint64_t now)
{
	char *at = strstr(line, "\"data\":\"");
	at = at != NULL ? at + 8 : NULL;
	while (at != NULL && *at >= '0' && *at <= '9') {
		uint64_t written = strtoull(at, &at, 10);
		if (reading->len < reading->capacity && written < now) {
			reading->times[reading->len++] = now - written;
		}
		at += strncmp(at, "\\n", 2) == 0 ? 2 : 0;
	}
}

static void read_some(struct reading *reading, struct subscriber *subscriber)
{
	ssize_t count = read(
		subscriber->fd, subscriber->bytes + subscriber->used, LINE_BYTES - subscriber->used - 1);
	uint64_t now = now_ns();
	if (count <= 0) {
		die("a subscriber was disconnected");
	}
	subscriber->used += (size_t)count;
	char *start = subscriber->bytes, *end = NULL;
	while ((end = memchr(start, '\n', subscriber->used - (size_t)(start - subscriber->bytes)))) {
		*end = '\0';
		take_times(reading, start, now);
		subscriber->has_ended |= strstr(start, "\"ProcessExited\"") != NULL;
		start = end + 1;
	}
	subscriber->used -= (size_t)(start - subscriber->bytes);
	memmove(subscriber->bytes, start, subscriber->used);
}

static size_t open_ones(const struct reading *reading)
{
	size_t open = 0;
	for (size_t i = 0; i < reading->count; i++) {
		open += !reading->subscribers[i].has_ended;
	}
	return open;
}

static void read_all(struct reading *reading)
{
	struct pollfd fds[SUBSCRIBERS_MAX];
	while (open_ones(reading) > 0) {
		for (size_t i = 0; i < reading->count; i++) {
			fds[i] = (struct pollfd){.fd = reading->subscribers[i].fd, .events = POLLIN};
		}
		if (poll(fds, reading->count, 20000) <= 0) {
			die("no event for 20 s");
		}
		for (size_t i = 0; i < reading->count; i++) {
			if (fds[i].revents != 0) {
				read_some(reading, &reading->subscribers[i]);
			}
		}
	}
}

static void subscribers(const char *self, const char *path, size_t count, size_t mute)
{
	static const char subscribe[] = "{\"id\":1,\"method\":\"Subscribe\",\"params\":{\"events\":["
									"\"ProcessOutput\",\"ProcessExited\"]}}\n";
	struct subscriber all[SUBSCRIBERS_MAX] = {0};
	char launch[4096];
	count = count < SUBSCRIBERS_MAX ? count : SUBSCRIBERS_MAX - 1;
	for (size_t i = 0; i < count; i++) {
		all[i] = (struct subscriber){.fd = dial(path), .bytes = malloc(LINE_BYTES)};
		say(all[i].fd, subscribe, sizeof(subscribe) - 1);
		hear_lines(all[i].fd, 1);
	}
	int launcher = dial(path);
	snprintf(launch, sizeof(launch),
		"{\"id\":1,\"method\":\"LaunchProcess\",\"params\":{\"argv\":[\"%s\",\"emit\",\"" EMIT_HZ
		"\",\"" EMIT_SECONDS "\"],\"subscribe\":false}}\n",
		self);
	say(launcher, launch, strlen(launch));
	hear_lines(launcher, 1);
	struct reading reading = {
		.subscribers = all + mute,
		.count = count - mute,
		.capacity = (size_t)1 << 20,
	};
	reading.times = calloc(reading.capacity, sizeof(*reading.times));
	read_all(&reading);
	print_times(reading.times, reading.len);
}

static void emit(unsigned hz, unsigned seconds)
{
	uint64_t period_ns = 1000000000 / hz, next = now_ns();
	for (uint64_t i = 0; i < (uint64_t)hz * seconds; i++) {
		char line[32];
		next += period_ns;
		struct timespec until = {(time_t)(next / 1000000000), (long)(next % 1000000000)};
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
		int len = snprintf(line, sizeof(line), "%" PRIu64 "\n", now_ns());
		say(STDOUT_FILENO, line, (size_t)len);
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 3 ? argv[1] : "";
	if (strcmp(what, "pipelined") == 0) {
		pipelined(argv[2], strtoul(argv[3], NULL, 10));
	} else if (strcmp(what, "latency") == 0) {
		latency(argv[2], strtoul(argv[3], NULL, 10));
	} else if (strcmp(what, "cycles") == 0) {
		cycles(argv[2], strtoul(argv[3], NULL, 10));
	} else if (strcmp(what, "subscribers") == 0 && argc > 4) {
		subscribers(argv[0], argv[2], strtoul(argv[3], NULL, 10), strtoul(argv[4], NULL, 10));
	} else if (strcmp(what, "emit") == 0) {
		emit((unsigned)strtoul(argv[2], NULL, 10), (unsigned)strtoul(argv[3], NULL, 10));
	} else {
		fprintf(stderr, "usage: see the head of tools/bench/requests.c\n");
		return 2;
	}
	return 0;
}
