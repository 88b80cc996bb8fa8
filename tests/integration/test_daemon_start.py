"""How the daemon starts, or says why it cannot."""
import contextlib
import os
import re
import socket
import subprocess
import tempfile

from disks import fill, small_disk
from footprint import check_as_before, settled
from harness import Client, Daemon, alive, main, program, wait_until, write
from nobody import NOBODY, as_nobody
from refusals import check_error


# The command line


def run(*args, **env):
    return subprocess.run([program("profd"), *args], capture_output=True, text=True, timeout=20, env=dict(os.environ, **env))


def test_a_bad_option_is_named_in_one_line_with_status_2():
    for args, word in ((["--sockt", "x"], "--sockt"), (["--socket"], "--socket"), (["-x"], "-x"), (["x"], "x"),
                       (["--log-level", "loud"], "loud"), (["--idle-exit", "soon"], "soon"), (["--idle-exit", "0"], "0"),
                       (["--idle-exit", "-1"], "-1"), (["--ready-fd", "999"], "999"), (["--data-dir", ""], "--data-dir")):
        ended = run(*args)
        assert ended.returncode == 2 and ended.stdout == "", (args, ended)
        assert ended.stderr.count("\n") == 1 and ended.stderr.startswith("profd: ") and word in ended.stderr, (args, ended)


def test_help_and_version_go_to_standard_output():
    shown = run("--help")
    assert shown.returncode == 0 and shown.stderr == ""
    for option in ("--socket", "--data-dir", "--log-level", "--idle-exit", "--ready-fd", "--version"):
        assert option in shown.stdout
    assert run("--version").stdout.startswith("profd 0.")


def test_a_daemon_that_cannot_start_says_why_and_what_to_do():
    with Daemon() as daemon:
        other = os.path.join(daemon.root, "other")
        os.mkdir(other, 0o700)
        ended = run("--socket", daemon.socket_path, "--data-dir", other)
        assert ended.returncode == 1 and str(daemon.process.pid) in ended.stderr, ended
        ended = run("--socket", os.path.join(other, "s"), "--data-dir", daemon.data_dir)
        assert ended.returncode == 1 and daemon.data_dir in ended.stderr and "(" in ended.stderr, ended
        assert not os.path.exists(os.path.join(other, "s")), "the socket was left behind"
        os.chmod(other, 0o755)
        ended = run("--socket", os.path.join(other, "s"), "--data-dir", daemon.data_dir)
        assert ended.returncode == 1 and other in ended.stderr and "chmod" in ended.stderr, ended
        assert run("--socket", "/" + "x" * 200).returncode == 1
        assert daemon.connect().call("Ping")


def test_whoever_waits_on_the_ready_descriptor_is_told_of_a_failure():
    reading, writing = os.pipe()
    ended = subprocess.run([program("profd"), "--socket", "/" + "x" * 200, "--ready-fd", str(writing)], pass_fds=[writing],
                           capture_output=True, text=True, timeout=20)
    os.close(writing)
    with os.fdopen(reading) as file:
        said = file.read()
    assert ended.returncode == 1 and said.startswith("error: ") and said.count("\n") == 1, said
    assert said[7:].strip() in ended.stderr


def test_a_daemon_started_after_a_killed_one_takes_its_place():
    with Daemon() as daemon:
        launched = daemon.connect().call("LaunchProcess", argv=["sleep", "60"])
        daemon.process.kill()
        daemon.process.wait()
        wait_until(lambda: not alive(launched["pid"]))
        daemon.start()
        assert daemon.connect().call("ListProcesses") == {"processes": []}


# Folders and sockets


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


def test_signals_that_its_parent_ignored_or_blocked_change_nothing():
    with tempfile.TemporaryDirectory() as root:
        os.mkdir(root + "/run", 0o700)
        path = root + "/run/profd.sock"
        command = ["env", "--ignore-signal=CHLD", "--block-signal=TERM", "--block-signal=CHLD", program("profd"), "--socket", path,
                   "--data-dir", root + "/data"]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_until(lambda: os.path.exists(path), 20, "the socket")
            client = Client(path)
            client.call("LaunchProcess", argv=["sh", "-c", "exit 4"], build_id="a")
            assert client.wait_event("ProcessExited", build_id="a")["exit_code"] == 4
            client.call("LaunchProcess", argv=["sh", "-c", "kill -9 $$"], build_id="b")
            assert client.wait_event("ProcessExited", build_id="b")["signal"] == "SIGKILL"
            assert client.fails("LaunchProcess", argv=["/no/such"]).detail == "not_found"
            client.close()
            process.terminate()
            assert process.wait(20) == 0
        finally:
            process.kill()
            process.wait()


if __name__ == "__main__":
    main(globals())
