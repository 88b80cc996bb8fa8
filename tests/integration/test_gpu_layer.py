"""The Vulkan layer in a program, driven over its wire as profd does it (protocol/gpu_wire.h), and documents as RenderDoc's own tool reads them."""
import os
import signal
import subprocess
import time

from gpu_listener import (LAVAPIPE, LAYER_SHARE, TOKEN, Listener, armed, convert, frames_in, frames_program, labels_of, listening_ports, need)
from harness import main, skip, wait_until

FRAME_LINES_A_SECOND = 10
FRAMES_ALL_TOLD = 16


def bare_output(*args):
    """What the program says without the layer."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(("VK_", "PROFD_GPU"))}
    env["VK_ICD_FILENAMES"] = LAVAPIPE[0]
    return subprocess.run(frames_program(*args), env=env, capture_output=True, text=True, timeout=60, check=True).stdout


def finish(program, timeout=30):
    out, err = program.communicate(timeout=timeout)
    assert program.returncode == 0, (program.returncode, out, err)
    return out


def capture(args, words, expected, env=None):
    """Starts at hello; the one document that is made has these frames in it, and the program's result is what it is without the layer."""
    with armed(*args, env=env) as (listener, program, connection):
        connection.wait("hello")
        connection.send("start", template=listener.out("doc"), **words)
        connection.drain()
        assert finish(program) == bare_output(*args)
        assert connection.find("fault") == [], connection.lines
        begun, document = connection.find("capturing"), connection.find("document")
        assert len(begun) == len(document) == 1, connection.lines
        assert begun[0]["frame"] == document[0]["first"] == expected[0]
        assert document[0]["last"] == expected[-1]
        path = document[0]["path"]
        assert os.path.getsize(path) == document[0]["bytes"] > 0
        with open(path, "rb") as file:
            assert file.read(4) == b"RDOC"
        return frames_in(path), labels_of(path)


def test_a_program_says_who_it_is_and_which_device_it_uses():
    need(renderdoc=False)
    with armed("--frames", 3, env={"renderdoc": False}) as (_, program, connection):
        hello = connection.wait("hello")
        assert hello.values == {
            "token": TOKEN, "pid": str(program.pid), "ppid": str(os.getpid()), "exe": os.path.realpath(frames_program()[0]),
            "api": "vulkan", "order": "alone", "renderdoc": "", "renderdoc_api": ""}, hello
        connection.send("status")
        device = connection.wait("device")
        assert "llvmpipe" in device["name"] and device["type"] == "cpu" and device["index"] == 0, device
        assert len(device["uuid"]) == 32 and int(device["uuid"], 16) != 0 and "llvmpipe" in device["driver"], device
        connection.drain()
        assert [line["why"] for line in connection.find("bye")] == ["destroyed", "exit"]
        assert connection.lines[-3].word == "frame" and connection.lines[-3]["n"] == 2
        assert finish(program) == bare_output("--frames", 3)


def test_the_program_sees_no_function_that_is_not_there():
    need(renderdoc=False)
    for more in ([], ["--submit2"], ["--no-labels"], ["--every-extension"]):
        args = ["--frames", 1, "--functions", *more]
        with armed(*args, env={"renderdoc": False}) as (_, program, connection):
            connection.wait("hello")
            connection.send("status")
            connection.drain()
            said = finish(program)
            assert said == bare_output(*args)
            names = said.splitlines()[0].split()
            assert "vkQueueSubmit" in names and "vkQueuePresentKHR" not in names, names
            assert ("vkQueueSubmit2KHR" in names) == ("--submit2" in more), names


def test_frames_are_told_at_most_ten_times_a_second():
    need(renderdoc=False)
    with armed("--frames", 300, "--frame-ms", 2, env={"renderdoc": False}) as (_, program, connection):
        begin = time.monotonic()
        connection.wait("hello")
        connection.send("status")
        connection.drain()
        seconds = time.monotonic() - begin
        finish(program)
        frames = connection.find("frame")
        # Beside those of a tenth of a second each: the answer to status, the first, and the last.
        assert 3 <= len(frames) <= seconds * FRAME_LINES_A_SECOND + FRAMES_ALL_TOLD + 3, (seconds, frames)
        assert set(range(FRAMES_ALL_TOLD)) <= {line["n"] for line in frames}
        assert frames[-1]["n"] == 299 and all(line["by"] == "submit" for line in frames)


def test_submits_2_to_3_are_frames_2_and_3():
    need()
    frames, labels = capture(["--frames", 8], {"by": "submit", "first": 2, "last": 3}, [2, 3])
    assert labels == ["frame 2", "fill", "triangle", "frame 3", "fill", "triangle"], labels


def test_a_start_at_hello_gets_frame_0():
    need()
    frames, _ = capture(["--frames", 4], {"by": "submit", "first": 0, "last": 0}, [0])
    assert frames == ["frame 0"]


def test_frames_of_vkQueueSubmit2_are_counted_too():
    need()
    frames, _ = capture(["--frames", 6, "--submit2"], {"by": "submit", "first": 3, "last": 4}, [3, 4])
    assert frames == ["frame 3", "frame 4"]


def test_a_program_that_only_computes_is_captured():
    need()
    _, labels = capture(["--frames", 6, "--compute-only"], {"by": "submit", "first": 1, "last": 1}, [1])
    assert labels == ["frame 1", "fill"]


def test_a_program_that_uses_every_extension_it_is_offered_is_captured():
    need()
    frames, _ = capture(["--frames", 4, "--every-extension"], {"by": "submit", "first": 1, "last": 1}, [1])
    assert frames == ["frame 1"]


def test_a_users_own_switch_for_renderdoc_changes_nothing():
    need()
    frames, _ = capture(["--frames", 4], {"by": "submit", "first": 1, "last": 1}, [1], {"ENABLE_VULKAN_RENDERDOC_CAPTURE": "1"})
    assert frames == ["frame 1"]


def test_labels_open_frames():
    need()
    frames, _ = capture(["--frames", 8], {"by": "label", "label": "frame ", "first": 2, "last": 3}, [2, 3])
    assert frames == ["frame 2", "frame 3"]
    frames, _ = capture(["--frames", 8], {"by": "label", "label": "frame 5", "first": 0, "last": 0}, [0])
    assert frames == ["frame 5", "frame 6", "frame 7"], "until the next label that begins so, or the end"


def test_auto_is_submit_where_nothing_is_presented():
    need()
    with_labels, _ = capture(["--frames", 8], {"by": "auto", "first": 4, "last": 4}, [4])
    assert with_labels == ["frame 4"]
    with_none, labels = capture(["--frames", 8, "--no-labels"], {"by": "auto", "next": 2}, [0, 1])
    assert with_none == labels == []


def test_manual_is_from_now_until_stop():
    need()
    with armed("--frames", 400, "--frame-ms", 5) as (listener, program, connection):
        connection.wait("hello")
        connection.send("status")
        connection.wait("device")
        time.sleep(0.2)
        connection.send("start", by="manual", template=listener.out("doc"))
        first = connection.wait("capturing")["frame"]
        time.sleep(0.1)
        connection.send("stop")
        document = connection.wait("document", "fault")
        assert document.word == "document" and first == document["first"] > 0, connection.lines
        assert frames_in(document["path"]) == ["frame %d" % n for n in range(first, document["last"] + 1)]
        assert document["last"] > first
        connection.send("start", by="submit", next=1, template=listener.out("doc"))
        second = connection.wait("document", "fault")
        assert second.word == "document" and second["first"] == second["last"] > document["last"], connection.lines
        assert frames_in(second["path"]) == ["frame %d" % second["first"]] and second["path"] != document["path"]
        files = sorted(name for name in os.listdir(listener.folder) if name.startswith("doc_"))
        assert len([name for name in files if name.endswith(".rdc")]) == len(files) - 2 == 2, "two documents, two XMLs: %s" % files


def test_programs_behind_sh_and_env_are_captured():
    need()
    for words in (["sh", "-c", 'echo before; "$@" && echo behind', "sh"], ["env", "ABC=1"], ["timeout", "30"]):
        with Listener() as listener:
            program = listener.run(words + frames_program("--frames", 6))
            connection = listener.accept()
            assert connection.wait("hello")["exe"].endswith("/gpu_frames")
            connection.send("start", by="submit", first=2, last=3, template=listener.out("doc"))
            connection.drain()
            assert bare_output("--frames", 6) in finish(program)
            assert frames_in(connection.find("document")[0]["path"]) == ["frame 2", "frame 3"], words


def test_each_process_connects_by_itself():
    need(renderdoc=False)
    with Listener() as listener:
        program = listener.run(["sh", "-c", '"$@"; "$@"', "sh"] + frames_program("--frames", 2), listener.environment(renderdoc=False))
        hellos = []
        for _ in range(2):
            connection = listener.accept()
            hellos.append(connection.wait("hello"))
            connection.send("status")
            connection.drain()
        finish(program)
        assert hellos[0]["pid"] != hellos[1]["pid"] and all(hello["ppid"] == program.pid for hello in hellos)


def test_each_device_of_a_process_counts_its_own_frames():
    need()
    with armed("--frames", 6, "--frame-ms", 20, "--rounds", 3) as (listener, program, connection):
        connection.wait("hello")
        connection.send("start", by="submit", first=4, last=4, template=listener.out("doc"))
        assert connection.wait("bye")["why"] == "destroyed"
        connection.send("start", by="submit", next=1, template=listener.out("doc"))
        connection.drain()
        assert finish(program) == bare_output("--frames", 6) * 3
        assert len(connection.find("hello")) == 1 and len(connection.find("device")) == 3 and not connection.find("fault")
        assert [line["why"] for line in connection.find("bye")] == ["destroyed"] * 3 + ["exit"]
        first, second = connection.find("document")
        assert first["first"] == 4 and second["first"] < 6
        for document in (first, second):
            assert document["first"] == document["last"] and frames_in(document["path"]) == ["frame %d" % document["first"]]


def test_a_fork_of_a_program_says_hello_by_itself():
    need(renderdoc=False)
    with armed("--frames", 2, "--forks", env={"renderdoc": False}) as (listener, program, connection):
        assert connection.wait("hello")["pid"] == program.pid
        connection.send("status")
        second = listener.accept()
        hello = second.wait("hello")
        second.send("status")
        assert hello["ppid"] == program.pid and hello["pid"] != program.pid
        second.drain()
        connection.drain()
        assert finish(program) == bare_output("--frames", 2) * 2
        for each in (connection, second):
            assert [line["why"] for line in each.find("bye")] == ["destroyed", "exit"], each.lines


def fails(connection, code, *parts):
    fault = connection.wait("fault", "document", "capturing")
    assert fault.word == "fault" and fault["code"] == code, fault
    for part in parts:
        assert part in fault["text"], (part, fault)


def test_renderdoc_above_the_layer_is_refused():
    need()
    env = {"renderdoc": False, "XDG_DATA_DIRS": "/usr/share:" + LAYER_SHARE, "ENABLE_VULKAN_RENDERDOC_CAPTURE": "1"}
    with armed("--frames", 8, env=env) as (listener, program, connection):
        assert connection.wait("hello")["order"] == "below"
        connection.send("start", by="submit", first=2, last=3, template=listener.out("doc"))
        fails(connection, "layer_order", "ENABLE_VULKAN_RENDERDOC_CAPTURE")
        connection.drain()
        assert finish(program) == bare_output("--frames", 8)


def test_without_renderdoc_a_start_says_so():
    need(renderdoc=False)
    with armed("--frames", 8, env={"renderdoc": False}) as (listener, program, connection):
        connection.wait("hello")
        connection.send("start", by="submit", first=2, last=3, template=listener.out("doc"))
        fails(connection, "renderdoc_missing", "librenderdoc")
        connection.drain()
        finish(program)


def with_fake(way, check):
    """A start of frames 2 to 3 with a RenderDoc that fails that way: what the layer says goes to check; the program is as ever."""
    with armed("--frames", 8, env={"renderdoc": way}) as (listener, program, connection):
        hello = connection.wait("hello")
        assert hello["order"] == "above" and hello["renderdoc"].endswith("/librenderdoc.so"), hello
        assert hello["renderdoc_api"] == ("" if way == "old" else "1.4.2")
        connection.send("start", by="submit", first=2, last=3, template=listener.out("doc"))
        check(connection, listener)
        connection.drain()
        assert finish(program) == bare_output("--frames", 8)


def test_a_renderdoc_that_is_too_old_is_refused():
    need(renderdoc=False)
    with_fake("old", lambda connection, _: fails(connection, "renderdoc_too_old", "1.4.1", "librenderdoc.so"))


def test_a_renderdoc_that_does_not_begin_is_told():
    need(renderdoc=False)
    with_fake("deaf", lambda connection, _: fails(connection, "start_failed", "captures nothing"))


def test_a_document_that_renderdoc_only_promises_is_none():
    need(renderdoc=False)
    for way, part in (("silent", "has written no document"), ("lost", "No such file"), ("empty", "is empty")):
        def check(connection, _, part=part):
            assert connection.wait("capturing")["frame"] == 2
            fails(connection, "document_missing", part)
        with_fake(way, check)


def test_a_document_that_is_there_is_one():
    need(renderdoc=False)

    def check(connection, listener):
        document = connection.wait("document", "fault")
        assert document.values == {"path": listener.out("doc_capture.rdc"), "bytes": "4", "first": "2", "last": "3"}, document
    with_fake("good", check)


def test_places_that_cannot_be_written_are_refused_before_the_start():
    need()
    for template in ("/proc/nowhere/doc", "/dev/null/doc", "missing/doc"):
        with armed("--frames", 8) as (listener, program, connection):
            connection.wait("hello")
            path = template if template[0] == "/" else listener.out(template)
            connection.send("start", by="submit", first=2, last=3, template=path)
            fails(connection, "output_not_writable", path)
            connection.drain()
            assert connection.find("capturing") == []
            finish(program)


def test_starts_that_make_no_sense_are_refused():
    need()
    with armed("--frames", 300, "--frame-ms", 10) as (listener, program, connection):
        connection.wait("hello")
        out = listener.out("doc")
        for words, part in (
                ({"by": "frames", "first": 1, "last": 2, "template": out}, "by=frames"),
                ({"by": "submit", "first": 3, "last": 2, "template": out}, "is before the first, 3"),
                ({"by": "submit", "first": 3, "template": out}, "first and last"),
                ({"by": "submit", "next": 0, "template": out}, "above 0"),
                ({"by": "submit", "first": 1, "last": 2, "next": 3, "template": out}, "first and last"),
                ({"by": "submit", "first": "18446744073709551616", "last": 2, "template": out}, "first and last"),
                ({"by": "manual", "first": 1, "last": 2, "template": out}, "manual"),
                ({"by": "label", "first": 1, "last": 2, "template": out}, "label"),
                ({"by": "label", "label": "x" * 300, "first": 1, "last": 2, "template": out}, "300"),
                ({"by": "submit", "first": 1, "last": 2, "template": "doc"}, "absolute"),
                ({"by": "submit", "first": 1, "last": 2, "template": "/" + "x" * 1100}, "1101")):
            connection.send("start", **words)
            fails(connection, "start_failed", part)
        while connection.wait("frame")["n"] < 1:
            pass
        connection.send("start", by="submit", first=0, last=0, template=out)
        fails(connection, "frame_passed", "frame 0 has begun already")
        program.kill()


def test_one_capture_at_a_time_and_stop_ends_one_that_waits():
    need()
    with armed("--frames", 400, "--frame-ms", 10) as (listener, program, connection):
        connection.wait("hello")
        words = {"by": "submit", "first": 100000, "last": 100001, "template": listener.out("doc")}
        connection.send("stop")
        fails(connection, "not_capturing", "no capture was started")
        connection.send("start", **words)
        connection.send("start", **words)
        fails(connection, "busy", "waits")
        connection.send("stop")
        fails(connection, "not_capturing", "had not begun")
        connection.send("start", by="manual", template=listener.out("doc"))
        connection.wait("capturing")
        connection.send("start", **words)
        fails(connection, "busy", "under way")
        connection.send("stop")
        assert connection.wait("document", "fault").word == "document"
        program.kill()


def test_a_program_that_exits_in_the_middle_saves_what_it_has():
    need()
    with armed("--frames", 9, "--exit-at", 5) as (listener, program, connection):
        connection.wait("hello")
        connection.send("start", by="submit", first=3, last=8, template=listener.out("doc"))
        connection.drain()
        finish(program)
        document = connection.find("document")[0]
        assert (document["first"], document["last"]) == (3, 4), document
        assert frames_in(document["path"]) == ["frame 3", "frame 4"]
        assert connection.lines[-1].word == "bye" and connection.lines[-1]["why"] == "exit"


def test_a_program_whose_device_ends_in_the_middle_saves_what_it_has():
    need()
    frames, _ = capture(["--frames", 6], {"by": "submit", "first": 4, "last": 90}, [4, 5])
    assert frames == ["frame 4", "frame 5"]


def test_a_program_that_is_killed_leaves_no_document_and_says_nothing():
    need()
    with armed("--frames", 400, "--frame-ms", 10) as (listener, program, connection):
        connection.wait("hello")
        connection.send("start", by="submit", first=3, last=90000, template=listener.out("doc"))
        connection.wait("capturing")
        program.send_signal(signal.SIGKILL)
        connection.drain()
        assert connection.find("document") == connection.find("bye") == []
        assert not [name for name in os.listdir(listener.folder) if name.startswith("doc")]


def test_a_stop_reaches_a_program_that_submits_nothing_more():
    need()
    with armed("--frames", 3, "--frame-ms", 1500) as (listener, program, connection):
        connection.wait("hello")
        connection.send("start", by="manual", template=listener.out("doc"))
        connection.wait("capturing")
        connection.send("stop")
        document = connection.wait("document", "fault", timeout=1.2)
        assert document.word == "document" and frames_in(document["path"]) == ["frame 0"], connection.lines
        program.kill()


def test_a_document_is_saved_when_profd_goes():
    need()
    with armed("--frames", 30, "--frame-ms", 20) as (listener, program, connection):
        connection.wait("hello")
        connection.send("start", by="submit", first=3, last=90000, template=listener.out("doc"))
        connection.wait("capturing")
        connection.socket.close()
        wait_until(lambda: os.path.exists(listener.out("doc_capture.rdc")), what="the document")
        assert finish(program) == bare_output("--frames", 30)
        assert "frame 3" in frames_in(listener.out("doc_capture.rdc"))


def test_a_line_that_is_none_ends_the_connection_and_not_the_program():
    need(renderdoc=False)
    for line in (b"start by\n", b"\n", b"start =x\n", b"x" * 5000):
        with armed("--frames", 5, env={"renderdoc": False}) as (_, program, connection):
            connection.wait("hello")
            connection.socket.sendall(line)
            connection.drain()
            assert connection.find("bye") == []
            assert finish(program) == bare_output("--frames", 5)


def test_words_that_are_unknown_are_ignored():
    need(renderdoc=False)
    with armed("--frames", 5, env={"renderdoc": False}) as (_, program, connection):
        connection.wait("hello")
        connection.send("dance", how="slowly")
        connection.send("status", why="curious")
        assert connection.wait("frame")["n"] == 0
        connection.drain()
        finish(program)


def test_without_profd_the_program_runs_as_ever():
    need(renderdoc=False)
    with Listener() as listener:
        env = listener.environment(renderdoc=False, PROFD_GPU_SOCKET=listener.out("nobody"))
        assert finish(listener.run(frames_program("--frames", 5), env)) == bare_output("--frames", 5)


def test_a_process_ends_with_its_last_thread():
    need()
    for words in (None, {"by": "submit", "first": 1, "last": 2}, {"by": "manual"}):
        with armed("--frames", 5, "--first-thread-ends") as (listener, program, connection):
            connection.wait("hello")
            if words:
                connection.send("start", template=listener.out("doc"), **words)
            connection.drain(timeout=5)
            assert finish(program, 5) == bare_output("--frames", 5)
            assert frames_in(connection.find("document")[0]["path"]) == ["frame %d" % n for n in ((1, 2) if "first" in words else range(5))] if words else True


def test_renderdocs_port_is_closed():
    need()
    for preload, is_open in ((None, True), (os.path.join(LAYER_SHARE, "libprofd_gpu_nobind.so"), False)):
        with armed("--frames", 400, "--frame-ms", 10, env={"LD_PRELOAD": preload}) as (listener, program, connection):
            connection.wait("hello")
            connection.send("status")
            connection.wait("device")
            ports = {port for port in listening_ports(program.pid) if 38920 <= port <= 38927}
            assert bool(ports) == is_open, (preload, ports)
            program.kill()


def test_other_binds_are_left_alone():
    need(renderdoc=False)
    code = "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); t = socket.create_connection(s.getsockname()); print('bound')"
    env = dict(os.environ, LD_PRELOAD=os.path.join(LAYER_SHARE, "libprofd_gpu_nobind.so"))
    done = subprocess.run(["/usr/bin/python3", "-c", code], env=env, capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == "bound\n" and done.stderr == "", done


if __name__ == "__main__":
    main(globals())
