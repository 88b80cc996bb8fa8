#include "capture/codes.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/vec.h"

struct key {
	uint64_t device, inode, bytes;
	int64_t modified_ns, changed_ns;
};

struct code {
	struct key key;  /* all zero: the vDSO */
	struct cfi *cfi; /* owned reference */
	size_t users;
};

struct codes {
	atomic_uint references;
	pthread_mutex_t lock;
	VEC(struct code) items;
};

struct codes *codes_create(void)
{
	struct codes *codes = calloc(1, sizeof(*codes));
	if (codes != NULL && pthread_mutex_init(&codes->lock, NULL) != 0) {
		free(codes);
		return NULL;
	}
	return codes_ref(codes);
}

struct codes *codes_ref(struct codes *codes)
{
	if (codes != NULL) {
		atomic_fetch_add(&codes->references, 1);
	}
	return codes;
}

void codes_release(struct codes *codes)
{
	if (codes == NULL || atomic_fetch_sub(&codes->references, 1) != 1) {
		return;
	}
	for (size_t i = 0; i < codes->items.len; i++) {
		cfi_release(codes->items.items[i].cfi);
	}
	VEC_FINISH(&codes->items);
	pthread_mutex_destroy(&codes->lock);
	free(codes);
}

static int64_t nanoseconds(struct timespec time)
{
	return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static bool key_of(int fd, struct key *key)
{
	struct stat status;
	if (fstat(fd, &status) != 0) {
		return false;
	}
	*key = (struct key){
		.device = (uint64_t)status.st_dev,
		.inode = (uint64_t)status.st_ino,
		.bytes = (uint64_t)status.st_size,
		.modified_ns = nanoseconds(status.st_mtim),
		.changed_ns = nanoseconds(status.st_ctim),
	};
	return true;
}

static struct code *find(const struct codes *codes, const struct key *key)
{
	for (size_t i = 0; i < codes->items.len; i++) {
		if (memcmp(&codes->items.items[i].key, key, sizeof(*key)) == 0) {
			return &codes->items.items[i];
		}
	}
	return NULL;
}

/* Takes image. */
static struct cfi *add(
	struct codes *codes, const struct key *key, struct image *image, struct cfi_reader *reader)
{
	struct cfi *cfi = image != NULL ? cfi_create(image, reader) : NULL;
	image_release(image);
	if (cfi != NULL && !VEC_PUSH(&codes->items, ((struct code){*key, cfi, 1}))) {
		cfi_release(cfi);
		return NULL;
	}
	return cfi;
}

static struct cfi *get(
	struct codes *codes, const struct key *key, int fd, struct cfi_reader *reader)
{
	pthread_mutex_lock(&codes->lock);
	struct code *known = find(codes, key);
	struct cfi *cfi = known != NULL ? known->cfi : NULL;
	if (known != NULL) {
		known->users++;
	} else if (fd < 0) {
		cfi = add(codes, key, image_open_vdso(NULL), reader);
	} else {
		int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		cfi = copy >= 0 ? add(codes, key, image_open(copy, NULL), reader) : NULL;
	}
	pthread_mutex_unlock(&codes->lock);
	return cfi;
}

struct cfi *codes_get(struct codes *codes, int fd, struct cfi_reader *reader)
{
	struct key key;
	return key_of(fd, &key) ? get(codes, &key, fd, reader) : NULL;
}

struct cfi *codes_get_vdso(struct codes *codes, struct cfi_reader *reader)
{
	static const struct key vdso;
	return get(codes, &vdso, -1, reader);
}

void codes_put(struct codes *codes, struct cfi *cfi)
{
	if (cfi == NULL) {
		return;
	}
	pthread_mutex_lock(&codes->lock);
	for (size_t i = 0; i < codes->items.len; i++) {
		struct code *code = &codes->items.items[i];
		if (code->cfi == cfi && --code->users == 0) {
			cfi_release(code->cfi);
			*code = codes->items.items[--codes->items.len];
			break;
		}
	}
	pthread_mutex_unlock(&codes->lock);
}
