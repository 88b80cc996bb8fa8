#include "analyzer/symbol/table.h"

#include <stdlib.h>
#include <string.h>

#define DIGIT_BITS  11
#define DIGITS      (1u << DIGIT_BITS)
#define MAX_ALIASES 64

/* A range whose end has not been reached by the sweep. */
struct open_range {
	uint64_t end;
	uint32_t first, count;
};

struct sweep {
	struct table *table;
	VEC(struct open_range) open; /* the innermost last */
	uint64_t at;                 /* everything before it is done */
};

void table_finish(struct table *table)
{
	VEC_FINISH(&table->symbols);
	VEC_FINISH(&table->ranges);
}

bool table_add(struct table *table, const struct table_symbol *symbol)
{
	if (table->symbols.len >= TABLE_MAX_SYMBOLS ||
		(symbol->end != 0 && symbol->end <= symbol->start)) {
		return true;
	}
	return VEC_PUSH(&table->symbols, *symbol);
}

/* One stable pass over one digit of the start. False when all have the same digit: nothing was moved. */
static bool sort_digit(
	const struct table_symbol *from, struct table_symbol *to, size_t count, unsigned shift)
{
	size_t places[DIGITS] = {0};
	size_t place = 0;

	for (size_t i = 0; i < count; i++) {
		places[from[i].start >> shift & (DIGITS - 1)]++;
	}
	if (places[from[0].start >> shift & (DIGITS - 1)] == count) {
		return false;
	}
	for (size_t i = 0; i < DIGITS; i++) {
		size_t here = places[i];

		places[i] = place;
		place += here;
	}
	for (size_t i = 0; i < count; i++) {
		to[places[from[i].start >> shift & (DIGITS - 1)]++] = from[i];
	}
	return true;
}

static bool sort_by_start(struct table *table)
{
	size_t count = table->symbols.len;
	struct table_symbol *from = table->symbols.items;
	struct table_symbol *other = malloc((count + 1) * sizeof(*other));
	struct table_symbol *to = other;

	if (other == NULL) {
		return false;
	}
	for (unsigned shift = 0; shift < 64 && count > 1; shift += DIGIT_BITS) {
		if (sort_digit(from, to, count, shift)) {
			struct table_symbol *swapped = from;

			from = to;
			to = swapped;
		}
	}
	if (from == other) {
		memcpy(table->symbols.items, other, count * sizeof(*other));
	}
	free(other);
	return true;
}

/* The outer range first, the better alias first. */
static int compare_same_start(const void *left, const void *right)
{
	const struct table_symbol *a = left;
	const struct table_symbol *b = right;

	if (a->end != b->end) {
		return a->end > b->end ? -1 : 1;
	}
	if (a->rank != b->rank) {
		return a->rank > b->rank ? -1 : 1;
	}
	if (a->strings != b->strings) {
		return a->strings < b->strings ? -1 : 1;
	}
	return a->name < b->name ? -1 : a->name > b->name;
}

static size_t run_end(const struct table *table, size_t first)
{
	const struct table_symbol *items = table->symbols.items;
	size_t end = first + 1;

	while (end < table->symbols.len && items[end].start == items[first].start) {
		end++;
	}
	return end;
}

/* A symbol of unknown size yields to a sized one with the same start, else it reaches up to the next symbol. */
static void settle_run(struct table_symbol *run, size_t count, uint64_t next)
{
	bool has_sized = false;

	for (size_t i = 0; i < count; i++) {
		has_sized |= run[i].end != 0;
	}
	for (size_t i = 0; i < count; i++) {
		if (run[i].end != 0) {
			continue;
		}
		run[i].is_open = true;
		run[i].end = has_sized ? run[i].start : next < run[i].limit ? next : run[i].limit;
	}
}

static void settle_runs(struct table *table)
{
	struct table_symbol *items = table->symbols.items;
	size_t end;

	for (size_t first = 0; first < table->symbols.len; first = end) {
		end = run_end(table, first);
		settle_run(
			items + first, end - first, end < table->symbols.len ? items[end].start : UINT64_MAX);
		if (end - first > 1) {
			qsort(items + first, end - first, sizeof(*items), compare_same_start);
		}
	}
}

static bool emit(struct sweep *sweep, uint64_t end, const struct open_range *open)
{
	struct table_range range = {sweep->at, end, open->first, open->count};

	if (sweep->at >= end) {
		return true;
	}
	sweep->at = end;
	return VEC_PUSH(&sweep->table->ranges, range);
}

/* Everything before address gets its symbol. */
static bool advance(struct sweep *sweep, uint64_t address)
{
	while (sweep->open.len > 0) {
		const struct open_range *top = &sweep->open.items[sweep->open.len - 1];

		if (top->end > address) {
			return emit(sweep, address, top);
		}
		if (!emit(sweep, top->end, top)) {
			return false;
		}
		sweep->open.len--;
	}
	return true;
}

/* The symbols from first on that have its range and rank; *next is behind all of its range. */
static uint32_t count_aliases(const struct table *table, size_t first, size_t *next)
{
	const struct table_symbol *items = table->symbols.items;
	size_t end = first + 1;
	uint32_t count = 1;

	for (; end < table->symbols.len && items[end].start == items[first].start &&
		   items[end].end == items[first].end;
		 end++) {
		count += items[end].rank == items[first].rank && count < MAX_ALIASES;
	}
	*next = end;
	return count;
}

/* A symbol of unknown size inside of another one is a label of it, or ends with it. */
static bool begin(struct sweep *sweep, const struct table_symbol *symbol, struct open_range open)
{
	if (symbol->is_open && sweep->open.len > 0) {
		uint64_t outer_end = sweep->open.items[sweep->open.len - 1].end;

		if (symbol->rank < TABLE_RANK_FUNCTION) {
			return true;
		}
		open.end = outer_end < open.end ? outer_end : open.end;
	}
	if (open.end <= symbol->start) {
		return true;
	}
	sweep->at = symbol->start;
	return VEC_PUSH(&sweep->open, open);
}

static bool sweep_all(struct sweep *sweep)
{
	size_t next;

	for (size_t first = 0; first < sweep->table->symbols.len; first = next) {
		const struct table_symbol *symbol = &sweep->table->symbols.items[first];
		struct open_range open = {symbol->end, (uint32_t)first, 0};

		open.count = count_aliases(sweep->table, first, &next);
		if (!advance(sweep, symbol->start) || !begin(sweep, symbol, open)) {
			return false;
		}
	}
	return advance(sweep, UINT64_MAX);
}

bool table_seal(struct table *table)
{
	struct sweep sweep = {.table = table};

	if (!sort_by_start(table)) {
		return false;
	}
	settle_runs(table);
	bool done = VEC_RESERVE(&table->ranges, table->symbols.len) && sweep_all(&sweep);

	VEC_FINISH(&sweep.open);
	return done;
}

const struct table_range *table_find(const struct table *table, uint64_t address)
{
	size_t low = 0;
	size_t high = table->ranges.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (table->ranges.items[middle].end > address) {
			high = middle;
		} else {
			low = middle + 1;
		}
	}
	if (low == table->ranges.len || table->ranges.items[low].start > address) {
		return NULL;
	}
	return &table->ranges.items[low];
}
