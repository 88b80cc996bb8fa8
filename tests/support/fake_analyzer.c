#include "support/fake_analyzer.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "profile/analysis.h"
#include "profile/journal.h"

static uint64_t count_samples(int fd)
{
	struct stat status;
	struct journal_record record;
	uint64_t samples = 0;
	if (fstat(fd, &status) != 0) {
		_exit(99);
	}
	void *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	struct journal_reader *reader = journal_reader_create(bytes, (size_t)status.st_size);
	enum journal_result result;
	while ((result = journal_reader_next(reader, &record)) == JOURNAL_READ_RECORD) {
		samples += record.type == JOURNAL_SAMPLE;
	}
	if (result != JOURNAL_READ_END) {
		_exit(98);
	}
	return samples;
}

static void say(const json_t *packet)
{
	struct error err = {0};
	if (!analysis_send(ANALYSIS_FD, packet, NULL, 0, &err)) {
		_exit(97);
	}
}

static void say_progress(int permille, const char *phase)
{
	say(json_pack("{s:s, s:i, s:s}", "type", "progress", "permille", permille, "phase", phase));
}

static void say_failed(enum error_code code)
{
	struct error err = {0};
	error_set(&err, code, "the analyzer says so");
	say(json_pack("{s:s, s:o}", "type", "failed", "error", error_to_json(&err)));
}

/* A folder where the svg should get its name. */
static void block_svg(int svg_fd)
{
	char link[64], path[4200] = "";
	snprintf(link, sizeof(link), "/proc/self/fd/%d", svg_fd);
	if (readlink(link, path, sizeof(path) - 64) > 0) {
		strcpy(strrchr(path, '/'), "/capture.svg");
		mkdir(path, 0700);
	}
}

static json_t *summary_for(const char *mode)
{
	json_t *summary = json_pack("{s:i, s:i, s:[{s:s, s:i, s:i}]}", "duration_ms", 1, "threads", 1,
		"top", "function", "main", "self", 1, "total", 1);
	if (strcmp(mode, "huge") == 0) {
		json_t *top = json_object_get(summary, "top");
		char *name = calloc(1, 60001);
		memset(name, 'n', 60000);
		json_array_append_new(top, json_pack("{s:s}", "function", name));
		for (int i = 0; i < 1000; i++) {
			json_array_append_new(top, json_pack("{s:s}", "function", "f"));
		}
	}
	return summary;
}

/* Ends by the signal that the mode names, if it names one. */
static void end_by_signal(const char *mode)
{
	static const struct {
		const char *mode;
		int signal;
	} ends[] = {{"crash", SIGKILL}, {"fault", SIGSEGV}, {"cpu", SIGXCPU}, {"call", SIGSYS}};
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		if (strcmp(mode, ends[i].mode) == 0) {
			signal(ends[i].signal, SIG_DFL); /* a sanitizer would report it */
			raise(ends[i].signal);
		}
	}
}

static void misbehave(const char *mode, bool symbols)
{
	if (symbols) {
		end_by_signal(mode);
	}
	if (strcmp(mode, "crash always") == 0) {
		raise(SIGKILL);
	} else if (symbols && strcmp(mode, "garbage") == 0) {
		if (send(ANALYSIS_FD, "{nonsense", 9, 0) == 9) {
			pause();
		}
	} else if (symbols && strcmp(mode, "exit") == 0) {
		_exit(3);
	} else if (strcmp(mode, "slow") == 0) {
		pause();
	} else if (strcmp(mode, "disk full") == 0) {
		say_failed(ERROR_DISK_FULL);
		pause();
	} else if (symbols && strcmp(mode, "fails") == 0) {
		say_failed(ERROR_INTERNAL);
		pause();
	} else if (symbols && strcmp(mode, "no counts") == 0) {
		say(json_pack("{s:s, s:{}}", "type", "done", "summary"));
		pause();
	}
}

_Noreturn void fake_analyzer_run(void)
{
	struct analysis_message begin = {0};
	struct error err = {0};
	if (analysis_receive(ANALYSIS_FD, &begin, &err) != ANALYSIS_MESSAGE ||
		strcmp(analysis_message_type(&begin), "begin") != 0) {
		_exit(96);
	}
	const char *mode =
		json_string_value(json_object_get(json_object_get(begin.body, "facts"), "label"));
	mode = mode != NULL ? mode : "";
	misbehave(mode, json_is_true(json_object_get(begin.body, "symbols")));
	struct analysis_message next = {0};
	while (analysis_receive(ANALYSIS_FD, &next, &err) == ANALYSIS_MESSAGE &&
		   strcmp(analysis_message_type(&next), "finish") != 0) {
		analysis_message_finish(&next);
	}
	say_progress(500, "symbolizing");
	say_progress(900, "writing");
	uint64_t samples = strcmp(mode, "empty") == 0 ? 0 : count_samples(begin.files[0]);
	for (size_t i = 1; i < begin.file_count; i++) {
		const char *kind =
			json_string_value(json_array_get(json_object_get(begin.body, "outputs"), i - 1));
		if (dprintf(begin.files[i], "this is %s\n", kind) < 0) {
			_exit(95);
		}
		if (strcmp(mode, "block svg") == 0 && strcmp(kind, "svg") == 0) {
			block_svg(begin.files[i]);
		}
	}
	say(json_pack("{s:s, s:o, s:[{s:s, s:s}], s:I, s:i, s:i, s:i}", "type", "done", "summary",
		summary_for(mode), "warnings", "code", "images_missing", "message", "some", "samples",
		(json_int_t)samples, "lost", 0, "threads", 1, "truncated", 0));
	analysis_receive(ANALYSIS_FD, &next, &err);
	_exit(0);
}
