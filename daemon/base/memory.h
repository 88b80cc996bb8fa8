#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

/*
 * How much of what is freed goes back to the system: a daemon that lives for weeks and now and then reads a large profile shall be small
 * between. Of the C library (mallopt(3), malloc_trim(3)); nothing where it has no such thing.
 */

/* Before other threads run: large blocks are mappings of their own, and threads share few heaps. */
void memory_set_up(void);

/* Hands free pages of all heaps back. Any thread; takes the locks of the heaps for up to some milliseconds. */
void memory_give_back(void);

#endif
