#!/usr/bin/env python3
"""What the Vulkan layer costs a program that submits: CPU of its submitting thread, without the layer, with it where profd is not there,
armed and idle, and with RenderDoc below it.

  PROFD_BUILD_DIR=build tools/bench/gpu.py [ROUNDS]     9 rounds by default

Uses the tests' listener in profd's place; build a release. Command buffers are empty, so that only the call is measured: first without a
pause, then 10,000 times a second, where the thread's sleeping and waking is most of it; last without a pause and each waiting for the one before
it, by a timeline semaphore.
"""
import os
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "support"))
from gpu_listener import Listener, frames_program, need  # noqa: E402
from harness import target  # noqa: E402

RATE = 10000
SUBMITS = {0: 200000, RATE: 10000}
CHAINED = 20000
WAYS = ("without", "profd away", "armed", "with RenderDoc")


def environment(listener, way):
    env = listener.environment(renderdoc=way == "with RenderDoc")
    if way == "profd away":
        env["PROFD_GPU_SOCKET"] = listener.out("nobody")
    return {key: value for key, value in env.items() if way != "without" or not key.startswith("PROFD_GPU")}


def cost_us(way, rate):
    """CPU of one submit."""
    with Listener() as listener:
        program = listener.run(frames_program("--idle-submits", SUBMITS[rate], "--rate", rate), environment(listener, way))
        if way in ("armed", "with RenderDoc"):
            connection = listener.accept()
            connection.wait("hello")
            connection.send("status")
            connection.drain(timeout=60)
        words = program.communicate()[0].split()
        return int(words[words.index("thread_cpu_us") + 1]) / SUBMITS[rate]


def chained_us(way):
    """The same where each waits for the one before it."""
    with Listener() as listener:
        program = subprocess.Popen([target("gpu_waits")], env=environment(listener, way), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        listener.programs.append(program)
        if way in ("armed", "with RenderDoc"):
            connection = listener.accept()
            connection.wait("hello")
            connection.send("status")
        return int(program.communicate("chain %d\n" % CHAINED)[0].split()[0]) / 1000


def tell(what, way, costs):
    more = statistics.median(costs[way]) - statistics.median(costs["without"])
    print("%s %-15s %6.2f µs a submit (%.2f to %.2f), %+.2f: %+.2f %% of a CPU at %d a second" % (
        what, way, statistics.median(costs[way]), min(costs[way]), max(costs[way]), more, more * RATE / 10000, RATE))


def measure(what, rounds, cost):
    costs = {way: [] for way in WAYS}
    for _ in range(rounds):
        for way in WAYS:
            costs[way].append(cost(way))
    for way in WAYS:
        tell(what, way, costs)


def main():
    need()
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    for rate in SUBMITS:
        measure("paced  " if rate else "unpaced", rounds, lambda way, rate=rate: cost_us(way, rate))
    measure("chained", rounds, chained_us)


main()
