#ifndef COMMANDS_METHODS_H
#define COMMANDS_METHODS_H

#include "commands/command.h"

/* The methods, each defined in the file of its noun; commands.c puts them into the table. */

/* daemon.c and describe.c */
extern const struct command hello_command, ping_command, get_status_command, describe_command,
	shutdown_command;
/* launch.c, adoption.c, process.c and stdio.c */
extern const struct command launch_process_command, adopt_process_command, resume_process_command,
	stop_process_command, signal_process_command, list_processes_command, get_process_command,
	write_stdin_command, resize_pty_command, get_output_command;
/* sampling.c, capture_stop.c and capture.c */
extern const struct command start_sampling_profile_command, stop_capture_command,
	wait_capture_command, list_captures_command, get_capture_command;
/* gpu_trace.c */
extern const struct command start_gpu_trace_command;
/* capture_delete.c and capture_update.c */
extern const struct command delete_capture_command, update_capture_command;
/* doctor.c and subscribe.c */
extern const struct command doctor_command, subscribe_command, unsubscribe_command, cancel_command;
/* unsupported.c */
extern const struct command symbolize_capture_command, query_frame_tree_command,
	query_functions_command, query_callers_command, query_lines_command, query_threads_command,
	query_images_command, query_timeline_command, diff_captures_command, export_capture_command,
	import_capture_command;

#endif
