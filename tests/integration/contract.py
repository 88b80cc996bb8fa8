"""The contract in docs/protocol.md, sentence by sentence.

    @SENTENCE("A Unix stream socket.")
    def test_the_socket_is_a_stream():

says that the case tests these words, which stand once in the document (line breaks aside). unquoted() finds the
words of the document's checked parts that no case quotes: chapters 1, 2, 3, 5 and 6, and of chapter 4 the notes and
the rows of methods that are built (chapter 0 says which). What cannot be tested stands in UNTESTABLE with a reason.
"""
import ast
import functools
import glob
import json
import os
import re
import select
import socket
import time

from harness import Skip

HERE = os.path.dirname(os.path.abspath(__file__))
DOCUMENT = os.path.join(HERE, "..", "..", "docs", "protocol.md")
CHAPTERS = (1, 2, 3, 4, 5, 6)

UNTESTABLE = {
    "(macOS: `$TMPDIR` instead of `/tmp`)": "the tests run on Linux",
    "are remembered for an hour.": "would take an hour: the hour alone is not tested",
    "addresses travel as strings (`\"0x…\"`);": "no method that is built carries an address",
    "The gate's arguments and pipe words are part of the project's `protocol/gate.h`, which the daemon and every client in C share;":
        "says where the source stands; what it says of the gate is tested",
    "and old segments can be dropped (flight recorder).": "not built: ring_ms is tested to say so",
    "(off-CPU: microseconds;": "not built: mode offcpu is tested to say so",
}


def SENTENCE(*quotes):
    """Marks a case with the words of the contract that it tests; when it fails they are shown."""
    def mark(case):
        @functools.wraps(case)
        def checked():
            try:
                case()
            except Skip:
                raise
            except Exception:
                print("".join("# the contract: %s\n" % quote for quote in quotes), end="")
                raise
        return checked
    return mark


def one_line(text):
    return " ".join(text.split())


def read_document(path=DOCUMENT):
    with open(path, encoding="utf-8") as file:
        return file.read()


def chapters(document):
    """{number: text} of the document."""
    parts = re.split(r"(?m)^## (\d+)\. .*$", document)
    return {int(number): text for number, text in zip(parts[1::2], parts[2::2])}


def built_methods(document):
    row = next(line for line in chapters(document)[0].splitlines() if line.startswith("| methods |"))
    return set(re.findall(r"\w+", row.split("|")[2]))


def blocks(document):
    """The paragraphs, list items and table rows that are checked, each in one line."""
    built, found = built_methods(document), []
    for number in CHAPTERS:
        for paragraph in re.split(r"\n\s*\n", chapters(document)[number]):
            rows = [line for line in paragraph.splitlines() if line.startswith("|")]
            if rows:
                # The title over a table, its head and its rule say nothing.
                found += [row.strip("| ") for row in rows if set(re.findall(r"`(\w+)`", row.split("|")[1])) & built]
            else:
                found += re.split(r"(?m)^- ", paragraph)
    return [one_line(block) for block in found if block.strip()]


def sentences(document):
    """[(block, begin, end)]: each sentence of each block."""
    found = []
    for block in blocks(document):
        begin = 0
        for match in re.finditer(r"(?<=[.;:)|])\s+(?=[^a-z])|$", block):
            if re.search(r"\w", block[begin:match.start()]):
                found.append((block, begin, match.start()))
            begin = match.end()
    return found


def quotes(folder=HERE):
    """[(file and line, quote)] of all cases; a SENTENCE that marks no case is a fault."""
    found = []
    for path in sorted(glob.glob(os.path.join(folder, "test_conformance_*.py"))):
        with open(path, encoding="utf-8") as file:
            tree = ast.parse(file.read())
        marks = [mark for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
                 for mark in node.decorator_list if isinstance(mark, ast.Call) and getattr(mark.func, "id", "") == "SENTENCE"]
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "SENTENCE"]
        assert len(marks) == len(calls), path + ": a SENTENCE that marks no case"
        for mark in marks:
            for argument in mark.args:
                found.append(("%s:%d" % (os.path.basename(path), argument.lineno), ast.literal_eval(argument)))
    return found


def misquoted(document, quoted):
    """The quotes that do not stand exactly once in the document."""
    text = one_line(document)
    return ["%s: %d times in the document: %s" % (where, text.count(one_line(quote)), quote)
            for where, quote in quoted if text.count(one_line(quote)) != 1]


def unquoted(document, quoted):
    """The sentences with words that stand in no quote; those words are in «»."""
    marks = {}
    for block in blocks(document):
        marked = marks.setdefault(block, bytearray(len(block)))
        for _, quote in quoted:
            quote = one_line(quote).strip("| ")
            at = block.find(quote)
            if at >= 0:
                marked[at:at + len(quote)] = b"\1" * len(quote)
    found = []
    for block, begin, end in sentences(document):
        open_words = [match for match in re.finditer(r"[^\W_][\w.]*", block[begin:end])
                      if 0 in marks[block][begin + match.start():begin + match.end()]]
        if open_words:
            first, last = open_words[0].start(), open_words[-1].end()
            text = block[begin:end]
            found.append(text[:first] + "«" + text[first:last] + "»" + text[last:])
    return found


class Raw:
    """A connection without any help: bytes out, lines in."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(path)
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, *messages):
        """Bytes as they are, anything else as JSON with a line end."""
        for message in messages:
            self.socket.sendall(message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n")

    def silent(self, seconds=0.15):
        """Whether nothing comes, not even the end."""
        return not self.buffer and not select.select([self.socket], [], [], seconds)[0]

    def line(self, timeout=10):
        """The next line's bytes; b"" at the end of the connection."""
        end = time.monotonic() + timeout
        while b"\n" not in self.buffer:
            if not select.select([self.socket], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError("no line in %s s, only %r" % (timeout, self.buffer[:200]))
            try:
                data = self.socket.recv(1 << 16)
            except ConnectionResetError:
                data = b""
            if not data:
                assert not self.buffer, self.buffer
                return b""
            self.buffer += data
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line

    def message(self, timeout=10):
        return json.loads(self.line(timeout))

    def ask(self, *messages):
        self.send(*messages)
        return self.message()

    def until(self, condition, timeout=10):
        """The messages up to the first for which condition holds, that one last."""
        found = []
        while not found or not condition(found[-1]):
            found.append(self.message(timeout))
        return found
