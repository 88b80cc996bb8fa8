#include "profile/journal_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <zlib.h>

#include "protocol/limits.h"

static const struct journal_record segment = {
	.type = JOURNAL_SEGMENT, .segment = {.version = 1, .pointer_bytes = 8}};

static struct journal_record sample(uint64_t number)
{
	return (struct journal_record){.type = JOURNAL_SAMPLE,
		.sample = {
			.time_ns = 1000000000 + number * 1001001, .tid = 4242, .stack = 1 + number % 999}};
}

static struct journal_record string(const char *text, size_t len)
{
	return (struct journal_record){.type = JOURNAL_STRING, .string = {1, {text, len}}};
}

/* A file without a name; *fd is for the writer, the result is for the test. */
static int scratch_file(int *fd)
{
	char path[] = "/tmp/test_journal_writer-XXXXXX";
	*fd = mkostemp(path, O_CLOEXEC);
	assert_true(*fd >= 0);
	unlink(path);
	int copy = dup(*fd);
	assert_true(copy >= 0);
	return copy;
}

static struct journal_writer *create(int fd, uint64_t max_bytes)
{
	struct error err = {0};
	struct journal_writer *writer = journal_writer_create(fd, max_bytes, &err);
	if (writer == NULL) {
		fail_msg("%s", err.message);
	}
	return writer;
}

static void destroy(struct journal_writer *writer)
{
	struct error err = {0};
	if (!journal_writer_destroy(writer, false, &err)) {
		fail_msg("%s", err.message);
	}
}

static size_t file_size(int fd)
{
	struct stat status;
	assert_int_equal(fstat(fd, &status), 0);
	return (size_t)status.st_size;
}

static uint8_t *file_bytes(int fd, size_t *len)
{
	*len = file_size(fd);
	uint8_t *bytes = malloc(*len + 1);
	assert_non_null(bytes);
	assert_int_equal(pread(fd, bytes, *len + 1, 0), *len);
	return bytes;
}

/* The header of a chunk, and whether the CRC is that of the bytes. */
struct header {
	uint32_t magic, len, segment, number, crc, reserved;
};

/* Walks the chunks by their lengths. Returns how many there are; they have to fill the file. */
static size_t chunk_headers(const uint8_t *bytes, size_t len, struct header *headers, size_t room)
{
	size_t count = 0;
	for (size_t at = 0; at < len; count++) {
		assert_true(count < room);
		struct header *header = &headers[count];
		assert_true(len - at >= sizeof(*header));
		memcpy(header, bytes + at, sizeof(*header));
		assert_int_equal(header->magic, JOURNAL_MAGIC);
		assert_true(header->len <= len - at - sizeof(*header));
		uLong crc = crc32(crc32(0, NULL, 0), bytes + at + 4, 12);
		crc = crc32(crc, bytes + at + 20, 4 + header->len);
		assert_int_equal(header->crc, crc);
		at += sizeof(*header) + header->len;
	}
	return count;
}

/* The whole file is good; its samples are 0, 1, 2 … Returns how many. */
static size_t count_samples(const uint8_t *bytes, size_t len)
{
	struct journal_reader *reader = journal_reader_create(bytes, len);
	struct journal_record record;
	size_t count = 0;
	enum journal_result result;
	while ((result = journal_reader_next(reader, &record)) == JOURNAL_READ_RECORD) {
		if (record.type == JOURNAL_SAMPLE) {
			struct journal_record expected = sample(count++);
			assert_memory_equal(&record.sample, &expected.sample, sizeof(record.sample));
		}
	}
	assert_int_equal(result, JOURNAL_READ_END);
	assert_int_equal(journal_reader_good_bytes(reader), len);
	journal_reader_destroy(reader);
	return count;
}

static void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static void writes_every_record_in_order_in_chunks_of_the_stated_size(void **state)
{
	(void)state;
	enum { SAMPLES = 200000 };
	int fd, file = scratch_file(&fd);
	struct journal_writer *writer = create(fd, 0);
	journal_writer_begin_segment(writer, &segment);
	for (uint64_t i = 0; i < SAMPLES; i++) {
		struct journal_record record = sample(i);
		journal_writer_append(writer, &record);
	}
	destroy(writer);
	size_t len;
	uint8_t *bytes = file_bytes(file, &len);
	struct header headers[32];
	size_t count = chunk_headers(bytes, len, headers, 32);
	assert_true(count > 5);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(headers[i].segment, 0);
		assert_int_equal(headers[i].number, i);
		assert_int_equal(headers[i].reserved, 0);
		assert_true(headers[i].len <= JOURNAL_WRITER_CHUNK_BYTES);
		assert_true(i + 1 == count || headers[i].len > JOURNAL_WRITER_CHUNK_BYTES - 32);
	}
	assert_int_equal(count_samples(bytes, len), SAMPLES);
	free(bytes);
	close(file);
}

static void writes_nothing_when_nothing_was_appended(void **state)
{
	(void)state;
	int fd, file = scratch_file(&fd);
	struct journal_writer *writer = create(fd, 0);
	journal_writer_flush(writer);
	journal_writer_flush(writer);
	destroy(writer);
	assert_int_equal(file_size(file), 0);
	close(file);
	assert_true(journal_writer_destroy(NULL, true, NULL));
}

static void numbers_chunks_from_zero_in_every_segment(void **state)
{
	(void)state;
	int fd, file = scratch_file(&fd);
	struct journal_writer *writer = create(fd, 0);
	struct journal_record record = sample(0);
	for (int i = 0; i < 3; i++) {
		journal_writer_begin_segment(writer, &segment);
		journal_writer_flush(writer);
		journal_writer_flush(writer);
		journal_writer_append(writer, &record);
	}
	destroy(writer);
	size_t len;
	uint8_t *bytes = file_bytes(file, &len);
	struct header headers[8];
	assert_int_equal(chunk_headers(bytes, len, headers, 8), 6);
	for (size_t i = 0; i < 6; i++) {
		assert_int_equal(headers[i].segment, i / 2);
		assert_int_equal(headers[i].number, i % 2);
	}
	free(bytes);
	close(file);
}

static void puts_a_flushed_chunk_on_disk_while_the_capture_goes_on(void **state)
{
	(void)state;
	int fd, file = scratch_file(&fd);
	struct journal_writer *writer = create(fd, 0);
	journal_writer_begin_segment(writer, &segment);
	struct journal_record record = sample(0);
	journal_writer_append(writer, &record);
	assert_int_equal(file_size(file), 0);
	assert_int_equal(journal_writer_bytes(writer), 0);
	journal_writer_flush(writer);
	uint64_t payload = journal_writer_bytes(writer);
	assert_true(payload > 0);
	for (int i = 0; i < 1000 && file_size(file) != JOURNAL_HEADER_BYTES + payload; i++) {
		sleep_ms(5);
	}
	size_t len;
	uint8_t *bytes = file_bytes(file, &len);
	assert_int_equal(len, JOURNAL_HEADER_BYTES + payload);
	assert_int_equal(count_samples(bytes, len), 1);
	free(bytes);
	destroy(writer);
	assert_int_equal(file_size(file), len);
	close(file);
}

static void begins_a_chunk_for_a_record_that_does_not_fit_any_more(void **state)
{
	(void)state;
	int fd, file = scratch_file(&fd);
	size_t text_len = JOURNAL_WRITER_CHUNK_BYTES + 1000;
	char *text = calloc(1, text_len);
	struct journal_record small = sample(0), middle = string(text, text_len / 2),
						  large = string(text, text_len);
	struct journal_writer *writer = create(fd, 0);
	journal_writer_begin_segment(writer, &segment);
	journal_writer_append(writer, &middle);
	journal_writer_append(writer, &middle);
	journal_writer_append(writer, &large);
	journal_writer_append(writer, &small);
	assert_false(journal_writer_failed(writer));
	destroy(writer);
	size_t len;
	uint8_t *bytes = file_bytes(file, &len);
	struct header headers[8];
	assert_int_equal(chunk_headers(bytes, len, headers, 8), 4);
	assert_in_range(headers[0].len, text_len / 2 + 1, text_len / 2 + 50);
	assert_in_range(headers[1].len, text_len / 2 + 1, text_len / 2 + 50);
	assert_in_range(headers[2].len, text_len + 1, text_len + 50);
	assert_true(headers[3].len < 50);
	/* The time of the sample is right although the record was tried in the chunk before. */
	assert_int_equal(count_samples(bytes, len), 1);
	free(bytes);
	free(text);
	close(file);
}

static void moves_a_timed_record_to_the_next_chunk_with_its_time(void **state)
{
	(void)state;
	/* A text that leaves every amount of room from 0 to 31 bytes. */
	char *text = calloc(1, JOURNAL_WRITER_CHUNK_BYTES);
	for (size_t room = 0; room < 32; room++) {
		int fd, file = scratch_file(&fd);
		struct journal_writer *writer = create(fd, 0);
		struct journal_record filling = string(text, JOURNAL_WRITER_CHUNK_BYTES - 30 - room);
		struct journal_record first = sample(0), second = sample(1);
		journal_writer_begin_segment(writer, &segment);
		journal_writer_append(writer, &filling);
		journal_writer_append(writer, &first);
		journal_writer_append(writer, &second);
		destroy(writer);
		size_t len;
		uint8_t *bytes = file_bytes(file, &len);
		struct header headers[2];
		size_t count = chunk_headers(bytes, len, headers, 2);
		assert_true(headers[0].len <= JOURNAL_WRITER_CHUNK_BYTES);
		assert_int_equal(count, room == 0 ? 2 : count);
		assert_int_equal(count, room == 31 ? 1 : count);
		assert_int_equal(count_samples(bytes, len), 2);
		free(bytes);
		close(file);
	}
	free(text);
}

static void fails_on_a_record_that_no_chunk_can_hold_and_keeps_what_was_before(void **state)
{
	(void)state;
	int fd, file = scratch_file(&fd);
	char *text = calloc(1, LIMIT_CHUNK_BYTES);
	struct journal_record small = sample(0), large = string(text, LIMIT_CHUNK_BYTES);
	struct journal_writer *writer = create(fd, 0);
	journal_writer_begin_segment(writer, &segment);
	journal_writer_append(writer, &small);
	journal_writer_append(writer, &large);
	assert_true(journal_writer_failed(writer));
	journal_writer_append(writer, &small);
	struct error err = {0};
	assert_false(journal_writer_destroy(writer, false, &err));
	assert_int_equal(err.code, ERROR_LIMIT_EXCEEDED);
	size_t len;
	uint8_t *bytes = file_bytes(file, &len);
	assert_int_equal(count_samples(bytes, len), 1);
	free(bytes);
	free(text);
	close(file);
}

static void is_full_at_the_given_size(void **state)
{
	(void)state;
	int fd, file = scratch_file(&fd);
	struct journal_writer *writer = create(fd, 100);
	journal_writer_begin_segment(writer, &segment);
	for (uint64_t i = 0; !journal_writer_is_full(writer); i++) {
		assert_true(i < 100);
		assert_true(journal_writer_bytes(writer) < 100);
		struct journal_record record = sample(i);
		journal_writer_append(writer, &record);
		journal_writer_flush(writer);
	}
	assert_in_range(journal_writer_bytes(writer), 100, 120);
	assert_false(journal_writer_failed(writer));
	destroy(writer);
	close(file);

	close(scratch_file(&fd));
	writer = create(fd, 0);
	journal_writer_begin_segment(writer, &segment);
	journal_writer_flush(writer);
	assert_false(journal_writer_is_full(writer));
	destroy(writer);
}

/* Appends until the writer has failed; at most about 25 MB. */
static size_t append_until_failed(struct journal_writer *writer)
{
	journal_writer_begin_segment(writer, &segment);
	for (size_t i = 0; i < 2000000; i++) {
		if (journal_writer_failed(writer)) {
			return i;
		}
		struct journal_record record = sample(i);
		journal_writer_append(writer, &record);
	}
	fail_msg("the writer never failed");
	return 0;
}

/* The file is whole chunks, at most limit bytes, and holds the first samples. */
static void assert_cut_to_whole_chunks(int file, size_t limit, uint64_t writer_bytes)
{
	size_t len;
	uint8_t *bytes = file_bytes(file, &len);
	struct header headers[64];
	size_t count = chunk_headers(bytes, len, headers, 64);
	assert_true(count > 0 && len <= limit);
	assert_true(limit - len < JOURNAL_WRITER_CHUNK_BYTES + JOURNAL_HEADER_BYTES);
	assert_true(count_samples(bytes, len) > 1000);
	assert_int_equal(writer_bytes, len - count * JOURNAL_HEADER_BYTES);
	free(bytes);
}

/* When everything handed over was tried, what could not be written is not counted. */
static uint64_t settled_bytes(struct journal_writer *writer, int file)
{
	uint64_t bytes = 0;
	for (int i = 0; i < 1000; i++) {
		bytes = journal_writer_bytes(writer);
		if (bytes <= file_size(file)) {
			break;
		}
		sleep_ms(5);
	}
	return bytes;
}

static void cuts_the_file_to_whole_chunks_when_a_write_fails(void **state)
{
	(void)state;
	enum { LIMIT = 1000 * 1000 };
	int fd, file = scratch_file(&fd);
	struct journal_writer *writer = create(fd, 0);
	struct rlimit before, limit;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = (struct rlimit){LIMIT, before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	append_until_failed(writer);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);

	/* Also with room again nothing is written any more. */
	size_t len = file_size(file);
	struct journal_record record = sample(0);
	for (int i = 0; i < 100000; i++) {
		journal_writer_append(writer, &record);
	}
	uint64_t bytes = settled_bytes(writer, file);
	struct error err = {0};
	assert_false(journal_writer_destroy(writer, true, &err));
	assert_int_equal(err.code, ERROR_DISK_FULL);
	assert_string_equal(err.detail, "efbig");
	assert_int_equal(file_size(file), len);
	assert_cut_to_whole_chunks(file, LIMIT, bytes);
	close(file);
}

static void says_disk_full_when_the_device_is_full(void **state)
{
	(void)state;
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	struct journal_writer *writer = create(fd, 0);
	append_until_failed(writer);
	struct error err = {0};
	assert_false(journal_writer_destroy(writer, false, &err));
	assert_int_equal(err.code, ERROR_DISK_FULL);
	assert_string_equal(err.detail, "enospc");
}

static void cuts_the_file_to_whole_chunks_on_a_full_file_system(void **state)
{
	(void)state;
	char folder[] = "/tmp/test_journal_writer-XXXXXX";
	assert_non_null(mkdtemp(folder));
	if (mount("tmpfs", folder, "tmpfs", 0, "size=1m") != 0) {
		int reason = errno;
		rmdir(folder);
		print_message("# skipped: mounting a small tmpfs: %s\n", strerror(reason));
		skip();
	}
	char path[sizeof(folder) + 8];
	snprintf(path, sizeof(path), "%s/journal", folder);
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int file = dup(fd);
	/* Unmounted when its last file is closed, whatever happens here. */
	umount2(folder, MNT_DETACH);
	rmdir(folder);
	assert_true(fd >= 0 && file >= 0);

	struct journal_writer *writer = create(fd, 0);
	append_until_failed(writer);
	uint64_t bytes = settled_bytes(writer, file);
	struct error err = {0};
	assert_false(journal_writer_destroy(writer, true, &err));
	assert_int_equal(err.code, ERROR_DISK_FULL);
	assert_string_equal(err.detail, "enospc");
	assert_cut_to_whole_chunks(file, 1024 * 1024, bytes);
	close(file);
}

/* Appends a fixed number of samples, says how far it is, and flushes: that waits for the disk too. */
struct appender {
	struct journal_writer *writer;
	size_t samples;
	atomic_size_t done;
	atomic_bool has_flushed;
};

static void *append_samples(void *data)
{
	struct appender *appender = data;
	journal_writer_begin_segment(appender->writer, &segment);
	for (size_t i = 0; i < appender->samples; i++) {
		struct journal_record record = sample(i);
		journal_writer_append(appender->writer, &record);
		atomic_store(&appender->done, i + 1);
	}
	journal_writer_flush(appender->writer);
	atomic_store(&appender->has_flushed, true);
	return NULL;
}

/* How far the appender is once it has not moved for a fifth of a second. */
static size_t stuck_at(const struct appender *appender)
{
	size_t done = atomic_load(&appender->done);
	for (int still = 0; still < 20;) {
		sleep_ms(10);
		size_t now = atomic_load(&appender->done);
		still = now == done && now > 0 ? still + 1 : 0;
		done = now;
	}
	return done;
}

static void waits_for_a_slow_disk_beyond_the_backlog_and_loses_nothing(void **state)
{
	(void)state;
	enum { SAMPLES = 300000 };
	int ends[2];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0); /* a disk that takes 64 KiB and then waits */
	struct appender appender = {.writer = create(ends[1], 0), .samples = SAMPLES};
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, append_samples, &appender), 0);
	size_t stuck = stuck_at(&appender);
	assert_true(stuck < SAMPLES);
	uint64_t handed_over = journal_writer_bytes(appender.writer);
	assert_in_range(handed_over, JOURNAL_WRITER_BACKLOG_CHUNKS * (JOURNAL_WRITER_CHUNK_BYTES - 32),
		JOURNAL_WRITER_BACKLOG_CHUNKS * JOURNAL_WRITER_CHUNK_BYTES);

	size_t room = 32 * 1024 * 1024, len = 0;
	uint8_t *bytes = malloc(room);
	bool is_joined = false;
	for (;;) {
		struct pollfd readable = {.fd = ends[0], .events = POLLIN};
		if (!is_joined && atomic_load(&appender.has_flushed)) {
			pthread_join(thread, NULL);
			is_joined = true;
		}
		if (poll(&readable, 1, is_joined ? 300 : 10) == 0) {
			if (is_joined) {
				break;
			}
			continue;
		}
		ssize_t got = read(ends[0], bytes + len, room - len);
		assert_true(got > 0);
		len += (size_t)got;
	}
	destroy(appender.writer);
	assert_int_equal(count_samples(bytes, len), SAMPLES);
	free(bytes);
	close(ends[0]);
}

static void returns_a_failing_sync(void **state)
{
	(void)state;
	int ends[2];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0); /* a pipe cannot be synced */
	struct journal_writer *writer = create(ends[1], 0);
	struct error err = {0};
	assert_false(journal_writer_destroy(writer, true, &err));
	assert_string_equal(err.detail, "einval");
	/* The writer closed its end. */
	char byte;
	assert_int_equal(read(ends[0], &byte, 1), 0);
	close(ends[0]);
}

static void syncs_a_file(void **state)
{
	(void)state;
	int fd, file = scratch_file(&fd);
	struct journal_writer *writer = create(fd, 0);
	journal_writer_begin_segment(writer, &segment);
	struct error err = {0};
	assert_true(journal_writer_destroy(writer, true, &err));
	assert_true(file_size(file) > JOURNAL_HEADER_BYTES);
	close(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_every_record_in_order_in_chunks_of_the_stated_size),
		cmocka_unit_test(writes_nothing_when_nothing_was_appended),
		cmocka_unit_test(numbers_chunks_from_zero_in_every_segment),
		cmocka_unit_test(puts_a_flushed_chunk_on_disk_while_the_capture_goes_on),
		cmocka_unit_test(begins_a_chunk_for_a_record_that_does_not_fit_any_more),
		cmocka_unit_test(moves_a_timed_record_to_the_next_chunk_with_its_time),
		cmocka_unit_test(fails_on_a_record_that_no_chunk_can_hold_and_keeps_what_was_before),
		cmocka_unit_test(is_full_at_the_given_size),
		cmocka_unit_test(cuts_the_file_to_whole_chunks_when_a_write_fails),
		cmocka_unit_test(says_disk_full_when_the_device_is_full),
		cmocka_unit_test(cuts_the_file_to_whole_chunks_on_a_full_file_system),
		cmocka_unit_test(waits_for_a_slow_disk_beyond_the_backlog_and_loses_nothing),
		cmocka_unit_test(returns_a_failing_sync),
		cmocka_unit_test(syncs_a_file),
	};
	return cmocka_run_group_tests_name("journal_writer", tests, NULL, NULL);
}
