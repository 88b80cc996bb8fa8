"""What goes into a program and what comes out of it: WriteStdin, ResizePty, GetOutput, over pipes, files and terminals."""
import base64
import os
import stat
import time

from harness import Daemon, alive, main, output_bytes, wait_until
from nobody import ordinary_user
from scripts import start


def bytes_of(reply):
    assert ("data" in reply) != ("data_b64" in reply), reply
    data = base64.b64decode(reply["data_b64"]) if "data_b64" in reply else reply["data"].encode()
    assert reply["next_offset"] == reply["offset"] + len(data), reply
    return data


def read_all(client, build_id, stream="stdout", **params):
    """Everything that is kept from an offset on, in as many answers as it takes; the last one too."""
    data = b""
    while True:
        reply = client.call("GetOutput", build_id=build_id, stream=stream, **params)
        piece = bytes_of(reply)
        data += piece
        if reply["eof"] or not piece:
            return data, reply
        params["offset"] = reply["next_offset"]


def ends(client, build_id):
    return client.wait_event("ProcessExited", build_id=build_id)


def test_output_is_read_again_by_whoever_comes_later():
    with Daemon() as daemon:
        client, other = daemon.connect(), daemon.connect()
        expected = "".join("line %d äöü €\n" % number for number in range(2000)).encode()
        path = os.path.join(daemon.root, "text")
        with open(path, "wb") as file:
            file.write(expected)
        build = client.call("LaunchProcess", argv=["sh", "-c", "cat %s; echo wrong >&2" % path], build_id="b")["build_id"]
        ends(client, build)
        assert read_all(other, build)[0] == expected
        for size in (1, 3, 7, 1000):
            assert read_all(other, build, offset=len(expected) - 40, max_bytes=size)[0] == expected[-40:]
        pieces = [other.call("GetOutput", build_id=build, stream="stdout", offset=offset, max_bytes=100) for offset in range(200, 240)]
        assert all(bytes_of(piece) == expected[piece["offset"]:piece["next_offset"]] for piece in pieces)
        # Whoever begins within a character gets bytes, everybody else text.
        assert all(("data" in piece) == (expected[piece["offset"]] & 0xc0 != 0x80) for piece in pieces)
        assert read_all(other, build, "stderr")[0] == b"wrong\n"
        end = other.call("GetOutput", build_id=build, stream="stdout", offset=len(expected))
        assert end == {"data": "", "offset": len(expected), "next_offset": len(expected), "lost_before": 0, "eof": True}


def test_what_is_no_longer_kept_is_counted():
    with Daemon() as daemon:
        client = daemon.connect()
        line = b"%015d\n"
        script = "i=0; awk 'BEGIN { for (i = 0; i < 200000; i++) printf \"%015d\\n\", i }'; echo done >&2; exec sleep 60"
        client.call("LaunchProcess", argv=["sh", "-c", script], build_id="flood", subscribe=False)
        wait_until(lambda: client.call("GetOutput", build_id="flood", stream="stderr")["data"] == "done\n", 20, "the last word")
        expected = b"".join(line % number for number in range(200000))
        first = client.call("GetOutput", build_id="flood", stream="stdout", offset=16)
        assert first["offset"] == len(expected) - 1024 * 1024 and first["lost_before"] == first["offset"] - 16, first
        data, last = read_all(client, "flood", offset=0)
        assert data == expected[-1024 * 1024:] and last["eof"] is False
        client.call("StopProcess", build_id="flood")
        data, last = read_all(client, "flood")
        assert data == expected[-64 * 1024:] and last["eof"] is True
        assert client.call("GetOutput", build_id="flood", stream="stdout")["lost_before"] == 0
        for offset, total in ((len(expected) + 1, len(expected)), (2 ** 53, len(expected))):
            error = client.fails("GetOutput", build_id="flood", stream="stdout", offset=offset)
            assert (error.code, error.detail) == ("bad_params", "out_of_range"), error
            assert str(offset) in error.message and str(total) in error.message, error


def test_any_bytes_fit_a_line():
    with Daemon() as daemon:
        client = daemon.connect()
        for number, unit in enumerate([b"\x1b[1m", b"\x01", bytes(range(256)), "😀".encode(), b"\"\\", b"a", "é\n".encode(), b"\0"]):
            path = os.path.join(daemon.root, "bytes")
            expected = (unit * 100000)[:150001]
            with open(path, "wb") as file:
                file.write(expected)
            client.call("LaunchProcess", argv=["sh", "-c", "cat %s; exec sleep 60" % path], build_id=number, subscribe=False)
            wait_until(lambda: len(read_all(client, number)[0]) >= len(expected) - 3, 20, "all of it")
            client.call("StopProcess", build_id=number)
            data, last = read_all(client, number)
            assert data == expected[-65536:] and last["eof"], (unit, len(data), last)


def test_input_is_given_as_text_or_bytes_and_ended():
    with Daemon() as daemon:
        client = daemon.connect()
        everything = bytes(range(256)) * 40
        client.call("LaunchProcess", argv=["cat"], build_id="cat", subscribe=True)
        assert client.call("WriteStdin", build_id="cat", data="ä\n") == {"accepted_bytes": 3}
        assert client.call("WriteStdin", build_id="cat", data_b64=base64.b64encode(everything).decode()) == {"accepted_bytes": len(everything)}
        assert client.call("WriteStdin", build_id="cat", eof=True) == {"accepted_bytes": 0}
        error = client.fails("WriteStdin", build_id="cat", data="x")
        assert error.code in ("bad_params", "build_not_running"), error
        assert ends(client, "cat")["exit_code"] == 0
        assert read_all(client, "cat")[0] == "ä\n".encode() + everything
        assert client.fails("WriteStdin", build_id="cat", data="x").code == "build_not_running"


def test_input_is_refused_when_nobody_would_read_it():
    with Daemon() as daemon:
        client = daemon.connect()
        build = start(client, "echo up; exec sleep 60")["build_id"]
        for params in ({}, {"data": "a", "data_b64": "YQ=="}, {"eof": False}, {"data_b64": "a"}, {"data_b64": "YR=="}, {"data": 1},
                       {"data": "a", "eof": "yes"}, {"data": "a", "more": 1}):
            assert client.fails("WriteStdin", build_id=build, **params).code == "bad_params", params
        client.call("WriteStdin", build_id=build, eof=True)
        error = client.fails("WriteStdin", build_id=build, data="x")
        assert (error.code, error.detail) == ("bad_params", "stdin_closed") and error.hint, error
        closed = start(client, "exec <&-; echo up; exec sleep 60")["build_id"]
        error = client.fails("WriteStdin", build_id=closed, data="x")
        assert (error.code, error.detail) == ("io", "stdin_closed") and error.hint, error
        for stdio in ("null", "file"):
            other = client.call("LaunchProcess", argv=["sleep", "60"], stdio=stdio)["build_id"]
            error = client.fails("WriteStdin", build_id=other, data="x")
            assert error.code == "unsupported" and stdio in error.message and error.hint, error
            assert client.fails("ResizePty", build_id=other, rows=1, cols=1).code == "unsupported"
            assert read_all(client, build)[0] == b"up\n"
        assert client.fails("GetOutput", build_id=other, stream="stdin").code == "bad_params"
        assert client.fails("GetOutput", build_id=other).code == "bad_params"


def test_a_program_that_does_not_read_blocks_nobody():
    with Daemon() as daemon:
        client = daemon.connect()
        build = start(client, "trap 'exec wc -c' USR1; echo up; while :; do sleep 0.02; done")["build_id"]
        block = "x" * 1000000
        taken = 0
        while True:
            accepted = client.call("WriteStdin", build_id=build, data=block)["accepted_bytes"]
            taken += accepted
            if accepted < len(block):
                break
        assert taken == 1024 * 1024 + 65536, taken
        began = time.monotonic()
        client.call("Ping")
        assert time.monotonic() - began < 1
        client.call("SignalProcess", build_id=build, signal="USR1")
        wait_until(lambda: client.call("WriteStdin", build_id=build, eof=True) == {"accepted_bytes": 0}, 5)
        assert ends(client, build)["exit_code"] == 0
        assert read_all(client, build)[0] == b"up\n%d\n" % taken


def test_a_terminal_is_one_to_the_program():
    with Daemon() as daemon:
        client = daemon.connect()
        script = "trap 'stty size; read line; echo got $line; exit 0' WINCH; tty >/dev/null && echo err >&2; stty -echo size; echo up; " \
                 "while :; do sleep 0.02; done"
        build = client.call("LaunchProcess", argv=["sh", "-c", script], stdio="pty")["build_id"]
        wait_until(lambda: read_all(client, build)[0].endswith(b"up\r\n"), 10, "its word")
        for rows, cols in ((0, 80), (80, 0), (65536, 1), (1, 65536), (-1, 1), ("1", 1)):
            assert client.fails("ResizePty", build_id=build, rows=rows, cols=cols).code == "bad_params"
        assert client.call("ResizePty", build_id=build, rows=65535, cols=1) == {}
        client.call("WriteStdin", build_id=build, data="words\n")
        assert ends(client, build)["exit_code"] == 0
        expected = b"err\r\n24 80\r\nup\r\n65535 1\r\ngot words\r\n"
        data, last = read_all(client, build)
        assert data == expected and last["eof"] is True, data
        assert output_bytes(client.events) == expected
        error = client.fails("GetOutput", build_id=build, stream="stderr")
        assert error.code == "bad_params" and "stderr" in error.message, error


def test_a_shell_on_a_terminal_has_job_control():
    with Daemon(env={"PS1": "$ "}) as daemon:
        client = daemon.connect()
        build = client.call("LaunchProcess", argv=["sh", "-i", "-m"], stdio="pty", env={"ENV": None})["build_id"]
        client.call("WriteStdin", build_id=build, data="sleep 60\n")
        sleeping = lambda: [pid for pid in children_of(client.call("GetProcess", build_id=build)["pid"]) if alive(pid)]
        wait_until(sleeping, 10, "the job")
        time.sleep(0.2)
        client.call("WriteStdin", build_id=build, data="\x1a")
        wait_until(lambda: b"Stopped" in read_all(client, build)[0], 10, "the stopped job")
        client.call("WriteStdin", build_id=build, data="fg\n")
        time.sleep(0.2)
        client.call("WriteStdin", build_id=build, data="\x03")
        time.sleep(0.2)
        client.call("WriteStdin", build_id=build, data="echo code $?\n")
        wait_until(lambda: b"code 130" in read_all(client, build)[0], 10, "the end of the job")
        client.call("WriteStdin", build_id=build, eof=True)
        ends(client, build)


def children_of(pid):
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid)) as file:
            return [int(child) for child in file.read().split()]
    except FileNotFoundError:
        return []


def test_files_take_the_output_and_are_named_everywhere():
    with Daemon(user=ordinary_user()) as daemon:
        client = daemon.connect()
        launched = client.call("LaunchProcess", argv=["sh", "-c", "echo out; echo err >&2; cat"], stdio="file", build_id="f", cwd="/")
        assert ends(client, "f")["exit_code"] == 0  # its input is empty
        record = client.call("GetProcess", build_id="f")
        folder = os.path.join(daemon.data_dir, "output", "%d-%d" % (record["started_unix_us"], launched["pid"]))
        for name, expected in (("stdout", b"out\n"), ("stderr", b"err\n")):
            path = os.path.join(folder, name)
            assert launched[name + "_path"] == record[name + "_path"] == path
            with open(path, "rb") as file:
                assert file.read() == expected
                assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600
            assert read_all(client, "f", name) == (expected, {"data": "" if name == "" else expected.decode(), "offset": 0,
                                                              "next_offset": 4, "lost_before": 0, "eof": True})
        assert stat.S_IMODE(os.stat(folder).st_mode) == stat.S_IMODE(os.stat(os.path.dirname(folder)).st_mode) == 0o700
        assert [event for event in client.events if event["method"] == "ProcessOutput"] == []
        assert client.fails("GetOutput", build_id="f", stream="stdout", offset=5).detail == "out_of_range"
        failed = client.fails("LaunchProcess", argv=["/no/such/program"], stdio="file")
        assert failed.code == "launch_failed"
        assert os.listdir(os.path.join(daemon.data_dir, "output")) == [os.path.basename(folder)]


def test_files_go_when_their_build_is_forgotten():
    with Daemon() as daemon:
        client = daemon.connect()
        first = client.call("LaunchProcess", argv=["true"], stdio="file", subscribe=False)
        assert os.path.exists(first["stdout_path"])
        for _ in range(257):
            client.call("LaunchProcess", argv=["true"], stdio="null", subscribe=False)
        wait_until(lambda: not os.path.exists(os.path.dirname(first["stdout_path"])), 20, "the end of its files")
        assert client.fails("GetOutput", build_id=first["build_id"], stream="stdout").code == "build_not_found"


def test_a_signal_reaches_the_process_alone():
    with Daemon() as daemon:
        client = daemon.connect()
        script = "trap 'echo first' USR1; sh -c 'trap \"echo second\" USR1; echo up; while kill -0 $PPID; do sleep 0.02; done' & while :; do sleep 0.02; done"
        build = start(client, script)["build_id"]
        for spelling in ("USR1", "SIGUSR1", 10):
            assert client.call("SignalProcess", build_id=build, signal=spelling) == {}
            wait_until(lambda: read_all(client, build)[0].endswith(b"first\n"), 5, "the signal")
            time.sleep(0.05)
        assert b"second" not in read_all(client, build)[0]
        for wrong in ("NOPE", 0, 65, -1, None):
            assert client.fails("SignalProcess", build_id=build, signal=wrong).code == "bad_params", wrong
        assert client.call("SignalProcess", build_id=build, signal="KILL") == {}
        assert ends(client, build)["signal"] == "SIGKILL"
        assert client.fails("SignalProcess", build_id=build, signal="TERM").code == "build_not_running"
        held = client.call("LaunchProcess", argv=["true"], hold=True)["build_id"]
        error = client.fails("SignalProcess", build_id=held, signal="TERM")
        assert error.code == "build_not_running" and "ResumeProcess" in error.hint, error
        assert client.call("ResumeProcess", build_id=held) == {"state": "running"}


def test_the_environment_is_as_its_mode_says():
    private = {"PROFD_SOCKET": "x", "PROFD_OTHER": "x", "NOTIFY_SOCKET": "x", "LISTEN_FDS": "0", "LISTEN_PID": "1"}
    with Daemon(env=dict(private, KEPT="1", GONE="1", PATH="/usr/bin:/bin")) as daemon:
        client = daemon.connect()

        def environment(**params):
            output, _ = run_env(client, **params)
            return dict(line.split("=", 1) for line in output.decode().split("\0") if line)
        overlay = environment(env={"GONE": None, "NEW": "ä=b", "EMPTY": "", "PROFD_OTHER": "given"})
        assert overlay["KEPT"] == "1" and overlay["NEW"] == "ä=b" and overlay["EMPTY"] == "" and "GONE" not in overlay
        assert overlay["PROFD_OTHER"] == "given" and not (set(private) - {"PROFD_OTHER"}) & set(overlay), overlay
        assert environment(env={"A": "1", "B": None}, env_mode="exact") == {"A": "1"}
        assert environment(env_mode="exact") == {}
        # Where the program is looked up is what it gets.
        assert client.fails("LaunchProcess", argv=["env"], env={"PATH": "/none"}).detail == "not_found"
        assert client.fails("LaunchProcess", argv=["no-such"], env_mode="exact").detail == "not_found"


def run_env(client, **params):
    launched = client.call("LaunchProcess", argv=["/usr/bin/env", "-0"], **params)
    end = ends(client, launched["build_id"])
    return read_all(client, launched["build_id"])[0], end


def test_keys_typed_before_the_program_runs_do_not_end_it():
    with Daemon() as daemon:
        client = daemon.connect()
        build = client.call("LaunchProcess", argv=["sh", "-c", "read line; echo got $line; kill -INT $$"], stdio="pty", hold=True)["build_id"]
        for keys in ("\x03", "\x1c", "\x1a"):
            client.call("WriteStdin", build_id=build, data=keys)
        time.sleep(0.1)
        assert client.call("GetProcess", build_id=build)["state"] == "held"
        client.call("ResumeProcess", build_id=build)
        client.call("WriteStdin", build_id=build, data="this\n")
        # And they are the program's own again.
        assert client.wait_event("ProcessExited", build_id=build)["signal"] == "SIGINT"
        assert b"got this" in output_bytes(client.events)


if __name__ == "__main__":
    main(globals())
