"""profctl about programs that the daemon runs: launch, follow, output, input, resume, signal, stop, ids and exit statuses."""
import json
import os
import signal
import subprocess
import time

from harness import alive, main, program, wait_until
from test_profctl import home, profctl


def launch(env, *args):
    """The build id that it printed."""
    done = profctl(env, "launch", *args)
    assert done.returncode == 0 and done.stderr == "", done
    return done.stdout.strip()


def record(env, build):
    return json.loads(profctl(env, "call", "GetProcess", json.dumps({"build_id": build})).stdout)


def test_launch_runs_the_program_as_the_shell_would():
    with home() as (root, env):
        env = dict(env, COLOUR="blue", EMPTY="")
        script = "pwd; echo $COLOUR-$EXTRA-${EMPTY-unset}; echo err >&2; exit 7"
        done = profctl(env, "launch", "-f", "--env", "EXTRA=a=b", "sh", "-c", script, cwd=root)
        assert done.returncode == 7, done
        assert done.stdout == "%s\nblue-a=b-\n" % os.path.realpath(root), done
        assert done.stderr == "err\n", done
        gone = os.path.join(root, "gone")
        os.mkdir(gone)
        done = subprocess.run(["sh", "-c", 'cd "$1" && rmdir "$1" && exec "$2" launch -f true', "sh", gone, program("profctl")], env=env,
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == 2 and "the working folder: " in done.stderr, done
        done = profctl(env, "launch", "-f", "--cwd", "/", "pwd", cwd=root)
        assert done.stdout == "/\n", done
        build = launch(env, "--id", "mine", "true")
        assert build == "mine" and record(env, "mine")["argv"] == ["true"]


def test_follow_exits_as_the_program_did():
    with home() as (root, env):
        for argv, status in ((["sh", "-c", "kill -TERM $$"], 128 + 15), (["sh", "-c", "kill -USR2 $$"], 128 + 12),
                             (["sh", "-c", "kill -IO $$"], 128 + 29), (["sh", "-c", "kill -35 $$"], 128 + 35),
                             (["sh", "-c", "exit 255"], 255), (["true"], 0), (["no-such-program-anywhere"], 127),
                             (["/"], 126)):
            done = profctl(env, "launch", "-f", *argv)
            assert done.returncode == status, (argv, done)


def test_everything_that_a_flood_writes_arrives_or_is_told():
    with home() as (root, env):
        count = 3000000
        with open(os.path.join(root, "out"), "wb") as out:
            done = subprocess.run([program("profctl"), "launch", "-f", "sh", "-c", "head -c %d /dev/zero | tr '\\0' x" % count],
                                  env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE, text=True, timeout=60)
        arrived = os.path.getsize(out.name)
        told = sum(int(line.split()[1]) for line in done.stderr.splitlines() if "are lost" in line)
        assert done.returncode == 0 and arrived + told == count, (done, arrived, told)


def test_input_is_passed_on_whole():
    with home() as (root, env):
        data = os.urandom(3 * 1024 * 1024)
        done = subprocess.run([program("profctl"), "launch", "-i", "sh", "-c", "sha256sum"], env=env, input=data, capture_output=True, timeout=60)
        assert done.returncode == 0, done
        assert done.stdout.split()[0] == subprocess.run(["sha256sum"], input=data, capture_output=True).stdout.split()[0], done
        # A program that stops reading is no failure, as in a pipe.
        done = subprocess.run([program("profctl"), "launch", "-i", "head", "-c", "5"], env=env, input=data, capture_output=True, timeout=60)
        assert done.returncode == 0 and done.stdout == data[:5], done
        build = launch(env, "--id", "reader", "sh", "-c", "cat; echo end")
        first = subprocess.run([program("profctl"), "input", build], env=env, input=b"\xff\x00one", capture_output=True, timeout=60)
        assert first.returncode == 0, first
        out = subprocess.run([program("profctl"), "output", "-f", build], env=env, capture_output=True, timeout=60)
        assert out.stdout == b"\xff\x00oneend\n", out
        again = subprocess.run([program("profctl"), "input", build], env=env, input=b"x", capture_output=True, timeout=60)
        assert again.returncode == 1 and again.stderr, again


def test_output_shows_one_stream_and_follows():
    with home() as (root, env):
        go = os.path.join(root, "go")
        build = launch(env, "sh", "-c", "echo one; echo bad >&2; while [ ! -e %s ]; do sleep 0.02; done; echo two" % go)
        wait_until(lambda: profctl(env, "output", build).stdout == "one\n", 20, "the first line")
        wait_until(lambda: profctl(env, "output", "--stderr", build).stdout == "bad\n", 20, "the error")
        follower = subprocess.Popen([program("profctl"), "output", "-f", build], env=env, stdout=subprocess.PIPE, text=True)
        assert follower.stdout.readline() == "one\n"
        open(go, "w").close()
        assert follower.stdout.read() == "two\n" and follower.wait(30) == 0
        pieces = [json.loads(line) for line in profctl(env, "output", "--json", build).stdout.splitlines()]
        assert "".join(piece["data"] for piece in pieces) == "one\ntwo\n", pieces


def test_a_terminal_and_nothing_are_followed_too():
    with home() as (root, env):
        done = profctl(env, "launch", "--stdio", "pty", "-f", "sh", "-c", "test -t 1 && test -t 2 && echo on a terminal; exit 3")
        assert done.returncode == 3 and done.stdout == "on a terminal\n" and done.stderr == "", done
        done = subprocess.run([program("profctl"), "launch", "--stdio", "pty", "-i", "cat"], env=env, input="hello\n", capture_output=True,
                              text=True, timeout=60)
        assert done.returncode == 0 and "hello" in done.stdout, done
        done = profctl(env, "launch", "--stdio", "null", "-f", "sh", "-c", "echo no; exit 4")
        assert done.returncode == 4 and done.stdout == "" and done.stderr == "", done


def test_output_that_goes_to_a_file_is_followed_too():
    with home() as (root, env):
        data = os.urandom(3 * 1024 * 1024)
        with open(os.path.join(root, "data"), "wb") as file:
            file.write(data)
        whole = subprocess.run([program("profctl"), "launch", "--stdio", "file", "-f", "cat", file.name], env=env, stdin=subprocess.DEVNULL,
                               capture_output=True, timeout=60)
        assert whole.returncode == 0 and whole.stdout == data and whole.stderr == b"", (len(whole.stdout), whole.stderr)
        done = profctl(env, "launch", "--stdio", "file", "-f", "sh", "-c", "echo one; sleep 0.4; echo two; echo bad >&2; exit 3")
        assert done.returncode == 3 and done.stdout == "one\ntwo\n" and done.stderr == "bad\n", done


def test_a_held_program_is_resumed_by_the_beginning_of_its_id():
    with home() as (root, env):
        launch(env, "--hold", "--id", "held-one", "true")
        launch(env, "--hold", "--id", "held-two", "true")
        done = profctl(env, "resume", "held")
        assert done.returncode == 5 and "held-one" in done.stderr and "held-two" in done.stderr, done
        assert record(env, "held-one")["state"] == "held"
        done = profctl(env, "resume", "held-o")
        assert done.returncode == 0, done
        wait_until(lambda: record(env, "held-one")["state"] == "exited", 20, "its end")
        done = profctl(env, "resume", "nothing")
        assert done.returncode == 5 and "nothing" in done.stderr and "profctl ps" in done.stderr, done
        done = profctl(env, "stop", "held-t")
        assert done.returncode == 0 and "before it ran" in done.stdout or "125" in done.stdout, done


def test_an_id_that_is_the_beginning_of_another_is_that_one():
    with home() as (root, env):
        for build in ("1", "10", "11"):
            launch(env, "--hold", "--id", build, "true")
        assert profctl(env, "resume", "1").returncode == 0
        assert record(env, "10")["state"] == "held" and record(env, "11")["state"] == "held"


def test_what_is_refused_is_told_by_its_options():
    with home() as (root, env):
        for words, text in ((["--id", ""], '--id is ""'), (["--stdio", "x"], '--stdio is "x"'), (["--leave"], "--leave cannot be had with --stdio pipe")):
            done = profctl(env, "launch", *words, "true")
            assert done.returncode == 2 and text in done.stderr and "build_id" not in done.stderr, done


def test_a_capture_that_failed_is_told_and_changes_no_status():
    with home() as (root, env):
        done = profctl(env, "launch", "-f", "--profile", "sh", "-c", "exit 3")
        assert done.returncode == 3 and "there is no profile: the target ended after" in done.stderr and "(give it more work, or raise -F)" in done.stderr, done
        done = profctl(env, "launch", "-f", "--profile", "sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; exit 4")
        assert done.returncode == 4 and "there is no profile" not in done.stderr, done


def test_signals_and_stop():
    with home() as (root, env):
        seen = os.path.join(root, "seen")
        loop = "while :; do sleep 0.02; done"
        build = launch(env, "sh", "-c", "trap 'echo got >> %s' USR1; echo up; %s" % (seen, loop))
        wait_until(lambda: profctl(env, "output", build).stdout == "up\n", 20, "the program")
        for name in ("USR1", "SIGUSR1", str(int(signal.SIGUSR1))):
            done = profctl(env, "signal", name, build)
            assert done.returncode == 0 and done.stdout == "", done
        wait_until(lambda: os.path.exists(seen), 20, "the signal")
        assert profctl(env, "signal", "NONSENSE", build).returncode == 2 # wrong usage, though only the daemon knows
        pid = record(env, build)["pid"]
        done = profctl(env, "stop", "-g", "2", build)
        assert done.returncode == 0 and done.stdout == "build %s: SIGTERM\n" % build and not alive(pid), done
        deaf = launch(env, "sh", "-c", "trap '' TERM; echo up; %s" % loop)
        wait_until(lambda: profctl(env, "output", deaf).stdout == "up\n", 20, "the program")
        began = time.monotonic()
        done = profctl(env, "--json", "stop", "-g", "0.2", deaf)
        assert json.loads(done.stdout)["signal"] == "SIGKILL" and time.monotonic() - began < 5, done
        done = profctl(env, "stop", "nothing", deaf)
        assert done.returncode == 5 and "SIGKILL" in done.stdout, "the second one was not told: %r" % done


def test_wrong_command_lines_are_usage_errors_and_start_nothing():
    with home() as (root, env):
        for args in (["launch"], ["launch", "--env", "NOVALUE", "true"], ["launch", "--cwd", "/no/such/folder", "true"],
                     ["launch", "-F", "0", "true"], ["launch", "--nonsense"], ["launch", b"\xff"], ["resume"], ["stop"],
                     ["stop", "-g", "x", "1"], ["stop", "--discard", "1"], ["stop", "-c", "-s", "TERM", "1"], ["signal", "TERM"],
                     ["output"], ["output", "a", "b"], ["input"], ["input", "--nonsense", "a"], ["capture"], ["capture", "-d", "0", "1"],
                     ["events", "extra"], ["events", "-n", "0"], ["daemon"], ["daemon", "dance"], ["daemon", "start", "--now"],
                     ["--color", "blue", "ps"], ["ps", "--color=blue"], ["doctor", "x"], ["show"], ["show", "--last", "x"], ["delete"],
                     ["label", "x"], ["wait", "--timeout", "-1", "x"], ["launch", "-F", " 5", "true"], ["capture", "-F", "+5", "1"],
                     ["capture", "-d", " 1", "1"], ["capture", "-d", "0x1", "1"], ["capture", "-d", "+1", "1"], ["launch", "--max-depth", " 5", "true"]):
            done = profctl(env, *args)
            assert done.returncode == 2 and done.stderr and not done.stdout, (args, done)
        assert not os.path.exists(os.path.dirname(env["PROFD_SOCKET"]))


def test_text_that_is_not_utf8_is_refused_everywhere():
    with home() as (root, env):
        folder = os.path.join(root.encode(), b"f\xff")
        os.mkdir(folder)
        for args, status, what in ((["launch", "true", b"\xff"], 2, "argument 1 of the program"), (["launch", "--id", b"\xff", "true"], 2, "--id"),
                                   (["launch", "--cwd", folder, "true"], 2, "the working folder"), (["capture", "-l", b"\xff", "1"], 2, "the label"),
                                   (["capture", "-o", folder, "1"], 2, "the output folder"), (["capture", "--svg", b"title=\xff", "1"], 2, "title of --svg"),
                                   (["label", "x", b"\xff"], 2, "the label"), (["record", "-l", b"\xff", "true"], 125, "the label"),
                                   (["record", "-o", folder, "true"], 125, "the output folder"), (["gpu", "-l", b"\xff", "true"], 125, "the label"),
                                   (["gpu", "--frame-by", b"\xff", "true"], 125, "--frame-by"), (["gpu", "--api", b"\xff", "true"], 125, "--api")):
            done = profctl(env, *args)
            assert done.returncode == status and done.stderr.count("\n") == 1 and done.stderr.startswith("profctl: "), (args, done)
            assert what in done.stderr and "is not UTF-8 (profd takes no other text)" in done.stderr, (args, done)
        assert not os.path.exists(os.path.dirname(env["PROFD_SOCKET"]))


def test_every_command_tells_its_help_and_takes_the_common_options():
    with home() as (root, env):
        commands = [line.split()[0] for line in profctl(env, "--help").stdout.splitlines() if line.startswith("  ")]
        assert len(commands) == 23, commands
        for command in commands:
            done = profctl(env, command, "--help")
            assert done.returncode == 0 and done.stdout.startswith("usage: profctl %s" % command) and not done.stderr, done
            assert profctl(env, command, "-h").stdout == done.stdout
        done = profctl(env, "ps", "--json", "--no-start")
        assert done.returncode == 3 and json.loads(done.stdout)["data"]["detail"] == "not_running", done
        done = profctl(env, "ps", "--socket", os.path.join(root, "run", "other.sock"), "--no-start")
        assert "other.sock" in done.stderr, done


def test_output_that_cannot_be_written_is_not_a_program_that_did_not_run():
    with home() as (root, env):
        for number, stdout in enumerate(("/dev/full", None)):
            mark = os.path.join(root, "mark%d" % number)
            words = [program("profctl"), "launch", "-f", "--id", "b%d" % number, "sh", "-c", "echo hi; sleep 0.3; echo x > %s; exit 7" % mark]
            if stdout:
                with open(stdout, "wb") as file:
                    done = subprocess.run(words, env=env, stdout=file, stderr=subprocess.PIPE, text=True, timeout=60)
            else:
                done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *words], env=env, stderr=subprocess.PIPE, text=True, timeout=60)
            assert done.returncode == 1 and "the program goes on" in done.stderr, done
            wait_until(lambda: os.path.exists(mark), 10, "the program's end")
            assert profctl(env, "output", "b%d" % number).stdout == "hi\n"


if __name__ == "__main__":
    main(globals())
