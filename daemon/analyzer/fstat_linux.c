/*
 * fstat(2) by the system call of that name, for us and for the libraries we are linked with. The C library's (glibc 2.33 to 2.38, x86-64
 * and 64-bit ARM) asks newfstatat with an empty path instead, and a filter of system calls (analyzer/syscalls.h) cannot see whether a path is
 * empty: whoever may call it may ask about any file of the system. No header: these are the names of <sys/stat.h>.
 */
#undef _FILE_OFFSET_BITS /* its names, not those it would give to them */

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

_Static_assert(sizeof(struct stat) == sizeof(struct stat64) && sizeof(long) == 8,
	"the kernel's struct is the library's where a word has 64 bits");

int fstat(int fd, struct stat *status)
{
	return (int)syscall(SYS_fstat, fd, status);
}

int fstat64(int fd, struct stat64 *status)
{
	return (int)syscall(SYS_fstat, fd, status);
}
