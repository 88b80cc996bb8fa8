#include "capture/salvage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/map.h"
#include "profile/journal.h"
#include "protocol/clock.h"
#include "protocol/limits.h"
#include "protocol/message.h"
#include "target/target.h"

#define STRINGS_BYTES (64u << 20) /* of one segment; what is beyond cannot be looked up */
#define STRING_COST   64          /* of keeping one, beside its bytes */
#define BOOT_SLACK_US 5000000
#define CHUNK_AT_MOST (JOURNAL_HEADER_BYTES + LIMIT_CHUNK_BYTES)

/* Where reading is. */
struct scan {
	struct salvage *salvage;
	int fd;
	uint64_t offset;
	bool has_begun;
	uint32_t segment, chunk;   /* of the chunk that was read last */
	struct buffer chunk_bytes; /* the chunk as it was read */
	struct buffer begin; /* the SEGMENT record, which every chunk of the segment is read behind */
	struct buffer file;  /* a journal of what one chunk needs */
	struct map strings;  /* id -> index in texts */
	VEC(char *) texts;
	size_t text_bytes;
	bool no_memory;
};

static void clear_strings(struct scan *scan)
{
	for (size_t i = 0; i < scan->texts.len; i++) {
		free(scan->texts.items[i]);
	}
	scan->texts.len = 0;
	scan->text_bytes = 0;
	map_clear(&scan->strings);
}

static void clear_images(struct salvage *salvage)
{
	for (size_t i = 0; i < salvage->images.len; i++) {
		free(salvage->images.items[i].path);
	}
	salvage->images.len = 0;
}

void salvage_finish(struct salvage *salvage)
{
	clear_images(salvage);
	for (size_t i = 0; i < salvage->opened.len; i++) {
		close(salvage->opened.items[i].fd);
	}
	VEC_FINISH(&salvage->images);
	VEC_FINISH(&salvage->opened);
	json_decref(salvage->capture);
	*salvage = (struct salvage){0};
}

static void finish(struct scan *scan)
{
	clear_strings(scan);
	VEC_FINISH(&scan->texts);
	map_finish(&scan->strings);
	buffer_finish(&scan->chunk_bytes);
	buffer_finish(&scan->begin);
	buffer_finish(&scan->file);
}

/* Ids are the segment's own. */
static void take_segment(struct scan *scan, const struct journal_record *record)
{
	struct salvage *salvage = scan->salvage;
	if (salvage->begin_ns == 0) {
		salvage->begin_ns = record->segment.begin_ns;
		salvage->begin_unix_us = record->segment.begin_unix_us;
	}
	clear_strings(scan);
	clear_images(salvage);
}

static void take_string(struct scan *scan, const struct journal_string *string)
{
	if (scan->text_bytes + string->text.len + STRING_COST > STRINGS_BYTES ||
		memchr(string->text.data, '\0', string->text.len) != NULL) {
		return;
	}
	char *text = strndup(string->text.data, string->text.len);
	if (text == NULL || !VEC_PUSH(&scan->texts, text)) {
		free(text);
		scan->no_memory = true;
		return;
	}
	scan->text_bytes += string->text.len + STRING_COST;
	scan->no_memory |= !map_put(&scan->strings, string->id, scan->texts.len - 1);
}

/* Its file was overwritten: what is there now is not what was sampled. */
static void drop_image(struct salvage *salvage, uint32_t id)
{
	for (size_t i = 0; i < salvage->images.len; i++) {
		if (salvage->images.items[i].id == id) {
			free(salvage->images.items[i].path);
			salvage->images.items[i] = salvage->images.items[--salvage->images.len];
			return;
		}
	}
}

static void take_image(struct scan *scan, const struct journal_image *image)
{
	struct salvage *salvage = scan->salvage;
	const uint64_t *index = map_get(&scan->strings, image->path);
	if (image->kind != JOURNAL_IMAGE_ELF || index == NULL || salvage->images.len >= LIMIT_IMAGES) {
		return;
	}
	if (image->access == JOURNAL_IMAGE_REPLACED) {
		drop_image(salvage, (uint32_t)image->id);
		return;
	}
	struct salvage_image kept = {
		.id = (uint32_t)image->id,
		.path = strdup(scan->texts.items[*index]),
		.device = image->device,
		.inode = image->inode,
	};
	if (kept.path == NULL || !VEC_PUSH(&salvage->images, kept)) {
		free(kept.path);
		scan->no_memory = true;
	}
}

static void take_capture(struct salvage *salvage, const struct journal_capture *capture)
{
	if (salvage->capture != NULL) {
		return;
	}
	salvage->capture = message_parse(capture->json.data, capture->json.len, NULL);
	if (!json_is_object(salvage->capture)) {
		json_decref(salvage->capture);
		salvage->capture = NULL;
	}
}

static void take_sample(struct salvage *salvage, uint64_t time_ns)
{
	salvage->first_ns = salvage->samples++ == 0 ? time_ns : salvage->first_ns;
	salvage->last_ns = time_ns > salvage->last_ns ? time_ns : salvage->last_ns;
}

static void take(struct scan *scan, const struct journal_record *record)
{
	struct salvage *salvage = scan->salvage;
	switch (record->type) {
	case JOURNAL_CAPTURE:
		take_capture(salvage, &record->capture);
		break;
	case JOURNAL_STRING:
		take_string(scan, &record->string);
		break;
	case JOURNAL_METRIC:
		salvage->period_ns = salvage->period_ns == 0 ? record->metric.period : salvage->period_ns;
		break;
	case JOURNAL_IMAGE:
		take_image(scan, &record->image);
		break;
	case JOURNAL_SAMPLE:
		take_sample(salvage, record->sample.time_ns);
		break;
	case JOURNAL_END:
		salvage->has_end = true;
		salvage->last_ns = record->end.time_ns;
		break;
	default:
		break;
	}
}

/* len bytes at the offset; fewer when the file ends. -1: errno. */
static ssize_t read_at(int fd, void *bytes, size_t len, uint64_t offset)
{
	size_t done = 0;
	while (done < len) {
		ssize_t count = pread(fd, (char *)bytes + done, len - done, (off_t)(offset + done));
		if (count == 0) {
			break;
		}
		if (count < 0 && errno != EINTR) {
			return -1;
		}
		done += count > 0 ? (size_t)count : 0;
	}
	return (ssize_t)done;
}

enum chunk_result { CHUNK_GOOD, CHUNK_NONE, CHUNK_UNREADABLE };

/* Do its numbers follow the last chunk's? As journal_reader has it. */
static bool follows(const struct scan *scan, uint32_t segment, uint32_t chunk)
{
	if (chunk == 0) {
		return !scan->has_begun || segment > scan->segment;
	}
	return scan->has_begun && segment == scan->segment && chunk == scan->chunk + 1;
}

/* The whole chunk at the offset into chunk_bytes. */
static enum chunk_result read_chunk(struct scan *scan, struct error *err)
{
	uint8_t *bytes = scan->chunk_bytes.data, sealed[JOURNAL_HEADER_BYTES];
	ssize_t count = read_at(scan->fd, bytes, JOURNAL_HEADER_BYTES, scan->offset);
	struct bytes fields = bytes_of(bytes, count > 0 ? (size_t)count : 0);
	bytes_u32(&fields);
	uint32_t len = bytes_u32(&fields);
	uint32_t segment = bytes_u32(&fields);
	uint32_t chunk = bytes_u32(&fields);
	if (count == JOURNAL_HEADER_BYTES && len <= LIMIT_CHUNK_BYTES) {
		count = read_at(
			scan->fd, bytes + JOURNAL_HEADER_BYTES, len, scan->offset + JOURNAL_HEADER_BYTES);
	} else if (count >= 0) {
		return CHUNK_NONE;
	}
	if (count < 0) {
		error_errno(err, "cannot read the journal");
		return CHUNK_UNREADABLE;
	}
	if ((size_t)count < len || !follows(scan, segment, chunk)) {
		return CHUNK_NONE;
	}
	journal_seal(sealed, segment, chunk, bytes + JOURNAL_HEADER_BYTES, len);
	if (memcmp(sealed, bytes, sizeof(sealed)) != 0) {
		return CHUNK_NONE;
	}
	scan->chunk_bytes.len = JOURNAL_HEADER_BYTES + len;
	scan->segment = segment;
	scan->chunk = chunk;
	scan->has_begun = true;
	scan->offset += scan->chunk_bytes.len;
	return CHUNK_GOOD;
}

/* Appends a chunk that is number chunk of segment 0. */
static bool add_chunk(struct buffer *file, uint32_t chunk, const void *payload, size_t len)
{
	uint8_t header[JOURNAL_HEADER_BYTES];
	journal_seal(header, 0, chunk, payload, (uint32_t)len);
	return buffer_append(file, header, sizeof(header)) && buffer_append(file, payload, len);
}

/* A journal of this chunk alone: behind the first chunk of its segment stands the SEGMENT record once more. */
static bool make_file(struct scan *scan)
{
	const uint8_t *payload = scan->chunk_bytes.data + JOURNAL_HEADER_BYTES;
	size_t len = scan->chunk_bytes.len - JOURNAL_HEADER_BYTES;
	scan->file.len = 0;
	if (scan->chunk == 0) {
		scan->begin.len = 0;
		return add_chunk(&scan->file, 0, payload, len);
	}
	return add_chunk(&scan->file, 0, scan->begin.data, scan->begin.len) &&
		   add_chunk(&scan->file, 1, payload, len);
}

/* Keeps the SEGMENT record for the chunks behind this one. */
static void keep_segment(struct scan *scan, const struct journal_record *record)
{
	uint64_t last_time_ns = 0;
	scan->begin.len = 0;
	scan->no_memory |= !journal_encode(&scan->begin, record, &last_time_ns);
}

/* False: a record in it is not right, and nothing behind it counts. */
static bool read_records(struct scan *scan)
{
	struct journal_record record;
	enum journal_result result = JOURNAL_READ_BAD;
	struct journal_reader *reader =
		make_file(scan) ? journal_reader_create(scan->file.data, scan->file.len) : NULL;
	scan->no_memory |= reader == NULL;
	while (!scan->no_memory &&
		   (result = journal_reader_next(reader, &record)) == JOURNAL_READ_RECORD) {
		if (record.type != JOURNAL_SEGMENT) {
			take(scan, &record);
		} else if (scan->chunk == 0) {
			take_segment(scan, &record);
			keep_segment(scan, &record);
		}
	}
	journal_reader_destroy(reader);
	return result == JOURNAL_READ_END;
}

bool salvage_read(struct salvage *salvage, int journal_fd, struct error *err)
{
	struct scan scan = {.salvage = salvage, .fd = journal_fd};
	enum chunk_result result = CHUNK_NONE;
	char next;
	scan.no_memory = !buffer_reserve(&scan.chunk_bytes, CHUNK_AT_MOST);
	while (!scan.no_memory && !salvage->has_end &&
		   (result = read_chunk(&scan, err)) == CHUNK_GOOD && read_records(&scan)) {
		salvage->good_bytes = scan.offset;
	}
	salvage->is_damaged =
		!salvage->has_end && read_at(journal_fd, &next, sizeof(next), salvage->good_bytes) > 0;
	finish(&scan);
	if (scan.no_memory) {
		return error_set(err, ERROR_LIMIT_EXCEEDED, "no memory to read the journal");
	}
	return result != CHUNK_UNREADABLE;
}

uint64_t salvage_unix_us(const struct salvage *salvage, uint64_t time_ns)
{
	uint64_t since_ns = time_ns > salvage->begin_ns ? time_ns - salvage->begin_ns : 0;
	return salvage->begin_unix_us + since_ns / 1000;
}

bool salvage_is_of_this_boot(const struct salvage *salvage)
{
	uint64_t now_ns = clock_monotonic_ns();
	uint64_t expected_us = salvage_unix_us(salvage, now_ns), now_us = clock_unix_us();
	uint64_t apart_us = expected_us > now_us ? expected_us - now_us : now_us - expected_us;
	return now_ns >= salvage->last_ns && apart_us < BOOT_SLACK_US;
}

static int open_image(const struct salvage_image *image, uint64_t until_us)
{
	struct target_mapping place = {
		.device_major = (uint32_t)(image->device >> 32),
		.device_minor = (uint32_t)image->device,
		.inode = image->inode,
		.path = image->path,
	};
	/* Seen from here: the target is gone, and its pid may be another's. */
	int fd = target_open_mapped_file(getpid(), &place, NULL);
	struct stat status;
	if (fd < 0) {
		return -1;
	}
	if (fstat(fd, &status) != 0 ||
		(uint64_t)status.st_ctim.tv_sec * 1000000 + (uint64_t)status.st_ctim.tv_nsec / 1000 >
			until_us) {
		close(fd);
		return -1;
	}
	return fd;
}

void salvage_open_images(struct salvage *salvage, size_t limit)
{
	uint64_t until_us = salvage_unix_us(salvage, salvage->last_ns);
	for (size_t i = 0; i < salvage->images.len && salvage->opened.len < limit; i++) {
		int fd = open_image(&salvage->images.items[i], until_us);
		if (fd < 0) {
			continue;
		}
		if (!VEC_PUSH(
				&salvage->opened, ((struct pipeline_image){salvage->images.items[i].id, fd}))) {
			close(fd);
			return;
		}
	}
}
