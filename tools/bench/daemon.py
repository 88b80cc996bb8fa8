#!/usr/bin/env python3
"""What a real daemon costs: from the target's exit to capture.folded, memory idle and while sampling, wake-ups when idle,
lost samples with every CPU busy.

  PROFD_BUILD_DIR=build tools/bench/daemon.py [ROUNDS]     20 rounds by default

Uses the tests' harness; build a release. The target's exit is its own last look at the wall clock, the file's completion its
ctime (the rename is the last change), both of the same kernel clock.
"""
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "support"))
from harness import BUILD, Daemon  # noqa: E402

EXAMPLE = os.path.join(BUILD, "tools", "example", "profd-example")
SAMPLES = 5500


def anonymous_kib(daemon):
    return daemon.status("RssAnon")


def switches(daemon):
    """Context switches of all threads of the daemon."""
    total = 0
    folder = "/proc/%d/task" % daemon.process.pid
    for tid in os.listdir(folder):
        with open("%s/%s/status" % (folder, tid)) as file:
            total += sum(int(line.split()[1]) for line in file if "ctxt_switches" in line)
    return total


def measure(rounds):
    cpus = os.cpu_count()
    seconds = SAMPLES / 999.0 / min(cpus, 3)
    times, counts, lost = [], [], 0
    with Daemon() as daemon:
        client = daemon.connect()
        idle_kib = anonymous_kib(daemon)
        before = switches(daemon)
        time.sleep(3)
        woken = switches(daemon) - before
        busy_kib = 0
        for _ in range(rounds):
            result = client.call("LaunchProcess", argv=[EXAMPLE, "%.3f" % seconds, "--print-end"], profile={"hz": 999})
            time.sleep(seconds * 0.7)
            busy_kib = max(busy_kib, anonymous_kib(daemon))
            done = client.wait_event("SamplingProfileFinished", timeout=60, capture_id=result["capture_id"])
            ended_ns = int(client.wait_event("ProcessOutput", build_id=result["build_id"])["data"])
            times.append((os.stat(done["folded_path"]).st_ctime_ns - ended_ns) / 1e6)
            counts.append(done["samples"])
            lost += done["lost"]
        after_kib = anonymous_kib(daemon)
    print("exit to capture.folded: median %.1f ms of %d rounds (min %.1f, max %.1f), %d samples at the median" %
          (statistics.median(times), rounds, min(times), max(times), statistics.median(counts)))
    print("lost samples with every CPU busy: %d of %d" % (lost, sum(counts)))
    print("RssAnon: idle %d KiB, while sampling %d KiB, after %d captures %d KiB" % (idle_kib, busy_kib, rounds, after_kib))
    print("context switches in 3 idle seconds: %d" % woken)


def main():
    if not os.access(EXAMPLE, os.X_OK):
        sys.exit("daemon.py: %s is missing: set PROFD_BUILD_DIR to a release build" % EXAMPLE)
    measure(int(sys.argv[1]) if len(sys.argv) > 1 else 20)


main()
