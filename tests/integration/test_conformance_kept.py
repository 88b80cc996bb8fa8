"""docs/protocol.md, chapter 4: captures that are kept, listed, renamed and deleted."""
import json
import os
import tempfile
import time

from contract import SENTENCE
from harness import FOREVER, Daemon, capture_end, main, target, wait_sampled, wait_until, write


def make(client, **options):
    """A capture that has ended: its record."""
    made = client.call("LaunchProcess", argv=[target("steady"), "40"], stdio="null", profile={"hz": 4000, **options})
    name, params = capture_end(client, made["capture_id"])
    assert name == "SamplingProfileFinished", params
    return client.call("GetCapture", capture_id=made["capture_id"])


def folders(daemon):
    return sorted(os.listdir(os.path.join(daemon.data_dir, "captures")))


def restart(daemon, *args):
    assert daemon.stop() == 0
    daemon.args = list(args)
    daemon.start()
    return daemon.connect()


@SENTENCE("`ListCaptures` / `GetCapture` / `DeleteCapture` / `UpdateCapture` | state?, build_id?, label?, pinned?, cursor? / capture_id "
          "/ capture_id / capture_id, label?, pinned? | captures [record], next_cursor? / one record / left? / one record; a record's "
          "final form is what its terminal event carried")
def test_lists_and_records():
    with Daemon() as daemon:
        client = daemon.connect()
        records = [make(client, label="\x01" * 250) for _ in range(14)]
        page = client.call("ListCaptures")
        listed, pages = page["captures"], 1
        while "next_cursor" in page:
            page = client.call("ListCaptures", cursor=page["next_cursor"])
            listed, pages = listed + page["captures"], pages + 1
        assert pages > 1 and listed == records and [record["capture_id"] for record in listed] == folders(daemon)
        for record in records:
            _, event = capture_end(client, record["capture_id"])
            assert {name: record[name] for name in event if name != "seq"} == {name: value for name, value in event.items() if name != "seq"}
            with open(record["metadata_path"]) as file:
                metadata = json.load(file)
            assert metadata["samples"]["count"] == record["samples"] and metadata["target"]["pid"] == record["pid"]
        assert client.call("UpdateCapture", capture_id=records[0]["capture_id"], pinned=True) == dict(records[0], pinned=True)
        assert client.call("DeleteCapture", capture_id=records[0]["capture_id"]) == {}


@SENTENCE("| state?, build_id?, label?, pinned?, cursor?")
def test_lists_are_filtered():
    with Daemon() as daemon:
        client = daemon.connect()
        one, two = make(client, label="one")["capture_id"], make(client)["capture_id"]
        client.call("UpdateCapture", capture_id=two, pinned=True)
        three = client.call("LaunchProcess", argv=FOREVER, build_id="mine", stdio="null", profile={"label": "one"})["capture_id"]

        def listed(**params):
            return [record["capture_id"] for record in client.call("ListCaptures", **params)["captures"]]
        assert listed() == [one, two, three] == folders(daemon)
        assert listed(label="one") == [one, three] and listed(label="on") == []
        assert listed(pinned=True) == [two] and listed(pinned=False) == [one, three]
        assert listed(build_id="mine") == [three] and listed(build_id="none") == []
        assert listed(state="finished") == [one, two] and listed(state="sampling") == [three] and listed(state="failed") == []
        assert listed(label="one", state="finished") == [one]


@SENTENCE("`DeleteCapture` takes one that has ended (`capture_busy` while it runs: `StopCapture` with `discard`) and answers when its "
          "files are gone. Only files that are `profd`'s, by name, are deleted, and no link is followed; when something else is in its "
          "folder the folder stays, and `left` is its path.")
def test_deleting():
    with Daemon() as daemon, tempfile.TemporaryDirectory() as elsewhere:
        client = daemon.connect()
        running = client.call("LaunchProcess", argv=FOREVER, stdio="null", profile={})["capture_id"]
        wait_sampled(client, running)
        error = client.fails("DeleteCapture", capture_id=running)
        assert error.code == "capture_busy" and "StopCapture" in error.hint and "discard" in error.hint
        for place in ({}, {"output_dir": elsewhere}):
            record = make(client, **place)
            assert client.call("DeleteCapture", capture_id=record["capture_id"]) == {}
            assert not os.path.exists(record["folder"]), "answered before the files were gone"
            assert client.fails("GetCapture", capture_id=record["capture_id"]).code == "capture_not_found"
            record = make(client, **place)
            precious = write(daemon.root, "precious", "mine", 0o600)
            for name in ("notes.txt", "capture.json.bak"):
                write(record["folder"], name, "mine", 0o600)
            os.unlink(record["svg_path"])
            os.symlink(precious, record["svg_path"])
            os.mkdir(record["folder"] + "/sub")
            write(record["folder"] + "/sub", "capture.svg", "mine", 0o600)
            assert client.call("DeleteCapture", capture_id=record["capture_id"]) == {"left": record["folder"]}
            assert sorted(os.listdir(record["folder"])) == ["capture.json.bak", "notes.txt", "sub"]
            assert os.listdir(record["folder"] + "/sub") == ["capture.svg"]
            with open(precious) as file:
                assert file.read() == "mine"
            # A folder that is a link to another is not followed either.
            record = make(client, **place)
            os.rename(record["folder"], daemon.root + "/moved")
            os.symlink(daemon.root + "/moved", record["folder"])
            before = sorted(os.listdir(daemon.root + "/moved"))
            try:
                client.call("DeleteCapture", capture_id=record["capture_id"])
            except Exception:
                pass
            assert sorted(os.listdir(daemon.root + "/moved")) == before
            os.rename(daemon.root + "/moved", daemon.root + "/moved%d" % len(place))


@SENTENCE("`UpdateCapture` needs `label` or `pinned`; an empty label takes it away; on a capture that runs the label is its terminal "
          "event's too.")
def test_labels():
    with Daemon() as daemon:
        client = daemon.connect()
        record = make(client, label="old")
        assert client.fails("UpdateCapture", capture_id=record["capture_id"]).number == -32602

        def on_disk():
            with open(record["folder"] + "/record.json") as file:
                return json.load(file)["label"]
        assert on_disk() == "old"
        client.call("UpdateCapture", capture_id=record["capture_id"], label="new")
        assert on_disk() == "new"
        assert client.call("UpdateCapture", capture_id=record["capture_id"], label="")["label"] is None and on_disk() is None
        running = client.call("LaunchProcess", argv=FOREVER, stdio="null", profile={"label": "a"})["capture_id"]
        wait_sampled(client, running)
        client.call("UpdateCapture", capture_id=running, label="b")
        client.call("StopCapture", capture_id=running)
        assert capture_end(client, running)[1]["label"] == "b"
        failing = client.call("LaunchProcess", argv=["sleep", "60"], stdio="null", profile={"label": "a", "hz": 1})["capture_id"]
        client.call("UpdateCapture", capture_id=failing, label="c")
        client.call("StopCapture", capture_id=failing)
        name, params = capture_end(client, failing)
        assert name == "SamplingProfileFailed" and params["label"] == "c", (name, params)


@SENTENCE("Without being asked `profd` deletes the oldest captures when there are more than 200 (`--keep-captures`),", "at its start and "
          "after each capture's end; pinned and running ones are neither counted nor deleted,")
def test_the_oldest_of_too_many_go():
    with Daemon("--keep-captures", "2") as daemon:
        client = daemon.connect()
        pinned = make(client)["capture_id"]
        client.call("UpdateCapture", capture_id=pinned, pinned=True)
        running = client.call("LaunchProcess", argv=FOREVER, stdio="null", profile={})["capture_id"]
        made = [make(client)["capture_id"] for _ in range(4)]
        wait_until(lambda: folders(daemon) == sorted([pinned, running, *made[2:]]), 10, "two beside the pinned and the running one")
        wait_sampled(client, running)
        client.call("StopCapture", capture_id=running, discard=True)
        client = restart(daemon, "--keep-captures", "1")
        wait_until(lambda: folders(daemon) == sorted([pinned, made[3]]), 10, "one, after the start")
        client = restart(daemon)
        # 200 without an option: copies of one that was made.
        source = os.path.join(daemon.data_dir, "captures", made[3])
        daemon.stop()
        names = []
        for number in range(203):
            name = "20200101-%06d-%s" % (number, made[3][-8:])
            os.mkdir(os.path.join(daemon.data_dir, "captures", name), 0o700)
            with open(source + "/record.json") as file:
                record = json.load(file)
            record.update(capture_id=name, folder=os.path.join(daemon.data_dir, "captures", name))
            write(record["folder"], "record.json", json.dumps(record), 0o600)
            names.append(name)
        daemon.start()
        wait_until(lambda: len(folders(daemon)) <= 201, 10, "200 and the pinned one")
        time.sleep(0.2)
        assert folders(daemon) == sorted(names[4:] + [pinned, made[3]]), (len(folders(daemon)), folders(daemon)[:6])


@SENTENCE("when they ended 14 days ago (`--keep-days`),")
def test_the_old_go():
    with Daemon() as daemon:
        client = daemon.connect()
        records = [make(client) for _ in range(3)]
        kept = []
        for record, days in zip(records, (13.9, 14.1, 100)):
            ended = time.time() - days * 86400
            name = time.strftime("%Y%m%d-%H%M%S-", time.gmtime(ended - 10)) + record["capture_id"][-8:]
            place = os.path.join(os.path.dirname(record["folder"]), name)
            write(record["folder"], "record.json", json.dumps(dict(record, capture_id=name, ended_unix_us=int(ended * 1e6), folder=place)), 0o600)
            os.rename(record["folder"], place)
            kept.append(name)
        client = restart(daemon)
        wait_until(lambda: folders(daemon) == kept[:1], 10, "the youngest alone")
        restart(daemon, "--keep-days", "13")
        wait_until(lambda: folders(daemon) == [], 10, "none")


@SENTENCE("and when they take more than 2 GiB (`--keep-bytes`),", "and the one that has just ended is not deleted.")
def test_the_large_go():
    with Daemon() as daemon:
        client = daemon.connect()
        records = [make(client) for _ in range(4)]
        sizes = [sum(entry.stat().st_size for entry in os.scandir(record["folder"])) for record in records]
        restart(daemon, "--keep-bytes", str(sum(sizes[2:])))
        wait_until(lambda: folders(daemon) == [record["capture_id"] for record in records[2:]], 10, "two")
        client = restart(daemon, "--keep-bytes", "1")
        wait_until(lambda: folders(daemon) == [], 10, "none")
        for _ in range(2):
            last = make(client)["capture_id"]
            wait_until(lambda: folders(daemon) == [last], 10, "the last one alone")
        client = restart(daemon)
        first, second = make(client), make(client)
        # A file with holes: 2 GiB and a bit by its size.
        for extra, left in ((-(1 << 20), [first, second]), (1, [second])):
            assert daemon.stop() == 0
            sizes = [sum(entry.stat().st_size for entry in os.scandir(record["folder"])) for record in (first, second)]
            journal = os.path.join(first["folder"], "capture.journal")
            os.truncate(journal, os.path.getsize(journal) + (2 << 30) + extra - sum(sizes))
            daemon.start()
            daemon.connect().call("Ping")
            expected = [record["capture_id"] for record in left]
            wait_until(lambda: [name for name in folders(daemon) if name != last] == expected, 10, "what fits 2 GiB")


if __name__ == "__main__":
    main(globals())
