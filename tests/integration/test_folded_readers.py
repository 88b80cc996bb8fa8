"""capture.folded as other programs read it: a strict parser of the common grammar, and the ways in which five readers take a line
apart. All must find the same stacks."""
import os
import re
import subprocess
import tempfile

from harness import BUILD, main


SAME = ("large.folded", "flame.folded", "merged.folded", "names.folded") # what others have too, or long


def strict(data):
    """{path: count} by the rules that every reader shares; anything doubtful is a fault."""
    text = data.decode("utf-8")
    assert text == "" or text.endswith("\n"), "no line end at the end"
    lines = text.split("\n")[:-1]
    assert lines == sorted(lines, key=lambda line: line.rsplit(" ", 1)[0].encode()), "not sorted"
    stacks = {}
    for line in lines:
        assert len(line.encode()) < 65535 and not re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", line), repr(line[:200])
        stack, count = re.fullmatch(r"(.*[^ ]) ([1-9][0-9]*)", line).groups()
        frames = tuple(stack.split(";"))
        assert all(frame and frame == frame.strip() for frame in frames), repr(line[:200])
        assert not re.search(r"(^| )[0-9]+$", frames[-1]) or len(frames) == 1, "a second number: " + line[-80:]
        assert frames not in stacks, "twice: " + line[:200]
        stacks[frames] = int(count)
    return stacks


def flamegraph_pl(line):
    """stackcollapse's and flamegraph.pl's expression, applied twice: two numbers are a differential. Perl's split drops empty ends."""
    form = re.compile(r"^(.*)\s+?(\d+(?:\.\d*)?)$", re.ASCII)
    stack, count = form.match(line).groups()
    assert not form.match(stack), "taken for a differential: " + line[-80:]
    return stack.rstrip(";").split(";"), float(count)


def inferno(line):
    at = line.rindex(" ")
    stack, count = line[:at].rstrip(), line[at + 1:]
    assert re.fullmatch(r"[0-9]+(\.[0-9]*)?", count)
    assert not re.search(r" [0-9]+(\.[0-9]*)?$", stack), "taken for a differential: " + line[-80:]
    return stack.split(";"), int(count.split(".")[0])


def firefox(line):
    stack, count = re.fullmatch(r"(.*) (\d+)", line, re.ASCII).groups()
    return stack.split(";"), int(count)


def speedscope(line):
    stack, count = re.search(r"^(.*) (\d+)$", line, re.ASCII).groups()
    return stack.split(";"), int(count)


def perfetto(line):
    at = line.rindex(" ")
    return [frame for frame in line[:at].split(";") if frame], int(line[at + 1:])


def test_every_reader_finds_the_same_stacks():
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([os.path.join(BUILD, "tests", "unit", "test_svg"), "--write", folder], check=True)
        read = 0
        for name in sorted(name for name in os.listdir(folder) if name.endswith(".folded") and name not in SAME):
            with open(os.path.join(folder, name), "rb") as file:
                data = file.read()
            stacks = strict(data)
            for reader in (flamegraph_pl, inferno, firefox, speedscope, perfetto):
                found = {}
                for line in data.decode("utf-8").split("\n")[:-1]:
                    frames, count = reader(line)
                    found[tuple(frames)] = found.get(tuple(frames), 0) + count
                assert found == stacks, (name, reader.__name__)
            read += len(stacks)
        assert read > 1000, read


main(globals())
