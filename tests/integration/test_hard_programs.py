"""Programs that make it hard: floods, deaf ones, daemons, closed descriptors, those that stop themselves or dump core, and many."""
import os
import resource
import signal
import socket
import time

from harness import SANITIZED, Daemon, alive, main, output_bytes, wait_until
from launches import launch_many
from nobody import NOBODY, as_nobody
from scripts import run, start

FLOOD_BYTES = (50 if SANITIZED else 400) * 1000 * 1000


def test_a_flood_into_a_deaf_client_costs_nobody_else():
    with Daemon() as daemon:
        deaf, other = daemon.connect(), daemon.connect()
        deaf.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        began = time.monotonic()
        deaf.send("LaunchProcess", build_id="flood", argv=["sh", "-c", "yes 0123456789abcde | head -c %d" % FLOOD_BYTES])
        wait_until(lambda: other.call("GetStatus")["builds"] == 1, 10, "the launch")
        slowest = 0
        while other.call("GetProcess", build_id="flood")["state"] != "exited":
            asked = time.monotonic()
            other.call("Ping")
            slowest = max(slowest, time.monotonic() - asked)
            assert asked - began < 100
        assert slowest < 2, slowest
        assert other.call("GetProcess", build_id="flood")["exit_code"] == 0
        # Everything was read, and the last of it is there.
        last = other.call("GetOutput", build_id="flood", stream="stdout", offset=FLOOD_BYTES - 16)
        assert last["data"] == "0123456789abcde\n" and last["eof"] is True and last["lost_before"] == 0, last
        assert daemon.status("VmRSS") < (512 if SANITIZED else 32) * 1024


def test_what_ignores_its_signal_is_killed_when_the_grace_is_over():
    with Daemon() as daemon:
        client = daemon.connect()
        build = start(client, "trap '' TERM INT HUP QUIT; echo up; while :; do sleep 0.05; done")["build_id"]
        began = time.monotonic()
        end = client.call("StopProcess", build_id=build, grace_ms=400)
        assert end == {"exit_code": None, "signal": "SIGKILL"} and 0.4 <= time.monotonic() - began < 5, end


def test_a_program_that_becomes_a_daemon_is_named_or_had_gone():
    with Daemon() as daemon:
        client = daemon.connect()
        # Twice forked, a session of its own, its first parent still there: seen.
        near = start(client, "setsid sh -c 'echo $$; echo up; exec sleep 300 >/dev/null 2>&1 </dev/null' & wait")
        pid = int(output_bytes(client.events).split()[0])
        stopped = client.call("StopProcess", build_id=near["build_id"])
        assert stopped["survivors"] == [{"pid": pid, "name": "sleep"}] and stopped["survivor_count"] == 1, stopped
        assert client.call("StopProcess", build_id=near["build_id"]) == stopped and alive(pid)
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not alive(pid), 5)
        assert "survivors" not in client.call("StopProcess", build_id=near["build_id"])
        client.events.clear()
        # One whose launcher ends at once: the build ends with its program, its pipe 500 ms later.
        began = time.monotonic()
        output, end = run(client, "(setsid sh -c 'echo $$; trap \"\" PIPE; exec sleep 300' & ) ; sleep 0.1; exit 3")
        assert end["exit_code"] == 3 and time.monotonic() - began < 5
        pid = int(output)
        assert alive(pid)  # nobody asked for its end
        os.kill(pid, signal.SIGKILL)


def test_a_program_that_closes_its_descriptors_lives_on():
    with Daemon() as daemon:
        client = daemon.connect()
        idle = daemon.status("voluntary_ctxt_switches")
        for stdio in ("pipe", "pty", "file", "null"):
            build = client.call("LaunchProcess", argv=["sh", "-c", "exec <&- >&- 2>&-; sleep 0.4; exit 5"], stdio=stdio)["build_id"]
            assert client.wait_event("ProcessExited", build_id=build)["exit_code"] == 5, stdio
        # A pipe without an end is not polled for ever.
        assert daemon.status("voluntary_ctxt_switches") - idle < 500
        assert client.events and all(event["method"] == "ProcessStarted" for event in client.events)


def test_a_program_that_stops_itself_is_running_and_can_be_ended():
    with Daemon() as daemon:
        client = daemon.connect()
        for _ in range(2):
            launched = client.call("LaunchProcess", argv=["sh", "-c", "kill -STOP $$; echo on; exec sleep 300"])
            wait_until(lambda: state_of(launched["pid"]) == "T", 5, "the stop")
            build = launched["build_id"]
            assert client.call("GetProcess", build_id=build)["state"] == "running"
            if build == "1":
                client.call("SignalProcess", build_id=build, signal="CONT")
                wait_until(lambda: client.call("GetOutput", build_id=build, stream="stdout")["data"] == "on\n", 5, "its word")
            began = time.monotonic()
            assert client.call("StopProcess", build_id=build)["signal"] == "SIGTERM"
            assert time.monotonic() - began < 4  # it was continued, so that it saw the signal


def state_of(pid):
    with open("/proc/%d/stat" % pid) as file:
        return file.read().rsplit(")", 1)[1].split()[0]


def test_a_core_dump_is_told_as_the_kernel_tells_it():
    script = "ulimit -c %s; kill -SEGV $$; sleep 1"
    with Daemon() as daemon:
        client = daemon.connect()
        if resource.getrlimit(resource.RLIMIT_CORE)[1] == 0:
            limits = ["0"]
        else:
            limits = ["0", "unlimited"]
        for limit in limits:
            pid = os.posix_spawn("/bin/sh", ["sh", "-c", "cd %s && " % daemon.root + script % limit], os.environ)
            status = os.waitpid(pid, 0)[1]
            end = run(client, script % limit, cwd=daemon.root)[1]
            assert end["signal"] == "SIGSEGV" and end["exit_code"] is None, end
            assert end["core_dumped"] is os.WCOREDUMP(status), (limit, end)


def test_hundreds_of_launches_leave_nothing():
    with Daemon() as daemon:
        launch_many(daemon, 100 if SANITIZED else 300)


def test_an_ordinary_user_has_all_of_it():
    as_nobody()
    with Daemon(user=NOBODY) as daemon:
        client = daemon.connect()
        for stdio in ("pipe", "pty", "file", "null"):
            launched = client.call("LaunchProcess", argv=["sh", "-c", "id -u; test -t 0; echo $?; exec sleep 300"], stdio=stdio, cwd="/")
            build = launched["build_id"]
            if stdio != "null":
                expected = "%d\n%d\n" % (NOBODY, stdio != "pty")
                look = lambda: client.call("GetOutput", build_id=build, stream="stdout")["data"].replace("\r", "") == expected
                wait_until(look, 10, "its words")
            client.call("SignalProcess", build_id=build, signal="INT")
            assert client.wait_event("ProcessExited", build_id=build)["signal"] == "SIGINT"


if __name__ == "__main__":
    main(globals())
