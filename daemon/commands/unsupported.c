#include "commands/methods.h"

/* The contract's methods that this version does not have: they answer unsupported, and Describe says so. */
#define UNSUPPORTED(variable, method, sentence)                                                    \
	const struct command variable = {.name = (method), .about = (sentence)}

UNSUPPORTED(adopt_process_command, "AdoptProcess", "Observes a process that a client launched.");
UNSUPPORTED(signal_process_command, "SignalProcess", "Sends a signal to a build.");
UNSUPPORTED(write_stdin_command, "WriteStdin", "Writes to a build's standard input.");
UNSUPPORTED(resize_pty_command, "ResizePty", "Changes the size of a build's terminal.");
UNSUPPORTED(get_output_command, "GetOutput", "Reads what a build has written.");
UNSUPPORTED(start_gpu_trace_command, "StartGpuTrace", "Records frames of a build's GPU work.");
UNSUPPORTED(symbolize_capture_command, "SymbolizeCapture", "Makes a capture's names again.");
UNSUPPORTED(delete_capture_command, "DeleteCapture", "Deletes a capture that has ended.");
UNSUPPORTED(update_capture_command, "UpdateCapture", "Changes a capture's label.");
UNSUPPORTED(query_frame_tree_command, "QueryFrameTree", "The call tree of a capture.");
UNSUPPORTED(query_functions_command, "QueryFunctions", "The top functions of a capture.");
UNSUPPORTED(query_callers_command, "QueryCallers", "Callers and callees of a function.");
UNSUPPORTED(query_lines_command, "QueryLines", "The weight of each source line.");
UNSUPPORTED(query_threads_command, "QueryThreads", "The weight of each thread.");
UNSUPPORTED(query_images_command, "QueryImages", "The weight of each image.");
UNSUPPORTED(query_timeline_command, "QueryTimeline", "Weights per time and thread.");
UNSUPPORTED(diff_captures_command, "DiffCaptures", "What changed between two captures.");
UNSUPPORTED(export_capture_command, "ExportCapture", "Writes a capture in another format.");
UNSUPPORTED(import_capture_command, "ImportCapture", "Makes a capture of another format.");
