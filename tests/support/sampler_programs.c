#include "support/sampler_stage.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void burn(uint64_t ns)
{
	uint64_t end = stage_clock(CLOCK_THREAD_CPUTIME_ID) + ns;
	while (stage_clock(CLOCK_THREAD_CPUTIME_ID) < end) {
		for (volatile int i = 0; i < 20000; i++) {
		}
	}
}

static int report(struct truth *truth)
{
	truth->cpu_ns = stage_clock(CLOCK_PROCESS_CPUTIME_ID);
	return write(STAGE_REPORT_FD, truth, sizeof(*truth)) == (ssize_t)sizeof(*truth) ? 0 : 1;
}

static int program_burn(void)
{
	struct truth truth = {0};
	burn(1000000000);
	return report(&truth);
}

static int program_brief(void)
{
	struct truth truth = {0};
	burn(300000000);
	return report(&truth);
}

struct worker {
	pthread_t thread;
	uint64_t burn_ns, cpu_ns;
	_Atomic pid_t tid;
};

static void *work(void *context)
{
	struct worker *worker = context;
	worker->tid = (pid_t)syscall(SYS_gettid);
	prctl(PR_SET_NAME, "late worker");
	burn(worker->burn_ns);
	worker->cpu_ns = stage_clock(CLOCK_THREAD_CPUTIME_ID);
	return NULL;
}

/* One thread after another is born, and all run at once in the end. */
static int program_threads(void)
{
	struct truth truth = {0};
	struct worker workers[STAGE_THREADS] = {0};
	for (int i = 0; i < STAGE_THREADS; i++) {
		workers[i].burn_ns = 200000000;
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
		burn(20000000);
	}
	for (int i = 0; i < STAGE_THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		truth.tids[i] = workers[i].tid;
		truth.thread_cpu_ns[i] = workers[i].cpu_ns;
	}
	return report(&truth);
}

/* Threads that run before anyone looks; ends when it is told, by the end of descriptor 0. */
static int program_running(void)
{
	struct truth truth = {0};
	struct worker workers[STAGE_THREADS] = {0};
	char byte;
	for (int i = 0; i < STAGE_THREADS - 1; i++) {
		workers[i].burn_ns = 400000000;
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	}
	for (int i = 0; i < STAGE_THREADS - 1; i++) {
		while (workers[i].tid == 0) {
			usleep(1000);
		}
		truth.tids[i] = workers[i].tid;
	}
	report(&truth);
	if (read(0, &byte, 1) < 0) { /* sampled from here on */
		return 1;
	}
	workers[STAGE_THREADS - 1].burn_ns = 300000000;
	pthread_create(&workers[STAGE_THREADS - 1].thread, NULL, work, &workers[STAGE_THREADS - 1]);
	for (int i = 0; i < STAGE_THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
	}
	truth.tids[STAGE_THREADS - 1] = workers[STAGE_THREADS - 1].tid;
	return report(&truth);
}

static int program_fork(void)
{
	struct truth truth = {0};
	pid_t child = fork();
	if (child == 0) {
		burn(300000000);
		_exit(0);
	}
	burn(300000000);
	waitpid(child, NULL, 0);
	truth.tids[0] = child;
	return report(&truth);
}

static int program_exec(void)
{
	burn(50000000);
	execl("/proc/self/exe", "second", "brief", (char *)NULL);
	return 1;
}

static int program_maps(void)
{
	struct truth truth = {0};
	char line[4096 + 128], exe[4096] = "";
	if (readlink("/proc/self/exe", exe, sizeof(exe) - 1) < 0) {
		return 1;
	}
	FILE *maps = fopen("/proc/self/maps", "re");
	while (maps && fgets(line, sizeof(line), maps)) {
		uint64_t end;
		char permissions[8];
		if (strstr(line, exe) &&
			sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64, &truth.start, &end, permissions,
				&truth.offset) == 4 &&
			permissions[2] == 'x') {
			truth.length = end - truth.start;
			break;
		}
	}
	if (maps) {
		fclose(maps);
	}
	burn(50000000);
	return report(&truth);
}
int programs_run(const char *name)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} programs[] = {
		{"burn", program_burn},
		{"brief", program_brief},
		{"threads", program_threads},
		{"running", program_running},
		{"fork", program_fork},
		{"exec", program_exec},
		{"maps", program_maps},
	};
	for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++) {
		if (strcmp(name, programs[i].name) == 0) {
			return programs[i].run();
		}
	}
	return 2;
}
