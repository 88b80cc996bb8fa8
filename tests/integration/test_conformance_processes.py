"""docs/protocol.md, chapter 4: launching, adopting, signalling and stopping programs."""
import contextlib
import fcntl
import json
import os
import pty
import shutil
import signal
import socket
import struct
import subprocess
import sys
import termios
import time

from contract import SENTENCE, Raw
from harness import FOREVER, Daemon, Gate, alive, capture_end, main, output_bytes, program, target, wait_until
from journals import JournalFile
from nobody import NOBODY, as_nobody
from test_install import install

SAY_ENV = [sys.executable, "-c", "import json,os\nprint(json.dumps([dict(os.environ), os.getcwd()]))"]


@contextlib.contextmanager
def stranger(*argv, **more):
    process = subprocess.Popen(argv or ["sleep", "300"], stdin=subprocess.DEVNULL, **more)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def said(client, argv, **params):
    """What a program writes, run to its end."""
    made = client.call("LaunchProcess", argv=argv, **params)
    client.wait_event("ProcessExited", build_id=made["build_id"])
    return output_bytes([event for event in client.events if event["params"].get("build_id") == made["build_id"]]).decode()


def up(client, made, word="up"):
    wait_until(lambda: client.call("GetOutput", build_id=made["build_id"], stream="stdout").get("data", "").startswith(word), 20, "the word")


def pids(client, made):
    up(client, made, "")
    text = wait_until(lambda: client.call("GetOutput", build_id=made["build_id"], stream="stdout").get("data"), 20, "the numbers")
    return [int(word) for word in text.split()]


@SENTENCE("`LaunchProcess` | argv (argv[0] is looked up in the effective PATH; with a slash in it, from cwd), cwd? (absolute; left out: the daemon's "
          "own, which is `/` for a daemon that a client started), env? (an object; null unsets), env_mode? "
          "(`overlay`, the default: on the daemon's own environment less its private variables; `exact`: nothing else), build_id?,")
def test_the_environment_of_a_launch():
    with Daemon(env={"KEPT": "1", "GONE": "1", "NOTIFY_SOCKET": "", "LISTEN_FDS": "", "PROFD_SOCKET": "/none"}) as daemon:
        client = daemon.connect()
        env, cwd = json.loads(said(client, SAY_ENV, env={"GONE": None, "NEW": "2"}, cwd=daemon.root))
        assert env["KEPT"] == "1" and env["NEW"] == "2" and "GONE" not in env and cwd == daemon.root, env
        assert not {name for name in env if name.startswith(("LISTEN_", "PROFD_", "NOTIFY_"))} - set(os.environ), env
        env, cwd = json.loads(said(client, SAY_ENV, env={"ONLY": "3"}, env_mode="exact"))
        assert cwd == os.readlink("/proc/%d/cwd" % daemon.process.pid) == "/", cwd
        tool = os.path.join(daemon.root, "tool")
        shutil.copy("/bin/true", tool)
        client.call("LaunchProcess", argv=["./tool"], cwd=daemon.root)
        error = client.fails("LaunchProcess", argv=["./tool"])
        assert error.code == "launch_failed" and "./tool" in error.message and " folder /:" in error.message, error.error
        assert client.fails("LaunchProcess", argv=["./tool"], cwd="tmp").number == -32602
        assert {name for name in env if name != "LC_CTYPE"} == {"ONLY"}, env
        os.mkdir(daemon.root + "/bin")
        os.symlink("/bin/echo", daemon.root + "/bin/my-own-echo")
        assert said(client, ["my-own-echo", "hi"], env={"PATH": daemon.root + "/bin"}) == "hi\n"
        assert said(client, ["my-own-echo", "hi"], env={"PATH": daemon.root + "/bin"}, env_mode="exact") == "hi\n"
        assert client.fails("LaunchProcess", argv=["my-own-echo"]).code == "launch_failed"


@SENTENCE("hold? (stopped before its first instruction), profile? (a `StartSamplingProfile` that begins with the first instruction; if "
          "it is refused nothing runs), gpu? (arm for `StartGpuTrace`: true, or an object of options: program, true by default, "
          "whether the program itself may start traces),", "subscribe? (true), request_key? | build_id, pid, capture_id?, "
          "stdout_path?, stderr_path?", "`ResumeProcess` | build_id | state")
def test_hold_profile_and_subscribe():
    with Daemon() as daemon:
        client, other = daemon.connect(), daemon.connect()
        ran = daemon.root + "/ran"
        made = client.call("LaunchProcess", argv=["sh", "-c", "echo $$ >%s; exec sleep 60" % ran], hold=True)
        time.sleep(0.2)
        assert alive(made["pid"]) and not os.path.exists(ran) and set(made) == {"build_id", "pid"}
        # Before its first instruction the kernel still shows no program of its own.
        assert not os.readlink("/proc/%d/exe" % made["pid"]).endswith(("/sh", "/dash", "/bash"))
        assert other.call("ResumeProcess", build_id=made["build_id"])["state"] == "running"
        wait_until(lambda: os.path.exists(ran) and open(ran).read().strip() == str(made["pid"]), 10, "the program, under the same pid")
        for wrong in ({"profile": {"hz": 2 ** 40}}, {"profile": {"duration_ms": 0}}, {"profile": {"mode": "wall"}}, {"gpu": {"device": 0}}):
            client.fails("LaunchProcess", argv=["touch", ran + "2"], **wrong)
        time.sleep(0.1)
        assert not os.path.exists(ran + "2")
        busy = [sys.executable, "-c", "pass"]
        made = client.call("LaunchProcess", argv=busy, profile={"hz": 5000}, subscribe=False, stdio="file")
        assert set(made) == {"build_id", "pid", "capture_id", "stdout_path", "stderr_path"}, made
        record = client.call("WaitCapture", capture_id=made["capture_id"])
        with open(record["folded_path"]) as file:
            text = file.read()
        # The loader's work, before main.
        assert "_dl_" in text or "ld-linux" in text, text[:2000]
        assert not [event for event in client.events if event["params"].get("build_id") == made["build_id"] and event["method"].startswith("Process")]


@SENTENCE("`AdoptProcess` | pid, build_id?, gpu?, request_key? | the same record for a process that a client launched behind "
          "`profd-gate` or already runs; it is observed, not owned.", "Its record has `adopted: true`, `argv` as the kernel shows it, "
          "and `started_unix_us` as the time of its adoption; its state is `held` while it waits behind a gate, then `running` "
          "(`ProcessStarted` tells).", "It ends with a `ProcessExited` whose `exit_code`, `signal`, `core_dumped` and figures are null: "
          "the kernel tells them to its parent alone.", "The connection that adopts it hears of it with `Subscribe`.", "With gpu (only "
          "behind a gate) the result has the environment that the client must give the gate (`environment`, an object: it goes over what "
          "the gate has)")
def test_an_adopted_process_is_observed():
    with Daemon() as daemon, stranger("sleep", "300") as running, Gate(daemon, ["sleep", "301"]) as gate:
        client, hearing = daemon.connect(), daemon.connect()
        hearing.call("Subscribe")
        assert client.fails("AdoptProcess", pid=running.pid, gpu={}).code == "unsupported"
        assert client.fails("AdoptProcess", pid=running.pid, gpu={"device": "0"}).code == "unsupported"
        gone = subprocess.Popen(["true"])
        gone.wait()
        for params in ({}, {"gpu": {}}, {"gpu": {"device": "0"}}):
            assert client.fails("AdoptProcess", pid=gone.pid, **params).code == "process_not_found", params
        for pid, state in ((running.pid, "running"), (gate.pid, "held")):
            before = time.time_ns() // 1000
            record = client.call("AdoptProcess", pid=pid, build_id=str(pid))
            with open("/proc/%d/cmdline" % pid) as file:
                assert record["argv"] == file.read().split("\0")[:-1]
            assert record["adopted"] is True and record["state"] == state and record["build_id"] == str(pid), record
            assert before <= record["started_unix_us"] <= time.time_ns() // 1000
        gate.go()
        assert hearing.wait_event("ProcessStarted", build_id=str(gate.pid))["pid"] == gate.pid
        assert client.call("GetProcess", build_id=str(gate.pid))["argv"] == ["sleep", "301"]
        running.kill()
        ended = hearing.wait_event("ProcessExited", build_id=str(running.pid))
        assert {ended.pop(name) for name in ("exit_code", "signal", "core_dumped", "user_us", "system_us", "max_rss_bytes")} == {None}, ended
        client.call("Ping")
        assert client.events == [], "without Subscribe"


@SENTENCE("An adopted process must be the daemon's own user's (root may adopt all), otherwise `not_permitted`; `process_not_found` for "
          "one that does not live, `build_exists` for one that is a build already.")
def test_who_can_be_adopted():
    with Daemon() as daemon, stranger() as ours:
        client = daemon.connect()
        dead = subprocess.Popen(["true"])
        dead.wait()
        assert client.fails("AdoptProcess", pid=dead.pid).code == "process_not_found"
        client.call("AdoptProcess", pid=ours.pid)
        assert client.fails("AdoptProcess", pid=ours.pid).code == "build_exists"
        own = client.call("LaunchProcess", argv=["sleep", "60"])
        assert client.fails("AdoptProcess", pid=own["pid"]).code == "build_exists"
    as_nobody()
    with stranger(user=NOBODY) as theirs, stranger() as roots:
        with Daemon() as daemon:
            assert daemon.connect().call("AdoptProcess", pid=theirs.pid)["pid"] == theirs.pid
        with Daemon(user=NOBODY) as daemon:
            client = daemon.connect()
            assert client.fails("AdoptProcess", pid=roots.pid).code == "not_permitted"
            assert client.call("AdoptProcess", pid=theirs.pid)["pid"] == theirs.pid


@SENTENCE("`StopProcess`, `SignalProcess`, `WriteStdin`, `ResizePty`, `GetOutput` and `ResumeProcess` of it are `not_permitted` with the "
          "detail `observed`.", "The daemon's end leaves it alone.", "`StartSamplingProfile` of it is as by its pid.")
def test_an_adopted_process_is_not_touched():
    with stranger() as other:
        with Daemon() as daemon, Gate(daemon, FOREVER) as gate:
            client = daemon.connect()
            client.call("AdoptProcess", pid=other.pid, build_id="a")
            for method, params in (("StopProcess", {}), ("SignalProcess", {"signal": "KILL"}), ("WriteStdin", {"data": "x"}),
                                   ("ResizePty", {"rows": 1, "cols": 1}), ("GetOutput", {"stream": "stdout"}), ("ResumeProcess", {})):
                error = client.fails(method, build_id="a", **params)
                assert (error.code, error.detail) == ("not_permitted", "observed"), (method, error)
            assert alive(other.pid)
            client.call("AdoptProcess", pid=gate.pid, build_id="g")
            made = client.call("StartSamplingProfile", build_id="g")
            assert made["state"] == "armed"
            gate.go()
            wait_until(lambda: JournalFile(os.path.join(daemon.data_dir, "captures", made["capture_id"], "capture.journal")).samples, 10, "samples")
            by_pid = client.fails("StartSamplingProfile", pid=other.pid)
            assert client.fails("StartSamplingProfile", build_id="a").code == by_pid.code
            assert daemon.stop() == 0 and alive(other.pid) and alive(gate.pid)


@SENTENCE("`StopProcess` | build_id, signal? (TERM), grace_ms? (5000) | exit_code or signal, survivors?, survivor_count?; kills the "
          "whole group when the grace is over (what left the group by `setsid` survives, and is named); idempotent")
def test_a_stop_and_what_survives_it():
    with Daemon() as daemon:
        client = daemon.connect()
        script = "trap '' TERM; setsid sleep 60 & echo $!; (trap '' TERM; exec sleep 61) & echo $! $$; while :; do wait; done"
        made = client.call("LaunchProcess", argv=["sh", "-c", script])
        away, near, own = wait_until(lambda: len(pids(client, made)) == 3 and pids(client, made), 10, "three numbers")
        wait_until(lambda: os.getpgid(away) == away and os.getpgid(near) == own == made["pid"], 5, "the sessions")
        began = time.monotonic()
        reply = client.call("StopProcess", build_id=made["build_id"], grace_ms=300)
        assert 0.25 < time.monotonic() - began < 3 and reply["signal"] == "SIGKILL", reply
        assert not alive(own) and alive(away)
        wait_until(lambda: not alive(near), 2, "the end of the group")
        assert reply["survivors"] == [{"pid": away, "name": "sleep"}] and reply["survivor_count"] == 1, reply
        os.kill(away, 9)
        again = client.call("StopProcess", build_id=made["build_id"])
        assert again.get("signal") == "SIGKILL" and again.get("exit_code") is None, again
        made = client.call("LaunchProcess", argv=["sh", "-c", "trap 'exit 7' TERM; echo up; while :; do sleep 0.01; done"])
        up(client, made)
        reply = client.call("StopProcess", build_id=made["build_id"])
        assert reply["exit_code"] == 7 and not {"survivors", "survivor_count"} & set(reply), reply


@SENTENCE("`StopProcess`'s `survivors` are [{pid, name}], at most 20, with their number as `survivor_count`: processes that descended "
          "from the build, left its group and live still; `name` is `argv[0]`. Both are left out when there are none. Descendants are "
          "looked for from the stop's beginning to the program's end.")
def test_many_survivors():
    with Daemon() as daemon:
        client = daemon.connect()
        late = "import os,signal,subprocess,time\nmine = []\ndef away(name):\n" \
               " mine.append(subprocess.Popen([name, '60'], executable='/bin/sleep', start_new_session=True).pid)\n" \
               "for _ in range(24): away('my name')\n" \
               "def asked(*_):\n away('sleep')\n time.sleep(0.5)\n print(*mine, flush=True)\n os._exit(0)\n" \
               "signal.signal(15, asked)\nprint('up', flush=True)\ntime.sleep(60)"
        made = client.call("LaunchProcess", argv=[sys.executable, "-c", late])
        up(client, made)
        reply = client.call("StopProcess", build_id=made["build_id"])
        all_of_them = [int(word) for word in client.call("GetOutput", build_id=made["build_id"], stream="stdout")["data"].split()[1:]]
        assert reply["exit_code"] == 0 and reply["survivor_count"] == 25 == len(all_of_them) and len(reply["survivors"]) == 20, reply
        assert all(set(each) == {"pid", "name"} and each["pid"] in all_of_them and each["name"] in ("my name", "sleep") for each in reply["survivors"])
        assert all(alive(pid) for pid in all_of_them)
        for pid in all_of_them:
            os.kill(pid, signal.SIGKILL)


@SENTENCE("`SignalProcess` | build_id, signal | –", "`SignalProcess` reaches the launched process alone, not its group; a held or "
          "starting build is `build_not_running`.")
def test_a_signal_reaches_one():
    with Daemon() as daemon:
        client = daemon.connect()
        made = client.call("LaunchProcess", argv=["sh", "-c", "sleep 60 & echo $!; wait"])
        child, = pids(client, made)
        assert client.call("SignalProcess", build_id=made["build_id"], signal="KILL") == {}
        wait_until(lambda: not alive(made["pid"]), 5, "the end of it")
        assert alive(child) and os.getpgid(child) == made["pid"]
        os.kill(child, 9)
        held = client.call("LaunchProcess", argv=["sleep", "60"], hold=True)
        assert client.fails("SignalProcess", build_id=held["build_id"], signal="TERM").code == "build_not_running" and alive(held["pid"])


@SENTENCE("`ListProcesses` / `GetProcess` | cursor? / build_id | processes [record], next_cursor? / one record: build_id, pid, argv, "
          "state, exit_code, signal, started_unix_us, captures, adopted?, stdout_path?, stderr_path?")
def test_records():
    with Daemon() as daemon:
        client, before = daemon.connect(), time.time_ns() // 1000
        made = [client.call("LaunchProcess", argv=argv, build_id=name, stdio="file", profile=profile)["pid"] for name, argv, profile in
                (("five", ["sh", "-c", "exit 5"], None), ("killed", ["sh", "-c", "kill -9 $$"], None), ("runs", FOREVER, {}))]
        wait_until(lambda: not alive(made[0]) and not alive(made[1]), 10, "two ends")
        for name in ("five", "killed"):
            client.wait_event("ProcessExited", build_id=name)
        records = {record["build_id"]: record for record in client.call("ListProcesses")["processes"]}
        assert [records[name]["pid"] for name in ("five", "killed", "runs")] == made
        for name, record in records.items():
            assert client.call("GetProcess", build_id=name) == record
            assert {"build_id", "pid", "argv", "state", "exit_code", "signal", "started_unix_us", "captures", "stdout_path",
                    "stderr_path"} == set(record), record
            assert before <= record["started_unix_us"] <= time.time_ns() // 1000 and os.path.exists(record["stdout_path"])
        assert (records["five"]["state"], records["five"]["exit_code"], records["five"]["signal"]) == ("exited", 5, None)
        assert (records["killed"]["state"], records["killed"]["exit_code"], records["killed"]["signal"]) == ("exited", None, "SIGKILL")
        assert (records["runs"]["state"], records["runs"]["argv"]) == ("running", FOREVER)
        assert records["runs"]["captures"] == os.listdir(daemon.data_dir + "/captures")


@SENTENCE("A program that shall keep its user's terminal (`profctl record -- vim`) is started by the client itself behind `profd-gate`, "
          "profiled by pid (`armed` until then), and then let go: job control, Ctrl-C, colours and window size are as without profd.",
          "`docs/protocol.md` has them for others.")
def test_a_program_behind_a_gate_keeps_its_terminal():
    with Daemon() as daemon, Raw(daemon.socket_path) as raw:
        mine, theirs = socket.socketpair()
        script = "import os,signal,sys,time\nsignal.signal(2, lambda *_: (print('int', flush=True), os._exit(3)))\n" \
                 "print(sys.stdout.isatty(), *os.get_terminal_size(), os.tcgetpgrp(0) == os.getpgrp(), os.environ['TERM'], flush=True)\nwhile True: pass"
        pid, terminal = pty.fork()
        if pid == 0:
            os.set_inheritable(theirs.fileno(), True)
            os.environ["TERM"] = "my-term"
            os.execv(program("profd-gate"), ["profd-gate", "--fd", str(theirs.fileno()), "--keep-inherited", "--", sys.executable, "-c", script])
        theirs.close()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("4H", 30, 99, 0, 0))
        assert mine.recv(100) == b"ready 1\n"
        reply = raw.ask({"id": 1, "method": "StartSamplingProfile", "params": {"pid": pid, "subscribe": False}})["result"]
        assert reply["state"] == "armed"
        mine.sendall(b"go\n")
        assert mine.recv(100) == b""
        text = b""
        while b"\n" not in text:
            text += os.read(terminal, 1000)
        assert text.split() == [b"True", b"99", b"30", b"True", b"my-term"], text
        os.write(terminal, b"\x03")
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
        record = raw.ask({"id": 2, "method": "WaitCapture", "params": {"capture_id": reply["capture_id"]}})["result"]
        assert record["reason"] == "target_exited" and record["pid"] == pid, record
        os.close(terminal)


@SENTENCE("The programs find each other in the build folder and when installed.")
def test_programs_find_each_other():
    with Daemon(env={"PATH": "/nonexistent"}) as daemon:
        client = daemon.connect()
        made = client.call("LaunchProcess", argv=[target("steady"), "100"], profile={"hz": 999})
        assert capture_end(client, made["capture_id"])[0] == "SamplingProfileFinished"
    _, prefix = install()
    with Daemon() as daemon:
        env = {**os.environ, "PATH": "/usr/bin:/bin", "HOME": daemon.root, "XDG_RUNTIME_DIR": daemon.root, "XDG_DATA_HOME": daemon.root + "/share"}
        os.chmod(daemon.root, 0o700)
        env.pop("PROFD_SOCKET", None)
        done = subprocess.run([prefix + "/bin/profctl", "record", "-o", daemon.root, target("steady"), "100"], env=env,
                              capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=daemon.root)
        try:
            found = [name for place, _, names in os.walk(daemon.root) for name in names
                     if name.endswith(".folded") and os.path.getsize(os.path.join(place, name))]
            assert done.returncode == 0 and found, (done, found)
        finally:
            subprocess.run([prefix + "/bin/profctl", "daemon", "stop"], env=env, capture_output=True, stdin=subprocess.DEVNULL)
            path = daemon.root + "/profd/profd.sock"
            wait_until(lambda: not os.path.exists(path), 10, "the end of the installed daemon")


if __name__ == "__main__":
    main(globals())
