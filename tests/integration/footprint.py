"""What a daemon holds (programs, captures, descriptors, children, files), and that a refused wish changes none of it."""
import time

from harness import wait_until


def state(daemon, client):
    """Everything that a refused wish could leave behind."""
    captures = client.everything("ListCaptures", "captures")
    status = client.call("GetStatus")
    return {"processes": client.everything("ListProcesses", "processes"),
            "captures": sorted((c["capture_id"], c["state"]) for c in captures),
            "counts": (status["clients"], status["builds"], status["captures"]),
            "descriptors": daemon.descriptors(), "children": sorted(daemon.children()), "files": daemon.files()}


def settled(daemon, client):
    """The state once nothing changes in it any more."""
    def twice():
        first = state(daemon, client)
        time.sleep(0.05)
        # An analyzer is done before it has ended.
        programs = {record["pid"] for record in first["processes"] if record["state"] != "exited"}
        return first if first == state(daemon, client) and set(first["children"]) <= programs else None
    return wait_until(twice, 10, "a state that stays")


def check_as_before(daemon, client, before, what):
    """What closes or goes in the next turns of the loop may take them; then it must be the same, entry by entry."""
    end = time.monotonic() + 10
    while True:
        now = state(daemon, client)
        if now == before:
            return
        assert time.monotonic() < end, "%s left: %s" % (what, {k: (before[k], now[k]) for k in now if now[k] != before[k]})
        time.sleep(0.01)


def check_closed_as_before(daemon, before):
    """What was granted stays in the lists and in the data folder; what was open for it does not."""
    wait_until(lambda: (daemon.descriptors(), sorted(daemon.children())) == (before["descriptors"], before["children"]), 10,
               "the descriptors and children before: %r" % ([before["descriptors"], before["children"]],))
