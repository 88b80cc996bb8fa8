"""Programs whose submitted work waits for what they do only later, where RenderDoc, which waits for the device when it begins and ends, would hang them."""
import contextlib
import os
import re
import select
import subprocess
import time

import test_gpu_documents
from gpu_listener import Listener, frames_in, need
from harness import main, target, wait_until

PROGRAM = target("gpu_waits")
HANGS_S = 10
HEARD_FRAMES = 20  # so many frames after a start the program has heard of it
HELD = "submitted work waits for the value 1 of a timeline semaphore that comes to 0"


class Engine:
    """The program under a listener, at its device. says(…): it does these lines, and what it answered to the last."""

    def __init__(self, listener, **env):
        self.program = subprocess.Popen([PROGRAM], env=listener.environment(**env), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        listener.programs.append(self.program)
        self.listener, self.connection = listener, listener.accept()
        self.connection.wait("hello")
        self.connection.send("status")
        self.connection.wait("device")

    def tell(self, line):
        self.program.stdin.write(line + "\n")
        self.program.stdin.flush()

    def answers(self, seconds):
        """What it says until it is done with the line; None: not in that time."""
        end, said = time.monotonic() + seconds, ""
        while not said.endswith("done\n"):
            if not select.select([self.program.stdout], [], [], max(0, end - time.monotonic()))[0]:
                return None
            more = os.read(self.program.stdout.fileno(), 4096).decode()
            if not more:
                return ""
            said += more
        return said.split("\n")[0]

    def says(self, *lines):
        answer = None
        for line in lines:
            self.tell(line)
            answer = self.answers(HANGS_S)
            assert answer, "%s: %s" % (line, "hangs" if answer is None else self.program.stderr.read())
        return answer

    def start(self, **words):
        """Behind what the program has done; it takes effect in what it does next."""
        told = -1
        while told < len(self.connection.lines):
            told = len(self.connection.lines)
            self.connection.read_some(0.02)
        while self.connection.seen < told and self.connection.lines[self.connection.seen].word in ("frame", "device"):
            self.connection.seen += 1
        self.connection.send("start", template=self.listener.out("doc"), **words)
        self.connection.send("status")
        self.connection.wait("frame")

    def document(self, before=0):
        """Its first and last frame. before: so many were submitted before the first that is counted."""
        document = self.connection.wait("document", "fault")
        assert document.word == "document", document
        frames = ["frame %d" % (n + before) for n in range(document["first"], document["last"] + 1)]
        assert frames_in(document["path"]) == frames
        return document["first"], document["last"]

    def fault(self):
        fault = self.connection.wait("document", "fault")
        assert fault.word == "fault", fault
        return fault["code"], fault["text"]

    def ends(self):
        """It goes on as ever, to its end."""
        self.program.stdin.close()
        self.connection.drain()
        assert self.program.wait(HANGS_S) == 0


@contextlib.contextmanager
def engine(**env):
    need()
    with Listener() as listener:
        yield Engine(listener, **env)


def test_the_last_frame_of_a_program_that_rests_is_told():
    with engine() as it:
        it.says(*["submit"] * 40)
        while it.connection.wait("frame", timeout=3)["n"] < 39:
            pass
        it.ends()


def test_a_first_frame_that_cannot_begin_is_refused_and_the_program_goes_on():
    for two in ("", " 2"):
        with engine() as it:
            it.says("submit", "submit wait=1" + two)
            it.start(by="submit", first=2, last=2)
            it.says("submit")
            code, text = it.fault()
            assert code == "device_waits" and HELD in text, (code, text)
            it.says("signal 1", "idle")
            # What was refused is over; nothing is kept of it.
            it.start(by="submit", first=3, last=3)
            it.says("submit", "idle")
            assert it.document() == (3, 3)
            it.ends()


def test_a_beginning_without_a_place_is_put_off():
    for words in ({"by": "manual"}, {"by": "submit", "next": 1}, {"by": "auto", "next": 1}, {"by": "label", "label": "frame", "next": 1}):
        with engine() as it:
            it.says("submit", "submit wait=1")
            it.start(**words)
            it.says("submit", "submit", "signal 1")
            waits = it.connection.wait("waits", "capturing", "fault")
            assert waits.word == "waits" and waits["for"] == "begin" and HELD in waits["text"], waits
            assert 0 < time.monotonic_ns() - waits["mono_ns"] < 60e9
            it.says("submit", "idle")
            if words["by"] == "manual":
                it.connection.send("stop")
            elif words["by"] == "label":
                it.says("submit", "idle")
            # By label they count from the start.
            assert it.document(before=2 if words["by"] == "label" else 0) == ((2, 2) if words["by"] == "label" else (4, 4))
            assert len(it.connection.find("waits")) == 1
            it.ends()


def test_what_is_reached_by_what_was_submitted_keeps_nothing_waiting():
    with engine() as it:
        it.says("submit signal=1", "submit wait=1", "submit empty signal=2", "submit 2 wait=2 signal=3", "submit empty wait=3")
        it.start(by="submit", first=3, last=4)
        it.says("submit 2 signal=4", "submit wait=4", "submit")
        assert it.document() == (3, 4)
        assert not it.connection.find("waits")
        it.ends()


def test_another_threads_signal_is_waited_for():
    with engine() as it:
        it.says("submit", "submit wait=1")
        it.start(by="submit", first=2, last=2)
        it.says("later 300 1", "submit", "idle")
        assert it.document() == (2, 2)
        it.ends()


def test_an_end_is_put_off_until_the_host_signals():
    with engine() as it:
        it.says("submit")
        it.start(by="submit", first=1, last=1)
        it.says("submit wait=1", "signal 1")
        assert it.document() == (1, 1)
        assert [line["for"] for line in it.connection.find("waits")] == ["end"]
        it.says("submit", "idle")
        it.ends()


def test_an_end_is_put_off_until_a_submit_signals():
    with engine() as it:
        it.start(by="submit", first=0, last=0)
        it.says("submit wait=1", "submit")
        it.says("signal 1", "idle")
        assert it.document() == (0, 1), "the next submit is in it, too"
        it.ends()


def test_a_stop_waits_for_the_device():
    with engine() as it:
        it.start(by="manual")
        it.says("submit", "submit wait=1")
        it.connection.send("stop")
        assert it.connection.wait("waits", "document", "fault")["for"] == "end"
        time.sleep(0.5)
        it.says("signal 1")
        assert it.document() == (0, 1)
        it.ends()


def test_a_program_that_exits_with_work_that_waits_is_not_kept():
    with engine() as it:
        it.start(by="manual")
        it.says("submit wait=1")
        it.tell("exit")
        assert it.program.wait(HANGS_S) == 0
        it.connection.drain()
        assert it.fault()[0] == "device_waits"


def begins(it):
    """The program's own start, which is granted; what it returns."""
    it.tell("begin")
    asked = it.connection.wait("ask")
    it.connection.send("start", by="manual", asked=asked["n"], template=it.listener.out("doc"))
    return it.answers(HANGS_S)


def test_the_programs_own_start_and_stop_say_that_they_cannot():
    with engine() as it:
        it.says("submit", "submit wait=1")
        assert begins(it) == "begin -7"
        assert it.fault()[0] == "device_waits"
        it.says("signal 1")
        assert begins(it) == "begin 0"
        it.says("submit wait=2")
        assert it.says("end") == "end -7", "it goes on"
        assert it.says("signal 2", "end") == "end 0"
        assert it.document() == (2, 2)
        it.ends()


def test_each_device_has_its_own_work():
    with engine() as it:
        it.says("submit wait=1", "device 1", "submit")
        it.start(by="submit", first=1, last=1)
        it.says("submit", "idle")
        assert it.document() == (1, 1)
        it.says("device 0", "signal 1", "idle")
        it.ends()


def test_a_semaphore_that_is_gone_is_waited_for_no_more():
    with engine() as it:
        # The second has the place of the first, and is at 0 again.
        it.says("submit wait=1", "signal 1", "idle", "new", "submit wait=1")
        it.start(by="manual")
        it.says("submit")
        assert it.connection.wait("waits", "capturing")["for"] == "begin"
        it.says("signal 1", "submit", "idle")
        it.connection.send("stop")
        assert it.document() == (3, 3)
        it.ends()


def test_a_renderdoc_that_does_not_come_back_is_told_of():
    # Of the host's events nothing is known before.
    with engine() as it:
        it.says("submit", "events")
        it.start(by="submit", first=2, last=2)
        it.tell("submit")
        waits = it.connection.wait("waits", "capturing", "fault")
        assert waits.word == "waits" and waits["for"] == "begin" and "vkSetEvent" in waits["text"], waits
        assert it.answers(0) is None
        it.program.kill()
    with engine() as it:
        it.start(by="manual")
        it.says("events")
        it.connection.send("stop")
        waits = it.connection.wait("waits", "document", "fault")
        assert waits.word == "waits" and waits["for"] == "end", waits
        # It hangs only who needs RenderDoc meanwhile.
        it.says("set")
        assert it.document() == (0, 0)
        it.ends()


def renewed(it, seconds=3):
    """The next connection of a program that has closed the one before, behind its hello and its device."""
    before = it.connection
    it.connection = it.listener.accept(seconds)
    hello = it.connection.wait("hello")
    assert hello["again"] == "closed" and hello["pid"] == it.program.pid and hello["order"] == "above", hello
    assert it.connection.wait("device").values == before.find("device")[0].values
    before.drain()
    assert not before.find("bye")


def test_a_program_that_closes_what_it_did_not_open_is_there_again():
    with engine() as it:
        it.says("submit", "closefrom")
        renewed(it)
        # RenderDoc's log has its place again, and so none of it is in the document.
        it.start(by="submit", first=2, last=2)
        it.says("submit", "submit", "submit", "idle")
        assert it.document() == (2, 2)
        # While it is recorded, too; nobody waits for that document any more, and it ends.
        it.start(by="manual")
        it.says("submit", "closefrom")
        renewed(it)
        assert it.document() == (4, 4)
        it.ends()


def test_what_it_opens_in_their_place_is_its_own():
    with engine() as it:
        it.says("submit", "plug")
        renewed(it)
        it.says("submit", "submit")
        it.start(by="submit", next=1)
        it.says("submit")
        code, text = it.fault()
        assert code == "descriptor_closed" and "descriptor 3" in text, (code, text)
        assert it.says("heard") == "0"
        it.ends()


def check_traces():
    """With the daemon the whole way: a start_frame that fails, one that never begins, and one that begins where it can. test_conformance_gpu.py has the case."""
    with test_gpu_documents.stage() as (_, client):
        client.call("LaunchProcess", argv=[PROGRAM], gpu=True, build_id="engine")
        said = 0

        def say(*lines):
            nonlocal said
            client.call("WriteStdin", build_id="engine", data="".join(line + "\n" for line in lines))
            said += len(lines)
            wait_until(lambda: client.call("GetOutput", build_id="engine", stream="stdout")["data"].count("done") == said, what="the program")

        def start(**params):
            return client.call("StartGpuTrace", build_id="engine", **params)["capture_id"]

        def error_of(capture_id):
            error = client.call("WaitCapture", capture_id=capture_id)["error"]
            return error["data"]["code"], error["data"]["detail"], error["message"]

        frames = 0

        def submit(*lines):
            """Each a frame of its own."""
            nonlocal frames
            for line in lines or ("submit",):
                say(line)
                frames += line.startswith("submit")

        def before(frame):
            """It comes to this frame; a start that was answered is heard by then: many answers of the program's have come meanwhile."""
            while frames < frame:
                submit()

        first = start(start_frame=HEARD_FRAMES)
        before(HEARD_FRAMES - 1)
        submit("submit wait=1", "submit")
        code, detail, message = error_of(first)
        assert (code, detail) == ("gpu_frame_not_reached", "device_waits") and HELD in message, message
        second = start(timeout_ms=300)
        while client.call("GetCapture", capture_id=second)["state"] == "armed":
            submit()
        code, detail, message = error_of(second)
        assert (code, detail) == ("gpu_frame_not_reached", "device_waits") and HELD in message, message
        assert re.search(r"could not begin for [123]\d\d ms", message), message
        third = start(frames=1)
        before(frames + HEARD_FRAMES)
        submit("signal 1", "idle")
        held = frames
        submit("submit", "idle")
        record = client.call("WaitCapture", capture_id=third)
        assert test_gpu_documents.frames_in(record) == [held] and "range_exceeded" not in test_gpu_documents.codes_of(record), record
        fourth = start(start_frame=frames + HEARD_FRAMES)
        before(frames + HEARD_FRAMES)
        expected = [frames, frames + 1]
        submit("submit wait=2", "submit", "signal 2", "idle")
        record = client.call("WaitCapture", capture_id=fourth)
        assert test_gpu_documents.frames_in(record) == expected and "range_exceeded" in test_gpu_documents.codes_of(record), record
        warning, = [warning for warning in record["warnings"] if warning["code"] == "range_exceeded"]
        assert "2" in warning["message"] and "1" in warning["message"], warning


if __name__ == "__main__":
    main(globals())
