#include "profile/journal_layout.h"

#include <assert.h>
#include <stddef.h>

#define NUMBER JOURNAL_FIELD_NUMBER
#define TIME   JOURNAL_FIELD_TIME
#define ID     JOURNAL_FIELD_ID
#define REF    JOURNAL_FIELD_REFERENCE
#define TEXT   JOURNAL_FIELD_TEXT

const uint8_t journal_layout[JOURNAL_TYPES][JOURNAL_FIELDS_MAX + 1] = {
	[JOURNAL_SEGMENT] = {NUMBER, NUMBER, NUMBER, NUMBER, NUMBER, NUMBER, TEXT, TEXT},
	[JOURNAL_CAPTURE] = {TEXT},
	[JOURNAL_STRING] = {ID, TEXT},
	[JOURNAL_METRIC] = {ID, REF, NUMBER, NUMBER},
	[JOURNAL_PROCESS] = {TIME, NUMBER, NUMBER, REF, REF, NUMBER, NUMBER},
	[JOURNAL_PROCESS_END] = {TIME, NUMBER},
	[JOURNAL_THREAD] = {TIME, NUMBER, NUMBER, REF},
	[JOURNAL_THREAD_END] = {TIME, NUMBER},
	[JOURNAL_IMAGE] = {ID, NUMBER, REF, NUMBER, NUMBER, NUMBER, TEXT, NUMBER},
	[JOURNAL_MAPPING] = {TIME, NUMBER, NUMBER, NUMBER, NUMBER, REF, NUMBER},
	[JOURNAL_UNMAPPING] = {TIME, NUMBER, NUMBER, NUMBER},
	[JOURNAL_FRAME] = {ID, NUMBER, REF, REF, NUMBER, REF},
	[JOURNAL_STACK] = {ID, NUMBER, NUMBER, NUMBER},
	[JOURNAL_SAMPLE] = {TIME, NUMBER, REF, NUMBER, REF, NUMBER},
	[JOURNAL_LOSS] = {TIME, NUMBER, NUMBER, NUMBER, NUMBER},
	[JOURNAL_CPU_TIME] = {TIME, NUMBER, NUMBER, NUMBER, NUMBER, NUMBER},
	[JOURNAL_MARK] = {TIME, NUMBER, NUMBER, REF, NUMBER},
	[JOURNAL_NOTE] = {REF, REF},
	[JOURNAL_END] = {TIME, REF, NUMBER, NUMBER},
};

/* The structs hold their fields and nothing between them. */
#define SIZED(type, numbers, texts)                                                                \
	static_assert(                                                                                 \
		sizeof(struct type) == (numbers) * sizeof(uint64_t) + (texts) * sizeof(struct bytes_text), \
		#type)

SIZED(journal_segment, 6, 2);
SIZED(journal_capture, 0, 1);
SIZED(journal_string, 1, 1);
SIZED(journal_metric, 4, 0);
SIZED(journal_process, 7, 0);
SIZED(journal_process_end, 2, 0);
SIZED(journal_thread, 4, 0);
SIZED(journal_thread_end, 2, 0);
SIZED(journal_image, 7, 1);
SIZED(journal_mapping, 7, 0);
SIZED(journal_unmapping, 4, 0);
SIZED(journal_frame, 6, 0);
SIZED(journal_sample, 6, 0);
SIZED(journal_loss_record, 5, 0);
SIZED(journal_cpu_time, 6, 0);
SIZED(journal_mark, 5, 0);
SIZED(journal_note, 2, 0);
SIZED(journal_end, 4, 0);
static_assert(offsetof(struct journal_stack, values) == 4 * sizeof(uint64_t), "journal_stack");
static_assert(JOURNAL_END + 1 == JOURNAL_TYPES, "a row per type");
