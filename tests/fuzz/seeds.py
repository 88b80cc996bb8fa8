#!/usr/bin/env python3
"""Writes what each fuzzer begins with: FOLDER/TARGET/NUMBER, and FOLDER/TARGET.list for -seed_inputs=@….

    seeds.py FOLDER

Everything is put together here from the formats' own descriptions; no input is stored anywhere.
"""
import os
import struct
import sys
import zlib


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def text(data):
    return varint(len(data)) + data


def record(kind, *fields):
    """A record of a journal (daemon/profile/journal.h); a time is given in its zigzag form."""
    body = b"".join(text(field) if isinstance(field, bytes) else varint(field) for field in fields)
    return bytes([kind]) + varint(len(body)) + body


def journal_records():
    names = [b"cpu", b"app", b"main & <co>; \xff", b"/lib/libx.so", b"py.fn 7", b"code", b"a note"]
    out = record(1, 1, 0, 1000, 2000, 8, 4096, b"x86_64", b"Linux 6")
    out += record(2, b'{"hz":99}')
    out += b"".join(record(3, i + 1, name) for i, name in enumerate(names))
    out += record(4, 1, 1, 0, 10101010)
    out += record(5, 20, 100, 1, 2, 4, 1, 0) + record(7, 2, 100, 100, 3) + record(7, 2, 100, 101, 2)
    out += record(9, 1, 1, 4, 1 << 32, 7, 0, b"\x12" * 20, 0) + record(9, 2, 6, 0, 0, 0, 0, b"", 0)
    out += record(10, 2, 100, 0x400000, 0x10000, 0x1000, 1, 5)
    out += record(10, 2, 100, 0x500000, 0x1000, 0, 2, 5) + record(11, 2, 100, 0x408000, 0x1000)
    out += record(12, 1, 2, 5, 4, 3, 0)
    # two native frames, a kernel one, and one of an interpreter
    out += record(13, 1, 100, 0, 4, 1 << 3 | 1, 0x10, 2 << 3, 0x800000, 0x100, 1 << 3 | 2, 2)
    out += record(13, 2, 100, 5, 0)
    for stack in (1, 1, 2, 0):
        out += record(14, 20, 100, stack, 0, 1, 0)
    out += record(14, 2, 101, 1, 0, 1, 0)
    out += record(15, 2, 0, 3, 1) + record(16, 2, 100, 0, 50505050, 40000000, 10505050)
    out += record(17, 2, 100, 100, 2, 60) + record(18, 6, 7) + record(6, 2, 100) + record(8, 2, 101)
    return out + record(19, 2, 6, 5, 3)


def chunk(payload):
    covered = struct.pack("<III", len(payload), 0, 0)
    crc = zlib.crc32(covered + bytes(4) + payload)
    return b"PJC1" + covered + struct.pack("<I", crc) + bytes(4) + payload


def perf_record(kind, words, misc=0):
    return bytes([kind, len(words), misc]) + b"".join(struct.pack("<Q", word) for word in words)


def perf_records():
    def pair(low, high):
        return low | high << 32

    def padded(name, size):
        return list(struct.unpack(f"<{size}Q", name.ljust(size * 8, b"\0")))

    ids = [pair(100, 100)]
    out = perf_record(2, [pair(100, 100)] + padded(b"app", 2) + ids + [5], misc=1)
    out += perf_record(1, [pair(100, 100), 0x400000, 0x1000, 0, pair(8, 1), 7, 1, pair(5, 2)]
                       + padded(b"/bin/app (deleted)", 3) + ids + [6])
    # the marks of the kernel's part (-128) and of the user's (-512), as the fuzzer takes them
    kernel, user = 127 << 8 | 0xFF, 511 << 8 | 0xFF
    out += perf_record(0, [pair(100, 101), 7, 5, kernel, 0x1234, user, 0x400010, 0x400100])
    out += perf_record(3, [pair(101, 100), pair(101, 100), 8] + ids + [8])
    out += perf_record(5, [1, 3] + ids + [9]) + perf_record(7, [1, 2, 3] + ids + [9])
    return out + perf_record(4, [pair(100, 100), pair(100, 100), 10] + ids + [10])


def elf_file():
    """64 bit: code, .symtab with two functions and a label, its names, a note with a build id."""
    names = b"\0main\0_helper\0label\0"
    symbols = bytes(24)
    for name, info, value, size in ((1, 0x12, 0x401000, 16), (6, 0x02, 0x401010, 0), (14, 0, 0x401018, 0)):
        symbols += struct.pack("<IBBHQQ", name, info, 0, 1, value, size)
    note = struct.pack("<III", 4, 8, 3) + b"GNU\0" + b"\x34" * 8
    at, places = 64 + 2 * 56 + 4 * 64, []
    for part in (symbols, names, note):
        places.append(at)
        at += len(part)
    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    header += struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0x401000, 64, 176, 0, 64, 56, 2, 64, 4, 0)
    segments = struct.pack("<IIQQQQQQ", 1, 5, 0x1000, 0x401000, 0x401000, 0x800, 0x800, 0x1000)
    segments += struct.pack("<IIQQQQQQ", 4, 4, places[2], 0, 0, len(note), len(note), 4)
    sections = bytes(64) + struct.pack("<IIQQQQIIQQ", 0, 1, 6, 0x401000, 0x1000, 0x800, 0, 0, 1, 0)
    sections += struct.pack("<IIQQQQIIQQ", 0, 2, 0, 0, places[0], len(symbols), 3, 1, 8, 24)
    sections += struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, places[1], len(names), 0, 0, 1, 0)
    return header + segments + sections + symbols + names + note


def narrow_elf_file():
    """The same of 32 bits, without a note."""
    names = b"\0first\0second\0label\0"
    symbols = bytes(16) + b"".join(struct.pack("<IIIBBH", *symbol) for symbol in (
        (1, 0x401000, 32, 0x12, 0, 1), (7, 0x401020, 32, 0x12, 0, 1), (14, 0x401040, 0, 0x10, 0, 1)))
    places = 52 + 32 + 4 * 40, 52 + 32 + 4 * 40 + len(symbols)
    header = struct.pack("<4sBBB9xHHIIIIIHHHHHH", b"\x7fELF", 1, 1, 1, 2, 3, 1, 0, 52, 84, 0, 52, 32, 1, 40, 4, 0)
    segments = struct.pack("<8I", 1, 0x1000, 0x401000, 0, 0x800, 0x800, 5, 0x1000)
    sections = bytes(40) + struct.pack("<10I", 0, 1, 6, 0x401000, 0x1000, 0x800, 0, 0, 1, 0)
    sections += struct.pack("<10I", 0, 2, 0, 0, places[0], len(symbols), 3, 1, 4, 16)
    sections += struct.pack("<10I", 0, 3, 0, 0, places[1], len(names), 0, 0, 1, 0)
    return header + segments + sections + symbols + names


def symtab_symbols():
    """As fuzz_symtab makes an image of them: name, info, section, address (2), size, unused (2)."""
    symbols = ((1, 0x12, 0, 0, 0, 32), (8, 0x02, 0, 8, 0, 8), (9, 0x22, 0, 0, 0, 32), (15, 0x10, 0, 64, 0, 0))
    return b"\x08" + b"".join(bytes(symbol) + bytes(2) for symbol in symbols)


def kept_records():
    """capture.symbols (daemon/analyzer/symbol/kept.h): an image with two places, and the kernel."""
    out = record(1, 1, b"/lib/a.so") + record(2, 1, 1, 8 << 32, 7, 0, b"\1\2\3", 5, b"\x09") + record(1, 2, b"main")
    out += record(3, 2, 0x1000, 0, 2, 0x20, 3, 2) + record(1, 3, b"schedule")
    return out + record(2, 5, 0, 0, 0, 0, b"", 0, b"") + record(3, 1, 0xFFFFFFFF81000000, 2, 3) + record(99, 1)


def seeds():
    offsets = struct.pack("<Q", 0 | 8 << 11 | 64 << 22)
    yield "framing", b"\x03abc\ndef\r\n" + b"x" * 20 + b"\n"
    yield "message", b'{"id":1,"method":"Ping","params":{"a":[1,2.5,null,true,"\\u00e9\xc3\xa9"]}}\n'
    yield "gate", b"\x08ready 1\n"
    yield "gate", b"\x05ready 1\nfailed exec 2 cannot run /x: no such file\n"
    yield "journal", chunk(journal_records())
    yield "journal", b"\0" + journal_records()
    yield "salvage", chunk(journal_records())
    yield "salvage", b"\0" + journal_records()
    yield "salvage", b"\x09" + journal_records() * 2
    yield "model", b"\0" + journal_records()
    yield "model", b"\1" + journal_records()
    yield "request", b'\0{"id":1,"method":"Ping"}\n{"id":"a","method":"Hello","params":{"client":"x"}}\n[]\n'
    yield "request", b'\0{"method":"$/x"}\n{"jsonrpc":"2.0","id":2.0,"method":"x","params":{"hz":99}}\n'
    yield "request", b'\1\x09{"argv":["/bin/true"],"profile":{"hz":99}}'
    yield "request", b"\2\x09" + bytes(range(64))
    yield "request", b"\2\x13" + bytes(range(255, 191, -1))
    yield "maps", b"\1lib x.so"
    yield "maps", b"\1a\nb\\012\xff (deleted)"
    yield "perf_ring", b"\0\0\x70\x06" + perf_records()
    yield "perf_ring", b"\2\x3c\0\xff" + perf_records()
    yield "symtab", b"\1" + offsets + elf_file()
    yield "symtab", b"\1" + offsets + narrow_elf_file()
    yield "symtab", b"\0" + offsets + symtab_symbols()
    yield "kallsyms", b"0000000000000000 A x\nffffffff81000000 T first\nffffffffc0000000 t in\t[mod]\n"
    yield "kept", kept_records()
    yield "demangle", b"\0_ZN1a2bcIiEEvT_@@V1"
    yield "demangle", b"\0_RNvCsabc_1a4main"
    yield "demangle", b"\0_D3abc3def1fFiZv"
    yield "demangle", b"\1" + bytes(range(100))


def main(folder):
    lists = {}
    for target, data in seeds():
        paths = lists.setdefault(target, [])
        path = os.path.join(folder, target, str(len(paths)))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
        paths.append(os.path.abspath(path))
    for target, paths in lists.items():
        with open(os.path.join(folder, target + ".list"), "w", encoding="utf-8") as file:
            file.write(",".join(paths))


if __name__ == "__main__":
    main(sys.argv[1])
