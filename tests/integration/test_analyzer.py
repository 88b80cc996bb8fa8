"""The analyzer program on journals made by hand; names are compared with those of nm and addr2line."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from analyzers import Analyzer
from harness import SANITIZED, main, program, read_folded, skip
from journals import BASE, KERNEL, NATIVE, VDSO, Journal, small

SOURCE = r"""
#include <string>
#include <vector>
namespace shapes {
template <typename T> __attribute__((noinline)) T twice(T value) { return value + value; }
struct Square {
	int side;
	__attribute__((noinline)) int area() const { return side * side; }
	__attribute__((noinline)) Square operator+(const Square &other) const { return {side + other.side}; }
};
static __attribute__((noinline)) int hidden(int value) { return value * 7; }
}
extern "C" __attribute__((noinline)) int plain(int value) { return value + 1; }
extern "C" int also_plain(int value) __attribute__((alias("plain")));
int main(int argc, char **) {
	auto lambda = [&](int value) __attribute__((noinline)) { return value + argc; };
	shapes::Square square{argc};
	std::vector<std::string> words(3, "word");
	return shapes::twice(argc) + shapes::twice<long>(argc) + (square + square).area() + shapes::hidden(argc) +
		plain(argc) + also_plain(argc) + lambda(2) + (int)words.size();
}
"""


def need(*names):
    for name in names:
        if shutil.which(name) is None:
            skip("%s is missing" % name)


def build(folder, *options):
    compiler = next((name for name in ("g++", "clang++") if shutil.which(name)), None)
    if compiler is None:
        skip("no C++ compiler")
    source, path = os.path.join(folder, "prog.cc"), os.path.join(folder, "prog")
    with open(source, "w") as file:
        file.write(SOURCE)
    subprocess.run([compiler, "-std=c++17", "-O1", *options, source, "-o", path], check=True)
    return path


def code_segment(path):
    """File offset, address and size of the executable segment, by readelf."""
    lines = subprocess.run(["readelf", "-lW", path], check=True, capture_output=True, text=True).stdout.splitlines()
    for line in lines:
        if line.split()[:1] == ["LOAD"] and " R E " in line:
            offset, address, _, size = (int(word, 16) for word in line.split()[1:5])
            return offset, address, size
    raise AssertionError("no executable segment")


def functions(path):
    """address -> the names that nm -C gives it, with sizes, functions only."""
    found = {}
    for line in subprocess.run(["nm", "-CS", path], check=True, capture_output=True, text=True).stdout.splitlines():
        match = re.match(r"([0-9a-f]+) ([0-9a-f]+) ([TtWw]) (.*)", line)
        if match:
            size, names = found.setdefault(int(match[1], 16), (int(match[2], 16), set()))
            names.add(match[4])
    return found


def test_names_every_function_as_nm_and_addr2line_do():
    need("nm", "addr2line", "readelf")
    with tempfile.TemporaryDirectory() as folder:
        path = build(folder)
        offset, address, size = code_segment(path)
        known = functions(path)
        journal = small()
        start = BASE + 0x1000 - offset % 0x1000
        journal.mapping(10, start - start % 0x1000, size + 0x2000, offset - offset % 0x1000, 1)
        places = {}
        for number, (place, (length, names)) in enumerate(sorted(known.items()), 1):
            for shift, at in ((0, place), (100000, place + length - 1)):
                journal.stack(number + shift, 10, [(start - start % 0x1000 + at - address + offset % 0x1000, NATIVE)])
                journal.sample(10, number + shift, number)
                places[at] = (number, names)
        analyzer = Analyzer(journal.end())
        analyzer.image(1, path)
        done = analyzer.finish()
        assert done["type"] == "done", done
        counts = {stack[-1]: count for stack, count in read_folded(analyzer.path("folded")).items()}
        assert len(known) >= 8, known
        expected = {}
        for number, names in places.values():
            chosen = [name for name in names if name in counts]
            assert chosen, (names, sorted(counts))
            expected[chosen[0]] = expected.get(chosen[0], 0) + number
        assert counts == expected
        for name in ("shapes::Square::area() const", "int shapes::twice<int>(int)", "plain", "main"):
            assert name in counts, (name, sorted(counts))
        tool = subprocess.run(["addr2line", "-fCe", path] + [hex(at) for at in places], check=True, capture_output=True, text=True)
        for (_, names), theirs in zip(places.values(), tool.stdout.splitlines()[::2]):
            assert theirs in names, (theirs, names)
        with open(analyzer.path("json")) as file:
            record = json.load(file)
        assert record["images"][0]["symbols"] == "symtab" and record["images"][0]["unsymbolized"] == 0
        notes = subprocess.run(["readelf", "-nW", path], check=True, capture_output=True, text=True).stdout
        build_id = re.search(r"Build ID: ([0-9a-f]+)", notes)
        assert build_id is None or record["images"][0]["build_id"] == build_id[1]
        analyzer.stop()


def one_of_each(path, **more):
    """An analyzer with a journal of one sample in each function of a program."""
    offset, address, _ = code_segment(path)
    journal = small()
    journal.mapping(10, BASE, 0x1000000, offset, 1)
    for number, place in enumerate(sorted(functions(path)), 1):
        journal.stack(number, 10, [(BASE + place - address, NATIVE)])
        journal.sample(10, number)
    return Analyzer(journal.end(), **more)


def names_of(analyzer):
    done = analyzer.finish()
    assert done["type"] == "done", done
    return done, {stack[-1] for stack in read_folded(analyzer.path("folded"))}


def test_names_outlive_their_files():
    need("nm", "readelf", "strip")
    with tempfile.TemporaryDirectory() as folder:
        path, stripped = build(folder), os.path.join(folder, "stripped")
        subprocess.run(["strip", path, "-o", stripped], check=True)
        first = one_of_each(path)
        first.image(1, path)
        _, names = names_of(first)
        kept = os.path.join(folder, "kept")
        shutil.copy(first.path("symbols"), kept)
        first.stop()
        assert {"plain", "main"} <= names, names
        # The file is gone, was stripped, or is no such file; or nothing may be looked into.
        for image, more in ((None, {}), (stripped, {}), ("/dev/null", {}), (None, {"symbols": False})):
            again = one_of_each(path, **more)
            again.kept(kept)
            if image:
                again.image(1, image)
            done, found = names_of(again)
            assert found == names, (image, found ^ names)
            with open(again.path("json")) as file:
                told = json.load(file)
            assert told["images"][0]["symbols"] == "symtab" and told["images"][0]["unsymbolized"] == 0, told["images"]
            with open(again.path("symbols"), "rb") as file, open(kept, "rb") as before:
                assert file.read() == before.read(), "keeping again changes what is kept"
            assert {warning["code"] for warning in done["warnings"]} <= {"stacks_cut"}, done["warnings"]  # what the journal says of its stacks
            again.stop()


def test_names_only_become_better():
    need("nm", "readelf")
    with tempfile.TemporaryDirectory() as folder:
        path = build(folder)
        first = one_of_each(path) # without the file: places only
        _, places = names_of(first)
        assert all(re.fullmatch(r"\[prog\+0x[0-9a-f]+\]", name) for name in places), places
        kept = os.path.join(folder, "kept")
        shutil.copy(first.path("symbols"), kept)
        first.stop()
        again = one_of_each(path)
        again.kept(kept)
        again.image(1, path)
        _, names = names_of(again)
        assert {"plain", "main"} <= names and not names & places, names
        again.stop()


def test_kept_names_that_cannot_be_read_are_told_and_not_used():
    need("nm", "readelf")
    with tempfile.TemporaryDirectory() as folder:
        path, kept = build(folder), os.path.join(folder, "kept")
        with open(kept, "wb") as file:
            file.write(b"PSY1\x01" + bytes(100))
        analyzer = one_of_each(path)
        analyzer.kept(kept)
        analyzer.image(1, path)
        done, names = names_of(analyzer)
        assert {"plain", "main"} <= names
        told, = [warning for warning in done["warnings"] if warning["code"] != "stacks_cut"]
        assert told["code"] == "kept_symbols_unreadable" and "damaged" in told["message"], done
        analyzer.stop()


def test_gives_places_that_nm_knows_when_a_program_is_stripped():
    need("nm", "readelf", "strip")
    with tempfile.TemporaryDirectory() as folder:
        path = build(folder, "-static-libstdc++")
        offset, address, _ = code_segment(path)
        place = next(at for at, (_, names) in functions(path).items() if "plain" in names)
        subprocess.run(["strip", path], check=True)
        journal = small()
        journal.mapping(10, BASE, 0x1000000, offset, 1)
        journal.stack(1, 10, [(BASE + place - address, NATIVE)])
        journal.sample(10, 1)
        analyzer = Analyzer(journal.end())
        analyzer.image(1, path)
        assert analyzer.finish()["type"] == "done"
        assert read_folded(analyzer.path("folded")) == {("prog", "[prog+%#x]" % place): 1}
        with open(analyzer.path("json")) as file:
            record = json.load(file)
        assert "come without names" in record["images"][0]["fix"], record["images"]
        assert record["quality"]["unsymbolized"] == 1
        analyzer.stop()


def test_does_not_ask_a_file_that_was_replaced():
    need("nm", "readelf")
    with tempfile.TemporaryDirectory() as folder:
        path = build(folder, "-Wl,--build-id")
        offset, address, _ = code_segment(path)
        place = next(at for at, (_, names) in functions(path).items() if "plain" in names)
        journal = Journal()
        journal.process(10, "prog")
        journal.thread(10, 10, "prog")
        journal.image(1, "/bin/prog", build_id=b"\x01" * 20)
        journal.mapping(10, BASE, 0x1000000, offset, 1)
        journal.stack(1, 10, [(BASE + place - address, NATIVE)])
        journal.sample(10, 1)
        analyzer = Analyzer(journal.end())
        analyzer.image(1, path)
        done = analyzer.finish()
        assert "images_changed" in [warning["code"] for warning in done["warnings"]], done
        assert list(read_folded(analyzer.path("folded"))) == [("prog", "[prog+%#x]" % (offset + place - address))]
        analyzer.stop()


def test_looks_into_no_image_when_told_so():
    journal = small()
    journal.stack(1, 10, [(BASE + 0x123, NATIVE), (BASE + 0x456, NATIVE), (0x10, NATIVE)])
    journal.sample(10, 1, 4)
    journal.sample(10, 0, 2)
    analyzer = Analyzer(journal.end(), symbols=False)
    analyzer.image(1, sys.executable)
    done = analyzer.finish()
    assert read_folded(analyzer.path("folded")) == {
        ("prog", "[unknown]", "[prog+0x456]", "[prog+0x123]"): 4, ("prog", "[no user stack]"): 2}
    assert (done["samples"], done["lost"], done["threads"], done["truncated"]) == (6, 0, 1, 2), done
    assert done["outputs"]["folded"] == {"bytes": os.path.getsize(analyzer.path("folded")), "stacks": 2}
    assert set(done["outputs"]) == {"folded", "svg", "json", "symbols"}
    analyzer.stop()


def test_names_the_kernel_by_the_symbols_it_was_given():
    journal = small()
    journal.stack(1, 10, [(0xffffffff81000108, KERNEL), (0xffffffff81000200, KERNEL), (0xffffffff81900000, KERNEL), (BASE + 1, NATIVE)])
    journal.sample(10, 1, 3)
    analyzer = Analyzer(journal.end())
    analyzer.send({"type": "kernel_symbols"}, [analyzer.memory(
        b"ffffffff81000000 T entry\nffffffff81000100 t work\nffffffff81000200 t after\nffffffff81000300 T end\n")])
    done = analyzer.finish()
    assert list(read_folded(analyzer.path("folded"))) == [("prog", "[prog+0x1]", "[kernel+0xffffffff81900000]_[k]", "work_[k]", "work_[k]")]
    assert "kernel_symbols_hidden" not in [warning["code"] for warning in done["warnings"]]
    analyzer.stop()
    analyzer = Analyzer(journal.file)
    analyzer.send({"type": "kernel_symbols"}, [analyzer.memory(b"0000000000000000 T entry\n")])
    assert "kernel_symbols_hidden" in [warning["code"] for warning in analyzer.finish()["warnings"]]
    analyzer.stop()


def test_sums_up_by_self_then_total_then_name():
    journal = small()
    frames = [(BASE + place, NATIVE) for place in range(0x100, 0x2000, 0x100)]
    for number in range(1, 13):
        journal.stack(number, 10, [frames[number], frames[0], frames[20]])
        journal.sample(10, number, 13 - number if number < 5 else 4)
    analyzer = Analyzer(journal.end(), facts={"duration_ms": 1234, "label": "a label"})
    summary = analyzer.finish()["summary"]
    assert summary["duration_ms"] == 1234 and summary["threads"] == 1
    total = 12 + 11 + 10 + 9 + 8 * 4
    names = ["[prog+%#x]" % (0x100 + 0x100 * number) for number in range(1, 13)]
    expected = [{"function": name, "self": count, "total": count} for name, count in zip(names[:4], (12, 11, 10, 9))]
    expected += [{"function": name, "self": 4, "total": 4} for name in sorted(names[4:])]
    assert summary["top"] == expected[:10], summary["top"]
    assert set(summary["quality"]) == {"complete", "stitched", "truncated", "unsymbolized"}
    with open(analyzer.path("json")) as file:
        record = json.load(file)
    assert record["samples"]["sampled_ns"] == total * 1001001
    assert max(function["total"] for function in record["functions"]) == total
    with open(analyzer.path("svg"), "rb") as file:
        assert b"a label" in file.read()
    analyzer.stop()


def test_writes_valid_outputs_for_a_journal_without_a_sample():
    for data in (small().end(), b"", b"nonsense"):
        analyzer = Analyzer(data)
        done = analyzer.finish()
        assert done["type"] == "done" and done["samples"] == 0, done
        assert os.path.getsize(analyzer.path("folded")) == 0
        assert os.path.getsize(analyzer.path("svg")) > 0
        with open(analyzer.path("json")) as file:
            assert json.load(file)["schema"] == "profd.capture"
        assert ("journal_damaged" in [warning["code"] for warning in done["warnings"]]) == (data == b"nonsense")
        analyzer.stop()


def test_survives_files_that_are_no_elf_or_end_early():
    need("nm")
    with open(program("profd-analyzer"), "rb") as file:
        whole = file.read()
    for data in (b"", b"#!/bin/sh\n", whole[:64], whole[:4096], whole[:len(whole) // 2]):
        journal = small()
        journal.stack(1, 10, [(BASE + 0x5000, NATIVE)])
        journal.sample(10, 1)
        analyzer = Analyzer(journal.end())
        analyzer.send({"type": "image", "image": 1}, [analyzer.memory(data)])
        assert analyzer.finish()["samples"] == 1
        analyzer.stop()


def test_says_so_when_it_has_no_memory_left():
    """With any amount of it: all of the result, or a failure that says why; never a crash, never half of the names."""
    if SANITIZED:
        skip("the sanitizers need more addresses than any limit allows")
    journal = small()
    for number in range(1, 2001):
        journal.stack(number, 10, [(BASE + 0x1000 + (number * 7919 + depth * 104729) % 0xf000, NATIVE) for depth in range(20)])
        journal.sample(10, number)
    data = journal.end()

    def run(kib):
        analyzer = Analyzer(data, memory_kib=kib)
        analyzer.image(1, sys.executable)
        said = analyzer.finish()
        folded = None
        if said["type"] == "done":
            folded = read_folded(analyzer.path("folded"))
        analyzer.stop()
        return said, folded

    whole, failures, successes = run(None)[1], [], 0
    for kib in list(range(6144, 26624, 509)) + [1 << 20]:
        said, folded = run(kib)
        if said["type"] == "done":
            assert folded == whole
            successes += 1
        else:
            assert said["error"]["data"]["code"] == "limit_exceeded" and "no memory" in said["error"]["message"], said
            failures.append(said["error"]["message"])
    assert successes > 0 and len(failures) > 10
    assert any(re.search("no memory left, its limit is [0-9]+ MiB", message) for message in failures), failures


def test_says_what_it_cannot_do():
    def failure(*messages, **options):
        analyzer = Analyzer(small().end(), **options)
        for body, files in messages:
            analyzer.send(body, [analyzer.memory(b"") for _ in range(files)])
        reply = analyzer.receive()
        assert reply["type"] == "failed", reply
        analyzer.send({"type": "finish"})  # what follows is dropped
        analyzer.stop()
        return reply["error"]["data"]["code"]

    assert failure(outputs=("folded", "pprof")) == "unsupported"
    assert failure(({"type": "dance"}, 0)) == "unsupported"
    assert failure(({"type": "image", "image": 1}, 0)) == "internal"
    assert failure(({"type": "finish"}, 0), writable=False) == "io"
    assert failure(({"type": "begin", "version": 1, "outputs": []}, 1)) == "internal"


def test_says_that_the_disk_is_full():
    if not os.path.exists("/dev/full"):
        skip("/dev/full is missing")
    analyzer = Analyzer(small().end(), outputs=("json",), onto="/dev/full")
    reply = analyzer.finish()
    assert reply["type"] == "failed" and reply["error"]["data"]["code"] == "disk_full", reply
    assert "capture.json" in reply["error"]["message"], reply
    analyzer.stop()


def test_opens_no_file_and_asks_for_nothing_that_its_sandbox_refuses():
    if SANITIZED:
        skip("the sanitizers open files of their own")
    need("strace")
    journal = small()
    journal.image(2, "[vdso]", VDSO)
    journal.mapping(10, 0x7fff00000000, 0x2000, 0, 2)
    journal.stack(1, 10, [(0x7fff00000000 + 0x800, NATIVE), (BASE + 0x800, NATIVE)])
    journal.sample(10, 1)
    analyzer = Analyzer(journal.end())
    with tempfile.NamedTemporaryFile() as log:
        tracer = subprocess.Popen(["strace", "-f", "-o", log.name, "-p", str(analyzer.process.pid)], stderr=subprocess.PIPE)
        line = tracer.stderr.readline()
        if b"attached" not in line:
            tracer.wait()
            analyzer.stop()
            skip("strace cannot attach here")
        analyzer.image(1, sys.executable)
        assert analyzer.finish()["type"] == "done"
        analyzer.channel.close()
        analyzer.process.wait(30)
        tracer.wait()
        calls = log.read().decode().splitlines()
    assert any(" pread64(" in call for call in calls), calls
    asked = [call for call in calls if re.search(" (open|exec|socket|connect)[a-z0-9]*\\(", call) or " EPERM " in call]
    assert asked == [], asked
    analyzer.errors.close()
    shutil.rmtree(analyzer.folder)


if __name__ == "__main__":
    main(globals())
