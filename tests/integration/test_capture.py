"""Captures from the wish to the artifacts, on real programs."""
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

from harness import Daemon, main, program, read_folded, skip, wait_until

BUSY = [sys.executable, "-c", "import time\nend = time.process_time() + %s\nwhile time.process_time() < end: pass"]
FOREVER = [sys.executable, "-c", "while True: pass"]


def busy(seconds):
    return BUSY[:2] + [BUSY[2] % seconds]


def finished(client, capture_id, timeout=60):
    """The parameters of the terminal event, and its name."""
    def terminal():
        for event in client.events:
            if event["method"] in ("SamplingProfileFinished", "SamplingProfileFailed") and event["params"]["capture_id"] == capture_id:
                return event
        client.read_some(0.05)
    event = wait_until(terminal, timeout, "the end of " + capture_id)
    return event["method"], event["params"]


def profile(client, argv, **options):
    result = client.call("LaunchProcess", argv=argv, stdio="null", profile=options)
    return result, finished(client, result["capture_id"])


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


def test_a_program_that_ends_becomes_artifacts():
    with Daemon() as daemon:
        client = daemon.connect()
        warm_up(client)
        with Unchanged(daemon):
            result, (name, params) = profile(client, busy(0.5), hz=999)
            assert name == "SamplingProfileFinished", params
            assert params["reason"] == "target_exited"
            assert names_of(client, result["capture_id"]) == ["Started", "Progress", "Finished"]
            exited = client.wait_event("ProcessExited", build_id=result["build_id"])
            # The kernel's own account of the process against samples times period.
            cpu = (exited["user_us"] + exited["system_us"]) / 1e6
            assert abs(params["samples"] / 999 - cpu) < 0.2 * cpu + 0.02, (params["samples"], cpu)
            assert sum(read_folded(params["folded_path"]).values()) == params["samples"]
            record = client.call("GetCapture", capture_id=result["capture_id"])
            record = record.get("capture", record)
            for key in params:
                assert key == "seq" or record[key] == params[key], key
            assert record["exit_code"] == 0
            assert sorted(os.listdir(record["folder"])) == ["capture.folded", "capture.journal", "capture.json", "capture.svg", "record.json"]
            for artifact in params["artifacts"]:
                status = os.stat(artifact["path"])
                assert status.st_size == artifact["bytes"] and stat.S_IMODE(status.st_mode) == 0o600
            assert stat.S_IMODE(os.stat(record["folder"]).st_mode) == 0o700


def test_a_running_build_can_be_sampled_and_stopped():
    with Daemon() as daemon:
        client = daemon.connect()
        warm_up(client)
        with Unchanged(daemon):
            build = client.call("LaunchProcess", argv=FOREVER, stdio="null")
            started = client.call("StartSamplingProfile", build_id=build["build_id"], label="a label")
            assert started["state"] == "sampling" and started["hz"] == 999 and started["unwinder"] == "fp"
            again = client.fails("StartSamplingProfile", build_id=build["build_id"])
            assert again.code == "capture_busy" and again.detail == started["capture_id"], again.error
            client.wait_event("SamplingProfileProgress", capture_id=started["capture_id"])
            time.sleep(0.3)
            final = client.call("StopCapture", capture_id=started["capture_id"])
            assert final["reason"] == "stopped" and final["samples"] > 50 and final["label"] == "a label"
            assert client.call("StopCapture", capture_id=started["capture_id"]) == final
            # It can be sampled again at once.
            second = client.call("StartSamplingProfile", build_id=build["build_id"], duration_ms=300)
            name, params = finished(client, second["capture_id"])
            assert params["reason"] == "duration" and 10 < params["samples"] < 400, params
            client.call("StopProcess", build_id=build["build_id"], grace_ms=0)


def test_a_held_build_is_armed_until_it_runs():
    with Daemon() as daemon:
        client = daemon.connect()
        build = client.call("LaunchProcess", argv=busy(0.3), stdio="null", hold=True)
        started = client.call("StartSamplingProfile", build_id=build["build_id"])
        assert started["state"] == "armed"
        client.drain(0.6)
        assert names_of(client, started["capture_id"]) == []
        client.call("ResumeProcess", build_id=build["build_id"])
        name, params = finished(client, started["capture_id"])
        assert params["reason"] == "target_exited" and params["samples"] > 200, params
        assert params["summary"]["duration_ms"] < 5000


def test_a_program_that_did_next_to_nothing_has_no_samples():
    with Daemon() as daemon:
        client = daemon.connect()
        result, (name, params) = profile(client, ["/bin/true"], hz=10)
        assert name == "SamplingProfileFailed"
        assert params["error"]["data"]["code"] == "no_samples"
        assert "less than one sampling period of 100.0 ms" in params["error"]["message"], params


def test_an_analyzer_that_dies_costs_the_names_only():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "analyzer")
        with open(path, "w") as file:
            file.write("#!/bin/sh\n[ -e %s/once ] && exec %s\n: > %s/once\nkill -9 $$\n" % (folder, program("profd-analyzer"), folder))
        os.chmod(path, 0o755)
        with Daemon(env={"PROFD_ANALYZER": path}) as daemon:
            client = daemon.connect()
            with open(folder + "/once", "w"):
                warm_up(client)
            os.unlink(folder + "/once")
            with Unchanged(daemon):
                result, (name, params) = profile(client, busy(0.3))
                assert name == "SamplingProfileFinished", params
                warning = [w for w in params["warnings"] if w["code"] == "analyzer_failed"]
                assert warning and "SIGKILL" in warning[0]["message"], params["warnings"]
                stacks = read_folded(params["folded_path"])
                assert sum(stacks.values()) == params["samples"]
                frames = [frame for stack in stacks for frame in stack[1:]]
                assert frames and all("+0x" in frame or frame.startswith("[") for frame in frames), frames[:10]


def test_an_analyzer_that_always_dies_fails_the_capture_with_its_journal_kept():
    with Daemon(env={"PROFD_ANALYZER": "/bin/false"}) as daemon:
        client = daemon.connect()
        result, (name, params) = profile(client, busy(0.2))
        assert name == "SamplingProfileFailed" and params["error"]["data"]["code"] == "internal", params
        folder = os.path.join(daemon.data_dir, "captures", result["capture_id"])
        assert sorted(os.listdir(folder)) == ["capture.journal", "record.json"]
        record = client.call("GetCapture", capture_id=result["capture_id"])
        record = record.get("capture", record)
        assert record["state"] == "failed" and record["error"] == params["error"]


def test_a_client_that_is_killed_does_not_end_the_capture():
    with Daemon() as daemon:
        first, second = daemon.connect(), daemon.connect()
        result = first.call("LaunchProcess", argv=busy(0.5), stdio="null", profile={})
        first.close()
        record = second.call("WaitCapture", capture_id=result["capture_id"])
        assert record["state"] == "finished" and record["reason"] == "target_exited", record


def test_output_dir_is_used_or_its_fault_is_named():
    with Daemon() as daemon, tempfile.TemporaryDirectory() as folder:
        client = daemon.connect()
        result, (name, params) = profile(client, busy(0.2), output_dir=folder)
        assert name == "SamplingProfileFinished", params
        assert params["folded_path"] == os.path.join(folder, result["capture_id"], "capture.folded")
        assert os.path.exists(params["folded_path"])
        before = daemon.files()
        build = client.call("LaunchProcess", argv=FOREVER, stdio="null")
        with open(folder + "/file", "w"):
            pass
        for path, code, word in (("relative", -32602, "absolute"), (folder + "/missing", -32602, "missing"),
                                 (folder + "/file", -32602, "not a folder"), ("/proc", None, "/proc")):
            error = client.fails("StartSamplingProfile", build_id=build["build_id"], output_dir=path)
            assert code is None or error.number == code, error.error
            assert word in error.message, error.message
        client.call("StopProcess", build_id=build["build_id"], grace_ms=0)
        assert daemon.files() == before
        assert sorted(os.listdir(folder)) == sorted([result["capture_id"], "file"])


def test_discard_leaves_nothing():
    with Daemon() as daemon:
        client = daemon.connect()
        warm_up(client)
        before = daemon.files()
        with Unchanged(daemon):
            build = client.call("LaunchProcess", argv=FOREVER, stdio="null", profile={})
            client.wait_event("SamplingProfileProgress", capture_id=build["capture_id"])
            client.call("StopCapture", capture_id=build["capture_id"], discard=True)
            name, params = finished(client, build["capture_id"])
            assert params["error"]["data"]["code"] == "cancelled", params
            assert client.fails("GetCapture", capture_id=build["capture_id"]).code == "capture_not_found"
            client.call("StopProcess", build_id=build["build_id"], grace_ms=0)
        assert daemon.files() == before


def test_a_program_that_cannot_run_leaves_no_capture():
    with Daemon() as daemon:
        client = daemon.connect()
        warm_up(client)
        before = daemon.files()
        with Unchanged(daemon):
            error = client.fails("LaunchProcess", argv=["/nonexistent/program"], profile={})
            assert error.code == "launch_failed", error.error
            wait_until(lambda: daemon.files() == before, 5, "the end of the capture's folder")
        client.drain()
        assert [e["method"] for e in client.events if "Sampling" in e["method"]][-1:] != ["SamplingProfileFailed"]


def test_a_daemon_that_was_killed_finds_its_captures_again():
    root = tempfile.mkdtemp(prefix="profd-test-data-")
    try:
        data = os.path.join(root, "data")
        with Daemon(data_dir=data, check_exit=False) as daemon:
            client = daemon.connect()
            done, _ = profile(client, busy(0.2))
            running = client.call("LaunchProcess", argv=FOREVER, stdio="null", profile={"hz": 999})
            client.wait_event("SamplingProfileProgress", capture_id=running["capture_id"])
            time.sleep(1.5)
            daemon.process.kill()
            daemon.process.wait()
            os.kill(running["pid"], signal.SIGKILL) if os.path.exists("/proc/%d" % running["pid"]) else None
        with Daemon(data_dir=data) as daemon:
            client = daemon.connect()
            captures = client.call("ListCaptures")["captures"]
            states = {c["capture_id"]: c["state"] for c in captures}
            assert states == {done["capture_id"]: "finished", running["capture_id"]: "failed"}, states
            record = client.call("GetCapture", capture_id=running["capture_id"])
            record = record.get("capture", record)
            assert record["error"]["data"]["code"] == "interrupted", record
            folder = os.path.join(data, "captures", running["capture_id"])
            assert sorted(os.listdir(folder)) == ["capture.journal", "record.json"]
            assert os.path.getsize(os.path.join(folder, "capture.journal")) > 100
    finally:
        shutil.rmtree(root)


class SmallDisk:
    """A file system of its own, of so many KiB."""

    def __init__(self, kib):
        self.kib = kib

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="profd-test-disk-")
        if os.geteuid() != 0 or subprocess.call(["mount", "-t", "tmpfs", "-o", "size=%dk,mode=700" % self.kib, "tmpfs", self.path],
                                                stderr=subprocess.DEVNULL) != 0:
            os.rmdir(self.path)
            skip("a small file system cannot be mounted here")
        return self.path

    def __exit__(self, *_):
        subprocess.check_call(["umount", self.path])
        os.rmdir(self.path)

    def fill(self):
        with open(self.path + "/filler", "wb", buffering=0) as file:
            try:
                while file.write(b"x" * 4096):
                    pass
            except OSError:
                pass


def test_a_disk_that_fills_while_sampling_ends_the_capture_and_keeps_what_was_written():
    disk = SmallDisk(8192)
    with disk as path, Daemon() as daemon:
        client = daemon.connect()
        result = client.call("LaunchProcess", argv=FOREVER, stdio="null", profile={"output_dir": path, "hz": 999})
        client.wait_event("SamplingProfileProgress", capture_id=result["capture_id"])
        folder = os.path.join(path, result["capture_id"])
        journal = os.path.join(folder, "capture.journal")
        wait_until(lambda: os.path.getsize(journal) > 0, 10, "a journal on the disk")
        disk.fill()
        name, params = finished(client, result["capture_id"])
        client.call("StopProcess", build_id=result["build_id"], grace_ms=0)
        assert name == "SamplingProfileFailed" and params["error"]["data"]["code"] == "disk_full", (name, params)
        assert os.listdir(folder) == ["capture.journal"] and os.path.getsize(journal) > 0


def test_a_disk_that_is_full_for_the_journal_only_still_gives_artifacts():
    disk = SmallDisk(8192)
    with disk as path, Daemon() as daemon:
        client = daemon.connect()
        result = client.call("LaunchProcess", argv=FOREVER, stdio="null", profile={"output_dir": path, "hz": 999})
        folder = os.path.join(path, result["capture_id"])
        journal = os.path.join(folder, "capture.journal")
        wait_until(lambda: os.path.getsize(journal) > 0, 10, "a journal on the disk")
        disk.fill()
        # Room again as soon as the journal has failed, which its end in the log or an event shows.
        def ended():
            client.read_some(0.01)
            return any(e["method"] == "SamplingProfileProgress" and e["params"]["state"] != "sampling" for e in client.events) or \
                any(e["method"] in ("SamplingProfileFinished", "SamplingProfileFailed") for e in client.events)
        wait_until(ended, 20)
        os.unlink(path + "/filler")
        name, params = finished(client, result["capture_id"])
        client.call("StopProcess", build_id=result["build_id"], grace_ms=0)
        if name == "SamplingProfileFinished":
            assert params["reason"] == "disk_full" and params["samples"] > 0
            assert sum(read_folded(params["folded_path"]).values()) == params["samples"]
        else:
            assert params["error"]["data"]["code"] == "disk_full" and os.listdir(folder) == ["capture.journal"]


if __name__ == "__main__":
    main(globals())
