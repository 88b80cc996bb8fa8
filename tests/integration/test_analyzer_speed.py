"""The time until the analyzer has its first artifact."""
import os
import time

from analyzers import Analyzer
from harness import SANITIZED, main, program, skip
from journals import BASE, NATIVE, small


def test_is_fast_for_an_ordinary_capture():
    if SANITIZED:
        skip("the sanitizers slow everything down")
    journal = small()
    for number in range(1, 401):
        journal.stack(number, 10, [(BASE + 0x1000 + (number * 7919 + depth * 104729) % 0xf000, NATIVE) for depth in range(30)])
    for number in range(5500):
        journal.sample(10, number % 400 + 1)
    data, best = journal.end(), 1000
    for _ in range(5):
        analyzer = Analyzer(data)
        analyzer.image(1, program("profd-analyzer"))
        began = time.monotonic()
        analyzer.send({"type": "finish"})
        while os.path.getsize(analyzer.path("folded")) == 0 and time.monotonic() - began < 10:
            pass
        best = min(best, (time.monotonic() - began) * 1000)
        assert analyzer.receive()["type"] == "done"
        analyzer.stop()
    print("# folded after %.1f ms" % best)
    assert best < 200, best


if __name__ == "__main__":
    main(globals())
