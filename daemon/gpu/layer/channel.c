#include "gpu/layer/channel.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* What the thread has for itself. There is one thread in a process, and it may outlive whoever made it. */
static struct {
	int fd;
	const struct channel_listener *listener;
	struct gpu_wire_input input;
} reader;

/* A process has one connection; its thread may send while another does. In a child of the process nobody does. */
static pthread_mutex_t sending = PTHREAD_MUTEX_INITIALIZER;

bool channel_connect(struct channel *channel, const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(address.sun_path)) {
		return false;
	}
	memcpy(address.sun_path, path, strlen(path));
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0) {
		return false;
	}
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
		close(fd);
		return false;
	}
	pthread_mutex_init(&sending, NULL);
	channel->fd = fd;
	return true;
}

/* False: the connection is of no use any more. */
static bool read_some(void)
{
	size_t room;
	struct gpu_wire_message message;
	enum gpu_wire_found found;
	char *to = gpu_wire_room(&reader.input, &room);
	ssize_t got = recv(reader.fd, to, room, 0);
	if (got < 0) {
		return errno == EAGAIN || errno == EINTR;
	}
	gpu_wire_filled(&reader.input, (size_t)got);
	while ((found = gpu_wire_next(&reader.input, &message)) == GPU_WIRE_MESSAGE) {
		reader.listener->heard(&message);
	}
	return got > 0 && found == GPU_WIRE_NOTHING;
}

static void *read_commands(void *unused)
{
	const struct channel_listener *listener = reader.listener;
	bool is_lost = false;
	while (!is_lost || !listener->is_done()) {
		struct pollfd waited = {.fd = is_lost ? -1 : reader.fd, .events = POLLIN};
		if (poll(&waited, 1, listener->tick()) > 0 && !read_some()) {
			shutdown(reader.fd, SHUT_RDWR);
			listener->lost();
			is_lost = true;
		}
	}
	return unused;
}

bool channel_listen(struct channel *channel, const struct channel_listener *listener)
{
	sigset_t all, before;
	pthread_attr_t attributes;
	pthread_t thread;
	memset(&reader, 0, sizeof(reader));
	reader.fd = channel->fd;
	reader.listener = listener;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	int failed = pthread_create(&thread, &attributes, read_commands, NULL);
	if (failed == 0) {
		pthread_setname_np(thread, "profd-gpu");
	}
	pthread_attr_destroy(&attributes);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return failed == 0;
}

static uint64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* False: there was no room in time. */
static bool wait_for_room(int fd, uint64_t end_ms)
{
	struct pollfd waited = {.fd = fd, .events = POLLOUT};
	for (;;) {
		uint64_t now = now_ms();
		int ready = now < end_ms ? poll(&waited, 1, (int)(end_ms - now)) : 0;
		if (ready >= 0 || errno != EINTR) {
			return ready > 0;
		}
	}
}

static bool send_all(int fd, const struct gpu_wire_line *line, bool must)
{
	uint64_t end_ms = now_ms() + CHANNEL_SEND_MS;
	size_t sent = 0;
	while (sent < line->len) {
		ssize_t count = send(fd, line->text + sent, line->len - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (count >= 0) {
			sent += (size_t)count;
		} else if (errno == EAGAIN && sent == 0 && !must) {
			return true;
		} else if (errno != EINTR && (errno != EAGAIN || !wait_for_room(fd, end_ms))) {
			shutdown(fd, SHUT_RDWR); /* the thread sees it */
			return false;
		}
	}
	return true;
}

bool channel_send(struct channel *channel, struct gpu_wire_line *line, bool must)
{
	if (channel->fd < 0 || !gpu_wire_end(line)) {
		return false;
	}
	pthread_mutex_lock(&sending);
	bool is_sent = send_all(channel->fd, line, must);
	pthread_mutex_unlock(&sending);
	return is_sent;
}
