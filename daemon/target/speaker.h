#ifndef TARGET_SPEAKER_H
#define TARGET_SPEAKER_H

#include <sys/types.h>

#define PROC_PATH_BYTES 96 /* for any path below /proc that is made of numbers and our own words */

/*
 * Whose files in /proc tell of a process: its own, or, when its first thread has ended before the others (pthread_exit(3) in main), those
 * of a thread that lives, because its own are empty then, and nobody's memory is its (proc(5), process_vm_readv(2)). Its own number when no
 * thread lives, or it is not there. Any thread.
 */
pid_t target_speaker(pid_t pid);

#endif
