"""Real programs under a capture, and that the daemon holds nothing of them afterwards."""
import sys
import time

from harness import capture_end, wait_until

BUSY = [sys.executable, "-c", "import time\nend = time.process_time() + %s\nwhile time.process_time() < end: pass"]
FOREVER = [sys.executable, "-c", "while True: pass"]


def busy(seconds):
    return BUSY[:2] + [BUSY[2] % seconds]


def profile(client, argv, **options):
    result = client.call("LaunchProcess", argv=argv, stdio="null", profile=options)
    return result, capture_end(client, result["capture_id"])


def names_of(client, capture_id):
    """The events of a capture in order, a run of the same name once."""
    names = []
    for event in client.events:
        if event["params"].get("capture_id") == capture_id and names[-1:] != [event["method"]]:
            names.append(event["method"])
    return [name.replace("SamplingProfile", "") for name in names]


class Unchanged:
    """What a test leaves of the daemon is what it found: descriptors and children."""

    def __init__(self, daemon):
        self.daemon = daemon

    def settled(self):
        """Once the terminal event is out, its capture still closes what it had open."""
        def closed():
            return not self.daemon.children() and not any("capture.journal" in name for name in self.daemon.descriptors())
        wait_until(closed, 10, "the end of the children and captures")

    def __enter__(self):
        self.settled()
        time.sleep(0.1)
        self.descriptors = self.daemon.descriptors()

    def __exit__(self, kind, value, trace):
        if kind is None:
            self.settled()
            wait_until(lambda: self.daemon.descriptors() == self.descriptors, 5,
                       "as many descriptors as before: %r, now %r" % (self.descriptors, self.daemon.descriptors()))


def warm_up(client):
    """What is opened once for good is open."""
    profile(client, busy(0.05), hz=99)
