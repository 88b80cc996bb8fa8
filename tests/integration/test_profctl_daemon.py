"""profctl and the daemon's life: start, stop, run, status, and what is told when it cannot be reached."""
import contextlib
import json
import os
import signal
import socket
import subprocess
import threading
import time

from harness import main, program, skip, wait_until
from test_profctl import daemons, home, profctl


FOREVER = "while :; do :; done"


@contextlib.contextmanager
def server(env, answer):
    """Something that listens in the daemon's place; answer(connection) runs for each client."""
    folder = os.path.dirname(env["PROFD_SOCKET"])
    os.makedirs(folder, 0o700, exist_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(env["PROFD_SOCKET"])
    listener.listen(8)
    held = []

    def serve():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            held.append(connection)
            answer(connection)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(10)
        listener.close()
        for connection in held:
            connection.close()
        os.unlink(env["PROFD_SOCKET"])


def test_start_prints_where_it_listens_and_stop_waits_for_the_end():
    with home() as (root, env):
        path = env["PROFD_SOCKET"]
        done = profctl(env, "--no-start", "daemon", "start")
        pid = daemons(env)[0]
        assert done.returncode == 0, done
        assert done.stdout == "profd (process %d) listens on %s\nlog %s.log\n" % (pid, path, path), done
        with open("/proc/%d/cmdline" % pid, "rb") as file:
            assert b"--idle-exit" not in file.read(), "it would not stay"
        done = profctl(env, "daemon", "start", "--json")
        assert json.loads(done.stdout) == {"pid": pid, "socket": path, "started": False, "log": path + ".log"}, done
        done = profctl(env, "daemon", "status")
        assert done.returncode == 0 and str(pid) in done.stdout and path in done.stdout, done
        done = profctl(env, "daemon", "stop")
        assert done.returncode == 0 and done.stdout == "profd (process %d) has ended\n" % pid, done
        assert not daemons(env) and not os.path.exists(path)
        for _ in range(3):
            assert profctl(env, "daemon", "start").returncode == 0
            assert profctl(env, "--json", "daemon", "stop").returncode == 0
        done = profctl(env, "daemon", "stop")
        assert done.returncode == 3 and "no profd listens" in done.stderr, done


def test_stop_in_its_three_ways():
    with home() as (root, env):
        # drain waits for a capture, and its program goes on until then.
        profctl(env, "launch", "--id", "loop", "sh", "-c", "while :; do :; done")
        capture = profctl(env, "capture", "-d", "0.5", "loop").stdout.strip()
        assert profctl(env, "daemon", "stop", "--drain").returncode == 0
        profctl(env, "daemon", "start")
        assert "finished (duration)" in profctl(env, "show", capture).stdout, profctl(env, "show", capture)
        # now does not wait for a program that is deaf to TERM.
        profctl(env, "launch", "--id", "deaf", "sh", "-c", "trap '' TERM; while :; do sleep 0.05; done")
        assert profctl(env, "daemon", "stop", "--now").returncode == 0
        assert not daemons(env)


def test_run_becomes_the_daemon_in_the_foreground():
    with home() as (root, env):
        data = os.path.join(root, "elsewhere")
        process = subprocess.Popen([program("profctl"), "daemon", "run", "--data-dir", data, "--log-level", "info"], env=env,
                                   stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        wait_until(lambda: profctl(env, "status").returncode == 0, 20, "the daemon")
        assert daemons(env) == [process.pid] and os.path.isdir(data)
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=20)
        assert process.returncode == 0 and "listens on" in log, log
        done = profctl(env, "daemon", "run", "--nonsense")
        assert done.returncode == 2 and done.stderr.startswith("profd: "), done


def test_a_daemon_that_cannot_start_tells_why_with_the_end_of_its_log():
    with home() as (root, env):
        env = dict(env, XDG_DATA_HOME=os.path.join(root, "file"))
        with open(env["XDG_DATA_HOME"], "w"):
            pass
        for args in (["daemon", "start"], ["ps"]):
            done = profctl(env, *args)
            assert done.returncode == 3, done
            first, *log = done.stderr.splitlines()
            assert first.startswith("profctl: profd could not be started: ") and root in first, done
            assert first.endswith("(its log is %s.log)" % env["PROFD_SOCKET"]), first
            assert log and all(line.startswith("profd: ") for line in log), log
        assert len(log) == 1, "lines of the start before were shown: %r" % log
        done = profctl(dict(env, PROFD_DAEMON="/bin/false"), "ps")
        assert done.returncode == 3 and "it ended before it was ready" in done.stderr, done
        done = profctl(env, "--json", "ps")
        assert json.loads(done.stdout)["data"]["detail"] == "start_failed", done


def test_what_is_wrong_is_told_apart():
    with home() as (root, env):
        path = env["PROFD_SOCKET"]
        os.makedirs(os.path.dirname(path), 0o700)
        done = profctl(env, "status")
        assert done.returncode == 3 and "no profd listens on %s (" % path in done.stderr, done
        with open(path, "w"):
            pass
        done = profctl(env, "ps")
        assert done.returncode == 3 and "%s is not a socket" % path in done.stderr, done
        os.unlink(path)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.close()
        done = profctl(env, "status")
        assert done.returncode == 3 and "stale" in done.stderr, done
        done = profctl(env, "ps")
        assert done.returncode == 0, "a stale socket kept the daemon from its start: %r" % done
        profctl(env, "daemon", "stop")
        done = profctl(env, "--socket", "/tmp/" + "x" * 120, "ps")
        assert done.returncode == 3 and "125 bytes" in done.stderr and "107" in done.stderr, done
        os.chmod(os.path.dirname(path), 0o755)
        done = profctl(env, "ps")
        assert done.returncode == 4 and "chmod 700" in done.stderr, done
        os.chmod(os.path.dirname(path), 0o700)


def test_a_hung_daemon_is_told_within_seconds():
    with home() as (root, env), server(env, lambda connection: None):
        done = profctl(env, "status")
        assert done.returncode == 3 and "did not answer" in done.stderr and "kill -KILL %d" % os.getpid() in done.stderr, done


def test_a_stopped_daemon_with_a_full_queue_is_told_too():
    with home() as (root, env):
        profctl(env, "daemon", "start")
        pid = daemons(env)[0]
        os.kill(pid, signal.SIGSTOP)
        waiting = []
        try:
            with contextlib.suppress(BlockingIOError):
                while True:
                    waiting.append(socket.socket(socket.AF_UNIX))
                    waiting[-1].setblocking(False)
                    waiting[-1].connect(env["PROFD_SOCKET"])
            done = profctl(env, "ps")
            assert done.returncode == 3 and "takes no connection" in done.stderr, done
        finally:
            for one in waiting:
                one.close()
            os.kill(pid, signal.SIGCONT)


def test_another_version_is_told_but_can_be_stopped():
    stopped = []

    def answer(connection):
        lines = connection.makefile("r")
        for line in lines:
            request = json.loads(line)
            result = {}
            if request["method"] == "Hello":
                result = {"server": "profd", "version": "7.1", "protocol": {"major": 7, "minor": 0}, "pid": 4000000}
            stopped.append(request["method"])
            connection.sendall(json.dumps({"id": request["id"], "result": result}).encode() + b"\n")
            if request["method"] == "Shutdown":
                connection.shutdown(socket.SHUT_RDWR)
                return

    with home() as (root, env), server(env, answer):
        done = profctl(env, "ps")
        assert done.returncode == 8 and "7.1" in done.stderr and "profctl daemon stop" in done.stderr, done
        assert profctl(env, "status").returncode == 0
        done = profctl(env, "daemon", "stop")
        assert done.returncode == 0 and "Shutdown" in stopped, (done, stopped)


def test_a_server_of_somebody_else_gets_nothing():
    if os.getuid() != 0:
        skip("needs root to become another user")
    got = []

    def answer(connection):
        got.append(connection.recv(100))

    with home() as (root, env):
        # As an ordinary user, who meets a third one's server.
        folder = os.path.dirname(env["PROFD_SOCKET"])
        os.chmod(root, 0o755)
        os.makedirs(folder, 0o755)
        script = ("import os,socket,sys,time\nos.setuid(65533)\ns=socket.socket(socket.AF_UNIX)\ns.bind(sys.argv[1])\ns.listen(1)\n"
                  "os.chmod(sys.argv[1],0o777)\nprint('up',flush=True)\nc,_=s.accept()\nprint(c.recv(100),flush=True)")
        os.chown(folder, 65533, 65533)
        other = subprocess.Popen(["python3", "-c", script, env["PROFD_SOCKET"]], stdout=subprocess.PIPE, text=True)
        try:
            assert other.stdout.readline() == "up\n"
            done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", program("profctl"), "status"], env=env,
                                  capture_output=True, text=True, cwd="/")
            assert done.returncode == 4 and "65533" in done.stderr and "65534" in done.stderr, done
            assert other.stdout.readline() == "b''\n", "something was sent"
        finally:
            other.kill()
            other.wait()


def test_a_full_disk_is_no_success():
    with home() as (root, env):
        profctl(env, "daemon", "start")
        with open("/dev/full", "w") as full:
            done = subprocess.run([program("profctl"), "status"], env=env, stdout=full, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 1 and "No space left" in done.stderr, done
        done = subprocess.run(["sh", "-c", '"$0" status >&-', program("profctl")], env=env, capture_output=True, text=True)
        assert done.returncode == 1 and "Bad file descriptor" in done.stderr, done
        assert profctl(env, "status").returncode == 0, "it was written to the daemon"


def test_closed_descriptors_stay_closed_for_a_recorded_program():
    with home() as (root, env):
        script = "ls /proc/self/fd >%s/$1" % root
        for name, words in (("plain", []), ("ours", [program("profctl"), "record", "--quiet"])):
            subprocess.run(["sh", "-c", 'name=$1; shift; "$@" <&- 2>&-', "sh", name, *words, "sh", "-c", script, "sh", name], env=env, timeout=60)
        with open(os.path.join(root, "plain")) as plain, open(os.path.join(root, "ours")) as ours:
            assert plain.read() == ours.read()


def test_record_tells_its_end_as_json():
    with home() as (root, env):
        done = profctl(env, "--json", "record", "sh", "-c", "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; echo out; exit 6")
        event = json.loads(done.stderr)
        assert done.returncode == 6 and done.stdout == "out\n" and event["method"] == "SamplingProfileFinished", done
        assert os.path.isfile(event["params"]["svg_path"])


def test_following_a_program_whose_daemon_is_killed_ends():
    with home() as (root, env):
        process = subprocess.Popen([program("profctl"), "launch", "-f", "sh", "-c", "echo up; sleep 100"], env=env, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout.readline() == "up\n"
        for pid in daemons(env):
            os.kill(pid, signal.SIGKILL)
        _, told = process.communicate(timeout=20)
        assert process.returncode == 3 and "has ended" in told, (process.returncode, told)


def test_an_ordinary_user_starts_and_stops_one():
    if os.getuid() != 0:
        skip("needs root to become another user")
    with home() as (root, env):
        os.chown(root, 65534, 65534)
        env = dict(env, HOME=root)
        as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        for path in (program("profctl"), program("profd"), program("profd-gate"), program("profd-analyzer")):
            if subprocess.run(as_nobody + ["test", "-x", path]).returncode != 0:
                skip("the build folder is closed to other users: " + path)
        for args, text in ((["daemon", "start"], "listens on"), (["launch", "-f", "id", "-u"], "65534"), (["doctor"], "data_folder"),
                           (["daemon", "stop"], "has ended")):
            done = subprocess.run(as_nobody + [program("profctl"), *args], env=env, capture_output=True, text=True, cwd="/", timeout=60)
            assert text in done.stdout, (args, done)


def test_a_daemon_that_hangs_later_is_told():
    with home() as (root, env):
        build = profctl(env, "launch", "sh", "-c", FOREVER).stdout.strip()
        capture = profctl(env, "capture", build).stdout.strip()
        daemon, = daemons(env)
        waits = [subprocess.Popen([program("profctl"), *words], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                 for words in (["wait", capture], ["stop", "-s", "WINCH", "-g", "60", build])]
        time.sleep(0.5)
        os.kill(daemon, signal.SIGSTOP)
        try:
            for wait in waits:
                _, said = wait.communicate(timeout=30)
                assert wait.returncode == 3 and "does not answer any more" in said and "kill -CONT %d" % daemon in said, (wait.returncode, said)
        finally:
            os.kill(daemon, signal.SIGCONT)


def test_stop_takes_one_mode():
    with home() as (root, env):
        done = profctl(env, "daemon", "stop", "--drain", "--now")
        assert done.returncode == 2 and "--now|--drain" in done.stderr, done


if __name__ == "__main__":
    main(globals(), together=True)
