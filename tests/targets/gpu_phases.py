"""A Python program whose GPU work is libgpu_frames.so's, and whose phases are its own: gpu_phases.py LIBRARY MODULE_FOLDER FIRST LAST [ARG...]

It starts before frame FIRST's submit and stops behind frame LAST's, and says what came of each call.
"""
import ctypes
import sys

sys.path.insert(0, sys.argv[2])
import profd_gpu  # noqa: E402  pylint: disable=wrong-import-position

FIRST, LAST = int(sys.argv[3]), int(sys.argv[4])


def say(what, status):
    print("own %s: %d%s" % (what, status, " " + profd_gpu.profd_gpu_error() if status else ""), flush=True)


def at(frame, is_behind):
    if frame == FIRST and not is_behind:
        say("start", profd_gpu.profd_gpu_start("phase \N{SNOWMAN}"))
    if frame == LAST and is_behind:
        say("stop", profd_gpu.profd_gpu_stop())


library = ctypes.CDLL(sys.argv[1])
hook = ctypes.CFUNCTYPE(None, ctypes.c_uint, ctypes.c_int)(at)
ctypes.c_void_p.in_dll(library, "phases_hook").value = ctypes.cast(hook, ctypes.c_void_p).value
words = [b"gpu_frames"] + [word.encode() for word in sys.argv[5:]]
print("armed", profd_gpu.profd_gpu_is_armed())
say("early start", profd_gpu.profd_gpu_start())
say("early stop", profd_gpu.profd_gpu_stop())
sys.exit(library.main(len(words), (ctypes.c_char_p * (len(words) + 1))(*words, None)))
