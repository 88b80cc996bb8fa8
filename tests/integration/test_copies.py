"""Stacks without frame pointers, unwound from copies: chains that the program knows itself, copies that grow, cut stacks that are completed."""
import os
import shutil
import subprocess

from harness import Daemon, capture_end, main, output_bytes, skip, target
from profiles import near, record

HZ = 1999
CHAIN = ("main", "outer", "middle", "large", "leaf")


def share(profile, condition):
    return sum(count for stack, count in profile.folded.items() if condition(stack)) / profile.count


def is_whole(stack):
    return stack[-len(CHAIN):] == CHAIN and "[stitched]" not in stack


def test_a_program_without_frame_pointers_has_its_own_chain():
    with Daemon() as daemon:
        client = daemon.connect()
        for options in ({}, {"unwind": "auto"}, {"unwind": "dwarf"}):
            profile = record(client, [target("copies"), "small", "400"], hz=HZ, **options)
            small, _ = (int(word) for word in profile.output.split())
            assert profile.data["effective"]["unwinder"] == "dwarf"
            whole = sum(count for stack, count in profile.folded.items() if is_whole(stack))
            assert near(whole, small, HZ), (whole, small)
            assert share(profile, lambda stack: "leaf" in stack and not is_whole(stack[:stack.index("leaf") + 1])) == 0, profile.folded
            assert profile.data["quality"]["complete"] > 0.99, profile.data["quality"]
            # Nothing stands outside of the program's first function but what began it.
            outside = {stack[1] for stack in profile.folded if "main" in stack}
            assert outside <= {"_start"}, outside


def test_frame_pointers_do_not_lead_through_it():
    with Daemon() as daemon:
        client = daemon.connect()
        profile = record(client, [target("copies"), "small", "300"], hz=HZ, unwind="fp")
        assert profile.data["effective"]["unwinder"] == "fp"
        if share(profile, is_whole) > 0.5:
            skip("this compiler keeps frame pointers all the same")
        assert profile.data["quality"]["complete"] < 0.5, profile.data["quality"]


def test_copies_grow_when_too_many_stacks_are_longer():
    with Daemon() as daemon:
        client = daemon.connect()
        profile = record(client, [target("copies"), "grow", "800"], hz=HZ)
        _, large = (int(word) for word in profile.output.split())
        ends = profile.data["stacks"]["ends"]
        # Some are needed to see it, and those of a moment may be on their way.
        assert 5 <= ends["copy"] <= 0.15 * profile.count, ends
        assert share(profile, is_whole) > 0.85 and profile.data["quality"]["complete"] > 0.85, profile.folded
        assert near(sum(count for stack, count in profile.folded.items() if stack[-1] == "leaf"), large, HZ), (profile.folded, large)
        assert profile.data["samples"]["lost"] == 0, profile.data["samples"]


def test_cut_stacks_are_completed_with_the_only_callers_and_marked():
    with Daemon() as daemon:
        client = daemon.connect()
        stitched = record(client, [target("copies"), "mixed", "800"], hz=HZ)
        small, large = (int(word) for word in stitched.output.split())
        mark = ("outer", "middle", "[stitched]", "large", "leaf")
        marked = sum(count for stack, count in stitched.folded.items() if "[stitched]" in stack)
        assert all(stack[:stack.index("leaf") + 1][-5:] == mark for stack in stitched.folded if "[stitched]" in stack), stitched.folded
        assert all("main" in stack for stack in stitched.folded if "[stitched]" in stack), stitched.folded
        assert 0.9 * large * HZ / 1000 - 10 <= marked <= 1.1 * large * HZ / 1000 + 10, (marked, large)
        quality = stitched.data["quality"]
        assert abs(quality["stitched"] - marked / stitched.count) < 0.001 and quality["complete"] + quality["stitched"] <= 1, quality
        assert quality["complete"] < (small + 50) / (small + large), (quality, small, large)
        plain = record(client, [target("copies"), "mixed", "800"], hz=HZ, stitch=False)
        assert not [stack for stack in plain.folded if "[stitched]" in stack]
        assert plain.data["quality"]["stitched"] == 0 and plain.data["quality"]["truncated"] > 0.3, plain.data["quality"]
        remedy, = [remedy for remedy in plain.data["quality"]["remedies"] if remedy["what"] == "stack_copy"]
        assert remedy["share"] > 0.3 and "64 KiB" in remedy["message"], remedy


def test_what_has_other_callers_now_is_not_given_those_it_had():
    with Daemon() as daemon:
        client = daemon.connect()
        profile = record(client, [target("copies"), "other", "1000"], hz=HZ)
        small, large = (int(word) for word in profile.output.split())
        assert large > 8 * small > 0, (small, large)
        # All complete stacks with large() in them have the callers that it had before; those that are cut have the others.
        assert near(profile.total_count("outer"), small, HZ), (profile.folded, small)
        assert profile.data["quality"]["stitched"] < 0.01 and profile.data["quality"]["truncated"] > 0.8, profile.data["quality"]
        assert "stacks_cut" in [warning["code"] for warning in profile.params["warnings"]], profile.params["warnings"]


def test_a_program_with_musl_has_its_own_chain():
    if not shutil.which("musl-gcc"):
        skip("needs musl-gcc")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "targets", "copies.c")
    with Daemon() as daemon:
        client = daemon.connect()
        path = os.path.join(daemon.root, "copies_musl")
        for how in (["-static"], []):
            subprocess.run(["musl-gcc", "-std=gnu11", "-O2", "-fomit-frame-pointer", *how, source, "-o", path], check=True)
            profile = record(client, [path, "small", "300"], hz=HZ)
            small, _ = (int(word) for word in profile.output.split())
            assert near(sum(count for stack, count in profile.folded.items() if is_whole(stack)), small, HZ), (profile.folded, small)
            # musl has no call-frame information: what lies outside of main is told to end there, not invented.
            outside = {stack[1:-len(CHAIN)] for stack in profile.folded if is_whole(stack)}
            assert all(len(frames) <= 1 for frames in outside), outside
            ends = profile.data["stacks"]["ends"]
            assert ends["complete"] + ends["no_rule"] == profile.count, ends


def test_code_that_was_moved_to_memory_without_a_file_is_still_the_files():
    with Daemon() as daemon:
        client = daemon.connect()
        profile = record(client, [target("moved")], hz=HZ)
        assert profile.exited["exit_code"] == 0, profile.exited
        before, behind, other = (int(word) for word in profile.output.split())
        chain = ("main", "work", "outer", "middle", "leaf")
        whole = sum(count for stack, count in profile.folded.items() if stack[-len(chain):] == chain)
        assert near(whole, before + behind, HZ), (whole, before, behind, profile.folded)
        # What was put there afterwards is other code: it has no name, and callers that it does not lead to are not invented.
        strange = {stack: count for stack, count in profile.folded.items() if stack[-1].startswith("[anon")}
        assert near(sum(strange.values()), other, HZ), (strange, other)
        assert all(len(stack) == 2 for stack in strange), strange


if __name__ == "__main__":
    main(globals())
