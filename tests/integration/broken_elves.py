"""ELF files made of bytes, sound and broken, by the layout in the System V ABI (chapters 4 and 5): each header is a dictionary that a
case changes before it is packed."""
import struct
import zlib

CODE_OFFSET, CODE_ADDRESS, CODE_BYTES = 0x1000, 0x401000, 0x1000
PROGBITS, SYMTAB, STRTAB, NOTE, DYNSYM, SYMTAB_SHNDX = 1, 2, 3, 7, 11, 18
CODE, SYMBOLS, NAMES = 1, 2, 3  # the numbers of the sections
EHDR_BYTES, PHDR_BYTES, SHDR_BYTES, SYM_BYTES = 64, 56, 64, 24
FUNC, GLOBAL = 2, 1 << 4
HUGE = 1 << 63
LAST = (1 << 64) - 1


def symbol(name, value=CODE_ADDRESS, size=CODE_BYTES, info=FUNC | GLOBAL, section=CODE):
    return struct.pack("<IBBHQQ", name, info, 0, section, value, size)


class Elf:
    """A program whose code is one function, "sound"; headers first, then symbols and names, then the code at CODE_OFFSET."""

    def __init__(self, names=b"\0sound\0", symbols=None):
        self.header = dict(magic=b"\x7fELF", wide=2, order=1, version=1, type=2, machine=62, entry=CODE_ADDRESS, phoff=EHDR_BYTES, flags=0,
                           ehsize=EHDR_BYTES, phentsize=PHDR_BYTES, shentsize=SHDR_BYTES, shstrndx=0)
        self.segments = [dict(type=1, flags=5, offset=CODE_OFFSET, vaddr=CODE_ADDRESS, paddr=0, filesz=CODE_BYTES, memsz=CODE_BYTES, align=1)]
        self.sections = [self.section(), self.section(type=PROGBITS, flags=6, addr=CODE_ADDRESS, offset=CODE_OFFSET, size=CODE_BYTES),
                         self.section(type=SYMTAB, link=NAMES, entsize=SYM_BYTES), self.section(type=STRTAB)]
        self.names = names
        self.symbols = symbols if symbols is not None else bytes(SYM_BYTES) + symbol(1)
        self.tail = b""

    @staticmethod
    def section(**changes):
        return dict(dict(name=0, type=0, flags=0, addr=0, offset=0, size=0, link=0, info=0, align=1, entsize=0), **changes)

    def places(self):
        """Where each part begins: program headers, section headers, symbols, names, and the end of all."""
        parts = [EHDR_BYTES, EHDR_BYTES + len(self.segments) * PHDR_BYTES]
        for size in (len(self.sections) * SHDR_BYTES, len(self.symbols), len(self.names)):
            parts.append(parts[-1] + size)
        return parts

    def data(self):
        _, shoff, symbols, names, end = self.places()
        self.sections[SYMBOLS] = dict(dict(self.sections[SYMBOLS], offset=symbols, size=len(self.symbols)), **self.sections[SYMBOLS].get("set", {}))
        self.sections[NAMES] = dict(dict(self.sections[NAMES], offset=names, size=len(self.names)), **self.sections[NAMES].get("set", {}))
        head = dict(dict(shoff=shoff, phnum=len(self.segments), shnum=len(self.sections)), **self.header)
        data = struct.pack("<4sBBBB8xHHIQQQIHHHHHH", *(head[key] for key in (
            "magic", "wide", "order", "version", "order", "type", "machine", "version", "entry", "phoff", "shoff", "flags", "ehsize",
            "phentsize", "phnum", "shentsize", "shnum", "shstrndx")))
        data += b"".join(struct.pack("<IIQQQQQQ", *(one[key] for key in (
            "type", "flags", "offset", "vaddr", "paddr", "filesz", "memsz", "align"))) for one in self.segments)
        data += b"".join(struct.pack("<IIQQQQIIQQ", *(one[key] for key in (
            "name", "type", "flags", "addr", "offset", "size", "link", "info", "align", "entsize"))) for one in self.sections)
        data += self.symbols + self.names
        assert len(data) == end
        return data.ljust(CODE_OFFSET + CODE_BYTES, b"\x90") + self.tail


def changed(part, index=None, **values):
    """A sound file with some members of one of its headers changed."""
    elf = Elf()
    if part == "header":
        elf.header.update(values)
    elif part == "segments":
        elf.segments[index].update(values)
    elif index in (SYMBOLS, NAMES):
        elf.sections[index]["set"] = values
    else:
        elf.sections[index].update(values)
    return elf.data()


def cut():
    """Cut at each boundary between headers and between their halves, and a byte before and behind it."""
    whole = Elf().data()
    places = Elf().places()
    ends = {0, 4, 5, 16, 20, 40, 52, CODE_OFFSET, len(whole)} | set(places)
    ends |= set(range(places[1], places[2], SHDR_BYTES // 2)) | {places[2] + SYM_BYTES, places[2] + SYM_BYTES + 4}
    return {"cut at %d" % end: whole[:end] for place in ends for end in (place - 1, place, place + 1) if 0 <= end <= len(whole)}


def extreme_counts():
    cases = {}
    for name, values in {
            "no sections": dict(shnum=0), "sections that are not there": dict(shnum=0xfeff), "reserved count": dict(shnum=0xffff),
            "no segments": dict(phnum=0), "segments that are not there": dict(phnum=0xfffe), "segments counted elsewhere": dict(phnum=0xffff),
            "entries of no bytes": dict(shentsize=0, phentsize=0), "entries of a byte": dict(shentsize=1, phentsize=1),
            "entries of 65535 bytes": dict(shentsize=0xffff, phentsize=0xffff), "names in a section that is not there": dict(shstrndx=0xffff),
            "section headers at the end of all": dict(shoff=LAST), "section headers at 2^63": dict(shoff=HUGE),
            "section headers in the header": dict(shoff=1), "program headers in the header": dict(phoff=1),
            "program headers at the end of all": dict(phoff=LAST), "a header of no bytes": dict(ehsize=0)}.items():
        cases[name] = changed("header", **values)
    for count in (0, 1, 0xff00, 1 << 31, HUGE, LAST):
        elf = Elf()
        elf.header["shnum"] = 0
        elf.sections[0].update(size=count, link=0xffffffff)
        cases["%d sections by section 0" % count] = elf.data()
        elf = Elf()
        elf.header["phnum"] = 0xffff
        elf.sections[0]["info"] = count & 0xffffffff
        cases["%d segments by section 0" % count] = elf.data()
    return cases


def claims():
    """Offsets and sizes beyond everything, overlaps and links in circles."""
    cases = {}
    for number in (CODE, SYMBOLS, NAMES):
        for member in ("offset", "size", "addr", "entsize", "align", "link"):
            for value in (0, 1, 0x7fffffff, 0xffffffff, HUGE - 1, HUGE, LAST - 1, LAST):
                if member != "link" or value <= 0xffffffff:
                    cases["section %d: %s %#x" % (number, member, value)] = changed("sections", number, **{member: value})
    for member in ("offset", "vaddr", "filesz", "memsz", "align"):
        for value in (0, 1, HUGE, LAST):
            cases["segment: %s %#x" % (member, value)] = changed("segments", 0, **{member: value})
    cases["symbols lie over the header"] = changed("sections", SYMBOLS, offset=0, size=4096)
    cases["names lie over the symbols"] = changed("sections", NAMES, offset=Elf().places()[2], size=48)
    cases["symbols are their own names"] = changed("sections", SYMBOLS, link=SYMBOLS)
    cases["names link to symbols and they to names"] = changed("sections", NAMES, link=SYMBOLS)
    cases["names are no names"] = changed("sections", NAMES, type=PROGBITS)
    cases["names are symbols too"] = changed("sections", NAMES, type=DYNSYM, link=NAMES)
    elf = Elf()
    elf.sections += [elf.section(type=SYMTAB_SHNDX, link=SYMBOLS, offset=0, size=HUGE), elf.section(type=DYNSYM, link=4, offset=1, size=LAST)]
    cases["indices of symbols in circles"] = elf.data()
    elf = Elf()
    elf.segments = [dict(elf.segments[0], vaddr=number << 40, flags=number % 8) for number in range(40)]
    cases["segments lie over each other"] = elf.data()
    return cases


def other_kinds():
    """Of another class, byte order, version or compression than is read."""
    cases = {}
    for name, values in {"big-endian": dict(order=2), "no byte order": dict(order=0), "32 bits in 64": dict(wide=1), "no class": dict(wide=0),
                         "class 3": dict(wide=3), "version 9": dict(version=9), "another magic": dict(magic=b"\x7fELG"),
                         "machine 0xffff": dict(machine=0xffff), "a core file": dict(type=4)}.items():
        cases[name] = changed("header", **values)
    for number in (SYMBOLS, NAMES):
        elf = Elf()
        packed = struct.pack("<IIQQ", 1, 0, LAST, 1) + zlib.compress(bytes(1 << 20))
        elf.tail = packed
        elf.sections[number]["set"] = dict(flags=0x800, offset=CODE_OFFSET + CODE_BYTES, size=len(packed))
        cases["section %d is compressed and says that it has 2^64-1 bytes" % number] = elf.data()
    cases["a sound one of 32 bits"] = narrow()
    cases["an archive"] = b"!<arch>\n" + b"x/              0           0     0     644     4294967295`\n" * 4
    return cases


def narrow():
    names, symbols = b"\0narrow\0", bytes(16) + struct.pack("<IIIBBH", 1, CODE_ADDRESS, CODE_BYTES, FUNC | GLOBAL, 0, CODE)
    symbols_at = 52 + 32 + 4 * 40
    data = struct.pack("<4sBBB9xHHIIIIIHHHHHH", b"\x7fELF", 1, 1, 1, 2, 3, 1, CODE_ADDRESS, 52, 84, 0, 52, 32, 1, 40, 4, 0)
    data += struct.pack("<8I", 1, CODE_OFFSET, CODE_ADDRESS, 0, CODE_BYTES, CODE_BYTES, 5, 1) + bytes(40)
    data += struct.pack("<10I", 0, PROGBITS, 6, CODE_ADDRESS, CODE_OFFSET, CODE_BYTES, 0, 0, 1, 0)
    data += struct.pack("<10I", 0, SYMTAB, 0, 0, symbols_at, len(symbols), 3, 0, 1, 16)
    data += struct.pack("<10I", 0, STRTAB, 0, 0, symbols_at + len(symbols), len(names), 0, 0, 1, 0)
    return (data + symbols + names).ljust(CODE_OFFSET + CODE_BYTES, b"\x90")


def named(name):
    """A sound file whose function has this name."""
    elf = Elf(names=b"\0" + name + b"\0")
    if len(elf.names) > 2048:
        elf.tail, elf.names = elf.names, b"\0"
        elf.sections[NAMES]["set"] = dict(offset=CODE_OFFSET + CODE_BYTES, size=len(elf.tail))
    return elf.data()


def strange_names():
    names = {"a terminal's escapes": b"\x1b]0;owned\x07\x1b[31mred\x1b[0m", "C1 controls": b"a\xc2\x9b31mb\xc2\x85c", "raw C1": b"\x9b31mred",
             "line ends": b"one\ntwo\rthree\x0bfour", "separators": b"a;b c 42", "invalid UTF-8": b"\xff\xfe\xc0\xaf\xed\xa0\x80\xf8\x88",
             "markup": b"</text><script>alert(1)</script>]]>&amp;\"'", "backspaces": b"rm -rf\x08\x08\x7f", "a format": b"%n%s%99999d",
             "turned around": "\u202egnp.exe\u2066\u2069".encode(), "half a letter": b"half\xe2\x82", "only underscores": b"_" * 4096,
             "a megabyte": b"m" * (1 << 20), "a megabyte of C++": b"_Z" + b"N" * (1 << 20), "a megabyte of Rust": b"_R" + b"N" * (1 << 20),
             "a deep C++ name": b"_Z1f" + b"P" * 16000 + b"i", "without end": b""}
    cases = {name: named(text) for name, text in names.items()}
    elf = Elf(names=b"x" * 64)
    cases["names that nothing ends"] = elf.data()
    cases["a name that begins behind the names"] = Elf(symbols=bytes(SYM_BYTES) + symbol(0xfffffff0)).data()
    for name, text in {"many aliases": [symbol(1)] * 2000, "symbols in each other": [symbol(1, size=CODE_BYTES - n) for n in range(2000)],
                       "symbols without size": [symbol(1, value=CODE_ADDRESS + n, size=0) for n in range(2000)],
                       "symbols that wrap": [symbol(1, value=LAST - n, size=LAST) for n in range(100)] + [symbol(1, size=LAST)]}.items():
        elf = Elf(symbols=b"\0" * SYM_BYTES)
        elf.tail = b"".join(text)
        elf.sections[SYMBOLS]["set"] = dict(offset=CODE_OFFSET + CODE_BYTES, size=len(elf.tail))
        cases[name] = elf.data()
    return cases
