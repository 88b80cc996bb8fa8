"""What the daemon does in a given time: its graces, its idle exit, and ends that wait for nobody."""
import json
import os
import signal
import tempfile
import time

from harness import FOREVER, SANITIZED, Daemon, Gate, alive, capture_end, main, skip, wait_sampled, wait_until
from journals import JournalFile
from scripts import run, start
from waiting_analyzer import wait_symbolizing, waiting_analyzer


def test_a_program_that_ignores_the_signal_is_killed_after_the_grace():
    with Daemon() as daemon:
        client = daemon.connect()
        build_id = client.call("LaunchProcess", argv=["sh", "-c", "trap '' TERM; echo ready; sleep 60 & wait; wait"])["build_id"]
        client.wait_event("ProcessOutput")
        began = time.monotonic()
        assert client.call("StopProcess", build_id=build_id, grace_ms=300)["signal"] == "SIGKILL"
        assert 0.25 < time.monotonic() - began < 4


def test_the_end_is_told_although_a_grandchild_holds_the_output():
    with Daemon() as daemon:
        client = daemon.connect()
        began = time.monotonic()
        output, end = run(client, "sleep 60 & echo $!; exit 3")
        grandchild = int(output)
        try:
            assert end["exit_code"] == 3
            assert 0.4 < time.monotonic() - began < 10
            assert alive(grandchild)  # what a program leaves behind by itself is left alone
        finally:
            os.kill(grandchild, signal.SIGKILL)


def test_a_program_that_stopped_itself_can_be_ended():
    with Daemon() as daemon:
        client = daemon.connect()
        launched = start(client, "echo up; kill -STOP $$; sleep 60")
        wait_until(lambda: open("/proc/%d/stat" % launched["pid"]).read().rsplit(")", 1)[1].split()[0] == "T", 5, "the stop")
        began = time.monotonic()
        result = client.call("StopProcess", build_id=launched["build_id"], grace_ms=20000)
        assert result["signal"] == "SIGTERM" and time.monotonic() - began < 10


def test_a_signal_ends_captures_then_programs_then_the_daemon():
    with Daemon() as daemon:
        client = daemon.connect()
        launched = client.call("LaunchProcess", argv=FOREVER, profile={})
        wait_sampled(client, launched["capture_id"])
        began = time.monotonic()
        daemon.process.send_signal(signal.SIGTERM)
        name, params = capture_end(client, launched["capture_id"])
        assert name == "SamplingProfileFinished" and params["reason"] == "daemon_shutdown", params
        assert client.wait_event("ProcessExited")["signal"] == "SIGTERM"
        client.wait_event("DaemonStopping")
        assert daemon.process.wait(20) == 0 and not alive(launched["pid"])
        assert time.monotonic() - began < 10
        assert all(os.path.exists(path) for path in (params["folded_path"], params["svg_path"], params["metadata_path"]))


def test_a_second_signal_ends_it_at_once():
    with Daemon() as daemon:
        client = daemon.connect()
        launched = client.call("LaunchProcess", argv=["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done"])
        client.wait_event("ProcessOutput")
        daemon.process.send_signal(signal.SIGINT)
        wait_until(lambda: client.call("GetStatus")["state"] == "stopping")
        assert client.fails("LaunchProcess", argv=["true"]).code == "shutting_down"
        began = time.monotonic()
        daemon.process.send_signal(signal.SIGINT)
        assert daemon.process.wait(20) == 0
        assert time.monotonic() - began < 2
        wait_until(lambda: not alive(launched["pid"]))


def test_a_program_that_ignores_the_end_is_killed_within_the_grace():
    with Daemon() as daemon:
        client = daemon.connect()
        launched = client.call("LaunchProcess", argv=["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done"])
        client.wait_event("ProcessOutput")
        began = time.monotonic()
        assert client.call("Shutdown") == {}
        assert client.wait_event("ProcessExited")["signal"] == "SIGKILL"
        assert daemon.process.wait(20) == 0 and not alive(launched["pid"])
        assert 4 < time.monotonic() - began < 10


def test_a_second_signal_does_not_wait_for_the_analyzer_and_leaves_nothing_running():
    with tempfile.TemporaryDirectory() as root, waiting_analyzer() as (analyzer, _):
        with Daemon(data_dir=root + "/data", env={"PROFD_ANALYZER": analyzer}) as daemon:
            client = daemon.connect()
            launched = client.call("LaunchProcess", argv=FOREVER, stdio="null", profile={})
            wait_sampled(client, launched["capture_id"])
            children = daemon.children()
            daemon.process.send_signal(signal.SIGTERM)
            wait_symbolizing(client, launched["capture_id"])
            journal = os.path.join(client.call("GetCapture", capture_id=launched["capture_id"])["folder"], "capture.journal")
            wait_until(lambda: JournalFile(journal).has_end, 10, "the journal's end")
            children += daemon.children()
            assert len(set(children)) == 2, children
            began = time.monotonic()
            daemon.process.send_signal(signal.SIGTERM)
            assert daemon.process.wait(10) == 0 and time.monotonic() - began < 3
            assert not os.path.exists(daemon.socket_path)
            wait_until(lambda: all(not alive(pid) for pid in children), 5, "the end of the program and the analyzer")
        with Daemon(data_dir=root + "/data") as daemon:
            # The next daemon makes of the journal what this one had no time for.
            client = daemon.connect()
            record = client.call("WaitCapture", capture_id=launched["capture_id"])
            assert (record["state"], record["reason"]) == ("finished", "recovered"), record
            assert JournalFile(journal).good == os.path.getsize(journal) and JournalFile(journal).samples == record["samples"] > 0


def test_nobody_waits_for_a_daemon_that_nobody_needs():
    with Daemon("--idle-exit", "1") as daemon:
        client = daemon.connect()
        client.call("LaunchProcess", argv=["sleep", "2"], subscribe=False, stdio="null")
        time.sleep(1.3)
        assert client.call("Ping")
        client.close()
        time.sleep(1.3)
        assert daemon.process.poll() is None, "it ended within a second of its last program"
        assert daemon.process.wait(20) == 0


def test_a_connected_client_keeps_an_idle_daemon():
    with Daemon("--idle-exit", "1") as daemon:
        client = daemon.connect()
        client.call("Ping")
        time.sleep(2.5)
        client.call("Ping")
        client.close()
        began = time.monotonic()
        assert daemon.process.wait(10) == 0
        assert time.monotonic() - began > 0.8


def test_an_armed_capture_does_not_keep_an_idle_daemon_for_ever():
    with Daemon("--idle-exit", "1") as daemon:
        client = daemon.connect()
        with Gate(daemon, FOREVER) as gate:
            capture_id = client.call("StartSamplingProfile", pid=gate.pid)["capture_id"]
            client.close()
            time.sleep(1.2)
            assert daemon.process.poll() is None, "it ended while a capture was armed"
        assert daemon.process.wait(20) == 0 and not os.path.exists(daemon.socket_path)
        with open(os.path.join(daemon.data_dir, "captures", capture_id, "record.json")) as file:
            record = json.load(file)
        assert record["state"] == "failed" and record["error"]["data"]["code"] == "no_samples", record


def test_an_idle_daemon_is_small_and_sleeps():
    if SANITIZED:
        skip("a sanitizer's memory is not the daemon's")
    with Daemon("--idle-exit", "600") as daemon:
        client = daemon.connect()
        client.call("LaunchProcess", argv=["true"])
        client.wait_event("ProcessExited")

        def switches():
            total = 0
            folder = "/proc/%d/task" % daemon.process.pid
            for task in os.listdir(folder):
                with open(os.path.join(folder, task, "status")) as file:
                    total += sum(int(line.split()[1]) for line in file if "ctxt_switches" in line)
            return total

        time.sleep(1)
        before = switches()
        time.sleep(3)
        assert switches() == before, "it was woken %d times" % (switches() - before)
        assert daemon.status("RssAnon") <= 12 * 1024


if __name__ == "__main__":
    main(globals(), together=True)
