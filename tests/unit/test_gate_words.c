#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/gate_stage.h"

struct saying {
	const char *text;
	size_t len; /* 0: strlen */
	enum gate_state state;
	const char *detail;
};

/* The owner's end of a gate that says anything. */
static int fake_gate(struct gate *gate)
{
	int ends[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	memset(gate, 0, sizeof(*gate));
	gate->fd = ends[0];
	return ends[1];
}

static void takes_nothing_but_the_words_of_the_contract(void **state)
{
	(void)state;
	static char endless[GATE_LINE_BYTES + 1];
	memset(endless, 'x', sizeof(endless));
	const struct saying sayings[] = {
		{"ready 1\n", 0, GATE_IS_READY, ""},
		{"ready 2\n", 0, GATE_FAILED, "garbled"},
		{"ready 1", 0, GATE_FAILED, "gate_died"},
		{"ready 1 \n", 0, GATE_FAILED, "garbled"},
		{"ready 1\0\n", 9, GATE_FAILED, "garbled"},
		{"\n", 0, GATE_FAILED, "garbled"},
		{"failed \n", 0, GATE_FAILED, "garbled"},
		{"failed program\n", 0, GATE_FAILED, "garbled"},
		{"failed program 2\n", 0, GATE_FAILED, "garbled"},
		{"failed program 2 \n", 0, GATE_FAILED, "garbled"},
		{"failed program x why\n", 0, GATE_FAILED, "garbled"},
		{"failed program -2 why\n", 0, GATE_FAILED, "garbled"},
		{"failed program 99999999999999999999 why\n", 0, GATE_FAILED, "garbled"},
		{"failed nonsense 2 why\n", 0, GATE_FAILED, "garbled"},
		{"failed program 2 why\n", 0, GATE_FAILED, "not_found"},
		{"failed exec 2 why\n", 0, GATE_FAILED, "no_interpreter"},
		{"failed exec 7 why %s%n\n", 0, GATE_FAILED, "exec"},
		{"failed nofile 1 why\n", 0, GATE_FAILED, "nofile"},
		{endless, sizeof(endless), GATE_FAILED, "garbled"},
		{"", 0, GATE_FAILED, "gate_died"},
	};
	for (size_t i = 0; i < sizeof(sayings) / sizeof(sayings[0]); i++) {
		const struct saying *saying = &sayings[i];
		size_t len = saying->len > 0 ? saying->len : strlen(saying->text);
		struct gate gate;
		struct error err = {0};
		int other = fake_gate(&gate);
		assert_int_equal(send(other, saying->text, len, 0), (ssize_t)len);
		close(other);
		assert_int_equal(gate_read(&gate, false, &err), saying->state);
		assert_string_equal(err.detail, saying->detail);
		gate_close(&gate);
		gate_close(&gate);
		assert_int_equal(gate.fd, -1);
	}
}

static void puts_words_together_from_single_bytes(void **state)
{
	(void)state;
	const char *words = "ready 1\nfailed exec 8 no known format\n";
	struct gate gate;
	struct error err = {0};
	int other = fake_gate(&gate);
	for (size_t i = 0; words[i] != '\0'; i++) {
		assert_int_equal(send(other, words + i, 1, 0), 1);
		enum gate_state expected = words[i] != '\n'      ? GATE_WAITING
								   : words[i + 1] == 'f' ? GATE_IS_READY
														 : GATE_FAILED;
		assert_int_equal(gate_read(&gate, true, &err), expected);
	}
	assert_string_equal(err.message, "no known format");
	close(other);
	gate_close(&gate);
}

static void refuses_arguments_that_are_not_the_contract(void **state)
{
	struct gate_stage *stage = *state;
	static const char *const lines[][6] = {
		{"profd-gate", "--fd", "3", NULL},
		{"profd-gate", "--fd", "3", "--", NULL},
		{"profd-gate", "--fd", "3", "--", "", NULL},
		{"profd-gate", "--fd", "3", "--what", "--", "true"},
		{"profd-gate", "--fd", "3", "--cwd", NULL},
		{"profd-gate", "--fd", "3", "--umask=9", "--", "true"},
	};
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		char *argv[8] = {0};
		memcpy(argv, lines[i], sizeof(lines[i]));
		struct gate gate;
		struct error err = {0};
		int other = fake_gate(&gate);
		pid_t pid = fork();
		if (pid == 0) {
			dup2(other, 3);
			fcntl(3, F_SETFD, 0);
			execv(stage->gate_path, argv);
			_exit(99);
		}
		close(other);
		assert_int_equal(gate_wait(&gate, false, STAGE_WAIT_MS, &err), GATE_FAILED);
		assert_string_equal(err.detail, "arguments");
		int status;
		waitpid(pid, &status, 0);
		assert_int_equal(WEXITSTATUS(status), GATE_EXIT_CANNOT_RUN);
		gate_close(&gate);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_nothing_but_the_words_of_the_contract),
		cmocka_unit_test(puts_words_together_from_single_bytes),
		cmocka_unit_test(refuses_arguments_that_are_not_the_contract),
	};
	return cmocka_run_group_tests(tests, stage_set_up, stage_tear_down);
}
