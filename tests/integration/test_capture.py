"""Captures from the wish to the artifacts, on real programs."""
import os
import shutil
import signal
import tempfile

from capture_runs import FOREVER, busy, profile, warm_up, Unchanged
from harness import Daemon, capture_end, main, program, read_folded, wait_until


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
                with open(params["svg_path"], encoding="utf-8") as picture:
                    assert "functions are not named: " + warning[0]["message"].split(";")[0] in picture.read(), warning
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
            name, params = capture_end(client, build["capture_id"])
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
            journal = os.path.join(data, "captures", running["capture_id"], "capture.journal")
            wait_until(lambda: os.path.getsize(journal) > 100, 10, "the first chunk of the journal")
            daemon.process.kill()
            daemon.process.wait()
            os.kill(running["pid"], signal.SIGKILL) if os.path.exists("/proc/%d" % running["pid"]) else None
        with Daemon(data_dir=data) as daemon:
            client = daemon.connect()
            captures = client.call("ListCaptures")["captures"]
            assert [c["capture_id"] for c in captures] == [done["capture_id"], running["capture_id"]], captures
            assert captures[0]["state"] == "finished" and captures[0]["reason"] == "target_exited"
            record = client.call("WaitCapture", capture_id=running["capture_id"])
            assert record["state"] == "finished" and record["reason"] == "recovered", record
            assert os.path.getsize(journal) > 100 and sum(read_folded(record["folded_path"]).values()) == record["samples"]
    finally:
        shutil.rmtree(root)


if __name__ == "__main__":
    main(globals())
