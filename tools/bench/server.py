#!/usr/bin/env python3
"""What the socket takes: requests a second, the latency of one while a program is sampled, a hundred thousand connections, and
whether a subscriber that never reads costs the others anything.

  PROFD_BUILD_DIR=build tools/bench/server.py [CYCLES]     100000 connections by default

Uses the tests' harness and bench-requests; build a release with `ninja tools/bench/bench-requests`.
"""
import os
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "support"))
from harness import BUILD, Daemon  # noqa: E402

BENCH = os.path.join(BUILD, "tools", "bench", "bench-requests")
ROUNDS = 5


def measure(*args):
    text = subprocess.run([BENCH, *[str(arg) for arg in args]], capture_output=True, text=True, check=True, timeout=600).stdout
    return [float(word) for word in text.split()]


def pipelined(daemon):
    rates = [measure("pipelined", daemon.socket_path, 100000)[0] for _ in range(ROUNDS)]
    print("pipelined requests a second, one client: median %.0f of %d rounds (min %.0f)" %
          (statistics.median(rates), ROUNDS, min(rates)))


def latency(daemon):
    client = daemon.connect()
    times = measure("latency", daemon.socket_path, 5000)
    print("Ping, one outstanding: median %.1f us, 95 %% %.1f, 99 %% %.1f" % tuple(times[:3]))
    client.call("LaunchProcess", argv=["sh", "-c", "while :; do :; done"], stdio="null", build_id="busy", profile={"hz": 999})
    times = measure("latency", daemon.socket_path, 5000)
    print("  while a one-thread program is sampled at 999 Hz: median %.1f us, 95 %% %.1f, 99 %% %.1f" % tuple(times[:3]))
    client.call("StopProcess", build_id="busy")
    client.wait_event("SamplingProfileFinished")
    client.close()


def cycles(daemon, count):
    measure("cycles", daemon.socket_path, 1000)
    before = (daemon.descriptors(), daemon.status("RssAnon"))
    rate = measure("cycles", daemon.socket_path, count)[0]
    after = (daemon.descriptors(), daemon.status("RssAnon"))
    print("%d connections, one request each: %.0f a second; descriptors %s; RssAnon %d KiB before, %d after" %
          (count, rate, "as before" if before[0] == after[0] else "%s, then %s" % (before[0], after[0]), before[1], after[1]))


def subscribers(daemon):
    with_mute, without = [], []
    for _ in range(ROUNDS):
        without.append(measure("subscribers", daemon.socket_path, 62, 0))
        with_mute.append(measure("subscribers", daemon.socket_path, 63, 1))
    for name, at in (("median", 0), ("95 %", 1)):
        alone = statistics.median(times[at] for times in without)
        beside = statistics.median(times[at] for times in with_mute)
        print("1,000 events a second to 62 subscribers, %s: %.1f us; with one more that never reads %.1f us (%+.1f %%)" %
              (name, alone, beside, 100 * (beside / alone - 1)))


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100000
    with Daemon() as daemon:
        pipelined(daemon)
        latency(daemon)
        cycles(daemon, count)
        subscribers(daemon)


if __name__ == "__main__":
    main()
