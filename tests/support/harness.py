"""Drives the real daemon in a temporary folder over its socket. Standard library only.

    from harness import Daemon, ProfdError, main, skip

    def test_a_ping_is_answered():
        with Daemon() as daemon:
            client = daemon.connect()
            assert client.call("Ping")["now_unix_us"] > 0

    if __name__ == "__main__":
        main(globals())

Every function whose name begins with test_ is a case, in the order of the file; TAP goes to stdout, what a failed case
logged follows as comments; folders that it made with tempfile are gone when it has ended. main(globals(), together=True) runs all cases at once, each in a process of its own: for files
whose cases do little but wait. PROFD_BUILD_DIR names the build folder.
"""
import base64
import collections
import contextlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

import capture_schema
import leftovers

BUILD = os.environ.get("PROFD_BUILD_DIR", os.path.join(os.path.dirname(__file__), "..", "..", "build"))
BUILD = os.path.abspath(BUILD)
SANITIZED = os.environ.get("PROFD_SANITIZED", "") == "1"
FOREVER = ["sh", "-c", "while :; do :; done"]


def program(name):
    """The path of a built program."""
    folders = {"profd": "daemon", "profd-gate": "daemon", "profd-analyzer": "daemon/analyzer", "profctl": "client"}
    return os.path.join(BUILD, folders[name], name)


def target(name):
    """The path of a program from tests/targets."""
    return os.path.join(BUILD, "tests", "targets", name)


class Skip(Exception):
    """The case cannot run here; the reason is shown and counted."""


def skip(reason):
    raise Skip(reason)


class ProfdError(Exception):
    """The error object of a reply."""

    def __init__(self, error):
        super().__init__("%s: %s" % (error["data"]["code"] if "data" in error else error["code"], error["message"]))
        self.error = error
        self.number = error["code"]
        self.code = error.get("data", {}).get("code")
        self.detail = error.get("data", {}).get("detail")
        self.hint = error.get("data", {}).get("hint")
        self.message = error["message"]


class Client:
    """One connection. Replies are matched by id, everything else is an event, kept in order."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(path)
        self.buffer = b""
        self.next_id = 1
        self.replies = {}
        self.events = []
        self.lines = []
        self.closed = False

    def close(self):
        self.socket.close()

    def send(self, method, /, **params):
        """Sends a request and returns its id."""
        number = self.next_id
        self.next_id += 1
        self.send_raw(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n")
        return number

    def send_raw(self, data):
        self.socket.sendall(data)

    def read_some(self, timeout):
        """Reads once; False when nothing came in time or the daemon closed."""
        if self.closed or not select.select([self.socket], [], [], max(0, timeout))[0]:
            return False
        data = self.socket.recv(65536)
        if not data:
            self.closed = True
            return False
        self.buffer += data
        *lines, self.buffer = self.buffer.split(b"\n")
        for line in lines:
            assert len(line) < 60 * 1024, "a line of %d bytes" % len(line)
            line.decode("ascii")
            message = json.loads(line)
            self.lines.append(message)
            assert message["jsonrpc"] == "2.0"
            if "id" in message:
                self.replies.setdefault(json.dumps(message["id"]), []).append(message)
            else:
                self.events.append(message)
        return True

    def wait_reply(self, number, timeout=30):
        """The reply to a request sent before: its result, or ProfdError."""
        end = time.monotonic() + timeout
        key = json.dumps(number)
        while not self.replies.get(key):
            if not self.read_some(end - time.monotonic()):
                raise AssertionError("no reply to request %r (connection %s)" % (number, "closed" if self.closed else "silent"))
        message = self.replies[key].pop(0)
        if "error" in message:
            raise ProfdError(message["error"])
        return message["result"]

    def call(self, method, /, **params):
        return self.wait_reply(self.send(method, **params))

    def fails(self, method, /, **params):
        """The ProfdError of a call that must fail."""
        try:
            result = self.call(method, **params)
        except ProfdError as error:
            return error
        raise AssertionError("%s did not fail but returned %r" % (method, result))

    def everything(self, method, member):
        """All pages of a list."""
        page = self.call(method)
        found = page[member]
        while "next_cursor" in page:
            page = self.call(method, cursor=page["next_cursor"])
            found += page[member]
        return found

    def wait_event(self, name, timeout=30, **match):
        """The params of the next event of that name (and members), taken out of the queue; earlier others stay."""
        end = time.monotonic() + timeout
        seen = 0
        while True:
            for index in range(seen, len(self.events)):
                event = self.events[index]
                if event["method"] == name and all(event["params"].get(k) == v for k, v in match.items()):
                    del self.events[index]
                    return event["params"]
            seen = len(self.events)
            if not self.read_some(end - time.monotonic()):
                raise AssertionError("no event %s %r; others: %s" % (name, match, [e["method"] for e in self.events]))

    def drain(self, seconds=0.2):
        """Reads whatever comes for so long."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self.closed:
            self.read_some(end - time.monotonic())


def output_bytes(events, stream="stdout"):
    """The bytes of ProcessOutput events, checking that their offsets join."""
    data = b""
    for event in events:
        params = event["params"]
        if event["method"] != "ProcessOutput" or params["stream"] != stream:
            continue
        assert params["offset"] == len(data), (params["offset"], len(data))
        data += base64.b64decode(params["data_b64"]) if "data_b64" in params else params["data"].encode()
    return data


class Daemon:
    """A private profd. Its end is checked: exit status 0, no sanitizer report, nothing left."""

    def __init__(self, *args, data_dir=None, env=None, user=None, check_exit=True):
        self.root = tempfile.mkdtemp(prefix="profd-test-")
        self.socket_path = os.path.join(self.root, "run", "profd.sock")
        self.data_dir = data_dir or os.path.join(self.root, "data")
        self.args = list(args)
        # RenderDoc leaves a log of each program that is killed.
        self.env = {**os.environ, "RENDERDOC_TEMP": self.root, **(env or {})}
        self.user = user
        self.check_exit = check_exit
        self.clients = []
        self.process = None
        self.log_path = os.path.join(self.root, "log")

    def start(self):
        if self.user is not None:
            os.chown(self.root, self.user, self.user)
        ready, given = os.pipe()
        command = [program("profd"), "--socket", self.socket_path, "--data-dir", self.data_dir, "--ready-fd", str(given)]
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(command + self.args, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.env,
                                            pass_fds=[given], user=self.user, group=self.user, extra_groups=[] if self.user else None,
                                            cwd="/")
        os.close(given)
        said = b""
        while True:
            piece = os.read(ready, 4096)
            said += piece
            if not piece or said.endswith(b"\n"):
                break
        os.close(ready)
        if said != b"ready\n":
            self.process.wait(10)
            raise AssertionError("profd did not start: %r\n%s" % (said, self.log()))
        return self

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.clean()
            raise

    def connect(self):
        client = Client(self.socket_path)
        self.clients.append(client)
        return client

    def log(self):
        with contextlib.suppress(FileNotFoundError), open(self.log_path, "rb") as log:
            return log.read().decode("utf-8", "replace")
        return ""

    def descriptors(self):
        """What the daemon has open, as a sorted list of link texts with numbers cut."""
        folder = "/proc/%d/fd" % self.process.pid
        found = []
        for name in os.listdir(folder):
            with contextlib.suppress(FileNotFoundError):
                found.append(os.readlink(os.path.join(folder, name)).split(":")[0])
        return sorted(found)

    def children(self):
        """Pids of the daemon's children, zombies too."""
        with open("/proc/%d/task/%d/children" % (self.process.pid, self.process.pid)) as file:
            return [int(pid) for pid in file.read().split()]

    def files(self):
        """Every path below the data folder."""
        found = []
        for folder, names, files in os.walk(self.data_dir):
            found += [os.path.relpath(os.path.join(folder, name), self.data_dir) for name in names + files]
        return sorted(found)

    def status(self, key):
        """A number of /proc/PID/status, in its unit."""
        with open("/proc/%d/status" % self.process.pid) as file:
            for line in file:
                if line.startswith(key + ":"):
                    return int(line.split()[1])
        raise KeyError(key)

    def stop(self, timeout=20):
        """SIGTERM; returns the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout)

    def clean(self):
        for client in self.clients:
            client.close()
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.root, ignore_errors=True)

    def __exit__(self, kind, value, trace):
        try:
            if kind is not None:
                print("# the daemon's log:\n" + "".join("#   %s\n" % line for line in self.log().splitlines()[-60:]), end="")
            status = self.stop()
            log = self.log()
            if kind is None and self.check_exit:
                assert status == 0, "profd ended with %r\n%s" % (status, log)
                assert not os.path.exists(self.socket_path), "the socket was left behind"
            if kind is None:
                assert "Sanitizer" not in log and "runtime error" not in log, log
                capture_schema.check_below(self.data_dir)
        finally:
            self.clean()


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

    def set(self, name, value):
        """A variable of the program's environment."""
        self.socket.sendall(("set %s=%s\0" % (name, value)).encode())

    def go(self):
        self.socket.sendall(b"go\n")

    def end(self):
        self.process.kill()
        self.process.wait()

    def __exit__(self, *_):
        self.end()
        self.socket.close()


def profctl(daemon, *args, **more):
    return subprocess.run([program("profctl"), "--socket", daemon.socket_path, "--no-start", *args], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60, **more)


def alive(pid):
    """Whether a process runs; one that only waits to be reaped does not."""
    try:
        with open("/proc/%d/stat" % pid) as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def write(folder, name, text, mode):
    path = os.path.join(folder, name)
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, mode)
    return path


def wait_until(condition, timeout=10, what="the condition"):
    """Polls condition() until it is true; returns its value."""
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError("%s did not come true in %s s" % (what, timeout))
        time.sleep(0.01)


def capture_end(client, capture_id, timeout=60):
    """The name and params of a capture's terminal event, which stays in the queue."""
    end = time.monotonic() + timeout
    while True:
        for event in client.events:
            if event["method"] in ("SamplingProfileFinished", "SamplingProfileFailed") and event["params"]["capture_id"] == capture_id:
                return event["method"], event["params"]
        if client.closed or time.monotonic() > end:
            raise AssertionError("the capture %s did not end: %s" % (capture_id, [event["method"] for event in client.events]))
        client.read_some(0.2)


def wait_sampled(client, capture_id):
    """Until the daemon has counted a sample of a running capture."""
    wait_until(lambda: client.call("GetCapture", capture_id=capture_id)["samples"] > 0, 20, "a sample")


def read_folded(path):
    """capture.folded as {(frame, …): count}."""
    stacks = collections.OrderedDict()
    with open(path, "rb") as file:
        for line in file.read().decode("utf-8").splitlines():
            stack, count = line.rsplit(" ", 1)
            assert tuple(stack.split(";")) not in stacks, "a stack stands twice: " + line
            stacks[tuple(stack.split(";"))] = int(count)
    return stacks


def run_case(number, name, case):
    """Prints the TAP of one case; whether it did not fail. One that leaves a folder behind has failed."""
    began = time.monotonic()
    passed = True
    try:
        case()
        left = leftovers.remove()
        assert not left, "left behind: %s" % left
        print("ok %d - %s" % (number, name))
    except Skip as reason:
        print("ok %d - %s # SKIP %s" % (number, name, reason))
    except Exception:
        passed = False
        print("".join("# %s\n" % line for line in traceback.format_exc().splitlines()), end="")
        print("not ok %d - %s" % (number, name))
    finally:
        leftovers.remove()
    print("# %s took %.2f s" % (name, time.monotonic() - began), flush=True)
    return passed


def run_together(cases):
    """Every case in a child of its own, all at once; what each printed is shown in order. How many failed."""
    children = []
    for number, (name, case) in enumerate(cases, 1):
        said = tempfile.TemporaryFile()
        pid = os.fork()
        if pid == 0:
            os.dup2(said.fileno(), 1)
            os._exit(0 if run_case(number, name, case) else 1)
        children.append((pid, said))
    failed = 0
    for pid, said in children:
        failed += os.waitpid(pid, 0)[1] != 0
        with said:
            said.seek(0)
            print(said.read().decode("utf-8", "replace"), end="", flush=True)
    return failed


def main(names, together=False):
    """Runs the cases of a module (or those named on the command line) and prints TAP."""
    for ignored in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT): # by nohup, or a shell's &: what we start would ignore them too
        if signal.getsignal(ignored) == signal.SIG_IGN:
            signal.signal(ignored, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM)) # who is out of time cleans up too
    cases = [(name, case) for name, case in names.items() if name.startswith("test_") and callable(case)]
    if len(sys.argv) > 1:
        cases = [(name, case) for name, case in cases if name in sys.argv[1:]]
    print("1..%d" % len(cases), flush=True)
    if together:
        failed = run_together(cases)
    else:
        failed = sum(not run_case(number, name, case) for number, (name, case) in enumerate(cases, 1))
    sys.exit(1 if failed else 0)
