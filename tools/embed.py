#!/usr/bin/env python3
"""Turns files into C arrays: embed.py OUTPUT NAME=FILE ...

The header holds one `static const char NAME[]` per file, without a NUL byte at the end: sizeof(NAME) is the file's size.
"""
import sys


def rows(data):
    for start in range(0, len(data), 24):
        yield "\t" + " ".join(f"{byte}," for byte in data[start:start + 24])


def main(output, pairs):
    lines = ["/* Made by tools/embed.py. */"]
    for pair in pairs:
        name, path = pair.split("=", 1)
        with open(path, "rb") as source:
            data = source.read()
        if b"]]>" in data or not data.isascii() or not data:
            sys.exit(f"{path}: must be ASCII, not empty, and without ]]>, because it stands in a CDATA section")
        lines.append(f"static const char {name}[] = {{")
        lines.extend(rows(data))
        lines.append("};")
    with open(output, "w", encoding="ascii") as header:
        header.write("\n".join(lines) + "\n")


main(sys.argv[1], sys.argv[2:])
