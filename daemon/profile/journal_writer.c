#include "profile/journal_writer.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "protocol/limits.h"

/* One chunk is filled while the others wait for the disk. */
#define CHUNKS (JOURNAL_WRITER_BACKLOG_CHUNKS + 1)
/* The record that passes the end of a chunk still finds room, and moves to the next one. */
#define SLACK_BYTES (8 * 1024)

struct chunk {
	struct buffer bytes; /* room for the header, then the payload */
	uint32_t segment, number;
};

/*
 * chunks is a ring: filling is the appending thread's, the waiting ones before it are the disk thread's, the rest
 * are free. A chunk changes hands under the lock, its bytes are touched without it.
 */
struct journal_writer {
	struct chunk chunks[CHUNKS];

	/* The appending thread's. */
	size_t filling;
	uint64_t last_time_ns; /* of the chunk being filled */
	uint32_t next_segment, segment, next_number;
	uint64_t max_bytes;

	/* Shared. */
	pthread_mutex_t lock;
	pthread_cond_t has_work, has_room;
	size_t waiting;           /* under lock; with the one that is being written */
	bool must_end;            /* under lock */
	struct error first_error; /* under lock; code ERROR_NONE: none */
	atomic_bool failed;
	_Atomic uint64_t bytes;

	/* The disk thread's. */
	pthread_t thread;
	size_t writing;
	int fd;              /* owned */
	uint64_t file_bytes; /* whole chunks in the file */
	bool is_cut;         /* a write failed: the rest goes nowhere */
};

static void fail(struct journal_writer *writer, const struct error *err)
{
	pthread_mutex_lock(&writer->lock);
	if (writer->first_error.code == ERROR_NONE) {
		writer->first_error = *err;
	}
	pthread_mutex_unlock(&writer->lock);
	atomic_store(&writer->failed, true);
}

static size_t payload_bytes(const struct chunk *chunk)
{
	return chunk->bytes.len - JOURNAL_HEADER_BYTES;
}

static void clear(struct chunk *chunk)
{
	chunk->bytes.len = JOURNAL_HEADER_BYTES;
}

/* Half a chunk at the end would only cost its reader a question. The error that is told is the first one. */
static void cut(struct journal_writer *writer)
{
	writer->is_cut = true;
	if (ftruncate(writer->fd, (off_t)writer->file_bytes) != 0) {
		return;
	}
	lseek(writer->fd, (off_t)writer->file_bytes, SEEK_SET);
}

static void write_chunk(struct journal_writer *writer, struct chunk *chunk)
{
	size_t len = payload_bytes(chunk);
	if (!writer->is_cut) {
		struct error err = {0};
		uint8_t *header = chunk->bytes.data;
		journal_seal(
			header, chunk->segment, chunk->number, header + JOURNAL_HEADER_BYTES, (uint32_t)len);
		if (files_write_all(writer->fd, header, chunk->bytes.len, NULL, &err)) {
			writer->file_bytes += chunk->bytes.len;
			clear(chunk);
			return;
		}
		error_wrap(&err, "writing the journal");
		cut(writer);
		fail(writer, &err);
	}
	atomic_fetch_sub(&writer->bytes, len);
	clear(chunk);
}

static void *write_chunks(void *data)
{
	struct journal_writer *writer = data;
	pthread_mutex_lock(&writer->lock);
	for (;;) {
		while (writer->waiting == 0 && !writer->must_end) {
			pthread_cond_wait(&writer->has_work, &writer->lock);
		}
		if (writer->waiting == 0) {
			break;
		}
		pthread_mutex_unlock(&writer->lock);
		write_chunk(writer, &writer->chunks[writer->writing]);
		writer->writing = (writer->writing + 1) % CHUNKS;
		pthread_mutex_lock(&writer->lock);
		writer->waiting--;
		pthread_cond_signal(&writer->has_room);
	}
	pthread_mutex_unlock(&writer->lock);
	return NULL;
}

/* The thread takes no signals: they are the main thread's, and a file size limit is to be an error, not SIGXFSZ. */
static int start(struct journal_writer *writer)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int result = pthread_create(&writer->thread, NULL, write_chunks, writer);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return result;
}

static void release(struct journal_writer *writer)
{
	for (size_t i = 0; i < CHUNKS; i++) {
		buffer_finish(&writer->chunks[i].bytes);
	}
	pthread_cond_destroy(&writer->has_room);
	pthread_cond_destroy(&writer->has_work);
	pthread_mutex_destroy(&writer->lock);
	close(writer->fd);
	free(writer);
}

static bool reserve(struct journal_writer *writer)
{
	size_t bytes = JOURNAL_HEADER_BYTES + JOURNAL_WRITER_CHUNK_BYTES + SLACK_BYTES;
	for (size_t i = 0; i < CHUNKS; i++) {
		if (!buffer_reserve(&writer->chunks[i].bytes, bytes)) {
			return false;
		}
		clear(&writer->chunks[i]);
	}
	return true;
}

struct journal_writer *journal_writer_create(int fd, uint64_t max_bytes, struct error *err)
{
	struct journal_writer *writer = calloc(1, sizeof(*writer));
	if (writer == NULL) {
		close(fd);
		error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for a journal");
		return NULL;
	}
	writer->fd = fd;
	writer->max_bytes = max_bytes;
	pthread_mutex_init(&writer->lock, NULL);
	pthread_cond_init(&writer->has_work, NULL);
	pthread_cond_init(&writer->has_room, NULL);
	if (!reserve(writer)) {
		error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for the chunks of a journal");
		goto fail;
	}
	int result = start(writer);
	if (result != 0) {
		error_errno_as(err, ERROR_LIMIT_EXCEEDED, result, "a thread for a journal");
		goto fail;
	}
	return writer;

fail:
	release(writer);
	return NULL;
}

bool journal_writer_destroy(struct journal_writer *writer, bool sync, struct error *err)
{
	if (writer == NULL) {
		return true;
	}
	journal_writer_flush(writer);
	pthread_mutex_lock(&writer->lock);
	writer->must_end = true;
	pthread_cond_signal(&writer->has_work);
	pthread_mutex_unlock(&writer->lock);
	pthread_join(writer->thread, NULL);
	struct error sync_error = {0};
	if (sync && !files_sync(writer->fd, &sync_error)) {
		fail(writer, &sync_error);
	}
	bool is_good = writer->first_error.code == ERROR_NONE;
	if (!is_good && err != NULL) {
		*err = writer->first_error;
	}
	release(writer);
	return is_good;
}

static struct chunk *current(struct journal_writer *writer)
{
	return &writer->chunks[writer->filling];
}

void journal_writer_flush(struct journal_writer *writer)
{
	struct chunk *chunk = current(writer);
	if (payload_bytes(chunk) == 0) {
		return;
	}
	chunk->segment = writer->segment;
	chunk->number = writer->next_number++;
	pthread_mutex_lock(&writer->lock);
	while (writer->waiting == JOURNAL_WRITER_BACKLOG_CHUNKS) {
		pthread_cond_wait(&writer->has_room, &writer->lock);
	}
	atomic_fetch_add(&writer->bytes, payload_bytes(chunk));
	writer->waiting++;
	pthread_cond_signal(&writer->has_work);
	pthread_mutex_unlock(&writer->lock);
	writer->filling = (writer->filling + 1) % CHUNKS;
	writer->last_time_ns = 0;
}

/*
 * A record that could not be appended ends the journal, as later ones refer to it; what stands before it is kept.
 * Out of line, so that appending a sample does not reserve an error's 5 KiB of stack.
 */
static __attribute__((noinline, cold)) void refuse(
	struct journal_writer *writer, const struct journal_record *record)
{
	struct error err = {0};
	error_set(&err, ERROR_LIMIT_EXCEEDED,
		"a journal record of type %d does not fit in memory or a chunk of %d bytes",
		(int)record->type, LIMIT_CHUNK_BYTES);
	fail(writer, &err);
}

/* Appends to the chunk being filled, whatever is in it already. */
static bool encode(struct journal_writer *writer, const struct journal_record *record)
{
	if (journal_encode(&current(writer)->bytes, record, &writer->last_time_ns)) {
		return true;
	}
	refuse(writer, record);
	return false;
}

/* The record went beyond the chunk's size: it is taken back and begins the next chunk. */
static void move_to_next(
	struct journal_writer *writer, const struct journal_record *record, size_t len_before)
{
	if (len_before > JOURNAL_HEADER_BYTES) {
		current(writer)->bytes.len = len_before;
		journal_writer_flush(writer);
		if (!encode(writer, record)) {
			return;
		}
	}
	if (payload_bytes(current(writer)) > LIMIT_CHUNK_BYTES) {
		clear(current(writer));
		refuse(writer, record);
	}
}

void journal_writer_append(struct journal_writer *writer, const struct journal_record *record)
{
	if (atomic_load_explicit(&writer->failed, memory_order_relaxed)) {
		return;
	}
	size_t len_before = current(writer)->bytes.len;
	if (encode(writer, record) && payload_bytes(current(writer)) > JOURNAL_WRITER_CHUNK_BYTES) {
		move_to_next(writer, record, len_before);
	}
}

void journal_writer_begin_segment(
	struct journal_writer *writer, const struct journal_record *record)
{
	journal_writer_flush(writer);
	writer->segment = writer->next_segment++;
	writer->next_number = 0;
	journal_writer_append(writer, record);
}

bool journal_writer_failed(const struct journal_writer *writer)
{
	return atomic_load(&writer->failed);
}

bool journal_writer_is_full(const struct journal_writer *writer)
{
	return writer->max_bytes != 0 && journal_writer_bytes(writer) >= writer->max_bytes;
}

uint64_t journal_writer_bytes(const struct journal_writer *writer)
{
	return atomic_load(&writer->bytes);
}
