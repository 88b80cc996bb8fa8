"""docs/protocol.md, chapter 3: names of builds and captures, repeated requests, and values."""
import base64
import contextlib
import os
import re
import subprocess
import sys
import time

from contract import SENTENCE, Raw
from harness import FOREVER, Daemon, Gate, alive, capture_end, main, target, wait_until
from waiting_analyzer import wait_symbolizing, waiting_analyzer


@SENTENCE('`build_id`: the client\'s own name for a launched program (string or integer; 7 and "7" are the same, echoed as first given), '
          "or made by the daemon when left out.")
def test_a_build_id_is_a_string_or_an_integer():
    with Daemon() as daemon:
        client = daemon.connect()
        assert client.call("LaunchProcess", argv=["sleep", "60"], build_id=7)["build_id"] == 7
        assert client.wait_event("ProcessStarted")["build_id"] == 7
        pid = client.call("GetProcess", build_id="7")["pid"]
        with open("/proc/%d/cmdline" % pid, "rb") as file:
            assert file.read() == b"sleep\x0060\x00"
        assert client.call("GetProcess", build_id="7")["build_id"] == 7
        assert client.fails("LaunchProcess", argv=["true"], build_id="7").code == "build_exists"
        assert client.call("LaunchProcess", argv=["sleep", "60"], build_id="8")["build_id"] == "8"
        assert client.call("GetProcess", build_id=8)["build_id"] == "8"
        client.call("StopProcess", build_id="7")
        assert client.wait_event("ProcessExited")["build_id"] == 7 and not alive(pid)
        made = [client.call("LaunchProcess", argv=["true"])["build_id"] for _ in range(10)]
        assert len(set(made)) == 10 and not {"7", "8", 7, 8} & set(made), made
        for bad in (1.5, True, [1], {}, ""):
            assert client.fails("LaunchProcess", argv=["true"], build_id=bad).number == -32602, bad


@SENTENCE("While a build lives its id cannot be used again (`build_exists`); after it exited it can, and lookups mean the newest.")
def test_an_id_of_a_living_build_is_taken():
    with Daemon() as daemon:
        client = daemon.connect()
        first = client.call("LaunchProcess", argv=["sleep", "60"], build_id="b")["pid"]
        error = client.fails("LaunchProcess", argv=["touch", daemon.root + "/ran"], build_id="b")
        assert error.code == "build_exists" and not os.path.exists(daemon.root + "/ran") and alive(first)
        os.kill(first, 9)
        client.wait_event("ProcessExited", build_id="b")
        second = client.call("LaunchProcess", argv=["sh", "-c", "echo second; exec sleep 60"], build_id="b")["pid"]
        assert client.call("GetProcess", build_id="b")["pid"] == second != first and alive(second)
        client.wait_event("ProcessOutput")
        assert client.call("GetOutput", build_id="b", stream="stdout")["data"] == "second\n"
        assert client.call("StopProcess", build_id="b")["signal"] == "SIGTERM" and not alive(second)


@SENTENCE("256 exited builds are remembered for")
def test_256_exited_builds_are_remembered():
    with Daemon() as daemon:
        client = daemon.connect()
        # One after the other the first two, so that they are the oldest.
        for first, count in ((0, 1), (1, 1), (2, 64), (66, 64), (130, 64), (194, 64)):
            numbers = [client.send("LaunchProcess", argv=["/bin/true"], build_id=first + at, stdio="null") for at in range(count)]
            for number in numbers:
                client.wait_reply(number)
            for _ in numbers:
                client.wait_event("ProcessExited")
        assert client.fails("GetProcess", build_id=1).code == "build_not_found"
        assert client.fails("GetProcess", build_id=0).code == "build_not_found"
        listed = {record["build_id"] for record in client.everything("ListProcesses", "processes")}
        assert listed == set(range(2, 258)), len(listed)
        assert client.call("GetProcess", build_id=257)["exit_code"] == 0


@SENTENCE("`capture_id`: made by the daemon, a string, sortable by time, never used again, also across restarts.")
def test_capture_ids_are_sorted_by_time_and_new():
    with Daemon() as daemon:
        ids = []
        for _ in range(2):
            client = daemon.connect()
            for number in range(8):
                ids.append(client.call("LaunchProcess", argv=["sleep", "60"], stdio="null", profile={}, build_id=number)["capture_id"])
            error = client.fails("StartSamplingProfile", build_id=0, capture_id="mine")
            assert error.number == -32602
            client.call("StopCapture", all=True)
            for capture_id in ids[-4:]:
                client.call("DeleteCapture", capture_id=capture_id)
            daemon.stop()
            daemon.start()
        assert all(isinstance(each, str) for each in ids) and len(set(ids)) == 16
        born = [re.match(r"(\d{8})-(\d{6})-", each) for each in ids]
        assert all(born) and ids == sorted(ids), "in the order of their making: %s" % ids


@SENTENCE("`instance_id` in `Hello` tells a client whether the daemon was restarted.")
def test_a_restart_is_seen_in_the_instance():
    with Daemon() as daemon:
        said = []
        for _ in range(2):
            said.append([daemon.connect().call("Hello", client="t")["instance_id"] for _ in range(2)])
            daemon.stop()
            daemon.start()
        assert said[0][0] == said[0][1] != said[1][0] == said[1][1], said


@contextlib.contextmanager
def stranger(argv, **more):
    """A process that the daemon did not start."""
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, **more)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def count_runs(path):
    try:
        with open(path) as file:
            return len(file.read().split())
    except FileNotFoundError:
        return 0


@SENTENCE("`request_key` (any creating request): repeated within 10 minutes it returns the first result instead of doing it again, on "
          "whatever connection, which then hears of what was created like the first one's.")
def test_a_repeated_request_is_done_once():
    with Daemon() as daemon:
        client, other = daemon.connect(), daemon.connect()
        runs = daemon.root + "/runs"
        ask = {"argv": ["sh", "-c", "echo x >>%s; while [ ! -e %s/go ]; do sleep 0.02; done; exit 3" % (runs, daemon.root)], "request_key": "k"}
        first = client.call("LaunchProcess", **ask)
        assert client.call("LaunchProcess", **ask) == first and other.call("LaunchProcess", **ask) == first
        wait_until(lambda: count_runs(runs), 10, "the program")
        open(daemon.root + "/go", "w").close()
        for each in (client, other):
            assert each.wait_event("ProcessExited", build_id=first["build_id"])["exit_code"] == 3
        assert count_runs(runs) == 1
        # The other requests that create something.
        client.call("LaunchProcess", argv=FOREVER, build_id="busy", stdio="null")
        held = client.call("LaunchProcess", argv=FOREVER, build_id="held", stdio="null", hold=True)
        started = [each.call("StartSamplingProfile", build_id="held", request_key="p") for each in (client, other)]
        assert started[0]["capture_id"] == started[1]["capture_id"] and alive(held["pid"])
        assert len(os.listdir(daemon.data_dir + "/captures")) == 1
        client.call("StopCapture", capture_id=started[0]["capture_id"])
        for each in (client, other):
            assert capture_end(each, started[0]["capture_id"])


@SENTENCE("`request_key` (any creating request)")
def test_an_adoption_is_a_creating_request():
    with Daemon() as daemon, stranger(["sleep", "60"]) as process:
        client, other = daemon.connect(), daemon.connect()
        adopted = [each.call("AdoptProcess", pid=process.pid, request_key="a") for each in (client, other)]
        assert adopted[0] == adopted[1] and adopted[0]["pid"] == process.pid


@SENTENCE("One that comes before the first is answered waits for its result; with other parameters it is -32602 (`request_key_reused`), "
          "and of another method it is another key; a failure made nothing and is not remembered.", "A daemon that was restarted knows none.")
def test_repeated_requests_wait_differ_and_fail():
    with Daemon() as daemon:
        client, runs = daemon.connect(), daemon.root + "/runs"
        ask = {"argv": ["sh", "-c", "echo x >>" + runs], "request_key": "k"}
        numbers = [client.send("LaunchProcess", **ask) for _ in range(5)]
        results = [client.wait_reply(number) for number in numbers]
        assert all(result == results[0] for result in results)
        client.wait_event("ProcessExited")
        error = client.fails("LaunchProcess", **{**ask, "stdio": "null"})
        assert error.number == -32602 and error.detail == "request_key_reused"
        made = client.call("LaunchProcess", argv=["sleep", "60"], request_key="same", hold=True)
        assert "capture_id" in client.call("StartSamplingProfile", build_id=made["build_id"], request_key="same")
        program = daemon.root + "/later"
        assert client.fails("LaunchProcess", argv=[program], request_key="f").code == "launch_failed"
        os.symlink("/bin/true", program)
        client.call("LaunchProcess", argv=[program], request_key="f")
        assert client.wait_event("ProcessExited")["exit_code"] == 0 and count_runs(runs) == 1
        daemon.stop()
        daemon.start()
        client = daemon.connect()
        client.call("LaunchProcess", **ask)
        client.wait_event("ProcessExited")
        assert count_runs(runs) == 2


def members(value, found):
    """[(name, value)] of all members in it."""
    for name, each in value.items() if isinstance(value, dict) else []:
        found.append((name, each))
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else []:
        members(each, found)
    return found


@SENTENCE("Integers beyond 2^53 are refused;", "times are integers with the unit in the name (`elapsed_ms`); wall-clock anchors are "
          "`*_unix_us`.")
def test_numbers_and_times():
    with Daemon() as daemon:
        client = daemon.connect()
        with Raw(daemon.socket_path) as raw:
            for number, refused in ((2 ** 53, False), (2 ** 53 + 1, True), (-2 ** 53 - 1, True), (2 ** 62, True)):
                reply = raw.ask({"id": 1, "method": "LaunchProcess", "params": {"argv": ["true"], "build_id": number, "subscribe": False}})
                assert ("error" in reply) is refused, reply
                assert not refused or reply["error"]["code"] in (-32600, -32602), reply
                reply = raw.ask({"id": number, "method": "Ping"})
                assert ("error" in reply) is refused and (not refused or reply["error"]["code"] == -32600), reply
        before = time.time() * 1e6
        made = client.call("LaunchProcess", argv=[target("steady"), "200"], stdio="null", profile={"progress_ms": 50})
        capture_end(client, made["capture_id"])
        client.call("Ping")
        client.call("GetProcess", build_id=made["build_id"])
        client.call("GetCapture", capture_id=made["capture_id"])
        found = members(client.lines, [])
        for name, value in found:
            if re.search("_(ms|us|ns|hz|bytes)$", name) and value is not None:
                assert type(value) is int, (name, value)
            if name.endswith("_unix_us"):
                assert before <= value <= time.time() * 1e6, (name, value)
            assert not re.search("(time|date|elapsed|duration|uptime|started|ended)$", name), name
        assert {"elapsed_ms", "started_unix_us", "ended_unix_us", "now_unix_us", "duration_ms"} <= {name for name, _ in found}


@SENTENCE("Text that is not UTF-8 (paths, arguments, names) carries U+FFFD and a second member `<name>_b64`.")
def test_text_that_is_not_utf_8():
    with Daemon() as daemon:
        client = daemon.connect()
        folder = os.fsencode(daemon.root) + b"/br\xffken"
        os.mkdir(folder)
        argv = [b"sl\xffep", b"60"]
        with stranger(argv, executable="/bin/sleep", cwd=folder) as process:
            client.call("AdoptProcess", pid=process.pid, build_id="a")
            record = client.call("GetProcess", build_id="a")
            assert record["argv"] == ["sl\ufffdep", "60"], record
            assert [base64.b64decode(each) for each in record["argv_b64"]] == argv, record


@SENTENCE("Text that is not UTF-8 (paths, arguments, names) carries U+FFFD")
def test_paths_and_arguments_of_a_capture_that_are_not_utf_8():
    with Daemon() as daemon:
        daemon.stop()
        daemon.data_dir = daemon.root + "/br\udcffken"
        client = daemon.start().connect()
        with Gate(daemon, [sys.executable.encode(), b"-c", b"while True: pass", b"\xfe"]) as gate:
            capture = client.call("StartSamplingProfile", pid=gate.pid)["capture_id"]
            record = client.call("GetCapture", capture_id=capture)
            assert record["argv"][-1] == "\ufffd" and base64.b64decode(record["argv_b64"][-1]) == b"\xfe", record
            assert record["folder"] == daemon.root + "/br\ufffdken/captures/" + capture, record
            assert base64.b64decode(record["folder_b64"]) == os.fsencode(daemon.data_dir + "/captures/" + capture), record


@SENTENCE("Build states: `starting held running exited`.", "Capture states: `armed sampling symbolizing writing finished failed`.")
def test_states():
    with waiting_analyzer() as (analyzer, go), Daemon(env={"PROFD_ANALYZER": analyzer}) as daemon:
        client = daemon.connect()
        builds, captures = [], []

        def look():
            builds.append(client.call("GetProcess", build_id="b")["state"])
            captures.append(client.call("GetCapture", capture_id=capture)["state"])
        pid = client.call("LaunchProcess", argv=FOREVER, build_id="b", stdio="null", hold=True)["pid"]
        capture = client.call("StartSamplingProfile", build_id="b")["capture_id"]
        look()
        with open("/proc/%d/cmdline" % pid) as file:
            assert "while" not in file.read().split("\0--\0")[0]
        client.call("ResumeProcess", build_id="b")
        wait_until(lambda: client.call("GetCapture", capture_id=capture)["samples"] > 0)
        look()
        client.call("StopProcess", build_id="b")
        wait_symbolizing(client, capture)
        look()
        open(go, "w").close()
        capture_end(client, capture)
        look()
        assert builds == ["held", "running", "exited", "exited"], builds
        assert captures == ["armed", "sampling", "symbolizing", "finished"], captures
        failed = client.call("LaunchProcess", argv=["true"], stdio="null", profile={"hz": 1})["capture_id"]
        capture_end(client, failed)
        assert client.call("GetCapture", capture_id=failed)["state"] == "failed"
        states = {value for name, value in members(client.lines, []) if name == "state"}
        assert states <= set("starting held running exited armed sampling symbolizing writing finished failed".split()), states


@SENTENCE("Signals are accepted as `TERM`, `SIGTERM` or 15 and told as `SIGTERM`.")
def test_signals_by_name_and_number():
    with Daemon() as daemon:
        client = daemon.connect()
        for given, told, number in (("TERM", "SIGTERM", 15), ("SIGTERM", "SIGTERM", 15), (15, "SIGTERM", 15), ("USR1", "SIGUSR1", 10), (10, "SIGUSR1", 10)):
            script = "import os,signal,time\nos.write(1, b'up')\nsignal.pthread_sigmask(signal.SIG_BLOCK, [10, 15])\n" \
                     "os.write(1, b'!')\nos.write(1, b'%d' % signal.sigwait([10, 15]))"
            made = client.call("LaunchProcess", argv=[sys.executable, "-c", script])
            wait_until(lambda: client.call("GetOutput", build_id=made["build_id"], stream="stdout")["data"] == "up!", 10, "the program's word")
            client.call("SignalProcess", build_id=made["build_id"], signal=given)
            client.wait_event("ProcessExited", build_id=made["build_id"])
            assert client.call("GetOutput", build_id=made["build_id"], stream="stdout")["data"] == "up!%d" % number
            made = client.call("LaunchProcess", argv=["sleep", "60"])
            assert client.call("StopProcess", build_id=made["build_id"], signal=given)["signal"] == told
            assert client.wait_event("ProcessExited", build_id=made["build_id"])["signal"] == told
        for bad in ("NONE", "sigterm", 0, 99, -1):
            assert client.fails("StopProcess", build_id=made["build_id"], signal=bad).number == -32602, bad


if __name__ == "__main__":
    main(globals())
