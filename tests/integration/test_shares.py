"""Shares and sums are right: compared with what the program measured of itself, and with the kernel's clocks."""
import collections
import json
import os
import re
import shutil
import tempfile

from harness import Daemon, main, output_bytes, skip, target
from nobody import ordinary_user
from profiles import HZ, agrees_with_the_program, deviations, finished, function_at, launch, process_clock_ns, record
from profiles import recorded, symbols, text_of


def may_sample_the_kernel():
    """By perf_event_open(2): kernel.perf_event_paranoid below 2, CAP_SYS_ADMIN or CAP_PERFMON."""
    with open("/proc/sys/kernel/perf_event_paranoid") as file:
        paranoid = int(file.read())
    with open("/proc/self/status") as file:
        capabilities = int(next(line.split()[1] for line in file if line.startswith("CapEff:")), 16)
    return paranoid < 2 or capabilities & (1 << 21 | 1 << 38) != 0


def test_shares_agree_with_the_programs_own_clock_at_every_rate():
    with Daemon() as daemon:
        client = daemon.connect()
        # The long ones at the same time: each needs one processor, and neither takes from the other's profile.
        for at_once in [[(1, 2000, 999), (1, 2000, 99)], [(1, 1500, 4999)], [(3, 800, 999)]]:
            launched = [launch(client, [target("shares"), str(threads), str(ms), "0"], {"hz": hz}) for threads, ms, hz in at_once]
            for (threads, ms, hz), one in zip(at_once, launched):
                profile = recorded(client, one)
                count = agrees_with_the_program(profile, json.loads(profile.output))
                assert profile.data["effective"]["hz"] == hz
                assert count > 0.8 * threads * ms * hz / 1000, (threads, ms, hz, count)
                assert profile.params["reason"] == "target_exited" and profile.exited["exit_code"] == 0
                profile.stands_below("heavy", ("work",))
                profile.stands_below("light", ("work",))


def test_samples_times_period_are_the_kernels_cpu_time():
    with Daemon() as daemon:
        client = daemon.connect()
        launched = launch(client, [target("shares"), "2", "5000", "400"])
        said = json.loads(text_of(client, launched["build_id"], b"\n"))
        outside_ns = process_clock_ns(launched["pid"])
        profile = finished(client, launched["capture_id"])
        samples = profile.data["samples"]
        assert outside_ns > 10e9 and abs(outside_ns - said["cpu_ns"]) < 0.01 * outside_ns, (outside_ns, said)
        assert abs(samples["sampled_ns"] + samples["lost"] * samples["period"] - outside_ns) <= 0.05 * outside_ns, (samples, outside_ns)
        # The events' clock goes on while a hypervisor takes the processor away: more is no fault, less would be.
        assert -0.01 * outside_ns <= samples["cpu_time_ns"] - outside_ns <= 0.05 * outside_ns, (samples, outside_ns)
        assert abs(samples["period"] - 1e9 / HZ) < 2, samples
        agrees_with_the_program(profile, said)


def test_time_in_the_kernel_is_counted_and_shown_when_asked_for():
    if not may_sample_the_kernel():
        skip("kernel.perf_event_paranoid does not let us sample the kernel")
    with open("/proc/kallsyms") as file:
        known = {line.split()[2] for line in file if not line.startswith("0000000000000000 ")}
    if not known:
        skip("the kernel does not tell its symbols (kernel.kptr_restrict)")
    with Daemon() as daemon:
        client = daemon.connect()
        hidden = record(client, [target("syscalls")])
        shown = record(client, [target("syscalls")], kernel=True)
        for profile in (hidden, shown):
            cpu_ns = int(profile.output)
            assert abs(profile.data["samples"]["sampled_ns"] - cpu_ns) <= 0.1 * cpu_ns, (profile.data["samples"], cpu_ns)
            assert profile.total_count("read_zeros") >= 0.8 * profile.count, profile.self_frames()
        kernel = {function["function"] for function in shown.data["functions"] if function["kernel"]}
        assert kernel and not kernel - known, kernel - known
        assert not [function for function in hidden.data["functions"] if function["kernel"]]
        kernel = {name + "_[k]" for name in kernel}  # so that no name of the program can be meant
        inside = sum(count for stack, count in shown.folded.items() if kernel & set(stack)) / shown.count
        own = shown.exited["system_us"] / (shown.exited["user_us"] + shown.exited["system_us"])
        assert abs(inside - own) < 0.1, (inside, own)
        # Where a stack goes into the kernel it stays there: the caller is the function that made the call.
        for stack in shown.folded:
            first = next((i for i, name in enumerate(stack) if name in kernel), len(stack))
            assert all(name in kernel for name in stack[first:]), stack
        assert sum(count for stack, count in shown.folded.items()
                   if "read_zeros" in stack[:-1] and stack[stack.index("read_zeros") + 1] in kernel) >= 0.8 * shown.count * inside


def test_an_ordinary_user_gets_a_profile_of_user_space():
    user = ordinary_user()
    with open("/proc/sys/kernel/perf_event_paranoid") as file:
        paranoid = int(file.read())
    with Daemon(user=user) as daemon:
        client = daemon.connect()
        profile = record(client, [target("shares"), "1", "400", "0"], hz=1999)
        agrees_with_the_program(profile, json.loads(profile.output))
        profile.stands_below("heavy", ("work",))
        warnings = {warning["code"]: warning for warning in profile.data["warnings"]}
        assert profile.params["warnings"] == profile.data["warnings"]
        assert profile.data["effective"]["kernel_sampled"] == (paranoid < 2), profile.data["effective"]
        assert ("kernel_time_not_sampled" in warnings) == (paranoid >= 2), warnings
        if paranoid >= 2:
            assert "perf_event_paranoid" in warnings["kernel_time_not_sampled"]["hint"], warnings
            # What was not seen is told as what it is: most of this program's time is the kernel's.
            calls = record(client, [target("syscalls")])
            samples = calls.data["samples"]
            own = calls.exited["user_us"] / (calls.exited["user_us"] + calls.exited["system_us"])
            assert abs(samples["cpu_time_ns"] - int(calls.output)) < 0.05 * int(calls.output), (samples, calls.output)
            assert abs(samples["sampled_share"] - own) < 0.15 and "kernel" in samples["hint"], (samples, own)


def test_places_in_a_stripped_program_lead_to_its_functions():
    with Daemon() as daemon:
        client = daemon.connect()
        twin = target("shares")
        assert not symbols(target("shares_stripped")) or "heavy" not in {name for _, _, name in symbols(target("shares_stripped"))}
        profile = record(client, [target("shares_stripped"), "1", "500", "0"], hz=1999)
        said = json.loads(profile.output)
        counts = collections.Counter()
        for stack, count in profile.folded.items():
            places = [re.fullmatch(r"\[shares_stripped\+0x([0-9a-f]+)\]", frame) for frame in stack]
            if places[-1]:
                counts[function_at(twin, int(places[-1][1], 16))] += count
                # A caller's place is where it goes on: one byte before is the call.
                if counts and function_at(twin, int(places[-1][1], 16)) in ("heavy", "light") and places[-2]:
                    assert function_at(twin, int(places[-2][1], 16) - 1) == "work", stack
        share, own = counts["heavy"] / (counts["heavy"] + counts["light"]), said["heavy_ns"] / (said["heavy_ns"] + said["light_ns"])
        assert counts["heavy"] + counts["light"] >= 0.95 * profile.count, counts
        assert abs(share - own) <= max(0.02, deviations(own, profile.count)), (share, own)
        image = next(image for image in profile.data["images"] if image["path"].endswith("/shares_stripped"))
        assert image["unsymbolized"] > 0.9 and "stripped" in image["fix"], image
        assert profile.params["summary"]["quality"]["unsymbolized"] > 0.5


def test_a_program_that_was_deleted_or_replaced_keeps_its_names():
    for replacement, user in ((None, None), (target("recursion"), None), (None, ordinary_user())):
        with Daemon(user=user) as daemon, tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            client = daemon.connect()
            path, other = os.path.join(folder, "shares"), os.path.join(folder, "other")
            shutil.copy(target("shares"), path)
            if replacement:
                shutil.copy(replacement, other)
            launched = launch(client, [path, "1", "300", "0"], {"hz": 1999})
            if replacement:
                os.rename(other, path)
            else:
                os.unlink(path)
            profile = finished(client, launched["capture_id"], {"shares": target("shares"), "shares (deleted)": target("shares")})
            own = [event for event in client.events if event["params"].get("build_id") == launched["build_id"]]
            agrees_with_the_program(profile, json.loads(output_bytes(own)))
            profile.stands_below("heavy", ("work",))


if __name__ == "__main__":
    main(globals())
