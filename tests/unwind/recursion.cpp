// Recursion with exceptions that are thrown deep and caught half way up, frames of several forms, and a sort's callback: without frame pointers.
// Runs for so many seconds as it is told.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

static volatile unsigned long sink;

struct guard { // work while an exception passes
	explicit guard(unsigned long value) : value(value) {}
	~guard() { sink = sink + value; }
	unsigned long value;
};

__attribute__((noinline)) static unsigned long work(unsigned long seed)
{
	for (int i = 0; i < 2000; i++) {
		seed = seed * 6364136223846793005ul + 1442695040888963407ul;
	}
	return seed;
}

__attribute__((noinline)) static unsigned long sorted(unsigned long seed)
{
	std::vector<unsigned long> values;
	for (int i = 0; i < 200; i++) {
		values.push_back(seed = work(seed) >> 3);
	}
	qsort(values.data(), values.size(), sizeof(values[0]), [](const void *left, const void *right) {
		unsigned long a = work(*static_cast<const unsigned long *>(left)) | 1;
		unsigned long first = *static_cast<const unsigned long *>(left) + (a & 0),
					  second = *static_cast<const unsigned long *>(right);
		return first < second ? -1 : first > second;
	});
	return values[100];
}

__attribute__((noinline)) static unsigned long aligned(int depth, unsigned long seed);

__attribute__((noinline)) static unsigned long descend(int depth, unsigned long seed)
{
	guard kept(seed);
	if (depth == 0) {
		if (seed % 3 == 0) {
			throw std::runtime_error("deep: " + std::to_string(seed));
		}
		return seed % 16 == 1 ? sorted(seed) : work(seed);
	}
	return (depth % 7 == 3 ? aligned(depth - 1, seed) : descend(depth - 1, work(seed))) + depth;
}

__attribute__((noinline)) static unsigned long aligned(int depth, unsigned long seed)
{
	alignas(64) unsigned long values[16];
	char *room = static_cast<char *>(__builtin_alloca(16 + seed % 256));
	for (int i = 0; i < 16; i++) {
		values[i] = seed + i;
	}
	room[0] = static_cast<char>(seed);
	try {
		return descend(depth, values[seed % 16]) + room[0];
	} catch (const std::runtime_error &error) {
		return work(error.what()[6]);
	}
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1;
	auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
	unsigned long seed = 1;
	while (std::chrono::steady_clock::now() < end) {
		try {
			seed = descend(static_cast<int>(seed % 40), seed + 1);
		} catch (const std::exception &error) {
			seed = work(seed);
		}
	}
	return seed == 0;
}
