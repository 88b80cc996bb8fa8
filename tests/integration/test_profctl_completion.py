"""The shells' completions, each run in its shell: commands, options, and ids of a daemon that runs."""
import os
import re
import shutil
import signal
import subprocess

from harness import main, program, skip
from test_profctl import daemons, home, profctl

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "client", "completions")


def bash(env, *words):
    """What bash offers for the last word."""
    script = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _profctl; printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "--norc", "-c", script, "bash", os.path.join(SOURCE, "profctl.bash"), "profctl", *words],
                          env=with_path(env), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stderr == "", done
    return done.stdout.split()


def with_path(env):
    return dict(env, PATH=os.path.dirname(program("profctl")) + ":" + os.environ["PATH"])


def commands(env):
    return [line.split()[0] for line in profctl(env, "--help").stdout.splitlines() if line.startswith("  ")]


def options(env, command):
    """The long options that a command's own help tells."""
    return re.findall(r"^ +(?:-\w, +)?(--[a-z-]+)", profctl(env, command, "--help").stdout, re.M)


def test_bash_offers_every_command_and_option():
    with home() as (root, env):
        assert sorted(bash(env, "")) == sorted(commands(env) + ["--socket", "--json", "--no-start", "--color", "--help", "--version"])
        assert bash(env, "la") == ["launch", "label"]
        assert bash(env, "--json", "sig") == ["signal"]
        assert bash(env, "--socket", "/x", "sig") == ["signal"]
        for command in commands(env):
            told = re.findall(r"^ +(?:(-\w), +)?(--[a-z-]+)", profctl(env, command, "--help").stdout, re.M)
            told = {word for pair in told for word in pair if word}
            offered = bash(env, command, "-")
            if command == "daemon": # there the options stand behind their verb
                told = {"--drain", "--now"}
            assert sorted(offered) == sorted(told | {"--socket", "--json", "--no-start", "--color", "--help"}), (command, told, offered)
        assert bash(env, "daemon", "st") == ["start", "stop", "status"]
        assert bash(env, "launch", "--stdio", "") == ["pipe", "null", "file", "pty"]
        assert bash(env, "capture", "--unwind", "") == ["auto", "fp", "dwarf"] and not bash(env, "record", "--max-depth", "")
        assert bash(env, "record", "--svg", "t") == ["title=", "threads="]
        assert bash(env, "launch", "--svg", "layout", "=") == ["icicle", "flame"] and bash(env, "capture", "--svg", "colors", "=", "i") == ["image"]
        assert bash(env, "--color", "a") == ["auto", "always"]
        assert "SIGTERM" in bash(env, "signal", "SIGT")
        for word in ("", "SIG"): # and none that the daemon refuses
            offered = bash(env, "signal", word)
            assert offered and all(("SIG" + name.removeprefix("SIG")) in signal.Signals.__members__ and "RT" not in name for name in offered), offered
        assert not daemons(env), "completing has started a daemon"
        assert bash(env, "show", "") == [] and bash(env, "resume", "") == []


def test_bash_offers_ids():
    with home() as (root, env):
        for build in ("one", "two"):
            assert profctl(env, "launch", "--id", build, "--hold", "true").returncode == 0
        profctl(env, "launch", "--id", "three", "--profile", "sh", "-c", "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done")
        capture = re.search(r"^\d\S*", profctl(env, "captures").stdout, re.M).group()
        assert sorted(bash(env, "resume", "")) == ["one", "three", "two"]
        assert sorted(bash(env, "stop", "one", "t")) == ["three", "two"]
        assert bash(env, "signal", "TERM", "o") == ["one"] and bash(env, "events", "-b", "o") == ["one"]
        assert bash(env, "show", "") == [capture] and bash(env, "stop", "--capture", "2") == [capture]
        assert bash(env, "--socket", "/nowhere.sock", "show", "") == []
        # Whoever names a build must not run commands in the shell of whoever completes.
        mark = os.path.join(root, "mark")
        for build in ("$(touch %s)" % mark, "`touch %s`" % mark, "a;touch %s" % mark, "quo'te", 'quo"te', "$HOME", "~"):
            assert profctl(env, "launch", "--id", build, "true").returncode == 0
        assert sorted(bash(env, "resume", "")) == ["one", "three", "two"] and not os.path.exists(mark)


def test_zsh_has_no_fault_and_every_command():
    if shutil.which("zsh") is None:
        skip("needs zsh")
    path = os.path.join(SOURCE, "_profctl")
    assert subprocess.run(["zsh", "-n", path], capture_output=True, text=True).stderr == ""
    with home() as (root, env):
        with open(path) as file:
            found = re.findall(r"^\t\t\t'([a-z]+):", file.read(), re.M)
        assert sorted(found) == sorted(commands(env)), found
        # In a terminal of its own, as zsh completes nowhere else.
        script = ("zmodload zsh/zpty\nzpty z zsh -f -i\nzpty -w z 'PS1=; fpath=(%s $fpath); autoload -U compinit; compinit -u -d %s/dump; "
                  "zstyle \":completion:*\" list-colors; LISTMAX=0'\nsleep 0.5\nzpty -w -n z 'profctl do\t'\nsleep 1\nzpty -r z out '*doctor*' && print found"
                  % (SOURCE, root))
        done = subprocess.run(["zsh", "-f", "-c", script], env=with_path(env), capture_output=True, text=True, timeout=60)
        assert "found" in done.stdout, done


def test_fish_offers_commands_options_and_ids():
    if shutil.which("fish") is None:
        skip("needs fish")
    with home() as (root, env):
        def fish(line):
            script = "source %s; complete -C %r" % (os.path.join(SOURCE, "profctl.fish"), line)
            done = subprocess.run(["fish", "--no-config", "-c", script], env=dict(with_path(env), HOME=root), capture_output=True, text=True,
                                  timeout=60)
            assert done.returncode == 0 and done.stderr == "", done
            return [word.split("\t")[0] for word in done.stdout.splitlines()]
        assert sorted(fish("profctl ")) == sorted(commands(env))
        for command in commands(env):
            offered = fish("profctl %s --" % command)
            assert set(options(env, command)) <= set(offered), (command, offered)
        profctl(env, "launch", "--id", "one", "--hold", "true")
        assert fish("profctl resume ") == ["one"]


if __name__ == "__main__":
    main(globals())
