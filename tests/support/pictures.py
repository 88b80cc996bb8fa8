"""capture.svg, read by means of its own: the parts that svg_reader.py decodes, as objects."""
import collections
import json
import xml.parsers.expat as expat

from svg_reader import Markup, numbers, read_tree

Frame = collections.namedtuple("Frame", "name kind image colour total self path")


class Picture:
    """The document's texts and frames. Fails when the file is broken."""

    def __init__(self, path):
        with open(path, "rb") as file:
            raw = file.read()
        self.bytes = len(raw)
        markup = Markup(raw)
        doc = json.loads(markup.data[0])
        self.attributes, self.lines = root_of(raw), markup.lines
        self.title, self.subtitle, self.note, self.legend = doc["title"], doc["subtitle"], doc["note"], doc["legend"]
        self.width, self.layout, self.cut, self.all = doc["width"], doc["layout"], doc["cut"], doc["all"]
        self.rows_drawn = markup.rects
        self.rows = {title.rsplit(" (", 1)[0]: float(rect["y"]) for rect, title in markup.rects}
        self.frames = list(frames_of(doc))

    def stacks(self):
        """What folded stacks say: {path: weight}."""
        found = {}
        for frame in self.frames:
            if frame.self:
                found[frame.path] = found.get(frame.path, 0) + frame.self
        return found

    def families(self):
        """The frames with the same caller, in their order."""
        found = collections.OrderedDict()
        for frame in self.frames[1:]:
            found.setdefault(frame.path[:-1], []).append(frame)
        return list(found.values())


def root_of(raw):
    seen = []
    parser = expat.ParserCreate()
    parser.StartElementHandler = lambda name, given: seen.append(given)
    parser.Parse(raw, True)
    return seen[0]


def frames_of(doc):
    flat = list(numbers(doc["symbols"]))
    path = []
    for depth, total, own, symbol in read_tree(doc["tree"]):
        kind, colour, image = flat[symbol * 3:symbol * 3 + 3]
        name = doc["names"][symbol]
        del path[max(depth - 1, 0):]
        if depth > 0:
            path.append(name + ("_[k]" if doc["kinds"][kind] == "kernel" else ""))
        yield Frame(name, doc["kinds"][kind], doc["images"][image], doc["light"][colour], total, own, tuple(path))
