"""However a program or a duration ends, the profile holds the CPU time until then."""
import os
import re
import signal
import time

from harness import Daemon, Gate, capture_end, main, target, wait_until
from profiles import finished, launch, near, process_clock_ns, record


def test_a_program_that_ends_early_leaves_its_profile():
    with Daemon() as daemon:
        client = daemon.connect()
        for how, code, name in [("0", 0, None), ("3", 3, None), ("crash", None, "SIGSEGV")]:
            profile = record(client, [target("steady"), "150", how], duration_ms=60000)
            assert profile.params["reason"] == "target_exited"
            assert (profile.exited["exit_code"], profile.exited["signal"]) == (code, name), profile.exited
            assert (profile.data["target"]["exit_code"], profile.data["target"]["signal"]) == (code, name), profile.data["target"]
            assert near(profile.self_count("steady_work"), 150), profile.self_frames()
            profile.stands_below("steady_work", ("main",))


def test_a_program_that_is_killed_leaves_its_profile():
    with Daemon() as daemon:
        client = daemon.connect()
        launched = launch(client, [target("steady"), "3600000", "0"])
        wait_until(lambda: process_clock_ns(launched["pid"]) > 300e6, 60, "some CPU time")
        os.kill(launched["pid"], signal.SIGKILL)
        profile = finished(client, launched["capture_id"])
        assert profile.params["reason"] == "target_exited"
        assert client.wait_event("ProcessExited")["signal"] == "SIGKILL"
        assert profile.self_count("steady_work") > 200
        samples = profile.data["samples"]
        assert abs(samples["sampled_ns"] - samples["cpu_time_ns"]) < 0.1 * samples["cpu_time_ns"], samples


def test_the_end_of_the_duration_is_not_the_end_of_the_program():
    with Daemon() as daemon:
        client = daemon.connect()
        launched = launch(client, [target("steady"), "1000", "7"], {"duration_ms": 400})
        profile = finished(client, launched["capture_id"])
        assert profile.params["reason"] == "duration" and profile.count > 20
        assert profile.data["samples"]["sampled_ns"] < 600e6, profile.data["samples"]
        assert 400 <= profile.params["summary"]["duration_ms"] < 600, profile.params["summary"]
        assert client.call("GetProcess", build_id=launched["build_id"])["state"] == "running"
        assert client.wait_event("ProcessExited", timeout=60)["exit_code"] == 7


def behind_a_late_daemon(argv, stopped_s, **options):
    """A capture of a program behind a gate that goes while the daemon is stopped: when it went, and the final record."""
    with Daemon() as daemon, Gate(daemon, argv) as gate:
        client = daemon.connect()
        capture_id = client.call("StartSamplingProfile", pid=gate.pid, **options)["capture_id"]
        daemon.process.send_signal(signal.SIGSTOP)
        went = time.time()
        gate.go()
        time.sleep(stopped_s)
        daemon.process.send_signal(signal.SIGCONT)
        return went, client.call("WaitCapture", capture_id=capture_id)


def test_time_counts_from_the_program_s_beginning_however_late_it_is_noticed():
    went, record = behind_a_late_daemon([target("steady"), "3600000", "0"], 0.2, duration_ms=400)
    assert abs(record["started_unix_us"] / 1e6 - went) < 0.05, (record["started_unix_us"], went)
    assert 400 <= record["summary"]["duration_ms"] < 500 and record["ended_unix_us"] / 1e6 - went < 0.55, (record, went)
    assert record["samples"] > 150, record["samples"]
    # A program that was over before anybody looked.
    went, record = behind_a_late_daemon([target("steady"), "50", "0"], 0.5)
    assert abs(record["started_unix_us"] / 1e6 - went) < 0.05, (record["started_unix_us"], went)
    assert record["samples"] > 40 and record["summary"]["duration_ms"] >= 50, record


def test_a_capture_without_samples_says_why():
    with Daemon() as daemon:
        client = daemon.connect()
        launched = launch(client, ["true"], {"hz": 10})
        method, params = capture_end(client, launched["capture_id"])
        error = params["error"]
        assert method == "SamplingProfileFailed" and error["data"]["code"] == "no_samples", params
        assert error["data"]["detail"] == "target_exited" and "hz" in error["data"]["hint"], error
        exited = client.wait_event("ProcessExited")
        said = re.search(r"([0-9.]+) ms of CPU time.*period of 100\.0 ms", error["message"])
        assert said, error["message"]
        # The kernel's account of the process has the gate's time in it too.
        assert 0 < float(said[1]) < (exited["user_us"] + exited["system_us"]) / 1000 + 5, (error, exited)
        assert client.call("GetCapture", capture_id=launched["capture_id"])["state"] == "failed"
        launched = launch(client, ["sleep", "60"], {"hz": 10, "duration_ms": 300})
        method, params = capture_end(client, launched["capture_id"])
        assert method == "SamplingProfileFailed" and params["error"]["data"]["code"] == "no_samples", params
        assert params["error"]["data"]["detail"] == "idle", params
        client.call("StopProcess", build_id=launched["build_id"])


if __name__ == "__main__":
    main(globals())
