#include "capture/images.h"

#include <stdlib.h>
#include <string.h>

#include <elf.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/map.h"
#include "base/vec.h"
#include "profile/journal.h"
#include "protocol/limits.h"
#include "target/target.h"

#define FD_SHARE 4 /* one descriptor in so many */

/* By which it is seen that a file was overwritten. Its times alone may also be changed by touch(1). */
#define PRINT_BYTES 4096
struct print {
	int64_t modified_ns;
	uint64_t bytes, hash; /* hash: of its first and last PRINT_BYTES */
};

struct image {
	uint64_t hash;
	uint64_t device, inode, inode_generation;
	char *path; /* owned */
	uint64_t kind;
	uint64_t access; /* enum journal_image_access */
	int fd;          /* borrowed from opened; -1 */
	struct print print;
	bool is_over; /* its file was overwritten: mappings are another image's */
};

struct images {
	VEC(struct image) known; /* the id is the index + 1 */
	VEC(struct pipeline_image) opened;
	size_t fd_limit, not_opened;
};

size_t images_fd_limit(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
		return LIMIT_IMAGES;
	}
	return (size_t)limit.rlim_cur / FD_SHARE;
}

struct images *images_create(size_t fd_limit)
{
	struct images *images = calloc(1, sizeof(*images));
	if (images) {
		images->fd_limit = fd_limit;
	}
	return images;
}

void images_destroy(struct images *images)
{
	if (!images) {
		return;
	}
	for (size_t i = 0; i < images->known.len; i++) {
		free(images->known.items[i].path);
	}
	for (size_t i = 0; i < images->opened.len; i++) {
		close(images->opened.items[i].fd);
	}
	VEC_FINISH(&images->known);
	VEC_FINISH(&images->opened);
	free(images);
}

static uint64_t device_of(const struct sampler_mapping *mapping)
{
	return (uint64_t)mapping->device_major << 32 | mapping->device_minor;
}

/* /proc/PID/maps does not know the generation, MMAP2 does: zero is any. */
static bool is_equal(
	const struct image *image, uint64_t hash, const struct sampler_mapping *mapping)
{
	return !image->is_over && image->hash == hash && image->device == device_of(mapping) &&
		   image->inode == mapping->inode &&
		   (image->inode_generation == mapping->inode_generation || image->inode_generation == 0 ||
			   mapping->inode_generation == 0) &&
		   strcmp(image->path, mapping->path) == 0;
}

/* Memory with a name (memfd_create(2)): a JIT's, or a program that was never on a disk. */
static bool is_memory_file(const struct sampler_mapping *mapping)
{
	return strncmp(mapping->path, "/memfd:", 7) == 0;
}

/* Anonymous memory is told by name only: "//anon", "/dev/zero" and "/SYSV…" (shared), "[heap]", "[stack]". */
static uint64_t kind_of(const struct sampler_mapping *mapping)
{
	if (strcmp(mapping->path, "[vdso]") == 0) {
		return JOURNAL_IMAGE_VDSO;
	}
	if (mapping->path[0] != '/' || strcmp(mapping->path, "//anon") == 0 ||
		strncmp(mapping->path, "/dev/zero", 9) == 0 || strncmp(mapping->path, "/SYSV", 5) == 0 ||
		strncmp(mapping->path, "/anon_hugepage", 14) == 0) {
		return mapping->path[0] == '[' ? JOURNAL_IMAGE_UNKNOWN : JOURNAL_IMAGE_ANONYMOUS;
	}
	return JOURNAL_IMAGE_ELF;
}

static bool has_elf_magic(int fd)
{
	char magic[SELFMAG];
	return pread(fd, magic, SELFMAG, 0) == SELFMAG && memcmp(magic, ELFMAG, SELFMAG) == 0;
}

static uint64_t access_failed(const struct error *err)
{
	return strcmp(err->detail, "deleted") == 0    ? JOURNAL_IMAGE_DELETED
		   : strcmp(err->detail, "replaced") == 0 ? JOURNAL_IMAGE_REPLACED
												  : JOURNAL_IMAGE_NOT_OPENED;
}

static uint64_t open_file(struct images *images, uint32_t id, const struct sampler_mapping *mapping)
{
	struct target_mapping place = {
		.start = mapping->start,
		.length = mapping->length,
		.file_offset = mapping->file_offset,
		.protection = mapping->protection,
		.device_major = mapping->device_major,
		.device_minor = mapping->device_minor,
		.inode = mapping->inode,
		.path = mapping->path,
	};
	struct error err = {0};
	if (images->opened.len >= images->fd_limit) {
		images->not_opened++;
		return JOURNAL_IMAGE_NOT_OPENED;
	}
	int fd = target_open_mapped_file(mapping->pid, &place, &err);
	if (fd < 0) {
		images->not_opened += err.code == ERROR_LIMIT_EXCEEDED;
		return access_failed(&err);
	}
	if (is_memory_file(mapping) && !has_elf_magic(fd)) {
		close(fd);
		return JOURNAL_IMAGE_NOT_OPENED;
	}
	if (!VEC_PUSH(&images->opened, ((struct pipeline_image){id, fd}))) {
		close(fd);
		return JOURNAL_IMAGE_NOT_OPENED;
	}
	return JOURNAL_IMAGE_OPENED;
}

static uint64_t hash_at(int fd, uint64_t offset)
{
	uint8_t bytes[PRINT_BYTES];
	ssize_t len = pread(fd, bytes, sizeof(bytes), (off_t)offset);
	return len > 0 ? map_hash_bytes(bytes, (size_t)len) : 0;
}

static int64_t modified_ns(const struct stat *status)
{
	return (int64_t)status->st_mtim.tv_sec * 1000000000 + status->st_mtim.tv_nsec;
}

static struct print print_of(int fd)
{
	struct stat status;
	if (fstat(fd, &status) != 0) {
		return (struct print){0};
	}
	uint64_t bytes = (uint64_t)status.st_size;
	uint64_t last = bytes > PRINT_BYTES ? bytes - PRINT_BYTES : 0;
	return (struct print){
		.modified_ns = modified_ns(&status),
		.bytes = bytes,
		.hash = map_hash(hash_at(fd, 0)) ^ hash_at(fd, last),
	};
}

/* Times first: they are all that has to be looked at as long as nobody writes. */
static bool has_changed(const struct image *image)
{
	struct stat status;
	if (fstat(image->fd, &status) != 0 || ((uint64_t)status.st_size == image->print.bytes &&
											  modified_ns(&status) == image->print.modified_ns)) {
		return false;
	}
	struct print now = print_of(image->fd);
	return now.bytes != image->print.bytes || now.hash != image->print.hash;
}

static void close_opened(struct images *images, uint32_t id)
{
	for (size_t i = 0; i < images->opened.len; i++) {
		if (images->opened.items[i].id == id) {
			close(images->opened.items[i].fd);
			images->opened.items[i] = images->opened.items[--images->opened.len];
			return;
		}
	}
}

bool images_was_overwritten(struct images *images, uint32_t id)
{
	struct image *image = id > 0 && id <= images->known.len ? &images->known.items[id - 1] : NULL;
	if (image == NULL || image->fd < 0 || !has_changed(image)) {
		return false;
	}
	close_opened(images, id);
	image->fd = -1;
	image->access = JOURNAL_IMAGE_REPLACED;
	image->is_over = true;
	return true;
}

size_t images_count(const struct images *images)
{
	return images->known.len;
}

void images_describe(const struct images *images, uint32_t id, struct sampler_mapping *mapping)
{
	const struct image *image = &images->known.items[id - 1];
	*mapping = (struct sampler_mapping){
		.device_major = (uint32_t)(image->device >> 32),
		.device_minor = (uint32_t)image->device,
		.inode = image->inode,
		.inode_generation = image->inode_generation,
		.path = image->path,
	};
}

static bool add(struct images *images, const struct sampler_mapping *mapping, uint64_t hash)
{
	struct image image = {
		.hash = hash,
		.device = device_of(mapping),
		.inode = mapping->inode,
		.inode_generation = mapping->inode_generation,
		.path = strdup(mapping->path),
		.kind = kind_of(mapping),
		.fd = -1,
	};
	if (!image.path || images->known.len >= LIMIT_IMAGES || !VEC_PUSH(&images->known, image)) {
		free(image.path);
		return false;
	}
	struct image *added = &images->known.items[images->known.len - 1];
	if (image.kind == JOURNAL_IMAGE_ELF) {
		added->access = open_file(images, (uint32_t)images->known.len, mapping);
	}
	if (added->access == JOURNAL_IMAGE_OPENED) {
		added->fd = images->opened.items[images->opened.len - 1].fd;
		added->print = print_of(added->fd);
	}
	if (is_memory_file(mapping) && added->access != JOURNAL_IMAGE_OPENED) {
		added->kind = JOURNAL_IMAGE_ANONYMOUS;
	}
	return true;
}

bool images_get(const struct images *images, uint32_t id, struct images_image *image)
{
	if (id == 0 || id > images->known.len) {
		return false;
	}
	const struct image *found = &images->known.items[id - 1];
	*image = (struct images_image){
		.id = id,
		.kind = found->kind,
		.access = found->access,
		.fd = found->fd,
	};
	return true;
}

bool images_find(
	struct images *images, const struct sampler_mapping *mapping, struct images_image *image)
{
	uint64_t hash = map_hash_bytes(mapping->path, strlen(mapping->path)) ^
					map_hash(mapping->inode ^ device_of(mapping));
	size_t index = 0;
	while (index < images->known.len && !is_equal(&images->known.items[index], hash, mapping)) {
		index++;
	}
	bool is_new = index == images->known.len;
	if (is_new && !add(images, mapping, hash)) {
		return false;
	}
	images_get(images, (uint32_t)(index + 1), image);
	image->is_new = is_new;
	return true;
}

size_t images_not_opened(const struct images *images)
{
	return images->not_opened;
}

const struct pipeline_image *images_opened(const struct images *images, size_t *count)
{
	*count = images->opened.len;
	return images->opened.items;
}
