"""docs/protocol.md, chapter 5: what a client is told without asking again."""
import base64
import json
import os
import re
import shutil
import sys
import time

from contract import SENTENCE, Raw
from disks import fill, small_disk
from harness import FOREVER, Daemon, Gate, alive, capture_end, main, target, wait_sampled, wait_until
from journals import JournalFile
from nobody import ordinary_user
from waiting_analyzer import wait_symbolizing, waiting_analyzer


def launch(client, argv, **params):
    return client.call("LaunchProcess", argv=argv, **{"stdio": "null", **params})


def names(client, capture_id):
    return [event["method"] for event in client.events if event["params"].get("capture_id") == capture_id]


@SENTENCE("Every event carries `seq`, one rising sequence per daemon; holes are normal for a filtered subscriber,")
def test_the_sequence():
    with Daemon() as daemon:
        doer, every, some = daemon.connect(), daemon.connect(), daemon.connect()
        every.call("Subscribe")
        some.call("Subscribe", events=["ProcessExited"])
        made = launch(doer, [target("steady"), "100"], profile={"progress_ms": 50}, stdio="pipe")
        capture_end(doer, made["capture_id"])
        launch(doer, ["true"])
        for _ in range(2):
            doer.wait_event("ProcessExited")
        every.call("Ping")
        some.call("Ping")
        sequence = [event["params"]["seq"] for event in every.events]
        assert sequence == list(range(sequence[0], sequence[0] + len(sequence))) and sequence[0] == 1, sequence
        assert [event["method"] for event in some.events] == ["ProcessExited", "ProcessExited"]
        assert some.events[1]["params"]["seq"] > some.events[0]["params"]["seq"] + 1


@SENTENCE("one rising sequence per daemon;", "loss is told by `EventsDropped` and by `gap`.", "· `EventsDropped {counts}` · "
          "`DaemonStopping`")
def test_the_sequence_rises_for_a_slow_reader_too():
    loud = [sys.executable, "-c", "import os\nfor _ in range(100): os.write(1, b'x' * 65535 + b'\\n')"]
    with Daemon() as daemon, Raw(daemon.socket_path) as slow:
        quick = daemon.connect()
        instance = quick.call("Hello", client="t")["instance_id"]
        slow.ask({"id": 1, "method": "Subscribe"})
        busy = [launch(quick, FOREVER, profile={"progress_ms": 50}) for _ in range(2)]
        made = launch(quick, loud, stdio="pipe", subscribe=False)
        wait_until(lambda: not alive(made["pid"]), 20, "the end of it")
        for _ in range(8):
            launch(quick, ["true"], subscribe=False)
            time.sleep(0.1)
        for each in busy:
            quick.call("StopCapture", capture_id=each["capture_id"])
        messages = slow.until(lambda message: message.get("method") == "EventsDropped")
        assert set(messages[-1]["params"]) == {"counts", "seq"} and messages[-1]["params"]["counts"]["ProcessOutput"] > 0
        sequence = [message["params"]["seq"] for message in messages]
        back = [pair for pair in zip(sequence, sequence[1:]) if pair[1] <= pair[0]]
        assert not back, "went back: %s" % back
        # What is older than anything that is kept is a gap.
        assert daemon.connect().call("Subscribe", since_seq=1, instance_id=instance)["gap"] is False
        assert daemon.connect().call("Subscribe", since_seq=1, instance_id="f" * 32)["gap"] is True


@SENTENCE("An event reaches a connection once, however many of its subscriptions match.", "The connection that starts a capture or "
          "launches a process gets its events without asking; anyone else subscribes, gets a snapshot first and can ask for what it "
          "missed (`since_seq`).")
def test_an_event_comes_once_and_to_whom_it_should():
    with Daemon() as daemon:
        doer, starter, other = daemon.connect(), daemon.connect(), daemon.connect()
        for params in ({}, {}, {"build_id": "b"}, {"events": ["ProcessStarted"]}):
            doer.call("Subscribe", **params)
        launch(doer, FOREVER, build_id="b", stdio="pipe")
        capture = starter.call("StartSamplingProfile", build_id="b", duration_ms=200)["capture_id"]
        capture_end(starter, capture)
        doer.call("StopProcess", build_id="b")
        for client in (doer, starter, other):
            client.call("Ping")
        heard = [(event["method"], event["params"]["seq"]) for event in doer.events]
        assert len(set(heard)) == len(heard) and [name for name, _ in heard].count("ProcessStarted") == 1, heard
        assert [name for name in names(starter, capture) if "Progress" not in name] == ["SamplingProfileStarted", "SamplingProfileFinished"]
        assert not [event for event in starter.events if event["method"].startswith("Process")] and other.events == []
        instance = other.call("Hello", client="t")["instance_id"]
        with Raw(daemon.socket_path) as raw:
            raw.send({"id": 1, "method": "Subscribe", "params": {"since_seq": 0, "instance_id": instance}}, {"id": 2, "method": "Ping"})
            messages = raw.until(lambda message: message.get("id") == 2)
        assert messages[0]["result"]["snapshot"]["processes"][0]["build_id"] == "b"
        assert [m["method"] for m in messages[1:-1]] == ["ProcessStarted", "SamplingProfileStarted", "SamplingProfileFinished", "ProcessExited"]


@SENTENCE("`ProcessStarted {build_id, pid}` · `ProcessOutput {build_id, stream, offset, data | data_b64}` (at most 8 KiB each) ·")
def test_starts_and_outputs():
    with Daemon() as daemon:
        client = daemon.connect()
        data = ("\u20ac" * 20000).encode() + bytes(range(256)) * 100
        with open(daemon.root + "/bytes", "wb") as file:
            file.write(data)
        made = launch(client, ["sh", "-c", "cat %s/bytes; echo err >&2" % daemon.root], stdio="pipe")
        client.wait_event("ProcessExited")
        started, = [event["params"] for event in client.events if event["method"] == "ProcessStarted"]
        assert set(started) == {"build_id", "pid", "seq"} and started["pid"] == made["pid"]
        got = {"stdout": b"", "stderr": b""}
        for event in client.events:
            if event["method"] == "ProcessOutput":
                params = event["params"]
                assert set(params) in ({"build_id", "stream", "offset", "data", "seq"}, {"build_id", "stream", "offset", "data_b64", "seq"}), params
                piece = params["data"].encode() if "data" in params else base64.b64decode(params["data_b64"])
                assert 0 < len(piece) <= 8192 and params["offset"] == len(got[params["stream"]])
                got[params["stream"]] += piece
        assert got == {"stdout": data, "stderr": b"err\n"}


@SENTENCE("`ProcessExited {build_id, exit_code, signal, core_dumped, user_us, system_us, max_rss_bytes, error?}`; error says why a held "
          "build never became its program (its exit_code is then 126 or 127, as a shell's).", "A held build that is stopped ends with "
          "exit_code 125, and without `ProcessStarted`.")
def test_ends_of_programs():
    with Daemon() as daemon:
        client = daemon.connect()

        def end(argv, **params):
            return client.wait_event("ProcessExited", build_id=launch(client, argv, **params)["build_id"])
        script = "import os,resource,sys\nx = b'x' * (64 << 20)\nend = 0.2\nwhile resource.getrusage(0).ru_utime < end: pass\nu = resource.getrusage(0)\n" \
                 "open(sys.argv[1], 'w').write('%d %d %d' % (u.ru_utime * 1e6, u.ru_stime * 1e6, u.ru_maxrss * 1024))\nos._exit(9)"
        params = end([sys.executable, "-c", script, daemon.root + "/own"])
        user, system, rss = map(int, open(daemon.root + "/own").read().split())
        assert set(params) == {"build_id", "exit_code", "signal", "core_dumped", "user_us", "system_us", "max_rss_bytes", "seq"}, params
        assert (params["exit_code"], params["signal"], params["core_dumped"]) == (9, None, False)
        assert 0 <= params["user_us"] - user < 100000 and 0 <= params["system_us"] - system < 200000, params
        assert rss <= params["max_rss_bytes"] < rss + (8 << 20), params
        for number, name in ((9, "SIGKILL"), (15, "SIGTERM"), (11, "SIGSEGV")):
            params = end(["sh", "-c", "ulimit -c 0; kill -%d $$" % number])
            assert (params["exit_code"], params["signal"], params["core_dumped"]) == (None, name, False), params
        for mode, code in ((None, 127), (0o644, 126)):
            path = daemon.root + "/later"
            with open(path, "w") as file:
                file.write("#!/bin/sh\n")
            os.chmod(path, 0o755)
            held = launch(client, [path], hold=True)
            os.unlink(path) if mode is None else os.chmod(path, mode)
            number = client.send("ResumeProcess", build_id=held["build_id"])
            params = client.wait_event("ProcessExited", build_id=held["build_id"])
            assert params["exit_code"] == code and "later" in params["error"]["message"] and params["error"]["data"]["code"], params
            try:
                client.wait_reply(number)
            except Exception as error:
                assert error.code == "launch_failed", error
        client.events.clear()
        held = launch(client, ["true"], hold=True)
        client.call("StopProcess", build_id=held["build_id"])
        params = client.wait_event("ProcessExited", build_id=held["build_id"])
        assert params["exit_code"] == 125 and not [event for event in client.events if event["method"] == "ProcessStarted"], params


MEMBERS = {
    "Started": "capture_id build_id pid hz sampler unwinder",
    "Progress": "capture_id build_id state elapsed_ms duration_ms samples lost threads stacks truncated permille",
    "Finished": "capture_id build_id pid reason samples lost folded_path svg_path metadata_path artifacts summary warnings label",
    "Failed": "capture_id build_id pid error label",
}


@SENTENCE("`SamplingProfileStarted {capture_id, build_id, pid, hz, sampler, unwinder}` · `SamplingProfileProgress {capture_id, build_id, "
          "state, elapsed_ms, duration_ms, samples, lost, threads, stacks, truncated, permille}` · `SamplingProfileFinished {capture_id, "
          "build_id, pid, reason, samples, lost, folded_path, svg_path, metadata_path, artifacts, summary, warnings, label}`", "and "
          "summary is {duration_ms, threads, quality {complete, stitched, truncated, unsymbolized: shares}, top [{function, self, "
          "total}] (10), images [{image, samples, complete, stitched, truncated: shares of its samples}] (5, by samples)} · `SamplingProfileFailed {capture_id, build_id, pid, error, label}`; build_id is null in captures of a bare "
          "pid; a failed capture stays listed, with its error and whatever was kept, until it is deleted")
def test_events_of_captures():
    with Daemon() as daemon, Gate(daemon, [target("threads")]) as gate:
        client = daemon.connect()
        bare = client.call("StartSamplingProfile", pid=gate.pid, progress_ms=50, label="l", duration_ms=700)["capture_id"]
        gate.go()
        _, finished = capture_end(client, bare)
        failed = launch(client, ["sleep", "60"], profile={"duration_ms": 50, "hz": 1}, build_id="f")["capture_id"]
        _, failure = capture_end(client, failed)
        for event in client.events:
            if event["method"].startswith("Sampling"):
                assert set(event["params"]) == set(MEMBERS[event["method"][15:]].split()) | {"seq"}, event
        assert finished["build_id"] is None and finished["pid"] == gate.pid and finished["label"] == "l"
        progress = [event["params"] for event in client.events if event["method"] == "SamplingProfileProgress" and event["params"]["capture_id"] == bare]
        running = [params for params in progress if params["state"] == "sampling"]
        for name in ("elapsed_ms", "samples", "stacks", "permille"):
            values = [params[name] for params in running]
            assert values == sorted(values) and values[-1] > 0, (name, values)
        for params in running:  # a busy machine may stop it some milliseconds late
            assert params["permille"] == min(params["elapsed_ms"] * 1000 // 700, 1000) and params["duration_ms"] == 700, params
        stacks = {}
        with open(finished["folded_path"]) as file:
            for line in file:
                stacks[line.rsplit(" ", 1)[0]] = int(line.rsplit(" ", 1)[1])
        summary = finished["summary"]
        assert set(summary) == {"duration_ms", "threads", "quality", "top", "images"}
        assert set(summary["quality"]) == {"complete", "stitched", "truncated", "unsymbolized"}
        assert all(0 <= share <= 1 for share in summary["quality"].values()) and 600 <= summary["duration_ms"] <= 800
        assert 0 < len(summary["top"]) <= 10
        for each in summary["top"]:
            own = sum(count for stack, count in stacks.items() if stack.split(";")[-1] == each["function"])
            total = sum(count for stack, count in stacks.items() if each["function"] in stack.split(";")[1:])
            assert set(each) == {"function", "self", "total"} and (own, total) == (each["self"], each["total"]), (each, own, total)
        with open(finished["metadata_path"]) as file:
            told = json.load(file)["images"]
        assert summary["images"] == [{"image": os.path.basename(image["path"]).strip("[]"), "samples": image["samples"],
                                      **{name: image["stacks"][name] for name in ("complete", "stitched", "truncated")}} for image in told[:5]], (summary, told)
        assert failure["error"]["data"]["code"] == "no_samples"
        daemon.stop()
        daemon.start()
        client = daemon.connect()
        record, = [record for record in client.call("ListCaptures")["captures"] if record["state"] == "failed"]
        assert record["error"] == failure["error"] and record["capture_id"] == failed
        assert os.path.exists(os.path.join(daemon.data_dir, "captures", failed, "capture.journal"))
        client.call("DeleteCapture", capture_id=failed)
        assert [record["capture_id"] for record in client.call("ListCaptures")["captures"]] == [bare]


@SENTENCE("where reason is `duration`, `stopped`, `target_exited`, `target_privileged`, `limit`, `disk_full`, `client_exited`, "
          "`daemon_shutdown` or `recovered`,")
def test_reasons():
    reasons = {}
    with Daemon() as daemon:
        client = daemon.connect()

        def ended(capture_id):
            return capture_end(client, capture_id)[1]["reason"]
        limited = launch(client, FOREVER, profile={"max_bytes": 65536, "hz": 50000})["capture_id"]
        timed = launch(client, FOREVER, profile={"duration_ms": 100})["capture_id"]
        stopped = launch(client, FOREVER, profile={})["capture_id"]
        client.call("Subscribe", events=["SamplingProfileFinished"])
        other = daemon.connect()
        gone = launch(other, FOREVER, profile={"on_client_exit": "stop"})["capture_id"]
        for capture_id in (stopped, gone):
            wait_sampled(client, capture_id)
        other.close()
        client.call("StopCapture", capture_id=stopped)
        reasons["target_exited"] = ended(launch(client, [target("steady"), "50"], profile={})["capture_id"])
        reasons.update({"duration": ended(timed), "stopped": ended(stopped), "client_exited": ended(gone), "limit": ended(limited)})
        last = launch(client, FOREVER, profile={})["capture_id"]
        wait_sampled(client, last)
        client.call("Shutdown")
        reasons["daemon_shutdown"] = ended(last)
        daemon.process.wait(20)
    with small_disk(4096) as disk, waiting_analyzer() as (analyzer, go), Daemon(data_dir=disk + "/data", env={"PROFD_ANALYZER": analyzer}) as daemon:
        client = daemon.connect()
        full = launch(client, FOREVER, profile={})["capture_id"]
        wait_until(lambda: JournalFile("%s/data/captures/%s/capture.journal" % (disk, full)).samples, 10, "samples on the disk")
        fill(disk)
        wait_symbolizing(client, full)
        os.unlink(disk + "/filler")
        open(go, "w").close()
        reasons["disk_full"] = capture_end(client, full)[1].get("reason")
    assert all(name == value for name, value in reasons.items()) and len(reasons) == 7, reasons


@SENTENCE("where reason is `duration`, `stopped`, `target_exited`, `target_privileged`,")
def test_a_target_that_becomes_privileged():
    user = ordinary_user()
    with Daemon(user=user) as daemon:
        client = daemon.connect()
        path = os.path.join(daemon.root, "set_user_id")
        shutil.copy(target("steady"), path)
        os.chmod(path, 0o4755)
        made = launch(client, ["sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; exec %s 300" % path], profile={})
        name, params = capture_end(client, made["capture_id"])
        assert name == "SamplingProfileFinished" and params["reason"] == "target_privileged" and params["samples"] > 10, params
        assert client.wait_event("ProcessExited")["exit_code"] == 0


@SENTENCE("`CaptureRecovered {capture_id}` (found half-made after a crash; finished with reason `recovered` and a warning `recovered` "
          "that says up to which time it was gathered, or failed with `interrupted` when it held no samples, or as any other fails; it "
          "comes directly behind that terminal event, and until then the capture runs and is `symbolizing`)")
def test_recovery():
    with waiting_analyzer() as (analyzer, go), Daemon(env={"PROFD_ANALYZER": analyzer}) as daemon:
        client = daemon.connect()
        capture = launch(client, FOREVER, profile={})["capture_id"]
        empty = launch(client, ["sleep", "60"], profile={"hz": 1})["capture_id"]
        path = os.path.join(daemon.data_dir, "captures", capture, "capture.journal")
        wait_until(lambda: JournalFile(path).samples, 10, "samples on the disk")
        daemon.process.kill()
        daemon.process.wait()
        killed, on_disk = time.time(), JournalFile(path).samples
        daemon.start()
        client = daemon.connect()
        instance = client.call("Hello", client="t")["instance_id"]
        client.call("Subscribe", since_seq=0, instance_id=instance)
        assert client.call("GetCapture", capture_id=capture)["state"] == "symbolizing" and client.call("GetStatus")["captures"] >= 1
        open(go, "w").close()
        for each, event in ((capture, "SamplingProfileFinished"), (empty, "SamplingProfileFailed")):
            wait_until(lambda: "CaptureRecovered" in names(client, each) or client.read_some(0.1) and False, 20, "the recovery")
            kinds = [line["method"] for line in client.lines if line.get("params", {}).get("capture_id") == each]
            assert kinds[-2:] == [event, "CaptureRecovered"] and kinds.count(event) == 1, kinds
            sequence = [line["params"]["seq"] for line in client.lines if line.get("params", {}).get("capture_id") == each]
            assert sequence[-1] == sequence[-2] + 1, "directly behind"
        _, params = capture_end(client, capture)
        assert params["reason"] == "recovered" and params["samples"] == on_disk, params
        text, = [warning["message"] for warning in params["warnings"] if warning["code"] == "recovered"]
        until = time.mktime(time.strptime(re.search(r"\d+-\d+-\d+ \d+:\d+:\d+", text)[0], "%Y-%m-%d %H:%M:%S")) - time.timezone
        assert killed - 4 < until <= killed + 1, (text, killed)
        assert capture_end(client, empty)[1]["error"]["data"]["code"] == "interrupted"
        recovered, = [event["params"] for event in client.events if event["method"] == "CaptureRecovered" and event["params"]["capture_id"] == capture]
        assert set(recovered) == {"capture_id", "seq"}


@SENTENCE("Each capture ends with exactly one `…Finished` or `…Failed`, and nothing but a `CaptureRecovered` follows it; it comes before "
          "the replies that waited for it (`StopCapture`, `WaitCapture`). The artifacts that a `…Finished` names exist, complete, under "
          "their final names, before it is sent.")
def test_one_end_before_the_replies():
    for stop in ("StopCapture", "WaitCapture"):
        with waiting_analyzer() as (analyzer, go), Daemon(env={"PROFD_ANALYZER": analyzer}) as daemon, Raw(daemon.socket_path) as raw:
            other = daemon.connect()
            raw.send({"id": 1, "method": "LaunchProcess", "params": {"argv": FOREVER, "stdio": "null", "profile": {"progress_ms": 50,
                      **({"duration_ms": 300} if stop == "WaitCapture" else {})}}})
            capture = raw.message()["result"]["capture_id"]
            wait_sampled(other, capture)
            raw.send(*[{"id": number, "method": stop, "params": {"capture_id": capture}} for number in (2, 3)])
            wait_symbolizing(other, capture)
            open(go, "w").close()
            heard = raw.until(lambda message: message.get("method") == "SamplingProfileFinished")
            for artifact in heard[-1]["params"]["artifacts"]:
                with open(artifact["path"], "rb") as file:
                    assert len(file.read()) == artifact["bytes"] > 0, artifact
            with open(heard[-1]["params"]["metadata_path"]) as file:
                json.load(file)
            assert not [message for message in heard if message.get("id") in (2, 3)]
            heard += [raw.message(), raw.message()]
            assert sorted(message["id"] for message in heard[-2:]) == [2, 3] and raw.silent(0.3)
            folder = os.path.dirname(heard[-3]["params"]["folded_path"])
            assert not [name for name in os.listdir(folder) if name.endswith((".tmp", "~", ".part"))]


if __name__ == "__main__":
    main(globals())
