"""The methods of the contract, over the socket: what they answer, what they refuse, and how the daemon ends."""
import json
import os
import signal
import subprocess
import time

from harness import SANITIZED, Daemon, ProfdError, main, output_bytes, program, skip, wait_until

BUSY = ["sh", "-c", "while :; do :; done"]

# Chapter 4 of the contract: the methods of this version, and those of later ones.
BUILT = """Hello Ping GetStatus Describe Shutdown LaunchProcess ResumeProcess StopProcess ListProcesses GetProcess
    StartSamplingProfile StopCapture WaitCapture ListCaptures GetCapture""".split()
LATER = """Doctor Subscribe Unsubscribe Cancel AdoptProcess SignalProcess WriteStdin ResizePty GetOutput StartGpuTrace
    SymbolizeCapture DeleteCapture UpdateCapture QueryFrameTree QueryFunctions QueryCallers QueryLines QueryThreads
    QueryImages QueryTimeline DiffCaptures ExportCapture ImportCapture""".split()


def alive(pid):
    """Whether a process runs; one that only waits to be reaped does not."""
    try:
        with open("/proc/%d/stat" % pid) as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def wait_end(client, capture_id):
    """The name and params of a capture's terminal event."""
    def look():
        client.read_some(0.05)
        for event in client.events:
            if event["method"] in ("SamplingProfileFinished", "SamplingProfileFailed"):
                if event["params"]["capture_id"] == capture_id:
                    return event
        return None
    event = wait_until(look, 30, "the end of the capture")
    return event["method"], event["params"]


def place(client, name):
    """Where the first line of that method stands among all that came."""
    return [line.get("method") for line in client.lines].index(name)


def reply_place(client, number):
    return [line.get("id") for line in client.lines].index(number)


def describe(client):
    """All pages of Describe."""
    page = client.call("Describe")
    whole = page
    while "next_cursor" in page:
        page = client.call("Describe", cursor=page["next_cursor"])
        whole["methods"] += page["methods"]
    return whole


def all_processes(client):
    page = client.call("ListProcesses")
    found = page["processes"]
    while "next_cursor" in page:
        page = client.call("ListProcesses", cursor=page["next_cursor"])
        found += page["processes"]
    return found


# The daemon


def test_hello_says_who_answers_and_what_works():
    with Daemon() as daemon:
        hello = daemon.connect().call("Hello", client="test", version="1", protocol={"major": 1, "minor": 0})
        version = subprocess.run([program("profd"), "--version"], capture_output=True, text=True, check=True).stdout
        assert version == "profd %s\n" % hello["version"], version
        assert hello["server"] == "profd" and hello["pid"] == daemon.process.pid
        assert hello["protocol"] == {"major": 1, "minor": 0}
        assert len(hello["instance_id"]) == 32
        assert sorted(hello["capabilities"]["methods"]) == sorted(BUILT)
        assert hello["capabilities"]["stdio"] == ["pipe", "null"] and hello["capabilities"]["gpu"] == []
        assert hello["limits"]["request_bytes"] == 1 << 20 and hello["limits"]["builds"] == 64


def test_another_daemon_has_another_instance_id():
    ids = set()
    for _ in range(2):
        with Daemon() as daemon:
            ids.add(daemon.connect().call("GetStatus")["instance_id"])
    assert len(ids) == 2


def test_ping_tells_the_wall_clock():
    with Daemon() as daemon:
        before = time.time_ns() // 1000
        now = daemon.connect().call("Ping")["now_unix_us"]
        assert before <= now <= time.time_ns() // 1000


def test_status_counts_what_is_there():
    with Daemon() as daemon:
        client, other = daemon.connect(), daemon.connect()
        other.call("Ping")
        launched = client.call("LaunchProcess", argv=["sleep", "60"], stdio="null")
        status = client.call("GetStatus")
        assert (status["clients"], status["builds"], status["captures"]) == (2, 1, 0), status
        assert abs(status["rss_anon_bytes"] // 1024 - daemon.status("RssAnon")) < 4096
        assert 0 <= status["uptime_ms"] < 60000
        client.call("StopProcess", build_id=launched["build_id"])
        assert client.call("GetStatus")["builds"] == 0


def test_describe_tells_the_methods_that_the_dispatcher_knows():
    with Daemon() as daemon:
        client = daemon.connect()
        whole = describe(client)
        said = {method["name"]: method for method in whole["methods"]}
        assert sorted(said) == sorted(BUILT + LATER)
        for name in LATER:
            assert said[name]["supported"] is False
            assert client.fails(name).code == "unsupported"
        for name in BUILT:
            assert said[name]["supported"] is True
            error = client.fails(name, no_such_parameter=1)
            assert (error.code, error.detail) == ("bad_params", "unknown_parameter") and name in error.message
            if any(param["required"] for param in said[name]["params"]):
                error = client.fails(name)
                assert (error.code, error.detail) == ("bad_params", "missing_parameter"), (name, error)
            assert client.call("Describe", method=name)["methods"] == [said[name]]
        codes = {error["code"]: error["number"] for error in whole["errors"]}
        assert codes["build_not_found"] == -32001 and codes["unknown_method"] == -32601
        assert "ProcessOutput" in [event["name"] for event in whole["events"]]


def test_describe_shows_the_ranges_that_are_checked():
    with Daemon() as daemon:
        client = daemon.connect()
        params = client.call("Describe", method="StartSamplingProfile")["methods"][0]["params"]
        checked = 0
        for param in params:
            if param["type"] != "integer" or not param["supported"]:
                continue
            for value in (param["min"] - 1, param["max"] + 1):
                error = client.fails("StartSamplingProfile", **{"build_id": "none", param["name"]: value})
                assert error.code == "bad_params" and error.message.startswith(param["name"] + " "), error
                assert str(value) in error.message and str(param["max"]) in error.message, error
            checked += 1
        assert checked >= 5


def test_an_unknown_method_is_told_with_its_number():
    with Daemon() as daemon:
        error = daemon.connect().fails("GetStatsu")
        assert (error.number, error.code) == (-32601, "unknown_method") and '"GetStatsu"' in error.message


# Processes


def test_a_program_is_launched_heard_and_seen_to_exit():
    with Daemon() as daemon:
        client = daemon.connect()
        number = client.send("LaunchProcess", argv=["sh", "-c", "echo out; echo err >&2; exit 3"], build_id="b")
        launched = client.wait_reply(number)
        assert launched["build_id"] == "b" and sorted(launched) == ["build_id", "pid"]
        exited = client.wait_event("ProcessExited", build_id="b")
        assert (exited["exit_code"], exited["signal"], exited["core_dumped"]) == (3, None, False)
        assert output_bytes(client.events) == b"out\n"
        assert output_bytes(client.events, "stderr") == b"err\n"
        assert client.events[0]["method"] == "ProcessStarted" and client.events[0]["params"]["pid"] == launched["pid"]
        assert reply_place(client, number) < place(client, "ProcessStarted")
        numbers = [line["params"]["seq"] for line in client.lines if "method" in line]
        assert numbers == sorted(set(numbers))
        record = client.call("GetProcess", build_id="b")
        assert record["state"] == "exited" and record["exit_code"] == 3 and record["signal"] is None
        assert record["captures"] == [] and record["argv"][0] == "sh"
        assert abs(record["started_unix_us"] / 1e6 - time.time()) < 60


def test_output_arrives_byte_for_byte():
    everything = bytes(range(256)) * 300 + "aä€😀".encode() * 20000 + b"\xf0\x9f"
    with Daemon() as daemon:
        path = os.path.join(daemon.root, "bytes")
        with open(path, "wb") as file:
            file.write(everything)
        client = daemon.connect()
        client.call("LaunchProcess", argv=["cat", path])
        client.wait_event("ProcessExited")
        assert output_bytes(client.events) == everything
        pieces = [e["params"] for e in client.events if e["method"] == "ProcessOutput"]
        assert all(("data" in piece) != ("data_b64" in piece) for piece in pieces)
        assert all(len(piece.get("data", "").encode()) <= 8192 for piece in pieces)


def test_without_subscription_no_event_comes():
    with Daemon() as daemon:
        client = daemon.connect()
        launched = client.call("LaunchProcess", argv=["echo", "x"], subscribe=False)
        wait_until(lambda: client.call("GetProcess", build_id=launched["build_id"])["state"] == "exited")
        client.drain(0.1)
        assert client.events == []


def test_a_build_id_is_echoed_as_given_and_found_as_number_and_text():
    with Daemon() as daemon:
        client = daemon.connect()
        assert client.call("LaunchProcess", argv=["sleep", "60"], build_id=7)["build_id"] == 7
        assert client.call("GetProcess", build_id="7")["build_id"] == 7
        error = client.fails("LaunchProcess", argv=["true"], build_id="7")
        assert error.code == "build_exists" and "7" in error.message
        client.call("StopProcess", build_id="7")
        client.wait_event("ProcessExited", build_id=7)
        again = client.call("LaunchProcess", argv=["sleep", "60"], build_id="7")
        assert client.call("GetProcess", build_id=7)["pid"] == again["pid"]


def test_the_environment_is_laid_over_or_exact():
    with Daemon(env={"KEPT": "1", "GONE": "1"}) as daemon:
        client = daemon.connect()
        client.call("LaunchProcess", argv=["env"], env={"GONE": None, "NEW": "ä=b"})
        client.wait_event("ProcessExited")
        lines = output_bytes(client.events).decode().splitlines()
        assert "KEPT=1" in lines and "NEW=ä=b" in lines and not any(line.startswith("GONE") for line in lines)
        client.events.clear()
        client.call("LaunchProcess", argv=["/usr/bin/env"], env={"A": "", "B": "2"}, env_mode="exact")
        client.wait_event("ProcessExited")
        assert sorted(output_bytes(client.events).decode().splitlines()) == ["A=", "B=2"]


def test_a_held_program_waits_before_its_first_instruction():
    with Daemon() as daemon:
        client = daemon.connect()
        path = os.path.join(daemon.root, "touched")
        held = client.call("LaunchProcess", argv=["touch", path], cwd=daemon.root, hold=True)
        assert client.call("GetProcess", build_id=held["build_id"])["state"] == "held"
        client.drain(0.1)
        assert client.events == [] and not os.path.exists(path) and alive(held["pid"])
        assert client.call("ResumeProcess", build_id=held["build_id"]) == {"state": "running"}
        assert client.wait_event("ProcessExited")["exit_code"] == 0
        assert os.path.exists(path)
        assert client.fails("ResumeProcess", build_id=held["build_id"]).code == "build_not_running"


def test_resuming_a_running_program_changes_nothing():
    with Daemon() as daemon:
        client = daemon.connect()
        build_id = client.call("LaunchProcess", argv=["sleep", "60"])["build_id"]
        assert client.call("ResumeProcess", build_id=build_id) == {"state": "running"}


def test_a_program_is_stopped_with_the_signal_asked_for():
    with Daemon() as daemon:
        client = daemon.connect()
        for spelling in ("INT", "SIGINT", 2):
            build_id = client.call("LaunchProcess", argv=["sleep", "60"])["build_id"]
            assert client.call("StopProcess", build_id=build_id, signal=spelling) == {
                "exit_code": None, "signal": "SIGINT"}
            assert client.call("StopProcess", build_id=build_id)["signal"] == "SIGINT"
            assert client.call("GetProcess", build_id=build_id)["signal"] == "SIGINT"


def test_a_program_that_ignores_the_signal_is_killed_after_the_grace():
    with Daemon() as daemon:
        client = daemon.connect()
        build_id = client.call("LaunchProcess", argv=["sh", "-c", "trap '' TERM; echo ready; sleep 60 & wait; wait"])["build_id"]
        client.wait_event("ProcessOutput")
        began = time.monotonic()
        assert client.call("StopProcess", build_id=build_id, grace_ms=300)["signal"] == "SIGKILL"
        assert 0.25 < time.monotonic() - began < 4


def test_a_stopped_held_program_never_runs():
    with Daemon() as daemon:
        client = daemon.connect()
        path = os.path.join(daemon.root, "touched")
        held = client.call("LaunchProcess", argv=["touch", path], hold=True)
        client.call("StopProcess", build_id=held["build_id"])
        assert not os.path.exists(path) and not alive(held["pid"])


def test_the_list_of_processes_is_paged_and_complete():
    with Daemon() as daemon:
        client = daemon.connect()
        for number in range(60):
            client.call("LaunchProcess", argv=["sleep", "60", "€" * 3000], build_id="b%d" % number, subscribe=False,
                        stdio="null", hold=True)
        first = client.call("ListProcesses")
        assert 1 < len(first["processes"]) < 60 and "next_cursor" in first
        records = all_processes(client)
        assert [record["build_id"] for record in records] == ["b%d" % number for number in range(60)]
        for record in records:
            assert record["argv_truncated"] is True
            assert sum(len(text.encode()) + 1 for text in record["argv"]) <= 4096
            assert "sleep 60 €€€".startswith(" ".join(record["argv"])[:11])


def test_a_refused_launch_leaves_nothing():
    with Daemon() as daemon:
        client = daemon.connect()
        script = os.path.join(daemon.root, "script")
        with open(script, "w") as file:
            file.write("#!/no/such/interpreter\n")
        os.chmod(script, 0o755)
        plain = os.path.join(daemon.root, "plain")
        with open(plain, "w") as file:
            file.write("x")
        client.call("Ping")
        before = (daemon.descriptors(), daemon.files(), daemon.children())
        cases = [
            ("bad_params", "argv", {}),
            ("bad_params", "argv", {"argv": []}),
            ("bad_params", "argv", {"argv": "true"}),
            ("bad_params", "argv[1]", {"argv": ["true", 1]}),
            ("bad_params", None, {"argv": [""]}),
            ("launch_failed", "/no/such/program", {"argv": ["/no/such/program"]}),
            ("launch_failed", "no-such-program", {"argv": ["no-such-program"]}),
            ("launch_failed", daemon.root, {"argv": [daemon.root]}),
            ("launch_failed", plain, {"argv": [plain]}),
            ("launch_failed", "interpreter", {"argv": [script]}),
            ("launch_failed", "/no/such/folder", {"argv": ["true"], "cwd": "/no/such/folder"}),
            ("bad_params", "cwd", {"argv": ["true"], "cwd": "relative"}),
            ("bad_params", "env", {"argv": ["true"], "env": {"A=B": "c"}}),
            ("bad_params", "env", {"argv": ["true"], "env": {"": "c"}}),
            ("bad_params", "env", {"argv": ["true"], "env": {"A": 1}}),
            ("bad_params", "env", {"argv": ["true"], "env": ["A=1"]}),
            ("bad_params", "env_mode", {"argv": ["true"], "env_mode": "other"}),
            ("bad_params", "build_id", {"argv": ["true"], "build_id": ""}),
            ("bad_params", "build_id", {"argv": ["true"], "build_id": 1.5}),
            ("bad_params", "build_id", {"argv": ["true"], "build_id": 2 ** 53 + 2}),
            ("bad_params", "hold", {"argv": ["true"], "hold": "yes"}),
            ("bad_params", "stdio", {"argv": ["true"], "stdio": "tty"}),
            ("unsupported", "stdio", {"argv": ["true"], "stdio": "pty"}),
            ("unsupported", "gpu", {"argv": ["true"], "gpu": True}),
            ("unsupported", "on_daemon_exit", {"argv": ["true"], "on_daemon_exit": "leave"}),
            ("bad_params", "profile.hz", {"argv": ["true"], "profile": {"hz": 0}}),
            ("bad_params", "profile.hz", {"argv": ["true"], "profile": {"hz": -1}}),
            ("bad_params", "profile.hz", {"argv": ["true"], "profile": {"hz": "999"}}),
            ("bad_params", "profile.build_id", {"argv": ["true"], "profile": {"build_id": "x"}}),
            ("bad_params", "profile.duration_ms", {"argv": ["true"], "profile": {"duration_ms": 0}}),
            ("bad_params", "profile.output_dir", {"argv": ["true"], "profile": {"output_dir": "a"}}),
            ("unsupported", "profile.scope", {"argv": ["true"], "profile": {"scope": "tree"}}),
            ("hz_too_high", "1000000000", {"argv": ["true"], "profile": {"hz": 10 ** 9}}),
            (None, "/no/such/folder", {"argv": ["true"], "profile": {"output_dir": "/no/such/folder"}}),
            ("launch_failed", "no-such-program", {"argv": ["no-such-program"], "profile": {}}),
        ]
        for code, word, params in cases:
            error = client.fails("LaunchProcess", **params)
            assert code is None or error.code == code, (params, error)
            assert word is None or word in error.message, (params, error)
            assert error.hint, (params, error)
        assert client.call("ListProcesses") == {"processes": []}
        wait_until(lambda: client.call("ListCaptures") == {"captures": []}, 5, "an empty list of captures")
        assert client.call("GetStatus")["builds"] == 0
        wait_until(lambda: (daemon.descriptors(), daemon.files(), daemon.children()) == before, 5, "the state before")
        assert client.events == []


def test_a_build_that_is_not_known_is_told_by_every_method():
    with Daemon() as daemon:
        client = daemon.connect()
        for method in ("GetProcess", "StopProcess", "ResumeProcess", "StartSamplingProfile"):
            error = client.fails(method, build_id="nobody")
            assert error.code == "build_not_found" and "nobody" in error.message


def test_a_client_that_goes_leaves_its_program_running():
    with Daemon() as daemon:
        client, other = daemon.connect(), daemon.connect()
        launched = client.call("LaunchProcess", argv=["sleep", "60"], build_id="kept")
        client.send("StopProcess", build_id="none")
        client.close()
        wait_until(lambda: other.call("GetStatus")["clients"] == 1)
        assert other.call("GetProcess", build_id="kept")["state"] == "running" and alive(launched["pid"])


def test_a_client_that_vanishes_while_it_waits_is_forgotten():
    with Daemon() as daemon:
        other = daemon.connect()
        other.call("Ping")
        before = daemon.descriptors()
        other.call("LaunchProcess", argv=["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done"], build_id="b",
                   stdio="pipe")
        other.wait_event("ProcessOutput")
        for request in (("StopProcess", {"build_id": "b", "grace_ms": 400}), ("LaunchProcess", {"argv": ["sleep", "0.2"]})):
            client = daemon.connect()
            client.send(request[0], **request[1])
            client.close()
        other.wait_event("ProcessExited", build_id="b")
        wait_until(lambda: other.call("GetStatus")["builds"] == 0)
        wait_until(lambda: daemon.descriptors() == before, 5, "the descriptors before")


# Captures


def test_a_capture_needs_exactly_one_target():
    with Daemon() as daemon:
        client = daemon.connect()
        assert "neither" in client.fails("StartSamplingProfile").message
        error = client.fails("StartSamplingProfile", build_id="b", pid=os.getpid())
        assert error.code == "bad_params" and "both" in error.message


def test_a_capture_begins_with_the_program_and_ends_by_duration():
    with Daemon() as daemon:
        client = daemon.connect()
        number = client.send("LaunchProcess", argv=BUSY, profile={"duration_ms": 300, "label": "mine"}, build_id="b")
        launched = client.wait_reply(number)
        capture_id = launched["capture_id"]
        name, params = wait_end(client, capture_id)
        assert name == "SamplingProfileFinished", params
        assert params["reason"] == "duration" and params["build_id"] == "b" and params["pid"] == launched["pid"]
        started = client.wait_event("SamplingProfileStarted")
        assert started["capture_id"] == capture_id and started["sampler"] == "perf" and started["unwinder"] == "fp"
        assert reply_place(client, number) < place(client, "SamplingProfileStarted")
        assert alive(launched["pid"]), "a capture's end is not the program's"
        record = client.call("WaitCapture", capture_id=capture_id)
        assert record == client.call("GetCapture", capture_id=capture_id) == client.call("StopCapture", capture_id=capture_id)
        assert record["state"] == "finished" and record["label"] == "mine"
        assert record["samples"] == params["samples"] > 0
        assert client.call("GetProcess", build_id="b")["captures"] == [capture_id]
        assert client.call("ListCaptures")["captures"] == [record]


def test_a_capture_is_stopped_before_the_reply_and_the_event_comes_first():
    with Daemon() as daemon:
        client = daemon.connect()
        build_id = client.call("LaunchProcess", argv=BUSY)["build_id"]
        started = client.call("StartSamplingProfile", build_id=build_id)
        assert started["state"] == "sampling" and started["hz"] == 999 and started["warnings"] == []
        assert client.fails("StartSamplingProfile", build_id=build_id).code == "capture_busy"
        error = client.fails("WaitCapture", capture_id=started["capture_id"], timeout_ms=50)
        assert error.code == "timeout" and error.error["data"]["retryable"] is True
        time.sleep(0.3)
        number = client.send("StopCapture", capture_id=started["capture_id"])
        record = client.wait_reply(number)
        assert record["state"] == "finished" and record["reason"] == "stopped", record
        assert place(client, "SamplingProfileFinished") < reply_place(client, number)
        assert client.call("StopCapture", capture_id=started["capture_id"]) == record


def test_a_discarded_capture_is_gone():
    with Daemon() as daemon:
        client = daemon.connect()
        before = daemon.files()
        launched = client.call("LaunchProcess", argv=BUSY, profile={})
        capture_id = launched["capture_id"]
        waiting = daemon.connect()
        number = waiting.send("WaitCapture", capture_id=capture_id)
        waiting.call("Ping")
        record = client.call("StopCapture", capture_id=capture_id, discard=True)
        assert record["state"] == "failed" and record["error"]["data"]["code"] == "cancelled"
        name, params = wait_end(client, capture_id)
        assert name == "SamplingProfileFailed" and params["error"]["data"]["code"] == "cancelled"
        try:
            waiting.wait_reply(number)
            raise AssertionError("the wait for a discarded capture succeeded")
        except ProfdError as error:
            assert error.code == "cancelled", error
        assert client.fails("GetCapture", capture_id=capture_id).code == "capture_not_found"
        assert client.call("GetProcess", build_id=launched["build_id"])["captures"] == []
        assert daemon.files() == before


def test_all_captures_are_stopped_at_once():
    with Daemon() as daemon:
        client = daemon.connect()
        assert client.call("StopCapture", all=True) == {"captures": []}
        ids = [client.call("LaunchProcess", argv=BUSY, profile={})["capture_id"] for _ in range(3)]
        time.sleep(0.3)
        records = client.call("StopCapture", all=True)["captures"]
        assert sorted(record["capture_id"] for record in records) == sorted(ids)
        assert all(record["state"] == "finished" for record in records), records
        assert client.fails("StopCapture").code == "bad_params"
        assert client.fails("StopCapture", all=True, capture_id=ids[0]).code == "bad_params"
        assert client.fails("StopCapture", capture_id="nothing").code == "capture_not_found"


def test_a_capture_ends_with_its_client_when_asked_to():
    with Daemon() as daemon:
        other = daemon.connect()
        ids = {}
        for choice in ("stop", "continue"):
            client = daemon.connect()
            ids[choice] = client.call("LaunchProcess", argv=BUSY, profile={"on_client_exit": choice})["capture_id"]
            time.sleep(0.3)
            client.close()
        record = other.call("WaitCapture", capture_id=ids["stop"], timeout_ms=20000)
        assert record["reason"] == "client_exited" and record["state"] == "finished", record
        assert other.call("GetCapture", capture_id=ids["continue"])["state"] == "sampling"


def test_a_waiting_client_that_vanishes_does_not_end_the_capture():
    with Daemon() as daemon:
        client = daemon.connect()
        capture_id = client.call("LaunchProcess", argv=BUSY, profile={})["capture_id"]
        waiting = daemon.connect()
        waiting.send("WaitCapture", capture_id=capture_id)
        waiting.send("WaitCapture", capture_id=capture_id, timeout_ms=30000)
        waiting.close()
        wait_until(lambda: client.call("GetStatus")["clients"] == 1)
        assert client.call("GetCapture", capture_id=capture_id)["state"] == "sampling"
        client.call("StopCapture", capture_id=capture_id)


def test_a_capture_that_is_armed_on_a_held_program_begins_when_it_runs():
    with Daemon() as daemon:
        client = daemon.connect()
        build_id = client.call("LaunchProcess", argv=BUSY, hold=True)["build_id"]
        started = client.call("StartSamplingProfile", build_id=build_id, duration_ms=200)
        assert started["state"] == "armed"
        time.sleep(0.3)
        client.drain(0)
        assert client.events == []
        client.call("ResumeProcess", build_id=build_id)
        name, params = wait_end(client, started["capture_id"])
        assert name == "SamplingProfileFinished" and params["reason"] == "duration", params


# The end


def test_a_signal_ends_captures_then_programs_then_the_daemon():
    with Daemon() as daemon:
        client = daemon.connect()
        launched = client.call("LaunchProcess", argv=BUSY, profile={})
        time.sleep(0.3)
        began = time.monotonic()
        daemon.process.send_signal(signal.SIGTERM)
        name, params = wait_end(client, launched["capture_id"])
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


def test_a_drain_refuses_what_is_new_and_lets_captures_end():
    with Daemon() as daemon:
        client = daemon.connect()
        launched = client.call("LaunchProcess", argv=BUSY, profile={"duration_ms": 1500})
        client.call("Shutdown", mode="drain")
        for method, params in (("LaunchProcess", {"argv": ["true"]}),
                               ("StartSamplingProfile", {"build_id": launched["build_id"]})):
            assert client.fails(method, **params).code == "shutting_down"
        assert client.call("GetStatus")["state"] == "draining"
        name, params = wait_end(client, launched["capture_id"])
        assert name == "SamplingProfileFinished" and params["reason"] == "duration", params
        assert daemon.process.wait(20) == 0 and not alive(launched["pid"])


def test_now_kills_the_programs_and_ends():
    with Daemon() as daemon:
        client = daemon.connect()
        launched = client.call("LaunchProcess", argv=BUSY, profile={})
        number = client.send("Shutdown", mode="now")
        assert client.wait_reply(number) == {}
        client.wait_event("DaemonStopping")
        assert daemon.process.wait(5) == 0
        wait_until(lambda: not alive(launched["pid"]))
    with Daemon() as daemon:
        assert daemon.connect().fails("Shutdown", mode="soon").code == "bad_params"


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


# The command line


def run(*args, **env):
    return subprocess.run([program("profd"), *args], capture_output=True, text=True, timeout=20, env=dict(os.environ, **env))


def test_a_bad_option_is_named_in_one_line_with_status_2():
    for args, word in ((["--sockt", "x"], "--sockt"), (["--socket"], "--socket"), (["-x"], "-x"), (["x"], "x"),
                       (["--log-level", "loud"], "loud"), (["--idle-exit", "soon"], "soon"), (["--idle-exit", "0"], "0"),
                       (["--idle-exit", "-1"], "-1"), (["--ready-fd", "999"], "999"), (["--data-dir", ""], "--data-dir")):
        ended = run(*args)
        assert ended.returncode == 2 and ended.stdout == "", (args, ended)
        assert ended.stderr.count("\n") == 1 and ended.stderr.startswith("profd: ") and word in ended.stderr, (args, ended)


def test_help_and_version_go_to_standard_output():
    shown = run("--help")
    assert shown.returncode == 0 and shown.stderr == ""
    for option in ("--socket", "--data-dir", "--log-level", "--idle-exit", "--ready-fd", "--version"):
        assert option in shown.stdout
    assert run("--version").stdout.startswith("profd 0.")


def test_a_daemon_that_cannot_start_says_why_and_what_to_do():
    with Daemon() as daemon:
        other = os.path.join(daemon.root, "other")
        os.mkdir(other, 0o700)
        ended = run("--socket", daemon.socket_path, "--data-dir", other)
        assert ended.returncode == 1 and str(daemon.process.pid) in ended.stderr, ended
        ended = run("--socket", os.path.join(other, "s"), "--data-dir", daemon.data_dir)
        assert ended.returncode == 1 and daemon.data_dir in ended.stderr and "(" in ended.stderr, ended
        assert not os.path.exists(os.path.join(other, "s")), "the socket was left behind"
        os.chmod(other, 0o755)
        ended = run("--socket", os.path.join(other, "s"), "--data-dir", daemon.data_dir)
        assert ended.returncode == 1 and other in ended.stderr and "chmod" in ended.stderr, ended
        assert run("--socket", "/" + "x" * 200).returncode == 1
        assert daemon.connect().call("Ping")


def test_whoever_waits_on_the_ready_descriptor_is_told_of_a_failure():
    reading, writing = os.pipe()
    ended = subprocess.run([program("profd"), "--socket", "/" + "x" * 200, "--ready-fd", str(writing)], pass_fds=[writing],
                           capture_output=True, text=True, timeout=20)
    os.close(writing)
    with os.fdopen(reading) as file:
        said = file.read()
    assert ended.returncode == 1 and said.startswith("error: ") and said.count("\n") == 1, said
    assert said[7:].strip() in ended.stderr


def test_a_daemon_started_after_a_killed_one_takes_its_place():
    with Daemon() as daemon:
        launched = daemon.connect().call("LaunchProcess", argv=["sleep", "60"])
        daemon.process.kill()
        daemon.process.wait()
        wait_until(lambda: not alive(launched["pid"]))
        daemon.start()
        assert daemon.connect().call("ListProcesses") == {"processes": []}


if __name__ == "__main__":
    main(globals())
