#ifndef TESTS_SUPPORT_FAKE_ANALYZER_H
#define TESTS_SUPPORT_FAKE_ANALYZER_H

/*
 * An analyzer that does what the capture's label says: "ok"; "empty" (counts no sample), "huge" (says more than it may), "block svg" (puts
 * a folder where the svg should get its name), "slow" (says nothing), "disk full", "crash always"; and while it should name functions:
 * "crash", "garbage", "exit", "fails", "no counts". What it cannot do is its exit status, from 95 on.
 */
_Noreturn void fake_analyzer_run(void);

#endif
