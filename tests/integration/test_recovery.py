"""Captures that a killed daemon left are finished by the next one."""
import contextlib
import errno
import os
import re
import shutil
import signal
import tempfile
import time

from harness import FOREVER, Daemon, capture_end, main, read_folded, target, wait_sampled, wait_until, write
from journals import JournalFile
from kept_captures import check_ended, check_recovered, has_warning, wait_all_ended
from nobody import NOBODY, as_nobody
from waiting_analyzer import wait_symbolizing, waiting_analyzer


def kill(daemon):
    daemon.process.kill()
    daemon.process.wait()
    daemon.clients.clear()


def restart(daemon, **env):
    daemon.env = dict(os.environ, **env)
    daemon.start()
    return daemon.connect()


def record_some(daemon, client, argv=FOREVER, **profile):
    """A capture that has some samples on the disk; its id and the path of its journal."""
    capture_id = client.call("LaunchProcess", argv=argv, stdio="null", profile=dict(progress_ms=50, **profile))["capture_id"]
    folder = os.path.join(profile.get("output_dir") or os.path.join(daemon.data_dir, "captures"), capture_id)
    journal = os.path.join(folder, "capture.journal")
    wait_until(lambda: JournalFile(journal).samples > 0, 20, "samples on the disk")
    return capture_id, journal


def named(record):
    return {frame for stack in read_folded(record["folded_path"]) for frame in stack}


def test_a_capture_of_a_killed_daemon_is_finished_by_the_next():
    with waiting_analyzer() as (analyzer, go), Daemon() as daemon:
        client = daemon.connect()
        capture_id, journal = record_some(daemon, client, label="mine")
        build = client.call("ListProcesses")["processes"][0]["build_id"]
        began = client.call("GetCapture", capture_id=capture_id)["started_unix_us"]
        client.call("UpdateCapture", capture_id=capture_id, pinned=True)
        kill(daemon)
        on_disk = JournalFile(journal)
        client = restart(daemon, PROFD_ANALYZER=analyzer)
        # It is there at once, and the daemon answers meanwhile.
        record, = client.call("ListCaptures")["captures"]
        assert record["state"] == "symbolizing" and record["label"] == "mine" and record["pinned"] is True, record
        assert client.fails("DeleteCapture", capture_id=capture_id).code == "capture_busy"
        client.call("Ping")
        other = client.call("LaunchProcess", argv=["true"], stdio="null")
        client.wait_event("ProcessExited", build_id=other["build_id"])
        client.call("Subscribe", capture_id=capture_id)
        number = client.send("WaitCapture", capture_id=capture_id)
        write(os.path.dirname(go), "go", "", 0o644)
        record = client.wait_reply(number)
        check_recovered(record)
        assert record["samples"] == on_disk.samples and record["build_id"] == build and record["label"] == "mine"
        assert began <= record["started_unix_us"] <= record["ended_unix_us"] <= time.time() * 1e6, record
        client.wait_event("CaptureRecovered", capture_id=capture_id)
        names = [line.get("method") for line in client.lines if line.get("params", {}).get("capture_id") == capture_id]
        assert names[-2:] == ["SamplingProfileFinished", "CaptureRecovered"], names
        assert names.count("SamplingProfileFinished") == 1
        text, = [w["message"] for w in record["warnings"] if w["code"] == "recovered"]
        until = re.search(r"(\d+-\d+-\d+ \d+:\d+:\d+\.\d\d\d) UTC", text).group(1)
        assert until == time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(record["ended_unix_us"] // 1000000)) + \
            ".%03d" % (record["ended_unix_us"] // 1000 % 1000), (until, record["ended_unix_us"])
        kill(daemon)
        client = restart(daemon)
        assert client.call("ListCaptures")["captures"] == [record], "the end of it was kept"
        # The event is kept for those who come late.
        assert client.call("GetStatus")["captures"] == 0


def test_a_torn_journal_is_read_to_its_last_whole_chunk():
    with Daemon() as daemon:
        client = daemon.connect()
        torn = {}
        # Cut in the last chunk; something behind it; a hole in it; the same chunks once more.
        for tear in (lambda data, good: data[:good - 7], lambda data, good: data[:good] + os.urandom(1000),
                     lambda data, good: data[:good - 30] + bytes(30), lambda data, good: data[:good] + data[:good]):
            capture_id, journal = record_some(daemon, client, hz=4000)
            torn[capture_id] = (journal, tear)
        wait_until(lambda: all(JournalFile(journal).chunks > 1 for journal, _ in torn.values()), 20, "two chunks each")
        kill(daemon)
        for journal, tear in torn.values():
            whole = JournalFile(journal)
            with open(journal, "wb") as file:
                file.write(tear(whole.data, whole.good))
        client = restart(daemon)
        records = wait_all_ended(client)
        assert {record["capture_id"] for record in records} == set(torn)
        for record in records:
            check_recovered(record)
            assert has_warning(record, "journal_damaged"), record["warnings"]


def test_without_samples_it_is_failed_with_interrupted():
    with Daemon() as daemon:
        client = daemon.connect()
        capture_id = client.call("LaunchProcess", argv=["sleep", "60"], stdio="null", profile={})["capture_id"]
        held = client.call("LaunchProcess", argv=FOREVER, stdio="null", hold=True)
        armed = client.call("StartSamplingProfile", build_id=held["build_id"])["capture_id"]
        kill(daemon)
        client = restart(daemon)
        for each in (capture_id, armed):
            record = client.call("WaitCapture", capture_id=each)
            check_ended(record)
            assert record["state"] == "failed" and record["error"]["data"]["code"] == "interrupted", record
            assert record["error"]["data"]["hint"] and each in record["error"]["message"]


def append(path):
    """False while it still runs."""
    try:
        with open(path, "ab") as file:
            return file.write(b"x")
    except OSError as error:
        return error.errno != errno.ETXTBSY


def test_images_are_opened_again_only_when_they_are_the_same_files():
    with tempfile.TemporaryDirectory() as folder, Daemon() as daemon:
        client = daemon.connect()
        ids = {}
        for name in ("same", "replaced", "gone", "link", "changed"):
            path = os.path.join(folder, name)
            shutil.copy(target("steady"), path)
            ids[name], _ = record_some(daemon, client, [path, "20000"])
        time.sleep(0.3)
        kill(daemon)
        path = {name: os.path.join(folder, name) for name in ids}
        os.unlink(path["replaced"])
        shutil.copy(target("shares"), path["replaced"])
        os.unlink(path["gone"])
        os.unlink(path["link"])
        os.symlink(path["same"], path["link"])
        wait_until(lambda: append(path["changed"]), 10, "the end of the program, which keeps its file from being written")
        client = restart(daemon)
        for name, capture_id in ids.items():
            record = client.call("WaitCapture", capture_id=capture_id)
            check_recovered(record)
            frames = named(record)
            if name == "same":
                assert "main" in frames, frames
            else:
                assert "main" not in frames and any(frame.startswith("[%s+0x" % name) for frame in frames), (name, frames)


def test_a_recovery_that_is_killed_is_recovered_again():
    with waiting_analyzer() as (analyzer, _), tempfile.TemporaryDirectory() as elsewhere, Daemon() as daemon:
        client = daemon.connect()
        ids = [record_some(daemon, client)[0], record_some(daemon, client, output_dir=elsewhere)[0]]
        kill(daemon)
        for _ in range(2):
            client = restart(daemon, PROFD_ANALYZER=analyzer)
            wait_until(lambda: daemon.children(), 10, "an analyzer")
            assert [record["state"] for record in client.call("ListCaptures")["captures"]] == ["symbolizing"] * 2
            kill(daemon)
        client = restart(daemon)
        for capture_id in ids:
            check_recovered(client.call("WaitCapture", capture_id=capture_id))
        assert sorted(os.listdir(os.path.join(elsewhere, ids[1]))) == \
            ["capture.folded", "capture.journal", "capture.json", "capture.svg", "capture.symbols"]


def test_a_daemon_that_is_asked_to_end_leaves_recoveries_to_the_next():
    with waiting_analyzer() as (analyzer, _), Daemon() as daemon:
        client = daemon.connect()
        ids = [record_some(daemon, client)[0] for _ in range(3)]
        kill(daemon)
        client = restart(daemon, PROFD_ANALYZER=analyzer)
        wait_until(lambda: daemon.children(), 10, "an analyzer")
        analyzers = daemon.children()
        client.call("Shutdown", mode="now")
        assert daemon.process.wait(10) == 0
        wait_until(lambda: not any(os.path.exists("/proc/%d" % pid) for pid in analyzers), 5, "the end of the analyzer")
        client = restart(daemon)
        for capture_id in ids:
            check_recovered(client.call("WaitCapture", capture_id=capture_id))


def test_an_analyzer_that_always_crashes_fails_it_once_and_for_all():
    with tempfile.TemporaryDirectory() as folder, Daemon() as daemon:
        crashing = write(folder, "analyzer", "#!/bin/sh\nkill -SEGV $$\n", 0o755)
        client = daemon.connect()
        capture_id, journal = record_some(daemon, client)
        kill(daemon)
        client = restart(daemon, PROFD_ANALYZER=crashing)
        record = client.call("WaitCapture", capture_id=capture_id)
        check_ended(record)
        assert record["state"] == "failed" and record["error"]["data"]["code"] == "internal", record
        assert JournalFile(journal).samples > 0
        kill(daemon)
        client = restart(daemon)
        assert client.call("GetCapture", capture_id=capture_id) == record


def test_a_capture_that_was_being_written_is_whole():
    with waiting_analyzer() as (analyzer, _), Daemon(env={"PROFD_ANALYZER": analyzer}) as daemon:
        client = daemon.connect()
        capture_id, journal = record_some(daemon, client)
        client.send("StopCapture", capture_id=capture_id)
        wait_symbolizing(client, capture_id)
        wait_until(lambda: JournalFile(journal).has_end, 10, "the journal's end")
        kill(daemon)
        client = restart(daemon)
        record = client.call("WaitCapture", capture_id=capture_id)
        check_recovered(record)
        assert "its end" in [w["message"] for w in record["warnings"] if w["code"] == "recovered"][0]


def test_a_daemon_that_nobody_needs_ends_after_its_recoveries():
    with Daemon() as daemon:
        record_some(daemon, daemon.connect())
        kill(daemon)
        daemon.args = ["--idle-exit", "1"]
        daemon.start()
        assert daemon.process.wait(20) == 0


def test_an_ordinary_users_captures_are_recovered():
    as_nobody()
    with Daemon(user=NOBODY) as daemon:
        client = daemon.connect()
        capture_id, _ = record_some(daemon, client)
        kill(daemon)
        client = restart(daemon)
        record = client.call("WaitCapture", capture_id=capture_id)
        check_recovered(record)
        assert os.stat(record["folded_path"]).st_uid == NOBODY


if __name__ == "__main__":
    main(globals(), together=True)
