"""SymbolizeCapture: names made again from the journal, the files that are left, and what was known before."""
import contextlib
import json
import os
import random
import shutil
import signal
import struct
import tempfile
import time

from capture_runs import Unchanged, warm_up
from disks import fill, small_disk
from harness import FOREVER, Daemon, ProfdError, capture_end, main, profctl, program, read_folded, target, wait_sampled, wait_until, write
from kept_captures import PATHS, check_ended, has_warning
from waiting_analyzer import wait_symbolizing, waiting_analyzer


@contextlib.contextmanager
def failing_analyzer():
    """An analyzer that exits with 3 while the file "broken" is there, and waits while "wait" is."""
    with tempfile.TemporaryDirectory() as folder:
        script = "#!/bin/sh\n[ -e %s/broken ] && exit 3\nwhile [ -e %s/wait ]; do sleep 0.02; kill -0 $PPID || exit 1; done\nexec %s \"$@\"\n"
        yield write(folder, "analyzer", script % (folder, folder, program("profd-analyzer")), 0o755), folder


def record(client, argv, **profile):
    launched = client.call("LaunchProcess", argv=argv, stdio="null", profile=profile)
    return client.call("WaitCapture", capture_id=launched["capture_id"], timeout_ms=60000)


def names_in(record):
    return {frame for stack in read_folded(record["folded_path"]) for frame in stack}


def refusal(client, number):
    try:
        return client.wait_reply(number)
    except ProfdError as error:
        return error


def contents(record):
    found = {}
    for name in os.listdir(record["folder"]):
        with open(os.path.join(record["folder"], name), "rb") as file:
            found[name] = file.read()
    return found


def ends(client, capture_id):
    return [event["method"] for event in client.events if event["params"].get("capture_id") == capture_id]


def test_names_stay_when_the_program_is_gone():
    with Daemon() as daemon, tempfile.TemporaryDirectory() as folder:
        client = daemon.connect()
        path = shutil.copy(target("shares"), folder)
        before = record(client, [path, "2", "200", "0"], label="first")
        assert {"heavy", "light"} <= names_in(before)
        with open(before["metadata_path"]) as file:
            told_before = json.load(file)
        stacks, told = read_folded(before["folded_path"]), list(ends(client, before["capture_id"]))
        os.unlink(path)
        shutil.copy(target("recursion"), path)  # and another file has its place
        for name in ("capture.folded", "capture.svg", "capture.json"):
            os.unlink(os.path.join(before["folder"], name))
        client.call("UpdateCapture", capture_id=before["capture_id"], label="second", pinned=True)
        after = client.call("SymbolizeCapture", capture_id=before["capture_id"])
        check_ended(after)
        assert read_folded(after["folded_path"]) == stacks
        assert after["label"] == "second" and after["pinned"] is True
        for member in before:
            if member not in ("artifacts", "label", "pinned"):
                assert after[member] == before[member], (member, before[member], after[member])
        assert client.call("GetCapture", capture_id=before["capture_id"]) == after
        with open(after["metadata_path"]) as file:
            told_now = json.load(file)
        assert told_now["reason"] == "target_exited" and told_now == dict(told_before, label="second", artifacts=told_now["artifacts"],
                                                                          functions=told_now["functions"]), (told_before, told_now)
        assert told_now["functions"] == told_before["functions"], (told_before["functions"], told_now["functions"])
        client.call("Ping")
        assert ends(client, before["capture_id"]) == told, "an event told of it"
        assert os.stat(os.path.join(after["folder"], "capture.symbols")).st_mode & 0o777 == 0o600


def check_a_later_naming(client, folder):
    write(folder, "broken", "", 0o644)
    failed = record(client, [target("shares"), "1", "100", "0"])
    assert failed["state"] == "failed" and failed["error"]["data"]["detail"] == "analyzer", failed
    error = client.fails("SymbolizeCapture", capture_id=failed["capture_id"])
    assert error.code == "internal" and "status 3" in error.message, error.error
    assert client.call("GetCapture", capture_id=failed["capture_id"]) == failed
    assert set(os.listdir(failed["folder"])) == {"capture.journal", "record.json"}, os.listdir(failed["folder"])
    os.unlink(os.path.join(folder, "broken"))
    after = client.call("SymbolizeCapture", capture_id=failed["capture_id"])
    check_ended(after)
    assert {"heavy", "light"} <= names_in(after) and after["reason"] == "target_exited", after


def test_what_was_not_named_at_its_end_can_be_named_later():
    with failing_analyzer() as (analyzer, folder), Daemon(env={"PROFD_ANALYZER": analyzer}) as daemon:
        client = daemon.connect()
        warm_up(client)
        with Unchanged(daemon):
            check_a_later_naming(client, folder)


def test_a_capture_that_was_finished_unnamed_is_named_and_its_warning_goes():
    with tempfile.TemporaryDirectory() as folder:
        # The first of the two looks at each capture fails: the one that would look into files.
        script = "#!/bin/sh\nif [ -e %s/once ]; then rm %s/once; exit 3; fi\nexec %s \"$@\"\n" % (folder, folder, program("profd-analyzer"))
        analyzer = write(folder, "analyzer", script, 0o755)
        with Daemon(env={"PROFD_ANALYZER": analyzer}) as daemon:
            client = daemon.connect()
            write(folder, "once", "", 0o644)
            before = record(client, [target("shares"), "1", "100", "0"])
            assert before["state"] == "finished" and has_warning(before, "analyzer_failed"), before
            hint, = [warning["hint"] for warning in before["warnings"] if warning["code"] == "analyzer_failed"]
            assert "profctl symbolize " + before["capture_id"] in hint, hint
            # Of files that nobody looked into, it is not said what they lack.
            assert not has_warning(before, "unsymbolized"), before["warnings"]
            with open(before["metadata_path"]) as file:
                remedies = json.load(file)["quality"]["remedies"]
            assert "not_named" in [remedy["what"] for remedy in remedies] and "stripped" not in [remedy["what"] for remedy in remedies], remedies
            assert not names_in(before) & {"heavy", "light"}, names_in(before)
            done = profctl(daemon, "symbolize", "--last")
            assert done.returncode == 0 and "heavy" in done.stdout and before["capture_id"] in done.stdout, done
            after = client.call("GetCapture", capture_id=before["capture_id"])
            assert {"heavy", "light"} <= names_in(after) and not has_warning(after, "analyzer_failed"), after
            again = client.call("SymbolizeCapture", capture_id=before["capture_id"])
            assert again == after, "once more changes something"


def damaged(before, at):
    """The journal with another byte there."""
    with open(os.path.join(before["folder"], "capture.journal"), "r+b") as file:
        file.seek(at if at >= 0 else os.path.getsize(file.name) + at)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 0x55]))


def test_what_is_there_is_not_replaced_by_less():
    with Daemon() as daemon, tempfile.TemporaryDirectory() as folder:
        client = daemon.connect()
        # Samples: of a journal of several chunks the last is damaged, then the first.
        before = record(client, [target("shares"), "2", "1500", "0"])
        files = {name: data for name, data in contents(before).items() if name != "capture.journal"}
        for at, words in ((-200, "of its %d samples can be read" % before["samples"]), (100, "holds no samples before that")):
            damaged(before, at)
            error = client.fails("SymbolizeCapture", capture_id=before["capture_id"])
            assert error.code == "io" and "damaged at byte " in error.message and words in error.message, error.error
            assert "stays as it was" in error.hint, error.error
            assert {name: data for name, data in contents(before).items() if name != "capture.journal"} == files
            assert client.call("GetCapture", capture_id=before["capture_id"]) == before
        # Names: the program and what was known of it are gone.
        path = shutil.copy(target("shares"), folder)
        before = record(client, [path, "1", "100", "0"])
        os.unlink(path)
        os.unlink(os.path.join(before["folder"], "capture.symbols"))
        files = contents(before)
        error = client.fails("SymbolizeCapture", capture_id=before["capture_id"])
        assert error.code == "io" and "names of the capture" in error.message and "capture.symbols" in error.hint, error.error
        assert contents(before) == files and client.call("GetCapture", capture_id=before["capture_id"]) == before


def test_a_broken_file_is_not_taken_for_a_stripped_one():
    with Daemon() as daemon, tempfile.TemporaryDirectory() as folder:
        client = daemon.connect()
        # Neither the kernel nor the loader looks at sections: the program runs.
        with open(target("shares"), "rb") as file:
            whole = file.read()
        at, = struct.unpack_from("<Q", whole, 0x28)
        count, = struct.unpack_from("<H", whole, 0x3C)
        noise = random.Random(5)
        table = lambda bytes_: whole[:at] + bytes_ + whole[at + 64 * count:]
        header = lambda offset, entry_bytes: whole[:0x28] + struct.pack("<Q", offset) + whole[0x30:0x3A] + struct.pack("<H", entry_bytes) + whole[0x3C:]
        links = bytearray(whole[at:at + 64 * count])
        for entry in range(count):
            if struct.unpack_from("<I", links, 64 * entry + 4)[0] in (2, 11):  # SHT_SYMTAB, SHT_DYNSYM
                struct.pack_into("<I", links, 64 * entry + 0x28, 9999)
        for broken in (header(2**63 - 1, 64), header(64, 3), header(2**20, 64), table(noise.randbytes(64 * count)), table(bytes(64 * count)), table(bytes(links))):
            path = write(folder, "shares", "", 0o755)
            with open(path, "wb") as file:
                file.write(broken)
            ended = record(client, [path, "1", "100", "0"])
            with open(ended["metadata_path"]) as file:
                told = json.load(file)
            image, = [image for image in told["images"] if image["path"] == path]
            assert "readelf" in image["fix"], image
            assert "file_unreadable" in [remedy["what"] for remedy in told["quality"]["remedies"]], told["quality"]
            os.unlink(path)


def test_wrong_captures_are_refused():
    with waiting_analyzer() as (analyzer, go), Daemon(env={"PROFD_ANALYZER": analyzer}) as daemon:
        client = daemon.connect()
        assert client.fails("SymbolizeCapture", capture_id="nothing").code == "capture_not_found"
        assert client.fails("SymbolizeCapture").number == -32602
        assert client.fails("SymbolizeCapture", capture_id="nothing", symbol_path=["/x"]).code == "unsupported"
        running = client.call("LaunchProcess", argv=FOREVER, stdio="null", build_id="b", profile={})["capture_id"]
        wait_sampled(client, running)
        error = client.fails("SymbolizeCapture", capture_id=running)
        assert error.code == "capture_busy" and "sampling" in error.message, error.error
        client.send("StopCapture", capture_id=running)
        wait_symbolizing(client, running)
        assert client.fails("SymbolizeCapture", capture_id=running).code == "capture_busy"
        write(os.path.dirname(go), "go", "", 0o644)
        ended = client.call("WaitCapture", capture_id=running)
        # One at a time, and it is not deleted meanwhile.
        os.unlink(go)
        number = client.send("SymbolizeCapture", capture_id=running)
        for method in ("SymbolizeCapture", "DeleteCapture"):
            error = client.fails(method, capture_id=running)
            assert error.code == "capture_busy" and "being made again" in error.message, error.error
        assert client.call("GetCapture", capture_id=running) == ended
        write(os.path.dirname(go), "go", "", 0o644)
        assert client.wait_reply(number)["capture_id"] == running
        # Whose journal is gone or empty.
        journal = os.path.join(ended["folder"], "capture.journal")
        with open(journal, "wb"):
            pass
        error = client.fails("SymbolizeCapture", capture_id=running)
        assert error.code == "io" and "none of its samples" in error.message and "stays as it was" in error.hint, error.error
        os.unlink(journal)
        error = client.fails("SymbolizeCapture", capture_id=running)
        assert error.code == "io" and "capture.journal" in error.message, error.error
        check_paths(client.call("GetCapture", capture_id=running))
        idle = record(client, ["sleep", "0.1"], hz=1)
        assert idle["state"] == "failed" and client.fails("SymbolizeCapture", capture_id=idle["capture_id"]).code == "no_samples"
        client.call("StopProcess", build_id="b", grace_ms=0)


def check_paths(record):
    assert all(os.path.getsize(record[path]) > 0 for path in PATHS), record


def test_a_client_that_goes_or_cancels_changes_nothing():
    with failing_analyzer() as (analyzer, folder), Daemon(env={"PROFD_ANALYZER": analyzer}) as daemon:
        client, other = daemon.connect(), daemon.connect()
        before = record(client, [target("shares"), "1", "100", "0"])
        times = os.stat(before["folded_path"]).st_mtime_ns
        write(folder, "wait", "", 0o644)
        number = client.send("SymbolizeCapture", capture_id=before["capture_id"])
        client.call("Ping")
        assert client.call("Cancel", request_id=number)["cancelled"] is True
        assert refusal(client, number).code == "cancelled"
        other.call("Ping")
        client.close()
        os.unlink(os.path.join(folder, "wait"))
        wait_until(lambda: os.stat(before["folded_path"]).st_mtime_ns != times, 20, "the new artifacts")
        wait_until(lambda: "names of %s were made again" % before["capture_id"] in daemon.log(), 10, "its end")
        check_ended(other.call("GetCapture", capture_id=before["capture_id"]))


def test_the_daemon_s_end_leaves_the_capture_as_it_was():
    with failing_analyzer() as (analyzer, folder), Daemon(env={"PROFD_ANALYZER": analyzer}) as daemon:
        client = daemon.connect()
        before = record(client, [target("shares"), "1", "100", "0"])
        files = contents(before)
        write(folder, "wait", "", 0o644)
        number = client.send("SymbolizeCapture", capture_id=before["capture_id"])
        wait_until(daemon.children, 10, "its analyzer")
        client.send("Shutdown")
        assert refusal(client, number).code == "shutting_down"
        assert daemon.process.wait(20) == 0
        assert contents(before) == files
        # And killed.
        daemon.start()
        client = daemon.connect()
        number = client.send("SymbolizeCapture", capture_id=before["capture_id"])
        wait_until(daemon.children, 10, "its analyzer")
        daemon.process.send_signal(signal.SIGKILL)
        daemon.process.wait()
        os.unlink(os.path.join(folder, "wait"))
        time.sleep(0.1)
        daemon.clients.clear()
        daemon.start()
        client = daemon.connect()
        assert client.call("GetCapture", capture_id=before["capture_id"])["state"] == "finished"
        check_paths(client.call("GetCapture", capture_id=before["capture_id"]))
        check_ended(client.call("SymbolizeCapture", capture_id=before["capture_id"]))


def test_a_full_disk_leaves_the_capture_as_it_was():
    with small_disk(4096) as disk, Daemon() as daemon:
        client = daemon.connect()
        before = record(client, [target("shares"), "1", "200", "0"], output_dir=disk)
        files = contents(before)
        fill(disk)
        error = client.fails("SymbolizeCapture", capture_id=before["capture_id"])
        assert error.code == "disk_full", error.error
        assert contents(before) == files and client.call("GetCapture", capture_id=before["capture_id"]) == before
        os.unlink(os.path.join(disk, "filler"))
        check_ended(client.call("SymbolizeCapture", capture_id=before["capture_id"]))


def test_kernel_names_stay_without_the_kernel_s_table():
    with Daemon() as daemon:
        client = daemon.connect()
        before = record(client, [target("syscalls")], kernel=True)
        kernel = {name for name in names_in(before) if name.endswith("_[k]")}
        after = client.call("SymbolizeCapture", capture_id=before["capture_id"])
        assert read_folded(after["folded_path"]) == read_folded(before["folded_path"])
        assert kernel or has_warning(before, "kernel_time_not_sampled") or os.geteuid() != 0, names_in(before)


if __name__ == "__main__":
    main(globals())
