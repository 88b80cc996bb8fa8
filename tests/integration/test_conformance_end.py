"""docs/protocol.md, chapter 4: requests that are cancelled, the daemon's end, and what becomes of programs. All cases at once: they wait."""
import json
import os
import signal
import sys
import time

from contract import SENTENCE
from harness import FOREVER, Daemon, ProfdError, alive, capture_end, main, wait_sampled, wait_until
from journals import JournalFile
from waiting_analyzer import wait_symbolizing, waiting_analyzer

DEAF = [sys.executable, "-c", "import os,signal,time\nfor s in (2, 15): signal.signal(s, signal.SIG_IGN)\nos.write(1, b'up')\ntime.sleep(60)"]
POLITE = [sys.executable, "-c", "import os,signal,sys,time\nsignal.signal(15, lambda *_: (open(sys.argv[1], 'w').close(), os._exit(0)))\n"
          "os.write(1, b'up')\ntime.sleep(60)"]


def launch(client, argv, **params):
    return client.call("LaunchProcess", argv=argv, **{"stdio": "null", **params})


def started(client, argv, **params):
    """A program that has said up."""
    made = client.call("LaunchProcess", argv=argv, **params)
    wait_until(lambda: client.call("GetOutput", build_id=made["build_id"], stream="stdout").get("data") == "up", 20, "the program's word")
    return made


def answer(client, number):
    try:
        return client.wait_reply(number)
    except ProfdError as error:
        return error.code


def journal(daemon, capture_id):
    return JournalFile(os.path.join(daemon.data_dir, "captures", capture_id, "capture.journal"))


def ended(daemon, timeout=20):
    assert daemon.process.wait(timeout) == 0, daemon.log()


@SENTENCE("`Cancel` | request_id | cancelled", "`Cancel` ends a request of the same connection that only waits (`WaitCapture`, "
          "`StopCapture`, `StopProcess`, `ResumeProcess`, `SymbolizeCapture`, `Doctor`): it is answered with `cancelled`, and what it waited for goes on.")
def test_waits_are_cancelled_and_what_they_waited_for_goes_on():
    with waiting_analyzer() as (analyzer, go), Daemon(env={"PROFD_ANALYZER": analyzer}) as daemon:
        client, other = daemon.connect(), daemon.connect()
        capture = launch(client, FOREVER, profile={})["capture_id"]
        wait_sampled(client, capture)
        waiting = client.send("WaitCapture", capture_id=capture)
        assert other.call("Cancel", request_id=waiting)["cancelled"] is False
        assert client.call("Cancel", request_id=waiting)["cancelled"] is True and answer(client, waiting) == "cancelled"
        before = journal(daemon, capture).good
        wait_until(lambda: journal(daemon, capture).good > before, 10, "a capture that goes on")
        stopping = client.send("StopCapture", capture_id=capture)
        wait_symbolizing(other, capture)
        assert client.call("Cancel", request_id=stopping)["cancelled"] is True and answer(client, stopping) == "cancelled"
        open(go, "w").close()
        wait_until(lambda: os.path.exists(os.path.join(daemon.data_dir, "captures", capture, "capture.json")), 20, "the artifacts")
        polite = started(client, DEAF)
        stop = client.send("StopProcess", build_id=polite["build_id"], grace_ms=700)
        assert client.call("Cancel", request_id=stop)["cancelled"] is True and answer(client, stop) == "cancelled"
        assert alive(polite["pid"])
        wait_until(lambda: not alive(polite["pid"]), 5, "the end of the grace")
        held = launch(client, ["touch", daemon.root + "/ran"], hold=True)
        resume = client.send("ResumeProcess", build_id=held["build_id"])
        cancelled = client.call("Cancel", request_id=resume)["cancelled"]
        said = answer(client, resume)
        assert said == ("cancelled" if cancelled else {"state": "running"}), said
        wait_until(lambda: os.path.exists(daemon.root + "/ran"), 10, "the program")
        assert client.call("Cancel", request_id="none")["cancelled"] is False


@SENTENCE("`Shutdown` | mode: `drain` (refuse new, let captures end),")
def test_a_drain_lets_captures_end():
    with Daemon() as daemon:
        client = daemon.connect()
        capture = launch(client, FOREVER, profile={"duration_ms": 1200})["capture_id"]
        client.call("Shutdown", mode="drain")
        for method, params in (("LaunchProcess", {"argv": ["touch", daemon.root + "/ran"]}), ("StartSamplingProfile", {"build_id": "1"}),
                               ("AdoptProcess", {"pid": os.getpid()})):
            assert client.fails(method, **params).code == "shutting_down", method
        name, params = capture_end(client, capture)
        assert name == "SamplingProfileFinished" and params["reason"] == "duration" and params["summary"]["duration_ms"] >= 1100, params
        ended(daemon)
        assert os.path.getsize(params["folded_path"]) and not os.path.exists(daemon.root + "/ran")


@SENTENCE("`stop` (default: captures ended within 10 s, children with grace),", "SIGTERM and SIGINT mean `stop`, a second one `now`.")
def test_a_stop_ends_captures_and_programs_with_grace():
    def shutdown(daemon, client):
        client.call("Shutdown")
    for number, stop in enumerate((shutdown, lambda daemon, _: daemon.process.send_signal(signal.SIGTERM),
                                   lambda daemon, _: daemon.process.send_signal(signal.SIGINT))):
        with Daemon() as daemon:
            client = daemon.connect()
            capture = launch(client, FOREVER, profile={})["capture_id"]
            polite = started(client, POLITE + [daemon.root + "/asked"])
            wait_sampled(client, capture)
            stop(daemon, client)
            ended(daemon, 10)
            assert os.path.exists(daemon.root + "/asked") and not alive(polite["pid"])
            with open(os.path.join(daemon.data_dir, "captures", capture, "capture.json")) as file:
                assert json.load(file)["reason"] == "daemon_shutdown"


@SENTENCE("a second one `now`.")
def test_a_second_signal_ends_what_is_deaf():
    for one, two in ((signal.SIGTERM, signal.SIGTERM), (signal.SIGINT, signal.SIGTERM), (signal.SIGTERM, signal.SIGINT)):
        with Daemon() as daemon:
            deaf = started(daemon.connect(), DEAF)
            daemon.process.send_signal(one)
            time.sleep(0.3)
            assert alive(deaf["pid"]) and daemon.process.poll() is None
            daemon.process.send_signal(two)
            ended(daemon, 3)
            assert not alive(deaf["pid"])


@SENTENCE("SIGTERM and SIGINT mean `stop`,")
def test_a_signal_in_the_last_moments_kills_nothing():
    statuses = []
    for number in range(20):
        with Daemon(check_exit=False) as daemon:
            client = daemon.connect()
            client.call("Shutdown")
            while not client.closed:
                client.read_some(5)
            time.sleep(number * 0.0005)
            daemon.process.send_signal(signal.SIGTERM)
            statuses.append(daemon.process.wait(20))
    assert set(statuses) == {0}, "exit statuses of daemons that were ending: %s" % statuses


@SENTENCE("`now` (children killed, journals left to recovery)", "`Shutdown` `now` gives captures half a second to bring what they hold "
          "to their journals.")
def test_now_leaves_whole_journals():
    with waiting_analyzer() as (analyzer, go), Daemon(env={"PROFD_ANALYZER": analyzer}) as daemon:
        client = daemon.connect()
        deaf = started(client, DEAF)
        made = launch(client, FOREVER, profile={"progress_ms": 50})
        seen = client.wait_event("SamplingProfileProgress", state="sampling")["samples"]
        while seen < 100:
            seen = client.wait_event("SamplingProfileProgress", state="sampling")["samples"]
        client.call("Shutdown", mode="now")
        began = time.monotonic()
        ended(daemon)
        assert time.monotonic() - began < 3 and not alive(deaf["pid"]) and not alive(made["pid"])
        left = journal(daemon, made["capture_id"])
        assert left.samples >= seen and left.good == len(left.data), (left.samples, seen)
        assert not os.path.exists(os.path.join(daemon.data_dir, "captures", made["capture_id"], "capture.json"))
        open(go, "w").close()
        daemon.start()
        record = daemon.connect().call("WaitCapture", capture_id=made["capture_id"])
        assert record["reason"] == "recovered" and record["samples"] == left.samples, record


@SENTENCE("`on_daemon_exit` `kill`: the program's process group dies with the daemon, also when that is killed itself. What is still in "
          "the group when its program has ended belongs to nobody.", "on_daemon_exit?: `kill` (default),")
def test_the_group_dies_with_the_daemon():
    for how in (signal.SIGTERM, signal.SIGKILL):
        with Daemon(check_exit=False) as daemon:
            client = daemon.connect()
            family = "sleep 60 & echo $! >%s/child; (setsid sleep 61 & echo $! >%s/away); printf up; %s"
            made = started(client, ["sh", "-c", family % (daemon.root, daemon.root, "exec sleep 60")])
            child, away = [int(open(daemon.root + name).read()) for name in ("/child", "/away")]
            orphan = launch(client, ["sh", "-c", "sleep 62 >/dev/null 2>&1 & echo $! >%s/orphan" % daemon.root])
            wait_until(lambda: not alive(orphan["pid"]), 10, "the end of the program")
            left = int(open(daemon.root + "/orphan").read())
            client.wait_event("ProcessExited", build_id=orphan["build_id"])
            assert os.getpgid(child) == os.getpgid(made["pid"]) == made["pid"]
            daemon.process.send_signal(how)
            daemon.process.wait(20)
            wait_until(lambda: not alive(made["pid"]) and not alive(child), 5, "the end of the group")
            assert alive(left), "it belonged to nobody"
            for pid in (left, away):
                if alive(pid):
                    os.kill(pid, 9)


@SENTENCE("`leave`: it lives on whatever becomes of the daemon, unless it is still held; the daemon's end does not wait for it",
          "`leave` (not with `pipe` or `pty`),", "With `pipe` or `pty` it is -32602 (`leave_needs_null_or_file`): their other end goes "
          "with the daemon.")
def test_what_is_left_lives_on():
    for how in (signal.SIGTERM, signal.SIGKILL):
        with Daemon(check_exit=False) as daemon:
            client = daemon.connect()
            left = [launch(client, ["sleep", "60"], stdio=stdio, on_daemon_exit="leave")["pid"] for stdio in ("null", "file")]
            held = launch(client, ["sleep", "60"], on_daemon_exit="leave", hold=True)["pid"]
            for stdio in ({"stdio": "pipe"}, {"stdio": "pty"}, {}):
                error = client.fails("LaunchProcess", argv=["touch", daemon.root + "/ran"], on_daemon_exit="leave", **stdio)
                assert error.number == -32602 and error.detail == "leave_needs_null_or_file"
            began = time.monotonic()
            daemon.process.send_signal(how)
            daemon.process.wait(20)
            assert time.monotonic() - began < 3 and not os.path.exists(daemon.root + "/ran")
            wait_until(lambda: not alive(held), 5, "the end of what was held")
            time.sleep(0.2)
            assert all(alive(pid) for pid in left)
            for pid in left:
                os.kill(pid, 9)


@SENTENCE("(but a daemon that would end for idleness does)")
def test_idleness_waits_for_what_is_left():
    with Daemon("--idle-exit", "1") as daemon:
        client = daemon.connect()
        pid = launch(client, ["sleep", "3"], on_daemon_exit="leave")["pid"]
        client.close()
        daemon.clients.clear()
        time.sleep(2)
        assert daemon.process.poll() is None and alive(pid)
        wait_until(lambda: not alive(pid), 5, "the end of the program")
        ended(daemon, 5)


@SENTENCE("`DaemonStopping` is the last event, when captures and programs have ended; `GetStatus` tells `state` before.")
def test_the_last_event_comes_last():
    with Daemon() as daemon:
        client, other = daemon.connect(), daemon.connect()
        made = started(client, POLITE + ["/dev/null"], profile={})
        launch(client, DEAF)
        wait_sampled(client, made["capture_id"])
        client.call("Shutdown")
        assert other.call("GetStatus")["state"] == "stopping"
        ended(daemon)
        client.drain(1)
        names = [message["method"] for message in client.lines if "id" not in message]
        assert names.count("DaemonStopping") == 1 and names[-1] == "DaemonStopping", names
        assert names.count("ProcessExited") == 2 and "SamplingProfileFinished" in names, names


if __name__ == "__main__":
    main(globals(), together=True)
