"""Frames that Vulkan programs present in windows of X: vkcube, and gpu_windows, which changes and destroys its swapchain while it is recorded. Which
frames a document has is read from its calls: each picture has a color of its own."""
import os
import shutil

from gpu_listener import Listener, armed, convert, frames_in, need
from harness import main, skip, target
from test_gpu_layer import finish
from xserver import display


def test_frames_that_are_presented_are_those_that_were_asked_for():
    need()
    if not shutil.which("vkcube"):
        skip("no vkcube (vulkan-tools)")
    with display() as name, Listener() as listener:
        for words, first, last in (({"by": "present", "first": 10, "last": 11}, 10, 11), ({"by": "auto", "first": 3, "last": 3}, 3, 3)):
            program = listener.run(["vkcube", "--c", "20"], listener.environment(DISPLAY=name))
            connection = listener.accept()
            assert connection.wait("hello")["order"] == "above"
            connection.send("start", template=listener.out("doc"), **words)
            connection.drain()
            finish(program)
            document = connection.find("document")[0]
            assert (document["first"], document["last"]) == (first, last), connection.lines
            assert connection.find("frame")[-1].values == {"n": "19", "by": "present"}
            calls = [chunk.get("name") for chunk in convert(document["path"]).iter("chunk")]
            for call in ("vkQueueSubmit", "vkQueuePresentKHR"):
                assert calls.count(call) == last - first + 1, (call, calls)
            assert calls[-2] == "vkQueuePresentKHR", calls[-3:]



def test_what_is_recorded_to_the_end_is_numbered_as_it_is_said():
    need()
    if not shutil.which("vkcube"):
        skip("no vkcube (vulkan-tools)")
    with display() as name, Listener() as listener:
        for counts, call in (("submit", "vkQueueSubmit"), ("present", "vkQueuePresentKHR")):
            program = listener.run(["vkcube", "--c", "10"], listener.environment(DISPLAY=name))
            connection = listener.accept()
            connection.send("start", by="manual", counts=counts, template=listener.out("doc"))
            connection.drain()
            finish(program)
            document, = connection.find("document")
            calls = [chunk.get("name") for chunk in convert(document["path"]).iter("chunk")]
            assert document["first"] == 0 and document["last"] + 1 == calls.count(call), (document.values, calls)
            # It submits once before its first picture.
            assert (calls.count("vkQueueSubmit"), calls.count("vkQueuePresentKHR")) == (11, 10)


def pictures_of(path):
    """The frames whose pictures are filled in the document, and its presents, in their order."""
    found = []
    for chunk in convert(path).iter("chunk"):
        if chunk.get("name") == "vkCmdClearColorImage":
            found.append(round(float(next(chunk.iter("float")).text) * 256))
        elif chunk.get("name") == "vkQueuePresentKHR":
            found.append("present")
    return found


class Recorded:
    """What came of gpu_windows, which ends as it does without the layer: what was said, and the document's pictures (none: no document)."""

    def __init__(self, display_name, args, **words):
        with Listener() as listener:
            program = listener.run([target("gpu_windows"), *map(str, args)], listener.environment(DISPLAY=display_name))
            connection = listener.accept()
            connection.wait("hello")
            connection.send("start", template=listener.out("doc"), **words)
            connection.drain()
            assert finish(program) == "10 frames\n"
            self.files = [name for name in os.listdir(listener.folder) if name.endswith(".rdc")]
            documents = connection.find("document")
            assert len(documents) == len(self.files) <= 1, connection.lines
            self.frames = [(line["first"], line["last"], line.values.get("by")) for line in documents]
            self.pictures = pictures_of(documents[0]["path"]) if documents else []
            self.connection = connection


def shown(first, last):
    return [word for frame in range(first, last + 1) for word in (frame, "present")]


def need_windows():
    need()
    if not os.path.exists(target("gpu_windows")):
        skip("gpu_windows is not built: no headers of X (libx11-dev)")


def test_a_recording_ends_before_the_swapchain_that_it_shows():
    need_windows()
    with display() as name:
        # What it does with its swapchain, the last frame that is recorded from frame 2 on, and by what that was ended.
        for args, last, by in (([], 9, "window"), (["--resize", 4], 9, "window"), (["--replace", 4], 3, "window"), (["--close", 6], 5, "window"),
                               (["--resize", 4, "--close", 4], 3, "window"), (["--resize", 4, "--replace", 4], 9, "window"), (["--exit"], 9, None)):
            done = Recorded(name, args, by="auto", first=2, last=1000)
            assert (done.frames, done.pictures) == ([(2, last, by)], shown(2, last)), (args, done.frames, done.pictures)


def test_windows_that_are_presented_together():
    need_windows()
    with display() as name:
        # Two pictures a frame; the first window goes first, or is changed alone.
        for args, last, by in ((["--two"], 9, "window"), (["--two", "--resize", 4], 9, "window"), (["--two", "--replace", 4], 3, "window"),
                               (["--two", "--close", 6], 5, "window"), (["--two", "--exit"], 9, None)):
            done = Recorded(name, args, by="present", first=2, last=1000)
            expected = [word for frame in range(2, last + 1) for word in (frame, frame, "present")]
            assert (done.frames, done.pictures) == ([(2, last, by)], expected), (args, done.frames, done.pictures)
        # Nothing but the instance is destroyed.
        done = Recorded(name, ["--instance"], by="present", first=2, last=1000)
        assert (done.frames, done.pictures) == ([(2, 9, None)], shown(2, 9)), (done.frames, done.pictures)


def test_a_swapchain_that_goes_disturbs_no_recording_before_and_after_it():
    need_windows()
    with display() as name:
        for args, first, last in ((["--resize", 4], 1, 3), (["--replace", 4], 1, 3), (["--resize", 4], 4, 5), (["--replace", 4], 4, 5),
                                  (["--resize", 4], 2, 6)):
            done = Recorded(name, args, by="present", first=first, last=last)
            assert (done.frames, done.pictures) == ([(first, last, None)], shown(first, last)), (args, done.frames, done.pictures)
        # By submits, when the window is gone.
        assert Recorded(name, ["--close", 4], by="submit", first=5, last=7).frames == [(5, 7, None)]


def test_a_frame_that_is_not_presented_has_no_end():
    need_windows()
    with display() as name:
        # The window is closed before frame 6; what is submitted then is presented no more.
        done = Recorded(name, ["--close", 6], by="present", first=6, last=6)
        line, = done.connection.find("document")
        assert (line["first"], line["last"], line["open"]) == (6, 6, 1) and done.pictures == [], line
        for args, last in ((["--exit"], 1000), ([], 9)):
            line, = Recorded(name, args, by="present", first=6, last=last).connection.find("document")
            assert "open" not in line.values, line
    with armed("--frames", 4) as (listener, program, connection):
        connection.send("start", by="present", first=0, last=0, template=listener.out("doc"))
        connection.drain()
        program.wait(20)
        line, = connection.find("document")
        assert (line["first"], line["last"], line["open"]) == (0, 0, 1) and frames_in(line["path"]) == ["frame %d" % n for n in range(4)]


def test_a_frame_that_never_was_is_not_begun():
    need_windows()
    with display() as name:
        for args in ([], ["--exit"]):
            done = Recorded(name, args, by="present", first=10, last=10)
            assert (done.frames, done.connection.find("capturing"), done.connection.find("fault")) == ([], [], [])
            assert done.connection.find("frame")[-1].values == {"n": "9", "by": "present"}


if __name__ == "__main__":
    main(globals())
