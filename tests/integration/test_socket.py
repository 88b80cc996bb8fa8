"""The daemon's socket over its life: removed while it is served, stale after kill -9, passed by a service manager."""
import os
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time

from harness import Client, Daemon, main, program, wait_until


def answers(path):
    try:
        client = Client(path)
    except OSError:
        return False
    try:
        return client.call("Ping")["now_unix_us"] > 0
    finally:
        client.close()


def profd(root, **more):
    return subprocess.Popen([program("profd"), "--socket", root + "/run/profd.sock", "--data-dir", root + "/data"],
                            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **more)


def test_a_removed_socket_is_made_again():
    with Daemon() as daemon:
        client = daemon.connect()
        for remove in (os.unlink, lambda path: os.unlink(path + ".lock"), lambda path: os.rename(path, path + ".away"),
                       lambda path: shutil.rmtree(os.path.dirname(path)),
                       lambda path: os.rename(os.path.dirname(path), daemon.root + "/moved")):
            before = os.stat(daemon.socket_path).st_ino
            remove(daemon.socket_path)
            wait_until(lambda: os.path.exists(daemon.socket_path) and os.stat(daemon.socket_path).st_ino != before and answers(daemon.socket_path),
                       10, "another socket")
            status = os.stat(daemon.socket_path)
            assert stat.S_IMODE(status.st_mode) == 0o600 and stat.S_IMODE(os.stat(os.path.dirname(daemon.socket_path)).st_mode) == 0o700
            # Who was connected stays so, and nobody else can take the name.
            assert client.call("Ping")
            second = subprocess.run([program("profd"), "--socket", daemon.socket_path, "--data-dir", daemon.root + "/other"],
                                    capture_output=True, text=True, timeout=30)
            assert second.returncode == 1 and "another profd (pid %d)" % daemon.process.pid in second.stderr, second
        shutil.rmtree(daemon.root + "/moved")


def test_what_took_the_sockets_place_is_kept_and_told():
    with Daemon(check_exit=True) as daemon:
        os.unlink(daemon.socket_path)
        with open(daemon.socket_path, "w") as file:
            file.write("mine")
        wait_until(lambda: "cannot be made again" in daemon.log(), 10, "the log")
        with open(daemon.socket_path) as file:
            assert file.read() == "mine"
        os.unlink(daemon.socket_path)
        wait_until(lambda: answers(daemon.socket_path), 30, "the socket")


def test_a_hundred_times_killed_and_started():
    with tempfile.TemporaryDirectory() as root:
        os.mkdir(root + "/run", 0o700)
        for _ in range(20 if not os.environ.get("PROFD_LONG") else 100):
            process = profd(root)
            wait_until(lambda: answers(root + "/run/profd.sock"), 20, "an answer")
            process.send_signal(signal.SIGKILL)
            process.wait()
            process.stderr.close()
            assert os.path.exists(root + "/run/profd.sock")
        assert sorted(os.listdir(root + "/run")) == ["profd.sock", "profd.sock.lock"]


def activated(root, sockets, *args, pid=None):
    """Starts profd as a service manager does: the sockets are descriptors from 3 on."""
    script = "import os,sys\nfor at, fd in enumerate(%r): os.dup2(fd, 3 + at)\nos.environ['LISTEN_FDS'] = '%d'\n" \
             "os.environ['LISTEN_PID'] = str(%s)\nos.environ['LISTEN_FDNAMES'] = 'x'\n" \
             "os.execv(%r, ['profd', '--data-dir', %r] + %r)" % (
                 [sock.fileno() + 100 for sock in sockets], len(sockets), pid or "os.getpid()", program("profd"),
                 root + "/data", list(args))
    copies = [os.dup2(sock.fileno(), sock.fileno() + 100) for sock in sockets]
    try:
        return subprocess.Popen(["python3", "-c", script], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                pass_fds=copies)
    finally:
        for copy in copies:
            os.close(copy)


def listener(path):
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.bind(path)
    sock.listen(16)
    return sock


def test_a_socket_from_a_service_manager_is_served_and_never_removed():
    with tempfile.TemporaryDirectory() as root:
        os.mkdir(root + "/run", 0o700)
        path = root + "/run/profd.sock"
        with listener(path) as sock:
            inode = os.stat(path).st_ino
            # The first client is there before the daemon, and is answered.
            early = Client(path)
            number = early.send("Hello", client="early")
            process = activated(root, [sock])
            hello = early.wait_reply(number)
            assert hello["pid"] == process.pid
            launched = early.call("LaunchProcess", argv=["sh", "-c", "echo $LISTEN_FDS$LISTEN_PID$LISTEN_FDNAMES; ls /proc/self/fd"])
            output = early.wait_event("ProcessOutput", build_id=launched["build_id"])["data"]
            assert output.split("\n")[0] == "", output
            early.wait_event("ProcessExited")
            early.call("Shutdown")
            assert process.wait(20) == 0, process.stderr.read()
            process.stderr.close()
            early.close()
            assert os.stat(path).st_ino == inode
            # The manager starts it again for the next one; a daemon that it did not start is kept away meanwhile.
            process = activated(root, [sock])
            wait_until(lambda: answers(path), 20, "an answer")
            second = profd(root)
            assert second.wait(20) == 1 and "another profd" in second.stderr.read()
            second.stderr.close()
            assert os.stat(path).st_ino == inode
            process.terminate()
            assert process.wait(20) == 0
            process.stderr.close()


def test_sockets_that_cannot_be_served_are_refused():
    with tempfile.TemporaryDirectory() as root:
        os.mkdir(root + "/run", 0o700)
        with listener(root + "/run/a.sock") as one, listener(root + "/run/b.sock") as two, \
                socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as deaf, socket.socket(socket.AF_INET) as inet, \
                listener("\0profd-test-%d" % os.getpid()) as abstract:
            inet.listen()
            for sockets, word in (([one, two], "2 sockets"), ([deaf], "not a listening"), ([inet], "not a listening"),
                                  ([abstract], "no absolute path")):
                process = activated(root, sockets)
                assert process.wait(20) == 1, word
                text = process.stderr.read()
                assert word in text and text.count("\n") == 1, text
                process.stderr.close()
            # Meant for another process: not ours.
            process = activated(root, [one], "--socket", root + "/run/c.sock", pid="1")
            wait_until(lambda: answers(root + "/run/c.sock"), 20, "an answer")
            process.terminate()
            assert process.wait(20) == 0
            process.stderr.close()


def test_an_idle_daemon_that_watches_its_socket_sleeps():
    with Daemon() as daemon:
        daemon.connect().close()
        time.sleep(0.5)
        before = daemon.status("voluntary_ctxt_switches")
        time.sleep(2)
        assert daemon.status("voluntary_ctxt_switches") == before


if __name__ == "__main__":
    main(globals())
