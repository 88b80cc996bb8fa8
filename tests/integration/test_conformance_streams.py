"""docs/protocol.md, chapter 4: what a program reads and writes."""
import base64
import hashlib
import os
import stat
import sys
import time

from contract import SENTENCE
from harness import Daemon, main, output_bytes, wait_until

LINKS = "import os\nprint(*[os.readlink('/proc/self/fd/%d' % fd) for fd in (0, 1, 2)], file=open(os.environ['SAY'], 'w'))"


def run(client, script, **params):
    made = client.call("LaunchProcess", argv=["sh", "-c", script], **params)
    client.wait_event("ProcessExited", build_id=made["build_id"])
    return made


def links(daemon, client, stdio):
    path = daemon.root + "/links"
    made = client.call("LaunchProcess", argv=[sys.executable, "-c", LINKS], stdio=stdio, env={"SAY": path})
    client.wait_event("ProcessExited", build_id=made["build_id"])
    with open(path) as file:
        return file.read().split(), made


def python(client, script, **params):
    return client.call("LaunchProcess", argv=[sys.executable, "-u", "-c", script], **params)["build_id"]


def get(client, build, stream="stdout", **params):
    return client.call("GetOutput", build_id=build, stream=stream, **params)


def text_until(client, build, end, timeout=10):
    return wait_until(lambda: (lambda text: text if text.endswith(end) else None)(get(client, build).get("data", "")), timeout, "the words " + end)


@SENTENCE("With `stdio` `pipe` all three standard streams are pipes; standard input stays open until `WriteStdin`'s `eof` or the "
          "program's exit,", "`pipe` (default), `null`, `file`, `pty`;", "stdio?:", "With `null` all three are `/dev/null`.")
def test_pipes_and_null():
    with Daemon() as daemon:
        client = daemon.connect()
        for stdio in (None, "pipe"):
            found, made = links(daemon, client, stdio)
            assert all(link.startswith(("pipe:", "socket:")) for link in found) and "stdout_path" not in made, found
            assert all(link.startswith("pipe:") for link in found), found
        assert links(daemon, client, "null")[0] == ["/dev/null"] * 3
        build = python(client, "import sys\nprint('up')\nprint(sys.stdin.read().upper())")
        text_until(client, build, "up\n")
        client.call("WriteStdin", build_id=build, data="abc")
        time.sleep(0.2)
        assert get(client, build)["data"] == "up\n", "its input ended"
        client.call("WriteStdin", build_id=build, eof=True)
        client.wait_event("ProcessExited", build_id=build)
        assert get(client, build)["data"] == "up\nABC\n"


@SENTENCE("and what is not read yet waits, 1 MiB at most.", "`accepted_bytes` tells how much was taken: write the rest later. `eof` "
          "counts only when everything was accepted.", "`WriteStdin` | build_id, data or data_b64, eof? | accepted_bytes")
def test_input_that_is_not_read_waits():
    with Daemon() as daemon:
        client = daemon.connect()
        build = python(client, "import os,sys,time,hashlib\nwhile not os.path.exists(%r): time.sleep(0.02)\ndata = sys.stdin.buffer.read()\n"
                               "print(len(data), hashlib.sha256(data).hexdigest())" % (daemon.root + "/go"))
        data, sent, accepted = os.urandom(500000), b"", 1
        while accepted:
            # The end is asked for with each piece that does not fit whole.
            accepted = client.call("WriteStdin", build_id=build, data_b64=base64.b64encode(data).decode(), eof=len(sent) > 600000)["accepted_bytes"]
            sent += data[:accepted]
        # The kernel's pipe holds another part that nobody has read.
        assert (1 << 20) - 65536 <= len(sent) <= (1 << 20) + 65536, len(sent)
        open(daemon.root + "/go", "w").close()
        wait_until(lambda: client.call("WriteStdin", build_id=build, data="end", eof=True)["accepted_bytes"] == 3, 10, "room for the rest")
        sent += b"end"
        client.wait_event("ProcessExited", build_id=build)
        assert get(client, build)["data"] == "%d %s\n" % (len(sent), hashlib.sha256(sent).hexdigest())


@SENTENCE("`WriteStdin` needs `data` or `data_b64`, not both, or `eof` alone; -32602 otherwise.", "A program that reads no more is `io` "
          "with the detail `stdin_closed`; after `eof` it is -32602 with the same detail.")
def test_wrong_input():
    with Daemon() as daemon:
        client = daemon.connect()
        build = python(client, "import os,sys,time\nos.close(0)\nprint('up')\ntime.sleep(60)")
        text_until(client, build, "up\n")
        for params in ({}, {"data": "x", "data_b64": "eA=="}, {"eof": False}, {"data_b64": "?"}):
            assert client.fails("WriteStdin", build_id=build, **params).number == -32602, params

        def closed():
            try:
                client.call("WriteStdin", build_id=build, data="x")
            except Exception as error:
                return error
            return None
        error = wait_until(closed, 5, "the end of the input")
        assert (error.number, error.code, error.detail) == (-32001, "io", "stdin_closed"), error.error
        build = python(client, "import sys,time\nsys.stdin.read()\nprint('up')\ntime.sleep(60)")
        client.call("WriteStdin", build_id=build, eof=True)
        text_until(client, build, "up\n")
        error = client.fails("WriteStdin", build_id=build, data="x")
        assert (error.number, error.detail) == (-32602, "stdin_closed"), error.error


@SENTENCE("With `pty` the program leads a session with a terminal of 24 rows and 80 columns, whose output is the one stream `stdout`.",
          "To a terminal the bytes are as typed, and `eof` sends its end-of-file character (`VEOF`), which ends a program's input at the "
          "beginning of a line; the terminal stays open.", "`ResizePty` | build_id, rows, cols | –")
def test_a_terminal():
    script = "import os,signal,sys\nprint(*os.get_terminal_size(1), os.getsid(0) == os.getpid(), os.tcgetpgrp(0) == os.getpgrp(), " \
             "all(map(os.isatty, (0, 1, 2))))\n" \
             "print('err', file=sys.stderr)\nprint(repr(sys.stdin.readline()))\nprint(repr(sys.stdin.read()))\n" \
             "signal.signal(signal.SIGWINCH, lambda *_: print(*os.get_terminal_size(1)))\nprint('more')\nprint(repr(sys.stdin.readline()))\n"
    with Daemon() as daemon:
        client = daemon.connect()
        build = python(client, script, stdio="pty")
        assert text_until(client, build, "err\r\n") == "80 24 True True True\r\nerr\r\n"
        error = client.fails("GetOutput", build_id=build, stream="stderr")
        assert error.number == -32602
        client.call("WriteStdin", build_id=build, data="abX\x7fc\n")
        text_until(client, build, "'abc\\n'\r\n")
        client.call("WriteStdin", build_id=build, data="x\n", eof=True)
        text_until(client, build, "'x\\n'\r\nmore\r\n")
        client.call("ResizePty", build_id=build, rows=30, cols=100)
        text_until(client, build, "100 30\r\n")
        client.call("WriteStdin", build_id=build, data="again\n")
        client.wait_event("ProcessExited", build_id=build)
        assert get(client, build)["data"].endswith("'again\\n'\r\n")
        streams = {event["params"]["stream"] for event in client.events if event["method"] == "ProcessOutput"}
        assert streams == {"stdout"}, streams
        piped = python(client, "import time\ntime.sleep(60)")
        assert client.fails("ResizePty", build_id=piped, rows=1, cols=1).number in (-32602, -32001)


@SENTENCE("With `file` standard input is `/dev/null`, and output goes to `<data-dir>/output/<started_unix_us>-<pid>/stdout` and `stderr` "
          "(folder 0700, files 0600), without `ProcessOutput`; the result and the record have `stdout_path` and `stderr_path`.", "The "
          "folder is deleted when the build is forgotten, and, of builds that a daemon's end has left behind, by the start of a daemon "
          "when the process does not live and nothing was written for 14 days.", "With `stdio: file` everything is kept, and the stream "
          "ends with the program.")
def test_files():
    with Daemon() as daemon:
        client = daemon.connect()
        found, made = links(daemon, client, "file")
        folder = os.path.dirname(made["stdout_path"])
        record = client.call("GetProcess", build_id=made["build_id"])
        assert folder == "%s/output/%d-%d" % (daemon.data_dir, record["started_unix_us"], made["pid"]), folder
        assert found == ["/dev/null", folder + "/stdout", folder + "/stderr"] == ["/dev/null", record["stdout_path"], record["stderr_path"]]
        assert made["stderr_path"] == record["stderr_path"] and stat.S_IMODE(os.stat(folder).st_mode) == 0o700
        assert stat.S_IMODE(os.stat(folder + "/stdout").st_mode) == stat.S_IMODE(os.stat(folder + "/stderr").st_mode) == 0o600
        long = run(client, "yes 0123456 | head -c 3000000; echo e >&2", stdio="file")
        data, at = b"", 0
        while True:
            page = get(client, long["build_id"], offset=at)
            data += page["data"].encode()
            at = page["next_offset"]
            if page["eof"]:
                break
        assert data == b"0123456\n" * 375000 and os.path.getsize(long["stdout_path"]) == 3000000 and page["lost_before"] == 0
        assert not [event for event in client.events if event["method"] == "ProcessOutput"]
        for first in range(0, 258, 43):
            numbers = [client.send("LaunchProcess", argv=["/bin/true"], stdio="null", subscribe=False) for _ in range(43)]
            for number in numbers:
                client.wait_reply(number)
            wait_until(lambda: not daemon.children() or client.call("Ping") is None, 10, "no child")
        wait_until(lambda: not os.path.exists(folder), 10, "the end of the files")
        # Left behind by a daemon's end: with age, without, and of a process that lives.
        left = [client.call("LaunchProcess", argv=argv, stdio="file", on_daemon_exit="leave") for argv in (["true"], ["true"], ["sleep", "60"])]
        for each in left[:2]:
            client.wait_event("ProcessExited", build_id=each["build_id"])
        daemon.process.kill()
        daemon.process.wait()
        # All were launched long ago, by their folders' names; two wrote last 14 days and a minute ago.
        now, folders = time.time(), []
        for each, written in zip(left, (now - 14 * 86400 - 60, now - 14 * 86400 + 3600, now - 14 * 86400 - 60)):
            folders.append("%s/output/%d-%d" % (daemon.data_dir, (now - 20 * 86400) * 1e6, each["pid"]))
            os.rename(os.path.dirname(each["stdout_path"]), folders[-1])
            for name in ("/stdout", "/stderr", ""):
                os.utime(folders[-1] + name, (written, written))
        daemon.start()
        wait_until(lambda: not os.path.exists(folders[0]), 5, "the end of the oldest")
        assert os.path.exists(folders[1] + "/stdout") and os.path.exists(folders[2] + "/stdout")
        os.kill(left[2]["pid"], 9)


@SENTENCE("`GetOutput` | build_id, stream, offset?, max_bytes? | data or data_b64, offset, next_offset, lost_before, eof (ring of 1 MiB "
          "per stream, the last 64 KiB after exit)", "Without `offset` it begins at the oldest byte kept; one beyond the end is -32602 "
          "(`out_of_range`).", "`max_bytes` is at most 45,056, the default.", "Go on at `next_offset`. `lost_before` counts the bytes "
          "between the `offset` asked for and the one given that are kept no more. `eof`: the stream has ended and this reaches its end.")
def test_what_is_kept_of_the_output():
    total = 3 << 20
    script = "import os,time\nfor at in range(0, %d, 64): os.write(1, b'%%063d\\n' %% at)\nos.write(2, b'up\\n')\n" \
             "while not os.path.exists(%r): time.sleep(0.02)"
    with Daemon() as daemon:
        client = daemon.connect()
        build = python(client, script % (total, daemon.root + "/go"), subscribe=False)
        wait_until(lambda: get(client, build, "stderr")["data"] == "up\n", 20, "all of it")

        def expect(page, kept):
            assert page["offset"] == total - kept and page["data"] == "%063d\n" % (total - kept) + page["data"][64:], page["offset"]
            assert len(page["data"]) == 45056 and page["next_offset"] == page["offset"] + 45056 and page["eof"] is False
        expect(get(client, build), 1 << 20)
        page = get(client, build, offset=64)
        expect(page, 1 << 20)
        assert page["lost_before"] == total - (1 << 20) - 64
        page = get(client, build, offset=total - 1000)
        assert len(page["data"]) == 1000 and page["next_offset"] == total and page["lost_before"] == 0 and page["eof"] is False
        assert get(client, build, offset=total)["data"] == ""
        error = client.fails("GetOutput", build_id=build, stream="stdout", offset=total + 1)
        assert (error.number, error.detail) == (-32602, "out_of_range"), error.error
        assert client.fails("GetOutput", build_id=build, stream="stdout", max_bytes=45057).number == -32602
        assert len(get(client, build, max_bytes=7)["data"]) == 7
        open(daemon.root + "/go", "w").close()
        wait_until(lambda: client.call("GetProcess", build_id=build)["state"] == "exited", 10, "its end")
        page = get(client, build)
        expect(page, 65536)
        page = get(client, build, offset=page["next_offset"])
        assert page["next_offset"] == total and page["eof"] is True and len(page["data"]) == 65536 - 45056, page["eof"]


@SENTENCE("`GetOutput`: `stream` is `stdout` or `stderr` (a terminal has `stdout` alone).", "`data` when the bytes are UTF-8 without "
          "NUL: a character that is cut by the end is left for the next call (so `data` may be empty while its rest has not been "
          "written), and text that would need more than a line when it is escaped is shortened; otherwise `data_b64`.")
def test_text_and_bytes():
    with Daemon() as daemon:
        client = daemon.connect()
        build = python(client, "import os,sys\nos.write(1, '\u20ac'.encode()[:2])\nos.write(2, b'err')\nsys.stdin.readline()\n"
                               "os.write(1, '\u20ac'.encode()[2:])\n"
                               "os.write(1, b'a\\0b')\nos.write(2, b'\\x01' * 30000)\nsys.stdin.read()")
        wait_until(lambda: get(client, build, "stderr")["data"] == "err", 10, "its word")
        page = get(client, build)
        assert page["data"] == "" and page["next_offset"] == 0, page
        assert client.fails("GetOutput", build_id=build, stream="stdin").number == -32602
        client.call("WriteStdin", build_id=build, data="\n")
        wait_until(lambda: get(client, build, "stderr")["next_offset"] > 3, 10, "the rest")
        page = get(client, build, max_bytes=3)
        assert page["data"] == "\u20ac" and page["next_offset"] == 3
        page = get(client, build, offset=3)
        assert base64.b64decode(page["data_b64"]) == b"a\0b" and "data" not in page, page
        at, text = 0, ""
        while at < 30003:
            page = get(client, build, "stderr", offset=at)
            assert page["next_offset"] - at == len(page["data"]) > 0
            text, at = text + page["data"], page["next_offset"]
        assert text == "err" + "\x01" * 30000
        # 6 bytes each when they are told: more than a line.
        assert 0 < len(get(client, build, "stderr", offset=3)["data"]) < 60 * 1024 // 6
        client.call("WriteStdin", build_id=build, eof=True)
        client.wait_event("ProcessExited", build_id=build)
        assert output_bytes(client.events) == "\u20ac".encode() + b"a\0b"


if __name__ == "__main__":
    main(globals())
