#include "commands/methods.h"

/* The contract's methods that this version does not have: they answer unsupported, and Describe says so. */
#define UNSUPPORTED(variable, method, sentence)                                                    \
	const struct command variable = {.name = (method), .about = (sentence)}

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
