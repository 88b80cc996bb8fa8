#include <signal.h>
#include <stdio.h>

#include "client/gpu.h"
#include "client/profctl.h"

static void stop_trace(struct gpu *gpu)
{
	struct recording *recording = &gpu->recording;
	struct error err = {0};
	int64_t id = profctl_send(recording->client, "StopCapture",
		json_pack("{s:s}", "capture_id", recording->capture_id), &err);
	if (id > 0) {
		profclient_forget(recording->client, id); /* the event tells how it ended */
	}
	recording_clear_progress(recording);
	if (!gpu->quiet) {
		fputs("profctl: ending the trace; Ctrl-C again ends the program when it is written\n",
			stderr);
	}
}

/* As a Ctrl-C would have, had it not been ignored. */
static void end_program(struct gpu *gpu, bool is_terminals)
{
	if (gpu->recording.job.is_reaped) {
		return; /* what else is in the foreground is none of ours */
	}
	if (is_terminals) {
		job_end_group();
	} else {
		kill(gpu->recording.job.pid, SIGTERM);
	}
}

/* The program would take with it what is not written yet. */
static void hold_end(struct gpu *gpu, bool is_terminals)
{
	gpu->end = is_terminals ? GPU_END_GROUP : GPU_END_PROGRAM;
	recording_clear_progress(&gpu->recording);
	if (!gpu->quiet) {
		fputs("profctl: the program is ended when the trace is written; Ctrl-C again ends it now\n",
			stderr);
	}
}

void gpu_take_interrupts(struct gpu *gpu)
{
	int terminals = job_terminal_interrupts_seen();
	bool is_terminals = terminals > gpu->terminal_interrupts;
	if (!gpu->until_stopped) {
		return;
	}
	for (; gpu->interrupts < job_interrupts_seen(); gpu->interrupts++) {
		bool is_open = recording_is_open(&gpu->recording);
		if (is_open && gpu->interrupts == 0) {
			stop_trace(gpu);
		} else if (is_open && gpu->end == GPU_END_NOTHING) {
			hold_end(gpu, is_terminals);
		} else {
			gpu->end = GPU_END_NOTHING;
			end_program(gpu, is_terminals);
		}
	}
	gpu->terminal_interrupts = terminals;
}

void gpu_end_held(struct gpu *gpu)
{
	enum gpu_end end = gpu->end;
	if (end != GPU_END_NOTHING && !recording_is_open(&gpu->recording)) {
		gpu->end = GPU_END_NOTHING;
		end_program(gpu, end == GPU_END_GROUP);
	}
}
