"""Subscribe, Unsubscribe, Cancel and request_key: the events of others, what was missed, and requests that are repeated."""
import os
import signal

from harness import Daemon, ProfdError, main, wait_until

BUSY = ["sh", "-c", "while :; do :; done"]


def names(events):
    return [event["method"] for event in events]


def heard(client):
    """All events that came, in their order."""
    return [message for message in client.lines if "id" not in message]


def settle(client):
    """Until everything that was sent before is here."""
    client.call("Ping")
    client.drain(0.1)


def refusal(client, number):
    """The error that a request sent before is answered with."""
    try:
        result = client.wait_reply(number)
    except ProfdError as error:
        return error
    raise AssertionError("request %d did not fail but returned %r" % (number, result))


def test_a_subscriber_hears_what_others_do():
    with Daemon() as daemon:
        doer, watcher = daemon.connect(), daemon.connect()
        subscription = watcher.call("Subscribe")
        assert subscription["snapshot"] == {"processes": [], "captures": []} and not subscription["gap"], subscription
        doer.call("LaunchProcess", argv=["sh", "-c", "echo hello; exit 3"], build_id="mine")
        for client in (doer, watcher):
            assert client.wait_event("ProcessExited", build_id="mine")["exit_code"] == 3
            assert names(heard(client)) == ["ProcessStarted", "ProcessOutput", "ProcessExited"], heard(client)
        assert heard(doer) == heard(watcher)
        first = heard(watcher)[0]["params"]["seq"]
        assert first >= subscription["next_seq"]
        watcher.call("Unsubscribe", subscription_id=subscription["subscription_id"])
        doer.call("LaunchProcess", argv=["true"], build_id="other")
        doer.wait_event("ProcessExited", build_id="other")
        settle(watcher)
        assert len(heard(watcher)) == 3, heard(watcher)
        error = watcher.fails("Unsubscribe", subscription_id=subscription["subscription_id"])
        assert error.code == "bad_params" and subscription["subscription_id"] in error.message, error.message


def test_whoever_launched_hears_of_the_end_of_captures_that_others_began():
    with Daemon() as daemon:
        launcher, other = daemon.connect(), daemon.connect()
        launcher.call("LaunchProcess", argv=["sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"], build_id="mine", hold=True)
        begun = other.call("StartSamplingProfile", build_id="mine")["capture_id"]
        launcher.call("ResumeProcess", build_id="mine")
        launcher.wait_event("ProcessExited", build_id="mine")
        for client in (launcher, other):
            assert client.wait_event("SamplingProfileFinished", capture_id=begun)["reason"] == "target_exited"
        # Of the next build of that name it has not asked to hear.
        other.call("LaunchProcess", argv=["true"], build_id="mine")
        other.wait_event("ProcessExited", build_id="mine")
        settle(launcher)
        assert names(heard(launcher)).count("ProcessExited") == 1, names(heard(launcher))


def test_filters_by_name_build_and_capture():
    with Daemon() as daemon:
        doer = daemon.connect()
        ends, ours, every = daemon.connect(), daemon.connect(), daemon.connect()
        ends.call("Subscribe", events=["ProcessExited"])
        ours.call("Subscribe", build_id=7)
        for _ in range(3):
            every.call("Subscribe")  # each event comes once all the same
        doer.call("LaunchProcess", argv=["true"], build_id="6")
        doer.wait_event("ProcessExited", build_id="6")
        doer.call("LaunchProcess", argv=["sh", "-c", "echo x"], build_id="7", profile={"hz": 100})
        doer.wait_event("ProcessExited", build_id="7")
        doer.wait_event("SamplingProfileFailed")
        for client in (ends, ours, every):
            settle(client)
        assert names(heard(ends)) == ["ProcessExited"] * 2, heard(ends)
        assert {event["params"].get("build_id") for event in heard(ours)} == {"7"}, heard(ours)
        assert {"ProcessStarted", "ProcessOutput", "ProcessExited", "SamplingProfileFailed"} <= set(names(heard(ours)))
        numbers = [event["params"]["seq"] for event in heard(every)]
        assert numbers == sorted(set(numbers)), numbers
        capture = doer.call("ListCaptures")["captures"][0]["capture_id"]
        late = daemon.connect()
        snapshot = late.call("Subscribe", capture_id=capture)["snapshot"]
        assert [record["capture_id"] for record in snapshot["captures"]] == [capture] and snapshot["processes"] == []
        snapshot = late.call("Subscribe", build_id=6)["snapshot"]
        assert [record["build_id"] for record in snapshot["processes"]] == ["6"] and snapshot["captures"] == []


def test_a_snapshot_has_what_is_there_now():
    with Daemon() as daemon:
        doer, watcher = daemon.connect(), daemon.connect()
        running = doer.call("LaunchProcess", argv=BUSY, stdio="null", profile={})
        held = doer.call("LaunchProcess", argv=["true"], hold=True)
        subscription = watcher.call("Subscribe")
        states = {record["build_id"]: record["state"] for record in subscription["snapshot"]["processes"]}
        assert states == {running["build_id"]: "running", held["build_id"]: "held"}, states
        captures = subscription["snapshot"]["captures"]
        assert [(record["capture_id"], record["state"]) for record in captures] == [(running["capture_id"], "sampling")], captures
        doer.call("StopProcess", build_id=running["build_id"])
        finished = watcher.wait_event("SamplingProfileFinished")
        assert finished["capture_id"] == running["capture_id"] and finished["seq"] >= subscription["next_seq"]
        # A capture that has ended is no news; ListCaptures has it.
        assert daemon.connect().call("Subscribe")["snapshot"]["captures"] == []


def test_a_snapshot_that_fits_no_line_comes_in_pages():
    with Daemon() as daemon:
        doer, watcher = daemon.connect(), daemon.connect()
        argv = ["sleep", "60"] + ["x" * 3900]
        for number in range(40):
            doer.call("LaunchProcess", argv=["sh", "-c", "exec sleep 60", "x" * 3900], stdio="null", build_id=str(number))
        doer.call("StartSamplingProfile", build_id="39")
        page = watcher.call("Subscribe")
        subscription = page["subscription_id"]
        builds = [record["build_id"] for record in page["snapshot"]["processes"]]
        captures = list(page["snapshot"]["captures"])
        pages = 1
        while "next_cursor" in page:
            error = doer.fails("Subscribe", cursor=page["next_cursor"])
            assert error.code == "bad_params" and "cursor" in error.message
            page = watcher.call("Subscribe", cursor=page["next_cursor"])
            assert page["subscription_id"] == subscription
            builds += [record["build_id"] for record in page["snapshot"]["processes"]]
            captures += page["snapshot"]["captures"]
            pages += 1
        assert builds == [str(number) for number in range(40)], builds
        assert len(captures) == 1 and pages > 2, (len(captures), pages)
        for cursor in ("x", "0/p/", subscription + "/q/", subscription + "/c/x", subscription + "/p/1.", "99/c/"):
            assert watcher.fails("Subscribe", cursor=cursor).code == "bad_params", cursor


def test_what_was_missed_is_sent_again():
    with Daemon() as daemon:
        doer = daemon.connect()
        instance = doer.call("Hello", client="test")["instance_id"]
        for number in range(5):
            doer.call("LaunchProcess", argv=["sh", "-c", "echo x"], build_id=str(number))
            doer.wait_event("ProcessExited", build_id=str(number))
        kept = [event for event in heard(doer) if event["method"] != "ProcessOutput"]
        seen = kept[3]["params"]["seq"]
        late = daemon.connect()
        reply = late.call("Subscribe", since_seq=seen, instance_id=instance)
        assert reply["gap"] is False
        doer.call("LaunchProcess", argv=["true"], build_id="new")
        late.wait_event("ProcessExited", build_id="new")
        doer.wait_event("ProcessExited", build_id="new")
        kept = [event for event in heard(doer) if event["method"] != "ProcessOutput"]
        assert [event for event in heard(late) if event["method"] != "ProcessOutput"] == kept[4:], heard(late)
        # Another daemon's number: everything of this one, and that there is a gap.
        other = daemon.connect()
        reply = other.call("Subscribe", since_seq=100000, instance_id="0" * 32, events=["ProcessStarted"])
        assert reply["gap"] is True
        settle(other)
        assert [event["params"]["build_id"] for event in heard(other)] == ["0", "1", "2", "3", "4", "new"], heard(other)
        assert late.fails("Subscribe", since_seq=1).detail == "missing_parameter"
        error = late.fails("Subscribe", since_seq=1 << 40, instance_id=instance)
        assert error.code == "bad_params" and str(1 << 40) in error.message


def test_a_gap_is_told_when_too_much_was_missed():
    with Daemon() as daemon:
        doer = daemon.connect()
        instance = doer.call("Hello", client="test")["instance_id"]
        doer.call("LaunchProcess", argv=["true"], build_id="first", subscribe=False)
        # 2 events each: 4,096 are kept.
        for number in range(2100):
            doer.call("LaunchProcess", argv=["true"], stdio="null", subscribe=False)
            if number % 32 == 31:
                wait_until(lambda: doer.call("GetStatus")["builds"] == 0, 20, "the end of the programs")
        wait_until(lambda: doer.call("GetStatus")["builds"] == 0, 20, "the end of the programs")
        late = daemon.connect()
        reply = late.call("Subscribe", since_seq=0, instance_id=instance)
        assert reply["gap"] is True
        while "next_cursor" in reply:
            reply = late.call("Subscribe", cursor=reply["next_cursor"])
        late.drain(0.2)
        assert len(heard(late)) == 4096, len(heard(late))
        numbers = [event["params"]["seq"] for event in heard(late)]
        assert numbers == list(range(numbers[0], numbers[0] + 4096))
        again = late.call("Subscribe", since_seq=numbers[0] - 1, instance_id=instance)
        assert again["gap"] is False


def test_as_many_subscriptions_as_the_limit():
    with Daemon() as daemon:
        client = daemon.connect()
        ids = [client.call("Subscribe", build_id=str(number))["subscription_id"] for number in range(64)]
        assert len(set(ids)) == 64
        error = client.fails("Subscribe")
        assert (error.code, error.detail) == ("limit_exceeded", "subscriptions")
        client.call("Unsubscribe", subscription_id=ids[5])
        client.call("Subscribe")
        daemon.connect().call("Subscribe")


def test_cancel_ends_waiting_and_nothing_else():
    with Daemon() as daemon:
        client, other = daemon.connect(), daemon.connect()
        launched = client.call("LaunchProcess", argv=BUSY, stdio="null", profile={})
        waiting = client.send("WaitCapture", capture_id=launched["capture_id"])
        assert other.call("Cancel", request_id=waiting) == {"cancelled": False}  # another connection's
        assert client.call("Cancel", request_id="no such") == {"cancelled": False}
        assert client.call("Cancel", request_id=waiting) == {"cancelled": True}
        error = refusal(client, waiting)
        assert error.code == "cancelled", error
        assert client.call("Cancel", request_id=waiting) == {"cancelled": False}
        # The stop itself goes on.
        hard = client.call("LaunchProcess", argv=["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done"])
        client.wait_event("ProcessOutput", build_id=hard["build_id"])
        stopping = client.send("StopProcess", build_id=hard["build_id"], grace_ms=300)
        assert client.call("Cancel", request_id=stopping) == {"cancelled": True}
        assert refusal(client, stopping).code == "cancelled"
        assert client.wait_event("ProcessExited", build_id=hard["build_id"])["signal"] == "SIGKILL"
        assert client.call("GetCapture", capture_id=launched["capture_id"])["state"] == "sampling"
        client.call("StopCapture", capture_id=launched["capture_id"])


def test_a_repeated_request_key_gives_the_first_result():
    with Daemon() as daemon:
        client, other = daemon.connect(), daemon.connect()
        params = dict(argv=BUSY, stdio="null", profile={"hz": 100}, request_key="one")
        first = client.call("LaunchProcess", **params)
        assert client.call("LaunchProcess", **params) == first
        # Another connection, as after a reconnect: it hears of it from now on.
        assert other.call("LaunchProcess", **params) == first
        assert len(client.call("ListProcesses")["processes"]) == 1
        error = client.fails("LaunchProcess", **dict(params, argv=["true"]))
        assert (error.code, error.detail) == ("bad_params", "request_key_reused") and "one" in error.message
        # The key is that of the method.
        extra = client.call("LaunchProcess", argv=BUSY, stdio="null")
        start = dict(build_id=extra["build_id"], request_key="one")
        capture = client.call("StartSamplingProfile", **start)
        assert client.call("StartSamplingProfile", **start)["capture_id"] == capture["capture_id"]
        assert client.fails("StartSamplingProfile", build_id=extra["build_id"]).code == "capture_busy"
        client.call("StopProcess", build_id=first["build_id"])
        assert other.wait_event("ProcessExited")["build_id"] == first["build_id"]
        # Also after its end.
        assert client.call("LaunchProcess", **params) == first
        assert client.fails("LaunchProcess", argv=["true"], profile={"request_key": "x"}).detail == "unknown_parameter"


def test_a_repeated_request_that_is_not_answered_yet_waits_for_it():
    with Daemon() as daemon:
        first, second = daemon.connect(), daemon.connect()
        params = dict(argv=["sleep", "30"], stdio="null", request_key="same")
        os.kill(daemon.process.pid, signal.SIGSTOP)
        sent = [(client, client.send("LaunchProcess", **params)) for client in (first, first, second)]
        os.kill(daemon.process.pid, signal.SIGCONT)
        results = [client.wait_reply(number) for client, number in sent]
        assert results[0] == results[1] == results[2], results
        assert len(first.call("ListProcesses")["processes"]) == 1


def test_a_client_that_vanished_gets_the_result_when_it_comes_back():
    with Daemon() as daemon:
        lost = daemon.connect()
        params = dict(argv=["sleep", "30"], stdio="null", request_key="lost")
        os.kill(daemon.process.pid, signal.SIGSTOP)
        lost.send("LaunchProcess", **params)
        lost.close()
        os.kill(daemon.process.pid, signal.SIGCONT)
        back = daemon.connect()
        result = back.call("LaunchProcess", **params)
        assert [record["build_id"] for record in back.call("ListProcesses")["processes"]] == [result["build_id"]]


def test_a_failure_is_not_remembered():
    with Daemon() as daemon:
        client = daemon.connect()
        path = os.path.join(daemon.root, "late")
        params = dict(argv=[path], request_key="retry")
        assert client.fails("LaunchProcess", **params).code == "launch_failed"
        with open(path, "w") as file:
            file.write("#!/bin/sh\nexit 5\n")
        os.chmod(path, 0o755)
        client.call("LaunchProcess", **params)
        assert client.wait_event("ProcessExited")["exit_code"] == 5


if __name__ == "__main__":
    main(globals())
