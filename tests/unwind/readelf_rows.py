"""Compares the rows of our reader of call-frame information with those of binutils' readelf, at every place where a row begins."""
import bisect
import re
import subprocess

NAMES = {"rax": 0, "rdx": 1, "rcx": 2, "rbx": 3, "rsi": 4, "rdi": 5, "rbp": 6, "rsp": 7, "rip": 16, "sp": 31}
NAMES.update({"r%d" % i: i for i in range(8, 16)})
NAMES.update({"x%d" % i: i for i in range(31)})
FDE = re.compile(r"FDE .*pc=([0-9a-f]+)\.\.([0-9a-f]+)")
CIE = re.compile(r"^([0-9a-f]+) .* CIE .*cf=")
OWNER = re.compile(r"cie=([0-9a-f]+)")


def cfa(text):
    """readelf's "rsp+8" as "r7+8"."""
    match = re.match(r"^([a-z0-9]+?)([+-]\d+)$", text)
    return "r%d%s" % (NAMES[match.group(1)], match.group(2)) if match else text


def rule(text):
    return "r%d" % NAMES[text] if text in NAMES else text


class Listing:
    """What readelf says of one file: a row for each place, (cfa, fp, ra)."""

    def __init__(self, path, fp):
        self.rows, self.common, self.fp = {}, {}, fp
        self.section = self.entry = None
        self.columns = []
        out = subprocess.run(["readelf", "--debug-dump=frames-interp", path], stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True, check=False).stdout  # it fails for a debug link that leads nowhere
        for line in out.splitlines():
            self.take(line)
        self.finish()

    def take(self, line):
        if line.startswith("Contents of"):
            self.finish()
            self.section = line.split()[3]
        elif FDE.search(line) or CIE.search(line):
            self.finish()
            self.begin(line)
        elif line.strip().startswith("LOC"):
            self.columns = line.split()
        elif self.entry is not None and re.match(r"^[0-9a-f]{16} ", line):
            fields = dict(zip(self.columns, re.sub(r" \(\w+\)", "", line).split()))  # "r9 (r9)": the number is enough
            self.entry["rows"].append((int(fields["LOC"], 16), (cfa(fields["CFA"]), rule(fields.get(self.fp, "u")),
                                                                rule(fields.get("ra", "u")))))

    def begin(self, line):
        match = FDE.search(line)
        if match:
            self.entry = {"begin": int(match.group(1), 16), "end": int(match.group(2), 16), "rows": [],
                          "cie": int(OWNER.search(line).group(1), 16)}
        else:
            self.entry = {"at": int(CIE.search(line).group(1), 16), "rows": []}

    def finish(self):
        """A place that several entries speak of, and code that the linker threw away, is left out."""
        entry, self.entry = self.entry, None
        if entry is None:
            return
        if "at" in entry:
            self.common[self.section, entry["at"]] = entry["rows"][0][1] if entry["rows"] else ("none", "u", "u")
        elif entry["end"] > entry["begin"] > 0:
            self.add(entry)

    def add(self, entry):
        rows = entry["rows"] or [(entry["begin"], self.common[self.section, entry["cie"]])]
        last = rows[0][1]
        for place, row in rows:
            if entry["begin"] <= place < entry["end"]:
                self.rows.setdefault(place, row)
                last = row
        self.rows.setdefault(entry["end"] - 1, last)


def compare(tool, path, fp="rbp"):
    """The number of rows, and the lines that differ: (place, theirs, ours). A row and where it holds are ours."""
    theirs = Listing(path, fp).rows
    places = sorted(theirs)
    out = subprocess.run([tool, path], input="\n".join("%x" % place for place in places), stdout=subprocess.PIPE, check=True,
                         text=True).stdout
    ours, ranges = {}, {}
    for line in out.splitlines():
        place, *row = line.split()
        if ".." in row[-1]:
            ranges[int(place, 16)] = [int(number, 16) for number in row.pop().split("..")]
        ours[int(place, 16)] = tuple(row)
    different = [(hex(place), theirs[place], ours.get(place)) for place in places if theirs[place] != ours.get(place)]
    return len(places), different + [(hex(place), "holds elsewhere", range_) for place, range_ in ranges.items() if not holds(theirs, places, place, *range_)]


def holds(theirs, places, place, begin, end):
    """Whether a row that is said to hold from begin to end is one that readelf has there, from one of its places to another, and no other between."""
    between = places[bisect.bisect_left(places, begin):bisect.bisect_left(places, end)]
    return (begin <= place < end and begin in theirs and (end in theirs or end - 1 in theirs)
            and all(theirs[other] == theirs[place] for other in between))
