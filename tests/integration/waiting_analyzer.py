"""An analyzer that waits, so that a test can act between a capture's sampling and its artifacts."""
import contextlib
import os
import tempfile

from harness import program, wait_until, write


@contextlib.contextmanager
def waiting_analyzer():
    """An analyzer that waits for the file "go": what is done before it is done before any artifact is written."""
    with tempfile.TemporaryDirectory() as folder:
        path = write(folder, "analyzer", "#!/bin/sh\nwhile [ ! -e %s/go ]; do sleep 0.02; kill -0 $PPID || exit 1; done\nexec %s \"$@\"\n" %
                     (folder, program("profd-analyzer")), 0o755)
        yield path, os.path.join(folder, "go")


def wait_symbolizing(client, capture_id):
    wait_until(lambda: client.call("GetCapture", capture_id=capture_id)["state"] == "symbolizing", 30, "the end of the sampling")
