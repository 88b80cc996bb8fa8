"""docs/protocol.md, chapter 4 and 6: what svg asks for, and what capture.svg says."""
import os

from analyzers import Analyzer
from contract import SENTENCE
from harness import FOREVER, Daemon, main, read_folded, target, wait_sampled, wait_until
from journals import BASE, NATIVE, small, varint
from pictures import Picture


SHORT = ("shares", "1", "60", "0")
NAMED_THREADS = ("threads",)


def record(client, svg, argv=SHORT, **profile):
    """The finished capture of a program, and its picture."""
    made = client.call("LaunchProcess", argv=[target(argv[0]), *argv[1:]], stdio="null", profile=dict(svg=svg, **profile))
    ended = client.call("WaitCapture", capture_id=made["capture_id"])
    assert ended["state"] == "finished", ended
    return ended, Picture(ended["svg_path"])


@SENTENCE("svg? (how the flame graph looks);", "The members of `svg`, all optional: `title` (at most 256 bytes; by default the label, else the "
          "program's name); `width_px` (200 to 20,000; by default as wide as the window); `min_share_ppm` (0 to 1,000,000, default 0:")
def test_members_and_their_ranges():
    with Daemon() as daemon:
        client = daemon.connect()
        client.call("LaunchProcess", argv=["sleep", "60"], stdio="null", build_id="b")
        for svg, word in ((5, "svg"), ({"titel": "x"}, "svg.titel"), ({"title": "x" * 257}, "svg.title"), ({"title": 5}, "svg.title"), ({"width_px": 199}, "svg.width_px"),
                          ({"width_px": 20001}, "svg.width_px"), ({"min_share_ppm": -1}, "svg.min_share_ppm"), ({"min_share_ppm": 1000001}, "svg.min_share_ppm"),
                          ({"order": "size"}, "svg.order"), ({"layout": "round"}, "svg.layout"), ({"colors": "hot"}, "svg.colors"), ({"threads": True}, "svg.threads")):
            for method, params in (("StartSamplingProfile", {"build_id": "b", "svg": svg}), ("LaunchProcess", {"argv": ["true"], "profile": {"svg": svg}})):
                error = client.fails(method, **params)
                assert error.number == -32602 and word in error.message, (method, svg, error.error)
        assert client.call("ListCaptures")["captures"] == []
        told, = [row for row in client.call("Describe", method="StartSamplingProfile")["methods"][0]["params"] if row["name"] == "svg"]
        assert told["supported"] and {row["name"]: row.get("default") for row in told["members"]} == {
            "title": None, "width_px": None, "min_share_ppm": 0, "order": "name", "layout": "icicle", "colors": "kind", "threads": "separate"}, told
        for svg in ({}, {"title": "", "width_px": 200, "min_share_ppm": 1000000}, {"title": "\u20ac" * 85, "width_px": 20000, "min_share_ppm": None}):
            made = client.call("StartSamplingProfile", build_id="b", svg=svg)
            client.call("StopCapture", capture_id=made["capture_id"], discard=True)
        ended, plain = record(client, {})
        assert plain.title == "shares" and plain.width == 0 and plain.attributes["width"] == "1200", plain.attributes
        ended, plain = record(client, {}, label="a label")
        assert plain.title == "a label"
        ended, wide = record(client, {"title": "<a> & \"title\"", "width_px": 1500}, label="a label")
        assert wide.title == "<a> & \"title\"" and wide.width == 1500 and wide.attributes["width"] == "1500" and wide.attributes["viewBox"].startswith("0 0 1500 ")


@SENTENCE("frames below this share of all samples, in millionths, are summed up as `(smaller frames)`); `order`: `name` (default), `weight` (the "
          "heaviest first); `layout`: `icicle` (default, the root at the top), `flame` (at the bottom);", "`threads`: `separate` (default), `merged` "
          "(no thread level: the stacks of all threads are one tree).")
def test_what_the_members_do():
    with Daemon() as daemon:
        client = daemon.connect()
        ended, plain = record(client, {})
        assert plain.stacks() == read_folded(ended["folded_path"]), "by default it is the tree of the folded stacks"
        assert all(children == sorted(children, key=lambda frame: frame.name.encode()) for children in plain.families())
        assert plain.rows["all"] < min(row for name, row in plain.rows.items() if name != "all")
        ended, turned = record(client, {"layout": "flame", "order": "weight", "min_share_ppm": 500000})
        folded = read_folded(ended["folded_path"])
        assert turned.layout == "flame" and turned.rows["all"] > max(row for name, row in turned.rows.items() if name != "all")
        for children in turned.families():
            weights = [frame.total for frame in children if frame.name != "(smaller frames)"]
            assert weights == sorted(weights, reverse=True), children
            assert [frame.name for frame in children].count("(smaller frames)") <= 1
        least = sum(folded.values()) / 2
        expected = {path[:depth] for path in folded for depth in range(1, len(path) + 1)
                    if sum(count for other, count in folded.items() if other[:depth] == path[:depth]) >= least}
        assert {frame.path for frame in turned.frames if frame.path and frame.name != "(smaller frames)"} == expected
        assert turned.frames[0].total == sum(folded.values()) and any(frame.name == "(smaller frames)" for frame in turned.frames)
        ended, merged = record(client, {"threads": "merged"}, NAMED_THREADS)
        stacks = {}
        for path, count in read_folded(ended["folded_path"]).items():
            stacks[path[1:]] = stacks.get(path[1:], 0) + count
        assert merged.stacks() == stacks and len({path[0] for path in read_folded(ended["folded_path"])}) > 1


@SENTENCE("`colors`: `kind` (default: whether the code is the program's, a library's, the kernel's, made at run time …), `image` (the file that it "
          "is in), `name`;")
def test_what_colours_follow():
    with Daemon() as daemon:
        client = daemon.connect()
        ended, kinds = record(client, {})
        assert {name for name, _, _, _ in kinds.legend} >= {"thread", "program"}, kinds.legend
        mine = [frame for frame in kinds.frames if frame.image == "shares"]
        assert mine and {frame.kind for frame in mine} == {"program"}
        assert {frame.kind for frame in kinds.frames if frame.image.startswith("libc.so")} <= {"library"}
        ended, images = record(client, {"colors": "image"})
        assert len({frame.colour for frame in images.frames if frame.image == "shares"}) == 1 and images.legend[0][0] == "shares"
        ended, names = record(client, {"colors": "name"})
        assert names.legend == [] and len({frame.colour for frame in names.frames if frame.image == "shares"}) > 1


@SENTENCE("They are kept with the capture: a flame graph that is made again looks the same.")
def test_a_recovered_capture_looks_as_was_asked_for():
    svg = {"title": "mine", "layout": "flame", "threads": "merged", "width_px": 400}
    with Daemon() as daemon:
        client = daemon.connect()
        made = client.call("LaunchProcess", argv=FOREVER, stdio="null", profile={"svg": svg})
        wait_sampled(client, made["capture_id"])
        path = os.path.join(daemon.data_dir, "captures", made["capture_id"], "capture.journal")
        wait_until(lambda: os.path.getsize(path) > 2000, 20, "samples on the disk")
        daemon.process.kill()
        daemon.process.wait()
        daemon.clients.clear()
        os.unlink(os.path.join(daemon.data_dir, "captures", made["capture_id"], "record.json")) # the journal has them too
        daemon.start()
        ended = daemon.connect().call("WaitCapture", capture_id=made["capture_id"])
        assert ended["reason"] == "recovered" and ended["options"]["svg"] == svg, ended
        again = Picture(ended["svg_path"])
        assert (again.title, again.layout, again.width) == ("mine", "flame", 400) and "thread" not in {frame.kind for frame in again.frames}


def draw(journal, **facts):
    """What the analyzer makes of a journal."""
    analyzer = Analyzer(journal.end(), facts=facts)
    done = analyzer.finish()
    assert done["type"] == "done", done
    picture = Picture(analyzer.path("svg"))
    analyzer.stop()
    return picture


@SENTENCE("Without scripts it is a picture of the widest 2,000 frames. It says how many samples were lost, how many stacks were cut, and how much CPU "
          "time is not in the samples, when that is so.", "The file stays below 4 MiB: what does not fit is summed up as `(smaller frames)`, and the number is told.")
def test_what_the_picture_says():
    journal = small()
    journal.stack(1, 10, [(BASE + 0x10, NATIVE)])
    journal.sample(10, 1, 6)
    assert draw(journal).note == "", "nothing is missing"
    journal = small()
    journal.stack(1, 10, [(BASE + 0x10, NATIVE)])
    journal.stack(2, 10, [(BASE + 0x20, NATIVE)], end=2)
    journal.sample(10, 1, 6)
    journal.sample(10, 2, 2)
    journal.record(15, b"\0" + varint(0) + varint(2)) # LOSS: two in the ring
    journal.record(16, b"\0" + varint(10) + varint(0) + varint(16016016) + varint(16016016) + varint(0)) # CPU_TIME: twice that of the samples
    picture = draw(journal)
    assert picture.note == "2 samples lost (20.00%) \u00b7 2 stacks cut (25.00%) \u00b7 0.01 s of CPU time not in the samples (50.00%)", picture.note
    assert picture.note in picture.lines and picture.subtitle == "999 Hz \u00b7 0 ms \u00b7 8 samples", picture.subtitle
    journal = small()
    journal.image(2, "/lib/" + "n" * 200 + ".so")
    journal.mapping(10, BASE + 0x10000000, 0x1000000, 0, 2)
    for number in range(1, 18001):
        journal.stack(number, 10, [(BASE + 0x10000000 + number * 0x10, NATIVE)])
        journal.sample(10, number, 2 if number <= 3000 else 1)
    picture = draw(journal)
    assert len(picture.rows_drawn) == 2000 and picture.bytes < 4 << 20, (len(picture.rows_drawn), picture.bytes)
    assert picture.all == 18002 and len(picture.frames) < 18002 and picture.frames[0].total == 21000
    assert any(frame.name == "(smaller frames)" for frame in picture.frames) and picture.cut > 1


main(globals())
