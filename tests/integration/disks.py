"""A file system of its own, small enough to be filled."""
import contextlib
import os
import subprocess
import tempfile

from harness import skip


@contextlib.contextmanager
def small_disk(kib):
    if os.geteuid() != 0:
        skip("needs root to mount a small file system")
    path = tempfile.mkdtemp(prefix="profd-test-disk-")
    try:
        if subprocess.call(["mount", "-t", "tmpfs", "-o", "size=%dk,mode=700" % kib, "tmpfs", path], stderr=subprocess.DEVNULL) != 0:
            skip("a small file system cannot be mounted here")
        try:
            yield path
        finally:
            # Whoever still writes there is told as a fault; the place goes nevertheless.
            if subprocess.call(["umount", path]) != 0:
                subprocess.check_call(["umount", "--lazy", path])
                raise AssertionError("somebody still uses the small file system")
    finally:
        os.rmdir(path)


def fill(path):
    with open(os.path.join(path, "filler"), "wb", buffering=0) as file:
        with contextlib.suppress(OSError):
            while file.write(b"x" * 4096):
                pass
