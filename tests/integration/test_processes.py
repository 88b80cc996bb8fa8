"""The methods about programs, over the socket: what they answer, what they refuse."""
import os
import time

from harness import Daemon, alive, main, output_bytes, wait_until


def reply_place(client, number):
    return [line.get("id") for line in client.lines].index(number)


def place(client, name):
    """Where the first line of that method stands among all that came."""
    return [line.get("method") for line in client.lines].index(name)


def all_processes(client):
    page = client.call("ListProcesses")
    found = page["processes"]
    while "next_cursor" in page:
        page = client.call("ListProcesses", cursor=page["next_cursor"])
        found += page["processes"]
    return found


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
            ("unsupported", "device", {"argv": ["true"], "gpu": {"api": "gl", "device": "llvmpipe"}}),
            ("bad_params", "leave", {"argv": ["true"], "on_daemon_exit": "leave"}),
            ("bad_params", "leave", {"argv": ["true"], "on_daemon_exit": "leave", "stdio": "pty"}),
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


if __name__ == "__main__":
    main(globals())
