#ifndef TESTS_SUPPORT_FAULTS_H
#define TESTS_SUPPORT_FAULTS_H

#include <stdbool.h>

/*
 * Makes system calls fail: a test that links faults.c and whose linker wraps FAULT_CALLS (tests/unit/meson.build) has each of them counted, and the
 * one whose turn it is fails with an error of the test's choice, without being done. Any thread.
 */
enum fault_mode {
	FAULT_ONCE,
	FAULT_FROM_THEN_ON, /* a disk that is full stays so */
};

/* From here on call number at (from 1) fails. */
void faults_begin(unsigned at, int error, enum fault_mode mode);
/* No call fails any more. How many there were; *failed (may be NULL): the name of the first that failed, or "". */
unsigned faults_end(const char **failed);

#endif
