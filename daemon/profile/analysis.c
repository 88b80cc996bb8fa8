#include "profile/analysis.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "protocol/message.h"

void analysis_message_finish(struct analysis_message *message)
{
	for (size_t i = 0; i < message->file_count; i++) {
		if (message->files[i] >= 0) {
			close(message->files[i]);
		}
	}
	json_decref(message->body);
	*message = (struct analysis_message){0};
}

int analysis_message_take_file(struct analysis_message *message, size_t index)
{
	if (index >= message->file_count) {
		return -1;
	}
	int fd = message->files[index];
	message->files[index] = -1;
	return fd;
}

const char *analysis_message_type(const struct analysis_message *message)
{
	return json_string_value(json_object_get(message->body, "type"));
}

/* A packet is charged to the sender's buffer with the kernel's own overhead: room for two is enough for one. */
static bool make_room(int fd, struct error *err)
{
	int bytes = 2 * ANALYSIS_PACKET_BYTES;
	socklen_t len = sizeof(bytes);
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)) != 0 ||
		getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, &len) != 0) {
		return error_errno(err, "the send buffer of the analyzer's channel");
	}
	if (bytes <= ANALYSIS_PACKET_BYTES) {
		error_set(err, ERROR_LIMIT_EXCEEDED,
			"the send buffer of the analyzer's channel is %d bytes, a packet has up to %d", bytes,
			ANALYSIS_PACKET_BYTES);
		return error_hint(err, "raise net.core.wmem_max to %d", 2 * ANALYSIS_PACKET_BYTES);
	}
	return true;
}

bool analysis_channel(int pair[2], struct error *err)
{
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
		return error_errno(err, "a channel to the analyzer");
	}
	int flags = fcntl(ends[0], F_GETFL);
	if (flags < 0 || fcntl(ends[0], F_SETFL, flags | O_NONBLOCK) != 0) {
		error_errno(err, "a channel to the analyzer");
		goto fail;
	}
	if (!make_room(ends[0], err) || !make_room(ends[1], err)) {
		goto fail;
	}
	pair[0] = ends[0];
	pair[1] = ends[1];
	return true;

fail:
	close(ends[0]);
	close(ends[1]);
	return false;
}

/* The control part of a packet: room for the header and all descriptors, aligned for the header. */
union control {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(ANALYSIS_FILES * sizeof(int))];
};

static void attach(
	struct msghdr *packet, union control *control, const int *files, size_t file_count)
{
	if (file_count == 0) {
		return;
	}
	memset(control, 0, sizeof(*control));
	packet->msg_control = control->bytes;
	packet->msg_controllen = CMSG_SPACE(file_count * sizeof(int));
	struct cmsghdr *header = CMSG_FIRSTHDR(packet);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(file_count * sizeof(int));
	memcpy(CMSG_DATA(header), files, file_count * sizeof(int));
}

static bool send_packet(int fd, const struct msghdr *packet, struct error *err)
{
	ssize_t sent;
	do {
		sent = sendmsg(fd, packet, MSG_NOSIGNAL);
	} while (sent < 0 && errno == EINTR);
	if (sent >= 0) {
		return true;
	}
	if (errno == EPIPE || errno == ECONNRESET) {
		errno = EPIPE;
	}
	return error_errno(
		err, "a packet of %zu bytes on the analyzer's channel", packet->msg_iov[0].iov_len);
}

bool analysis_send(
	int fd, const json_t *body, const int *files, size_t file_count, struct error *err)
{
	if (file_count > ANALYSIS_FILES) {
		return error_set(err, ERROR_INTERNAL, "%zu descriptors for one analysis packet, at most %d",
			file_count, ANALYSIS_FILES);
	}
	size_t len;
	char *text = message_dump(body, &len);
	if (text == NULL) {
		return error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for an analysis packet");
	}
	len--; /* a packet needs no line end */
	if (len > ANALYSIS_PACKET_BYTES) {
		free(text);
		return error_set(err, ERROR_LIMIT_EXCEEDED, "an analysis packet of %zu bytes, at most %d",
			len, ANALYSIS_PACKET_BYTES);
	}
	struct iovec part = {.iov_base = text, .iov_len = len};
	struct msghdr packet = {.msg_iov = &part, .msg_iovlen = 1};
	union control control;
	attach(&packet, &control, files, file_count);
	bool is_sent = send_packet(fd, &packet, err);
	free(text);
	return is_sent;
}

/* Moves every descriptor that came with the packet into the message, which owns them from here on. */
static void collect(struct msghdr *packet, struct analysis_message *message)
{
	for (struct cmsghdr *header = CMSG_FIRSTHDR(packet); header != NULL;
		 header = CMSG_NXTHDR(packet, header)) {
		if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) {
			continue;
		}
		size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count && message->file_count < ANALYSIS_FILES; i++) {
			memcpy(&message->files[message->file_count++], CMSG_DATA(header) + i * sizeof(int),
				sizeof(int));
		}
	}
}

static bool parse(const char *text, size_t len, struct analysis_message *message, struct error *err)
{
	struct error reason = {0};
	message->body = message_parse(text, len, &reason);
	if (message->body == NULL) {
		return error_set(err, ERROR_INTERNAL, "a broken analysis packet: %s", reason.message);
	}
	if (!json_is_object(message->body)) {
		return error_set(err, ERROR_INTERNAL, "an analysis packet that is not an object");
	}
	if (analysis_message_type(message) == NULL) {
		return error_set(err, ERROR_INTERNAL, "an analysis packet without a type");
	}
	return true;
}

/* An empty packet and the end of the channel look alike, but for the hang-up. */
static bool is_hung_up(int fd)
{
	struct pollfd poll_fd = {.fd = fd};
	return poll(&poll_fd, 1, 0) == 1 && (poll_fd.revents & POLLHUP) != 0;
}

/* len bytes arrived, and the descriptors are in message. */
static enum analysis_result check(int fd, const struct msghdr *packet, size_t len,
	struct analysis_message *message, struct error *err)
{
	if ((packet->msg_flags & MSG_CTRUNC) != 0) {
		error_set(err, ERROR_INTERNAL,
			"an analysis packet with more than %d descriptors, or than could be received",
			ANALYSIS_FILES);
		return ANALYSIS_BROKEN;
	}
	if ((packet->msg_flags & MSG_TRUNC) != 0) {
		error_set(
			err, ERROR_INTERNAL, "an analysis packet of more than %d bytes", ANALYSIS_PACKET_BYTES);
		return ANALYSIS_BROKEN;
	}
	if (len == 0 && message->file_count == 0 && is_hung_up(fd)) {
		return ANALYSIS_CLOSED;
	}
	return parse(packet->msg_iov[0].iov_base, len, message, err) ? ANALYSIS_MESSAGE
																 : ANALYSIS_BROKEN;
}

static enum analysis_result no_packet(struct error *err)
{
	switch (errno) {
	case EAGAIN:
		return ANALYSIS_AGAIN;
	case ECONNRESET:
		return ANALYSIS_CLOSED;
	default:
		error_errno(err, "receiving from the analyzer's channel");
		return ANALYSIS_BROKEN;
	}
}

static enum analysis_result receive(
	int fd, char *text, size_t room, struct analysis_message *message, struct error *err)
{
	struct iovec part = {.iov_base = text, .iov_len = room};
	union control control;
	struct msghdr packet = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	ssize_t len;
	do {
		len = recvmsg(fd, &packet, MSG_CMSG_CLOEXEC);
	} while (len < 0 && errno == EINTR);
	if (len < 0) {
		return no_packet(err);
	}
	struct analysis_message received = {0};
	collect(&packet, &received);
	enum analysis_result result = check(fd, &packet, (size_t)len, &received, err);
	if (result == ANALYSIS_MESSAGE) {
		*message = received;
	} else {
		analysis_message_finish(&received);
	}
	return result;
}

/*
 * The length of the packet that is next, or -1 with errno. Blocks where the end does. That the peer left packets unread is told once, and
 * before those that it sent.
 */
static ssize_t next_length(int fd)
{
	ssize_t len;
	do {
		len = recv(fd, NULL, 0, MSG_PEEK | MSG_TRUNC);
	} while (len < 0 && (errno == EINTR || errno == ECONNRESET));
	return len;
}

enum analysis_result analysis_receive(int fd, struct analysis_message *message, struct error *err)
{
	ssize_t len = next_length(fd);
	if (len < 0) {
		return no_packet(err);
	}
	size_t room = len < ANALYSIS_PACKET_BYTES ? (size_t)len : ANALYSIS_PACKET_BYTES;
	char *text = malloc(room + 1);
	if (text == NULL) {
		error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for an analysis packet of %zd bytes", len);
		return ANALYSIS_BROKEN;
	}
	enum analysis_result result = receive(fd, text, room, message, err);
	free(text);
	return result;
}
