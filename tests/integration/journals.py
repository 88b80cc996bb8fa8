"""Journals, written and read by hand from the layout in daemon/profile/journal.h."""
import collections
import struct
import zlib

NATIVE, KERNEL, EXACT = 0, 1, 4
ELF, VDSO, ANONYMOUS = 1, 4, 6
BASE = 0x555500000000


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


def small():
    journal = Journal()
    journal.process(10, "prog")
    journal.thread(10, 10, "prog")
    journal.image(1, "/bin/prog")
    journal.mapping(10, BASE, 0x10000, 0, 1)
    return journal


class JournalFile:
    """A journal of a capture, read anew: whole chunks up to the first that is not right."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        self.good, self.counts, self.chunks = 0, collections.Counter(), 0
        segment, number = None, 0
        while len(self.data) - self.good >= 24:
            head = self.data[self.good:self.good + 24]
            magic, length, chunk_segment, chunk, crc, reserved = struct.unpack("<4sIIIII", head)
            payload = self.data[self.good + 24:self.good + 24 + length]
            number = number + 1 if chunk_segment == segment else 0
            if magic != b"PJC1" or len(payload) < length or reserved != 0 or chunk != number or \
                    zlib.crc32(head[4:16] + head[20:24] + payload) != crc:
                return
            segment = chunk_segment
            self.read_records(payload)
            self.good += 24 + length
            self.chunks += 1

    @staticmethod
    def number(data, at):
        value = shift = 0
        while True:
            value |= (data[at] & 127) << shift
            at, shift = at + 1, shift + 7
            if data[at - 1] < 128:
                return value, at

    def read_records(self, payload):
        at = 0
        while at < len(payload):
            kind = payload[at]
            length, at = self.number(payload, at + 1)
            at += length
            assert at <= len(payload), "a record leaves its chunk"
            self.counts[kind] += 1

    @property
    def samples(self):
        return self.counts[14]

    @property
    def has_end(self):
        return self.counts[19] == 1

    def check_cut(self):
        """It was ended early, behind a whole chunk."""
        facts = (self.good, len(self.data), self.chunks, self.counts)
        assert self.good == len(self.data) and self.chunks >= 1 and self.samples > 0 and not self.has_end, facts
