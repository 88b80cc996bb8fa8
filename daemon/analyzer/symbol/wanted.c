#include "analyzer/symbol/wanted.h"

#include <stdlib.h>

#define BUCKETS 4096

static int compare(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left;
	uint64_t b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

static size_t sort_unique(uint64_t *addresses, size_t count)
{
	size_t len = 0;

	if (count > 0) {
		qsort(addresses, count, sizeof(*addresses), compare);
	}
	for (size_t i = 0; i < count; i++) {
		if (len == 0 || addresses[len - 1] != addresses[i]) {
			addresses[len++] = addresses[i];
		}
	}
	return len;
}

static size_t bucket_of(const struct wanted *wanted, uint64_t address)
{
	return (size_t)((address - wanted->addresses[0]) >> wanted->shift);
}

static void fill_buckets(struct wanted *wanted)
{
	size_t bucket = 0;

	while (bucket_of(wanted, wanted->addresses[wanted->len - 1]) >= BUCKETS) {
		wanted->shift++;
	}
	for (size_t i = 0; i < wanted->len; i++) {
		size_t last = bucket_of(wanted, wanted->addresses[i]);

		for (; bucket <= last; bucket++) {
			wanted->buckets[bucket] = (uint32_t)i;
		}
	}
	for (; bucket <= BUCKETS; bucket++) {
		wanted->buckets[bucket] = (uint32_t)wanted->len;
	}
}

bool wanted_init(struct wanted *wanted, uint64_t *addresses, size_t count)
{
	*wanted = (struct wanted){.addresses = addresses};
	wanted->len = sort_unique(addresses, count);
	wanted->before = calloc(wanted->len + 1, sizeof(*wanted->before));
	wanted->buckets = calloc(BUCKETS + 1, sizeof(*wanted->buckets));
	if (wanted->before == NULL || wanted->buckets == NULL || wanted->len > UINT32_MAX) {
		wanted_finish(wanted);
		return false;
	}
	if (wanted->len > 0) {
		fill_buckets(wanted);
	}
	return true;
}

void wanted_finish(struct wanted *wanted)
{
	free(wanted->addresses);
	free(wanted->before);
	free(wanted->buckets);
	*wanted = (struct wanted){0};
}

/* The first index at or behind address; len: none. */
static size_t first_from(const struct wanted *wanted, uint64_t address)
{
	if (wanted->len == 0 || address <= wanted->addresses[0]) {
		return 0;
	}
	if (address > wanted->addresses[wanted->len - 1]) {
		return wanted->len;
	}
	size_t bucket = bucket_of(wanted, address);
	size_t low = wanted->buckets[bucket];
	size_t high = wanted->buckets[bucket + 1];

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (wanted->addresses[middle] >= address) {
			high = middle;
		} else {
			low = middle + 1;
		}
	}
	return low;
}

void wanted_note_start(struct wanted *wanted, uint64_t start)
{
	size_t index = first_from(wanted, start);

	if (index < wanted->len && wanted->before[index] < start) {
		wanted->before[index] = start;
	}
}

void wanted_settle(struct wanted *wanted)
{
	for (size_t i = 1; i < wanted->len; i++) {
		if (wanted->before[i] < wanted->before[i - 1]) {
			wanted->before[i] = wanted->before[i - 1];
		}
	}
}

/* Behind start the first address is also the first whose last start can be inside of the symbol, because that rises with the addresses. */
bool wanted_matters(const struct wanted *wanted, uint64_t start, uint64_t end)
{
	size_t index = first_from(wanted, start);

	return index < wanted->len &&
		   (wanted->before[index] == start || (end != 0 && wanted->before[index] < end));
}
