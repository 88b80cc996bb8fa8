"""docs/protocol.md, chapter 1: the socket, and how messages travel."""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile

from contract import SENTENCE, Raw
from harness import Daemon, alive, main, program, wait_until
from nobody import NOBODY, as_nobody

PING = {"id": 1, "method": "Ping"}


@contextlib.contextmanager
def profd(*args, env=None, user=None):
    """A daemon that is given nothing but these; stderr is kept for said()."""
    clean = {name: value for name, value in os.environ.items() if name not in ("PROFD_SOCKET", "XDG_RUNTIME_DIR")}
    with tempfile.TemporaryFile() as log, tempfile.TemporaryDirectory() as data:
        os.chmod(data, 0o777)
        process = subprocess.Popen([program("profd"), "--data-dir", data + "/d", *args], env={**clean, **(env or {})}, cwd="/",
                                   stdin=subprocess.DEVNULL, stdout=log, stderr=log, user=user, group=user,
                                   extra_groups=[] if user else None)

        def said():
            log.seek(0)
            return log.read().decode()
        process.said = said
        try:
            yield process
        finally:
            process.terminate()
            process.wait(20)


def serves(process, path):
    """Waits until that very process listens there; the kernel says whose socket it is."""
    def connected():
        assert process.poll() is None, process.said()
        with contextlib.suppress(OSError), Raw(path) as raw:
            return struct.unpack("3i", raw.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0] == process.pid
        return False
    wait_until(connected, 10, "the socket " + path)


def refused(process):
    """What a daemon that does not start says."""
    assert process.wait(10) not in (0, -6, -11), process.said()
    return process.said()


@SENTENCE("A Unix stream socket.", "Socket 0600;")
def test_the_socket_is_a_private_stream():
    with Daemon() as daemon:
        for kind, works in ((socket.SOCK_STREAM, True), (socket.SOCK_SEQPACKET, False), (socket.SOCK_DGRAM, False)):
            with socket.socket(socket.AF_UNIX, kind) as other:
                assert (other.connect_ex(daemon.socket_path) == 0) is works, kind
        mode = os.lstat(daemon.socket_path).st_mode
        assert stat.S_ISSOCK(mode) and stat.S_IMODE(mode) == 0o600


@SENTENCE("Path: `--socket`, else `$PROFD_SOCKET`, else `$XDG_RUNTIME_DIR/profd/profd.sock` (when `$XDG_RUNTIME_DIR` itself exists, is "
          "ours and 0700; the folder `profd` in it is made), else `/tmp/profd-<uid>/profd.sock`")
def test_the_path_is_found_in_order():
    as_nobody()
    user = 400000 + os.getpid() % 100000
    last = "/tmp/profd-%d" % user
    with tempfile.TemporaryDirectory() as root:
        os.chown(root, user, user)
        for name, mode, owner in (("run", 0o700, user), ("open", 0o755, user), ("a", 0o700, user), ("b", 0o700, user), ("x", 0o700, 0)):
            os.mkdir("%s/%s" % (root, name))
            os.chmod("%s/%s" % (root, name), mode)
            os.chown("%s/%s" % (root, name), owner, owner)
        runtime, given = {"XDG_RUNTIME_DIR": root + "/run"}, {"PROFD_SOCKET": root + "/b/s"}
        try:
            for args, env, path in ((["--socket", root + "/a/s"], {**runtime, **given}, root + "/a/s"),
                                    ([], {**runtime, **given}, root + "/b/s"),
                                    ([], runtime, root + "/run/profd/profd.sock"),
                                    ([], {"XDG_RUNTIME_DIR": root + "/open"}, last + "/profd.sock"),
                                    ([], {"XDG_RUNTIME_DIR": root + "/x"}, last + "/profd.sock"),
                                    ([], {"XDG_RUNTIME_DIR": root + "/none"}, last + "/profd.sock"),
                                    ([], {}, last + "/profd.sock")):
                with profd(*args, env=env, user=user) as process:
                    serves(process, path)
        finally:
            shutil.rmtree(last, ignore_errors=True)


@SENTENCE("The socket's folder must be owned by us and closed to others (0700), also with `--socket`; the error names folder and remedy.")
def test_a_folder_that_is_open_or_foreign_is_refused():
    with tempfile.TemporaryDirectory() as root:
        for mode in (0o755, 0o710, 0o701, 0o770):
            os.chmod(root, mode)
            for args, env in ((["--socket", root + "/s"], {}), ([], {"PROFD_SOCKET": root + "/s"})):
                with profd(*args, env=env) as process:
                    said = refused(process)
                    assert root in said and "chmod 700" in said, said
                assert not os.path.exists(root + "/s")
        os.chmod(root, 0o700)
        if os.geteuid() == 0:
            os.chown(root, NOBODY, NOBODY)
            with profd("--socket", root + "/s") as process:
                said = refused(process)
                assert root in said and re.search("chown|another|own", said), said


def talk(path, user, words):
    """What another user is told: a child of that user connects, writes when there are words, and reads a line and what follows."""
    mine, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            with Raw(path) as raw:
                with contextlib.suppress(BrokenPipeError):
                    raw.send(words)
                os.write(theirs, raw.line() + b"\n")
                if user != NOBODY:
                    os.write(theirs, b"end" if raw.line() == b"" else b"more")
        finally:
            os._exit(0)
    os.close(theirs)
    with open(mine) as said:
        text = said.read()
    os.waitpid(pid, 0)
    return text.split("\n")


@SENTENCE("the peer's uid is checked before the first read (equal, or root), otherwise `not_permitted` and closed.")
def test_another_user_is_refused_unread():
    as_nobody()
    with Daemon(user=NOBODY) as daemon:
        for path, mode in ((daemon.root, 0o755), (os.path.dirname(daemon.socket_path), 0o755), (daemon.socket_path, 0o666)):
            os.chmod(path, mode)
        launch = json.dumps({"id": 7, "method": "LaunchProcess", "params": {"argv": ["touch", daemon.root + "/data/ran"]}}) + "\n"
        for words in (launch, "not json\n"):
            line, rest = talk(daemon.socket_path, NOBODY - 1, words.encode())
            said = json.loads(line)
            assert rest == "end", rest
            assert said["id"] is None and said["error"]["data"]["code"] == "not_permitted", said
        assert not os.path.exists(daemon.root + "/data/ran")
        assert json.loads(talk(daemon.socket_path, NOBODY, b'{"id":1,"method":"Ping"}\n')[0])["result"]["now_unix_us"] > 0
        with Raw(daemon.socket_path) as root:
            assert root.ask(PING)["result"]["now_unix_us"] > 0
        os.chmod(daemon.socket_path, 0o600)
        os.chmod(os.path.dirname(daemon.socket_path), 0o700)


@SENTENCE("One daemon per socket (a lock, not a probe).")
def test_a_second_daemon_is_refused_also_while_the_first_answers_nobody():
    with Daemon() as daemon:
        daemon.process.send_signal(signal.SIGSTOP)
        try:
            with profd("--socket", daemon.socket_path) as second:
                assert "another profd" in refused(second)
        finally:
            daemon.process.send_signal(signal.SIGCONT)
        with Raw(daemon.socket_path) as raw:
            assert raw.ask(PING)["result"]
        os.kill(daemon.process.pid, signal.SIGKILL)
        daemon.process.wait()
        # A lock goes with its holder, and the stale socket is in nobody's way.
        assert os.path.exists(daemon.socket_path)
        with profd("--socket", daemon.socket_path) as third:
            serves(third, daemon.socket_path)
        daemon.check_exit = False


@SENTENCE("A path longer than `sun_path` is an error that says so.")
def test_a_path_that_does_not_fit_is_told():
    with tempfile.TemporaryDirectory() as root:
        path = root + "/" + "s" * (108 - len(root) - 1)
        with profd("--socket", path) as process:
            said = refused(process)
            assert path in said and "108 bytes" in said and "at most 107" in said, said
        with profd("--socket", path[:-1]) as process:
            serves(process, path[:-1])


@SENTENCE("systemd socket activation is honoured, and such a socket is never unlinked.")
def test_a_passed_socket_is_served_and_stays():
    with tempfile.TemporaryDirectory() as root, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(root + "/s")
        listener.listen()
        inode = os.stat(root + "/s").st_ino
        script = "import os,sys; os.dup2(int(sys.argv[1]), 3); os.environ.update(LISTEN_FDS='1', LISTEN_PID=str(os.getpid()))\n" \
                 "os.execv(sys.argv[2], ['profd', '--data-dir', sys.argv[3]])"
        high = os.dup2(listener.fileno(), 50)
        process = subprocess.Popen([sys.executable, "-c", script, "50", program("profd"), root + "/data"], pass_fds=[high],
                                   stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(high)
        with Raw(root + "/s") as raw:
            assert raw.ask({"id": 1, "method": "GetStatus"})["result"]["pid"] == process.pid
        process.terminate()
        assert process.wait(20) == 0 and os.stat(root + "/s").st_ino == inode


@SENTENCE("Messages are JSON-RPC 2.0 objects, **one per line** (`\\n`), UTF-8 in, pure ASCII out.", "The daemon sends nothing before the "
          "first byte of a client.")
def test_lines_are_the_messages():
    with Daemon() as daemon, Raw(daemon.socket_path) as raw:
        assert raw.silent(0.3)
        # In pieces, several at once, and text beyond ASCII both ways.
        raw.send(b'{"id":1,"meth')
        assert raw.silent()
        raw.send(b'od":"Ping"}\n{"id":2,"method":"Ping"}\n')
        assert [raw.message()["id"], raw.message()["id"]] == [1, 2]
        raw.send('{"id":3,"method":"LaunchProcess","params":{"argv":["printf","%s\\n","gr\u00fc\u00df\U0001f980"]}}\n'.encode())
        lines = [raw.line() for _ in range(4)]
        for line in lines:
            assert max(line) < 128 and json.loads(line)["jsonrpc"] == "2.0"
        outputs = [json.loads(line)["params"]["data"] for line in lines if b"ProcessOutput" in line]
        assert outputs == ["gr\u00fc\u00df\U0001f980\n"], lines


@SENTENCE("`socat` and five lines of any language are a client.")
def test_five_lines_are_a_client():
    lines = ["import socket, sys", "s = socket.socket(socket.AF_UNIX)", "s.connect(sys.argv[1])",
             "s.sendall(b'{\"id\":1,\"method\":\"Ping\"}\\n')", "print(s.makefile().readline())"]
    with Daemon() as daemon:
        said = subprocess.run([sys.executable, "-c", "\n".join(lines), daemon.socket_path], capture_output=True, check=True, timeout=20)
        assert json.loads(said.stdout)["result"]["now_unix_us"] > 0
        if shutil.which("socat"):
            said = subprocess.run(["socat", "-t", "5", "-", "UNIX-CONNECT:" + daemon.socket_path], input=b'{"id":1,"method":"Ping"}\n',
                                  capture_output=True, check=True, timeout=20)
            assert json.loads(said.stdout)["result"]["now_unix_us"] > 0


def framed(message):
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


def unframed(raw):
    """The next message by its headers; None at the end."""
    head = b""
    raw.socket.settimeout(5)
    while not head.endswith(b"\r\n\r\n"):
        byte = raw.socket.recv(1)
        if not byte:
            assert not head, head
            return None
        head += byte
    length = int(re.search(rb"(?i)content-length: *(\d+)", head)[1])
    body = b""
    while len(body) < length:
        body += raw.socket.recv(length - len(body))
    return json.loads(body)


@SENTENCE("A connection whose first bytes are `Content-Length:` uses header framing (the Language Server Protocol's base protocol) in "
          "both directions instead, so `vscode-jsonrpc`, Emacs's `jsonrpc.el` and other LSP transports work unchanged.", "With header "
          "framing, headers that do not say where the next message begins are -32600 and close the connection; a text over the limit is "
          "skipped like a line.")
def test_headers_frame_messages():
    with Daemon() as daemon:
        with Raw(daemon.socket_path) as raw:
            raw.send(framed(PING))
            assert unframed(raw)["result"]["now_unix_us"] > 0
            # Another header, a body with line ends, two at once, an event.
            body = json.dumps({"id": 2, "method": "Ping"}, indent=1).encode()
            raw.send(b"Content-Length: %d\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n" % len(body) + body +
                     framed({"id": 3, "method": "LaunchProcess", "params": {"argv": ["true"]}}))
            assert unframed(raw)["id"] == 2 and unframed(raw)["id"] == 3
            assert unframed(raw)["method"] == "ProcessStarted"
        for headers in (b"Content-Length: x\r\n\r\n", b"Content-Length:\r\n\r\n", b"Content-Length: -1\r\n\r\n"):
            with Raw(daemon.socket_path) as raw:
                raw.send(headers)
                error = unframed(raw)
                assert (error["id"], error["error"]["code"]) == (None, -32600), error
                assert unframed(raw) is None
        with Raw(daemon.socket_path) as raw:
            raw.send(framed(b" " * ((1 << 20) + 1)))
            error = unframed(raw)
            assert error["id"] is None and error["error"]["code"] in (-32600, -32700, -32001), error
            raw.send(framed(PING))
            assert unframed(raw)["result"]


@SENTENCE("Unknown `$/…` notifications are ignored.", "A request without `id` is a notification: executed, never answered.")
def test_notifications_are_executed_and_never_answered():
    with Daemon() as daemon, Raw(daemon.socket_path) as raw:
        raw.send({"method": "$/setTrace", "params": {"value": "off"}}, {"method": "$/cancelRequest", "params": {"id": 4}},
                 {"method": "NoSuchMethod"}, {"method": "Ping", "params": {"no": 1}},
                 {"method": "LaunchProcess", "params": {"argv": ["touch", daemon.root + "/ran"], "subscribe": False}})
        wait_until(lambda: os.path.exists(daemon.root + "/ran"), 10, "the program of a notification")
        assert raw.silent() and raw.ask(PING)["id"] == 1


@SENTENCE('`"jsonrpc":"2.0"` is always sent and may be left out by a client.', "`id` is a string or an integer;")
def test_the_version_and_the_id():
    with Daemon() as daemon, Raw(daemon.socket_path) as raw:
        for number in (0, -5, 2 ** 53, "", "a\u00fc", "7", 7):
            for more in ({}, {"jsonrpc": "2.0"}):
                reply = raw.ask({"id": number, "method": "Ping", **more})
                assert reply["id"] == number and type(reply["id"]) is type(number) and reply["jsonrpc"] == "2.0", reply
        for bad in (1.5, True, [1], {"a": 1}):
            reply = raw.ask({"id": bad, "method": "Ping"})
            assert reply["error"]["code"] == -32600 and reply["id"] is None and reply["jsonrpc"] == "2.0", reply
        assert raw.ask({"jsonrpc": "1.0", "id": 1, "method": "Ping"})["error"]["code"] == -32600


@SENTENCE("the same id twice in flight is -32600.")
def test_the_same_id_twice_in_flight_is_refused():
    with Daemon() as daemon, Raw(daemon.socket_path) as raw:
        pid = raw.ask({"id": 1, "method": "LaunchProcess", "params": {"argv": ["sleep", "60"], "build_id": "b", "hold": True}})["result"]["pid"]
        started = raw.ask({"id": 2, "method": "StartSamplingProfile", "params": {"build_id": "b", "subscribe": False}})
        wait = {"method": "WaitCapture", "params": {"capture_id": started["result"]["capture_id"]}}
        for number, other in ((5, "5"), ("x", 6)):
            raw.send({"id": number, **wait})
            assert raw.ask({"id": number, "method": "Ping"})["error"]["code"] == -32600
            assert raw.ask({"id": other, "method": "Ping"})["result"]
        raw.send({"id": 9, "method": "StopProcess", "params": {"build_id": "b"}})
        answered = []
        while len(answered) < 3:
            answered += [message["id"] for message in [raw.message()] if "id" in message]
        assert sorted(answered, key=str) == [5, 9, "x"] and not alive(pid), answered
        assert raw.ask({"id": 5, "method": "Ping"})["result"]


@SENTENCE("`params` absent, null or `[]` means none; a real number without fraction is an integer; a parameter that is null is as if "
          "left out (one that the method does not have is refused all the same).")
def test_params_in_every_shape():
    with Daemon() as daemon, Raw(daemon.socket_path) as raw:
        for text in (b"", b',"params":null', b',"params":[]', b',"params":{}'):
            assert raw.ask(b'{"id":1,"method":"Ping"%s}\n' % text)["result"]["now_unix_us"] > 0
        for text in (b"[1]", b'"x"', b"1", b"true"):
            assert raw.ask(b'{"id":1,"method":"Ping","params":%s}\n' % text)["error"]["code"] in (-32600, -32602)
        raw.ask({"id": 1, "method": "LaunchProcess", "params": {"argv": ["echo", "hello"], "build_id": None, "stdio": None, "cwd": None}})
        raw.until(lambda message: message.get("method") == "ProcessExited")
        output = {"build_id": "1", "stream": "stdout", "offset": None}
        for size in (b"2.0", b"2", b"2e0", b"20e-1"):
            text = json.dumps(output).encode()[:-1] + b',"max_bytes":%s}' % size
            assert raw.ask(b'{"id":1,"method":"GetOutput","params":%s}\n' % text)["result"]["data"] == "he"
        text = json.dumps(output).encode()[:-1] + b',"max_bytes":2.5}'
        assert raw.ask(b'{"id":1,"method":"GetOutput","params":%s}\n' % text)["error"]["code"] == -32602
        error = raw.ask({"id": 1, "method": "Ping", "params": {"nonsense": None}})["error"]
        assert error["code"] == -32602 and "nonsense" in error["message"]


@SENTENCE("Batches are refused (-32600).", "A line that is not JSON, or whose top is not an object or array, is -32700; nesting beyond "
          "the depth limit -32700 too.", "After any bad line the connection goes on with the next.", "depth 32;")
def test_bad_lines_are_told_and_the_next_is_heard():
    def nested(depth):
        return b'{"id":1,"method":"Ping","params":{"x":%s1%s}}\n' % (b"[" * (depth - 2), b"]" * (depth - 2))
    with Daemon() as daemon, Raw(daemon.socket_path) as raw:
        for line, code in ((b'[{"id":1,"method":"Ping"}]', -32600), (b"[]", -32600), (b'{"id":1', -32700), (b"1", -32700),
                           (b'"Ping"', -32700), (b"null", -32700), (b"true", -32700), (b"Ping", -32700), (b'{"id":1}{"id":2}', -32700),
                           (b'{"id":1,"method":"Ping\xff"}', -32700), (b'{"id":1,"method":"Pi\0ng"}', -32700),
                           (nested(33)[:-1], -32700), (b"[" * 100000, -32700)):
            error = raw.ask(line + b"\n")
            assert error["id"] is None and error["error"]["code"] == code, (line[:40], error)
            assert raw.ask(PING)["result"], line[:40]
        assert raw.ask(nested(32))["error"]["code"] == -32602


if __name__ == "__main__":
    main(globals())
