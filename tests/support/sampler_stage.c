#include "support/sampler_stage.h"

#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

uint64_t stage_clock(int clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

struct seen_thread *seen_find(struct seen *seen, pid_t tid)
{
	for (size_t i = 0; i < seen->thread_count; i++) {
		if (seen->threads[i].tid == tid) {
			return &seen->threads[i];
		}
	}
	struct seen_thread *thread = &seen->threads[seen->thread_count % 64];
	seen->thread_count += seen->thread_count < 63;
	*thread = (struct seen_thread){.tid = tid, .before_samples = seen->samples == 0};
	return thread;
}

static void at(struct seen *seen, uint64_t time_ns)
{
	seen->has_fallen |= time_ns < seen->last_ns;
	seen->last_ns = time_ns;
}

static void on_process(void *context, const struct sampler_process *process)
{
	struct seen *seen = context;
	at(seen, process->time_ns);
	if (process->is_fork && seen->forked == 0) { /* a sanitizer may fork at the end */
		seen->forked = process->pid;
	}
	if (process->pid == seen->pid) {
		seen->execs += process->is_exec;
		snprintf(seen->name, sizeof(seen->name), "%s", process->name);
	}
}

static void on_process_end(void *context, uint64_t time_ns, pid_t pid)
{
	struct seen *seen = context;
	at(seen, time_ns);
	seen->ends += pid == seen->pid;
}

static void on_thread(void *context, const struct sampler_thread *thread)
{
	struct seen *seen = context;
	at(seen, thread->time_ns);
	if (thread->pid == seen->pid) {
		struct seen_thread *known = seen_find(seen, thread->tid);
		snprintf(known->name, sizeof(known->name), "%s", thread->name);
	}
}

static void on_thread_end(void *context, uint64_t time_ns, pid_t pid, pid_t tid)
{
	at(context, time_ns);
	(void)pid;
	(void)tid;
}

static void on_mapping(void *context, const struct sampler_mapping *mapping)
{
	struct seen *seen = context;
	at(seen, mapping->time_ns);
	if (mapping->pid == seen->pid && seen->mapping_count < 256) {
		seen->mappings[seen->mapping_count] = *mapping;
		snprintf(seen->paths[seen->mapping_count], sizeof(seen->paths[0]), "%s", mapping->path);
		seen->mapping_count++;
		seen->mappings_before_samples += seen->samples == 0;
	}
}

static void on_sample(void *context, const struct sampler_sample *sample)
{
	struct seen *seen = context;
	at(seen, sample->time_ns);
	if (sample->pid != seen->pid) {
		seen->foreign++;
		return;
	}
	seen_find(seen, sample->tid)->samples++;
	seen->samples++;
	seen->with_kernel += sample->kernel_count > 0;
	seen->with_user += sample->user_count > 0;
}

static void on_loss(
	void *context, uint64_t time_ns, enum sampler_loss cause, uint64_t count, int cpu)
{
	struct seen *seen = context;
	at(seen, time_ns);
	(void)cpu;
	seen->lost += cause == SAMPLER_LOSS_RING ? count : 0;
	seen->malformed += cause == SAMPLER_LOSS_MALFORMED;
}

static void on_drained(void *context, uint64_t now_ns)
{
	(void)now_ns;
	((struct seen *)context)->rounds++;
}

static void on_throttled(void *context, uint64_t time_ns, uint64_t withheld_ns)
{
	(void)withheld_ns;
	at(context, time_ns);
}

static void on_cpu_time(void *context, const struct sampler_cpu_time *time)
{
	struct seen *seen = context;
	at(seen, time->time_ns);
	if (time->tid != 0) {
		struct seen_thread *thread = seen_find(seen, time->tid);
		thread->looks++;
		thread->cpu_time = *time;
		return;
	}
	seen->cpu_times += time->pid == seen->pid;
	seen->cpu_time = *time;
	seen->cpu_ns = time->total_ns;
}

struct sampler_config seen_config(struct seen *seen, bool is_gated)
{
	return (struct sampler_config){
		.pid = seen->pid,
		.is_gated = is_gated,
		.hz = STAGE_HZ,
		.sink = {seen, on_process, on_process_end, on_thread, on_thread_end, on_mapping, on_sample,
			on_loss, on_drained, on_throttled, on_cpu_time},
	};
}
bool child_read(const struct child *child, struct truth *truth)
{
	for (size_t done = 0; done < sizeof(*truth);) {
		ssize_t got = read(child->truth, (char *)truth + done, sizeof(*truth) - done);
		if (got <= 0) {
			return false;
		}
		done += (size_t)got;
	}
	return true;
}

struct child child_launch(const char *program, bool waits)
{
	int go[2], truth[2];
	struct child child = {0};
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	assert_int_equal(pipe2(truth, O_CLOEXEC), 0);
	child.pid = fork();
	if (child.pid == 0) {
		char byte;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(go[1]);
		dup2(go[0], 0);
		dup2(truth[1], STAGE_REPORT_FD);
		fcntl(STAGE_REPORT_FD, F_SETFD, 0);
		if (!waits || read(0, &byte, 1) >= 0) {
			execl("/proc/self/exe", "first", program, (char *)NULL);
		}
		_exit(127);
	}
	assert_true(child.pid > 0);
	close(go[0]);
	close(truth[1]);
	child.go = go[1];
	child.truth = truth[0];
	return child;
}

void child_go(struct child *child)
{
	close(child->go);
	child->go = -1;
}

void child_end(struct child *child, struct truth *truth)
{
	int status;
	assert_true(child_read(child, truth));
	close(child->truth);
	assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
	assert_int_equal(status, 0);
}

struct sampler *stage_begin(
	const struct sampler_config *config, struct sampler_effective *effective)
{
	struct sampler *sampler = NULL;
	struct error err = {0};
	if (!sampler_perf_ops.start(config, &sampler, effective, &err)) {
		fail_msg("%s (%s)", err.message, err.hint);
	}
	return sampler;
}

void stage_sample(const char *program, struct seen *seen, struct truth *truth,
	struct sampler_effective *effective)
{
	struct child child = child_launch(program, true);
	seen->pid = child.pid;
	struct sampler_config config = seen_config(seen, true);
	struct sampler *sampler = stage_begin(&config, effective);
	child_go(&child);
	child_end(&child, truth);
	sampler_perf_ops.stop(sampler);
	assert_false(seen->has_fallen);
	assert_int_equal(seen->malformed, 0);
	assert_int_equal(seen->lost, 0);
	assert_true(seen->cpu_times > 0);
	assert_true(seen->rounds > 0);
}

#define STAGE_STOLEN 0.25

void stage_near(uint64_t value, uint64_t truth, double share, uint64_t more)
{
	uint64_t distance = value > truth ? value - truth : truth - value;
	/* The clock of events goes on while a hypervisor takes the processor away, the clock of processes does not: on a
	 * busy host too much is the host's. Too little never is. */
	double allowed = (double)truth * (value > truth ? share + STAGE_STOLEN : share) + (double)more;
	if ((double)distance > allowed) {
		fail_msg("%" PRIu64 " is too far from %" PRIu64, value, truth);
	}
}
