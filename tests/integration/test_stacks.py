"""Threads and stacks are right, whenever they began and however deep they go."""
import os
import signal

from harness import Daemon, main, target, wait_until
from profiles import finished, names_at, near, record, text_of


def test_every_thread_has_its_name_and_functions_whenever_it_was_born():
    with Daemon() as daemon:
        client = daemon.connect()
        profile = record(client, [target("threads")])
        said = [line.split() for line in profile.output.splitlines()]
        assert [name for name, *_ in said] == ["worker-%d" % i for i in range(8)] + ["threads", "late"]
        assert profile.params["summary"]["threads"] == len(profile.data["threads"]) == 10
        assert {name for name, *_ in said} == {thread["name"] for thread in profile.data["threads"]}
        for name, cpu_ns, library, address in said:
            own = {stack: count for stack, count in profile.folded.items() if stack[0] == name}
            assert near(sum(own.values()), int(cpu_ns) / 1e6) or name == "threads", (name, own)
            outer, work = ("main", "work_main") if name == "threads" else ("run_worker", "work_" + name.replace("worker-", ""))
            # The function returns to the frame that it says itself; beyond that is how the thread was begun, which only call-frame information tells.
            names = names_at(library, int(address, 16) - 1) or {"[%s+%s]" % (os.path.basename(library), address)}
            whole = sum(count for stack, count in own.items() if len(stack) >= 4 and stack[-3] in names and stack[-2:] == (outer, work))
            assert whole >= 0.95 * profile.self_count(work) > 0, (name, names, own)
            assert profile.self_count(work) >= 0.85 * sum(own.values()) or name == "threads", own
            others = {frame for stack in own for frame in stack[1:] if frame.startswith("work_")} - {work}
            assert not others, (name, others)
        assert not profile.threads() - {name for name, *_ in said}


def test_a_recursion_has_as_many_frames_as_calls():
    with Daemon() as daemon:
        client = daemon.connect()
        profile = record(client, [target("recursion")])
        profile.stands_below("bottom", ("main", *["descend"] * 100))
        assert near(profile.self_count("bottom"), 300), profile.self_count("bottom")
        assert max(stack.count("descend") for stack in profile.folded) == 100
        # However often it stands in a stack, a sample counts once.
        total = next(function["total"] for function in profile.data["functions"] if function["function"] == "descend")
        assert total == profile.total_count("descend") <= profile.count
        cut = record(client, [target("recursion")], max_depth=10)
        assert max(len(stack) for stack in cut.folded) <= 11
        assert cut.params["summary"]["quality"]["truncated"] > 0.9, cut.params["summary"]
        cut.stands_below("bottom", tuple(["descend"] * 9))


def test_a_running_build_is_sampled_with_threads_from_before_and_after():
    with Daemon() as daemon:
        client = daemon.connect()
        launched = client.call("LaunchProcess", argv=[target("births")])
        text_of(client, launched["build_id"], b"up\n")
        effective = client.call("StartSamplingProfile", build_id=launched["build_id"])
        assert effective["state"] == "sampling", effective
        client.drain(0.4)
        os.kill(launched["pid"], signal.SIGUSR1)
        wait_until(lambda: len(os.listdir("/proc/%d/task" % launched["pid"])) == 3, what="the second thread")
        client.drain(0.6)
        final = client.call("StopCapture", capture_id=effective["capture_id"])
        assert final["state"] == "finished" and final["reason"] == "stopped", final
        assert client.call("GetProcess", build_id=launched["build_id"])["state"] == "running"
        profile = finished(client, effective["capture_id"])
        profile.stands_below("work_before", ("run_before",))
        profile.stands_below("work_after", ("run_after",))
        for name in ("before", "after"):
            own = {stack for stack in profile.folded if "work_" + name in stack}
            assert {stack[0] for stack in own} == {name}, own
        # Within 5 % of the CPU time since the start of the capture, by the kernel's clock from outside.
        samples = profile.data["samples"]
        assert abs(samples["sampled_ns"] - samples["cpu_time_ns"]) <= 0.05 * samples["cpu_time_ns"], samples
        again = client.call("StopCapture", capture_id=effective["capture_id"])
        assert again["samples"] == final["samples"]
        client.call("StopProcess", build_id=launched["build_id"], grace_ms=500)


def test_a_running_build_whose_first_thread_has_ended_is_sampled():
    with Daemon() as daemon:
        client = daemon.connect()
        launched = client.call("LaunchProcess", argv=[target("births"), "leave"])
        text_of(client, launched["build_id"], b"up\n")
        stat = "/proc/%d/stat" % launched["pid"]
        wait_until(lambda: open(stat).read().rsplit(")", 1)[1].split()[0] == "Z", what="the end of the first thread")
        effective = client.call("StartSamplingProfile", build_id=launched["build_id"])
        client.drain(0.5)
        client.call("StopCapture", capture_id=effective["capture_id"])
        profile = finished(client, effective["capture_id"])
        profile.stands_below("work_before", ("run_before",))
        client.call("StopProcess", build_id=launched["build_id"], grace_ms=500)


if __name__ == "__main__":
    main(globals())
