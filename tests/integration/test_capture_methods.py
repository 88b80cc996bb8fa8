"""The methods about captures, over the socket: what they answer, and in which order events and replies come."""
import os
import time

from harness import FOREVER, Daemon, ProfdError, alive, capture_end, main, wait_sampled, wait_until

BUSY_SHORT = ["sh", "-c", "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done"]


def place(client, name):
    """Where the first line of that method stands among all that came."""
    return [line.get("method") for line in client.lines].index(name)


def reply_place(client, number):
    return [line.get("id") for line in client.lines].index(number)


def test_a_capture_needs_exactly_one_target():
    with Daemon() as daemon:
        client = daemon.connect()
        assert "neither" in client.fails("StartSamplingProfile").message
        error = client.fails("StartSamplingProfile", build_id="b", pid=os.getpid())
        assert error.code == "bad_params" and "both" in error.message


def test_a_capture_begins_with_the_program_and_ends_by_duration():
    with Daemon() as daemon:
        client = daemon.connect()
        number = client.send("LaunchProcess", argv=FOREVER, profile={"duration_ms": 300, "label": "mine"}, build_id="b")
        launched = client.wait_reply(number)
        capture_id = launched["capture_id"]
        name, params = capture_end(client, capture_id)
        assert name == "SamplingProfileFinished", params
        assert params["reason"] == "duration" and params["build_id"] == "b" and params["pid"] == launched["pid"]
        started = client.wait_event("SamplingProfileStarted")
        assert started["capture_id"] == capture_id and started["sampler"] == "perf" and started["unwinder"] == "dwarf"
        assert reply_place(client, number) < place(client, "SamplingProfileStarted")
        assert alive(launched["pid"]), "a capture's end is not the program's"
        record = client.call("WaitCapture", capture_id=capture_id)
        assert record == client.call("GetCapture", capture_id=capture_id) == client.call("StopCapture", capture_id=capture_id)
        assert record["state"] == "finished" and record["label"] == "mine"
        assert record["samples"] == params["samples"] > 0
        assert client.call("GetProcess", build_id="b")["captures"] == [capture_id]
        assert client.call("ListCaptures")["captures"] == [record]


def test_a_capture_is_stopped_before_the_reply_and_the_event_comes_first():
    with Daemon() as daemon:
        client = daemon.connect()
        build_id = client.call("LaunchProcess", argv=FOREVER)["build_id"]
        started = client.call("StartSamplingProfile", build_id=build_id, progress_ms=50)
        assert started["state"] == "sampling" and started["hz"] == 999 and started["warnings"] == []
        assert client.fails("StartSamplingProfile", build_id=build_id).code == "capture_busy"
        error = client.fails("WaitCapture", capture_id=started["capture_id"], timeout_ms=50)
        assert error.code == "timeout" and error.error["data"]["retryable"] is True
        wait_sampled(client, started["capture_id"])
        number = client.send("StopCapture", capture_id=started["capture_id"])
        record = client.wait_reply(number)
        assert record["state"] == "finished" and record["reason"] == "stopped", record
        assert place(client, "SamplingProfileFinished") < reply_place(client, number)
        assert client.call("StopCapture", capture_id=started["capture_id"]) == record


def test_a_discarded_capture_is_gone():
    with Daemon() as daemon:
        client = daemon.connect()
        before = daemon.files()
        launched = client.call("LaunchProcess", argv=FOREVER, profile={})
        capture_id = launched["capture_id"]
        waiting = daemon.connect()
        number = waiting.send("WaitCapture", capture_id=capture_id)
        waiting.call("Ping")
        record = client.call("StopCapture", capture_id=capture_id, discard=True)
        assert record["state"] == "failed" and record["error"]["data"]["code"] == "cancelled"
        name, params = capture_end(client, capture_id)
        assert name == "SamplingProfileFailed" and params["error"]["data"]["code"] == "cancelled"
        try:
            waiting.wait_reply(number)
            raise AssertionError("the wait for a discarded capture succeeded")
        except ProfdError as error:
            assert error.code == "cancelled", error
        assert client.fails("GetCapture", capture_id=capture_id).code == "capture_not_found"
        assert client.call("GetProcess", build_id=launched["build_id"])["captures"] == []
        assert daemon.files() == before


def test_all_captures_are_stopped_at_once():
    with Daemon() as daemon:
        client = daemon.connect()
        assert client.call("StopCapture", all=True) == {"captures": []}
        ids = [client.call("LaunchProcess", argv=FOREVER, profile={"progress_ms": 50})["capture_id"] for _ in range(3)]
        for capture_id in ids:
            wait_sampled(client, capture_id)
        records = client.call("StopCapture", all=True)["captures"]
        assert sorted(record["capture_id"] for record in records) == sorted(ids)
        assert all(record["state"] == "finished" for record in records), records
        assert client.fails("StopCapture").code == "bad_params"
        assert client.fails("StopCapture", all=True, capture_id=ids[0]).code == "bad_params"
        assert client.fails("StopCapture", capture_id="nothing").code == "capture_not_found"


def test_a_capture_ends_with_its_client_when_asked_to():
    with Daemon() as daemon:
        other = daemon.connect()
        ids = {}
        for choice in ("stop", "continue"):
            client = daemon.connect()
            ids[choice] = client.call("LaunchProcess", argv=FOREVER, profile={"on_client_exit": choice, "progress_ms": 50})["capture_id"]
            wait_sampled(client, ids[choice])
            client.close()
        record = other.call("WaitCapture", capture_id=ids["stop"], timeout_ms=20000)
        assert record["reason"] == "client_exited" and record["state"] == "finished", record
        assert other.call("GetCapture", capture_id=ids["continue"])["state"] == "sampling"


def test_a_waiting_client_that_vanishes_does_not_end_the_capture():
    with Daemon() as daemon:
        client = daemon.connect()
        capture_id = client.call("LaunchProcess", argv=FOREVER, profile={})["capture_id"]
        waiting = daemon.connect()
        waiting.send("WaitCapture", capture_id=capture_id)
        waiting.send("WaitCapture", capture_id=capture_id, timeout_ms=30000)
        waiting.close()
        wait_until(lambda: client.call("GetStatus")["clients"] == 1)
        assert client.call("GetCapture", capture_id=capture_id)["state"] == "sampling"
        client.call("StopCapture", capture_id=capture_id)


def test_a_capture_that_is_armed_on_a_held_program_begins_when_it_runs():
    with Daemon() as daemon:
        client = daemon.connect()
        build_id = client.call("LaunchProcess", argv=FOREVER, hold=True)["build_id"]
        started = client.call("StartSamplingProfile", build_id=build_id, duration_ms=200)
        assert started["state"] == "armed"
        time.sleep(0.3)
        client.drain(0)
        assert client.events == []
        client.call("ResumeProcess", build_id=build_id)
        name, params = capture_end(client, started["capture_id"])
        assert name == "SamplingProfileFinished" and params["reason"] == "duration", params


def test_lists_can_be_narrowed():
    with Daemon() as daemon:
        client = daemon.connect()
        made = {}
        for build_id, label in (("7", "one"), (7, "two"), ("8", "one")):
            launched = client.call("LaunchProcess", argv=BUSY_SHORT, stdio="null", build_id=build_id, profile={"label": label})
            client.wait_event("SamplingProfileFinished", capture_id=launched["capture_id"])
            made[launched["capture_id"]] = (str(build_id), label)
        running = client.call("LaunchProcess", argv=FOREVER, stdio="null", build_id="9", profile={})["capture_id"]
        ids = list(made)
        client.call("UpdateCapture", capture_id=ids[1], pinned=True)

        def listed(**filters):
            return [record["capture_id"] for record in client.call("ListCaptures", **filters)["captures"]]
        assert listed() == ids + [running]
        assert listed(build_id=7) == listed(build_id="7") == ids[:2]
        assert listed(label="one") == [ids[0], ids[2]] and listed(label="on") == []
        assert listed(pinned=True) == [ids[1]] and listed(pinned=False) == [ids[0], ids[2], running]
        assert listed(state="sampling") == [running] and listed(state="finished", label="one", build_id="8") == [ids[2]]
        error = client.fails("ListCaptures", state="done")
        assert error.code == "bad_params" and "finished" in error.message
        client.call("StopCapture", capture_id=running, discard=True)


if __name__ == "__main__":
    main(globals())
