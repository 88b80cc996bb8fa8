#include "support/gate_stage.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "protocol/programs.h"

static const char *const plain_env[] = {"PATH=/usr/bin:/bin", "LC_ALL=C", NULL};

struct gate_options stage_options(const struct gate_stage *stage, const char *const *argv)
{
	return (struct gate_options){
		.gate_path = stage->gate_path,
		.argv = argv,
		.env = plain_env,
		.cwd = stage->folder,
		.umask_bits = -1,
		.nofile_soft = -1,
		.nofile_hard = -1,
		.stdio = {-1, -1, -1},
	};
}

void stage_begin(struct run *run, struct gate_options options)
{
	int ends[2];
	memset(run, 0, sizeof(*run));
	run->gate.fd = -1;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	options.stdio[1] = options.stdio[2] = ends[1];
	bool started = gate_start(&run->gate, &options, &run->err);
	close(ends[1]);
	run->out = ends[0];
	assert_true(started);
	run->state = gate_wait(&run->gate, false, STAGE_WAIT_MS, &run->err);
}

void stage_go(struct run *run)
{
	assert_int_equal(run->state, GATE_IS_READY);
	assert_true(gate_go(&run->gate, &run->err));
	run->state = gate_wait(&run->gate, true, STAGE_WAIT_MS, &run->err);
}

void stage_finish(struct run *run)
{
	gate_close(&run->gate);
	size_t used = 0;
	ssize_t count;
	while ((count = read(run->out, run->text + used, sizeof(run->text) - 1 - used)) > 0) {
		used += (size_t)count;
	}
	run->text[used] = '\0';
	close(run->out);
	assert_int_equal(waitpid(run->gate.pid, &run->status, 0), run->gate.pid);
}

void stage_run_all(struct run *run, struct gate_options options)
{
	stage_begin(run, options);
	stage_go(run);
	assert_int_equal(run->state, GATE_RUNNING);
	stage_finish(run);
	assert_true(WIFEXITED(run->status));
	assert_int_equal(WEXITSTATUS(run->status), 0);
}

void stage_write_file(const char *name, const char *text, mode_t mode)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

int stage_set_up(void **state)
{
	struct gate_stage *stage = calloc(1, sizeof(*stage));
	struct error err;
	*state = stage;
	strcpy(stage->folder, "/tmp/profd-test-gate-XXXXXX");
	if (!programs_find("profd-gate", stage->gate_path, sizeof(stage->gate_path), &err)) {
		fprintf(stderr, "%s\n", err.message);
		return -1;
	}
	return mkdtemp(stage->folder) != NULL && chdir(stage->folder) == 0 ? 0 : -1;
}

int stage_tear_down(void **state)
{
	struct gate_stage *stage = *state;
	char command[PATH_MAX + 16];
	snprintf(command, sizeof(command), "rm -rf %s", stage->folder);
	free(stage);
	return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
}
