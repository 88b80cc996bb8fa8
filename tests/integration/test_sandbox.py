"""The analyzer's sandbox, from inside: the real program with code planted in it (tests/support/planted_analyzer.c) that tries to get out,
with all walls, with each of them alone and with none, so that what is refused is known to be refused by them."""
import contextlib
import os
import resource
import shlex
import socket
import tempfile
import time

from harness import BUILD, SANITIZED, Daemon, alive, main, read_folded, skip, target, wait_until, write
from kernel_layers import landlock_version
from nobody import NOBODY, as_nobody

PLANTED = os.path.join(BUILD, "tests", "integration", "planted-analyzer")
CPU_SECONDS = 1

# What the kernel itself refuses, whatever the sandbox does.
NEVER = {"write_image": "EBADF"}
# What the sandbox leaves.
LEFT = {"send_descriptors"}
# By other walls than that of system calls.
CLOSED = {"read_foreign": "EBADF"}
# What succeeds without a sandbox, except where the machine has something against it: a container, another user than root, a sysctl.
MAY_FAIL = {"change_root", "mount_there", "leave_namespace", "join_namespace", "user_faults", "bpf_map", "io_uring", "perf_event", "key_ring",
            "trace_daemon", "read_daemon", "open_daemon_memory", "reopen_image", "type_into_terminal", "chmod_image"}
# Landlock, by its version, and the capabilities that are gone.
LANDLOCK = {
    1: {"EACCES": {"read_passwd", "create_in_tmp", "create_in_captures", "make_folder", "make_link", "rename_file", "unlink_file",
                   "open_own_memory", "open_daemon_memory", "open_dev_null", "list_folder", "reopen_image"},
        "EPERM": {"trace_daemon", "read_daemon", "mount_there"}},
    3: {"EACCES": {"truncate_file"}},
    4: {"EACCES": {"connect_inet", "bind_inet"}},
    6: {"EPERM": {"connect_abstract", "probe_daemon", "signal_daemon"}},
}


class Planted:
    """A daemon whose analyzer is the planted one, a program it has profiled, and how that ended."""

    def __init__(self, payload, user=None, **settings):
        if SANITIZED:
            skip("a build for sanitizers has half of the sandbox only")
        self.folder = tempfile.TemporaryDirectory()
        self.stack = contextlib.ExitStack()
        os.chmod(self.folder.name, 0o755)
        script = os.path.join(self.folder.name, "analyzer")
        with self.stack:
            self.daemon = Daemon(env={"PROFD_ANALYZER": script}, user=user)
            self.aims()
            settings = dict(settings, payload=payload, folder=self.daemon.data_dir, abstract=self.abstract.decode(), port=self.port)
            write(self.folder.name, "analyzer", "#!/bin/sh\nexec env -i %s %s\n" % (
                " ".join("PLANTED_%s=%s" % (name.upper(), shlex.quote(str(value))) for name, value in settings.items()), PLANTED), 0o755)
            self.stack.enter_context(self.daemon)
            self.client = self.daemon.connect()
            self.place_files()
            self.run()
            self.stack = self.stack.pop_all()

    def aims(self):
        """Somebody listens who must not hear anything."""
        self.listener = self.stack.enter_context(socket.socket(socket.AF_UNIX))
        self.abstract = b"planted-%d" % os.getpid()
        self.listener.bind(b"\0" + self.abstract)
        self.listener.listen()
        self.tcp = self.stack.enter_context(socket.socket())
        self.tcp.bind(("127.0.0.1", 0))
        self.tcp.listen()
        self.port = self.tcp.getsockname()[1]

    def place_files(self):
        for name in ("planted-here", "planted-there", "planted-long"):
            write(self.daemon.data_dir, name, "long", 0o644)
        os.mkdir(os.path.join(self.daemon.data_dir, "planted-mount"))

    def run(self):
        made = self.client.call("LaunchProcess", argv=[target("steady"), "100"], stdio="null", profile={})
        self.record = self.client.call("WaitCapture", capture_id=made["capture_id"])
        self.said = [line.split(None, 1)[1] for line in self.daemon.log().splitlines() if line.startswith("planted ")]

    def results(self):
        return dict(line.split() for line in self.said)

    def warning(self):
        assert self.record["state"] == "finished", self.record
        return next((warning["message"] for warning in self.record["warnings"] if warning["code"] == "analyzer_failed"), None)

    def stacks(self):
        return read_folded(self.record["folded_path"])

    def is_named(self):
        return any("[" not in frame for stack in self.stacks() for frame in stack[1:])

    def planted_files(self):
        return sorted(path for path in self.daemon.files() if "planted" in path)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is not None:
            print("# " + "; ".join(self.said))
        with self.folder:
            return self.stack.__exit__(kind, value, trace)


def check_refused(planted, results, walls):
    """Everything but what is left, and all of it by the wall of system calls."""
    for name, result in sorted(results.items()):
        expected = "ok" if name in LEFT else NEVER.get(name) or CLOSED.get(name) or "EPERM"
        assert result == expected, "%s: %s with %s, not %s" % (name, result, walls, expected)
    assert planted.planted_files() == ["planted-here", "planted-long", "planted-mount", "planted-there"], planted.planted_files()
    assert os.path.getsize(os.path.join(planted.daemon.data_dir, "planted-long")) == 4
    for listener in (planted.listener, planted.tcp):
        listener.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            raise AssertionError("connected: %r" % (listener.accept(),))
    # The payload over, the program went on and did its work.
    assert planted.warning() is None and planted.is_named(), planted.record["warnings"]
    wait_until(lambda: target("steady") not in planted.daemon.descriptors(), 10, "the end of the descriptors that the payload sent")


def test_a_payload_gets_nowhere():
    with Planted("try") as planted:
        results = planted.results()
        assert len(results) >= 70, len(results)
        check_refused(planted, results, "all walls")


def test_a_payload_gets_nowhere_as_an_ordinary_user():
    as_nobody()
    with Planted("try", user=NOBODY) as planted:
        check_refused(planted, planted.results(), "all walls, as an ordinary user")


def test_a_payload_gets_nowhere_without_landlock():
    with Planted("try", without="landlock") as planted:
        check_refused(planted, planted.results(), "no Landlock")


def test_the_same_payload_does_what_it_likes_without_a_sandbox():
    with Planted("try", without="everything") as planted:
        results = planted.results()
        refused = {name: result for name, result in results.items() if result != "ok"}
        assert refused.pop("write_image") == "EBADF"
        # These two ask for what is not there, so that nothing is executed; that it is looked for is enough.
        assert refused.pop("exec_nothing") == "EACCES" and refused.pop("exec_at") in ("ENOTDIR", "ENOENT")
        assert not set(refused) - MAY_FAIL, refused
        assert len(refused) <= len(MAY_FAIL) // 2, refused
        print("# without a sandbox %d of %d succeed" % (len(results) - len(refused) - 3, len(results)))
        assert "planted" in planted.planted_files() and "planted-moved" in planted.planted_files()
        assert os.path.getsize(os.path.join(planted.daemon.data_dir, "planted-long")) == 0


def test_landlock_is_a_wall_of_its_own():
    version = landlock_version()
    if version == 0:
        skip("this kernel has no Landlock")
    with Planted("try", without="seccomp") as planted:
        results = planted.results()
        checked = 0
        for since, refused in LANDLOCK.items():
            for code, names in refused.items() if version >= since else ():
                for name in names:
                    assert results[name] == code, (name, results[name], code)
                    checked += 1
        assert checked >= 15
        # It is no wall against system calls.
        assert results["fork_by_number"] == results["map_code"] == results["socket_unix"] == "ok", results
        print("# Landlock %d refuses %d of %d" % (version, checked, len(results)))


def test_what_would_end_it_or_others_is_refused_too():
    for payload in ("exec", "kill"):
        with Planted(payload) as planted:
            assert planted.said == [payload + " refused"], planted.said
            assert planted.warning() is None and planted.is_named() and alive(planted.daemon.process.pid)
    with Planted("exec", without="everything") as planted:
        assert planted.said == [], planted.said
        assert "planted-by-exec" in planted.planted_files() and "exited with status 0" in planted.warning()


def check_unnamed(planted, *words):
    """Finished, without names, with every sample, and with a warning that says what happened."""
    warning = planted.warning()
    assert warning and all(word in warning for word in words), (warning, words)
    assert not planted.is_named() and sum(planted.stacks().values()) == planted.record["samples"] > 0


def test_system_calls_by_the_numbers_of_another_architecture_kill_it():
    if os.uname().machine != "x86_64":
        skip("x86-64 alone has other numbers")
    for payload in ("i386", "x32"):
        with Planted(payload) as planted:
            assert planted.said == [], planted.said
            check_unnamed(planted, "SIGSYS", "sandbox")
    with Planted("i386", without="everything") as planted:
        assert planted.said in (["i386 ok"], []), planted.said  # [] where the kernel has no such numbers: it crashes


def test_a_crash_costs_the_names_and_is_told():
    for payload, word in (("crash", "SIGSEGV"), ("abort", "SIGABRT"), ("assert", "SIGABRT")):
        with Planted(payload) as planted:
            check_unnamed(planted, word)
            assert ("Assertion" in planted.daemon.log()) == (payload == "assert"), planted.daemon.log()


def test_cpu_time_beyond_the_limit_costs_the_names_and_is_told():
    began = time.monotonic()
    with Planted("spin", cpu_seconds=CPU_SECONDS) as planted:
        check_unnamed(planted, "SIGXCPU", "CPU time")
        assert time.monotonic() - began > CPU_SECONDS, "it did not spin"


def test_memory_beyond_the_limit_costs_the_names_and_is_told():
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE")
    limit = min(max(memory // 2, 1 << 30), 8 << 30)
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    with Planted("allocate") as planted:
        check_unnamed(planted, "no memory left", "%d MiB" % (limit >> 20))
        name, got = planted.said[0].split()
        assert name == "allocate" and limit * 3 // 4 < int(got) < limit, (planted.said, limit)


def test_it_does_not_run_where_it_cannot_be_confined():
    with Planted("try", kernel="old") as planted:
        assert planted.said == [] and planted.record["state"] == "failed", planted.record
        assert "seccomp" in planted.record["error"]["message"], planted.record["error"]


if __name__ == "__main__":
    main(globals())
