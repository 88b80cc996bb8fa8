"""Processes of others: AdoptProcess observes them, and touches nothing."""
import contextlib
import os
import signal
import subprocess
import time

from harness import Daemon, Gate, alive, capture_end, main, target, wait_until
from nobody import NOBODY, as_nobody


@contextlib.contextmanager
def stranger(*argv, **more):
    """A program that is no child of the daemon's."""
    process = subprocess.Popen(argv or ["sleep", "300"], **more)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def adopt(client, pid, **params):
    record = client.call("AdoptProcess", pid=pid, **params)
    client.call("Subscribe", build_id=record["build_id"])
    return record


def test_a_running_process_is_observed_to_its_end():
    with Daemon() as daemon, stranger(cwd="/") as other:
        client = daemon.connect()
        record = adopt(client, other.pid, build_id=7)
        assert record == client.call("GetProcess", build_id="7") == client.everything("ListProcesses", "processes")[0]
        assert record["adopted"] is True and record["state"] == "running" and record["argv"] == ["sleep", "300"]
        assert record["build_id"] == 7 and record["pid"] == other.pid and record["captures"] == []
        assert (record["exit_code"], record["signal"]) == (None, None)
        other.kill()
        ended = client.wait_event("ProcessExited", build_id=7)
        assert (ended["exit_code"], ended["signal"]) == (None, None), ended
        record = client.call("GetProcess", build_id=7)
        assert (record["state"], record["exit_code"], record["signal"]) == ("exited", None, None)
        assert other.wait() == -signal.SIGKILL  # its parent learns what the daemon cannot
        again = subprocess.Popen(["true"])
        again.wait()
        assert client.fails("AdoptProcess", pid=again.pid).code == "process_not_found"


def test_one_behind_a_gate_is_held_until_it_is_let_go():
    with Daemon() as daemon, Gate(daemon, ["sleep", "300"]) as gate:
        client = daemon.connect()
        record = adopt(client, gate.pid)
        assert record["state"] == "held" and record["argv"][-2:] == ["sleep", "300"] and "--" in record["argv"]
        time.sleep(0.1)
        assert client.call("GetProcess", build_id=record["build_id"])["state"] == "held"
        # What is captured is the program, also when it ends before anybody has seen it outside of the gate.
        capture = client.call("StartSamplingProfile", build_id=record["build_id"])["capture_id"]
        assert client.call("GetCapture", capture_id=capture)["argv"] == ["sleep", "300"]
        gate.go()
        started = client.wait_event("ProcessStarted", build_id=record["build_id"], timeout=5)
        assert started["pid"] == gate.pid
        now = client.call("GetProcess", build_id=record["build_id"])
        assert now["state"] == "running" and now["argv"] == ["sleep", "300"]
        gate.end()
        client.wait_event("ProcessExited", build_id=record["build_id"])


def test_a_program_whose_first_thread_ends_at_once_is_seen_too():
    argv = [target("births"), "only before"]
    with Daemon() as daemon, Gate(daemon, argv) as gate:
        client = daemon.connect()
        record = adopt(client, gate.pid)
        gate.go()
        client.wait_event("ProcessStarted", build_id=record["build_id"], timeout=5)
        now = client.call("GetProcess", build_id=record["build_id"])
        assert now["state"] == "running" and now["argv"] == argv, now
        gate.end()
        client.wait_event("ProcessExited", build_id=record["build_id"])


def test_a_gate_that_ends_was_never_a_program():
    with Daemon() as daemon, Gate(daemon, ["sleep", "300"]) as gate:
        client = daemon.connect()
        record = adopt(client, gate.pid)
        gate.socket.close()
        client.wait_event("ProcessExited", build_id=record["build_id"])
        assert [event for event in client.events if event["method"] == "ProcessStarted"] == []
        gate.process.wait()


def test_what_only_its_parent_may_do_is_not_permitted():
    with Daemon() as daemon, stranger() as other, Gate(daemon, ["true"]) as gate:
        client = daemon.connect()
        for pid in (other.pid, gate.pid):
            build = adopt(client, pid)["build_id"]
            for method, params in (("StopProcess", {}), ("SignalProcess", {"signal": "KILL"}), ("WriteStdin", {"data": "x"}),
                                   ("ResumeProcess", {}), ("ResizePty", {"rows": 1, "cols": 1}), ("GetOutput", {"stream": "stdout"})):
                error = client.fails(method, build_id=build, **params)
                assert (error.code, error.detail) == ("not_permitted", "observed"), (method, error)
                assert str(pid) in error.message and "parent" in error.hint, error
            assert alive(pid)


def test_what_cannot_be_adopted_is_refused():
    with Daemon() as daemon:
        client = daemon.connect()
        own = client.call("LaunchProcess", argv=["sleep", "300"], build_id="own")
        error = client.fails("AdoptProcess", pid=own["pid"])
        assert error.code == "build_exists" and "own" in error.message, error
        with stranger() as other:
            assert client.fails("AdoptProcess", pid=other.pid, build_id="own").code == "build_exists"
            client.call("AdoptProcess", pid=other.pid, build_id="other")
            error = client.fails("AdoptProcess", pid=other.pid, build_id="another")
            assert error.code == "build_exists" and "other" in error.message, error
            assert client.fails("AdoptProcess", pid=other.pid, gpu={"device": "0"}).code == "unsupported"
        gone = subprocess.Popen(["true"])
        gone.wait()
        for pid, code in ((gone.pid, "process_not_found"), (2 ** 22 + 1, "process_not_found"), (0, "bad_params"), (-1, "bad_params"),
                          ("1", "bad_params"), (2 ** 31, "bad_params")):
            error = client.fails("AdoptProcess", pid=pid)
            assert error.code == code and str(pid) in error.message, error
        assert client.fails("AdoptProcess").code == "bad_params"
        assert client.call("GetStatus")["builds"] == 1


def test_another_users_process_is_not_ours():
    as_nobody()
    with Daemon(user=NOBODY) as daemon, stranger() as roots, \
            stranger(user=NOBODY, group=NOBODY, extra_groups=[]) as own:
        client = daemon.connect()
        error = client.fails("AdoptProcess", pid=roots.pid)
        assert error.code == "not_permitted" and str(roots.pid) in error.message, error
        assert client.call("AdoptProcess", pid=own.pid)["argv"] == ["sleep", "300"]
    with Daemon() as daemon, stranger(user=NOBODY, group=NOBODY, extra_groups=[]) as other:
        assert daemon.connect().call("AdoptProcess", pid=other.pid)["state"] == "running"


def test_the_daemons_end_is_not_its_end():
    for ends in ("SIGTERM", "SIGKILL"):
        with Daemon(check_exit=False) as daemon, stranger() as other:
            client = daemon.connect()
            client.call("AdoptProcess", pid=other.pid)
            began = time.monotonic()
            daemon.process.send_signal(getattr(signal, ends))
            daemon.process.wait(20)
            assert time.monotonic() - began < 8
            assert other.poll() is None


def test_a_profile_of_it_begins_behind_the_gate_or_not_at_all():
    with Daemon() as daemon, Gate(daemon, [target("steady"), "300"]) as gate:
        client = daemon.connect()
        adopt(client, gate.pid, build_id="b")
        started = client.call("StartSamplingProfile", build_id="b", hz=499)
        assert started["state"] == "armed"
        gate.go()
        name, end = capture_end(client, started["capture_id"])
        assert name == "SamplingProfileFinished" and end["reason"] == "target_exited" and end["samples"] > 50, end
        assert end["build_id"] == "b"
        assert client.call("GetProcess", build_id="b")["captures"] == [started["capture_id"]]
        assert client.fails("StartSamplingProfile", build_id="b").code == "build_not_running"
        with stranger() as other:
            bare = client.fails("StartSamplingProfile", pid=other.pid)
            adopt(client, other.pid, build_id="c")
            for params in ({"build_id": "c"}, {"pid": other.pid}):
                error = client.fails("StartSamplingProfile", **params)
                assert (error.code, error.message) == (bare.code, bare.message), error


def test_ten_thousand_arguments_and_no_text_are_no_trouble():
    with Daemon() as daemon:
        client = daemon.connect()
        with stranger("sh", "-c", "exec sleep 300", *["x" * 50] * 10000) as other, \
                stranger(b"sh", b"-c", b"echo; read x", b"\xff\xfe", stdin=subprocess.PIPE, stdout=subprocess.PIPE) as binary:
            binary.stdout.readline()
            wait_until(lambda: os.readlink("/proc/%d/exe" % other.pid).endswith("sleep"), 5)
            assert client.call("AdoptProcess", pid=other.pid)["argv"] == ["sleep", "300"]
            assert client.call("AdoptProcess", pid=binary.pid)["argv"][-1] == "\ufffd\ufffd"
        with stranger("sleep", *["300"] * 20000) as long:
            record = client.call("AdoptProcess", pid=long.pid)
            assert record["argv_truncated"] is True and record["argv"][:2] == ["sleep", "300"]


if __name__ == "__main__":
    main(globals())
