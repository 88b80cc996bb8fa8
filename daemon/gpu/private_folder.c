#include "gpu/private_folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"

bool private_folder_make(char path[PRIVATE_FOLDER_BYTES], struct error *err)
{
	struct stat status;
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	bool is_ours = runtime != NULL && runtime[0] == '/' &&
				   strlen(runtime) < PRIVATE_FOLDER_BYTES / 2 && stat(runtime, &status) == 0 &&
				   status.st_uid == geteuid() && (status.st_mode & 077) == 0;
	snprintf(path, PRIVATE_FOLDER_BYTES, "%s/profd-gpu-XXXXXX", is_ours ? runtime : "/tmp");
	if (mkdtemp(path) == NULL) {
		error_errno(err, "make the folder %s", path);
		path[0] = '\0';
		return false;
	}
	return true;
}

void private_folder_remove(const char *path)
{
	struct error err = {0};
	const char *slash = strrchr(path, '/');
	char parent[PRIVATE_FOLDER_BYTES];
	if (slash == NULL) {
		return;
	}
	snprintf(parent, sizeof(parent), "%.*s", (int)(slash - path), path);
	int fd = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		files_remove_tree(fd, slash + 1, &err);
		close(fd);
	}
}
