/*
 * Something to profile: three named threads that compute for as many seconds as the first argument says (default 3).
 * With --print-end behind it, the last thing it does is to print the wall clock in nanoseconds (tools/bench).
 * Built with frame pointers, so that every stack of its own code is whole.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PARTICLES 2048
#define NOINLINE  __attribute__((noinline))

/* gcc leaves the frame pointer out of a leaf function whatever it was told, unless the function asks for its address. */
#define KEEP_FRAME() __asm__ volatile("" : : "r"(__builtin_frame_address(0)))

static atomic_bool stop;
static volatile uint64_t sink;

/* --- render: a Mandelbrot set, over and over --- */

NOINLINE static unsigned iterate_pixel(double x, double y)
{
	KEEP_FRAME();
	double re = 0, im = 0;
	unsigned count = 0;
	for (; count < 200 && re * re + im * im < 4; count++) {
		double next = re * re - im * im + x;
		im = 2 * re * im + y;
		re = next;
	}
	return count;
}

NOINLINE static void render_row(unsigned row)
{
	for (unsigned column = 0; column < 320; column++) {
		sink += iterate_pixel(column / 160.0 - 1.5, row / 120.0 - 1.0);
	}
}

NOINLINE static void render_frame(void)
{
	for (unsigned row = 0; row < 240 && !atomic_load_explicit(&stop, memory_order_relaxed); row++) {
		render_row(row);
	}
}

/* --- physics: particles that bounce, sorted by a sort of our own --- */

static double positions[PARTICLES];
static double speeds[PARTICLES];

NOINLINE static void move_particles(void)
{
	KEEP_FRAME();
	for (unsigned round = 0; round < 40; round++) {
		for (unsigned i = 0; i < PARTICLES; i++) {
			positions[i] += speeds[i];
			if (positions[i] < 0 || positions[i] > 1) {
				speeds[i] = -speeds[i];
			}
		}
	}
}

NOINLINE static void sift_down(double *items, size_t root, size_t count)
{
	KEEP_FRAME();
	for (size_t child; (child = 2 * root + 1) < count; root = child) {
		if (child + 1 < count && items[child + 1] > items[child]) {
			child++;
		}
		if (items[root] >= items[child]) {
			return;
		}
		double swapped = items[root];
		items[root] = items[child];
		items[child] = swapped;
	}
}

NOINLINE static void sort_particles(void)
{
	KEEP_FRAME();
	static double sorted[PARTICLES];
	memcpy(sorted, positions, sizeof(sorted));
	for (size_t i = PARTICLES / 2; i-- > 0;) {
		sift_down(sorted, i, PARTICLES);
	}
	for (size_t end = PARTICLES; --end > 0;) {
		double largest = sorted[0];
		sorted[0] = sorted[end];
		sorted[end] = largest;
		sift_down(sorted, 0, end);
	}
	sink += (uint64_t)(sorted[0] * 1000);
}

NOINLINE static void simulate_step(void)
{
	move_particles();
	sort_particles();
}

/* --- assets: bytes that are hashed --- */

NOINLINE static uint64_t hash_bytes(const unsigned char *bytes, size_t len)
{
	KEEP_FRAME();
	uint64_t hash = 1469598103934665603u;
	for (size_t i = 0; i < len; i++) {
		hash = (hash ^ bytes[i]) * 1099511628211u;
	}
	return hash;
}

NOINLINE static void load_asset(void)
{
	static unsigned char bytes[65536];
	memset(bytes, (int)(sink & 0xff), sizeof(bytes));
	sink += hash_bytes(bytes, sizeof(bytes));
}

/* --- threads --- */

struct job {
	const char *name;
	void (*work)(void);
};

NOINLINE static void *run_job(void *argument)
{
	const struct job *job = argument;
	pthread_setname_np(pthread_self(), job->name);
	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		job->work();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static const struct job jobs[] = {
		{"render", render_frame}, {"physics", simulate_step}, {"assets", load_asset}};
	pthread_t threads[3];
	double seconds = argc > 1 ? atof(argv[1]) : 3;
	for (unsigned i = 0; i < PARTICLES; i++) {
		positions[i] = (i * 7919 % PARTICLES) / (double)PARTICLES;
		speeds[i] = (i % 17 + 1) * 0.0003;
	}
	for (size_t i = 0; i < 3; i++) {
		if (pthread_create(&threads[i], NULL, run_job, (void *)&jobs[i]) != 0) {
			perror("example: pthread_create");
			return 1;
		}
	}
	struct timespec pause = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
	nanosleep(&pause, NULL);
	atomic_store(&stop, true);
	for (size_t i = 0; i < 3; i++) {
		pthread_join(threads[i], NULL);
	}
	if (argc > 2 && strcmp(argv[2], "--print-end") == 0) {
		struct timespec now;
		clock_gettime(CLOCK_REALTIME, &now);
		printf("%lld%09ld", (long long)now.tv_sec, now.tv_nsec);
	}
	return 0;
}
