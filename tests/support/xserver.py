"""An X server without a screen, for programs with windows."""
import contextlib
import os
import shutil
import subprocess

from harness import skip


@contextlib.contextmanager
def display():
    """Its name, for DISPLAY."""
    if not shutil.which("Xvfb"):
        skip("no X server without a screen (xvfb)")
    reader, writer = os.pipe()
    server = subprocess.Popen(["Xvfb", "-displayfd", str(writer), "-screen", "0", "640x480x24", "-nolisten", "tcp"], pass_fds=[writer],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.close(writer)
    try:
        with open(reader, encoding="ascii") as numbers:
            yield ":" + numbers.readline().strip()
    finally:
        server.terminate()
        server.wait()
