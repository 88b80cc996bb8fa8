"""How the daemon ends: captures finish, programs end, nothing is left."""
import os
import signal

from harness import FOREVER, Daemon, Gate, alive, capture_end, main, read_folded, wait_sampled, wait_until, write
from waiting_analyzer import wait_symbolizing, waiting_analyzer


def test_a_drain_refuses_what_is_new_and_lets_captures_end():
    with Daemon() as daemon:
        client = daemon.connect()
        launched = client.call("LaunchProcess", argv=FOREVER, profile={"duration_ms": 800})
        client.call("Shutdown", mode="drain")
        for method, params in (("LaunchProcess", {"argv": ["true"]}),
                               ("StartSamplingProfile", {"build_id": launched["build_id"]})):
            assert client.fails(method, **params).code == "shutting_down"
        assert client.call("GetStatus")["state"] == "draining"
        name, params = capture_end(client, launched["capture_id"])
        assert name == "SamplingProfileFinished" and params["reason"] == "duration", params
        assert daemon.process.wait(20) == 0 and not alive(launched["pid"])


def test_now_kills_the_programs_and_ends():
    with Daemon() as daemon:
        client = daemon.connect()
        launched = client.call("LaunchProcess", argv=FOREVER, profile={})
        number = client.send("Shutdown", mode="now")
        assert client.wait_reply(number) == {}
        client.wait_event("DaemonStopping")
        assert daemon.process.wait(5) == 0
        wait_until(lambda: not alive(launched["pid"]))
    with Daemon() as daemon:
        assert daemon.connect().fails("Shutdown", mode="soon").code == "bad_params"


def test_now_brings_what_was_gathered_to_the_journal():
    with Daemon() as daemon:
        client = daemon.connect()
        launched = client.call("LaunchProcess", argv=FOREVER, stdio="null", profile={"hz": 5000, "progress_ms": 50})
        wait_until(lambda: client.call("GetCapture", capture_id=launched["capture_id"])["samples"] > 500, 20, "samples")
        seen = client.call("GetCapture", capture_id=launched["capture_id"])
        client.call("Shutdown", mode="now")
        assert daemon.process.wait(5) == 0
        client.drain(1)
        ends = [event["params"] for event in client.events if event["method"] in ("SamplingProfileFinished", "SamplingProfileFailed")]
        if ends:
            assert ends[0]["reason"] in ("daemon_shutdown", "target_exited") and ends[0]["samples"] >= seen["samples"], ends
        journal = os.path.join(daemon.data_dir, "captures", launched["capture_id"], "capture.journal")
        # 10 bytes a sample and more.
        assert os.path.getsize(journal) > 5 * seen["samples"], (os.path.getsize(journal), seen["samples"])


def test_whoever_still_waits_is_answered():
    with Daemon() as daemon:
        client = daemon.connect()
        stubborn = client.call("LaunchProcess", argv=["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done"])
        client.wait_event("ProcessOutput")
        other = daemon.connect()
        held = other.call("LaunchProcess", argv=["true"], hold=True)
        waits = [other.send("StopProcess", build_id=stubborn["build_id"], grace_ms=60000),
                 other.send("ResumeProcess", build_id="none"), other.send("StopProcess", build_id=held["build_id"])]
        client.call("Shutdown", mode="now")
        assert daemon.process.wait(5) == 0
        other.drain(1)
        answered = [len(other.replies.get(str(number), [])) for number in waits]
        assert answered == [1, 1, 1], other.replies
        for number in (waits[0], waits[2]):
            reply = other.replies[str(number)][0]
            assert "result" in reply or reply["error"]["data"]["code"] == "shutting_down", reply


def test_a_signal_while_the_analyzer_runs_waits_for_it():
    with waiting_analyzer() as (analyzer, go), Daemon(env={"PROFD_ANALYZER": analyzer}) as daemon:
        client = daemon.connect()
        launched = client.call("LaunchProcess", argv=FOREVER, stdio="null", profile={"duration_ms": 300})
        wait_symbolizing(client, launched["capture_id"])
        daemon.process.send_signal(signal.SIGTERM)
        assert client.wait_event("ProcessExited")["signal"] == "SIGTERM"
        assert daemon.process.poll() is None and len(daemon.children()) == 1
        write(os.path.dirname(go), "go", "", 0o644)
        name, params = capture_end(client, launched["capture_id"])
        assert name == "SamplingProfileFinished" and params["reason"] == "duration", params
        assert all(os.path.exists(params[key]) for key in ("folded_path", "svg_path", "metadata_path"))
        client.wait_event("DaemonStopping")
        assert daemon.process.wait(20) == 0 and not os.path.exists(daemon.socket_path)


def test_a_signal_while_several_captures_run_finishes_each():
    with Daemon() as daemon, Gate(daemon, FOREVER) as gate:
        client = daemon.connect()
        ids = [client.call("LaunchProcess", argv=FOREVER, stdio="null", profile={"progress_ms": 50})["capture_id"] for _ in range(2)]
        ids.append(client.call("StartSamplingProfile", pid=gate.pid, progress_ms=50)["capture_id"])
        gate.go()
        wait_until(lambda: client.call("GetCapture", capture_id=ids[2])["state"] == "sampling", 10, "the program behind the gate")
        for capture_id in ids:
            wait_sampled(client, capture_id)
        children = daemon.children()
        daemon.process.send_signal(signal.SIGTERM)
        for capture_id in ids:
            name, params = capture_end(client, capture_id)
            assert name == "SamplingProfileFinished" and params["reason"] == "daemon_shutdown", params
            assert sum(read_folded(params["folded_path"]).values()) == params["samples"] > 0
        assert daemon.process.wait(20) == 0 and not os.path.exists(daemon.socket_path)
        assert all(not alive(pid) for pid in children) and gate.process.poll() is None, "what it did not launch is not its to end"


if __name__ == "__main__":
    main(globals())
