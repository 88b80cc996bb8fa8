/* Half of a second of CPU time in the kernel: it reads zeros, by system calls of its own (the C library keeps no frame pointers). */
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "burn.h"

static NOINLINE void read_zeros(int fd)
{
	static char zeros[1 << 18];
	long result = SYS_read;

#if defined(__x86_64__)
	__asm__ volatile("syscall"
					 : "+a"(result)
					 : "D"((long)fd), "S"(zeros), "d"(sizeof(zeros))
					 : "rcx", "r11", "memory");
#else
	result = syscall(SYS_read, fd, zeros, sizeof(zeros));
#endif
	KEEP_FRAME();
	(void)result;
}

int main(void)
{
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + 500000000;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end) {
		for (int i = 0; i < 20; i++) {
			read_zeros(fd);
		}
	}
	printf("%llu\n", (unsigned long long)clock_ns(CLOCK_PROCESS_CPUTIME_ID));
	return 0;
}
