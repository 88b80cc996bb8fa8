#include "capture/stacks.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/vec.h"

#define SLOTS_LEAST 1024

struct stack {
	uint64_t hash;
	uint32_t id;
	pid_t pid;
	uint32_t first; /* index of its frames */
	uint16_t kernel_count, user_count;
	uint8_t end;
};

struct stacks {
	VEC(struct stack) known;
	VEC(uint64_t) frames;
	uint32_t *slots;   /* index in known + 1; owned */
	size_t slot_count; /* a power of two, at least twice known.len */
	uint32_t last_id;
};

struct stacks *stacks_create(void)
{
	struct stacks *stacks = calloc(1, sizeof(*stacks));
	if (!stacks) {
		return NULL;
	}
	stacks->slots = calloc(SLOTS_LEAST, sizeof(*stacks->slots));
	stacks->slot_count = SLOTS_LEAST;
	if (!stacks->slots) {
		stacks_destroy(stacks);
		return NULL;
	}
	return stacks;
}

void stacks_destroy(struct stacks *stacks)
{
	if (!stacks) {
		return;
	}
	VEC_FINISH(&stacks->known);
	VEC_FINISH(&stacks->frames);
	free(stacks->slots);
	free(stacks);
}

void stacks_forget(struct stacks *stacks)
{
	stacks->known.len = 0;
	stacks->frames.len = 0;
	memset(stacks->slots, 0, stacks->slot_count * sizeof(*stacks->slots));
}

/* One multiplication a frame; the mix at the end spreads what it leaves in the high bits. */
static uint64_t hash_frames(uint64_t hash, const uint64_t *frames, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		hash = (hash ^ frames[i]) * 0x9e3779b97f4a7c15u;
		hash ^= hash >> 29;
	}
	return hash;
}

static uint64_t hash_key(const struct stacks_key *key)
{
	uint64_t hash = (uint64_t)key->pid << 32 | key->end << 24 | key->kernel_count;
	hash = hash_frames(hash, key->kernel_frames, key->kernel_count);
	return map_hash(hash_frames(hash, key->user_frames, key->user_count));
}

static bool is_equal(const struct stacks *stacks, const struct stack *stack,
	const struct stacks_key *key, uint64_t hash)
{
	const uint64_t *frames = stacks->frames.items + stack->first;
	return stack->hash == hash && stack->pid == key->pid && stack->end == key->end &&
		   stack->kernel_count == key->kernel_count && stack->user_count == key->user_count &&
		   (key->kernel_count == 0 ||
			   memcmp(frames, key->kernel_frames, key->kernel_count * sizeof(*frames)) == 0) &&
		   (key->user_count == 0 || memcmp(frames + key->kernel_count, key->user_frames,
										key->user_count * sizeof(*frames)) == 0);
}

/* The slot of the stack, or the empty one where it would go. */
static uint32_t *find(const struct stacks *stacks, const struct stacks_key *key, uint64_t hash)
{
	size_t mask = stacks->slot_count - 1, i = (size_t)hash & mask;
	while (stacks->slots[i] &&
		   !is_equal(stacks, &stacks->known.items[stacks->slots[i] - 1], key, hash)) {
		i = (i + 1) & mask;
	}
	return &stacks->slots[i];
}

static bool grow(struct stacks *stacks)
{
	size_t count = stacks->slot_count * 2, mask = count - 1;
	uint32_t *slots = calloc(count, sizeof(*slots));
	if (!slots) {
		return false;
	}
	for (size_t i = 0; i < stacks->known.len; i++) {
		size_t at = (size_t)stacks->known.items[i].hash & mask;
		while (slots[at]) {
			at = (at + 1) & mask;
		}
		slots[at] = (uint32_t)(i + 1);
	}
	free(stacks->slots);
	stacks->slots = slots;
	stacks->slot_count = count;
	return true;
}

/* Room for one more, if need be by forgetting all others. */
static bool reserve(struct stacks *stacks, size_t frames)
{
	if (stacks->known.len >= STACKS_MAX || stacks->frames.len + frames > STACKS_FRAMES_MAX) {
		stacks_forget(stacks);
	}
	return frames <= STACKS_FRAMES_MAX && VEC_RESERVE(&stacks->known, stacks->known.len + 1) &&
		   VEC_RESERVE(&stacks->frames, stacks->frames.len + frames) &&
		   ((stacks->known.len + 1) * 2 <= stacks->slot_count || grow(stacks));
}

static void copy_frames(struct stacks *stacks, const uint64_t *frames, size_t count)
{
	if (count > 0) {
		memcpy(stacks->frames.items + stacks->frames.len, frames, count * sizeof(*frames));
		stacks->frames.len += count;
	}
}

static uint32_t add(
	struct stacks *stacks, const struct stacks_key *key, uint64_t hash, const uint64_t **frames)
{
	if (!reserve(stacks, key->kernel_count + key->user_count)) {
		return 0;
	}
	size_t first = stacks->frames.len;
	copy_frames(stacks, key->kernel_frames, key->kernel_count);
	copy_frames(stacks, key->user_frames, key->user_count);
	*find(stacks, key, hash) = (uint32_t)(stacks->known.len + 1);
	stacks->known.items[stacks->known.len++] = (struct stack){
		.hash = hash,
		.id = ++stacks->last_id,
		.pid = key->pid,
		.first = (uint32_t)first,
		.kernel_count = (uint16_t)key->kernel_count,
		.user_count = (uint16_t)key->user_count,
		.end = (uint8_t)key->end,
	};
	*frames = stacks->frames.items + first;
	return stacks->last_id;
}

uint32_t stacks_id(struct stacks *stacks, const struct stacks_key *key, const uint64_t **frames)
{
	uint64_t hash = hash_key(key);
	uint32_t slot = *find(stacks, key, hash);
	if (slot) {
		*frames = NULL;
		return stacks->known.items[slot - 1].id;
	}
	*frames = NULL;
	return add(stacks, key, hash, frames);
}
