"""Programs of EGL, GLX and GL, recorded by a preloaded library: driven over its wire as profd does it, and documents as RenderDoc's own tool reads them."""
import contextlib
import os
import shutil
import signal
import subprocess
import time

from gpu_listener import TOKEN, Listener, groups_of, need
from harness import Daemon, main, skip, target
from test_gpu_program import NO_DEVICE, NOT_CAPTURING, OK, own
from xserver import display

PARTS = ["fill", "clear"]


def need_gl():
    need()
    if not os.path.exists(target("gl_frames")):
        skip("gl_frames is not built: no headers of EGL and GLES (libegl-dev, libgles-dev)")


def bare_output(*args):
    env = {key: value for key, value in os.environ.items() if not key.startswith("PROFD_GPU")}
    return subprocess.run([target("gl_frames"), *map(str, args)], env=env, capture_output=True, text=True, timeout=60, check=True).stdout


@contextlib.contextmanager
def armed(*argv, **env):
    """A listener, the program under it, and its connection behind hello."""
    with Listener() as listener:
        program = listener.run([str(word) for word in argv], listener.environment(gl=True, **env))
        connection = listener.accept()
        connection.wait("hello")
        yield listener, program, connection


def finish(program):
    out, err = program.communicate(timeout=30)
    assert program.returncode == 0, (program.returncode, out, err)
    return out


def frames(first, last, swaps=True):
    """What a document of gl_frames has in it."""
    return [word for number in range(first, last + 1) for word in ["frame %d" % number, *PARTS] + (["swap"] if swaps else [])]


def capture(args, words, expected):
    """Starts at hello; the one document has these frames, and the program's result is what it is without the library. Returns its groups and swaps."""
    with armed(target("gl_frames"), *args) as (listener, program, connection):
        connection.send("start", template=listener.out("doc"), **words)
        connection.drain()
        assert finish(program) == bare_output(*args)
        assert connection.find("fault") == [], connection.lines
        begun, document = connection.find("capturing"), connection.find("document")
        assert len(begun) == len(document) == 1, connection.lines
        assert begun[0]["frame"] == document[0]["first"] == expected[0] and document[0]["last"] == expected[-1], connection.lines
        assert os.path.getsize(document[0]["path"]) == document[0]["bytes"] > 0
        return groups_of(document[0]["path"])


def test_a_program_says_who_it_is_and_what_draws():
    need_gl()
    with armed(target("gl_frames"), "--frames", 3) as (_, program, connection):
        connection.send("status")
        device = connection.wait("device")
        connection.drain()
        hello, = connection.find("hello")
        assert (hello["token"], hello["pid"], hello["api"], hello["order"], hello["renderdoc_api"]) == (TOKEN, program.pid, "gl", "above", "1.6.0"), hello
        assert "llvmpipe" in device["name"] and device["type"] == "cpu" and "OpenGL ES 3" in device["driver"] and device["uuid"] == "0" * 32, device
        assert [line["why"] for line in connection.find("bye")] == ["destroyed", "exit"]
        assert connection.find("frame")[-1]["n"] == 2 and connection.find("frame")[-1]["by"] == "present"
        assert finish(program) == bare_output("--frames", 3)


def test_frames_that_are_swapped_are_exact():
    need_gl()
    for by in ("link", "dlopen", "proc"):  # however the program finds its functions
        assert capture(["--frames", 6, "--by", by], {"by": "present", "first": 2, "last": 3}, [2, 3]) == frames(2, 3), by
    assert capture(["--frames", 4], {"by": "auto", "first": 0, "last": 0}, [0]) == frames(0, 0)
    assert capture(["--frames", 4], {"by": "auto", "next": 2}, [0, 1]) == frames(0, 1)


def test_labels_open_frames_also_where_nothing_is_swapped():
    need_gl()
    assert capture(["--frames", 6], {"by": "label", "label": "frame ", "first": 2, "last": 3}, [2, 3]) == frames(2, 3)
    assert capture(["--frames", 6, "--surfaceless"], {"by": "label", "label": "frame ", "first": 2, "last": 3}, [2, 3]) == frames(2, 3, swaps=False)


def test_a_program_that_never_swaps_is_recorded_from_start_to_stop():
    need_gl()
    args = ["--frames", 150, "--frame-ms", 8, "--surfaceless"]
    with armed(target("gl_frames"), *args) as (listener, program, connection):
        connection.send("status")
        connection.wait("device")
        time.sleep(0.1)
        connection.send("start", by="manual", template=listener.out("doc"))
        connection.wait("capturing")
        time.sleep(0.1)
        connection.send("stop")
        document = connection.wait("document", "fault")
        assert document.word == "document", document
        numbers = [int(word[6:]) for word in groups_of(document["path"]) if word.startswith("frame ")]
        assert 0 < numbers[0] and numbers[-1] < 149 and numbers == list(range(numbers[0], numbers[-1] + 1)) and len(numbers) > 5, numbers
        connection.drain()
        assert finish(program) == bare_output(*args)


def test_a_context_that_is_only_looked_at_is_not_what_is_recorded():
    need_gl()
    for more, found in (["--surfaceless"], frames(0, 5, swaps=False)), ([], frames(0, 5)):
        # It begins before the first call that computes, so within the first two groups.
        assert capture(["--frames", 6, "--probe", *more], {"by": "manual"}, [0, 5] if not more else [0, 0]) == found[2:]


def test_submits_are_refused_with_what_there_is_instead():
    need_gl()
    with armed(target("gl_frames"), "--frames", 4) as (listener, program, connection):
        connection.send("start", by="submit", first=1, last=1, template=listener.out("doc"))
        fault = connection.wait("fault", "capturing")
        assert fault["code"] == "no_such_boundary" and all(word in fault["text"] for word in ("present", "label", "manual")), fault
        connection.drain()
        finish(program)


def test_what_was_recorded_is_saved_when_the_program_ends():
    need_gl()
    for args in (["--frames", 6], ["--frames", 6, "--leave"], ["--frames", 9, "--exit-at", 6]):
        assert capture(args, {"by": "present", "first": 4, "last": 9}, [4, 5]) == frames(4, 5), args


def test_what_the_program_begins_itself_is_recorded():
    need_gl()
    for more in ([], ["--surfaceless"], ["--by", "dlopen"]):
        args = ["--frames", 7, *more]
        with armed(target("gl_frames"), *args, "--own-phases", "start=early,start=2,stop=3,stop=4,start=5,stop=5") as (listener, program, connection):
            connection.send("status")
            for number in (1, 2):
                asked = connection.wait("ask")
                assert asked["n"] == number
                connection.send("start", by="manual", asked=number, template=listener.out("doc"))
            connection.drain()
            calls, rest = own(finish(program))
            assert rest == bare_output(*args)
            assert [status for status, _ in calls.values()] == [NO_DEVICE, OK, OK, NOT_CAPTURING, OK, OK] and "OpenGL" in calls["start early"][1], calls
            documents = connection.find("document")
            swaps = "--surfaceless" not in more
            assert [(document["first"], document["by"]) for document in documents] == [(2 if swaps else 0, "program"), (5 if swaps else 0, "program")]
            found = [groups_of(document["path"]) for document in documents]
            assert found == [frames(2, 3, swaps), frames(5, 5, swaps)], found


def test_a_frame_that_has_passed_is_told():
    need_gl()
    with armed(target("gl_frames"), "--frames", 100, "--frame-ms", 5) as (listener, program, connection):
        connection.send("status")
        while connection.wait("frame")["n"] < 2:
            pass
        connection.send("start", by="present", first=1, last=1, template=listener.out("doc"))
        fault = connection.wait("fault", "capturing")
        assert fault["code"] == "frame_passed" and "frame 1 has begun already" in fault["text"], fault
        program.send_signal(signal.SIGKILL)


def test_children_are_recorded_and_have_the_environment_that_was_meant():
    """RenderDoc takes LD_PRELOAD and LD_LIBRARY_PATH away from whom its process starts."""
    need_gl()
    for words in (["sh", "-c", '"$@"; true', "sh"], ["env", "ABC=1"], ["bash", "-c", '"$@"; true', "bash"], ["env", "sh", "-c", 'env "$@"; true', "sh"]):
        if not shutil.which(words[0]):
            continue
        with armed(*words, target("gl_frames"), "--frames", 6, "--environment", LD_LIBRARY_PATH="/opt/own") as (listener, program, connection):
            assert connection.find("hello")[0]["exe"].endswith("/gl_frames")
            connection.send("start", by="present", first=2, last=3, template=listener.out("doc"))
            connection.drain()
            variables, result = finish(program).splitlines()
            preload = listener.environment(gl=True)["LD_PRELOAD"]
            assert variables == "LD_PRELOAD=%s LD_LIBRARY_PATH=/opt/own" % preload, words
            assert result + "\n" == bare_output("--frames", 6)
            assert groups_of(connection.find("document")[0]["path"]) == frames(2, 3), words


def listening(pid):
    """The network ports on which a process listens: local addresses of its sockets in state 0A."""
    sockets = {os.readlink("/proc/%d/fd/%s" % (pid, fd))[8:-1] for fd in os.listdir("/proc/%d/fd" % pid)
               if os.readlink("/proc/%d/fd/%s" % (pid, fd)).startswith("socket:")}
    found = []
    for table in ("tcp", "tcp6"):
        with open("/proc/%d/net/%s" % (pid, table), encoding="ascii") as file:
            rows = [line.split() for line in file.readlines()[1:]]
        found += [row[1] for row in rows if row[3] == "0A" and row[9] in sockets]
    return found


def test_renderdocs_port_is_closed():
    need_gl()
    with armed(target("gl_frames"), "--frames", 1000, "--frame-ms", 5) as (listener, program, connection):
        connection.send("status")
        connection.wait("device")
        assert listening(program.pid) == []
        preload = [path for path in listener.environment(gl=True)["LD_PRELOAD"].split(":") if "nobind" not in path]
        program.kill()
    # Without the library that refuses it there is one: the look at it above can see it.
    with armed(target("gl_frames"), "--frames", 1000, "--frame-ms", 5, LD_PRELOAD=":".join(preload)) as (_, program, connection):
        connection.send("status")
        connection.wait("device")
        assert len(listening(program.pid)) == 1
        program.kill()


def need_window():
    if not os.path.exists(target("gl_window")):
        skip("gl_window is not built: no headers of GL and X (libgl-dev, libx11-dev)")


def test_windows_by_glx_and_egl_are_recorded():
    need_gl()
    need_window()
    with display() as name:
        for api in ("glx", "egl"):
            for more, last, found in (([], 3, 3), (["stay"], 9, 5)):
                with armed(target("gl_window"), api, 6, *more, DISPLAY=name) as (listener, program, connection):
                    connection.send("start", by="auto", first=2, last=last, template=listener.out("doc"))
                    connection.drain()
                    assert finish(program) == "6 frames, 0 wrong\n"
                    document, = connection.find("document")
                    assert (document["first"], document["last"]) == (2, found), document
                    assert groups_of(document["path"]) == [word for n in range(2, found + 1) for word in ("frame %d" % n, "swap")], api


def test_a_recording_ends_before_the_window_that_it_shows():
    need_gl()
    need_window()
    with display() as name:
        for api in ("glx", "egl"):
            # A context that is handed on after each frame is not at its end.
            for how, by in (("window", "window"), ("display", "window"), ("release", "window"), ("all", "window"), ("hand", None), ("stay", None)):
                if api == "egl" and how in ("window", "display"):
                    continue  # what EGL shows in, X's functions do not tell
                with armed(target("gl_window"), api, 8, how, DISPLAY=name) as (listener, program, connection):
                    connection.send("start", by="present", first=2, last=1000, template=listener.out("doc"))
                    connection.drain()
                    assert finish(program) == "8 frames, 0 wrong\n"
                    document, = connection.find("document")
                    assert (document["first"], document["last"], document.values.get("by")) == (2, 7, by), (api, how, document)
                    assert groups_of(document["path"]) == [word for n in range(2, 8) for word in ("frame %d" % n, "swap")], (api, how)


def test_what_is_recorded_at_an_exit_is_saved_before_the_driver_goes():
    need_gl()
    need_window()
    with display() as name:
        # The driver registers its exit handlers while the program draws; without the layer's care half of these died in RenderDoc.
        for command in 3 * ([target("gl_window"), "glx", 30, "stay"], [target("gl_window"), "egl", 30, "stay"], [target("gl_frames"), "--leave"]):
            with armed(*command, DISPLAY=name) as (listener, program, connection):
                connection.send("start", by="present", first=1, last=1000, template=listener.out("doc"))
                connection.drain()
                finish(program)
                document, = connection.find("document")
                assert document["first"] == 1 and len(groups_of(document["path"])) > 1, document


def test_a_frame_that_never_was_is_no_document():
    need_gl()
    need_window()
    with display() as name, armed(target("gl_window"), "glx", 6, DISPLAY=name) as (listener, program, connection):
        connection.send("start", by="present", first=6, last=6, template=listener.out("doc"))
        connection.drain()
        assert finish(program) == "6 frames, 0 wrong\n"
        fault, = connection.find("fault")
        assert fault["code"] == "nothing_recorded" and fault["text"] == "frame 6 (by present) never began", fault.values
        assert connection.find("document") == [] and not [name for name in os.listdir(listener.folder) if name.endswith(".rdc")]


def test_a_context_that_renderdoc_does_not_record_is_told():
    need_gl()
    with display() as name, armed(target("gl_window"), "old", 6, DISPLAY=name) as (listener, program, connection):
        connection.send("start", by="auto", first=2, last=3, template=listener.out("doc"))
        connection.drain()
        assert finish(program) == "6 frames, 0 wrong\n"
        fault, = connection.find("fault")
        assert fault["code"] == "start_failed" and "glXCreateContext" in fault["text"], fault


def traced(client, argv, **params):
    """The final record of a trace of a program that is launched for it, and what the program said."""
    client.call("LaunchProcess", argv=[str(word) for word in argv], build_id="engine", gpu={"api": "gl"}, hold=True)
    capture_id = client.call("StartGpuTrace", build_id="engine", **params)["capture_id"]
    client.call("ResumeProcess", build_id="engine")
    record = client.call("WaitCapture", capture_id=capture_id)
    client.wait_event("ProcessExited")
    return record, client.call("GetOutput", build_id="engine", stream="stdout")["data"]


def test_from_launch_to_document():
    need_gl()
    program = [target("gl_frames"), "--frames", 6]
    with Daemon() as daemon:
        client = daemon.connect()
        for argv in (program, ["sh", "-c", "env %s --frames 6; exit 0" % program[0]]):
            record, said = traced(client, argv, start_frame=2, end_frame=3)
            assert record["state"] == "finished" and (record["first_frame"], record["last_frame"], record["frame_by"]) == (2, 3, "present"), record
            assert said == bare_output("--frames", 6) and "llvmpipe" in record["device"]["name"] and record["warnings"] == [], record
            assert groups_of(record["trace_path"]) == frames(2, 3)
        # What the program starts itself comes by the library that it was armed with.
        client.call("LaunchProcess", argv=[*map(str, program), "--own-phases", "start=1,stop=2"], build_id="engine", gpu={"api": "gl"})
        client.wait_event("ProcessExited")
        started = client.wait_event("GpuTraceStarted", frame_by="manual")
        finished = client.wait_event("GpuTraceFinished", capture_id=started["capture_id"])
        assert (finished["label"], finished["reason"]) == ("phase 1", "stopped") and groups_of(finished["trace_path"]) == frames(1, 2), finished
        for argv, params, code, detail, hint in ((program, {"frame_by": "submit", "frames": 1}, "unsupported", "no_such_boundary", "frame_by"),
                                                 ([*program, "--surfaceless"], {"start_frame": 3}, "gpu_no_calls", "gpu_idle", "label:"),
                                                 (["true"], {"start_frame": 0}, "gpu_no_calls", "layer_not_loaded", "api: vulkan"),
                                                 (program, {"start_frame": 30}, "gpu_frame_not_reached", "frames_not_reached", "run longer")):
            error = traced(client, argv, **params)[0]["error"]
            assert (error["data"]["code"], error["data"]["detail"]) == (code, detail) and hint in error["data"]["hint"], error


if __name__ == "__main__":
    main(globals())
