#include "process/terminal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#define ROWS       24
#define COLUMNS    80
#define PATH_BYTES 128

bool terminal_open(int *master, int *slave, struct error *err)
{
	char path[PATH_BYTES];
	int other = -1;
	int fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (fd < 0) {
		return error_errno(err, "cannot make a terminal for the program");
	}
	if (grantpt(fd) != 0 || unlockpt(fd) != 0 || ptsname_r(fd, path, sizeof(path)) != 0) {
		error_errno(err, "cannot unlock the program's terminal");
		goto fail;
	}
	other = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (other < 0) {
		error_errno(err, "cannot open the program's terminal %s", path);
		goto fail;
	}
	if (!terminal_resize(fd, ROWS, COLUMNS, err)) {
		goto fail;
	}
	*master = fd;
	*slave = other;
	return true;

fail:
	if (other >= 0) {
		close(other);
	}
	close(fd);
	return false;
}

bool terminal_resize(int fd, unsigned rows, unsigned columns, struct error *err)
{
	struct winsize size = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)columns};
	return ioctl(fd, TIOCSWINSZ, &size) == 0 ||
		   error_errno(err, "cannot set the terminal to %u rows of %u columns", rows, columns);
}

int terminal_eof_character(int fd)
{
	struct termios modes;
	if (tcgetattr(fd, &modes) != 0 || modes.c_cc[VEOF] == _POSIX_VDISABLE) {
		return -1;
	}
	return modes.c_cc[VEOF];
}
