"""Where the samples are that should be there, in capture.json: against the program's own clocks and the kernel's."""
import json
import os
import signal
import time

from harness import Daemon, main, skip, target, wait_sampled, wait_until
from nobody import ordinary_user
from profiles import launch, process_clock_ns, record, recorded

MAX_RATE = "/proc/sys/kernel/perf_event_max_sample_rate"


def is_small(samples, share=0.03, more=5):
    """Whether what is unexplained is what a timer's chance and a hypervisor's theft make of it."""
    return abs(samples["unexplained"]) <= share * samples["expected"] + more


def test_each_thread_has_its_own_cpu_time():
    with Daemon() as daemon:
        profile = record(daemon.connect(), [target("threads")])
        samples, period = profile.data["samples"], profile.data["samples"]["period"]
        said = {line.split()[0]: int(line.split()[1]) for line in profile.output.splitlines()}
        told = {thread["name"]: thread for thread in profile.data["threads"]}
        assert len(said) == 10 and set(said) == set(told), (said, told)
        for name, cpu_ns in said.items():
            thread = told[name]
            # Up to a second before its end by the kernel, then by its samples: they differ by chance.
            assert abs(thread["cpu_time_ns"] - cpu_ns) <= 0.1 * cpu_ns + 10 * period, (thread, cpu_ns)
            assert thread.get("cpu_time_estimated_ns", 0) <= thread["cpu_time_ns"], thread
            assert abs(thread["expected"] - cpu_ns / period) <= 0.1 * thread["expected"] + 10, (thread, cpu_ns)
        assert sum(thread["cpu_time_ns"] for thread in profile.data["threads"]) <= 1.02 * samples["cpu_time_ns"]
        assert is_small(samples), samples
        assert samples["cpu_user_ns"] + samples["cpu_system_ns"] == samples["cpu_time_ns"]


def test_threads_that_are_alive_at_the_end_are_known_to_it():
    with Daemon() as daemon:
        client = daemon.connect()
        build = client.call("LaunchProcess", argv=[target("births")], stdio="null")
        clock = lambda tid: int(open("/proc/%d/task/%d/schedstat" % (build["pid"], tid)).read().split()[0])
        time.sleep(0.3)  # before the capture: not to be counted
        begin = {int(tid): clock(int(tid)) for tid in os.listdir("/proc/%d/task" % build["pid"])}
        started = client.call("StartSamplingProfile", build_id=build["build_id"])
        wait_until(lambda: client.call("GetCapture", capture_id=started["capture_id"])["samples"] > 300, 20, "300 samples")
        client.call("StopCapture", capture_id=started["capture_id"])
        end = {tid: clock(tid) for tid in begin}
        with open(client.call("GetCapture", capture_id=started["capture_id"])["metadata_path"]) as file:
            data = json.load(file)
        client.call("StopProcess", build_id=build["build_id"], grace_ms=0)
        told = {thread["tid"]: thread for thread in data["threads"]}
        busy = max(begin, key=lambda tid: end[tid] - begin[tid])
        # It went on for some milliseconds before and behind.
        assert end[busy] - begin[busy] - 60e6 <= told[busy]["cpu_time_ns"] <= end[busy] - begin[busy] + 10e6, (begin, end, told)
        assert "cpu_time_estimated_ns" not in told[busy] or told[busy]["cpu_time_estimated_ns"] < 5e6, told
        assert is_small(data["samples"]), data["samples"]


def test_time_in_the_kernel_that_may_not_be_sampled_is_counted():
    with open("/proc/sys/kernel/perf_event_paranoid") as file:
        if int(file.read()) < 2:
            skip("an ordinary user may sample the kernel here (kernel.perf_event_paranoid)")
    user = ordinary_user()
    with Daemon(user=user) as daemon:
        client = daemon.connect()
        for argv in ([target("syscalls")], [target("shares"), "2", "300", "0"]):
            profile = record(client, argv)
            samples, period = profile.data["samples"], profile.data["samples"]["period"]
            system = profile.exited["system_us"] * 1000 / period  # by wait4(2)
            assert abs(samples["not_permitted"] - system) <= 0.05 * samples["expected"] + 5, (samples, profile.exited)
            assert is_small(samples, 0.05), samples
            assert abs(samples["cpu_system_ns"] - profile.exited["system_us"] * 1000) <= 0.05 * samples["cpu_time_ns"] + 8e6, samples
            if argv == [target("syscalls")]:
                thread = profile.data["threads"][0]
                assert samples["not_permitted"] > 0.7 * samples["expected"], samples
                assert thread["not_permitted"] == samples["not_permitted"] and thread["expected"] == samples["expected"], thread
                assert "perf_event_paranoid" in samples["hint"], samples
            else:
                assert samples["not_permitted"] < 0.1 * samples["expected"], samples


def test_threads_shorter_than_a_period_are_told_as_such():
    with Daemon() as daemon:
        client = daemon.connect()
        # 200 threads of 400 µs: less than a period each, 80 ms together.
        profile = record(client, [target("brief"), "200", "400", "300"])
        samples, said = profile.data["samples"], json.loads(profile.output)
        period = samples["period"]
        assert len(profile.data["threads"]) == 201
        seen = sum(thread["samples"] for thread in profile.data["threads"] if thread["tid"] != profile.params["pid"])
        due = said["brief_ns"] / period
        assert due > 79 and abs(samples["too_short"] + seen - due) <= 0.15 * due + 5, (samples, seen, due)
        assert samples["unseen_threads"] == sum(not thread["samples"] for thread in profile.data["threads"]) > 150
        assert is_small(samples), samples
        assert "higher hz" in samples["hint"], samples
        # At eight times the rate they are seen, and there is nothing to tell.
        profile = record(client, [target("brief"), "200", "400", "300"], hz=7999)
        samples = profile.data["samples"]
        assert samples["too_short"] <= 0.5 * 200 * 2 and samples["unseen_threads"] < 20, samples
        assert is_small(samples, 0.05), samples


def test_what_the_rings_could_not_hold_is_told_as_lost():
    with Daemon() as daemon:
        client = daemon.connect()
        launched = launch(client, [target("shares"), "1", "2500", "0"], {"hz": 19999})
        wait_sampled(client, launched["capture_id"])
        # Nobody empties the rings while it runs for so long: they are too small for that.
        until_ns = process_clock_ns(launched["pid"]) + 0.8e9
        assert until_ns < 2.4e9, "the daemon was slower than the program"
        os.kill(daemon.process.pid, signal.SIGSTOP)
        try:
            wait_until(lambda: process_clock_ns(launched["pid"]) > until_ns, 60, "0.8 s of CPU time")
        finally:
            os.kill(daemon.process.pid, signal.SIGCONT)
        profile = recorded(client, launched)
        samples = profile.data["samples"]
        assert samples["lost"] == samples["lost_by_cause"]["ring"] == profile.params["lost"] > 1000, samples
        assert is_small(samples, 0.05), samples
        assert "lost" in samples["hint"] and "ulimit -l" in samples["hint"], samples


def test_what_the_kernel_throttles_is_told():
    try:
        with open(MAX_RATE) as file:
            before = file.read()
        with open(MAX_RATE, "w") as file:
            file.write(before)
    except OSError as error:
        skip("the kernel's greatest rate cannot be changed here: %s" % error)
    if int(before) < 20000:
        skip("the kernel's greatest rate is already low: %s" % before)
    with Daemon() as daemon:
        client = daemon.connect()
        launched = launch(client, [target("shares"), "1", "600", "0"], {"hz": 19999})
        try:
            # A quarter of the samples that come in a tick; 99 or 999 Hz of others' are not touched.
            with open(MAX_RATE, "w") as file:
                file.write("5000")
            profile = recorded(client, launched)
        finally:
            with open(MAX_RATE, "w") as file:
                file.write(before)
        samples, cpu_ns = profile.data["samples"], json.loads(profile.output)["cpu_ns"]
        assert samples["throttle_events"] > 50 and samples["throttled"] > 0.4 * samples["expected"], samples
        # The events' clock stands still meanwhile: it is not what the program has consumed.
        assert -0.02 * cpu_ns <= samples["cpu_time_ns"] - cpu_ns <= 0.15 * cpu_ns, (samples, cpu_ns)
        assert is_small(samples, 0.15), samples
        assert "perf_event_max_sample_rate" in samples["hint"], samples
        assert "throttled" in {warning["code"] for warning in profile.data["warnings"]}


def test_every_sample_has_one_innermost_place():
    with Daemon() as daemon:
        client = daemon.connect()
        for kernel in (False, True):
            profile = record(client, [target("syscalls")], kernel=kernel)
            data = profile.data
            for image in data["images"]:
                assert 0 <= image["self"] <= image["samples"] <= image["frames"] and image["samples"] <= profile.count, image
                assert abs(image["share"] - image["samples"] / profile.count) < 0.0001, image
            own = next(image for image in data["images"] if image["path"] == target("syscalls"))
            # By the folded stacks: those of that program's functions that are innermost.
            names = {function["function"] for function in data["functions"] if function.get("image") == "syscalls"}
            assert own["self"] == sum(count for stack, count in profile.folded.items() if stack[-1] in names), own
            is_kernel = {function["function"] + "_[k]" for function in data["functions"] if function["kernel"]}
            assert data["samples"]["elsewhere"]["kernel"] == sum(
                count for stack, count in profile.folded.items() if stack[-1] in is_kernel), data["samples"]


if __name__ == "__main__":
    main(globals())
