"""Launching again and again, and looking at what is left behind."""
from harness import wait_until

FLIGHT = 20  # at once


def resident(daemon):
    """Private memory in KiB; what was mapped from files comes and goes."""
    return daemon.status("RssAnon")


def launch_round(client, count, **params):
    numbers = [client.send("LaunchProcess", argv=["/bin/true"], **params) for _ in range(count)]
    builds = [client.wait_reply(number)["build_id"] for number in numbers]
    for build in builds:
        assert client.wait_event("ProcessExited", build_id=build)["exit_code"] == 0
    client.events.clear()
    client.lines.clear()


def launch_many(daemon, count):
    """Launches so many, all kinds in turn; then no child, descriptor or file is left, and no memory that grows with their number."""
    client = daemon.connect()
    kinds = ({}, {"stdio": "null"}, {"stdio": "pty"}, {"stdio": "file"}, {"stdio": "null", "on_daemon_exit": "leave"}, {"hold": False})
    for kind in kinds:
        launch_round(client, FLIGHT, **kind)
    # As many as are remembered: from here on each new one pushes an old one out.
    launched = FLIGHT * len(kinds)
    while launched < min(count, 300):
        launch_round(client, FLIGHT, **kinds[launched // FLIGHT % len(kinds)])
        launched += FLIGHT
    wait_until(lambda: daemon.children() == [], 5, "no child")
    descriptors, memory = daemon.descriptors(), resident(daemon)
    while launched < count:
        launch_round(client, FLIGHT, **kinds[launched // FLIGHT % len(kinds)])
        launched += FLIGHT
    wait_until(lambda: daemon.descriptors() == descriptors, 5, "the descriptors from before")
    wait_until(lambda: daemon.children() == [], 5, "no child")
    assert resident(daemon) - memory < 2048, (memory, resident(daemon))
    kept = [path for path in daemon.files() if path.endswith("/stdout")]
    assert len(kept) <= 256 and not [path for path in daemon.files() if "starting-" in path], len(kept)
    assert client.call("GetStatus")["builds"] == 0
