"""How programs are launched, heard and ended: what they get from the daemon, and what stays behind (nothing)."""
import os
import resource
import signal
import socket
import tempfile

from harness import SANITIZED, Daemon, alive, main, output_bytes, wait_until, write
from scripts import run, start


def test_what_cannot_run_is_told_and_leaves_nothing():
    with Daemon() as daemon, tempfile.TemporaryDirectory() as folder:
        client = daemon.connect()
        os.mkdir(os.path.join(folder, "sub"))
        write(folder, "plain", "#!/bin/sh\n", 0o644)
        write(folder, "nothing", "no program\n", 0o755)
        write(folder, "orphan", "#!/no/such/interpreter\n", 0o755)
        run(client, "true")
        descriptors, files = daemon.descriptors(), daemon.files()
        known = client.call("ListProcesses")["processes"]
        for argv, extra, code, detail, names in [
            ([], {}, "bad_params", None, "argv"),
            ([""], {}, "bad_params", None, "argv"),
            (["no-such-program"], {}, "launch_failed", "not_found", "no-such-program"),
            (["no-such-program"], {"env": {"PATH": "/only/here"}}, "launch_failed", "not_found", "/only/here"),
            (["./no-such-program"], {}, "launch_failed", "not_found", "./no-such-program"),
            (["./plain"], {}, "launch_failed", "not_executable", "chmod +x"),
            (["./nothing"], {}, "launch_failed", "not_executable", "./nothing"),
            (["./sub"], {}, "launch_failed", "is_directory", "./sub"),
            (["./orphan"], {}, "launch_failed", "no_interpreter", "/no/such/interpreter"),
            (["true"], {"cwd": folder + "/gone"}, "launch_failed", "cwd", folder + "/gone"),
            (["true"], {"cwd": folder + "/plain"}, "launch_failed", "cwd", folder + "/plain"),
        ]:
            for hold in (False, True):
                params = dict({"cwd": folder, "build_id": "refused", "hold": hold}, **extra)
                if hold and detail in ("no_interpreter",) or hold and argv == ["./nothing"]:
                    continue  # only the exec itself finds these
                error = client.fails("LaunchProcess", argv=argv, **params)
                assert error.code == code, (argv, error.code, error.message)
                assert detail is None or error.detail == detail, (argv, error.detail)
                assert names in error.message, (argv, error.message)
        assert client.call("ListProcesses")["processes"] == known
        assert client.fails("GetProcess", build_id="refused").code == "build_not_found"
        wait_until(lambda: daemon.descriptors() == descriptors, 5, "the descriptors from before")
        assert daemon.children() == []
        assert daemon.files() == files
        client.drain(0.1)
        assert [event for event in client.events if event["params"].get("build_id") == "refused"] == []


def test_a_held_script_without_interpreter_fails_when_it_is_resumed():
    with Daemon() as daemon, tempfile.TemporaryDirectory() as folder:
        client = daemon.connect()
        write(folder, "orphan", "#!/no/such/interpreter\n", 0o755)
        held = client.call("LaunchProcess", argv=["./orphan"], cwd=folder, hold=True)
        error = client.fails("ResumeProcess", build_id=held["build_id"])
        assert (error.code, error.detail) == ("launch_failed", "no_interpreter"), (error.code, error.detail)
        # Its end is told as any other build's, with the reason; the status is a shell's.
        exited = client.wait_event("ProcessExited", build_id=held["build_id"])
        assert exited["exit_code"] == 126 and exited["signal"] is None and exited["error"] == error.error, exited
        assert "ProcessStarted" not in [event["method"] for event in client.events]
        record = client.call("GetProcess", build_id=held["build_id"])
        assert (record["state"], record["exit_code"]) == ("exited", 126), record
        wait_until(lambda: daemon.children() == [], 5, "the end of the gate")


def test_a_program_gets_a_clean_start():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with Daemon() as daemon:
        client = daemon.connect()
        launched = client.call("LaunchProcess", argv=["cat", "/proc/self/status"])
        client.wait_event("ProcessExited")
        status = dict(line.split(":", 1) for line in output_bytes(client.events).decode().splitlines())
        assert int(status["SigIgn"], 16) == 0 and int(status["SigBlk"], 16) == 0, status
        assert int(status["PPid"]) == daemon.process.pid and int(status["Pid"]) == launched["pid"]
        output, _ = run(client, "ulimit -Sn; ulimit -Hn; umask; echo /proc/$$/fd/*; cut -d' ' -f5 /proc/$$/stat; echo $$")
        lines = output.decode().split("\n")
        limits = ["unlimited" if value == resource.RLIM_INFINITY else str(value) for value in (soft, hard)]
        assert lines[:2] == limits, (lines, limits)
        mask = os.umask(0)
        os.umask(mask)
        assert int(lines[2], 8) == mask, lines[2]
        assert {path.rsplit("/", 1)[1] for path in lines[3].split()} <= {"0", "1", "2", "3"}, lines[3]
        assert lines[4] == lines[5]  # it leads a group of its own


def test_exit_codes_and_signals_are_told_apart():
    with Daemon() as daemon:
        client = daemon.connect()
        for script, code, name in [("exit 0", 0, None), ("exit 127", 127, None), ("exit 139", 139, None),
                                   ("ulimit -c 0; kill -SEGV $$", None, "SIGSEGV"), ("kill -9 $$", None, "SIGKILL")]:
            _, end = run(client, script)
            assert (end.get("exit_code"), end.get("signal")) == (code, name), (script, end)
            assert end["core_dumped"] is False


def test_a_client_that_does_not_read_does_not_block_the_program():
    with Daemon() as daemon:
        deaf, other = daemon.connect(), daemon.connect()
        deaf.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.send("LaunchProcess", build_id="flood", argv=["sh", "-c", "head -c 50000000 /dev/zero"])
        wait_until(lambda: other.call("ListProcesses")["processes"], 20, "the launch")
        wait_until(lambda: other.call("GetProcess", build_id="flood")["state"] == "exited", 60, "the program's end")
        assert other.call("GetProcess", build_id="flood")["exit_code"] == 0
        assert daemon.status("VmRSS") < (512 if SANITIZED else 32) * 1024


def test_many_launches_leave_nothing():
    with Daemon() as daemon:
        client = daemon.connect()
        run(client, "true")
        before = daemon.descriptors()
        for _ in range(20):
            numbers = [client.send("LaunchProcess", argv=["/bin/true"]) for _ in range(10)]
            builds = [client.wait_reply(number)["build_id"] for number in numbers]
            for build in builds:
                assert client.wait_event("ProcessExited", build_id=build)["exit_code"] == 0
        wait_until(lambda: daemon.descriptors() == before, 5, "the descriptors from before")
        assert daemon.children() == []


def test_a_stop_reaches_the_whole_group():
    with Daemon() as daemon:
        client = daemon.connect()
        launched = start(client, "trap 'exit 0' TERM; (trap '' TERM; exec sleep 60 >/dev/null 2>&1) & echo $!; echo up; "
                                 "while :; do sleep 0.05; done")
        member = int(output_bytes(client.events).split()[0])
        wait_until(lambda: open("/proc/%d/comm" % member).read() == "sleep\n", 5, "a member that ignores the signal")
        client.call("StopProcess", build_id=launched["build_id"], grace_ms=300)
        wait_until(lambda: not alive(member), 5, "the end of the group")


def test_programs_end_with_a_daemon_that_is_killed():
    daemon = Daemon(check_exit=False)
    with daemon:
        client = daemon.connect()
        running = start(client, "echo up; while :; do sleep 1; done")
        held = client.call("LaunchProcess", argv=["sleep", "60"], hold=True)
        assert alive(running["pid"]) and alive(held["pid"])
        daemon.process.send_signal(signal.SIGKILL)
        daemon.process.wait(10)
        wait_until(lambda: not alive(running["pid"]) and not alive(held["pid"]), 10, "the end of the programs")


if __name__ == "__main__":
    main(globals())
