"""Records what a program does with the GPU, from within the program: for engines that know their own phases.

    import profd_gpu

    profd_gpu.profd_gpu_start("pre-render")
    ...                               # what is submitted to the GPU from here on is in the document, exactly,
    profd_gpu.profd_gpu_stop()        # until here; the document is written when it returns

A program that profd did not arm (LaunchProcess with gpu, profctl gpu) gets NOT_ARMED, at the price of a function call. Nothing but
this file and ctypes is needed. Any thread.
"""
import ctypes
import os

# What start and stop return: 0, or one of these. profd_gpu_error has the words.
OK = 0
NOT_ARMED = -1      # nobody launched the program for it, or profd is gone
NO_DEVICE = -2      # the program has made no device yet
BUSY = -3           # something is recorded already, or waits to be
NOT_CAPTURING = -4  # nothing to stop: no start, or it has ended already
REFUSED = -5        # profd does not want it; too many, no room on the disk
NO_ANSWER = -6      # profd said nothing for two seconds
FAILED = -7         # it could not begin, or the document not be written

_NAMES = ("start", "stop", "is_armed", "error")
_RTLD_NOLOAD = getattr(os, "RTLD_NOLOAD", 4)

_path = os.environ.get("PROFD_GPU_LIBRARY", "")
_is_never = not _path.startswith("/")
_layer = None


def _find():
    """The layer's functions; None while the loader of the GPU's programming interface has not brought the layer in."""
    global _layer, _is_never
    if _layer is not None or _is_never:
        return _layer
    try:
        library = ctypes.CDLL(_path, mode=_RTLD_NOLOAD | os.RTLD_LAZY)
    except OSError:
        return None
    try:
        functions = {name: getattr(library, "profd_gpu_layer_" + name) for name in _NAMES}
    except AttributeError:
        _is_never = True
        return None
    functions["start"].argtypes = [ctypes.c_char_p]
    functions["error"].restype = ctypes.c_char_p
    _layer = functions
    return _layer


def profd_gpu_start(label=None):
    """From here on all that is submitted is recorded; the next submit is the first. Asks profd, and waits at most two seconds for its
    answer. label is for people. Negative: nothing is recorded."""
    if _is_never:
        return NOT_ARMED
    layer = _find()
    if layer is None:
        return NOT_ARMED if _is_never else NO_DEVICE
    return layer["start"](None if label is None else str(label).encode("utf-8", "replace"))


def profd_gpu_stop():
    """Ends what start began; 0: the document is written. From any thread."""
    if _is_never:
        return NOT_ARMED
    layer = _find()
    if layer is None:
        return NOT_ARMED if _is_never else NOT_CAPTURING
    return layer["stop"]()


def profd_gpu_is_armed():
    """Whether profd waits for the program's wishes."""
    layer = _find()
    return bool(layer["is_armed"]()) if layer is not None else not _is_never


def profd_gpu_error():
    """Why this thread's last start or stop failed, one sentence; "" when it did not."""
    layer = _find()
    if layer is not None:
        return layer["error"]().decode("utf-8", "replace")
    if _is_never:
        return "the program was not launched for GPU traces (LaunchProcess with gpu, or profctl gpu)"
    return "the program has not made a VkInstance yet"
