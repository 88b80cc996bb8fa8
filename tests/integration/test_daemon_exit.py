"""What becomes of programs when the daemon ends, however it does: their whole groups die, or they are left as asked."""
import contextlib
import os
import signal
import time

from harness import Daemon, alive, main, output_bytes, program, wait_until
from nobody import ordinary_user
from scripts import start

GROUP = "(trap '' TERM HUP INT; exec sleep 300 >/dev/null 2>&1 </dev/null) & echo $!; echo up; wait"


def guard_of(daemon):
    """The pid of the guard, as the kernel names it behind the daemon's descriptors (a daemon without builds has no other)."""
    folder = "/proc/%d/fdinfo" % daemon.process.pid
    for name in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError), open(os.path.join(folder, name)) as file:
            for line in file:
                if line.startswith("Pid:") and int(line.split()[1]) > 0 and name_of(int(line.split()[1])) == "profd-guard":
                    return int(line.split()[1])
    return None


def name_of(pid):
    with contextlib.suppress(FileNotFoundError), open("/proc/%d/comm" % pid) as file:
        return file.read().strip()
    return None


def start_group(client, **params):
    """A program with a member of its group that ends by nothing but a kill: both pids."""
    launched = start(client, GROUP, **params)
    own = [event for event in client.events if event["params"].get("build_id") == launched["build_id"]]
    return launched["pid"], int(output_bytes(own).split()[0])


def all_gone(pids, what):
    wait_until(lambda: not [pid for pid in pids if alive(pid)], 10, what)


def test_a_killed_daemon_takes_whole_groups_with_it():
    for user in {None, ordinary_user()}:
        daemon = Daemon(check_exit=False, user=user)
        with daemon:
            client = daemon.connect()
            guard = guard_of(daemon)
            pids = [pid for _ in range(5) for pid in start_group(client)]
            held = client.call("LaunchProcess", argv=["sleep", "300"], hold=True)["pid"]
            terminal = client.call("LaunchProcess", argv=["sh", "-c", "trap '' HUP; sleep 300"], stdio="pty")["pid"]
            gone = start_group(client, build_id="gone")
            client.call("StopProcess", build_id="gone", grace_ms=0)
            assert all(alive(pid) for pid in pids + [held, terminal, guard]) and not alive(gone[0])
            daemon.process.send_signal(signal.SIGKILL)
            daemon.process.wait(10)
            all_gone(pids + [held, terminal], "the end of the programs")
            all_gone([guard], "the end of the guard")


def test_a_guard_that_dies_is_replaced():
    daemon = Daemon(check_exit=False)
    with daemon:
        client = daemon.connect()
        pids = list(start_group(client))
        time.sleep(1.1)  # one that lived for a second is replaced at once
        guard = guard_of(daemon)
        os.kill(guard, signal.SIGKILL)
        wait_until(lambda: guard_of(daemon) not in (None, guard), 5, "another guard")
        pids += start_group(client)
        assert all(alive(pid) for pid in pids)
        daemon.process.send_signal(signal.SIGKILL)
        daemon.process.wait(10)
        all_gone(pids, "the end of the programs")


def test_the_guard_holds_nothing_of_the_daemon():
    with Daemon() as daemon:
        daemon.connect().call("Ping")
        guard = guard_of(daemon)
        links = {name: os.readlink("/proc/%d/fd/%s" % (guard, name)) for name in os.listdir("/proc/%d/fd" % guard)}
        assert links.pop("3").startswith("socket:") and set(links.values()) == {"/dev/null"} and set(links) == {"0", "1", "2"}, links
        assert os.readlink("/proc/%d/cwd" % guard) == "/"
        assert os.path.basename(os.readlink("/proc/%d/exe" % guard)) == os.path.basename(program("profd-gate"))
        wait_until(lambda: os.getsid(guard) == guard, 5, "its session")
        with open("/proc/%d/environ" % guard) as file:
            assert file.read() == ""
        assert daemon.children() == []  # nobody has to reap it
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGUSR1, signal.SIGALRM, signal.SIGRTMAX):
            os.kill(guard, number)
        time.sleep(0.1)
        assert alive(guard)
    all_gone([guard], "the end of the guard")


def leave(client, stdio="null", **params):
    return client.call("LaunchProcess", argv=["sleep", "300"], stdio=stdio, on_daemon_exit="leave", **params)


def end_all(pids):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_what_is_left_outlives_the_daemon_however_it_ends():
    for how in ("SIGKILL", "SIGTERM", "stop", "now", "drain"):
        daemon = Daemon(check_exit=how != "SIGKILL")
        with daemon:
            client = daemon.connect()
            left = [leave(client)["pid"], leave(client, "file")["pid"]]
            held = leave(client, hold=True)["pid"]
            killed = start_group(client) if how == "SIGKILL" else [start(client, "echo up; exec sleep 300")["pid"]]
            assert all(os.getpgid(pid) == pid for pid in left)
            began = time.monotonic()
            if how.startswith("SIG"):
                daemon.process.send_signal(getattr(signal, how))
            else:
                client.call("Shutdown", mode=how)
            daemon.process.wait(20)
            assert time.monotonic() - began < (15 if how in ("SIGTERM", "stop", "drain") else 8), how
            all_gone(list(killed) + [held], "the end of the others")
            time.sleep(0.1)
            still = [alive(pid) for pid in left]
            end_all(left)
            assert still == [True, True], how


def test_a_daemon_does_not_wait_for_what_is_left():
    with Daemon() as daemon:
        client = daemon.connect()
        left = leave(client)["pid"]
        began = time.monotonic()
        daemon.stop()
        assert time.monotonic() - began < 5
        assert alive(left)
        end_all([left])


def test_what_shall_be_left_may_have_nothing_of_the_daemons():
    with Daemon() as daemon:
        client = daemon.connect()
        for stdio in ({}, {"stdio": "pipe"}, {"stdio": "pty"}):
            error = client.fails("LaunchProcess", argv=["true"], on_daemon_exit="leave", **stdio)
            assert error.code == "bad_params" and stdio.get("stdio", "pipe") in error.message and error.hint, error
        assert client.fails("LaunchProcess", argv=["true"], on_daemon_exit="stay", stdio="null").code == "bad_params"
        left = leave(client, build_id="b")
        assert client.call("StopProcess", build_id="b")["signal"] == "SIGTERM"
        assert not alive(left["pid"])


def test_files_of_what_was_left_are_kept_until_they_are_old():
    with Daemon() as daemon:
        client = daemon.connect()
        script = "echo before; while ! test -e go; do sleep 0.02; done; echo after"
        path = client.call("LaunchProcess", argv=["sh", "-c", script], cwd=daemon.root, stdio="file", on_daemon_exit="leave")["stdout_path"]
        client.call("LaunchProcess", argv=["echo", "ended"], stdio="file", build_id="ended")
        client.wait_event("ProcessExited", build_id="ended")
        ended = client.call("GetProcess", build_id="ended")["stdout_path"]
        daemon.stop()
        daemon.start()
        assert os.path.exists(path) and os.path.exists(ended)
        with open(os.path.join(daemon.root, "go"), "w"):
            pass
        wait_until(lambda: open(path).read() == "before\nafter\n", 10, "what was written later")
        daemon.stop()
        old = time.time() - 15 * 86400
        folder = os.path.join(daemon.data_dir, "output")
        renamed = os.path.join(folder, "%d-%s" % (old * 1000000, os.path.basename(os.path.dirname(ended)).split("-")[1]))
        os.rename(os.path.dirname(ended), renamed)
        for name in ("stdout", "stderr"):
            os.utime(os.path.join(renamed, name), (old, old))
        daemon.start()
        assert os.listdir(folder) == [os.path.basename(os.path.dirname(path))]


if __name__ == "__main__":
    main(globals())
