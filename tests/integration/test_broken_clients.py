"""Clients that vanish at any moment: nothing of theirs is left, and nobody else feels it."""
import collections
import contextlib
import json
import os
import signal
import socket
import subprocess
import tempfile
import time

from footprint import check_as_before, check_closed_as_before, settled
from harness import FOREVER, SANITIZED, Client, Daemon, main, program, wait_until


def line(method, **params):
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, separators=(",", ":")).encode() + b"\n"


def test_who_reads_late_gets_every_reply():
    with Daemon() as daemon:
        client = daemon.connect()
        other = daemon.connect()
        count = 400
        # More than the daemon keeps for one client: it reads on when the client does.
        client.send_raw(b"".join(b'{"id":%d,"method":"Describe"}\n' % number for number in range(1, count + 1)))
        time.sleep(1)
        other.call("Ping")
        assert daemon.status("RssAnon") < 64 * 1024 * (4 if SANITIZED else 1)
        for number in range(1, count + 1):
            assert "methods" in client.wait_reply(number)


def vanish_between_any_two_bytes(daemon, request, check):
    """Sends every beginning of the line that is not the whole one, and goes: quietly, after a shut, and with a reply unread."""
    for cut in range(len(request)):
        with contextlib.closing(Client(daemon.socket_path)) as gone:
            gone.send_raw(request[:cut])
        with contextlib.closing(Client(daemon.socket_path)) as gone:
            gone.send_raw(request[:cut])
            gone.socket.shutdown(socket.SHUT_WR)
        with contextlib.closing(Client(daemon.socket_path)) as gone:
            gone.send_raw(b'{"id":0,"method":"Ping"}\n' + request[:cut])
        check(cut)


def test_a_client_killed_between_any_two_bytes_of_a_profiled_launch_leaves_nothing():
    with Daemon() as daemon:
        client = daemon.connect()
        request = line("LaunchProcess", argv=["true"], stdio="null", profile={"hz": 99})
        before = settled(daemon, client)
        vanish_between_any_two_bytes(daemon, request, lambda cut: check_as_before(daemon, client, before, request[:cut]))
        with contextlib.closing(Client(daemon.socket_path)) as gone:
            gone.send_raw(request)
        # The last byte makes it a wish, which is fulfilled although nobody waits.
        wait_until(lambda: [c["state"] for c in client.call("ListCaptures")["captures"]] == ["failed"], 20, "the capture")
        assert [p["exit_code"] for p in client.call("ListProcesses")["processes"]] == [0]
        check_closed_as_before(daemon, before)


def test_a_client_killed_between_any_two_bytes_of_a_start_or_a_stop_changes_nothing():
    with Daemon() as daemon:
        client = daemon.connect()
        client.call("LaunchProcess", argv=FOREVER, stdio="null", build_id="b")
        client.call("LaunchProcess", argv=FOREVER, stdio="null", build_id="c")
        idle = settled(daemon, client)
        capture_id = client.call("StartSamplingProfile", build_id="c", hz=49, subscribe=False)["capture_id"]
        time.sleep(0.1)
        before = settled(daemon, client)
        start = line("StartSamplingProfile", build_id="b", on_client_exit="stop")
        stop = line("StopCapture", capture_id=capture_id)
        for request in (start, stop):
            vanish_between_any_two_bytes(daemon, request, lambda cut: check_as_before(daemon, client, before, request[:cut]))
        with contextlib.closing(Client(daemon.socket_path)) as gone:
            gone.send_raw(stop)
        assert client.call("WaitCapture", capture_id=capture_id, timeout_ms=20000)["reason"] == "stopped"
        with contextlib.closing(Client(daemon.socket_path)) as gone:
            gone.send_raw(start)
        other, = [c["capture_id"] for c in wait_until(
            lambda: [c for c in client.call("ListCaptures")["captures"] if c["capture_id"] != capture_id], 10, "the capture")]
        final = client.call("WaitCapture", capture_id=other, timeout_ms=20000)
        assert final["reason"] == "client_exited", final
        check_closed_as_before(daemon, idle)


def test_a_client_killed_while_replies_and_events_are_on_their_way_leaves_whole_captures():
    with Daemon() as daemon:
        client = daemon.connect()
        script = "i=0; while [ $i -lt 9000 ]; do i=$((i+1)); done; echo out"
        request = line("LaunchProcess", argv=["sh", "-c", script], profile={"hz": 999, "progress_ms": 50})
        before = settled(daemon, client)
        for read in range(0, 1600, 160):
            with contextlib.closing(Client(daemon.socket_path)) as gone:
                gone.send_raw(request)
                gone.socket.settimeout(2)
                got = 0
                with contextlib.suppress(socket.timeout):
                    while got < read:
                        piece = len(gone.socket.recv(read - got))
                        got += piece
                        if piece == 0:
                            break
            wait_until(lambda: client.call("GetStatus")["builds"] < 8, 20, "room")

        def all_ended():
            status = client.call("GetStatus")
            return (status["clients"], status["builds"], status["captures"]) == (1, 0, 0)

        wait_until(all_ended, 30, "the end of the captures")
        check_closed_as_before(daemon, before)
        now = settled(daemon, client)
        assert len(now["captures"]) == len(now["processes"]) == 10
        files = collections.defaultdict(list)
        for path in now["files"]:
            if path.count("/") == 2:
                files[path.split("/")[1]].append(path.split("/")[2])
        whole = ["capture.folded", "capture.journal", "capture.json", "capture.svg", "capture.symbols", "record.json"]
        for capture_id, ended in now["captures"]:
            assert files.pop(capture_id) == (whole if ended == "finished" else ["capture.journal", "record.json"]), ended
        assert files == {}, files


def test_a_profctl_killed_at_any_moment_leaves_no_capture_running():
    with Daemon() as daemon, tempfile.TemporaryDirectory() as folder:
        client = daemon.connect()
        before = settled(daemon, client)
        words = [program("profctl"), "--socket", daemon.socket_path, "--no-start", "record", "-o", folder, "timeout", "0.3", *FOREVER]
        for moment_ms in (0, 5, 10, 15, 20, 25, 30, 40, 50, 60, 80, 100, 150, 200):
            with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as killed:
                time.sleep(moment_ms / 1000)
                killed.kill()
        wait_until(lambda: client.call("GetStatus")["captures"] == 0 and client.call("GetStatus")["clients"] == 1, 20, "the end")
        check_closed_as_before(daemon, before)
        whole = {"finished": ["capture.folded", "capture.journal", "capture.json", "capture.svg", "capture.symbols"], "failed": ["capture.journal"]}
        records = {record["capture_id"]: record for record in client.everything("ListCaptures", "captures")}
        assert sorted(os.listdir(folder)) == sorted(records), "a folder without its record"
        for record in records.values():
            assert sorted(os.listdir(record["folder"])) == whole[record["state"]], record


def test_clients_that_vanished_in_a_crowd_take_nobodys_place():
    with Daemon() as daemon:
        client = daemon.connect()
        before = settled(daemon, client)
        # All of them wait to be accepted when the daemon comes to it, and are gone by then.
        os.kill(daemon.process.pid, signal.SIGSTOP)
        try:
            for _ in range(100):
                with contextlib.closing(Client(daemon.socket_path)) as gone:
                    gone.send_raw(b'{"id":1,"method":"LaunchProc')
            late = daemon.connect()
        finally:
            os.kill(daemon.process.pid, signal.SIGCONT)
        assert late.call("Ping")["now_unix_us"] > 0
        late.close()
        check_as_before(daemon, client, before, "a crowd")
        # Those that are there do count.
        crowd = [daemon.connect() for _ in range(64)]
        crowd[-1].read_some(10)
        refused = crowd[-1].lines[0]
        assert refused["id"] is None and refused["error"]["data"]["code"] == "limit_exceeded", refused
        assert all(one.call("Ping") for one in crowd[:-1])


if __name__ == "__main__":
    main(globals())
