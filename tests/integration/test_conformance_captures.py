"""docs/protocol.md, chapter 4: sampling captures, from their start to their end. And chapter 0: what is not built says so."""
import os
import sys
import time

from contract import SENTENCE
from harness import FOREVER, Daemon, Gate, ProfdError, alive, capture_end, main, read_folded, target, wait_sampled, wait_until
from journals import JournalFile

FORKS = "import os,time\ndef burn(s):\n end = time.process_time() + s\n while time.process_time() < end: pass\n" \
        "if os.fork() == 0:\n burn(0.4)\n os._exit(0)\nburn(0.3)\nos.wait()"


def launch(client, argv, **params):
    return client.call("LaunchProcess", argv=argv, **{"stdio": "null", **params})


def folder(daemon, capture_id):
    return os.path.join(daemon.data_dir, "captures", capture_id)


def cpu_s(pid):
    """The process's own CPU time by the kernel's clock."""
    return time.clock_gettime_ns((~pid << 3) | 2) / 1e9


@SENTENCE("select? ({exe or name, wait_ms}: that descendant, because a hub's child is often `cargo`; `armed` while waiting, `timeout` "
          "after it);", "`wall`, `offcpu`;", "`tree` (and all descendants, until the last has ended);", "threads? (filter);", "symbol_path?; debuginfod? (false);", "ring_ms?, when?;", "`tick`, `ptrace`, `mach`;",
          "a tree capture may overlap one.")
def test_what_is_not_built_says_so():
    with Daemon() as daemon:
        client = daemon.connect()
        launch(client, FOREVER, build_id="b")
        for name, value in (("select", {"name": "x"}), ("mode", "wall"), ("mode", "offcpu"), ("scope", "tree"), ("threads", ["x"]),
                            ("symbol_path", ["/x"]), ("debuginfod", True), ("ring_ms", 5), ("when", {}),
                            ("sampler", "tick"), ("sampler", "ptrace"), ("sampler", "mach")):
            try:
                raise AssertionError("%s %s: %s" % (name, value, client.call("StartSamplingProfile", build_id="b", **{name: value})))
            except ProfdError as refusal:
                error = refusal
            assert error.code == "unsupported" and name in error.message, (name, error.error)
            assert isinstance(value, (list, dict, bool, int)) or value in error.message, (value, error.error)


@SENTENCE("All of them take the same `filter`: `{threads, processes, images, symbols, exclude_threads, exclude_processes, "
          "exclude_images, exclude_symbols, from_ms, to_ms}` (globs), and `invert` and `merge_recursion` where they make sense.")
def test_what_reads_captures_is_not_built():
    with Daemon() as daemon:
        client = daemon.connect()
        for method in ("QueryFrameTree", "QueryFunctions", "QueryCallers", "QueryLines", "QueryThreads", "QueryImages", "QueryTimeline", "DiffCaptures",
                       "ExportCapture", "ImportCapture"):
            error = client.fails(method, filter={"threads": ["*"]}, invert=True)
            assert error.code == "unsupported" and method in error.message, error.error


@SENTENCE("`StartSamplingProfile` | build_id **or** pid;", "| capture_id and the effective values (sampler, unwinder, hz, state, "
          "warnings). The reply comes once events are armed: state `sampling`, or `armed` on a held build; duration and elapsed time "
          "begin with the program")
def test_a_start_and_its_reply():
    with Daemon() as daemon, Gate(daemon, FOREVER) as gate:
        client = daemon.connect()
        held = launch(client, FOREVER, build_id="held", hold=True)
        running = launch(client, FOREVER, build_id="running")
        for wrong in ({}, {"build_id": "running", "pid": running["pid"]}):
            assert client.fails("StartSamplingProfile", **wrong).number == -32602
        made = client.call("StartSamplingProfile", build_id="running", hz=500)
        assert made["state"] == "sampling" and made["hz"] == 500 and made["sampler"] == "perf" and made["unwinder"] == "dwarf" and made["warnings"] == []
        for params in ({"pid": gate.pid}, {"build_id": "held", "duration_ms": 300, "progress_ms": 50}):
            made = client.call("StartSamplingProfile", **params)
            assert made["state"] == "armed" and made["capture_id"], made
        # Armed: the kernel's events of all three are open.
        place = "/proc/%d/fd/" % daemon.process.pid
        assert [os.readlink(place + name) for name in os.listdir(place)].count("anon_inode:[perf_event]") >= 3
        time.sleep(0.5)
        assert client.call("GetCapture", capture_id=made["capture_id"])["state"] == "armed"
        client.call("ResumeProcess", build_id="held")
        _, params = capture_end(client, made["capture_id"])
        assert params["reason"] == "duration" and 280 <= params["summary"]["duration_ms"] <= 400 and params["samples"] <= 999 * 0.4, params
        elapsed = [event["params"]["elapsed_ms"] for event in client.events if event["method"] == "SamplingProfileProgress"
                   and event["params"]["capture_id"] == made["capture_id"] and event["params"]["state"] == "sampling"]
        assert elapsed and elapsed[0] < 250 and alive(held["pid"]), elapsed


@SENTENCE("duration_ms? (1 to 604,800,000; left out: until stopped; it ends the sampling, never the program), hz? (999; up to the "
          "kernel's maximum, above it `hz_too_high`); mode: `cpu` (default),")
def test_duration_hz_and_mode():
    with open("/proc/sys/kernel/perf_event_max_sample_rate") as file:
        most = int(file.read())
    with Daemon() as daemon:
        client = daemon.connect()
        made = launch(client, FOREVER, build_id="b")
        for duration in (0, 604800001):
            assert client.fails("StartSamplingProfile", build_id="b", duration_ms=duration).number == -32602
        assert client.fails("StartSamplingProfile", build_id="b", hz=most + 1).code == "hz_too_high"
        for hz, expected in ((None, 999), (most, most), (1, 1)):
            started = client.call("StartSamplingProfile", build_id="b", hz=hz, duration_ms=604800000, mode="cpu")
            assert started["hz"] == expected
            client.call("StopCapture", capture_id=started["capture_id"])
        before = cpu_s(made["pid"])
        started = client.call("StartSamplingProfile", build_id="b", duration_ms=400)
        _, params = capture_end(client, started["capture_id"])
        used = cpu_s(made["pid"]) - before
        # No more samples than CPU time gives, and most of them.
        assert 0.5 * 999 * min(used, 0.4) <= params["samples"] <= 999 * used + 2, (params["samples"], used)
        assert params["reason"] == "duration" and alive(made["pid"])
        one = client.call("StartSamplingProfile", build_id="b", duration_ms=1)["capture_id"]
        capture_end(client, one)
        endless = client.call("StartSamplingProfile", build_id="b")["capture_id"]
        wait_sampled(client, endless)
        time.sleep(0.5)
        assert client.call("GetCapture", capture_id=endless)["state"] == "sampling"
        assert client.call("StopCapture", capture_id=endless)["reason"] == "stopped"
        idle = launch(client, ["sleep", "60"], profile={"duration_ms": 200, "hz": 99})
        _, params = capture_end(client, idle["capture_id"])
        assert params["error"]["data"]["code"] == "no_samples" and alive(idle["pid"]), "cpu: sleep is not sampled"


@SENTENCE("scope: `process` (default: this process; a child that it forks is another),")
def test_a_child_is_another():
    with Daemon() as daemon:
        client = daemon.connect()
        made = launch(client, [sys.executable, "-c", FORKS], profile={})
        _, params = capture_end(client, made["capture_id"])
        ended = client.wait_event("ProcessExited", build_id=made["build_id"])
        total = (ended["user_us"] + ended["system_us"]) / 1e6
        # The kernel's figure has the child's 0.4 s too; the samples have the 0.3 s and the interpreter's own start.
        assert total > 0.65 and 0.25 * 999 < params["samples"] < (total - 0.35) * 999, (total, params["samples"])


@SENTENCE("unwind: `auto` (default: by call-frame information, and by frame pointers where code has none), `fp` (by frame pointers, as the kernel follows them), `dwarf` (by call-frame information alone);", "stitch? (true);", "kernel? (false);", "max_depth? (1 to 4,096 frames that are kept of a stack; 1,024, with `fp` the kernel's limit, which is never exceeded);", "sampler: `auto` (default), `perf`,", "formats?;", "label?;")
def test_options_of_a_capture():
    with Daemon() as daemon:
        client = daemon.connect()
        syscalls = [sys.executable, "-c", "import os,time\nend = time.process_time() + 0.2\nwhile time.process_time() < end: os.stat('/proc/self/status')"]
        for options, unwinder in (({}, "dwarf"), ({"kernel": False, "unwind": "auto", "sampler": "auto"}, "dwarf"), ({"unwind": "dwarf", "stitch": False}, "dwarf"),
                                  ({"kernel": True, "sampler": "perf", "unwind": "fp"}, "fp")):
            made = launch(client, syscalls, profile=options)
            record = client.call("WaitCapture", capture_id=made["capture_id"])
            frames = {frame for stack in read_folded(record["folded_path"]) for frame in stack}
            assert any(frame.endswith("_[k]") for frame in frames) is bool(options.get("kernel")), (options, sorted(frames)[:20])
            assert record["sampler"] == "perf" and record["unwinder"] == unwinder
        made = launch(client, [target("recursion")], profile={"max_depth": 5, "formats": ["folded"], "label": "a \u20ac"})
        record = client.call("WaitCapture", capture_id=made["capture_id"])
        assert record["label"] == "a \u20ac" and record["svg_path"] is None and record["metadata_path"] is None, record
        assert sorted(os.listdir(folder(daemon, made["capture_id"]))) == ["capture.folded", "capture.journal", "capture.symbols", "record.json"]
        depths = [len([frame for frame in stack[1:] if not frame.startswith("[")]) for stack in read_folded(record["folded_path"])]
        assert max(depths) == 5, depths


@SENTENCE("max_bytes?;", "output_dir?; formats?;", "progress_ms? (250);")
def test_more_options_of_a_capture():
    with Daemon() as daemon:
        client = daemon.connect()
        os.mkdir(daemon.root + "/out")
        burner = [sys.executable, "-c", "def f(n):\n x = 0\n for i in range(20): x += i\n return f(n - 1) if n else x\n"
                  "while True:\n for n in range(0, 90, 3): f(n)"]
        made = launch(client, burner, profile={"max_bytes": 65536, "hz": 20000, "output_dir": daemon.root + "/out"})
        _, params = capture_end(client, made["capture_id"])
        inside = "%s/out/%s/" % (daemon.root, made["capture_id"])
        assert params["reason"] == "limit" and params["folded_path"] == inside + "capture.folded" and os.path.getsize(params["folded_path"]), params
        # It is looked at four times a second: a quarter's samples of some 100 bytes, and a chunk.
        size = os.path.getsize(inside + "capture.journal")
        assert 65536 - 4096 <= size <= 65536 + 262144 + 20000 // 4 * 150 and alive(made["pid"]), (size, params)
        client.call("StopProcess", build_id=made["build_id"])
        for step, value, duration in ((250, None, 900), (100, 100, 500)):
            made = launch(client, FOREVER, profile={"progress_ms": value, "duration_ms": duration})
            capture_end(client, made["capture_id"])
            elapsed = [event["params"]["elapsed_ms"] for event in client.events if event["method"] == "SamplingProfileProgress"
                       and event["params"]["capture_id"] == made["capture_id"] and event["params"]["state"] == "sampling"]
            assert duration // step - 2 <= len(elapsed) <= duration // step + 1, (step, elapsed)


@SENTENCE("subscribe? (true); on_client_exit: `continue` (default), `stop`; request_key?")
def test_events_and_the_clients_end():
    with Daemon() as daemon:
        client, silent = daemon.connect(), daemon.connect()
        made = [launch(client, FOREVER, build_id=str(number)) for number in range(3)]
        quiet = silent.call("StartSamplingProfile", build_id="0", subscribe=False)["capture_id"]
        ends = {}
        for number, choice in ((1, {"on_client_exit": "stop"}), (2, {})):
            other = daemon.connect()
            ends[number] = other.call("StartSamplingProfile", build_id=str(number), **choice)["capture_id"]
            wait_sampled(client, ends[number])
            other.close()
        wait_until(lambda: os.path.exists(folder(daemon, ends[1]) + "/capture.json"), 10, "the end of it")
        assert client.call("GetCapture", capture_id=ends[1])["reason"] == "client_exited"
        assert client.call("GetCapture", capture_id=ends[2])["state"] == "sampling" and all(alive(each["pid"]) for each in made)
        client.call("StopCapture", capture_id=quiet)
        silent.call("Ping")
        assert silent.events == [], silent.events


@SENTENCE("`StopCapture` | capture_id or all: true; discard? | final record; keeps what was gathered; idempotent. With `discard` "
          "everything of it is deleted: its terminal event is `…Failed` with `cancelled`, afterwards it is `capture_not_found`; one that has ended is deleted")
def test_stops():
    with Daemon() as daemon:
        client = daemon.connect()
        ids = [launch(client, FOREVER, profile={})["capture_id"] for _ in range(4)]
        for capture_id in ids:
            wait_sampled(client, capture_id)
        record = client.call("StopCapture", capture_id=ids[0])
        kept = JournalFile(folder(daemon, ids[0]) + "/capture.journal")
        assert record["reason"] == "stopped" and record["samples"] == kept.samples == sum(read_folded(record["folded_path"]).values()) > 0
        assert client.call("StopCapture", capture_id=ids[0]) == record == client.call("StopCapture", capture_id=ids[0], discard=False)
        client.call("StopCapture", capture_id=ids[1], discard=True)
        name, params = capture_end(client, ids[1])
        assert name == "SamplingProfileFailed" and params["error"]["data"]["code"] == "cancelled", params
        assert not os.path.exists(folder(daemon, ids[1])) and client.fails("GetCapture", capture_id=ids[1]).code == "capture_not_found"
        # Its end may come just before the wish.
        discarded = client.call("StopCapture", capture_id=ids[0], discard=True)
        assert discarded["state"] == "failed" and discarded["error"]["data"]["code"] == "cancelled", discarded
        assert not os.path.exists(folder(daemon, ids[0])) and client.fails("GetCapture", capture_id=ids[0]).code == "capture_not_found"
        for wrong in ({}, {"capture_id": ids[2], "all": True}):
            assert client.fails("StopCapture", **wrong).number == -32602, wrong
        records = client.call("StopCapture", all=True)["captures"]
        assert sorted(record["capture_id"] for record in records) == sorted(ids[2:])
        assert all(os.path.getsize(record["folded_path"]) for record in records)


@SENTENCE("`WaitCapture` | capture_id, timeout_ms? | final record", "One sampling capture per process at a time (`capture_busy` names "
          "the first);")
def test_waits_and_one_at_a_time():
    with Daemon() as daemon:
        client = daemon.connect()
        made = launch(client, FOREVER, build_id="b", profile={"duration_ms": 600})
        for wrong in ({"build_id": "b"}, {"pid": made["pid"]}):
            error = client.fails("StartSamplingProfile", **wrong)
            assert error.code == "capture_busy" and made["capture_id"] in error.message, error.error
        began = time.monotonic()
        assert client.fails("WaitCapture", capture_id=made["capture_id"], timeout_ms=100).code == "timeout"
        assert 0.1 <= time.monotonic() - began < 0.5
        record = client.call("WaitCapture", capture_id=made["capture_id"])
        assert record["state"] == "finished" and time.monotonic() - began >= 0.5 and os.path.getsize(record["folded_path"])
        assert client.call("WaitCapture", capture_id=made["capture_id"], timeout_ms=1) == record
        assert client.call("StartSamplingProfile", build_id="b")["state"] == "sampling"


if __name__ == "__main__":
    main(globals())
