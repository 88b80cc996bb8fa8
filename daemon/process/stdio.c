#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "process/record.h"
#include "process/terminal.h"
#include "protocol/limits.h"

static const char *const kind_names[] = {"pipe", "null", "file", "pty"};

static void on_output_closed(struct output *output)
{
	process_handle_closed(output->context);
}

static void on_input_closed(struct input *input)
{
	process_handle_closed(input->context);
}

static void on_output_read(struct output *output, uint64_t offset, const char *bytes, size_t len)
{
	struct process *process = output->context;
	int i = output == &process->outputs[0] ? 0 : 1;
	ring_append(&process->rings[i], bytes, len);
	process_tell_output(process, i == 0 ? PROCESS_STDOUT : PROCESS_STDERR, offset, bytes, len);
}

static void on_output_ended(struct output *output)
{
	process_advance(output->context);
}

/* Takes fd. */
static bool read_from(struct process *process, int i, int fd, struct error *err)
{
	struct output *output = &process->outputs[i];
	output->bytes = process->table->bytes;
	output->read = on_output_read;
	output->ended = on_output_ended;
	output->closed = on_output_closed;
	output->context = process;
	if (!output_open(output, process->table->loop, fd, err)) {
		return false;
	}
	process->handles++;
	return true;
}

/* Takes fd. */
static bool write_to(struct process *process, int fd, struct error *err)
{
	process->input.closed = on_input_closed;
	process->input.context = process;
	if (!input_open(&process->input, process->table->loop, fd, err)) {
		return false;
	}
	process->handles++;
	return true;
}

static bool make_pipe(int ends[2], struct error *err)
{
	return pipe2(ends, O_CLOEXEC) == 0 || error_errno(err, "cannot make a pipe for the program");
}

static bool open_pipes(struct process *process, int stdio[3], struct error *err)
{
	int ends[2];
	if (!make_pipe(ends, err)) {
		return false;
	}
	stdio[0] = ends[0];
	if (!write_to(process, ends[1], err)) {
		return false;
	}
	for (int i = 0; i < 2; i++) {
		if (!make_pipe(ends, err)) {
			return false;
		}
		stdio[i + 1] = ends[1];
		if (!read_from(process, i, ends[0], err)) {
			return false;
		}
	}
	return true;
}

/* Two watches need two descriptors of the one master. The program's end is held here too. */
static bool open_terminal(struct process *process, int stdio[3], struct error *err)
{
	int master;
	if (!terminal_open(&master, &process->terminal_fd, err)) {
		return false;
	}
	int other = fcntl(master, F_DUPFD_CLOEXEC, 0);
	stdio[0] = fcntl(process->terminal_fd, F_DUPFD_CLOEXEC, 0);
	stdio[1] = stdio[2] = stdio[0];
	if (other < 0 || stdio[0] < 0) {
		error_errno(err, "cannot pass the terminal to the program");
		close(master);
		if (other >= 0) {
			close(other);
		}
		return false;
	}
	if (!write_to(process, other, err)) {
		close(master);
		return false;
	}
	return read_from(process, 0, master, err);
}

static bool open_files(struct process *process, int stdio[3], struct error *err)
{
	const struct processes *table = process->table;
	if (table->data_fd < 0) {
		return error_set(err, ERROR_UNSUPPORTED, "there is no data folder for output files");
	}
	return output_files_create(table->data_fd, process->files, stdio + 1, err);
}

static bool open_null(int *fd, struct error *err)
{
	*fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	return *fd >= 0 || error_errno(err, "cannot open /dev/null for the program");
}

bool process_open_stdio(struct process *process, int stdio[3], struct error *err)
{
	switch (process->stdio) {
	case PROCESS_STDIO_PIPE:
		return open_pipes(process, stdio, err);
	case PROCESS_STDIO_PTY:
		return open_terminal(process, stdio, err);
	case PROCESS_STDIO_FILE:
		return open_null(&stdio[0], err) && open_files(process, stdio, err);
	case PROCESS_STDIO_NULL:
		break;
	}
	bool opened = open_null(&stdio[0], err);
	stdio[1] = stdio[2] = stdio[0];
	return opened;
}

void process_release_terminal(struct process *process)
{
	if (process->terminal_fd >= 0) {
		close(process->terminal_fd);
	}
	process->terminal_fd = -1;
}

/* Whether it can take or give something; it may be held. */
static bool check_lives(const struct process *process, struct error *err)
{
	return (process->state != PROCESS_EXITED && !process->has_ended) ||
		   error_set(err, ERROR_BUILD_NOT_RUNNING, "build %s has exited", process->key);
}

bool process_write(struct process *process, const char *bytes, size_t len, bool eof,
	size_t *accepted, struct error *err)
{
	bool is_terminal = process->stdio == PROCESS_STDIO_PTY;
	if (!check_lives(process, err)) {
		return false;
	}
	if (process->stdio != PROCESS_STDIO_PIPE && !is_terminal) {
		error_set(err, ERROR_UNSUPPORTED, "build %s has no standard input: its stdio is %s",
			process->key, kind_names[process->stdio]);
		return error_hint(err, "launch it with stdio pipe or pty");
	}
	int last = eof && is_terminal ? terminal_eof_character(process->terminal_fd) : -1;
	if (eof && is_terminal && last < 0) {
		return error_set(err, ERROR_UNSUPPORTED,
			"the terminal of build %s has no character that ends input", process->key);
	}
	size_t taken = 0;
	if (!input_write(&process->input, bytes, len, &taken, err)) {
		return false;
	}
	if (eof && taken == len && !is_terminal) {
		input_end(&process->input);
	} else if (eof && taken == len) {
		char character = (char)last;
		size_t one = 0;
		if (!input_write(&process->input, &character, 1, &one, err) || one == 0) {
			return error_set(err, ERROR_LIMIT_EXCEEDED,
				"build %s has %d bytes to read before its end of input fits", process->key,
				LIMIT_INPUT_BYTES);
		}
	}
	*accepted = taken;
	return true;
}

bool process_resize(struct process *process, unsigned rows, unsigned columns, struct error *err)
{
	if (!check_lives(process, err)) {
		return false;
	}
	if (process->stdio != PROCESS_STDIO_PTY) {
		error_set(err, ERROR_UNSUPPORTED, "build %s has no terminal: its stdio is %s", process->key,
			kind_names[process->stdio]);
		return error_hint(err, "launch it with stdio pty");
	}
	return terminal_resize(process->terminal_fd, rows, columns, err);
}

static bool out_of_range(
	const struct process *process, uint64_t offset, uint64_t end, struct error *err)
{
	error_set(err, ERROR_BAD_PARAMS,
		"offset %llu is beyond the %llu bytes that build %s has written there",
		(unsigned long long)offset, (unsigned long long)end, process->key);
	error_detail(err, "out_of_range");
	return error_hint(err, "ask from next_offset of the last answer, or leave offset out");
}

static bool read_file(struct process *process, const char *file, uint64_t offset, char *out,
	size_t max, struct process_piece *piece, struct error *err)
{
	int fd = output_files_open(process->table->data_fd, process->files, file, err);
	if (fd < 0) {
		return false;
	}
	struct stat status;
	bool ok = fstat(fd, &status) == 0 || error_errno(err, "the file %s", file);
	uint64_t end = ok ? (uint64_t)status.st_size : 0;
	ok = ok && (offset <= end || out_of_range(process, offset, end, err));
	ssize_t count = 0;
	if (ok) {
		count = pread(fd, out, max, (off_t)offset);
		ok = count >= 0 || error_errno(err, "the file %s", file);
	}
	close(fd);
	if (ok) {
		uint64_t behind = offset + (uint64_t)count;
		*piece = (struct process_piece){
			.offset = offset,
			.len = (size_t)count,
			.end = end > behind ? end : behind,
			.has_ended = process->state == PROCESS_EXITED,
		};
	}
	return ok;
}

static bool read_ring(struct process *process, int i, const uint64_t *offset, char *out, size_t max,
	struct process_piece *piece, struct error *err)
{
	const struct ring *ring = &process->rings[i];
	uint64_t start = ring_start(ring);
	uint64_t asked = offset != NULL ? *offset : start;
	if (asked > ring->end) {
		return out_of_range(process, asked, ring->end, err);
	}
	uint64_t from = asked > start ? asked : start;
	*piece = (struct process_piece){
		.offset = from,
		.len = ring_read(ring, from, out, max),
		.lost_before = from - asked,
		.end = ring->end,
		.has_ended = process->outputs[i].fd < 0,
	};
	return true;
}

bool process_read_output(struct process *process, enum process_stream stream,
	const uint64_t *offset, char *out, size_t max, struct process_piece *piece, struct error *err)
{
	bool is_out = stream == PROCESS_STDOUT;
	if (process->stdio == PROCESS_STDIO_NULL) {
		error_set(
			err, ERROR_UNSUPPORTED, "nothing is kept of build %s: its stdio is null", process->key);
		return error_hint(err, "launch it with stdio pipe, pty or file");
	}
	if (process->stdio == PROCESS_STDIO_PTY && !is_out) {
		error_set(err, ERROR_BAD_PARAMS,
			"build %s has a terminal, and with it no stderr of its own", process->key);
		error_detail(err, "out_of_range");
		return error_hint(err, "ask for stdout: everything is there");
	}
	if (process->stdio == PROCESS_STDIO_FILE) {
		return read_file(process, is_out ? OUTPUT_FILES_OUT : OUTPUT_FILES_ERR,
			offset != NULL ? *offset : 0, out, max, piece, err);
	}
	return read_ring(process, is_out ? 0 : 1, offset, out, max, piece, err);
}

bool process_output_path(const struct process *process, enum process_stream stream, char *path)
{
	if (process->files[0] == '\0') {
		return false;
	}
	int len = snprintf(path, PATH_MAX, "%s/" OUTPUT_FILES_FOLDER "/%s/%s", process->table->data_dir,
		process->files, stream == PROCESS_STDOUT ? OUTPUT_FILES_OUT : OUTPUT_FILES_ERR);
	return len > 0 && len < PATH_MAX;
}
