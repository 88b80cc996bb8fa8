"""Finished profiles, and the independent answers to compare them with: the program's own, the kernel's clocks, nm, addr2line."""
import collections
import functools
import json
import math
import os
import re
import subprocess
import time
import xml.parsers.expat

from harness import capture_end, output_bytes, read_folded, wait_until

HZ = 999


# The independent answers


@functools.lru_cache(maxsize=None)
def symbols(path):
    """The functions of an ELF file by nm: [(address, size, name)] with readable names, of both its tables."""
    found = []
    for table in ([], ["-D"]):
        said = subprocess.run(["nm", "-C", "-S", "--defined-only", *table, path], capture_output=True, text=True, errors="replace")
        for line in said.stdout.splitlines():
            match = re.match(r"([0-9a-f]+) (?:([0-9a-f]+) )?([A-Za-z]) (.*)", line)
            if match and match[3] in "tTwWiuV":
                name = re.sub(r"@@?[A-Za-z0-9_.]+$", "", match[4])
                found.append((int(match[1], 16), int(match[2] or "0", 16), name))
    return found


def names_at(path, address):
    """What nm knows at an address of a file: a set of names."""
    return {name for start, size, name in symbols(path) if start <= address < start + size}


def function_at(path, address):
    """The function by addr2line; what was inlined there stands before it."""
    said = subprocess.run(["addr2line", "-f", "-i", "-C", "-e", path, hex(address)], capture_output=True, text=True, check=True)
    return said.stdout.splitlines()[-2]


def process_clock_ns(pid):
    """clock_getcpuclockid, by hand: the kernel's clock of the CPU time of another process."""
    return time.clock_gettime_ns((~pid << 3) | 2)


def deviations(share, count, how_many=4):
    return how_many * math.sqrt(share * (1 - share) / count)


def near(count, ms, hz=HZ):
    """Whether so many samples are what so much CPU time gives, by 4 standard deviations and the begun period."""
    due = ms * hz / 1000
    return abs(count - due) <= 4 * math.sqrt(due) + 2


# Profiles


def text_of(client, build_id, end=b"", timeout=60):
    """What a program wrote, once it ends so."""
    def look():
        client.read_some(0.05)
        data = output_bytes([event for event in client.events if event["params"].get("build_id") == build_id])
        return data if data and data.endswith(end) else None
    return wait_until(look, timeout, "the word of the program")


class Profile:
    """A finished profile and its artifacts."""

    def __init__(self, params, files=None):
        self.params = params
        self.count = params["samples"]
        self.folded = read_folded(params["folded_path"])
        with open(params["metadata_path"]) as file:
            self.data = json.load(file)
        self.is_consistent()
        self.has_no_invented_names(files or {})

    def is_consistent(self):
        """The three artifacts and the event tell the same."""
        assert self.data["samples"]["period"] == self.data["effective"]["period_ns"]
        assert sum(self.folded.values()) == self.count == self.data["samples"]["count"]
        assert sum(thread["samples"] for thread in self.data["threads"]) == self.count
        assert sum(function["self"] for function in self.data["functions"]) == self.count
        assert self.data["samples"]["sampled_ns"] == self.count * self.data["samples"]["period"]
        self.adds_up()
        with open(self.params["svg_path"], "rb") as file:
            xml.parsers.expat.ParserCreate().ParseFile(file)
        for name, count in self.folded.items():
            assert count > 0, name

    def adds_up(self):
        """Each sample that should be there is accounted for; each that is there has one innermost place."""
        samples = self.data["samples"]
        assert samples["lost"] == sum(samples["lost_by_cause"].values())
        assert samples["expected"] == sum(
            samples[name] for name in ("count", "lost", "throttled", "not_permitted", "too_short", "unexplained")), samples
        for thread in self.data["threads"]:
            assert "expected" not in thread or thread["expected"] == sum(
                thread[name] for name in ("samples", "not_permitted", "too_short", "unexplained")), thread
        assert sum(image["self"] for image in self.data["images"]) + sum(samples["elsewhere"].values()) == self.count, samples

    def has_no_invented_names(self, files):
        """Each name of a native frame stands in a symbol table of a file that was mapped."""
        known = set()
        for image in self.data["images"]:
            path = files.get(os.path.basename(image["path"]), image["path"])
            if image["kind"] == "elf" and os.path.exists(path):
                known |= {name for _, _, name in symbols(path)}
        for function in self.data["functions"]:
            name = function["function"]
            if not function["kernel"] and not name.startswith("[") and function.get("image") != "vdso":
                assert name in known, name

    def self_count(self, name):
        return sum(count for stack, count in self.folded.items() if stack[-1] == name)

    def total_count(self, name):
        return sum(count for stack, count in self.folded.items() if name in stack)

    def self_frames(self):
        return collections.Counter({stack[-1]: self.self_count(stack[-1]) for stack in self.folded})

    def threads(self):
        return {stack[0] for stack in self.folded}

    def stands_below(self, name, below, share=0.97):
        """Nearly all samples of a function have that chain of callers (outermost first) right above it; a prologue may not."""
        found = sum(count for stack, count in self.folded.items() if stack[-1 - len(below):] == (*below, name))
        all_of_it = self.self_count(name)
        assert all_of_it > 0 and found >= share * all_of_it, (name, below, found, all_of_it)


def launch(client, argv, profile=None, **params):
    return client.call("LaunchProcess", argv=argv, profile=profile or {}, **params)


def finished(client, capture_id, files=None):
    method, params = capture_end(client, capture_id, 90)
    assert method == "SamplingProfileFinished", params
    return Profile(params, files)


def recorded(client, launched, files=None):
    """The Profile of a program that was launched, with the program's output and end."""
    result = finished(client, launched["capture_id"], files)
    result.exited = client.wait_event("ProcessExited", build_id=launched["build_id"])
    own = [event for event in client.events if event["params"].get("build_id") == launched["build_id"]]
    result.output = output_bytes(own).decode()
    result.errors = output_bytes(own, "stderr").decode()
    return result


def record(client, argv, files=None, **profile):
    """Runs a program to its end under a profile: see recorded()."""
    return recorded(client, launch(client, argv, profile), files)


def agrees_with_the_program(profile, said):
    """heavy() and light() have the shares that the program measured."""
    heavy, light = profile.self_count("heavy"), profile.self_count("light")
    share, own = heavy / (heavy + light), said["heavy_ns"] / (said["heavy_ns"] + said["light_ns"])
    assert 0.70 < own < 0.80, said
    assert abs(share - own) <= max(0.02, deviations(own, heavy + light)), (share, own, heavy, light)
    assert heavy + light >= 0.9 * profile.count, profile.self_frames().most_common(9)
    return heavy + light
