#!/usr/bin/env python3
"""Turns the flame graph's style and script into C arrays: embed.py FILE.css FILE.js… OUTPUT

The scripts are joined, in that order, into one function that is called at once: nothing of theirs is seen by a page that
holds the picture. The header has `static const char flamegraph_style[]` and `flamegraph_script[]`, without a NUL byte at the end:
sizeof is the length.
"""
import sys


def rows(data):
    for start in range(0, len(data), 24):
        yield "\t" + " ".join(f"{byte}," for byte in data[start:start + 24])


def read(path):
    with open(path, "rb") as source:
        data = source.read()
    if b"]]>" in data or not data.isascii() or not data:
        sys.exit(f"{path}: must be ASCII, not empty, and without ]]>, because it stands in a CDATA section")
    return data


def main(style, *scripts_and_output):
    *scripts, output = scripts_and_output
    script = b'(function () {\n"use strict";\n' + b"\n".join(map(read, scripts)) + b"})();\n"
    lines = ["/* Made by tools/embed.py. */"]
    for name, data in (("style", read(style)), ("script", script)):
        lines += [f"static const char flamegraph_{name}[] = {{", *rows(data), "};"]
    with open(output, "w", encoding="ascii") as header:
        header.write("\n".join(lines) + "\n")


main(*sys.argv[1:])
