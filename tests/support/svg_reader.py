"""Reads a flame graph by means of its own: Python's expat and json parse the file, and the numbers in the data are
decoded here a second time, from their description in svg_pack.h.

    svg_reader.py FILE.svg

Prints a line per fact, and fails when the file is broken:
    file BYTES | head CUT ALL FRAMES | title TEXT | subtitle TEXT
    note TEXT | look WIDTH LAYOUT | legend NAME LIGHT DARK SELF
    data DEPTH TOTAL SELF KIND IMAGE NAME (kind: "-" is the root's) | rect X Y WIDTH FILL TITLE | text TEXT
Texts are JSON without blanks: a blank is \\u0020.
"""
import json
import sys
import xml.parsers.expat as expat

DIGITS = {digit: i for i, digit in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")}


class Markup:
    """What the elements hold: the data, the rectangles with their titles, and the lines of text."""

    def __init__(self, raw):
        self.path, self.texts, self.group = [], [], {}
        self.data, self.rects, self.lines = [], [], []
        parser = expat.ParserCreate()
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.end
        parser.CharacterDataHandler = lambda text: self.texts[-1].append(text)
        parser.Parse(raw, True)

    def start(self, name, given):
        self.path.append((name, given))
        self.texts.append([])
        if name == "rect":
            self.group["rect"] = given

    def end(self, name):
        text, (_, given) = "".join(self.texts.pop()), self.path.pop()
        if name == "script" and given.get("type") == "application/json":
            self.data.append(text)
        elif name == "title" and self.path[-1][0] == "g":
            self.group["title"] = text
        elif name == "text" and "class" in given:
            self.lines.append(text)
        elif name == "g" and "title" in self.group:
            self.rects.append((self.group.pop("rect"), self.group.pop("title")))


def numbers(text):
    value = shift = 0
    for digit in map(DIGITS.__getitem__, text):
        value |= (digit & 31) << shift
        shift += 5
        if digit < 32:
            yield value
            value = shift = 0


def read_tree(text):
    """Lists of depth, total, self and symbol, each frame before what it calls."""
    frames, depth, stream = [], 0, numbers(text)
    for head in stream:
        symbol = next(stream)
        own = next(stream) if head & 1 else 0
        depth -= head >> 1
        assert depth >= 0
        frames.append([depth, own, own, symbol])
        depth += 1
    callers, path = [], []
    for frame in frames:
        del path[frame[0]:]
        assert len(path) == frame[0]
        callers.append(path[-1] if path else None)
        path.append(frame)
    for frame, caller in zip(reversed(frames), reversed(callers)):
        if caller:
            caller[1] += frame[1]
    return frames


def word(text):
    return json.dumps(text).replace(" ", "\\u0020")


def main(path):
    with open(path, "rb") as file:
        raw = file.read()
    markup = Markup(raw)
    doc = json.loads(markup.data[0])
    flat = list(numbers(doc["symbols"]))
    symbols = [flat[i:i + 3] for i in range(0, len(flat), 3)]
    frames = read_tree(doc["tree"])
    assert len(symbols) == len(doc["names"])
    assert len(frames) == doc["frames"]
    print("file", len(raw))
    print("head", doc["cut"], doc["all"], doc["frames"])
    print("title", word(doc["title"]))
    print("subtitle", word(doc["subtitle"]))
    print("note", word(doc["note"]))
    print("look", doc["width"], doc["layout"])
    for name, light, dark, own in doc["legend"]:
        print("legend", word(name), light, dark, own)
    for depth, total, own, symbol in frames:
        kind, shade, image = symbols[symbol]
        assert shade < len(doc["light"]) == len(doc["dark"])
        print("data", depth, total, own, doc["kinds"][kind] or "-", word(doc["images"][image]), word(doc["names"][symbol]))
    for rect, title in markup.rects:
        print("rect", rect["x"], rect["y"], rect["width"], rect["fill"], word(title))
    for line in markup.lines:
        print("text", word(line))


if __name__ == "__main__":
    main(sys.argv[1])
