"""What the kernel has to confine a process with, asked without our code."""
import ctypes

LANDLOCK_CREATE_RULESET = 444  # the same on every architecture


def landlock_version():
    """0: it has none."""
    return max(0, ctypes.CDLL(None).syscall(LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), 1))


def has_seccomp():
    with open("/proc/self/status") as file:
        return any(line.startswith("Seccomp_filters:") or line.startswith("Seccomp:") for line in file)
