#include "profile/journal_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/journal_scratch.h"

/* Appends until the writer has failed; at most about 25 MB. */
static void append_until_failed(struct scratch *scratch)
{
	scratch_begin(scratch, 0);
	for (size_t i = 0; i < 2000000; i++) {
		if (journal_writer_failed(scratch->writer)) {
			return;
		}
		struct journal_record record = scratch_sample(i);
		scratch_append(scratch, &record);
	}
	fail_msg("the writer never failed");
}

/* The file is whole chunks, at most limit bytes, and holds the first samples. */
static void assert_cut_to_whole_chunks(
	const struct scratch *scratch, size_t limit, uint64_t writer_bytes)
{
	size_t len = scratch->len;
	struct header headers[64];
	size_t count = scratch_headers(scratch, headers, 64);
	assert_true(count > 0 && len <= limit);
	assert_true(limit - len < JOURNAL_WRITER_CHUNK_BYTES + JOURNAL_HEADER_BYTES);
	assert_true(scratch_count_samples(scratch) > 1000);
	assert_int_equal(writer_bytes, len - count * JOURNAL_HEADER_BYTES);
}

/* When everything handed over was tried, what could not be written is not counted. */
static uint64_t settled_bytes(struct scratch *scratch)
{
	uint64_t bytes = 0;
	for (int i = 0; i < 1000; i++) {
		bytes = journal_writer_bytes(scratch->writer);
		if (bytes <= scratch_size(scratch)) {
			break;
		}
		scratch_sleep_ms(5);
	}
	return bytes;
}

static void cuts_the_file_to_whole_chunks_when_a_write_fails(void **state)
{
	struct scratch *scratch = *state;
	enum { LIMIT = 1000 * 1000 };
	struct rlimit before, limit;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = (struct rlimit){LIMIT, before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	append_until_failed(scratch);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);

	/* Also with room again nothing is written any more. */
	size_t len = scratch_size(scratch);
	struct journal_record record = scratch_sample(0);
	for (int i = 0; i < 100000; i++) {
		scratch_append(scratch, &record);
	}
	uint64_t bytes = settled_bytes(scratch);
	struct error err;
	scratch_fail(scratch, true, &err);
	assert_int_equal(err.code, ERROR_DISK_FULL);
	assert_string_equal(err.detail, "efbig");
	assert_int_equal(scratch->len, len);
	assert_cut_to_whole_chunks(scratch, LIMIT, bytes);
}

static void says_disk_full_when_the_device_is_full(void **state)
{
	struct scratch *scratch = *state;
	scratch_take(scratch, open("/dev/full", O_WRONLY | O_CLOEXEC), -1);
	append_until_failed(scratch);
	struct error err;
	scratch_fail(scratch, false, &err);
	assert_int_equal(err.code, ERROR_DISK_FULL);
	assert_string_equal(err.detail, "enospc");
}

static void cuts_the_file_to_whole_chunks_on_a_full_file_system(void **state)
{
	struct scratch *scratch = *state;
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
	/* Unmounted when its last file is closed, whatever happens here. */
	umount2(folder, MNT_DETACH);
	rmdir(folder);
	assert_true(fd >= 0);
	scratch_take(scratch, fd, dup(fd));
	assert_true(scratch->file >= 0);

	append_until_failed(scratch);
	uint64_t bytes = settled_bytes(scratch);
	struct error err;
	scratch_fail(scratch, true, &err);
	assert_int_equal(err.code, ERROR_DISK_FULL);
	assert_string_equal(err.detail, "enospc");
	assert_cut_to_whole_chunks(scratch, 1024 * 1024, bytes);
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
	journal_writer_begin_segment(appender->writer, &scratch_segment);
	for (size_t i = 0; i < appender->samples; i++) {
		struct journal_record record = scratch_sample(i);
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
		scratch_sleep_ms(10);
		size_t now = atomic_load(&appender->done);
		still = now == done && now > 0 ? still + 1 : 0;
		done = now;
	}
	return done;
}

static void waits_for_a_slow_disk_beyond_the_backlog_and_loses_nothing(void **state)
{
	struct scratch *scratch = *state;
	enum { SAMPLES = 300000 };
	int ends[2];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0); /* a disk that takes 64 KiB and then waits */
	scratch_take(scratch, ends[1], -1);
	scratch_create(scratch, 0);
	struct appender appender = {.writer = scratch->writer, .samples = SAMPLES};
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, append_samples, &appender), 0);
	size_t stuck = stuck_at(&appender);
	assert_true(stuck < SAMPLES);
	uint64_t handed_over = journal_writer_bytes(appender.writer);
	assert_in_range(handed_over, JOURNAL_WRITER_BACKLOG_CHUNKS * (JOURNAL_WRITER_CHUNK_BYTES - 32),
		JOURNAL_WRITER_BACKLOG_CHUNKS * JOURNAL_WRITER_CHUNK_BYTES);

	size_t room = 32 * 1024 * 1024;
	scratch->bytes = malloc(room);
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
		ssize_t got = read(ends[0], scratch->bytes + scratch->len, room - scratch->len);
		assert_true(got > 0);
		scratch->len += (size_t)got;
	}
	scratch_finish(scratch);
	assert_int_equal(scratch_count_samples(scratch), SAMPLES);
	close(ends[0]);
}

static void returns_a_failing_sync(void **state)
{
	struct scratch *scratch = *state;
	int ends[2];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0); /* a pipe cannot be synced */
	scratch_take(scratch, ends[1], -1);
	scratch_create(scratch, 0);
	struct error err;
	scratch_fail(scratch, true, &err);
	assert_string_equal(err.detail, "einval");
	/* The writer closed its end. */
	char byte;
	assert_int_equal(read(ends[0], &byte, 1), 0);
	close(ends[0]);
}

static void syncs_a_file(void **state)
{
	struct scratch *scratch = *state;
	scratch_begin(scratch, 0);
	struct error err = {0};
	assert_true(journal_writer_destroy(scratch->writer, true, &err));
	assert_true(scratch_size(scratch) > JOURNAL_HEADER_BYTES);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, scratch_set_up, scratch_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(cuts_the_file_to_whole_chunks_when_a_write_fails),
		CASE(says_disk_full_when_the_device_is_full),
		CASE(cuts_the_file_to_whole_chunks_on_a_full_file_system),
		CASE(waits_for_a_slow_disk_beyond_the_backlog_and_loses_nothing),
		CASE(returns_a_failing_sync),
		CASE(syncs_a_file),
	};
	return cmocka_run_group_tests_name("journal_writer_disk", tests, NULL, NULL);
}
