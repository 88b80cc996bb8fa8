"""docs/protocol.md, chapter 1: replies, clients that go, limits and slow readers."""
import json
import os
import socket
import sys
import time

from contract import SENTENCE, Raw
from harness import FOREVER, Daemon, alive, main, skip, wait_until
from waiting_analyzer import waiting_analyzer

PING = {"id": 1, "method": "Ping"}
LOUD = [sys.executable, "-c", "import os\nfor _ in range(%d): os.write(1, b'x' * 65535 + b'\\n')"]


def launch(number, argv, **params):
    return {"id": number, "method": "LaunchProcess", "params": {"argv": argv, **params}}


def sockets(daemon):
    """Connections of the daemon, as the kernel has them open, and its listener."""
    return daemon.descriptors().count("socket")


def record(raw, capture_id):
    return raw.ask({"id": 0, "method": "GetCapture", "params": {"capture_id": capture_id}})["result"]


def sampled(raw, capture_id):
    wait_until(lambda: record(raw, capture_id)["samples"] > 0, 10, "samples")


@SENTENCE("Exactly one reply per id; what has none when the daemon ends gets `shutting_down`.")
def test_every_id_is_answered_once_also_at_the_end():
    with waiting_analyzer() as (analyzer, _), Daemon(env={"PROFD_ANALYZER": analyzer}) as daemon, \
            Raw(daemon.socket_path) as raw, Raw(daemon.socket_path) as other:
        raw.send(launch(1, FOREVER, build_id="b", stdio="null", profile={}, subscribe=False))
        capture_id = raw.message()["result"]["capture_id"]
        sampled(other, capture_id)
        raw.send({"id": 2, "method": "WaitCapture", "params": {"capture_id": capture_id}},
                 {"id": 3, "method": "Ping"}, {"id": 4, "method": "None"}, {"id": 5, "method": "Shutdown", "params": {"mode": "now"}})
        messages = []
        while True:
            line = raw.line()
            if not line:
                break
            messages.append(json.loads(line))
        ids = [message["id"] for message in messages if "id" in message]
        assert sorted(ids) == [2, 3, 4, 5], ids
        error, = [message["error"] for message in messages if message.get("id") == 2]
        assert error["code"] == -32001 and error["data"]["code"] == "shutting_down", error
        assert daemon.process.wait(20) == 0


@SENTENCE("The reply that creates an id comes before any event that names it.")
def test_the_reply_comes_before_its_events():
    with Daemon() as daemon, Raw(daemon.socket_path) as raw, Raw(daemon.socket_path) as other:
        raw.ask({"id": 0, "method": "Subscribe"})
        for number in range(1, 11):
            raw.send(launch(number, ["true"], stdio="null", build_id="b%d" % number, profile={"hz": 99} if number % 2 else None))
            messages = raw.until(lambda message: message.get("id") == number)
            made = messages[-1]["result"]
            for message in messages[:-1]:
                assert message["params"].get("build_id") != made["build_id"], messages
                assert message["params"].get("capture_id", "") != made.get("capture_id"), messages
            raw.until(lambda message: message.get("method") == "ProcessExited" and message["params"]["build_id"] == made["build_id"])
        assert other.ask(PING)["result"]


def rest(raw, timeout=10):
    """What still comes until the connection ends."""
    messages = []
    while True:
        line = raw.line(timeout)
        if not line:
            return messages
        messages.append(json.loads(line))


@SENTENCE("**Half-closed** (the client shut its writing side, `poll` shows no POLLHUP): it still gets its replies and the events of its "
          "own captures,")
def test_who_only_listens_still_hears_of_its_captures():
    with Daemon() as daemon, Raw(daemon.socket_path) as raw, Raw(daemon.socket_path) as other:
        held = other.ask(launch(1, FOREVER, stdio="null", hold=True, build_id="b"))["result"]
        raw.send({"id": 1, "method": "Subscribe"}, {"id": 2, "method": "StartSamplingProfile", "params": {"build_id": "b", "duration_ms": 400}},
                 {"id": 3, "method": "Ping"})
        raw.socket.shutdown(socket.SHUT_WR)
        other.send({"id": 2, "method": "ResumeProcess", "params": {"build_id": "b"}})
        messages = rest(raw)
        assert sorted(message["id"] for message in messages if "id" in message) == [1, 2, 3], messages
        names = [message["method"] for message in messages if "method" in message]
        assert "SamplingProfileProgress" in names and names[-1] == "SamplingProfileFinished", names
        assert alive(held["pid"])


@SENTENCE("then the connection ends.", "A subscription does not keep a half-closed connection open.")
def test_a_half_closed_connection_ends_with_its_captures():
    with Daemon() as daemon:
        for request in ({"id": 1, "method": "Subscribe"}, {"id": 1, "method": "Ping"}):
            with Raw(daemon.socket_path) as quiet:
                quiet.send(request)
                quiet.socket.shutdown(socket.SHUT_WR)
                assert len(rest(quiet, 2)) == 1
        with Raw(daemon.socket_path) as raw:
            raw.send(launch(2, FOREVER, stdio="null", profile={"duration_ms": 200}))
            raw.socket.shutdown(socket.SHUT_WR)
            messages = rest(raw, 2)
            assert [message for message in messages if message.get("method") == "SamplingProfileFinished"], messages


@SENTENCE("**Gone** (POLLHUP): its waits end, `on_client_exit` acts.", "A client that waits in silence and vanishes is noticed at once.")
def test_who_vanished_is_noticed_at_once():
    with Daemon() as daemon, Raw(daemon.socket_path) as other:
        other.ask(PING)
        before = sockets(daemon)
        ended = []
        for choice in ("stop", "continue"):
            raw = Raw(daemon.socket_path)
            raw.send(launch(1, FOREVER, stdio="null", profile={"on_client_exit": choice}))
            made = raw.message()["result"]
            raw.send({"id": 2, "method": "WaitCapture", "params": {"capture_id": made["capture_id"]}})
            sampled(other, made["capture_id"])
            assert sockets(daemon) == before + 1
            raw.socket.close()
            gone = time.monotonic()
            wait_until(lambda: sockets(daemon) == before, 2, "the end of the connection")
            assert time.monotonic() - gone < 1
            ended.append(made)
        path = os.path.join(daemon.data_dir, "captures", ended[0]["capture_id"], "capture.json")
        wait_until(lambda: os.path.exists(path), 10, "the capture of the client that went")
        with open(path) as file:
            assert json.load(file)["reason"] == "client_exited"
        assert alive(ended[0]["pid"]) and record(other, ended[1]["capture_id"])["state"] == "sampling"


@SENTENCE("Limits (all in `Hello`): request line 1 MiB;")
def test_the_longest_line():
    with Daemon() as daemon, Raw(daemon.socket_path) as raw:
        limits = raw.ask({"id": 1, "method": "Hello", "params": {"client": "t"}})["result"]["limits"]
        said = {"request_bytes": 1 << 20, "line_bytes": 60 << 10, "json_depth": 32, "clients": 64, "requests_in_flight": 64,
                "builds": 64, "running_captures": 16, "argv_shown_bytes": 4096, "event_list": 20, "subscriptions": 64}
        assert {name: limits.get(name) for name in said} == said, limits
        line = b'{"id":2,"method":"Ping"%s}\n'
        for length in ((1 << 20) - 1, 1 << 20):
            assert raw.ask(line % (b" " * (length - len(line) + 2)))["result"], length
        for length in ((1 << 20) + 2, 3 << 20):
            error = raw.ask(line % (b" " * (length - len(line) + 2)))
            assert error["id"] is None and error["error"]["code"] in (-32600, -32001, -32700), error
            assert raw.ask(PING)["result"]


@SENTENCE("every line we send at most 60 KiB (longer lists are paged with `cursor`; argv in records is cut at 4 KiB with "
          "`argv_truncated`; lists in events hold at most 20 entries and a count);", "64 live builds;")
def test_long_lists_come_in_pages_of_short_lines():
    with Daemon() as daemon, Raw(daemon.socket_path) as raw:
        raw.send(*[launch(number, ["sh", "-c", "exec sleep 60", "x" * 5000], build_id=number, stdio="null", subscribe=False)
                   for number in range(1, 65)])
        pids = {raw.message()["result"]["pid"] for _ in range(64)}
        error = raw.ask(launch(99, ["touch", daemon.root + "/ran"]))["error"]
        assert error["data"]["code"] == "limit_exceeded" and "64" in error["message"], error
        assert not os.path.exists(daemon.root + "/ran") and all(alive(pid) for pid in pids) and len(pids) == 64
        found, cursor, pages = [], None, 0
        while pages == 0 or cursor is not None:
            raw.send({"id": 1, "method": "ListProcesses", "params": {"cursor": cursor}})
            line = raw.line()
            assert len(line) + 1 <= 60 << 10, len(line)
            page = json.loads(line)["result"]
            found += page["processes"]
            cursor, pages = page.get("next_cursor"), pages + 1
        assert pages > 3 and {record["pid"] for record in found} == pids and len(found) == 64
        for record in found:
            assert record["argv_truncated"] is True and len("".join(record["argv"])) <= 4096, record
        short = raw.ask({"id": 1, "method": "StopProcess", "params": {"build_id": 1}}, )
        assert short["result"]["signal"] == "SIGTERM" and raw.ask(launch(100, ["true"]))["result"]


def lists(value):
    if isinstance(value, list):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from lists(each)


@SENTENCE("64 clients (the next gets one `limit_exceeded` with id null and is closed);", "64 requests in flight per client;")
def test_the_65th_client_and_the_65th_request():
    with Daemon() as daemon:
        clients = [Raw(daemon.socket_path) for _ in range(64)]
        for raw in clients:
            assert raw.ask(PING)["result"]
        with Raw(daemon.socket_path) as late:
            message = late.message()
            assert message["id"] is None and message["error"]["data"]["code"] == "limit_exceeded" and "64" in message["error"]["message"]
            assert late.line() == b""
        for raw in clients[1:]:
            raw.socket.close()
        raw = clients[0]
        wait_until(lambda: sockets(daemon) <= 3, 5, "the end of the others")
        held = raw.ask(launch(1, ["sleep", "60"], build_id="b", hold=True, stdio="null"))["result"]
        started = raw.ask({"id": 1, "method": "StartSamplingProfile", "params": {"build_id": "b", "subscribe": False}})["result"]
        raw.send(*[{"id": number, "method": "WaitCapture", "params": {"capture_id": started["capture_id"]}} for number in range(100, 164)])
        assert raw.silent()
        error = raw.ask(PING)
        assert error["id"] == 1 and error["error"]["data"]["code"] == "limit_exceeded", error
        with Raw(daemon.socket_path) as other:
            assert other.ask({"id": 1, "method": "StopProcess", "params": {"build_id": "b"}})["result"]
        ids = []
        while len(ids) < 64:
            ids += [message["id"] for message in [raw.message()] if "id" in message]
        assert sorted(ids) == list(range(100, 164)) and not alive(held["pid"])
        assert raw.ask(PING)["result"]
        raw.socket.close()


@SENTENCE("16 running captures.")
def test_the_17th_capture():
    with Daemon() as daemon, Raw(daemon.socket_path) as raw:
        for number in range(16):
            assert raw.ask(launch(number, ["sleep", "60"], build_id=number, hold=True, stdio="null", subscribe=False))["result"]
            assert raw.ask({"id": 0, "method": "StartSamplingProfile", "params": {"build_id": number, "subscribe": False}})["result"]
        error = raw.ask(launch(17, ["touch", daemon.root + "/ran"], profile={}))["error"]
        assert error["data"]["code"] == "limit_exceeded" and "16" in error["message"] and not os.path.exists(daemon.root + "/ran"), error
        raw.ask({"id": 0, "method": "StopCapture", "params": {"all": True}})
        assert raw.ask(launch(18, ["true"], profile={}, subscribe=False))["result"]


@SENTENCE("Slow readers never slow anyone else.", "Progress events are latest-wins, output events droppable, state changes lossless; "
          "when something was dropped the client is told (`EventsDropped` with counts).")
def test_a_slow_reader_loses_output_and_no_state():
    with Daemon() as daemon, Raw(daemon.socket_path) as slow, Raw(daemon.socket_path) as quick:
        slow.ask({"id": 1, "method": "Subscribe"})
        quick.ask({"id": 1, "method": "Subscribe", "params": {"events": ["SamplingProfileProgress"]}})
        heard = []

        def reply(*messages):
            quick.send(*messages)
            while True:
                message = quick.message()
                if "id" in message:
                    return message["result"]
                heard.append(message["params"]["seq"])
        # What the socket does not take waits, and there is room for more: progress waits too, the latest instead of the one before.
        some = reply(launch(1, LOUD[:2] + [LOUD[2] % 10], subscribe=False))
        wait_until(lambda: not alive(some["pid"]), 20, "the end of the first program")
        busy = reply(launch(2, FOREVER, stdio="null", subscribe=False, profile={"progress_ms": 50, "subscribe": False}))
        time.sleep(0.7)
        reply({"id": 9, "method": "StopCapture", "params": {"capture_id": busy["capture_id"]}})
        # Then there is no room.
        loud = reply(launch(3, LOUD[:2] + [LOUD[2] % 300], subscribe=False))
        wait_until(lambda: not alive(loud["pid"]), 20, "the end of the program that nobody reads")
        for number in range(20):
            began = time.monotonic()
            reply(launch(number, ["true"], build_id="t%d" % number, stdio="null", subscribe=False))
            assert time.monotonic() - began < 2
        reply(PING)
        # Everything until the last state change is there, but for output and progress.
        messages = slow.until(lambda message: message.get("method") == "ProcessExited")
        wanted = {"t%d" % number for number in range(20)} | {some["build_id"]}
        ended = lambda: {m["params"]["build_id"] for m in messages if m["method"] == "ProcessExited"}
        while not wanted | {loud["build_id"]} <= ended():
            messages.append(slow.message())
        wait_until(lambda: slow.silent(0.1) or messages.append(slow.message()), 10, "silence")
        started = [m["params"]["build_id"] for m in messages if m["method"] == "ProcessStarted"]
        assert sorted(started) == sorted(wanted | {loud["build_id"], busy["build_id"]}), started
        told = [m["params"]["counts"] for m in messages if m["method"] == "EventsDropped"]
        assert told and all(isinstance(count, int) and count > 0 for counts in told for count in counts.values()), told
        output = [m["params"] for m in messages if m["method"] == "ProcessOutput"]
        shown = sum(len(params["data"]) for params in output)
        assert shown < 310 * 65536 and sum(counts.get("ProcessOutput", 0) for counts in told) >= (310 * 65536 - shown) // 8192, told
        assert [m["params"]["capture_id"] for m in messages if m["method"] == "SamplingProfileFinished"] == [busy["capture_id"]]
        sequence = [m["params"]["seq"] for m in messages if "seq" in m["params"]]
        holes = set(range(min(sequence), max(sequence))) - set(sequence)
        replaced = holes & set(heard)
        # Two changes of state at the end of a capture may follow so closely that the other reader has only the second.
        lost = sum(sum(counts.values()) for counts in told)
        assert 0 <= len(holes - replaced) - lost <= 2, (len(holes), len(replaced), told)
        progress = [m["params"]["elapsed_ms"] for m in messages if m["method"] == "SamplingProfileProgress"]
        assert 1 <= len(progress) < len(heard) // 2 and progress[-1] >= 500, (progress, len(heard))
        for message in messages:
            assert all(len(each) <= 20 for each in lists(message["params"])), message


@SENTENCE("A client that does not read for 30 s with a full queue is disconnected and logged.")
def test_who_never_reads_is_disconnected():
    if not os.environ.get("PROFD_LONG"):
        skip("takes 35 s: PROFD_LONG=1")
    with Daemon() as daemon, Raw(daemon.socket_path) as slow, Raw(daemon.socket_path) as quick:
        slow.ask({"id": 1, "method": "Subscribe"})
        quick.ask(PING)
        before = sockets(daemon)
        quick.ask(launch(2, LOUD[:2] + [LOUD[2] % 300], subscribe=False))
        time.sleep(25)
        assert sockets(daemon) >= before
        wait_until(lambda: sockets(daemon) < before, 15, "the end of the connection")
        assert "30" in daemon.log().splitlines()[-1], daemon.log()


@SENTENCE("While more than 1 MiB of replies and state changes wait for a client, no more of its requests are read;")
def test_requests_wait_while_replies_do():
    with Daemon() as daemon, Raw(daemon.socket_path) as slow, Raw(daemon.socket_path) as quick:
        slow.send(*[{"id": number, "method": "Describe"} for number in range(60)])
        slow.send(launch(60, ["touch", daemon.root + "/ran"], subscribe=False))
        time.sleep(0.4)
        assert not os.path.exists(daemon.root + "/ran"), "read with 1.8 MB of replies waiting"
        assert quick.ask(PING)["result"]
        ids = [slow.message()["id"] for _ in range(61)]
        assert ids == list(range(61)), ids
        wait_until(lambda: os.path.exists(daemon.root + "/ran"), 10, "the request that waited")


@SENTENCE("state changes of more than 4 MiB disconnect it.")
def test_too_many_state_changes_disconnect():
    with Daemon() as daemon, Raw(daemon.socket_path) as slow, Raw(daemon.socket_path) as quick:
        for raw in (slow, quick):
            raw.ask({"id": 1, "method": "Subscribe", "params": {"events": ["ProcessStarted", "ProcessExited"]}})
        before, made, last = sockets(daemon), 0, 0
        # An id of 128 characters that are 6 bytes each when they are told.
        while made < 6 << 20 and sockets(daemon) == before:
            ids = [("%04d" % (last + at) + "\x01" * 124) for at in range(60)]
            last += 60
            quick.send(*[launch(each[:4], ["/bin/true"], build_id=each, stdio="null", subscribe=False) for each in ids])
            for _ in range(3 * len(ids)):
                line = quick.line()
                made += 0 if b'"id"' in line else len(line) + 1
        assert sockets(daemon) < before and made > 4 << 20, made
        assert quick.ask(PING)["result"]


@SENTENCE("No transport fault ever ends a capture or a process.")
def test_faults_of_the_transport_end_nothing():
    with Daemon() as daemon, Raw(daemon.socket_path) as other:
        raw = Raw(daemon.socket_path)
        made = raw.ask(launch(1, FOREVER, build_id="b", profile={}))["result"]
        journal = os.path.join(daemon.data_dir, "captures", made["capture_id"], "capture.journal")
        raw.send(b"\xff" * 100000 + b"\n", b'{"id":1,"meth')
        raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        raw.socket.close()
        for junk in (b"\n" * 5000, b"[" * 2000000, b"Content-Length: 99999999999\r\n\r\n", b"Content-Length: 5\r\n\r\nab"):
            with Raw(daemon.socket_path) as bad:
                try:
                    bad.send(junk)
                except BrokenPipeError:
                    pass
        size = os.path.getsize(journal)
        wait_until(lambda: os.path.getsize(journal) > size, 10, "a journal that grows")
        assert alive(made["pid"]) and record(other, made["capture_id"])["state"] == "sampling"


if __name__ == "__main__":
    main(globals())
