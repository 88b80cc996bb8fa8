"""What is kept: captures are deleted, renamed, pinned, and let go when there are too many."""
import json
import os
import shutil
import subprocess
import tempfile
import time

from capture_runs import profile
from disks import fill, small_disk
from footprint import check_as_before, settled
from harness import FOREVER, Daemon, ProfdError, capture_end, main, program, target, wait_sampled, wait_until, write
from kept_captures import wait_all_ended
from nobody import NOBODY, as_nobody
from refusals import check_error


def make(client, **options):
    """A capture that has ended: its record."""
    result, (name, params) = profile(client, [target("steady"), "50"], hz=999, **options)
    assert name == "SamplingProfileFinished", params
    return client.call("GetCapture", capture_id=result["capture_id"])


def ids(client):
    return [record["capture_id"] for record in client.everything("ListCaptures", "captures")]


def restart(daemon, *args):
    assert daemon.stop() == 0
    daemon.args = list(args)
    daemon.start()
    return daemon.connect()


# DeleteCapture


def test_a_deleted_capture_is_gone_for_everyone():
    with Daemon() as daemon, tempfile.TemporaryDirectory() as elsewhere:
        client = daemon.connect()
        make(client)
        for output_dir in (None, elsewhere):
            before = settled(daemon, client)
            record = make(client, **({"output_dir": output_dir} if output_dir else {}))
            other = daemon.connect()
            numbers = [(other, other.send("DeleteCapture", capture_id=record["capture_id"])) for _ in range(2)]
            answers = []
            for connection, number in numbers:
                try:
                    answers.append(connection.wait_reply(number))
                except ProfdError as error:
                    answers.append(error.code)
            assert answers == [{}, "capture_not_found"], answers
            for method in ("GetCapture", "DeleteCapture", "WaitCapture", "StopCapture", "UpdateCapture"):
                more = {"label": "x"} if method == "UpdateCapture" else {}
                error = client.fails(method, capture_id=record["capture_id"], **more)
                check_error(error, "capture_not_found", record["capture_id"], method)
            other.close()
            before["processes"] = settled(daemon, client)["processes"]
            check_as_before(daemon, client, before, "a deleted capture")
            assert not os.path.exists(record["folder"])
        kept = ids(client)
        client = restart(daemon)
        assert ids(client) == kept


def test_a_running_capture_is_not_deleted():
    with Daemon() as daemon:
        client = daemon.connect()
        capture_id = client.call("LaunchProcess", argv=FOREVER, stdio="null", profile={})["capture_id"]
        wait_sampled(client, capture_id)
        error = client.fails("DeleteCapture", capture_id=capture_id)
        check_error(error, "capture_busy", capture_id, "a running capture")
        assert "StopCapture" in error.hint and "discard" in error.hint, error.hint
        client.call("StopCapture", capture_id=capture_id)
        assert client.call("DeleteCapture", capture_id=capture_id) == {}
        check_error(client.fails("DeleteCapture", capture_id="../.."), "capture_not_found", "../..", "a path")


def test_what_is_not_profds_stays_with_its_folder():
    with Daemon() as daemon, tempfile.TemporaryDirectory() as elsewhere:
        client = daemon.connect()
        for output_dir in ({}, {"output_dir": elsewhere}):
            record = make(client, **output_dir)
            precious = write(daemon.root, "precious", "mine", 0o600)
            write(record["folder"], "notes", "mine", 0o600)
            os.unlink(record["svg_path"])
            os.symlink(precious, record["svg_path"])
            assert client.call("DeleteCapture", capture_id=record["capture_id"]) == {"left": record["folder"]}
            assert os.listdir(record["folder"]) == ["notes"] and os.path.exists(precious)
            client = restart(daemon)
            assert ids(client) == [] and os.listdir(record["folder"]) == ["notes"]
            assert "warn" not in daemon.log(), daemon.log()


def test_a_client_that_vanishes_while_it_deletes_changes_nothing():
    with Daemon() as daemon:
        client = daemon.connect()
        records = [make(client) for _ in range(3)]
        for record in records:
            other = daemon.connect()
            other.send("DeleteCapture", capture_id=record["capture_id"])
            other.close()
        wait_until(lambda: ids(client) == [], 10, "the end of the captures")
        wait_until(lambda: os.listdir(os.path.join(daemon.data_dir, "captures")) == [], 10, "the end of their folders")


def test_a_capture_that_cannot_be_deleted_stays_listed():
    as_nobody()
    with Daemon(user=NOBODY) as daemon:
        client = daemon.connect()
        record = make(client)
        os.chmod(record["folder"], 0o500)
        error = client.fails("DeleteCapture", capture_id=record["capture_id"])
        check_error(error, "not_permitted", record["capture_id"], "a folder that cannot be written")
        assert client.call("GetCapture", capture_id=record["capture_id"]) == record
        os.chmod(record["folder"], 0o700)
        assert client.call("DeleteCapture", capture_id=record["capture_id"]) == {}


def test_deleting_makes_room_on_a_full_disk():
    with small_disk(4096) as disk, Daemon(data_dir=os.path.join(disk, "data")) as daemon:
        client = daemon.connect()
        record, other = make(client), make(client)  # two of them have room for another, whatever a page more or less
        fill(disk)
        check_error(client.fails("UpdateCapture", capture_id=record["capture_id"], label="new"), "disk_full", "record.json", "full")
        assert client.call("GetCapture", capture_id=record["capture_id"]) == record
        assert client.call("DeleteCapture", capture_id=record["capture_id"]) == {}
        assert not os.path.exists(record["folder"])
        client.call("DeleteCapture", capture_id=other["capture_id"])
        # The room is enough for another one.
        make(client)


# UpdateCapture


def test_a_label_and_a_pin_survive_a_restart():
    with Daemon() as daemon:
        client = daemon.connect()
        record = make(client, label="old")
        capture_id = record["capture_id"]
        assert record["pinned"] is False
        changed = client.call("UpdateCapture", capture_id=capture_id, label="new \u20ac", pinned=True)
        assert changed == dict(record, label="new \u20ac", pinned=True)
        client = restart(daemon)
        assert client.call("GetCapture", capture_id=capture_id) == changed
        assert client.call("UpdateCapture", capture_id=capture_id, pinned=False)["label"] == "new \u20ac"
        assert client.call("UpdateCapture", capture_id=capture_id, label="")["label"] is None
        check_error(client.fails("UpdateCapture", capture_id=capture_id), "bad_params", "neither", "nothing to change")
        check_error(client.fails("UpdateCapture", capture_id=capture_id, label="x" * 257), "bad_params", "label", "long")
        check_error(client.fails("UpdateCapture", capture_id=capture_id, pinned="yes"), "bad_params", "pinned", "no boolean")
        check_error(client.fails("UpdateCapture", capture_id="nothing", label="x"), "capture_not_found", "nothing", "unknown")


def test_a_running_capture_takes_its_label_to_its_end():
    with Daemon() as daemon:
        client = daemon.connect()
        capture_id = client.call("LaunchProcess", argv=FOREVER, stdio="null", profile={"label": "old"})["capture_id"]
        wait_sampled(client, capture_id)
        record = client.call("UpdateCapture", capture_id=capture_id, label="new", pinned=True)
        assert (record["state"], record["label"], record["pinned"]) == ("sampling", "new", True)
        final = client.call("StopCapture", capture_id=capture_id)
        name, params = capture_end(client, capture_id)
        assert name == "SamplingProfileFinished" and params["label"] == "new", params
        assert (final["label"], final["pinned"]) == ("new", True)
        with open(final["metadata_path"]) as file:
            assert json.load(file)["label"] == "new"


# Retention


def test_the_oldest_go_when_there_are_too_many():
    with Daemon("--keep-captures", "3") as daemon, tempfile.TemporaryDirectory() as elsewhere:
        client = daemon.connect()
        pinned = make(client)
        client.call("UpdateCapture", capture_id=pinned["capture_id"], pinned=True)
        running = client.call("LaunchProcess", argv=FOREVER, stdio="null", profile={})["capture_id"]
        made = [make(client, **({"output_dir": elsewhere} if n % 2 else {})) for n in range(5)]
        kept = [record["capture_id"] for record in made[-3:]]
        wait_until(lambda: ids(client) == [pinned["capture_id"], running] + kept, 10, "three captures beside those")
        wait_until(lambda: not any(os.path.exists(record["folder"]) for record in made[:2]), 10, "the end of the folders")
        assert sorted(os.listdir(elsewhere)) == [made[3]["capture_id"]]
        for record in made[:2]:
            wait_until(lambda: "info capture: %s was deleted" % record["capture_id"] in daemon.log(), 10, "the log")
        client.call("StopCapture", capture_id=running, discard=True)
        client = restart(daemon, "--keep-captures", "1")
        wait_until(lambda: ids(client) == [pinned["capture_id"], kept[-1]], 10, "one capture beside the pinned")
        wait_until(lambda: len(os.listdir(os.path.join(daemon.data_dir, "captures"))) == 2, 10, "the end of the folders")
        client = restart(daemon, "--keep-captures", "0")
        made = [make(client) for _ in range(3)]
        wait_all_ended(client)
        assert len(ids(client)) == 5


def test_the_oldest_go_when_they_are_too_large_and_the_last_one_stays():
    with Daemon() as daemon:
        client = daemon.connect()
        records = [make(client) for _ in range(4)]
        sizes = [sum(entry.stat().st_size for entry in os.scandir(record["folder"])) for record in records]
        client = restart(daemon, "--keep-bytes", str(sum(sizes[2:])))
        wait_until(lambda: ids(client) == [record["capture_id"] for record in records[2:]], 10, "two captures")
        client = restart(daemon, "--keep-bytes", "1")
        wait_until(lambda: ids(client) == [], 10, "no capture")
        for _ in range(2):
            last = make(client)
            wait_until(lambda: ids(client) == [last["capture_id"]], 10, "the last one alone")


def test_those_that_ended_long_ago_go():
    with Daemon("--keep-days", "14") as daemon:
        client = daemon.connect()
        records = [make(client) for _ in range(3)]
        for record, days in zip(records, (13.9, 14.1, 100)):
            path = os.path.join(record["folder"], "record.json")
            made = time.time() - days * 86400
            # When it was begun is its name's to say.
            name = time.strftime("%Y%m%d-%H%M%S-", time.gmtime(made - 10)) + record["capture_id"][-8:]
            folder = os.path.join(os.path.dirname(record["folder"]), name)
            old = dict(record, capture_id=name, ended_unix_us=int(made * 1e6), folder=folder)
            with open(path, "w") as file:
                json.dump(old, file)
            os.rename(record["folder"], folder)
            record["capture_id"] = name
        client = restart(daemon)
        wait_until(lambda: ids(client) == [records[0]["capture_id"]], 10, "the youngest alone")
        client = restart(daemon, "--keep-days", "13")
        wait_until(lambda: ids(client) == [], 10, "no capture")


def test_an_idle_daemon_with_captures_does_not_wake():
    with Daemon() as daemon:
        client = daemon.connect()
        for _ in range(2):
            make(client)
        settled(daemon, client)
        time.sleep(1)
        before = daemon.status("voluntary_ctxt_switches")
        time.sleep(1.5)
        assert daemon.status("voluntary_ctxt_switches") == before


def test_wrong_limits_are_named():
    for option, value in (("--keep-captures", "-1"), ("--keep-captures", "x"), ("--keep-captures", ""), ("--keep-days", "1.5"),
                          ("--keep-days", "99999999999999999999"), ("--keep-bytes", "2X"), ("--keep-bytes", "G"),
                          ("--keep-bytes", "1GB"), ("--keep-bytes", "99999999999T"), ("--keep-bytes", " 1")):
        done = subprocess.run([program("profd"), option, value], capture_output=True, text=True, timeout=20, check=False)
        assert done.returncode == 2 and option in done.stderr and done.stderr.count("\n") == 1, (option, value, done)
    help_text = subprocess.run([program("profd"), "--help"], capture_output=True, text=True, timeout=20, check=False).stdout
    for option in ("--keep-captures", "--keep-days", "--keep-bytes"):
        assert option in help_text


# output_dir


def test_folders_that_others_decide_about_are_refused():
    as_nobody()
    with Daemon() as daemon, tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        client = daemon.connect()
        client.call("LaunchProcess", argv=FOREVER, stdio="null", build_id="b")
        ours, theirs, everyone = (os.path.join(folder, name) for name in ("ours", "theirs", "everyone"))
        os.mkdir(ours)
        os.mkdir(theirs)
        os.mkdir(everyone)
        os.chmod(everyone, 0o777)
        os.symlink(folder, os.path.join(theirs, "link"))
        os.chown(os.path.join(theirs, "link"), NOBODY, NOBODY, follow_symlinks=False)
        os.chown(theirs, NOBODY, NOBODY)
        before = settled(daemon, client)
        for path, word in ((everyone, "0777"), (theirs, "user %d" % NOBODY), (os.path.join(theirs, "link", "ours"), "link")):
            check_error(client.fails("StartSamplingProfile", build_id="b", output_dir=path), "not_permitted", word, path)
            check_as_before(daemon, client, before, path)
        os.chmod(everyone, 0o1777)
        for path in (everyone, "/tmp"):
            capture_id = client.call("StartSamplingProfile", build_id="b", output_dir=path, duration_ms=50)["capture_id"]
            record = client.call("WaitCapture", capture_id=capture_id)
            assert record["folder"] == os.path.join(path, capture_id)
            assert os.stat(record["folder"]).st_mode & 0o7777 == 0o700
            assert client.call("DeleteCapture", capture_id=capture_id) == {}
            assert not os.path.exists(record["folder"])


def test_an_ordinary_user_keeps_and_deletes_too():
    as_nobody()
    with Daemon("--keep-captures", "1", user=NOBODY) as daemon, tempfile.TemporaryDirectory() as elsewhere:
        os.chown(elsewhere, NOBODY, NOBODY)
        client = daemon.connect()
        make(client, output_dir=elsewhere)
        last = make(client, output_dir=elsewhere)
        wait_until(lambda: os.listdir(elsewhere) == [last["capture_id"]], 10, "the last one alone")
        check_error(client.fails("LaunchProcess", argv=["true"], profile={"output_dir": "/tmp"}), "not_permitted", "/tmp", "/tmp")
        assert client.call("DeleteCapture", capture_id=last["capture_id"]) == {}
        assert os.listdir(elsewhere) == []


def test_a_data_folder_that_was_replaced_is_told():
    with Daemon() as daemon:
        client = daemon.connect()
        make(client)
        for begin in (lambda: None, lambda: os.makedirs(daemon.data_dir + "/captures", 0o700)):
            shutil.rmtree(daemon.data_dir)
            begin()
            for options in ({}, {"output_dir": daemon.root}):
                error = client.fails("LaunchProcess", argv=["true"], profile=options)
                assert error.code == "io" and error.detail == "data_folder_gone" and "restart" in error.hint, error.error
            check, = [check for check in client.call("Doctor")["checks"] if check["id"] == "data_folder"]
            assert check["status"] == "fail" and check["fix"], check
            os.makedirs(daemon.data_dir, 0o700, exist_ok=True)


def test_the_folder_of_captures_is_no_output_folder():
    with Daemon() as daemon:
        client = daemon.connect()
        inner = make(client)["folder"]
        os.mkdir(inner + "/deeper")
        for folder in (daemon.data_dir + "/captures", inner, inner + "/deeper"):
            error = client.fails("LaunchProcess", argv=["true"], profile={"output_dir": folder})
            assert error.number == -32602 and error.detail == "own_folder", error.error
        os.rmdir(inner + "/deeper")
        assert make(client, output_dir=daemon.data_dir)["folder"].startswith(daemon.data_dir)


if __name__ == "__main__":
    main(globals(), together=True)
