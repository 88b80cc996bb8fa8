"""Broken and hostile ELF files, each read by the real analyzer in its real sandbox: none crashes it or holds it up, what stands beside them keeps its
names, and whatever their names are, the artifacts are harmless."""
import collections
import json
import os
import re
import tempfile
import time
import xml.etree.ElementTree

import broken_elves
from analyzers import Analyzer
from broken_elves import CODE_ADDRESS, CODE_BYTES, CODE_OFFSET, SYM_BYTES, SYMBOLS, Elf, symbol
from harness import main, read_folded
from journals import BASE, NATIVE, Journal

LONG = os.environ.get("PROFD_LONG") == "1"
STRIDE = 0x100000  # between the images in memory
SOUND = "sound"
LIMIT_S = 20  # for a whole batch, sanitizers included
# What a terminal may take for more than a letter. capture.folded is read in one.
CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f]")
ESCAPES = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")


def journal_of(count):
    """One process with so many images, "image0" and on, and one sample in the middle of each one's code."""
    journal = Journal()
    journal.process(10, "prog")
    journal.thread(10, 10, "prog")
    for number in range(count):
        start = BASE + number * STRIDE
        journal.image(number + 1, "/bin/image%d" % number)
        journal.mapping(10, start, CODE_BYTES, CODE_OFFSET, number + 1)
        journal.stack(number + 1, 10, [(start + 0x10, NATIVE)])
        journal.sample(10, number + 1)
    return journal.end()


def check_text(pattern, path):
    """The elements of a picture are looked at as they stand in the file: a reference to a control character is none."""
    with open(path, "rb") as file:
        text = file.read().decode("utf-8")
    found = pattern.search(text)
    assert not found, "a control character in %s: %r" % (path, text[max(0, found.start() - 40):found.end() + 40])
    return text


def check_harmless(analyzer):
    """No control character stands in an artifact, and of a name became no element of the picture."""
    check_text(CONTROLS, analyzer.path("folded"))
    json.loads(check_text(ESCAPES, analyzer.path("json")))
    elements = xml.etree.ElementTree.fromstring(check_text(ESCAPES, analyzer.path("svg")).encode()).iter()
    tags = collections.Counter(element.tag for element in elements)
    return {tag for tag in tags if not tag.endswith("}script")}, sum(tags[tag] for tag in tags if tag.endswith("}script"))


def analyze(images):
    """The frame of each of these images."""
    analyzer = Analyzer(journal_of(len(images)))
    began = time.monotonic()
    for number, data in enumerate(images):
        files = [data if isinstance(data, int) else analyzer.memory(data)]
        analyzer.send({"type": "image", "image": number + 1}, files)
    done = analyzer.finish()
    assert done is not None and done["type"] == "done", done
    assert time.monotonic() - began < LIMIT_S
    assert done["samples"] == len(images)
    elements = check_harmless(analyzer)
    frames = read_folded(analyzer.path("folded"))
    assert sum(frames.values()) == len(images), frames
    analyzer.stop()
    return frames, elements


def check_all(cases):
    """All of them in one analyzer, between two sound ones; alone only to find out which it was."""
    sound = Elf().data()
    expected = analyze([sound, b"", sound])[1]
    try:
        frames, elements = analyze([sound, *cases.values(), sound])
    except AssertionError:
        for name, data in cases.items():
            try:
                analyze([sound, data])
            except AssertionError as error:
                raise AssertionError("%s: %s" % (name, error)) from error
        raise
    assert frames[("prog", SOUND)] >= 2, frames
    assert elements == expected, (elements, expected)
    print("# %d files" % len(cases))
    return frames


def test_a_sound_one_is_read():
    assert list(analyze([Elf().data()])[0]) == [("prog", SOUND)]
    assert list(analyze([broken_elves.narrow()])[0]) == [("prog", "narrow")]


def test_files_that_are_cut():
    cases = broken_elves.cut()
    assert len(cases) > 50
    frames = check_all(cases)
    # Whole up to its last byte of headers and names, the code itself is not read.
    assert frames[("prog", SOUND)] > 2


def test_counts_that_cannot_be():
    check_all(broken_elves.extreme_counts())


def test_places_and_sizes_that_cannot_be():
    check_all(broken_elves.claims())


def test_other_classes_byte_orders_and_compression():
    frames = check_all(broken_elves.other_kinds())
    assert frames[("prog", "narrow")] == 1


def test_names_are_harmless():
    frames = check_all(broken_elves.strange_names())
    names = [stack[1] for stack in frames]
    assert max(map(len, names)) <= 64 * 1024, max(map(len, names))
    assert any("owned" in name for name in names) and any("m" * 1000 in name for name in names), [name[:40] for name in names]


def test_a_file_that_changes_while_it_is_read():
    """It is the target's: it may shrink to nothing between any two reads."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "image")
        for size in (0, 64, 200, 400, CODE_OFFSET):
            with open(path, "wb") as file:
                file.write(Elf().data())
            analyzer = Analyzer(journal_of(1))
            analyzer.image(1, path)
            os.truncate(path, size)
            assert analyzer.finish()["type"] == "done"
            analyzer.stop()


def many_symbols(count, block):
    """A file with that many symbols, the block of them over and over; without a block a hole, which is nothing."""
    elf = Elf(symbols=b"\0" * SYM_BYTES)
    at, end = CODE_OFFSET + CODE_BYTES, CODE_OFFSET + CODE_BYTES + count * SYM_BYTES
    elf.sections[SYMBOLS]["set"] = dict(offset=at, size=end - at)
    fd = os.memfd_create("many")
    os.pwrite(fd, elf.data(), 0)
    while block and at < end:
        at += os.pwrite(fd, block[:end - at], at)
    os.ftruncate(fd, end)
    return fd


def test_many_symbols():
    ten_million = 10 * 1000 * 1000
    count = ten_million if LONG else 400 * 1000
    spread = b"".join(symbol(1, value=CODE_ADDRESS + number, size=1) for number in range(CODE_BYTES)) * 16
    around = symbol(1) * (1 << 16)
    nested = b"".join(symbol(1, size=CODE_BYTES - number) for number in range(CODE_BYTES // 2)) * 32
    for name, number, block in (("nothing", ten_million, None), ("spread", count, spread), ("around", count, around), ("nested", count, nested)):
        image = many_symbols(number, block)
        began = time.monotonic()
        frames, _ = analyze([Elf().data(), image])
        print("# %d symbols, %s: %.2f s" % (number, name, time.monotonic() - began))
        assert frames[("prog", SOUND)] == (2 if block else 1), frames


if __name__ == "__main__":
    main(globals())
