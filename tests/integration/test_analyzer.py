"""The analyzer program as the daemon starts it: a channel at descriptor 3, every file as a descriptor. Journals are written
here, by hand, from the layout in daemon/profile/journal.h; names are compared with those of nm and addr2line."""
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
import zlib

from harness import SANITIZED, main, program, read_folded, skip

NATIVE, KERNEL, EXACT = 0, 1, 4
ELF, VDSO, ANONYMOUS = 1, 4, 6
BASE = 0x555500000000

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


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def signed(value):
    return varint((value << 1) ^ (value >> 63) if value >= 0 else (-value << 1) - 1)


def text(value):
    data = value if isinstance(value, bytes) else value.encode()
    return varint(len(data)) + data


class Journal:
    """One segment. Times stay at 0 differences but for the first of each chunk."""

    def __init__(self):
        self.file = b""
        self.payload = b""
        self.chunk = 0
        self.strings = {}
        self.record(1, b"\x01\x00" + varint(1000) + varint(2000) + b"\x08" + varint(4096) + text("x86_64") + text("Linux"))
        cpu = self.string("cpu")
        self.record(4, varint(1) + varint(cpu) + b"\x00" + varint(1001001))

    def record(self, kind, body):
        self.payload += bytes([kind]) + varint(len(body)) + body
        if len(self.payload) > 200000:
            self.seal()

    def seal(self):
        head = struct.pack("<III", len(self.payload), 0, self.chunk)
        crc = zlib.crc32(head + bytes(4) + self.payload)
        self.file += b"PJC1" + head + struct.pack("<II", crc, 0) + self.payload
        self.payload = b""
        self.chunk += 1

    def string(self, value):
        if value not in self.strings:
            self.strings[value] = len(self.strings) + 1
            self.record(3, varint(self.strings[value]) + text(value))
        return self.strings[value]

    def process(self, pid, name):
        self.record(5, signed(0) + varint(pid) + varint(1) + varint(self.string(name)))

    def thread(self, pid, tid, name):
        self.record(7, signed(0) + varint(pid) + varint(tid) + varint(self.string(name)))

    def image(self, number, path, kind=ELF, build_id=b""):
        self.record(9, varint(number) + varint(kind) + varint(self.string(path)) + bytes(3) + text(build_id) + b"\x01")

    def mapping(self, pid, start, length, offset, image):
        self.record(10, signed(0) + b"".join(map(varint, (pid, start, length, offset, image, 5))))

    def stack(self, number, pid, frames, end=1):
        """frames: (address, kind), the leaf first."""
        body, last = varint(number) + varint(pid) + varint(end) + varint(len(frames)), 0
        for address, kind in frames:
            difference = (address - last + (1 << 63)) % (1 << 64) - (1 << 63)
            body += varint(1 << 3 | kind) + signed(difference)
            last = address
        self.record(13, body)

    def sample(self, tid, stack, count=1):
        for _ in range(count):
            self.record(14, signed(0) + varint(tid) + varint(stack) + b"\x00\x01\x00")

    def end(self):
        self.record(19, signed(0) + varint(self.string("duration")))
        self.seal()
        return self.file


class Analyzer:
    """The running program, its channel, and three outputs in a folder."""

    def __init__(self, journal, symbols=True, outputs=("folded", "svg", "json"), facts=None, writable=True, onto=None):
        self.folder = tempfile.mkdtemp(prefix="profd-analyzer-")
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.channel.settimeout(60)
        self.errors = open(os.path.join(self.folder, "stderr"), "w+b")
        theirs_fd = theirs.fileno()
        command = ["sh", "-c", 'exec "$0" 3<&%d %d<&-' % (theirs_fd, theirs_fd), program("profd-analyzer")]
        if theirs_fd == 3:
            command = [program("profd-analyzer")]
        self.process = subprocess.Popen(command, pass_fds=[theirs_fd], stdin=subprocess.DEVNULL, stdout=self.errors,
                                        stderr=self.errors)
        theirs.close()
        files = [self.memory(journal)]
        for name in outputs:
            flags = os.O_WRONLY | os.O_CREAT if writable else os.O_RDONLY | os.O_CREAT
            files.append(os.open(onto or self.path(name), flags, 0o600))
        self.send({"type": "begin", "version": 1, "capture_id": "c1", "symbols": symbols, "outputs": list(outputs),
                   "facts": facts or {}}, files)

    def path(self, name):
        return os.path.join(self.folder, "capture." + name)

    def memory(self, data):
        fd = os.memfd_create("journal")
        with open(fd, "wb", closefd=False) as file:
            file.write(data)
        return fd

    def send(self, body, files=()):
        socket.send_fds(self.channel, [json.dumps(body).encode()], list(files))
        for fd in files:
            os.close(fd)

    def image(self, number, path):
        self.send({"type": "image", "image": number}, [os.open(path, os.O_RDONLY)])

    def receive(self):
        """The next message that is no progress; None at the end of the channel."""
        while True:
            data = self.channel.recv(1 << 20)
            if not data:
                return None
            message = json.loads(data)
            if message["type"] != "progress":
                return message
            assert 0 <= message["permille"] <= 1000 and message["phase"] in ("symbolizing", "writing"), message

    def finish(self):
        self.send({"type": "finish"})
        return self.receive()

    def stop(self):
        """Ends the channel; the exit status must be 0, and nothing was said."""
        self.channel.close()
        status = self.process.wait(30)
        self.errors.seek(0)
        said = self.errors.read().decode("utf-8", "replace")
        self.errors.close()
        shutil.rmtree(self.folder)
        assert "Sanitizer" not in said and "runtime error" not in said, said
        assert status == 0, (status, said)


def small():
    journal = Journal()
    journal.process(10, "prog")
    journal.thread(10, 10, "prog")
    journal.image(1, "/bin/prog")
    journal.mapping(10, BASE, 0x10000, 0, 1)
    return journal


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
        assert "stripped" in record["images"][0]["fix"], record["images"]
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
    assert set(done["outputs"]) == {"folded", "svg", "json"}
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


def test_opens_no_file_once_it_runs():
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
        tracer = subprocess.Popen(["strace", "-f", "-e", "trace=open,openat,openat2,execve,socket,connect", "-o", log.name,
                                   "-p", str(analyzer.process.pid)], stderr=subprocess.PIPE)
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
        opened = [line for line in log.read().decode().splitlines() if "open" in line or "exec" in line or "socket(" in line]
    assert opened == [], opened
    analyzer.errors.close()
    shutil.rmtree(analyzer.folder)


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
