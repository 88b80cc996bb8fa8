#include "gpu/module_file.h"

#include <stdio.h>
#include <stdlib.h>

#define WORDS_MAX 16384

const uint32_t *module_file_read(const char *path, size_t *bytes)
{
	static uint32_t words[WORDS_MAX];
	FILE *file = fopen(path, "rb");
	size_t count = file == NULL ? 0 : fread(words, sizeof(words[0]), WORDS_MAX, file);
	if (count == 0 || ferror(file) || fgetc(file) != EOF) {
		fprintf(
			stderr, "gpu_frames: %s cannot be read, or has more than %d words\n", path, WORDS_MAX);
		exit(2);
	}
	fclose(file);
	*bytes = count * sizeof(words[0]);
	return words;
}
