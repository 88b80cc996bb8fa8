#ifndef GPU_LAYER_ALONE_H
#define GPU_LAYER_ALONE_H

#include <stdbool.h>

/*
 * True: the program's first thread has ended before the others (pthread_exit(3) in main), and of those the calling one is the last. The
 * process ends with its last thread, so that a thread of ours which stays would keep it for ever. Cheap as long as the first thread lives.
 */
bool alone_in_process(void);

#endif
