#!/usr/bin/env python3
"""Writes what each fuzzer begins with: FOLDER/TARGET/NUMBER, and FOLDER/TARGET.list for -seed_inputs=@….

    seeds.py FOLDER

Everything is put together here from the formats' own descriptions; no input is stored anywhere but the shaders of
the test programs, which glslang and spirv-as made.
"""
import glob
import os
import re
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


FRAMES, CODE = 0x3000, 0x10000  # where fuzz_cfi has .eh_frame and code; its .eh_frame_hdr is at 0x1000


def frame_programs(path, most):
    """Programs of a real file's FDEs, each once, with its CIE's: of .eh_frame in the usual encoding (pcrel, sdata4)."""
    with open(path, "rb") as file:
        data = file.read()
    section, = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, section + i * size) for i in range(count)]
    text = data[headers[names][4]:headers[names][4] + headers[names][5]]
    frames = [h for h in headers if text[h[0]:].split(b"\0")[0] == b".eh_frame" and h[1] != 8]
    seen, common, at = set(), {}, frames[0][4] if frames else 0
    end = at + frames[0][5] if frames else 0
    while at + 8 <= end:
        length, back = struct.unpack_from("<II", data, at)
        body = data[at + 8:at + 4 + length]
        if length == 0 or length >= 0xfffffff0:
            break
        if back == 0:
            common[at] = body
        elif len(body) > 9 and body[8] == 0 and (at + 4 - back) in common and body[9:] not in seen and len(seen) < most:
            seen.add(body[9:])
            yield common[at + 4 - back], body[9:]
        at += 4 + length


def frame_sections(programs):
    """.eh_frame with one function of 256 bytes for each program, and its .eh_frame_hdr."""
    frames, table = b"", b""
    for number, (common, program) in enumerate(programs):
        cie = len(frames)
        frames += struct.pack("<II", len(common) + 4, 0) + common
        place, begin = len(frames), CODE + 256 * number
        frames += struct.pack("<II", len(program) + 13, place + 4 - cie)
        frames += struct.pack("<iI", begin - (FRAMES + len(frames)), 256) + b"\0" + program
        table += struct.pack("<ii", begin - 0x1000, FRAMES + place - 0x1000)
    return b"\1\x1b\3\x3b" + struct.pack("<iI", FRAMES - 0x1004, len(programs)) + table, frames + bytes(4)


def walk_input(flags, header, frames, debug, pc, stack):
    registers = (pc, 0, 0x7ffc00000010, 0x7f0000010080, 0x7ffc00000020)
    return struct.pack("<BHHH5Q", flags, len(header), len(frames), len(debug), *registers) + header + frames + debug + stack


def walks():
    """Stacks over the programs of the C library that runs this."""
    stack = b"".join(struct.pack("<Q", value) for value in [0x7f0000010000 + 256 * (i % 16) + 40 for i in range(40)])
    plain = [(b"\1zR\0\1\x78\x10\1\x1b\x0c\7\x08\x90\1\0\0", program) for program in (
        b"\x41\x0e\x10\x86\2\x43\x0d\6", b"\x0f\x0b\x77\x08\x80\0\x3f\x1a\x3b\x2a\x33\x24\x22", b"\x0a\x0e\x20\x44\x0b",
        b"\7\x10", b"\x0f\3\x76\x78\6\x10\6\2\x76\0", b"\x16\7\2\x77\x10\x2e\x10\x2f\6\1\x2d")]
    sources = [plain]
    for path in sorted(glob.glob("/lib/*/libc.so.6") + glob.glob("/lib64/ld-linux*"))[:2]:
        programs = list(frame_programs(path, 48))
        sources += [programs[i:i + 12] for i in range(0, len(programs), 12)]
    for programs in sources:
        header, frames = frame_sections(programs)
        yield walk_input(0, header, frames, b"", 60, stack)
    header, frames = frame_sections(plain)
    yield walk_input(1, b"", frames, b"", 10, stack)
    yield walk_input(2, header, frames, b"", 256, stack)
    debug = struct.pack("<II", 12, 0xffffffff) + b"\3\0\1\x78\x10\x0c\7\x08" + struct.pack("<IIQQ", 24, 0, CODE, 256) + b"\x44\x0e\x10\0"
    yield walk_input(0, b"", b"", debug, 8, stack)
    yield walk_input(4, b"", b"", b"", 8, b"\x77\x08\x80\0\x3f\x1a\x3b\x2a\x33\x24\x22\x12\x06\x96\x2f\0\0")


def image_file():
    """The ELF file of elf_file with tables of frames instead of symbols, and one packed section."""
    header, frames = frame_sections([(b"\1zR\0\1\x78\x10\1\x1b\x0c\7\x08\x90\1\0\0", b"\x41\x0e\x10\0")])
    packed = struct.pack("<IIQQ", 1, 0, 64, 1) + zlib.compress(bytes(64))
    names, parts, at = b"\0.eh_frame_hdr\0.eh_frame\0.debug_frame\0", [], 64 + 3 * 56 + 5 * 64
    for part in (header, frames, packed, names):
        parts.append((at, part))
        at += len(part)
    out = b"\x7fELF\2\1\1" + bytes(9)
    out += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, CODE, 64, 232, 0, 64, 56, 3, 64, 5, 4)
    out += struct.pack("<IIQQQQQQ", 1, 4, 0, 0, 0, 0x8000, 0x8000, 0x1000)
    out += struct.pack("<IIQQQQQQ", 1, 5, 0, CODE, CODE, 0x800, 0x800, 0x1000)
    out += struct.pack("<IIQQQQQQ", 0x6474e550, 4, parts[0][0], 0x1000, 0x1000, len(header), len(header), 4)
    out += bytes(64)
    for name, address, flags, part in ((1, 0x1000, 2, 0), (15, FRAMES, 2, 1), (25, 0, 0x800, 2), (0, 0, 0, 3)):
        out += struct.pack("<IIQQQQIIQQ", name, 1, flags, address, parts[part][0], len(parts[part][1]), 0, 0, 1, 0)
    return out + header + frames + packed + names


def shader_modules():
    """The words of the arrays in tests/targets/gpu."""
    for path in glob.glob(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "targets", "gpu", "*.inc")):
        with open(path, encoding="ascii") as file:
            for words in re.findall(r"\[\] = \{([^}]*)\}", file.read()):
                yield b"".join(struct.pack("<I", int(word, 16)) for word in re.findall(r"0x[0-9a-f]+", words))


def seeds():
    offsets = struct.pack("<Q", 0 | 8 << 11 | 64 << 22)
    yield "framing", b"\x03abc\ndef\r\n" + b"x" * 20 + b"\n"
    yield "message", b'{"id":1,"method":"Ping","params":{"a":[1,2.5,null,true,"\\u00e9\xc3\xa9"]}}\n'
    yield "gate", b"\x08ready 1\n"
    yield "gate", b"\x05ready 1\nfailed exec 2 cannot run /x: no such file\n"
    yield "gpu_wire", b"\x08hello token=0123 pid=7 exe=/a%20b renderdoc=\nstart by=label label=frame%20 first=2 last=3 template=/t\nstop\n"
    yield "gpu_wire", b"\x10shader hash=%s bytes=1008 stage=compute entry=main\nshaders left_out=2\n" % (b"0123456789abcdef" * 4)
    for module in shader_modules():
        yield "spirv", module
    yield "gpu_wire", b"\0document path=/a/b.rdc bytes=18446744073709551615 first=0 last=0\nfault code=busy text=%C3%A9%25\n"
    yield "gpu_wire", b"\x04ask n=1 label=pre-render\nstart by=manual asked=1 template=/t\nrefused asked=1 code=disk_full text=no%20room\n"
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
    yield "image", offsets + image_file()
    yield "image", offsets + elf_file()
    for data in walks():
        yield "cfi", data
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
