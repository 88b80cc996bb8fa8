#ifndef PROTOCOL_NAMES_H
#define PROTOCOL_NAMES_H

/* Names of the wire that more than one program spells. Methods are in the daemon's command table. */

#define NAME_SERVER         "profd"
#define NAME_PROTOCOL_MAJOR 1
#define NAME_PROTOCOL_MINOR 0

#define EVENT_PROCESS_STARTED           "ProcessStarted"
#define EVENT_PROCESS_OUTPUT            "ProcessOutput"
#define EVENT_PROCESS_EXITED            "ProcessExited"
#define EVENT_SAMPLING_PROFILE_STARTED  "SamplingProfileStarted"
#define EVENT_SAMPLING_PROFILE_PROGRESS "SamplingProfileProgress"
#define EVENT_SAMPLING_PROFILE_FINISHED "SamplingProfileFinished"
#define EVENT_SAMPLING_PROFILE_FAILED   "SamplingProfileFailed"
#define EVENT_GPU_TRACE_STARTED         "GpuTraceStarted"
#define EVENT_GPU_TRACE_PROGRESS        "GpuTraceProgress"
#define EVENT_GPU_TRACE_FINISHED        "GpuTraceFinished"
#define EVENT_GPU_TRACE_FAILED          "GpuTraceFailed"
#define EVENT_CAPTURE_RECOVERED         "CaptureRecovered"
#define EVENT_EVENTS_DROPPED            "EventsDropped"
#define EVENT_DAEMON_STOPPING           "DaemonStopping"

/* Files of a capture's folder. */
#define ARTIFACT_JOURNAL "capture.journal"
#define ARTIFACT_SYMBOLS "capture.symbols"
#define ARTIFACT_FOLDED  "capture.folded"
#define ARTIFACT_SVG     "capture.svg"
#define ARTIFACT_JSON    "capture.json"
#define ARTIFACT_RDC     "capture.rdc"
#define ARTIFACT_SHADERS "shaders.json"
/* A folder of it: the modules of a GPU trace, HASH.spv, and their sources, HASH.wgsl, HASH-1.wgsl, …. */
#define ARTIFACT_SHADERS_FOLDER "shaders"
/* What is being written of a document begins so; whoever writes it adds to the name. */
#define ARTIFACT_DOCUMENT_PREFIX ".capture.document"

/* Environment variables. Private ones are taken out of a target's environment. */
#define ENV_SOCKET "PROFD_SOCKET"

/* Of a program that is armed for GPU traces. */
#define ENV_GPU        "PROFD_GPU"
#define ENV_GPU_SOCKET "PROFD_GPU_SOCKET"
#define ENV_GPU_TOKEN  "PROFD_GPU_TOKEN"
/* The GPU that the program is to see (protocol/gpu_pick.h); empty: each. */
#define ENV_GPU_DEVICE "PROFD_GPU_DEVICE"
/* What switches RenderDoc's layer on in it. */
#define ENV_GPU_RENDERDOC "PROFD_GPU_RENDERDOC"
/* The layer's library, for the program's own calls (client/gpu/profd_gpu.h); empty or unset: it may not. */
#define ENV_GPU_LIBRARY "PROFD_GPU_LIBRARY"

#endif
