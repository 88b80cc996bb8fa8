"""A disk that fills: what was written before is kept whole, and the daemon goes on."""
import os
import resource
import tempfile

from disks import fill, small_disk
from footprint import check_as_before, check_closed_as_before, settled
from harness import FOREVER, Daemon, capture_end, main, profctl, read_folded, wait_until, write
from journals import JournalFile
from refusals import check_error, check_told
from waiting_analyzer import wait_symbolizing, waiting_analyzer


def start_on(client, folder, **extra):
    """A capture into folder that has written some of its journal: its id, its folder, its journal's path."""
    result = client.call("LaunchProcess", argv=FOREVER, stdio="null", build_id="b", profile=dict(output_dir=folder, hz=4000, **extra))
    path = os.path.join(folder, result["capture_id"])
    journal = os.path.join(path, "capture.journal")
    wait_until(lambda: 0 < JournalFile(journal).good == os.path.getsize(journal), 10, "a chunk of the journal on the disk")
    return result["capture_id"], path, journal


def test_a_disk_that_is_full_while_sampling_gives_what_was_written_before():
    with small_disk(4096) as disk, waiting_analyzer() as (analyzer, go), Daemon(env={"PROFD_ANALYZER": analyzer}) as daemon:
        client = daemon.connect()
        capture_id, folder, path = start_on(client, disk)
        fill(disk)
        wait_symbolizing(client, capture_id)
        os.unlink(disk + "/filler")
        write(os.path.dirname(go), "go", "", 0o644)
        name, params = capture_end(client, capture_id)
        assert name == "SamplingProfileFinished" and params["reason"] == "disk_full", params
        journal = JournalFile(path)
        journal.check_cut()
        assert 0 < journal.samples == sum(read_folded(params["folded_path"]).values()), (journal.counts, params)
        assert params["samples"] == journal.samples, (params["samples"], journal.samples)
        client.call("StopProcess", build_id="b", grace_ms=0)


def test_a_disk_that_is_full_for_the_artifacts_fails_the_capture_and_keeps_its_whole_journal():
    with small_disk(4096) as disk, waiting_analyzer() as (analyzer, go), Daemon(env={"PROFD_ANALYZER": analyzer}) as daemon:
        client = daemon.connect()
        capture_id, folder, path = start_on(client, disk, duration_ms=1200)
        wait_symbolizing(client, capture_id)
        wait_until(lambda: JournalFile(path).has_end, 10, "the journal's end")
        fill(disk)
        write(os.path.dirname(go), "go", "", 0o644)
        name, params = capture_end(client, capture_id)
        assert name == "SamplingProfileFailed" and params["error"]["data"]["code"] == "disk_full", params
        assert params["error"]["data"]["hint"] and "capture." in params["error"]["message"], params["error"]
        assert os.listdir(folder) == ["capture.journal"], os.listdir(folder)
        journal, record = JournalFile(path), client.call("GetCapture", capture_id=capture_id)
        assert journal.good == len(journal.data) and journal.has_end and journal.samples > 100
        assert record["state"] == "failed" and record["error"] == params["error"] and record["samples"] == journal.samples
        client.call("StopProcess", build_id="b", grace_ms=0)


def test_a_file_size_limit_is_a_full_disk():
    with Daemon() as daemon, tempfile.TemporaryDirectory() as folder:
        client = daemon.connect()
        capture_id, folder, path = start_on(client, folder)
        # No chunk of the journal ends exactly here: the last one is cut away again.
        limit = os.path.getsize(path) + 100
        before = resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        name, params = capture_end(client, capture_id)
        resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, before)
        error = params.get("error", {"data": {"code": params.get("reason")}})
        assert error["data"]["code"] == "disk_full", (name, params)
        journal = JournalFile(path)
        journal.check_cut()
        assert len(journal.data) <= limit, (len(journal.data), limit)
        assert client.call("GetProcess", build_id="b")["state"] == "running"
        client.call("StopProcess", build_id="b", grace_ms=0)


def test_a_data_folder_on_a_full_disk_refuses_captures_and_comes_back():
    with small_disk(1024) as disk, Daemon(data_dir=os.path.join(disk, "data")) as daemon:
        client = daemon.connect()
        client.call("LaunchProcess", argv=FOREVER, stdio="null", build_id="running")
        fill(disk)
        before = settled(daemon, client)
        mark = os.path.join(daemon.root, "mark")
        for _ in range(3):
            check_error(client.fails("StartSamplingProfile", build_id="running"), "disk_full", "record.json", "start")
            check_as_before(daemon, client, before, "a capture on a full disk")
            check_error(client.fails("LaunchProcess", argv=["touch", mark], profile={}), "disk_full", "record.json", "launch")
            check_as_before(daemon, client, before, "a profiled launch on a full disk")
        done = profctl(daemon, "record", "touch", mark)
        check_told(done, 125, "record.json", "profctl")
        check_as_before(daemon, client, before, "profctl on a full disk")
        assert not os.path.exists(mark)
        os.unlink(disk + "/filler")
        capture_id = client.call("StartSamplingProfile", build_id="running", duration_ms=200)["capture_id"]
        assert capture_end(client, capture_id)[0] == "SamplingProfileFinished"


def test_a_recorded_program_keeps_its_exit_status_when_the_disk_is_full():
    with small_disk(2048) as disk, Daemon() as daemon:
        client = daemon.connect()
        before = settled(daemon, client)
        script = "cat /dev/zero >%s/filler 2>/dev/null; i=0; while [ $i -lt 900000 ]; do i=$((i+1)); done; exit 5" % disk
        done = profctl(daemon, "record", "-F", "2000", "-o", disk, "sh", "-c", script)
        check_told(done, 5, "No space left", "a full disk")
        record, = client.call("ListCaptures")["captures"]
        assert record["state"] == "failed" and record["error"]["data"]["code"] == "disk_full", record
        assert os.listdir(record["folder"]) == ["capture.journal"]
        journal = JournalFile(os.path.join(record["folder"], "capture.journal"))
        assert journal.good == len(journal.data), (journal.good, len(journal.data))
        check_closed_as_before(daemon, before)


def test_a_disk_that_fills_while_sampling_ends_the_capture_and_keeps_what_was_written():
    with small_disk(8192) as path, Daemon() as daemon:
        client = daemon.connect()
        result = client.call("LaunchProcess", argv=FOREVER, stdio="null", profile={"output_dir": path, "hz": 999})
        client.wait_event("SamplingProfileProgress", capture_id=result["capture_id"])
        folder = os.path.join(path, result["capture_id"])
        journal = os.path.join(folder, "capture.journal")
        wait_until(lambda: os.path.getsize(journal) > 0, 10, "a journal on the disk")
        fill(path)
        name, params = capture_end(client, result["capture_id"])
        client.call("StopProcess", build_id=result["build_id"], grace_ms=0)
        assert name == "SamplingProfileFailed" and params["error"]["data"]["code"] == "disk_full", (name, params)
        assert os.listdir(folder) == ["capture.journal"] and os.path.getsize(journal) > 0


def test_a_disk_that_is_full_for_the_journal_only_still_gives_artifacts():
    with small_disk(8192) as path, Daemon() as daemon:
        client = daemon.connect()
        result = client.call("LaunchProcess", argv=FOREVER, stdio="null", profile={"output_dir": path, "hz": 999})
        folder = os.path.join(path, result["capture_id"])
        journal = os.path.join(folder, "capture.journal")
        wait_until(lambda: os.path.getsize(journal) > 0, 10, "a journal on the disk")
        fill(path)
        # Room again as soon as the journal has failed, which its end in the log or an event shows.
        def ended():
            client.read_some(0.01)
            return any(e["method"] == "SamplingProfileProgress" and e["params"]["state"] != "sampling" for e in client.events) or \
                any(e["method"] in ("SamplingProfileFinished", "SamplingProfileFailed") for e in client.events)
        wait_until(ended, 20)
        os.unlink(path + "/filler")
        name, params = capture_end(client, result["capture_id"])
        client.call("StopProcess", build_id=result["build_id"], grace_ms=0)
        if name == "SamplingProfileFinished":
            assert params["reason"] == "disk_full" and params["samples"] > 0
            assert sum(read_folded(params["folded_path"]).values()) == params["samples"]
        else:
            assert params["error"]["data"]["code"] == "disk_full" and os.listdir(folder) == ["capture.journal"]


if __name__ == "__main__":
    main(globals(), together=True)
