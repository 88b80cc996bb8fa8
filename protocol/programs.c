#include "protocol/programs.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct program {
	const char *name;
	const char *variable;
	const char *build_place; /* below the build folder */
	const char *installed;   /* the folder */
};

static const struct program programs[] = {
	{"profd", "PROFD_DAEMON", "daemon", PROFD_BIN_DIR},
	{"profd-gate", "PROFD_GATE", "daemon", PROFD_LIBEXEC_DIR},
	{"profd-gpu-probe", "PROFD_GPU_PROBE", "daemon", PROFD_LIBEXEC_DIR},
	{"profd-analyzer", "PROFD_ANALYZER", "daemon/analyzer", PROFD_LIBEXEC_DIR},
};

/* Where the build folder is, seen from the folder of an executable in it: client/, daemon/analyzer/, tests/unit/. And the
 * libexec folder seen from the bin folder, for a prefix that was moved. */
static const char *const up[] = {"..", "../.."};
#define MOVED_LIBEXEC "../libexec/profd"

/* The search: what is looked for, where the answer goes, and the places that had none. */
struct search {
	const struct program *program;
	char *path;
	size_t path_bytes;
	char tried[2048];
};

static const struct program *find(const char *name)
{
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		if (strcmp(programs[i].name, name) == 0) {
			return &programs[i];
		}
	}
	return NULL;
}

static void note(struct search *search, const char *place)
{
	size_t used = strlen(search->tried);
	int wanted = snprintf(
		search->tried + used, sizeof(search->tried) - used, "%s%s", used > 0 ? ", " : "", place);
	if (wanted < 0 || (size_t)wanted >= sizeof(search->tried) - used) {
		search->tried[used] = '\0'; /* the list is long enough to be understood */
	}
}

static bool try_path(struct search *search, const char *path)
{
	struct stat status;
	size_t length = strlen(path);
	if (length < search->path_bytes && stat(path, &status) == 0 && S_ISREG(status.st_mode) &&
		access(path, X_OK) == 0) {
		memcpy(search->path, path, length + 1);
		return true;
	}
	note(search, path);
	return false;
}

static bool try_folder(struct search *search, const char *folder, const char *below)
{
	char path[PATH_MAX];
	int wanted = snprintf(path, sizeof(path), "%s%s%s/%s", folder, *below != '\0' ? "/" : "", below,
		search->program->name);
	return wanted > 0 && (size_t)wanted < sizeof(path) && try_path(search, path);
}

/* The folder of the running executable; "" when unknown. */
static void own_folder(char folder[PATH_MAX])
{
	ssize_t length = readlink("/proc/self/exe", folder, PATH_MAX - 1);
	folder[length > 0 ? length : 0] = '\0';
	char *slash = strrchr(folder, '/');
	if (slash != NULL) {
		*slash = '\0';
	}
}

static bool try_around(struct search *search, const char *folder)
{
	const char *place = search->program->build_place;
	if (try_folder(search, folder, "") ||
		(strcmp(place, "daemon/analyzer") == 0 && try_folder(search, folder, "analyzer"))) {
		return true;
	}
	for (size_t i = 0; i < sizeof(up) / sizeof(up[0]); i++) {
		char below[64];
		snprintf(below, sizeof(below), "%s/%s", up[i], place);
		if (try_folder(search, folder, below)) {
			return true;
		}
	}
	return try_folder(search, folder, MOVED_LIBEXEC);
}

bool programs_find(const char *name, char *path, size_t path_bytes, struct error *err)
{
	const struct program *program = find(name);
	if (program == NULL) {
		return error_set(err, ERROR_INTERNAL, "there is no program %s in this project", name);
	}
	struct search search = {.program = program, .path = path, .path_bytes = path_bytes};
	const char *given = getenv(program->variable);
	if (given != NULL && *given != '\0') {
		if (try_path(&search, given)) {
			return true;
		}
		error_set(err, ERROR_IO, "%s is %s, which is no program that can be run", program->variable,
			given);
		error_detail(err, "program_missing");
		return error_hint(err, "set it to the path of %s, or unset it", name);
	}
	char folder[PATH_MAX];
	own_folder(folder);
	if ((folder[0] != '\0' && try_around(&search, folder)) ||
		try_folder(&search, program->installed, "")) {
		return true;
	}
	error_set(err, ERROR_IO, "%s was not found in any of: %s", name, search.tried);
	error_detail(err, "program_missing");
	return error_hint(err, "install it, or set %s to its path", program->variable);
}
