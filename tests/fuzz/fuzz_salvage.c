/*
 * A libFuzzer target over what is read of a journal that nobody ended, chunk by chunk: whatever the bytes are, as many samples are found as the reader of
 * whole journals finds. As in fuzz_journal.c the input is read as it is, and cut into chunks whose headers are made right.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/salvage.h"
#include "profile/journal.h"
#include "protocol/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static uint64_t count_samples(const uint8_t *data, size_t len)
{
	struct journal_record record;
	uint64_t samples = 0;
	struct journal_reader *reader = journal_reader_create(data, len);
	while (journal_reader_next(reader, &record) == JOURNAL_READ_RECORD) {
		samples += record.type == JOURNAL_SAMPLE;
	}
	journal_reader_destroy(reader);
	return samples;
}

static void check(const uint8_t *data, size_t len)
{
	struct salvage salvage = {0};
	struct error err = {0};
	int fd = memfd_create("journal", MFD_CLOEXEC);
	if (fd < 0 || write(fd, data, len) != (ssize_t)len || !salvage_read(&salvage, fd, &err)) {
		abort();
	}
	close(fd);
	if (salvage.samples != count_samples(data, len)) {
		abort();
	}
	salvage_unix_us(&salvage, salvage.last_ns);
	salvage_finish(&salvage);
}

/* Of the first byte two bits are the number of chunks, and one for each says that it begins another segment. */
static void check_sealed(const uint8_t *data, size_t len)
{
	size_t chunks = 1 + data[0] % 4;
	size_t share = (len - 1) / chunks;
	if (share > LIMIT_CHUNK_BYTES) {
		return;
	}
	size_t file_len = chunks * (JOURNAL_HEADER_BYTES + share);
	uint8_t *file = malloc(file_len);
	uint32_t segment = 0, number = 0;
	for (size_t i = 0; i < chunks; i++, number++) {
		uint8_t *header = file + i * (JOURNAL_HEADER_BYTES + share);
		if (i > 0 && (data[0] >> (2 + i) & 1) != 0) {
			segment++;
			number = 0;
		}
		if (share > 0) {
			memcpy(header + JOURNAL_HEADER_BYTES, data + 1 + i * share, share);
		}
		journal_seal(header, segment, number, header + JOURNAL_HEADER_BYTES, (uint32_t)share);
	}
	check(file, file_len);
	free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	check(data, len);
	if (len > 0) {
		check_sealed(data, len);
	}
	return 0;
}
