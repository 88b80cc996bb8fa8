#include "support/journal_scratch.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <zlib.h>

const struct journal_record scratch_segment = {
	.type = JOURNAL_SEGMENT, .segment = {.version = 1, .pointer_bytes = 8}};

struct journal_record scratch_sample(uint64_t number)
{
	return (struct journal_record){.type = JOURNAL_SAMPLE,
		.sample = {
			.time_ns = 1000000000 + number * 1001001, .tid = 4242, .stack = 1 + number % 999}};
}

struct journal_record scratch_string(const char *text, size_t len)
{
	return (struct journal_record){.type = JOURNAL_STRING, .string = {1, {text, len}}};
}

static void close_file(struct scratch *scratch)
{
	if (scratch->fd >= 0) {
		close(scratch->fd);
	}
	if (scratch->file >= 0) {
		close(scratch->file);
	}
	scratch->fd = scratch->file = -1;
}

void scratch_take(struct scratch *scratch, int fd, int file)
{
	assert_true(fd >= 0);
	close_file(scratch);
	scratch->fd = fd;
	scratch->file = file;
}

void scratch_open(struct scratch *scratch)
{
	char path[] = "/tmp/test_journal_writer-XXXXXX";
	int fd = mkostemp(path, O_CLOEXEC);
	assert_true(fd >= 0);
	unlink(path);
	scratch_take(scratch, fd, dup(fd));
	assert_true(scratch->file >= 0);
}

void scratch_create(struct scratch *scratch, uint64_t max_bytes)
{
	struct error err = {0};
	scratch->writer = journal_writer_create(scratch->fd, max_bytes, &err);
	if (scratch->writer == NULL) {
		fail_msg("%s", err.message);
	}
	scratch->fd = -1;
}

void scratch_begin(struct scratch *scratch, uint64_t max_bytes)
{
	scratch_create(scratch, max_bytes);
	journal_writer_begin_segment(scratch->writer, &scratch_segment);
}

void scratch_append(struct scratch *scratch, const struct journal_record *record)
{
	journal_writer_append(scratch->writer, record);
}

/* Whether the writer ended well. */
static bool end(struct scratch *scratch, bool sync, struct error *err)
{
	bool is_good = journal_writer_destroy(scratch->writer, sync, err);
	scratch->writer = NULL;
	if (scratch->file >= 0) {
		scratch_read(scratch);
	}
	return is_good;
}

void scratch_finish(struct scratch *scratch)
{
	struct error err = {0};
	if (!end(scratch, false, &err)) {
		fail_msg("%s", err.message);
	}
}

void scratch_fail(struct scratch *scratch, bool sync, struct error *err)
{
	*err = (struct error){0};
	assert_false(end(scratch, sync, err));
}

size_t scratch_size(const struct scratch *scratch)
{
	struct stat status;
	assert_int_equal(fstat(scratch->file, &status), 0);
	return (size_t)status.st_size;
}

void scratch_read(struct scratch *scratch)
{
	free(scratch->bytes);
	scratch->len = scratch_size(scratch);
	scratch->bytes = malloc(scratch->len + 1);
	assert_non_null(scratch->bytes);
	assert_int_equal(pread(scratch->file, scratch->bytes, scratch->len + 1, 0), scratch->len);
}

size_t scratch_headers(const struct scratch *scratch, struct header *headers, size_t room)
{
	const uint8_t *bytes = scratch->bytes;
	size_t count = 0, len = scratch->len;
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

size_t scratch_count_samples(const struct scratch *scratch)
{
	struct journal_reader *reader = journal_reader_create(scratch->bytes, scratch->len);
	struct journal_record record;
	size_t count = 0;
	enum journal_result result;
	while ((result = journal_reader_next(reader, &record)) == JOURNAL_READ_RECORD) {
		if (record.type == JOURNAL_SAMPLE) {
			struct journal_record expected = scratch_sample(count++);
			assert_memory_equal(&record.sample, &expected.sample, sizeof(record.sample));
		}
	}
	assert_int_equal(result, JOURNAL_READ_END);
	assert_int_equal(journal_reader_good_bytes(reader), scratch->len);
	journal_reader_destroy(reader);
	return count;
}

void scratch_sleep_ms(long ms)
{
	nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

int scratch_set_up(void **state)
{
	struct scratch *scratch = calloc(1, sizeof(*scratch));
	assert_non_null(scratch);
	scratch->fd = scratch->file = -1;
	scratch_open(scratch);
	*state = scratch;
	return 0;
}

int scratch_tear_down(void **state)
{
	struct scratch *scratch = *state;
	close_file(scratch);
	free(scratch->bytes);
	free(scratch);
	return 0;
}
