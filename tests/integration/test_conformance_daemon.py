"""docs/protocol.md, chapter 4: the daemon's own methods, subscriptions, and its end. All cases at once: most of them wait."""
import json
import re
import resource
import subprocess
import sys
import time

import contract
from contract import SENTENCE, Raw
from harness import FOREVER, Daemon, alive, capture_end, main, program, wait_sampled, wait_until

def launch(client, argv, **params):
    return client.call("LaunchProcess", argv=argv, **{"stdio": "null", **params})


def builds(client, name):
    return [event["params"]["build_id"] for event in client.events if event["method"] == name]


def settle(client):
    """Everything that was sent before is read."""
    client.call("Ping")


@SENTENCE("`Hello` | client, version?, protocol? | server, version, protocol {major,minor}, instance_id, pid, capabilities {samplers, "
          "unwinders, modes, gpu, exports, …}, limits", "`Ping` | – | now_unix_us", "`GetStatus` | – | version, pid, instance_id, "
          "uptime_ms, clients, builds, captures, rss_bytes, …", "`Hello`, `Ping`, `GetStatus` and `Shutdown` never change, so that a new "
          "client can always stop an old daemon.")
def test_what_never_changes():
    with Daemon() as daemon, Raw(daemon.socket_path) as raw:
        began = time.monotonic()
        version = subprocess.run([program("profd"), "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
        hello = raw.ask(b'{"jsonrpc":"2.0","id":1,"method":"Hello","params":{"client":"c","version":"9","protocol":{"major":1,"minor":0}}}\n')["result"]
        assert hello["server"] == "profd" and hello["version"] == version and hello["pid"] == daemon.process.pid
        assert hello["protocol"]["major"] == 1 and isinstance(hello["protocol"]["minor"], int)
        assert all(isinstance(hello["capabilities"][name], list) for name in ("samplers", "unwinders", "modes", "gpu", "exports"))
        assert hello["limits"] and raw.ask(b'{"id":1,"method":"Hello"}\n')["error"]["code"] == -32602
        before = time.time_ns() // 1000
        assert before <= raw.ask(b'{"jsonrpc":"2.0","id":2,"method":"Ping"}\n')["result"]["now_unix_us"] <= time.time_ns() // 1000
        client = daemon.connect()
        launch(client, FOREVER, profile={})
        status = raw.ask(b'{"jsonrpc":"2.0","id":3,"method":"GetStatus"}\n')["result"]
        assert (status["version"], status["pid"], status["instance_id"]) == (version, daemon.process.pid, hello["instance_id"])
        assert (status["clients"], status["builds"], status["captures"]) == (2, 1, 1), status
        with open("/proc/%d/statm" % daemon.process.pid) as file:
            pages = int(file.read().split()[1])
        assert abs(status["rss_bytes"] - pages * 4096) < 4 << 20 and abs(status["uptime_ms"] - (time.monotonic() - began) * 1000) < 3000
        assert raw.ask(b'{"jsonrpc":"2.0","id":4,"method":"Shutdown"}\n')["id"] == 4
        assert daemon.process.wait(20) == 0


def parameters(row):
    """The names in the second cell of a row of chapter 4, what stands in brackets aside."""
    return set(re.findall(r"[a-z_0-9]{2,}", re.sub(r"\([^()]*\)|\([^()]*\([^()]*\)[^()]*\)|\{[^}]*\}|`[^`]*`", "", row.split(" | ")[1])))


@SENTENCE("`Describe` | method?, cursor? | the methods, params, results, events and errors, machine readable")
def test_describe_says_what_the_contract_says():
    with Daemon() as daemon:
        client, document = daemon.connect(), contract.read_document()
        methods = {method["name"]: method for method in client.everything("Describe", "methods")}
        rows = re.findall(r"(?m)^\| (`[A-Z]\w+`.*)$", contract.chapters(document)[4])
        named = {name for row in rows for name in re.findall(r"`(\w+)`", row.split(" | ")[0])}
        assert set(methods) == named, set(methods) ^ named
        assert {name for name in methods if methods[name]["supported"]} == contract.built_methods(document)
        for row in rows:
            name = re.findall(r"`(\w+)`", row.split(" | ")[0])
            if len(name) == 1 and methods[name[0]]["supported"]:
                said = {param["name"] for param in methods[name[0]]["params"]}
                assert not said - set(re.findall(r"\w+", row)), (name, said)
                assert not {word for word in re.findall(r"(\w+)\?", row.split(" | ")[1])} - said, (name, said)
                assert methods[name[0]]["result"] is not None
        assert client.call("Describe", method="Ping")["methods"] == [methods["Ping"]]


@SENTENCE("and errors, machine readable")
def test_describe_has_the_events_of_the_contract():
    with Daemon() as daemon:
        chapter = contract.chapters(contract.read_document())[5]
        described = {event["name"]: set(re.findall(r"\w+", event["members"])) for event in daemon.connect().call("Describe")["events"]}
        named = {name: set(re.findall(r"\w+", re.sub(r"[|:]", " ", members)))
                 for name, members in re.findall(r"`([A-Z]\w+) ?(?:\{([^`]*)\})?`", chapter) if "Capture" not in name[3:]}
        named["CaptureRecovered"] = {"capture_id"}
        wrong = [(name, members ^ described.get(name, set())) for name, members in named.items()
                 if name not in described or members and members != described[name] - {"or"}]
        assert not set(described) - set(named) and not wrong, wrong


@SENTENCE("`Doctor` | build_id or pid? | checks [{id, status ok/warn/fail, value, message, fix}]: what will work here,")
def test_the_doctor_says_what_the_kernel_says():
    with Daemon() as daemon:
        checks = {check["id"]: check for check in daemon.connect().call("Doctor")["checks"]}
        for check in checks.values():
            assert set(check) == {"id", "status", "value", "message", "fix"} and check["status"] in ("ok", "warn", "fail"), check
            assert check["message"] and (check["status"] == "ok" or check["fix"]), check
        for name, path in (("perf_event_paranoid", "perf_event_paranoid"), ("max_sample_rate", "perf_event_max_sample_rate"),
                           ("max_stack", "perf_event_max_stack"), ("kernel_symbols", "kptr_restrict")):
            with open("/proc/sys/kernel/" + path) as file:
                assert file.read().strip() in checks[name]["value"].split(), checks[name]


@SENTENCE("for this target, and what to change")
def test_the_doctor_says_what_to_change_and_that_targets_are_not_built():
    with Daemon() as daemon:
        client = daemon.connect()
        made = launch(client, ["sleep", "60"], build_id="b")
        for name, value in (("build_id", "b"), ("pid", made["pid"])):
            error = client.fails("Doctor", **{name: value})
            assert error.code == "unsupported" and name in error.message, error.error
        resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, (64, resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE)[1]))
        check, = [check for check in client.call("Doctor")["checks"] if check["id"] == "descriptors"]
        assert "64" in check["value"] and check["status"] != "ok" and check["fix"], check


@SENTENCE("`Subscribe` / `Unsubscribe` | events?, build_id?, capture_id?, since_seq? (with instance_id), cursor? / subscription_id | "
          "subscription_id, snapshot of the current state (paged: next_cursor), next_seq, gap", "`Subscribe` without filters means every "
          "event; `events` names some, `build_id` and `capture_id` those about one or the other (also of a build that is launched later).")
def test_subscriptions_and_their_filters():
    with Daemon() as daemon:
        doer, every, some, one, none = [daemon.connect() for _ in range(5)]
        reply = every.call("Subscribe")
        assert isinstance(reply["subscription_id"], str) and reply["gap"] is False and isinstance(reply["next_seq"], int)
        some.call("Subscribe", events=["ProcessExited"])
        one.call("Subscribe", build_id="later")
        number = none.call("Subscribe")["subscription_id"]
        none.call("Unsubscribe", subscription_id=number)
        doer.call("LaunchProcess", argv=["echo", "x"], build_id="first")
        doer.wait_event("ProcessExited", build_id="first")
        made = doer.call("LaunchProcess", argv=["sh", "-c", "echo y; while [ ! -e %s/go ]; do :; done" % daemon.root], build_id="later", hold=True)
        capture = doer.call("StartSamplingProfile", build_id="later")["capture_id"]
        captures = daemon.connect()
        captures.call("Subscribe", capture_id=capture)
        doer.call("ResumeProcess", build_id="later")
        wait_sampled(doer, capture)
        open(daemon.root + "/go", "w").close()
        wait_until(lambda: not alive(made["pid"]), 10, "the end of the program")
        capture_end(doer, capture)
        doer.wait_event("ProcessExited", build_id="later")
        for client in (every, some, one, none, captures):
            settle(client)
        assert builds(every, "ProcessExited") == ["first", "later"] and builds(every, "ProcessOutput") == ["first", "later"]
        assert builds(some, "ProcessExited") == ["first", "later"] and len(some.events) == 2
        assert builds(one, "ProcessExited") == ["later"] and {event["params"]["build_id"] for event in one.events} == {"later"}
        assert {"SamplingProfileStarted", "SamplingProfileFinished", "ProcessStarted"} <= {event["method"] for event in one.events}
        assert none.events == [] and {event["params"].get("capture_id") for event in captures.events} == {capture}
        assert [event["method"] for event in captures.events][-1] == "SamplingProfileFinished"


@SENTENCE("`snapshot` is {processes [record], captures [record]}: all builds known and the captures that run; with a filter only what it "
          "names, ended or not. More of it comes with `cursor`, which makes no new subscription.")
def test_the_snapshot():
    with Daemon() as daemon:
        doer, client = daemon.connect(), daemon.connect()
        pids = {}
        for number in range(40):
            argv = ["sh", "-c", "exit 0", "x" * 4000] if number < 5 else ["sleep", "60", *["0"] * 1990]
            pids[str(number)] = launch(doer, argv, build_id=str(number))["pid"]
        capture = launch(doer, FOREVER, build_id="c", profile={})["capture_id"]
        ended = launch(doer, FOREVER, build_id="d", profile={"duration_ms": 100})["capture_id"]
        capture_end(doer, ended)
        wait_until(lambda: not any(alive(pids[str(number)]) for number in range(5)), 10, "the end of some")
        page = client.call("Subscribe", events=["ProcessStarted"])
        records, captures, pages = page["snapshot"]["processes"], page["snapshot"]["captures"], 1
        while "next_cursor" in page:
            page = client.call("Subscribe", cursor=page["next_cursor"])
            records += page["snapshot"]["processes"]
            captures += page["snapshot"]["captures"]
            pages += 1
        assert pages > 2 and sorted(record["build_id"] for record in records) == sorted([*pids, "c", "d"]), (pages, len(records))
        for record in records:
            assert (record["state"] == "running") is alive(record["pid"]), record
        assert [record["capture_id"] for record in captures] == [capture]
        launch(doer, ["true"], build_id="new")
        doer.wait_event("ProcessExited", build_id="new")
        settle(client)
        assert builds(client, "ProcessStarted") == ["new"], "one subscription, and one event of it"
        client.call("Unsubscribe", subscription_id="1")
        snapshot = client.call("Subscribe", build_id="0")["snapshot"]
        assert [record["state"] for record in snapshot["processes"]] == ["exited"] and snapshot["captures"] == []
        snapshot = client.call("Subscribe", capture_id=ended)["snapshot"]
        assert [record["state"] for record in snapshot["captures"]] == ["finished"] and snapshot["processes"] == []


@SENTENCE("What `since_seq` missed is sent behind the reply; with another daemon's `instance_id` that is everything of this one, and "
          "`gap` is true.")
def test_what_was_missed():
    with Daemon() as daemon:
        doer = daemon.connect()
        instance = doer.call("Hello", client="t")["instance_id"]
        for number in range(6):
            launch(doer, ["true"], build_id=str(number))
            doer.wait_event("ProcessExited", build_id=str(number))
        seen = [line["params"]["seq"] for line in doer.lines if line.get("method") == "ProcessExited"]
        with Raw(daemon.socket_path) as raw:
            raw.send({"id": 1, "method": "Subscribe", "params": {"since_seq": seen[3], "instance_id": instance}}, {"id": 2, "method": "Ping"})
            messages = raw.until(lambda message: message.get("id") == 2)
            assert messages[0]["id"] == 1 and messages[0]["result"]["gap"] is False
            assert [(m["method"], m["params"]["build_id"]) for m in messages[1:] if "method" in m] == [
                ("ProcessStarted", "4"), ("ProcessExited", "4"), ("ProcessStarted", "5"), ("ProcessExited", "5")]
        late = daemon.connect()
        assert late.call("Subscribe", since_seq=seen[3], instance_id="0" * 32)["gap"] is True
        settle(late)
        assert builds(late, "ProcessStarted") == [str(number) for number in range(6)]


@SENTENCE("Kept are 4,096 events of at most 3 MiB.", "4,096 events are kept for `since_seq` (progress and output are not).")
def test_so_many_events_are_kept():
    with Daemon() as daemon:
        doer = daemon.connect()
        instance, last = doer.call("Hello", client="t")["instance_id"], 0

        def make(count, tail):
            nonlocal last
            for _ in range(0, count, 60):
                ids = ["%05d" % (last + at) + tail for at in range(60)]
                last += 60
                params = [{"argv": ["/bin/echo", "x"], "stdio": "pipe"}] + [{"argv": ["/bin/true"], "stdio": "null"}] * 59
                doer.send_raw(b"".join(json.dumps({"id": each[:5], "method": "LaunchProcess", "params": {**more, "build_id": each}}).encode() + b"\n"
                                       for more, each in zip(params, ids)))
                for _ in ids:
                    doer.wait_event("ProcessExited")
                doer.events.clear()
                doer.lines.clear()

        def kept():
            with Raw(daemon.socket_path) as raw:
                raw.send({"id": 1, "method": "Subscribe", "params": {"since_seq": 0, "instance_id": instance}})
                reply = raw.message()
                lines = []
                raw.send({"id": 2, "method": "Ping"})
                while not lines or b'"id":2' not in lines[-1]:
                    lines.append(raw.line())
                assert reply["result"]["gap"] is True
                return [line for line in lines if b'"id"' not in line]
        make(2400, "\x01" * 123)
        lines = kept()
        assert 2.5 * (1 << 20) < sum(map(len, lines)) <= 3 << 20 and len(lines) < 4096, (len(lines), sum(map(len, lines)))
        make(2160, "")
        lines = kept()
        assert len(lines) == 4096 and not any(b"ProcessOutput" in line for line in lines), len(lines)


@SENTENCE("`DaemonStopping` and `EventsDropped` come without asking.", "– (replied at once, then `DaemonStopping`)")
def test_the_end_is_told_to_everyone():
    with Daemon() as daemon, Raw(daemon.socket_path) as other, Raw(daemon.socket_path) as raw:
        other.ask({"id": 1, "method": "Ping"})
        raw.send({"id": 1, "method": "Shutdown"})
        first, second = raw.message(), raw.message()
        assert first["id"] == 1 and "result" in first and second["method"] == "DaemonStopping", (first, second)
        assert other.message()["method"] == "DaemonStopping" and other.line() == b"" and raw.line() == b""
        assert daemon.process.wait(20) == 0
    with Daemon() as daemon:
        client = daemon.connect()
        loud = [sys.executable, "-c", "import os\nfor _ in range(100): os.write(1, b'x' * 65536)"]
        made = client.call("LaunchProcess", argv=loud)
        wait_until(lambda: not alive(made["pid"]), 20, "the end of the program")
        assert client.wait_event("EventsDropped")["counts"]


@SENTENCE("64 subscriptions per connection.")
def test_64_subscriptions():
    with Daemon() as daemon:
        client, other = daemon.connect(), daemon.connect()
        ids = {client.call("Subscribe", build_id="b")["subscription_id"] for _ in range(64)}
        error = client.fails("Subscribe")
        assert len(ids) == 64 and error.code == "limit_exceeded" and "64" in error.message
        assert other.call("Subscribe")
        client.call("Unsubscribe", subscription_id=ids.pop())
        assert client.call("Subscribe")


if __name__ == "__main__":
    main(globals(), together=True)
