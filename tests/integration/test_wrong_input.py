"""Wrong input, line by line: each wish gets its clear error, whoever sends it, and leaves the daemon exactly as it was."""
import collections
import contextlib
import json
import os
import re
import resource
import signal
import socket
import struct
import subprocess
import tempfile
import time
import zlib

from harness import Client, Daemon, ProfdError, main, program, read_folded, skip, wait_until

FOREVER = ["sh", "-c", "while :; do :; done"]
NOBODY = 65534
# The kind of value that is never right for a parameter of that type.
WRONG_TYPES = {"boolean": ["yes", 1, []], "integer": ["1", 1.5, True, []], "string": [1, True, {}], "id": [True, 1.5, []],
               "strings": ["a", [1], {}], "object": ["a", 1, []], "enum": ["no such choice", 1, []], "signal": ["NONE", 0, []],
               "path": [1, "relative/path", []]}


# What is as before


def everything(client, method, member):
    """All pages of a list."""
    page = client.call(method)
    found = page[member]
    while "next_cursor" in page:
        page = client.call(method, cursor=page["next_cursor"])
        found += page[member]
    return found


def state(daemon, client):
    """Everything that a refused wish could leave behind."""
    captures = everything(client, "ListCaptures", "captures")
    status = client.call("GetStatus")
    return {"processes": everything(client, "ListProcesses", "processes"),
            "captures": sorted((c["capture_id"], c["state"]) for c in captures),
            "counts": (status["clients"], status["builds"], status["captures"]),
            "descriptors": daemon.descriptors(), "children": sorted(daemon.children()), "files": daemon.files()}


def settled(daemon, client):
    """The state once nothing changes in it any more."""
    def twice():
        first = state(daemon, client)
        time.sleep(0.05)
        return first if first == state(daemon, client) else None
    return wait_until(twice, 10, "a state that stays")


def check_as_before(daemon, client, before, what):
    """What closes or goes in the next turns of the loop may take them; then it must be the same, entry by entry."""
    end = time.monotonic() + 10
    while True:
        now = state(daemon, client)
        if now == before:
            return
        assert time.monotonic() < end, "%s left: %s" % (what, {k: (before[k], now[k]) for k in now if now[k] != before[k]})
        time.sleep(0.01)


def check_closed_as_before(daemon, before):
    """What was granted stays in the lists and in the data folder; what was open for it does not."""
    wait_until(lambda: (daemon.descriptors(), sorted(daemon.children())) == (before["descriptors"], before["children"]), 10,
               "the descriptors and children before: %r" % ([before["descriptors"], before["children"]],))


def check_error(error, code, word, what):
    """A clear error: its code, a message that names the thing, a hint, none of it empty or broken."""
    assert error.code == code, (what, error.error)
    assert word in error.message, (what, error.error)
    assert error.hint and "\n" not in error.message and not re.search(r"[^.]\.$", error.message), (what, error.error)
    assert isinstance(error.error["data"]["retryable"], bool), (what, error.error)


def write(folder, name, text, mode):
    path = os.path.join(folder, name)
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, mode)
    return path


def profctl(daemon, *args, **more):
    return subprocess.run([program("profctl"), "--socket", daemon.socket_path, "--no-start", *args], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60, **more)


def check_told(done, status, word, what):
    assert done.returncode == status, (what, done)
    assert word in done.stderr and done.stdout == "", (what, done)
    assert "Sanitizer" not in done.stderr and "runtime error" not in done.stderr, (what, done)


class Gate:
    """A program that waits behind profd-gate, started by a stranger to the daemon (as profctl does)."""

    def __init__(self, daemon, argv):
        self.socket, theirs = socket.socketpair()
        self.process = subprocess.Popen([program("profd-gate"), "--fd", str(theirs.fileno()), "--profiler",
                                         str(daemon.process.pid), "--", *argv], pass_fds=[theirs.fileno()],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        theirs.close()
        self.pid = self.process.pid
        assert self.socket.recv(100) == b"ready 1\n"

    def __enter__(self):
        return self

    def go(self):
        self.socket.sendall(b"go\n")

    def end(self):
        self.process.kill()
        self.process.wait()

    def __exit__(self, *_):
        self.end()
        self.socket.close()


# The program


def unrunnable(folder):
    """argv, the wire's code and detail, a word of the message, and the exit status that a shell would give."""
    write(folder, "plain", "#!/bin/sh\n", 0o644)
    write(folder, "nothing", "\0 no program\n", 0o755)
    orphan = write(folder, "orphan", "#!/no/such/interpreter\n", 0o755)
    os.mkdir(os.path.join(folder, "sub"))
    os.mkfifo(os.path.join(folder, "pipe"), 0o755)
    os.symlink("nowhere", os.path.join(folder, "dangling"))
    os.symlink("loop", os.path.join(folder, "loop"))
    return [(["no-such-program"], "not_found", "no-such-program", 127),
            ([folder + "/no-such-program", "argument"], "not_found", folder + "/no-such-program", 127),
            ([folder + "/plain/below"], "not_found", folder + "/plain/below", 127),
            ([folder + "/dangling"], "not_found", folder + "/dangling", 127),
            ([folder + "/plain"], "not_executable", folder + "/plain", 126),
            ([folder + "/pipe"], "not_executable", folder + "/pipe", 126),
            ([folder + "/nothing"], "not_executable", folder + "/nothing", 126),
            ([folder + "/sub"], "is_directory", folder + "/sub", 126),
            ([folder + "/loop"], None, folder + "/loop", 126),
            ([orphan], "no_interpreter", "/no/such/interpreter", 126)]


def test_a_program_that_cannot_run_is_told_through_both_users_of_the_gate():
    with Daemon() as daemon, tempfile.TemporaryDirectory() as folder:
        client = daemon.connect()
        cases = unrunnable(folder)
        before = settled(daemon, client)
        for argv, detail, word, status in cases:
            for extra in ({}, {"stdio": "null"}, {"profile": {}}, {"profile": {"kernel": True}, "build_id": "refused"}):
                error = client.fails("LaunchProcess", argv=argv, **extra)
                check_error(error, "launch_failed", word, (argv, extra))
                assert detail is None or error.detail == detail, (argv, extra, error.error)
                check_as_before(daemon, client, before, (argv, extra))
            check_told(profctl(daemon, "record", *argv), status, word, argv)
            check_as_before(daemon, client, before, ("profctl", argv))
        assert client.events == []


def test_an_empty_argv_is_told_through_both_users_of_the_gate():
    with Daemon() as daemon:
        client = daemon.connect()
        before = settled(daemon, client)
        for argv in ([], [""], ["", "true"]):
            for extra in ({}, {"profile": {}}):
                check_error(client.fails("LaunchProcess", argv=argv, **extra), "bad_params", "argv", argv)
                check_as_before(daemon, client, before, argv)
            check_told(profctl(daemon, "record", *argv), 125, "usage: profctl record", argv)
            check_as_before(daemon, client, before, ("profctl", argv))
        check_told(profctl(daemon, "record", "--"), 125, "usage: profctl record", "--")


def test_a_missing_working_folder_is_told():
    with Daemon() as daemon, tempfile.TemporaryDirectory() as folder:
        client = daemon.connect()
        write(folder, "file", "", 0o644)
        os.symlink("nowhere", os.path.join(folder, "dangling"))
        before = settled(daemon, client)
        for cwd, code in ((folder + "/missing", "launch_failed"), (folder + "/file", "launch_failed"),
                          (folder + "/dangling", "launch_failed"), ("relative", "bad_params"), ("", "bad_params")):
            for extra in ({}, {"hold": True}, {"profile": {}}):
                error = client.fails("LaunchProcess", argv=["true"], cwd=cwd, **extra)
                check_error(error, code, cwd if code == "launch_failed" else "cwd", (cwd, extra))
                check_as_before(daemon, client, before, (cwd, extra))


def test_a_program_in_a_deleted_folder_runs_as_from_a_shell():
    with Daemon() as daemon, tempfile.TemporaryDirectory() as folder:
        gone = os.path.join(folder, "gone")
        os.mkdir(gone)
        command = "cd %s && rmdir %s && exec \"$@\"" % (gone, gone)
        words = [program("profctl"), "--socket", daemon.socket_path, "--no-start", "record", "--quiet", "sh", "-c", "exit 9"]
        done = subprocess.run(["sh", "-c", command, "sh", *words], capture_output=True, text=True, timeout=60)
        assert done.returncode == 9, done


# The sampling's options

WRONG_OPTIONS = [
    ({"hz": 0}, "bad_params", "hz is 0"),
    ({"hz": -1}, "bad_params", "hz is -1"),
    ({"hz": "999"}, "bad_params", 'hz is "999"'),
    ({"hz": 1.5}, "bad_params", "hz is 1.5"),
    ({"hz": 10 ** 9}, "hz_too_high", "1000000000"),
    ({"hz": 2 ** 53}, "hz_too_high", str(2 ** 53)),
    ({"hz": 2 ** 53 + 1}, "bad_params", "hz"),
    ({"duration_ms": 0}, "bad_params", "duration_ms is 0"),
    ({"duration_ms": -1}, "bad_params", "duration_ms is -1"),
    ({"duration_ms": "1"}, "bad_params", 'duration_ms is "1"'),
    ({"duration_ms": 604800001}, "bad_params", "604800000"),
    ({"max_depth": 0}, "bad_params", "max_depth is 0"),
    ({"formats": []}, "bad_params", "formats"),
    ({"formats": ["pdf"]}, "bad_params", "formats[0]"),
    ({"on_client_exit": "die"}, "bad_params", "on_client_exit"),
    ({"hertz": 99}, "bad_params", "hertz"),
    ({"scope": "tree"}, "unsupported", "scope"),
    ({"label": "x" * 257}, "bad_params", "label"),
]


def test_wrong_options_of_a_capture_are_told_on_every_road_and_nothing_runs():
    with Daemon() as daemon, tempfile.TemporaryDirectory() as folder, Gate(daemon, FOREVER) as gate:
        client = daemon.connect()
        mark = os.path.join(folder, "mark")
        running = client.call("LaunchProcess", argv=FOREVER, stdio="null", build_id="running")
        client.call("LaunchProcess", argv=FOREVER, stdio="null", build_id="held", hold=True)
        before = settled(daemon, client)
        for options, code, word in WRONG_OPTIONS:
            for target in ({"build_id": "running"}, {"build_id": "held"}, {"pid": running["pid"]}, {"pid": gate.pid}):
                error = client.fails("StartSamplingProfile", **target, **options)
                check_error(error, code, word, (target, options))
                check_as_before(daemon, client, before, (target, options))
            check_error(client.fails("LaunchProcess", argv=["touch", mark], profile=options), code, word, options)
            check_as_before(daemon, client, before, options)
        for options, word in ((["-F", "0"], "0"), (["-F", "-1"], "-1"), (["-F", "1.5"], "1.5"), (["-F", "x"], "x"),
                              (["-F", "1000000000"], "1000000000"), (["-d", "0"], "0"), (["-d", "-1"], "-1"), (["-d", "x"], "x"),
                              (["-d", "nan"], "nan"), (["-d", "604801"], "604800"), (["-l", "x" * 257], "label")):
            check_told(profctl(daemon, "record", *options, "touch", mark), 125, word, options)
            check_as_before(daemon, client, before, ("profctl", options))
        assert not os.path.exists(mark)


def test_a_capture_has_one_target_that_is_there():
    with Daemon() as daemon:
        client = daemon.connect()
        ended = client.call("LaunchProcess", argv=["true"], stdio="null", build_id="ended")
        client.wait_event("ProcessExited")
        running = client.call("LaunchProcess", argv=FOREVER, stdio="null", build_id="running")
        before = settled(daemon, client)
        for target, code, word in [
            ({}, "bad_params", "neither"), ({"build_id": None, "pid": None}, "bad_params", "neither"),
            ({"build_id": "running", "pid": running["pid"]}, "bad_params", "both"),
            ({"build_id": "nobody"}, "build_not_found", "nobody"), ({"build_id": 7}, "build_not_found", "7"),
            ({"build_id": "ended"}, "build_not_running", "ended"),
            ({"pid": ended["pid"]}, "process_not_found", str(ended["pid"])),
            ({"pid": 0}, "bad_params", "pid is 0"), ({"pid": -1}, "bad_params", "pid is -1"),
            ({"pid": 2 ** 31 - 1}, "process_not_found", str(2 ** 31 - 1)), ({"pid": 1}, None, "1"),
            ({"pid": daemon.process.pid}, "unsupported", str(daemon.process.pid)), ({"pid": "1"}, "bad_params", 'pid is "1"'),
        ]:
            error = client.fails("StartSamplingProfile", **target)
            check_error(error, code or error.code, word, target)
            check_as_before(daemon, client, before, target)
        check_error(client.fails("ResumeProcess", build_id="ended"), "build_not_running", "ended", "resume")
        assert client.call("StopProcess", build_id="ended") == {"exit_code": 0, "signal": None}
        check_error(client.fails("LaunchProcess", argv=["true"], build_id="running", profile={}), "build_exists", "running", "again")
        check_as_before(daemon, client, before, "the same name again")


def test_a_second_capture_of_the_same_target_names_the_first():
    with Daemon() as daemon, Gate(daemon, FOREVER) as gate:
        client = daemon.connect()
        running = client.call("LaunchProcess", argv=FOREVER, stdio="null", build_id="running")
        client.call("LaunchProcess", argv=FOREVER, stdio="null", build_id="held", hold=True)
        targets = [{"build_id": "running"}, {"build_id": "held"}, {"pid": gate.pid}]
        first = [client.call("StartSamplingProfile", **target)["capture_id"] for target in targets]
        before = settled(daemon, client)
        for target, capture_id in zip(targets + [{"pid": running["pid"]}], first + first[:1]):
            error = client.fails("StartSamplingProfile", **target)
            check_error(error, "capture_busy", capture_id, target)
            assert error.detail == capture_id and error.error["data"]["retryable"] is True, error.error
            check_as_before(daemon, client, before, target)
        assert client.call("GetCapture", capture_id=first[0])["state"] == "sampling"
        assert client.call("GetCapture", capture_id=first[1])["state"] == "armed"
        client.call("StopCapture", all=True, discard=True)


def test_an_unknown_parameter_or_a_wrong_type_is_named_by_every_method():
    with Daemon() as daemon:
        client = daemon.connect()
        before = settled(daemon, client)
        page = client.call("Describe")
        methods = page["methods"]
        while "next_cursor" in page:
            page = client.call("Describe", cursor=page["next_cursor"])
            methods += page["methods"]
        checked = 0
        for method in methods:
            if not method["supported"]:
                continue
            error = client.fails(method["name"], surprise=1)
            check_error(error, "bad_params", "surprise", method["name"])
            assert error.number == -32602 and method["name"] in error.message, error.error
            for param in method["params"]:
                needed = {p["name"]: {"strings": ["true"], "id": "none", "string": "none", "enum": "stop"}[p["type"]]
                          for p in method["params"] if p["required"]}
                for value in WRONG_TYPES[param["type"]] if param["supported"] else []:
                    error = client.fails(method["name"], **dict(needed, **{param["name"]: value}))
                    check_error(error, "bad_params", param["name"], (method["name"], param["name"], value))
                    assert error.number == -32602, error.error
                    checked += 1
            for params in (["positional"], "text", 7, True):
                client.send_raw(json.dumps({"id": "wrong", "method": method["name"], "params": params}).encode() + b"\n")
                try:
                    raise AssertionError("%s took %r: %r" % (method["name"], params, client.wait_reply("wrong")))
                except ProfdError as refused:
                    assert refused.number in (-32602, -32600) and "params" in refused.message, refused.error
        assert checked > 80, checked
        check_as_before(daemon, client, before, "a wrong type")


def test_an_unknown_method_is_told_and_leaves_nothing():
    with Daemon() as daemon:
        client = daemon.connect()
        before = settled(daemon, client)
        for name in ("GetStatsu", "ping", "", " Ping", "Ping ", "rpc.discover", "x" * 5000):
            error = client.fails(name)
            check_error(error, "unknown_method", json.dumps(name[:20])[1:-1], name)
            assert error.number == -32601, error.error
        client.send_raw(b'{"id":"nul","method":"Ping\\u0000"}\n')
        refused = wait_until(lambda: client.replies.pop("null", None) or client.read_some(0.1) and None, 10, "a reply")[0]
        assert refused["error"]["code"] == -32700 and "\\u0000 is not allowed in a string" in refused["error"]["message"], refused
        done = profctl(daemon, "call", "GetStatsu")
        assert done.returncode == 1 and "GetStatsu" in done.stderr and "Describe" in done.stderr, done
        check_as_before(daemon, client, before, "an unknown method")


# output_dir


def wrong_folders(folder):
    """output_dir, code, word of the message; whether profctl, which makes paths absolute and real, refuses it too."""
    write(folder, "file", "", 0o600)
    os.mkdir(os.path.join(folder, "real"))
    os.symlink("real", os.path.join(folder, "link"))
    os.symlink("nowhere", os.path.join(folder, "dangling"))
    cases = [("relative", "bad_params", "output_dir", False), ("", "bad_params", "output_dir", False),
             (folder + "/missing", "bad_params", folder + "/missing is missing", True),
             (folder + "/missing/too", "bad_params", folder + "/missing/too", True),
             (folder + "/file", "bad_params", folder + "/file is not a folder", True),
             (folder + "/link", "bad_params", folder + "/link is a symbolic link", False),
             (folder + "/dangling", "bad_params", folder + "/dangling is a symbolic link", True),
             (folder + "/" + "x" * 300, "bad_params", "x" * 300, True), ("/proc", None, "/proc", True)]
    if os.geteuid() == 0:
        other = os.path.join(folder, "other")
        os.mkdir(other)
        os.chown(other, NOBODY, NOBODY)
        cases.append((other, "not_permitted", "user %d" % NOBODY, True))
    return cases


def check_output_folders(daemon, client, folder, cases, gate, run_profctl):
    client.call("LaunchProcess", argv=FOREVER, stdio="null", build_id="running")
    mark = os.path.join(folder, "mark")
    before, listed = settled(daemon, client), sorted(os.listdir(folder))
    for path, code, word, profctl_too in cases:
        for target in ({"build_id": "running"}, {"pid": gate.pid}):
            error = client.fails("StartSamplingProfile", output_dir=path, **target)
            check_error(error, code or error.code, word, (path, target))
            assert "output_dir" in error.message or code == "bad_params", error.error
            check_as_before(daemon, client, before, (path, target))
        error = client.fails("LaunchProcess", argv=["touch", mark], profile={"output_dir": path})
        check_error(error, code or error.code, word, path)
        check_as_before(daemon, client, before, path)
        if profctl_too:
            check_told(run_profctl("record", "-o", path, "touch", mark), 125, path, path)
            check_as_before(daemon, client, before, ("profctl", path))
    assert sorted(os.listdir(folder)) == listed and not os.path.exists(mark)


def test_a_wrong_output_dir_is_told_on_every_road():
    with Daemon() as daemon, tempfile.TemporaryDirectory() as folder, Gate(daemon, FOREVER) as gate:
        check_output_folders(daemon, daemon.connect(), folder, wrong_folders(folder), gate,
                             lambda *args: profctl(daemon, *args))


def closed_to(user):
    """Why the programs cannot be run by that user, or None."""
    for name in ("profd", "profd-gate", "profctl", "profd-analyzer"):
        if subprocess.run([program(name), "--help"], user=user, group=user, extra_groups=[], capture_output=True, cwd="/",
                          check=False).returncode not in (0, 1, 2, 126):
            return program(name)
    return None


def as_nobody():
    if os.geteuid() != 0:
        skip("needs root to become another user")
    try:
        closed = closed_to(NOBODY)
    except PermissionError as error:
        closed = error
    if closed:
        skip("the build folder is closed to other users: %s" % closed)


def test_an_ordinary_users_output_dir_that_may_not_be_written_is_told():
    as_nobody()
    with Daemon(user=NOBODY) as daemon, tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        for name, mode in (("readonly", 0o500), ("noentry", 0o600), ("nothing", 0)):
            os.mkdir(os.path.join(folder, name), mode)
            os.chown(os.path.join(folder, name), NOBODY, NOBODY)
        cases = [(folder + "/readonly", "not_permitted", folder + "/readonly", True),
                 (folder + "/noentry", "not_permitted", folder + "/noentry", True),
                 (folder + "/nothing", "not_permitted", folder + "/nothing", True),
                 (folder, "not_permitted", "user 0", True)]
        client = daemon.connect()
        client.call("LaunchProcess", argv=FOREVER, stdio="null", build_id="running")
        before = settled(daemon, client)
        mark = os.path.join(daemon.root, "mark")
        for path, code, word, _ in cases:
            error = client.fails("StartSamplingProfile", output_dir=path, build_id="running")
            check_error(error, code, word, path)
            check_as_before(daemon, client, before, path)
            check_error(client.fails("LaunchProcess", argv=["touch", mark], profile={"output_dir": path}), code, word, path)
            check_as_before(daemon, client, before, path)
            done = profctl(daemon, "record", "-o", path, "touch", mark, user=NOBODY, group=NOBODY, extra_groups=[], cwd="/")
            check_told(done, 125, path, path)
            check_as_before(daemon, client, before, ("profctl", path))
        assert not os.path.exists(mark)


# A full disk


class Journal:
    """The layout of daemon/profile/journal.h, read anew: whole chunks up to the first that is not right."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        self.good, self.counts, self.chunks = 0, collections.Counter(), 0
        segment, number = None, 0
        while len(self.data) - self.good >= 24:
            head = self.data[self.good:self.good + 24]
            magic, length, chunk_segment, chunk, crc, reserved = struct.unpack("<4sIIIII", head)
            payload = self.data[self.good + 24:self.good + 24 + length]
            number = number + 1 if chunk_segment == segment else 0
            if magic != b"PJC1" or len(payload) < length or reserved != 0 or chunk != number or \
                    zlib.crc32(head[4:16] + head[20:24] + payload) != crc:
                return
            segment = chunk_segment
            self.read_records(payload)
            self.good += 24 + length
            self.chunks += 1

    @staticmethod
    def varint(data, at):
        value = shift = 0
        while True:
            value |= (data[at] & 127) << shift
            at, shift = at + 1, shift + 7
            if data[at - 1] < 128:
                return value, at

    def read_records(self, payload):
        at = 0
        while at < len(payload):
            kind = payload[at]
            length, at = self.varint(payload, at + 1)
            at += length
            assert at <= len(payload), "a record leaves its chunk"
            self.counts[kind] += 1

    @property
    def samples(self):
        return self.counts[14]

    @property
    def has_end(self):
        return self.counts[19] == 1

    def check_cut(self):
        """It was ended early, behind a whole chunk."""
        facts = (self.good, len(self.data), self.chunks, self.counts)
        assert self.good == len(self.data) and self.chunks >= 1 and self.samples > 0 and not self.has_end, facts


@contextlib.contextmanager
def small_disk(kib):
    if os.geteuid() != 0:
        skip("needs root to mount a small file system")
    path = tempfile.mkdtemp(prefix="profd-test-disk-")
    try:
        if subprocess.call(["mount", "-t", "tmpfs", "-o", "size=%dk,mode=700" % kib, "tmpfs", path], stderr=subprocess.DEVNULL) != 0:
            skip("a small file system cannot be mounted here")
        try:
            yield path
        finally:
            subprocess.check_call(["umount", "--lazy", path])
    finally:
        os.rmdir(path)


def fill(path):
    with open(os.path.join(path, "filler"), "wb", buffering=0) as file:
        with contextlib.suppress(OSError):
            while file.write(b"x" * 4096):
                pass


@contextlib.contextmanager
def waiting_analyzer():
    """An analyzer that waits for the file "go": what is done before it is done before any artifact is written."""
    with tempfile.TemporaryDirectory() as folder:
        path = write(folder, "analyzer", "#!/bin/sh\nwhile [ ! -e %s/go ]; do sleep 0.02; done\nexec %s \"$@\"\n" %
                     (folder, program("profd-analyzer")), 0o755)
        yield path, os.path.join(folder, "go")


def terminal(client, capture_id, timeout=30):
    def look():
        for event in client.events:
            if event["method"] in ("SamplingProfileFinished", "SamplingProfileFailed") and event["params"]["capture_id"] == capture_id:
                return event
        client.read_some(0.05)
        return None
    event = wait_until(look, timeout, "the end of " + capture_id)
    return event["method"], event["params"]


def start_on(client, folder, **extra):
    """A capture into folder that has written some of its journal: its id, its folder, its journal's path."""
    result = client.call("LaunchProcess", argv=FOREVER, stdio="null", build_id="b", profile=dict(output_dir=folder, hz=4000, **extra))
    path = os.path.join(folder, result["capture_id"])
    journal = os.path.join(path, "capture.journal")
    wait_until(lambda: 0 < Journal(journal).good == os.path.getsize(journal), 10, "a chunk of the journal on the disk")
    return result["capture_id"], path, journal


def wait_symbolizing(client, capture_id):
    wait_until(lambda: client.call("GetCapture", capture_id=capture_id)["state"] == "symbolizing", 30, "the end of the sampling")


def test_a_disk_that_is_full_while_sampling_gives_what_was_written_before():
    with small_disk(4096) as disk, waiting_analyzer() as (analyzer, go), Daemon(env={"PROFD_ANALYZER": analyzer}) as daemon:
        client = daemon.connect()
        capture_id, folder, path = start_on(client, disk)
        fill(disk)
        wait_symbolizing(client, capture_id)
        os.unlink(disk + "/filler")
        write(os.path.dirname(go), "go", "", 0o644)
        name, params = terminal(client, capture_id)
        assert name == "SamplingProfileFinished" and params["reason"] == "disk_full", params
        journal = Journal(path)
        journal.check_cut()
        assert 0 < journal.samples == sum(read_folded(params["folded_path"]).values()), (journal.counts, params)
        assert params["samples"] == journal.samples, (params["samples"], journal.samples)
        client.call("StopProcess", build_id="b", grace_ms=0)


def test_a_disk_that_is_full_for_the_artifacts_fails_the_capture_and_keeps_its_whole_journal():
    with small_disk(4096) as disk, waiting_analyzer() as (analyzer, go), Daemon(env={"PROFD_ANALYZER": analyzer}) as daemon:
        client = daemon.connect()
        capture_id, folder, path = start_on(client, disk, duration_ms=1200)
        wait_symbolizing(client, capture_id)
        wait_until(lambda: Journal(path).has_end, 10, "the journal's end")
        fill(disk)
        write(os.path.dirname(go), "go", "", 0o644)
        name, params = terminal(client, capture_id)
        assert name == "SamplingProfileFailed" and params["error"]["data"]["code"] == "disk_full", params
        assert params["error"]["data"]["hint"] and "capture." in params["error"]["message"], params["error"]
        assert os.listdir(folder) == ["capture.journal"], os.listdir(folder)
        journal, record = Journal(path), client.call("GetCapture", capture_id=capture_id)
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
        name, params = terminal(client, capture_id)
        resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, before)
        error = params.get("error", {"data": {"code": params.get("reason")}})
        assert error["data"]["code"] == "disk_full", (name, params)
        journal = Journal(path)
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
        assert terminal(client, capture_id)[0] == "SamplingProfileFinished"


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
        journal = Journal(os.path.join(record["folder"], "capture.journal"))
        assert journal.good == len(journal.data), (journal.good, len(journal.data))
        check_closed_as_before(daemon, before)


# Clients that vanish


def line(method, **params):
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, separators=(",", ":")).encode() + b"\n"


def vanish_between_any_two_bytes(daemon, request, check):
    """Sends every beginning of the line that is not the whole one, and goes: quietly, after a shut, and with a reply unread."""
    for cut in range(len(request)):
        with contextlib.closing(Client(daemon.socket_path)) as gone:
            gone.send_raw(request[:cut])
        with contextlib.closing(Client(daemon.socket_path)) as gone:
            gone.send_raw(request[:cut])
            gone.socket.shutdown(socket.SHUT_WR)
        with contextlib.closing(Client(daemon.socket_path)) as gone:
            gone.send_raw(b'{"id":0,"method":"Ping"}\n' + request[:cut])
        check(cut)


def test_a_client_killed_between_any_two_bytes_of_a_profiled_launch_leaves_nothing():
    with Daemon() as daemon:
        client = daemon.connect()
        request = line("LaunchProcess", argv=["true"], stdio="null", profile={"hz": 99})
        before = settled(daemon, client)
        vanish_between_any_two_bytes(daemon, request, lambda cut: check_as_before(daemon, client, before, request[:cut]))
        with contextlib.closing(Client(daemon.socket_path)) as gone:
            gone.send_raw(request)
        # The last byte makes it a wish, which is fulfilled although nobody waits.
        wait_until(lambda: [c["state"] for c in client.call("ListCaptures")["captures"]] == ["failed"], 20, "the capture")
        assert [p["exit_code"] for p in client.call("ListProcesses")["processes"]] == [0]
        check_closed_as_before(daemon, before)


def test_a_client_killed_between_any_two_bytes_of_a_start_or_a_stop_changes_nothing():
    with Daemon() as daemon:
        client = daemon.connect()
        client.call("LaunchProcess", argv=FOREVER, stdio="null", build_id="b")
        client.call("LaunchProcess", argv=FOREVER, stdio="null", build_id="c")
        idle = settled(daemon, client)
        capture_id = client.call("StartSamplingProfile", build_id="c", hz=49, subscribe=False)["capture_id"]
        time.sleep(0.1)
        before = settled(daemon, client)
        start = line("StartSamplingProfile", build_id="b", on_client_exit="stop")
        stop = line("StopCapture", capture_id=capture_id)
        for request in (start, stop):
            vanish_between_any_two_bytes(daemon, request, lambda cut: check_as_before(daemon, client, before, request[:cut]))
        with contextlib.closing(Client(daemon.socket_path)) as gone:
            gone.send_raw(stop)
        assert client.call("WaitCapture", capture_id=capture_id, timeout_ms=20000)["reason"] == "stopped"
        with contextlib.closing(Client(daemon.socket_path)) as gone:
            gone.send_raw(start)
        other, = [c["capture_id"] for c in wait_until(
            lambda: [c for c in client.call("ListCaptures")["captures"] if c["capture_id"] != capture_id], 10, "the capture")]
        final = client.call("WaitCapture", capture_id=other, timeout_ms=20000)
        assert final["reason"] == "client_exited", final
        check_closed_as_before(daemon, idle)


def test_a_client_killed_while_replies_and_events_are_on_their_way_leaves_whole_captures():
    with Daemon() as daemon:
        client = daemon.connect()
        script = "i=0; while [ $i -lt 9000 ]; do i=$((i+1)); done; echo out"
        request = line("LaunchProcess", argv=["sh", "-c", script], profile={"hz": 999, "progress_ms": 50})
        before = settled(daemon, client)
        for read in range(0, 1600, 160):
            with contextlib.closing(Client(daemon.socket_path)) as gone:
                gone.send_raw(request)
                gone.socket.settimeout(2)
                got = 0
                with contextlib.suppress(socket.timeout):
                    while got < read:
                        piece = len(gone.socket.recv(read - got))
                        got += piece
                        if piece == 0:
                            break
            wait_until(lambda: client.call("GetStatus")["builds"] < 8, 20, "room")

        def all_ended():
            status = client.call("GetStatus")
            return (status["clients"], status["builds"], status["captures"]) == (1, 0, 0)

        wait_until(all_ended, 30, "the end of the captures")
        check_closed_as_before(daemon, before)
        now = settled(daemon, client)
        assert len(now["captures"]) == len(now["processes"]) == 10
        files = collections.defaultdict(list)
        for path in now["files"]:
            if path.count("/") == 2:
                files[path.split("/")[1]].append(path.split("/")[2])
        whole = ["capture.folded", "capture.journal", "capture.json", "capture.svg", "record.json"]
        for capture_id, ended in now["captures"]:
            assert files.pop(capture_id) == (whole if ended == "finished" else ["capture.journal", "record.json"]), ended
        assert files == {}, files


def test_a_profctl_killed_at_any_moment_leaves_no_capture_running():
    with Daemon() as daemon, tempfile.TemporaryDirectory() as folder:
        client = daemon.connect()
        before = settled(daemon, client)
        words = [program("profctl"), "--socket", daemon.socket_path, "--no-start", "record", "-o", folder, "timeout", "0.3", *FOREVER]
        for moment_ms in (0, 5, 10, 15, 20, 25, 30, 40, 50, 60, 80, 100, 150, 200):
            with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as killed:
                time.sleep(moment_ms / 1000)
                killed.kill()
        wait_until(lambda: client.call("GetStatus")["captures"] == 0 and client.call("GetStatus")["clients"] == 1, 20, "the end")
        check_closed_as_before(daemon, before)
        whole = {"finished": ["capture.folded", "capture.journal", "capture.json", "capture.svg"], "failed": ["capture.journal"]}
        records = {record["capture_id"]: record for record in everything(client, "ListCaptures", "captures")}
        assert sorted(os.listdir(folder)) == sorted(records), "a folder without its record"
        for record in records.values():
            assert sorted(os.listdir(record["folder"])) == whole[record["state"]], record


def test_clients_that_vanished_in_a_crowd_take_nobodys_place():
    with Daemon() as daemon:
        client = daemon.connect()
        before = settled(daemon, client)
        # All of them wait to be accepted when the daemon comes to it, and are gone by then.
        os.kill(daemon.process.pid, signal.SIGSTOP)
        try:
            for _ in range(100):
                with contextlib.closing(Client(daemon.socket_path)) as gone:
                    gone.send_raw(b'{"id":1,"method":"LaunchProc')
            late = daemon.connect()
        finally:
            os.kill(daemon.process.pid, signal.SIGCONT)
        assert late.call("Ping")["now_unix_us"] > 0
        late.close()
        check_as_before(daemon, client, before, "a crowd")
        # Those that are there do count.
        crowd = [daemon.connect() for _ in range(64)]
        crowd[-1].read_some(10)
        refused = crowd[-1].lines[0]
        assert refused["id"] is None and refused["error"]["data"]["code"] == "limit_exceeded", refused
        assert all(one.call("Ping") for one in crowd[:-1])


# The daemon's own start and end


def start_fails(socket_path, data_dir, word, user=None, status=1):
    """Starts profd, which must end with one line that holds the word; the same goes to whoever waits for its readiness."""
    reading, writing = os.pipe()
    ended = subprocess.run([program("profd"), "--socket", socket_path, "--data-dir", data_dir, "--ready-fd", str(writing)],
                           pass_fds=[writing], capture_output=True, text=True, timeout=20, user=user, group=user,
                           extra_groups=[] if user else None, cwd="/")
    os.close(writing)
    with os.fdopen(reading) as file:
        said = file.read()
    assert ended.returncode == status and ended.stdout == "", ended
    assert ended.stderr.count("\n") == 1 and ended.stderr.startswith("profd: ") and word in ended.stderr, (word, ended.stderr)
    assert re.search(r" \(.+\)$", ended.stderr.strip()), "no hint: " + ended.stderr
    assert said.startswith("error: ") and said.count("\n") == 1 and said[7:].strip() in ended.stderr, said


@contextlib.contextmanager
def places(owner=None):
    """A folder with a private folder "run" for a socket."""
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(folder + "/run", 0o700)
        if owner is not None:
            os.chown(folder, owner, owner)
            os.chown(folder + "/run", owner, owner)
        yield folder, folder + "/run/s"


def test_a_data_folder_that_cannot_be_used_is_told():
    with places() as (folder, path):
        write(folder, "file", "kept", 0o600)
        os.symlink("run", folder + "/link")
        for data, word in ((folder + "/file", folder + "/file"), (folder + "/file/below", folder + "/file"),
                           (folder + "/link", "symbolic link"), ("/proc/nothing/data", "/proc/nothing")):
            start_fails(path, data, word)
            assert not os.path.exists(path), "the socket was left behind"
        write(folder, "run/captures", "kept", 0o600)
        start_fails(path, folder + "/run", "captures")
        with open(folder + "/file") as file:
            assert file.read() == "kept"
        if os.geteuid() == 0:
            os.mkdir(folder + "/other")
            os.chown(folder + "/other", NOBODY, NOBODY)
            start_fails(path, folder + "/other", "user %d" % NOBODY)
            assert os.listdir(folder + "/other") == []


def test_an_ordinary_users_data_folder_that_may_not_be_written_is_told():
    as_nobody()
    with places(NOBODY) as (folder, path):
        os.mkdir(folder + "/closed", 0o500)
        os.chown(folder + "/closed", NOBODY, NOBODY)
        start_fails(path, folder + "/closed", folder + "/closed", user=NOBODY)
        start_fails(path, folder + "/closed/data", "cannot make the folder %s/closed/data" % folder, user=NOBODY)
        start_fails("/root/s", folder + "/data", "/root", user=NOBODY)
        assert os.listdir(folder + "/closed") == [] and not os.path.exists(path)


def test_a_data_folder_on_a_full_disk_is_no_reason_not_to_start_or_is_told():
    with small_disk(16) as disk, places() as (folder, path):
        fill(disk)
        # No inode costs a block here, so what fails is the first capture, not the start.
        with Daemon(data_dir=disk + "/data") as daemon:
            client = daemon.connect()
            error = client.fails("LaunchProcess", argv=["true"], profile={})
            check_error(error, "disk_full", "record.json", "launch")
            assert daemon.files() == ["captures"]
        subprocess.check_call(["mount", "-o", "remount,ro", disk])
        start_fails(path, disk + "/new", "cannot make the folder %s/new: Read-only" % disk)
        subprocess.check_call(["mount", "-o", "remount,rw,nr_inodes=5", disk])
        with contextlib.suppress(OSError):
            for number in range(5):
                write(disk, "inode%d" % number, "", 0o600)
        start_fails(path, disk + "/new", disk + "/new")
        assert not os.path.exists(path)


def test_a_socket_that_cannot_be_made_is_told():
    with places() as (folder, path):
        data = folder + "/data"
        most = 107
        long_path = folder + "/run/" + "x" * (most + 1 - len(folder + "/run/"))
        start_fails(long_path, data, "%d bytes" % (most + 1))
        start_fails(folder + "/no/such/s", data, folder + "/no/such")
        os.symlink("run", folder + "/link")
        start_fails(folder + "/link/s", data, "symbolic link")
        kept = write(folder, "run/s", "kept", 0o600)
        start_fails(path, data, path)
        with open(kept) as file:
            assert file.read() == "kept"
        os.unlink(kept)
        for mode in (0o755, 0o770, 0o701):
            os.chmod(folder + "/run", mode)
            start_fails(path, data, "chmod 700 %s/run" % folder)
        os.chmod(folder + "/run", 0o700)
        if os.geteuid() == 0:
            os.mkdir(folder + "/other", 0o700)
            os.chown(folder + "/other", NOBODY, NOBODY)
            start_fails(folder + "/other/s", data, "user %d" % NOBODY)
        assert not os.path.exists(data), "a data folder was made for a daemon that did not start"
        # One byte less is a path.
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as longest:
            longest.bind(long_path[:-1])
        os.unlink(long_path[:-1])
        daemon = Daemon(data_dir=data)
        daemon.socket_path = long_path[:-1]
        with daemon:
            assert daemon.connect().call("Ping")


def test_a_second_daemon_on_the_same_socket_leaves_the_first_alone():
    with Daemon() as daemon, tempfile.TemporaryDirectory() as folder:
        client = daemon.connect()
        before = settled(daemon, client)
        inode = os.stat(daemon.socket_path).st_ino
        for data in (folder + "/data", daemon.data_dir):
            start_fails(daemon.socket_path, data, str(daemon.process.pid))
        assert os.stat(daemon.socket_path).st_ino == inode and os.listdir(folder) == []
        check_as_before(daemon, client, before, "a second daemon")
        assert daemon.connect().call("Ping")


def gone(pid):
    try:
        with open("/proc/%d/stat" % pid) as file:
            return file.read().rsplit(")", 1)[1].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def test_a_signal_while_the_analyzer_runs_waits_for_it():
    with waiting_analyzer() as (analyzer, go), Daemon(env={"PROFD_ANALYZER": analyzer}) as daemon:
        client = daemon.connect()
        launched = client.call("LaunchProcess", argv=FOREVER, stdio="null", profile={"duration_ms": 300})
        wait_symbolizing(client, launched["capture_id"])
        daemon.process.send_signal(signal.SIGTERM)
        assert client.wait_event("ProcessExited")["signal"] == "SIGTERM"
        assert daemon.process.poll() is None and len(daemon.children()) == 1
        write(os.path.dirname(go), "go", "", 0o644)
        name, params = terminal(client, launched["capture_id"])
        assert name == "SamplingProfileFinished" and params["reason"] == "duration", params
        assert all(os.path.exists(params[key]) for key in ("folded_path", "svg_path", "metadata_path"))
        client.wait_event("DaemonStopping")
        assert daemon.process.wait(20) == 0 and not os.path.exists(daemon.socket_path)


def test_a_second_signal_does_not_wait_for_the_analyzer_and_leaves_nothing_running():
    with tempfile.TemporaryDirectory() as root, waiting_analyzer() as (analyzer, _):
        with Daemon(data_dir=root + "/data", env={"PROFD_ANALYZER": analyzer}) as daemon:
            client = daemon.connect()
            launched = client.call("LaunchProcess", argv=FOREVER, stdio="null", profile={})
            client.wait_event("SamplingProfileProgress")
            time.sleep(0.2)
            children = daemon.children()
            daemon.process.send_signal(signal.SIGTERM)
            wait_symbolizing(client, launched["capture_id"])
            journal = os.path.join(client.call("GetCapture", capture_id=launched["capture_id"])["folder"], "capture.journal")
            wait_until(lambda: Journal(journal).has_end, 10, "the journal's end")
            children += daemon.children()
            assert len(set(children)) == 2, children
            began = time.monotonic()
            daemon.process.send_signal(signal.SIGTERM)
            assert daemon.process.wait(10) == 0 and time.monotonic() - began < 3
            assert not os.path.exists(daemon.socket_path)
            wait_until(lambda: all(gone(pid) for pid in children), 5, "the end of the program and the analyzer")
        with Daemon(data_dir=root + "/data") as daemon:
            record, = daemon.connect().call("ListCaptures")["captures"]
            assert record["state"] == "failed" and record["error"]["data"]["code"] == "interrupted", record
            assert Journal(journal).good == os.path.getsize(journal) and Journal(journal).samples > 0


def test_a_signal_while_several_captures_run_finishes_each():
    with Daemon() as daemon, Gate(daemon, FOREVER) as gate:
        client = daemon.connect()
        ids = [client.call("LaunchProcess", argv=FOREVER, stdio="null", profile={})["capture_id"] for _ in range(2)]
        ids.append(client.call("StartSamplingProfile", pid=gate.pid)["capture_id"])
        gate.go()
        wait_until(lambda: client.call("GetCapture", capture_id=ids[2])["state"] == "sampling", 10, "the program behind the gate")
        time.sleep(0.3)
        children = daemon.children()
        daemon.process.send_signal(signal.SIGTERM)
        for capture_id in ids:
            name, params = terminal(client, capture_id)
            assert name == "SamplingProfileFinished" and params["reason"] == "daemon_shutdown", params
            assert sum(read_folded(params["folded_path"]).values()) == params["samples"] > 0
        assert daemon.process.wait(20) == 0 and not os.path.exists(daemon.socket_path)
        assert all(gone(pid) for pid in children) and gate.process.poll() is None, "what it did not launch is not its to end"


def test_an_armed_capture_does_not_keep_an_idle_daemon_for_ever():
    with Daemon("--idle-exit", "1") as daemon:
        client = daemon.connect()
        with Gate(daemon, FOREVER) as gate:
            capture_id = client.call("StartSamplingProfile", pid=gate.pid)["capture_id"]
            client.close()
            time.sleep(1.2)
            assert daemon.process.poll() is None, "it ended while a capture was armed"
        assert daemon.process.wait(20) == 0 and not os.path.exists(daemon.socket_path)
        with open(os.path.join(daemon.data_dir, "captures", capture_id, "record.json")) as file:
            record = json.load(file)
        assert record["state"] == "failed" and record["error"]["data"]["code"] == "no_samples", record


if __name__ == "__main__":
    main(globals())
