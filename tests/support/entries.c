#include "support/entries.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>

size_t entries_count(const char *path)
{
	size_t count = 0;
	DIR *dir = opendir(path);
	assert_non_null(dir);
	while (readdir(dir) != NULL) {
		count++;
	}
	closedir(dir);
	return count - 2;
}
