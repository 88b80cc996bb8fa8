#include "gpu/layer/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "gpu/layer/alone.h"
#include "protocol/clock.h"

/* What the thread has for itself. There is one thread in a process, and it may outlive whoever made it. */
static struct {
	struct channel *channel;
	const struct channel_listener *listener;
	struct gpu_wire_input input;
} reader;

static bool is_ours(const struct channel *channel)
{
	struct stat status;
	return channel->fd >= 0 && fstat(channel->fd, &status) == 0 && S_ISSOCK(status.st_mode) &&
		   status.st_dev == channel->device && status.st_ino == channel->inode;
}

/* What waits at the other end, or in the thread here, sees it. */
static void hang_up(const struct channel *channel)
{
	if (is_ours(channel)) {
		shutdown(channel->fd, SHUT_RDWR);
	}
}

void channel_close(struct channel *channel)
{
	if (is_ours(channel)) {
		close(channel->fd);
	}
	channel->fd = -1;
}

/* A process has one connection; its thread may send while another does. In a child of the process nobody does. */
static pthread_mutex_t sending = PTHREAD_MUTEX_INITIALIZER;

/* The same socket by a number that is out of the way. fd is closed, or what is returned when there is no such number. */
static int move_up(int fd)
{
	int high = fcntl(fd, F_DUPFD_CLOEXEC, CHANNEL_LOWEST_FD);
	if (high >= 0) {
		close(fd);
	}
	return high >= 0 ? high : fd;
}

bool channel_connect(struct channel *channel, const char *path, bool is_high)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct stat status;
	if (strlen(path) >= sizeof(address.sun_path)) {
		return false;
	}
	memcpy(address.sun_path, path, strlen(path));
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0) {
		return false;
	}
	fd = move_up(fd);
	if ((is_high && fd < CHANNEL_LOWEST_FD) ||
		connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0 || fstat(fd, &status) != 0) {
		close(fd);
		return false;
	}
	pthread_mutex_init(&sending, NULL);
	*channel = (struct channel){status.st_dev, status.st_ino, fd};
	return true;
}

/* False: the connection is of no use any more. */
static bool read_some(void)
{
	size_t room;
	struct gpu_wire_message message;
	enum gpu_wire_found found;
	char *to = gpu_wire_room(&reader.input, &room);
	ssize_t got = recv(reader.channel->fd, to, room, 0);
	if (got < 0) {
		return errno == EAGAIN || errno == EINTR;
	}
	gpu_wire_filled(&reader.input, (size_t)got);
	while ((found = gpu_wire_next(&reader.input, &message)) == GPU_WIRE_MESSAGE) {
		reader.listener->heard(&message);
	}
	return got > 0 && found == GPU_WIRE_NOTHING;
}

/* Until something is there to be read, the time is over, or the descriptor has to be looked at. True: the first. */
static bool wait_for_words(bool is_lost)
{
	struct pollfd waited = {.fd = is_lost ? -1 : reader.channel->fd, .events = POLLIN};
	int wait_ms = reader.listener->tick();
	if (wait_ms < 0 || wait_ms > CHANNEL_LOOK_MS) {
		wait_ms = CHANNEL_LOOK_MS;
	}
	return poll(&waited, 1, wait_ms) > 0;
}

static void *read_commands(void *unused)
{
	const struct channel_listener *listener = reader.listener;
	bool is_lost = false;
	/* The process ends with the last of its threads, and that is not to be this one. */
	while ((!is_lost || !listener->is_done()) && !alone_in_process()) {
		bool has_words = wait_for_words(is_lost);
		if (is_lost) {
			continue;
		}
		if (!is_ours(reader.channel)) {
			memset(&reader.input, 0, sizeof(reader.input));
			is_lost = !listener->renew();
		} else if (has_words) {
			is_lost = !read_some();
		}
		if (is_lost) {
			hang_up(reader.channel);
			listener->lost();
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
	reader.channel = channel;
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

/* False: there was no room in time. */
static bool wait_for_room(int fd, uint64_t end_ms)
{
	struct pollfd waited = {.fd = fd, .events = POLLOUT};
	for (;;) {
		uint64_t now = clock_monotonic_ms();
		int ready = now < end_ms ? poll(&waited, 1, (int)(end_ms - now)) : 0;
		if (ready >= 0 || errno != EINTR) {
			return ready > 0;
		}
	}
}

static bool send_all(const struct channel *channel, const struct gpu_wire_line *line, bool must)
{
	int fd = channel->fd;
	uint64_t end_ms = clock_monotonic_ms() + CHANNEL_SEND_MS;
	size_t sent = 0;
	while (sent < line->len) {
		ssize_t count = send(fd, line->text + sent, line->len - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (count >= 0) {
			sent += (size_t)count;
		} else if (errno == EAGAIN && sent == 0 && !must) {
			return true;
		} else if (errno != EINTR && (errno != EAGAIN || !wait_for_room(fd, end_ms))) {
			hang_up(channel); /* the thread sees it */
			return false;
		}
	}
	return true;
}

bool channel_send(struct channel *channel, struct gpu_wire_line *line, bool must)
{
	if (!is_ours(channel) || !gpu_wire_end(line)) {
		return false;
	}
	pthread_mutex_lock(&sending);
	bool is_sent = send_all(channel, line, must);
	pthread_mutex_unlock(&sending);
	return is_sent;
}
