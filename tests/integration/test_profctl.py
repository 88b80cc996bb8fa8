"""profctl as a person meets it: exit statuses, the terminal, and a daemon that is started on the way."""
import contextlib
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from harness import alive, main, program, read_folded, skip, wait_until, write

BURN = "i=0; while [ $i -lt %d ]; do i=$((i+1)); done; "


@contextlib.contextmanager
def home():
    """A world of its own: socket and data folder below a new folder; daemons that were started in it are ended."""
    root = tempfile.mkdtemp(prefix="profd-ctl-")
    env = dict(os.environ, PROFD_SOCKET=os.path.join(root, "run", "profd.sock"), XDG_DATA_HOME=os.path.join(root, "share"))
    try:
        yield root, env
    finally:
        for pid in daemons(env):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        wait_until(lambda: not daemons(env), 20, "the end of the daemon")
        shutil.rmtree(root, ignore_errors=True)


def daemons(env):
    """Pids of the daemons that listen on this socket."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open("/proc/%s/cmdline" % pid, "rb") as file:
                words = file.read().split(b"\0")
            with open("/proc/%s/stat" % pid, "rb") as file:
                dead = b") Z " in file.read()
            if os.path.basename(words[0]) == b"profd" and env["PROFD_SOCKET"].encode() in words and not dead:
                found.append(int(pid))
    return found


def profctl(env, *args, **more):
    return subprocess.run([program("profctl"), *args], env=env, stdin=more.pop("stdin", subprocess.DEVNULL), capture_output=True,
                          text=True, errors="replace", timeout=60, **more)


def paths_in(text):
    return re.findall(r"^(/\S+/capture\.\w+)$", text, re.M)


def test_record_prints_functions_and_paths_and_exits_as_the_program_did():
    with home() as (root, env):
        done = profctl(env, "record", "-F", "999", "sh", "-c", BURN % 200000 + "echo out; echo err >&2; exit 7")
        assert done.returncode == 7, done
        assert done.stdout == "out\n", done.stdout
        assert "err\n" in done.stderr
        paths = paths_in(done.stderr)
        assert sorted(os.path.basename(p) for p in paths) == ["capture.folded", "capture.json", "capture.svg"], done.stderr
        stacks = read_folded([p for p in paths if p.endswith("folded")][0])
        assert sum(stacks.values()) > 10
        with open([p for p in paths if p.endswith("json")][0]) as file:
            facts = json.load(file)
        assert facts["samples"]["count"] == sum(stacks.values())
        assert facts["reason"] == "target_exited"
        assert facts["target"]["argv"] == ["sh", "-c", BURN % 200000 + "echo out; echo err >&2; exit 7"], facts["target"]
        assert facts["target"]["cwd"] == os.getcwd(), facts["target"]


def test_exit_statuses_are_those_of_a_shell():
    with home() as (root, env):
        script = os.path.join(root, "script")
        with open(script, "w") as file:
            file.write("#!/no/such/interpreter\n")
        os.chmod(script, 0o755)
        plain = os.path.join(root, "plain")
        with open(plain, "w") as file:
            file.write("text\n")
        cases = [(["no-such-program-anywhere"], 127, "no-such-program-anywhere"), (["/no/such/program"], 127, "/no/such/program"),
                 ([root], 126, "directory"), ([plain], 126, "plain"), ([script], 127, "/no/such/interpreter"),
                 (["sh", "-c", "kill -KILL $$"], 128 + 9, None), (["sh", "-c", "kill -TERM $$"], 128 + 15, None),
                 (["sh", "-c", "exit 255"], 255, None), (["true"], 0, None)]
        for argv, status, text in cases:
            done = profctl(env, "record", *argv)
            if text == "/no/such/interpreter":
                assert done.returncode in (126, 127), (argv, done)
            else:
                assert done.returncode == status, (argv, done)
            assert text is None or text in done.stderr, (argv, done.stderr)
        listed = profctl(env, "--json", "captures")
        running = [r for r in map(json.loads, listed.stdout.splitlines()) if r["state"] not in ("finished", "failed")]
        assert not running, running


def test_125_means_that_nothing_ran():
    with home() as (root, env):
        mark = os.path.join(root, "mark")
        done = profctl(env, "--no-start", "record", "touch", mark)
        assert done.returncode == 125 and not os.path.exists(mark), done
        assert "no profd listens" in done.stderr and env["PROFD_SOCKET"] in done.stderr, done.stderr
        done = profctl(env, "record", "-F", "1000000000", "touch", mark)
        assert done.returncode == 125 and not os.path.exists(mark), done
        assert "1000000000" in done.stderr, done.stderr
        for wrong in (["-F", "0"], ["-F", "-1"], ["-F", "x"], ["-d", "0"], ["-d", "-1"], ["-d", "x"], ["-o", "/no/such/folder"], []):
            done = profctl(env, "record", *wrong, *(["touch", mark] if wrong else []))
            assert done.returncode == 125 and not os.path.exists(mark) and done.stderr, (wrong, done)


def test_what_the_shell_gave_the_program_reaches_it():
    with home() as (root, env):
        # With CPU time for a sample, without which profctl would have something to tell.
        command = BURN % 20000
        command += 'cat; cat <&5; grep SigIgn /proc/self/status; ulimit -n; umask; ps -o pgid= -p $$; ls /proc/self/fd | wc -l'
        script = "trap '' HUP; umask 027; ulimit -n 777; exec \"$@\" 5<%s" % os.path.join(root, "five")
        with open(os.path.join(root, "five"), "w") as file:
            file.write("five\n")
        plain = subprocess.run(["sh", "-c", script, "sh", "sh", "-c", command], input="in\n", capture_output=True, text=True, env=env)
        ours = subprocess.run(["sh", "-c", script, "sh", program("profctl"), "record", "--quiet", "sh", "-c", command], input="in\n",
                              capture_output=True, text=True, env=env)
        assert ours.stdout == plain.stdout, (ours, plain)
        assert ours.stderr == "", ours.stderr


class Terminal:
    """A program that leads a session on a terminal of its own."""

    def __init__(self, argv, env):
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.execvpe(argv[0], argv, env)
        self.text = ""

    def wait_text(self, wanted, timeout=30):
        end = time.monotonic() + timeout
        while wanted not in self.text:
            assert time.monotonic() < end, "no %r in %r" % (wanted, self.text)
            if select.select([self.master], [], [], 0.1)[0]:
                try:
                    self.text += os.read(self.master, 4096).decode("utf-8", "replace")
                except OSError:
                    break
        return self.text

    def poll_text(self, seconds=0):
        """What is there, until nothing came for so long, or all have closed the terminal."""
        while select.select([self.master], [], [], seconds)[0]:
            try:
                self.text += os.read(self.master, 4096).decode("utf-8", "replace")
            except OSError:
                break
        return self.text

    def type(self, keys):
        os.write(self.master, keys)

    def insist(self, keys, condition, what):
        """Types a line until it has worked, as a person does: what is typed while the terminal changes hands may be thrown away."""
        for _ in range(10):
            self.type(keys)
            with contextlib.suppress(AssertionError):
                wait_until(condition, 1.5, what)
                return
        raise AssertionError("%s: %r" % (what, self.text))

    def wait(self, options=0, timeout=30):
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if select.select([self.master], [], [], 0.02)[0]:
                with contextlib.suppress(OSError):
                    self.text += os.read(self.master, 4096).decode("utf-8", "replace")
            pid, status = os.waitpid(self.pid, options | os.WNOHANG)
            if pid:
                # The kernel hands over what a program wrote a little after it was written, and may be later than its end.
                self.poll_text(0.1)
                return status
        raise AssertionError("it did not end: %r" % self.text)

    def close(self):
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.master)


def test_the_terminal_is_the_programs_and_ctrl_c_ends_it_not_the_profile():
    with home() as (root, env):
        script = "test -t 0 && test -t 1 && test -t 2 && echo on a terminal; " + BURN % 100000 + "echo go; while :; do :; done"
        terminal = Terminal([program("profctl"), "record", "sh", "-c", script], env)
        try:
            terminal.wait_text("on a terminal")
            terminal.wait_text("go\r\n")
            time.sleep(0.2)
            terminal.type(b"\x03")
            status = terminal.wait()
            assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGINT, (status, terminal.text)
            terminal.wait_text("capture.json")
            assert "\033[K" not in terminal.text, "a progress line on the program's own terminal"
        finally:
            terminal.close()


@contextlib.contextmanager
def job_shell(env, script=""):
    """An interactive shell at its prompt, which does the job control; $P is profctl, and $J a file with that script. What is typed is echoed, so marks are
    computed; short names, so that no line is broken by the terminal's width."""
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(script)
        file.flush()
        shell = Terminal(["bash", "--norc", "--noprofile", "-i"], dict(env, PS1="$ ", HISTFILE="", P=program("profctl"), J=file.name))
        try:
            shell.wait_text("$ ")
            yield shell
        finally:
            shell.close()


def test_ctrl_z_stops_both_and_fg_goes_on():
    with home() as (root, env), job_shell(env, "echo begin; while read line && [ \"$line\" != hello ]; do :; done; echo got-$line; exit 5\n") as shell:
        shell.type(b"$P record sh $J\n")
        shell.wait_text("begin\r\n")
        shell.type(b"\x1a")
        shell.wait_text("Stopped")
        # Told a third time (typed, stopped, now): the shell reads no line of its own any more.
        shell.insist(b"fg\n", lambda: shell.poll_text().count("record sh $J") >= 3, "fg")
        shell.insist(b"hello\n", lambda: "got-hello" in shell.poll_text(), "the program's answer")
        shell.insist(b"echo status-$?-\n", lambda: "status-5-" in shell.poll_text(), "the status")


def test_a_program_that_stops_itself_gives_the_shell_its_prompt():
    with home() as (root, env), job_shell(env, "echo begin; kill -$1 $$; echo again; exit 6\n") as shell:
        for number, name in ((1, "STOP"), (2, "TSTP")):
            shell.insist(b"$P record sh $J %s\n" % name.encode(), lambda: shell.poll_text().count("begin\r\n") == number, "the program")
            wait_until(lambda: shell.poll_text().count("Stopped") == number, 20, "the shell's word")
            shell.insist(b"fg\n", lambda: shell.poll_text().count("again\r\n") == number, "fg")
            shell.insist(b"echo status-$?-%d-\n" % number, lambda: "status-6-%d-" % number in shell.poll_text(), "the status")


def test_ctrl_c_ends_a_shells_loop_too():
    with home() as (root, env):
        for command in ("$P record -q", "$P --json record"):
            with job_shell(env) as shell:
                shell.type(b"for i in 41 42; do %s sh -c 'echo go-$1; exec sleep 30' sh $i; done\n" % command.encode())
                shell.wait_text("go-41") # not before: a Ctrl-C between bash's fork and its exec leaves bash without the terminal, whatever it runs
                shell.insist(b"\x03", lambda: shell.poll_text().count("$ ") >= 2, "the prompt")
                shell.insist(b"echo status-$?-\n", lambda: "status-130-" in shell.poll_text(), "the status")
                assert "go-42" not in shell.text, shell.text


def test_ctrl_z_does_not_stop_who_ignores_it():
    with home() as (root, env), job_shell(env, "trap '' TSTP; echo begin; read line; echo got-$line; exit 5\n") as shell:
        shell.type(b"$P record sh $J\n")
        shell.wait_text("begin\r\n")
        shell.type(b"\x1a")
        time.sleep(0.3)
        shell.type(b"hello\n")
        shell.wait_text("got-hello")
        shell.insist(b"echo status-$?-\n", lambda: "status-5-" in shell.poll_text(), "the status")
        assert "Stopped" not in shell.text


def test_a_reader_that_goes_does_not_change_the_programs_status():
    with home() as (root, env):
        for quiet in ([], ["--quiet"]):
            process = subprocess.Popen([program("profctl"), "record", *quiet, "sh", "-c", "echo a; exec >&- 2>&-; sleep 0.3; exit 5"], env=env,
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            assert process.stdout.readline() == b"a\n"
            process.stdout.close()
            assert process.wait(30) == 5


# Says which signals it gets, until its input ends.
COUNTER = r"""
import os, signal, sys
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGPROF, signal.SIGIO, signal.SIGPIPE,
               signal.SIGTSTP, signal.SIGCONT):
    signal.signal(number, lambda got, _: os.write(1, b"%d\n" % got))
os.write(1, b"ready\n")
sys.stdin.read()
"""


@contextlib.contextmanager
def counting(env, ignored=""):
    """The counter under profctl, in a process group of its own; ends with what it got. ignored: signals that it and profctl are started with as ignored."""
    process = subprocess.Popen(["sh", "-c", 'trap "" %s; exec "$@"' % ignored, "sh"] * bool(ignored) +
                               [program("profctl"), "record", "--quiet", "python3", "-c", COUNTER], env=env, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True)
    assert process.stdout.readline() == "ready\n"
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def counted(process):
    """What it has got when nothing more can come: a signal is passed on at most 50 ms later."""
    time.sleep(0.2)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 0, process.returncode
    return list(map(int, out.split()))


def members(group):
    """The processes of a group."""
    found = []
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        with contextlib.suppress(ProcessLookupError):
            found += [pid] if os.getpgid(pid) == group else []
    return found


def name_of(pid):
    with open("/proc/%d/comm" % pid) as file:
        return file.read().rstrip("\n")


def test_a_signal_reaches_the_program_once_whether_it_was_sent_to_profctl_or_to_all():
    numbers = [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGPROF, signal.SIGIO, signal.SIGPIPE,
               signal.SIGTSTP, signal.SIGCONT]

    def to_each(group, number):
        for pid in sorted(members(group), reverse=number % 2 == 0):
            os.kill(pid, number)

    with home() as (root, env):
        for send in (os.kill, os.killpg, to_each):
            with counting(env) as process:
                for number in numbers:
                    send(process.pid, number)
                    time.sleep(0.1)
                assert counted(process) == numbers, send
        # nohup, and a shell without job control for what it starts in the background, ignore some: a program may catch them all the same.
        for send in (os.kill, os.killpg):
            with counting(env, "HUP INT QUIT TSTP PIPE") as process:
                for number in numbers:
                    send(process.pid, number)
                    time.sleep(0.1)
                assert counted(process) == numbers, send
        # Who sends to all once is no reason to keep the next one from the program.
        with counting(env) as process:
            os.killpg(process.pid, signal.SIGTERM)
            time.sleep(0.1)
            os.kill(process.pid, signal.SIGTERM)
            assert counted(process) == [signal.SIGTERM, signal.SIGTERM]


def test_what_was_ignored_stays_ignored_by_the_program_and_by_profctl():
    with home() as (root, env):
        script = 'trap "" HUP INT QUIT TSTP; exec "$@"'
        process = subprocess.Popen(["sh", "-c", script, "sh", program("profctl"), "record", "--quiet", "sh", "-c", "echo ready; read line; exit 6"], env=env,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        assert process.stdout.readline() == "ready\n"
        for send in (os.kill, os.killpg):
            for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP):
                send(process.pid, number)
                time.sleep(0.1)
        out, err = process.communicate("\n", 30)
        assert process.returncode == 6, (process.returncode, out, err)


def test_without_a_witness_signals_to_profctl_alone_are_still_the_programs():
    with home() as (root, env), counting(env) as process:
        witness = [pid for pid in members(process.pid) if name_of(pid) == "signal-witness"]
        os.kill(witness[0], signal.SIGKILL)
        wait_until(lambda: not alive(witness[0]), 10, "the end of the witness")
        os.kill(process.pid, signal.SIGTERM)
        assert counted(process) == [signal.SIGTERM]


def test_who_signals_all_that_are_called_profctl_means_the_program():
    with home() as (root, env):
        with counting(env) as process:
            witness, = [pid for pid in members(process.pid) if name_of(pid) == "signal-witness"]
            with open("/proc/%d/cmdline" % witness, "rb") as file:
                assert file.read().rstrip(b"\0") == b"signal-witness"
            found = subprocess.run(["pgrep", "-g", str(process.pid), "-f", "profctl"], capture_output=True, text=True, check=True).stdout.split()
            assert found == [str(process.pid)], found
            # What the witness alone has got says nothing of what comes later.
            os.kill(witness, signal.SIGTERM)
            time.sleep(0.5)
            os.kill(process.pid, signal.SIGTERM)
            assert counted(process) == [signal.SIGTERM]
        with counting(env) as process:
            os.killpg(process.pid, signal.SIGSTOP)
            for number in (signal.SIGCONT, signal.SIGTERM):
                os.kill(process.pid, number)
                time.sleep(0.1)
            assert sorted(counted(process)) == sorted([signal.SIGCONT, signal.SIGTERM])


def test_a_terminal_that_is_closed_ends_the_program_of_its_session():
    with home() as (root, env):
        for command in (["record", "--quiet"], ["--json", "record"]):
            terminal = Terminal([program("profctl"), *command, "sh", "-c", "echo p-$$-; exec sleep 60"], env)
            terminal.wait_text("-\r\n")
            pid = int(re.search(r"p-(\d+)-", terminal.text)[1])
            os.close(terminal.master)
            wait_until(lambda: not os.path.exists("/proc/%d" % pid), 10, "the program's end")
            assert os.waitstatus_to_exitcode(os.waitpid(terminal.pid, 0)[1]) == 128 + signal.SIGHUP, command


def told_at_the_end_of(root, env, command):
    """What the counter gets when the terminal is closed on which a shell runs this; its numbers in order, as several are pending at once."""
    counter, said = os.path.join(root, "counter.py"), os.path.join(root, "said")
    with open(counter, "w") as file:
        file.write(COUNTER.replace("os.write(1, ", "os.write(9, ").replace("sys.stdin.read()", "import time; time.sleep(0.6); os.write(9, b'end')"))
    terminal = Terminal(["sh", "-c", command.replace("COUNTER", "python3 " + counter) + " 9>" + said], env)
    wait_until(lambda: os.path.exists(said) and open(said).read() == "ready\n", 30, "the program")
    os.close(terminal.master)
    wait_until(lambda: open(said).read().endswith("end"), 10, "the program's end")
    os.waitpid(terminal.pid, 0)
    with open(said) as file:
        found = sorted(file.read().split()[1:-1], key=int)
    os.remove(said)
    return found


def test_a_terminal_that_is_closed_tells_the_program_what_it_would_without_profctl():
    with home() as (root, env):
        for before, behind in (("exec ", ""), ("", "; exit 0")):
            bare = told_at_the_end_of(root, env, "{ %sCOUNTER%s; }" % (before, behind))
            ours = told_at_the_end_of(root, env, "{ %s%s record --quiet COUNTER%s; }" % (before, program("profctl"), behind))
            assert ours == bare == [str(int(signal.SIGHUP)), str(int(signal.SIGCONT))], (before, ours, bare)


def test_a_program_that_is_stopped_where_no_shell_is_stays_so_until_it_is_continued():
    with home() as (root, env):
        terminal = Terminal([program("profctl"), "record", "--quiet", "sh", "-c", "echo p-$$-; kill -STOP $$; echo again"], env)
        try:
            terminal.wait_text("-\r\n")
            with open("/proc/%s/stat" % re.search(r"p-(\d+)-", terminal.text)[1]) as file:
                wait_until(lambda: file.seek(0) or ") T " in file.read(), 10, "the stop")
            assert "again" not in terminal.poll_text(0.3)
            os.kill(terminal.pid, signal.SIGCONT)
            terminal.wait_text("again")
            assert terminal.wait() == 0
        finally:
            terminal.close()


def test_a_signal_before_the_program_is_started_ends_profctl():
    with home() as (root, env):
        os.mkdir(os.path.dirname(env["PROFD_SOCKET"]), 0o700)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(env["PROFD_SOCKET"])
            listener.listen()
            process = subprocess.Popen([program("profctl"), "record", "true"], env=env, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            connection, _ = listener.accept()
            connection.recv(1)
            process.send_signal(signal.SIGTERM)
            assert process.wait(10) == -signal.SIGTERM
            connection.close()


def test_a_parent_that_ignores_its_children_changes_nothing():
    with home() as (root, env):
        command = ["env", "--ignore-signal=CHLD", program("profctl"), "record", "--quiet"]
        done = subprocess.run(command + ["sh", "-c", BURN % 50000 + "exit 5"], env=env, capture_output=True, timeout=30)
        assert done.returncode == 5, done
        # The program is started as it would have been without profctl.
        done = subprocess.run(command + ["cat", "/proc/self/status"], env=env, capture_output=True, text=True, timeout=30)
        ignored = int(re.search(r"^SigIgn:\s+(\w+)", done.stdout, re.M).group(1), 16)
        assert ignored >> (signal.SIGCHLD - 1) & 1, done.stdout


def test_the_program_runs_on_when_the_daemon_is_killed():
    with home() as (root, env):
        up, go, mark = (os.path.join(root, name) for name in ("up", "go", "mark"))
        script = "touch %s; while [ ! -e %s ]; do sleep 0.05; done; touch %s; exit 3" % (up, go, mark)
        process = subprocess.Popen([program("profctl"), "record", "sh", "-c", script], env=env, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        wait_until(lambda: os.path.exists(up), 30, "the program")
        killed = daemons(env)
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not daemons(env), 10, "the end of the daemon")
        assert killed and not os.path.exists(mark)
        write(root, "go", "", 0o600)
        _, told = process.communicate(timeout=60)
        assert process.returncode == 3 and os.path.exists(mark), (process.returncode, told)
        assert "profile was not completed" in told, told


def test_many_at_once_start_one_daemon_that_keeps_nothing_of_theirs():
    with home() as (root, env):
        many = [subprocess.Popen([program("profctl"), "--json", "ps"], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True) for _ in range(8)]
        for one in many:
            # The pipes end although the daemon lives on: it holds neither of them.
            out, err = one.communicate(timeout=60)
            assert one.returncode == 0, (out, err)
        assert len(daemons(env)) == 1, daemons(env)
        pid = daemons(env)[0]
        assert os.readlink("/proc/%d/cwd" % pid) == "/"
        assert os.readlink("/proc/%d/fd/0" % pid) == "/dev/null"
        with open("/proc/%d/stat" % pid) as file:
            fields = file.read().rsplit(")", 1)[1].split()
        assert int(fields[4]) == 0, "it has a controlling terminal"


def test_status_starts_nothing_and_call_prints_results_and_errors():
    with home() as (root, env):
        done = profctl(env, "status")
        assert done.returncode == 3 and "no profd listens" in done.stderr, done
        assert not daemons(env)
        done = profctl(env, "call", "Ping")
        assert done.returncode == 0 and json.loads(done.stdout)["now_unix_us"] > 0, done
        done = profctl(env, "call", "GetProcess", '{"build_id":"x"}')
        assert done.returncode == 5 and done.stdout == "" and "no build x" in done.stderr, done
        done = profctl(env, "--json", "call", "GetProcess", '{"build_id":"x"}')
        assert json.loads(done.stdout)["data"]["code"] == "build_not_found", done
        assert profctl(env, "call", "Ping", "{").returncode == 2
        assert profctl(env, "call").returncode == 2
        assert profctl(env, "dance").returncode == 2
        assert profctl(env, "--colour").returncode == 2
        done = profctl(env, "status")
        assert done.returncode == 0 and str(daemons(env)[0]) in done.stdout, done


def test_an_ordinary_user_can_record():
    if os.getuid() != 0:
        skip("needs root to become another user")
    with home() as (root, env):
        os.chown(root, 65534, 65534)
        for path in (program("profctl"), program("profd-gate")):
            if subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "test", "-x", path]).returncode != 0:
                        skip("the build folder is closed to other users: " + path)
        done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", program("profctl"), "record", "sh", "-c",
                               BURN % 300000], env=dict(env, HOME=root), capture_output=True, text=True, cwd="/")
        assert done.returncode == 0 and len(paths_in(done.stderr)) == 3, done
        with open("/proc/sys/kernel/perf_event_paranoid") as file:
            if int(file.read()) >= 2:
                assert "kernel" in done.stderr, done.stderr


if __name__ == "__main__":
    main(globals())
