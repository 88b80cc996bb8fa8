"""Programs that record their own GPU work: client/gpu/profd_gpu.h and profd_gpu.py, the layer that they call, and with the daemon the whole way."""
import contextlib
import os
import re
import shutil
import subprocess
import sys
import time

import test_gpu_documents
from gpu_listener import LAYER_SHARE, armed, frames_in, frames_program, need
from harness import main, target
from test_gpu_layer import bare_output, finish

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
FOLDER = os.path.join(ROOT, "client", "gpu")
SCRIPT = os.path.join(HERE, "..", "targets", "gpu_phases.py")
OK, NOT_ARMED, NO_DEVICE, BUSY, NOT_CAPTURING, REFUSED, NO_ANSWER, FAILED = range(0, -8, -1)
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"]
USE = """#include <profd_gpu.h>
int use(void);
int use(void) { return profd_gpu_is_armed() + profd_gpu_start("x") + profd_gpu_stop() + (profd_gpu_error()[0] == '\\0'); }
"""
CALL_NS = 1000  # a generous bar for a machine that does other things; docs/limits.md has what is measured
PYTHON_CALL_NS = 20000


def compiles(compiler, *words):
    if shutil.which(compiler[0]) is None:
        return False
    done = subprocess.run([*compiler, *words, *STRICT, "-I", FOLDER, "-fsyntax-only", "-"], input=USE, capture_output=True, text=True)
    assert done.returncode == 0, (compiler, words, done.stderr)
    return True


def test_the_header_is_clean_in_c_and_in_cplusplus():
    tried = [compiles(compiler, "-x", "c", "-std=" + standard) for compiler in (["gcc"], ["clang"]) for standard in ("c11", "gnu11", "c17")]
    tried += [compiles(compiler, "-x", "c++", "-Wold-style-cast", "-std=" + standard) for compiler in (["g++"], ["clang++"])
              for standard in ("c++11", "c++20")]
    assert any(tried)


def test_everybody_has_the_same_numbers():
    with open(os.path.join(FOLDER, "profd_gpu.h")) as file:
        header = re.findall(r"^\tPROFD_GPU_([A-Z_]+) = (-?\d)", file.read(), re.M)
    with open(os.path.join(FOLDER, "profd_gpu.py")) as file:
        module = re.findall(r"^([A-Z_]+) = (-?\d)", file.read(), re.M)
    with open(os.path.join(ROOT, "daemon", "gpu", "layer", "program.h")) as file:
        layer = re.findall(r"^\tPROGRAM_([A-Z_]+) = (-?\d)", file.read(), re.M)
    names = ["OK", "NOT_ARMED", "NO_DEVICE", "BUSY", "NOT_CAPTURING", "REFUSED", "NO_ANSWER", "FAILED"]
    assert header == module == layer == [(name, str(-i)) for i, name in enumerate(names)]


def bare_env(**more):
    return dict({key: value for key, value in os.environ.items() if not key.startswith("PROFD_GPU")}, **more)


def test_a_program_that_is_not_armed_pays_nanoseconds():
    def run(count, **more):
        return subprocess.run([target("gpu_calls"), str(count)], env=bare_env(**more), capture_output=True, text=True, check=True).stdout
    for more in ({}, {"PROFD_GPU_LIBRARY": ""}, {"PROFD_GPU_LIBRARY": "libc.so.6"}):
        said = run(1000000, **more)
        assert said.startswith("armed 0 start -1 stop -1 error the program was not launched for GPU traces"), said
        start_ns, stop_ns = map(float, re.search(r"start_ns ([\d.]+) stop_ns ([\d.]+)", said).groups())
        assert start_ns < CALL_NS and stop_ns < CALL_NS, said
    # Armed, without a GPU so far; and a library that is there and is not the layer. Neither is ever loaded.
    nowhere = run(0, PROFD_GPU_LIBRARY="/nowhere/libprofd_gpu.so")
    assert nowhere.startswith("armed 1 start -2 stop -4 error the program has not made a VkInstance"), nowhere
    with open("/proc/self/maps") as file:
        libc = re.search(r"/\S*/libc[-.0-9]*so\S*", file.read()).group()
    assert run(0, PROFD_GPU_LIBRARY=libc).startswith("armed 0 start -1 stop -1")


def test_the_python_module_does_nothing_when_it_is_not_armed():
    code = ("import timeit, profd_gpu as p; print(p.profd_gpu_start('x'), p.profd_gpu_stop(), p.profd_gpu_is_armed(), p.profd_gpu_error()); "
            "print(timeit.timeit(lambda: p.profd_gpu_start('x'), number=20000) * 5e4)")

    def run(**more):
        done = subprocess.run([sys.executable, "-c", code], env=bare_env(PYTHONPATH=FOLDER, **more), capture_output=True, text=True, check=True)
        return done.stdout.splitlines()
    for more in ({}, {"PROFD_GPU_LIBRARY": ""}):
        said, cost_ns = run(**more)
        assert said.startswith("-1 -1 False the program was not launched for GPU traces") and float(cost_ns) < PYTHON_CALL_NS, (said, cost_ns)
    assert run(PROFD_GPU_LIBRARY="/nowhere/libprofd_gpu.so")[0].startswith("-2 -4 True the program has not made a VkInstance")


# The layer, with a profd that this test plays.


def own(out):
    """{"start 2": (status, text)} of what the program says of its calls, and the rest of its output."""
    lines = out.splitlines(keepends=True)
    calls = [re.match(r"own (\w+ \w+): (-?\d)\s*(.*)", line) for line in lines]
    return {call[1]: (int(call[2]), call[3]) for call in calls if call}, "".join(line for line, call in zip(lines, calls) if not call)


@contextlib.contextmanager
def program(phases, *args, env=None):
    """(listener, connection, and a function that waits for the end and gives the program's calls): its result is what it is without the layer."""
    words = ["--frames", 8, *args]
    with armed(*words, "--own-phases", phases, env=env) as (listener, running, connection):
        connection.wait("hello")
        connection.send("status")

        def end():
            connection.drain()
            calls, rest = own(finish(running))
            assert rest == bare_output(*words)
            return calls
        yield listener, connection, end


def grant(listener, connection, asked, name="doc"):
    connection.send("start", by="manual", asked=asked["n"], template=listener.out(name))


def test_what_lies_between_start_and_stop_is_recorded():
    need()
    for phases, args, frames in (("start=2,stop=3", [], [2, 3]), ("start=0,stop=0", [], [0]), ("start=4,stop=4", ["--own-thread"], [4]),
                                 ("start=5,stop=6", ["--submit2"], [5, 6]), ("start=1,stop=1", ["--no-labels"], [1])):
        with program(phases, *args) as (listener, connection, end):
            asked = connection.wait("ask")
            assert asked.values == {"n": "1", "label": "phase %d" % frames[0]}
            grant(listener, connection, asked)
            calls = end()
            assert calls == {"start %d" % frames[0]: (OK, ""), "stop %d" % frames[-1]: (OK, "")}, calls
            begun, (document,) = connection.find("capturing"), connection.find("document")
            assert begun[0]["frame"] == document["first"] == frames[0] and document["last"] == frames[-1] and document["by"] == "program"
            assert os.path.getsize(document["path"]) == document["bytes"]
            labels = frames_in(document["path"])
            assert labels == ([] if "--no-labels" in args else ["frame %d" % frame for frame in frames]), labels


def test_a_program_records_as_often_as_it_likes():
    need()
    with program("start=1,stop=1,start=3,stop=5,start=6,stop=6") as (listener, connection, end):
        for number in (1, 2, 3):
            asked = connection.wait("ask")
            assert asked["n"] == number
            grant(listener, connection, asked)
        assert [status for status, _ in end().values()] == [OK] * 6
        assert [frames_in(document["path"]) for document in connection.find("document")] == [
            ["frame 1"], ["frame 3", "frame 4", "frame 5"], ["frame 6"]]


def test_calls_that_make_no_sense_say_so():
    need()
    with program("start=early,stop=early,stop=0,start=1,start=2,stop=2,stop=3") as (listener, connection, end):
        grant(listener, connection, connection.wait("ask"))
        calls = end()
        assert len(connection.find("ask")) == 1, "what can be told here nobody is asked"
        assert {name: status for name, (status, _) in calls.items()} == {
            "start early": NO_DEVICE, "stop early": NOT_CAPTURING, "stop 0": NOT_CAPTURING, "start 1": OK, "start 2": BUSY, "stop 2": OK,
            "stop 3": NOT_CAPTURING}, calls
        assert "under way" in calls["start 2"][1] and "has ended" in calls["stop 3"][1] and "VkInstance" in calls["start early"][1]
        assert frames_in(connection.find("document")[0]["path"]) == ["frame 1", "frame 2"]


def test_a_capture_by_command_is_not_the_programs():
    need()
    with program("start=2,stop=3,start=6,stop=6") as (listener, connection, end):
        connection.send("start", by="submit", first=1, last=4, template=listener.out("command"))
        asked = connection.wait("ask")
        assert asked["label"] == "phase 6"
        grant(listener, connection, asked)
        calls = end()
        assert (calls["start 2"][0], calls["stop 3"][0], calls["start 6"][0], calls["stop 6"][0]) == (BUSY, NOT_CAPTURING, OK, OK), calls
        command, own_document = connection.find("document")
        assert frames_in(command["path"]) == ["frame %d" % n for n in range(1, 5)] and "by" not in command.values
        assert frames_in(own_document["path"]) == ["frame 6"]


def test_what_profd_refuses_is_told_to_the_program():
    need()
    with program("start=1,stop=1,start=2,start=3,start=4,start=5,stop=5") as (listener, connection, end):
        asked = connection.wait("ask")
        connection.send("refused", asked=asked["n"] + 1, code="io", text="of another")
        connection.send("refused", asked=asked["n"], code="not_permitted", text="it may not (do something else)")
        connection.send("refused", asked=connection.wait("ask")["n"], code="capture_busy", text="x" * 700)
        # What it grants cannot be written, or read.
        connection.send("start", by="manual", asked=connection.wait("ask")["n"], template="/proc/nowhere/doc")
        assert connection.wait("fault")["code"] == "output_not_writable"
        connection.send("start", by="submit", asked=connection.wait("ask")["n"], first=3, last=1, template="/tmp/x")
        assert connection.wait("fault")["code"] == "start_failed"
        grant(listener, connection, connection.wait("ask"))
        calls = end()
        assert calls["start 1"] == (REFUSED, "profd refuses (not_permitted): it may not (do something else)"), calls
        assert [calls["start %d" % n][0] for n in (2, 3, 4, 5)] == [BUSY, FAILED, FAILED, OK] and calls["stop 1"][0] == NOT_CAPTURING
        assert "/proc/nowhere" in calls["start 3"][1] and calls["stop 5"][0] == OK
        assert frames_in(connection.find("document")[0]["path"]) == ["frame 5"]


def test_a_profd_that_does_not_answer_is_waited_for_two_seconds():
    need()
    with program("start=1,start=2,stop=2") as (listener, connection, end):
        first = connection.wait("ask")
        began = time.monotonic()
        second = connection.wait("ask")
        assert 1.9 < time.monotonic() - began < 4 and second["n"] == 2
        grant(listener, connection, first)  # too late
        assert connection.wait("fault")["code"] == "not_capturing"
        grant(listener, connection, second)
        calls = end()
        assert calls["start 1"][0] == NO_ANSWER and "2000 ms" in calls["start 1"][1] and (calls["start 2"][0], calls["stop 2"][0]) == (OK, OK), calls
        assert frames_in(connection.find("document")[0]["path"]) == ["frame 2"]


def test_a_stop_of_profds_ends_what_the_program_began():
    need()
    with program("start=1,stop=6", "--frame-ms", 60) as (listener, connection, end):
        grant(listener, connection, connection.wait("ask"))
        begun = connection.wait("capturing")["frame"]
        # The frame line behind it is of a submit that is recorded.
        while connection.wait("frame")["n"] <= begun:
            pass
        connection.send("stop")
        document = connection.wait("document")
        assert document["last"] < 6 and "by" not in document.values
        calls = end()
        assert (calls["start 1"][0], calls["stop 6"][0]) == (OK, NOT_CAPTURING), calls


def test_each_device_and_each_process_records_itself():
    need()
    with armed("--frames", 4, "--rounds", 2, "--forks", "--own-phases", "start=2,stop=2") as (listener, running, connection):
        connection.wait("hello")
        connection.send("status")
        for number in (1, 2):
            asked = connection.wait("ask")
            assert asked["n"] == number
            grant(listener, connection, asked)
            connection.wait("bye")
        child = listener.accept()
        assert child.wait("hello")["ppid"] == running.pid
        child.send("status")
        asked = child.wait("ask")
        assert asked["n"] == 1, "it counts its own"
        grant(listener, child, asked)
        for each, count in ((connection, 2), (child, 1)):
            each.drain()
            assert [frames_in(document["path"]) for document in each.find("document")] == [["frame 2"]] * count
        said = finish(running).splitlines()
        assert said.count("own start 2: 0") == said.count("own stop 2: 0") == 3, said


def test_a_profd_that_goes_is_no_hindrance():
    need()
    with armed("--frames", 8, "--own-phases", "start=1,start=2,stop=2") as (_, running, connection):
        connection.wait("hello")
        connection.send("status")
        connection.wait("ask")
        connection.socket.close()
        began = time.monotonic()
        calls, _ = own(finish(running))
        assert time.monotonic() - began < 2 and {status for status, _ in calls.values()} <= {NOT_ARMED, NOT_CAPTURING}, calls
        assert calls["start 1"][0] == calls["start 2"][0] == NOT_ARMED and "gone" in calls["start 1"][1]


def test_a_program_that_ends_before_its_stop_saves_what_it_has():
    need()
    with armed("--frames", 8, "--exit-at", 4, "--own-phases", "start=2") as (listener, running, connection):
        connection.wait("hello")
        connection.send("status")
        grant(listener, connection, connection.wait("ask"))
        connection.drain()
        assert own(finish(running))[0] == {"start 2": (OK, "")}
        document, = connection.find("document")
        assert frames_in(document["path"]) == ["frame 2", "frame 3"] and "by" not in document.values


def test_without_renderdoc_a_start_of_the_programs_says_so():
    need(renderdoc=False)
    with program("start=1,stop=1", env={"renderdoc": False}) as (_, connection, end):
        calls = end()
        assert calls["start 1"][0] == FAILED and "librenderdoc" in calls["start 1"][1] and not connection.find("ask"), calls
    # A RenderDoc that counts a document and writes none, and one that does not begin.
    for way, statuses, text in (("lost", [OK, FAILED], "is not there"), ("deaf", [FAILED, NOT_CAPTURING], "captures nothing")):
        with program("start=1,stop=2", env={"renderdoc": way}) as (listener, connection, end):
            grant(listener, connection, connection.wait("ask"))
            calls = end()
            assert [calls["start 1"][0], calls["stop 2"][0]] == statuses and text in calls["start 1"][1] + calls["stop 2"][1], calls
            assert len(connection.find("fault")) == 1 and not connection.find("document")


# The whole way.


def records(client):
    found = client.call("ListCaptures")["captures"]
    return sorted(found, key=lambda record: record["first_frame"])


def run(client, *argv, **options):
    """What an armed program says, once it has ended."""
    client.call("LaunchProcess", **dict({"argv": list(map(str, argv)), "gpu": True, "build_id": "engine"}, **options))
    end = client.wait_event("ProcessExited")
    assert end["exit_code"] == 0, (end, client.call("GetOutput", build_id="engine", stream="stderr"))
    return client.call("GetOutput", build_id="engine", stream="stdout")["data"]


def wait_for_all(client, count):
    for record in records(client):
        client.call("WaitCapture", capture_id=record["capture_id"])
    found = records(client)
    assert len(found) == count, found
    return found


def test_a_program_that_profd_launched_records_itself():
    with test_gpu_documents.stage() as (_, client):
        for argv in (frames_program(), ["sh", "-c", '"$@"; exit 0', "sh", *frames_program()]):
            calls, _ = own(run(client, *argv, "--frames", 8, "--own-phases", "start=2,stop=3,start=6,stop=6"))
            assert [status for status, _ in calls.values()] == [OK] * 4, calls
            two, one = wait_for_all(client, 2)
            assert test_gpu_documents.frames_in(two) == [2, 3] and test_gpu_documents.frames_in(one) == [6]
            assert (two["label"], one["label"], two["kind"], two["reason"], two["frame_by"]) == ("phase 2", "phase 6", "gpu", "stopped", "manual")
            assert (two["first_frame"], two["last_frame"], two["build_id"]) == (2, 3, "engine")
            assert test_gpu_documents.codes_of(two) == ["shader_no_source"]
            started = [event["params"]["capture_id"] for event in client.events if event["method"] == "GpuTraceStarted"]
            assert set(started) == {two["capture_id"], one["capture_id"]}, "whoever hears of the build hears of it"
            client.events.clear()
            for record in (one, two):
                client.call("DeleteCapture", capture_id=record["capture_id"])


def test_a_python_program_records_itself():
    with test_gpu_documents.stage() as (_, client):
        # Foreign to the sanitizers; /usr/bin/python3 is whichever the system has.
        said = run(client, sys.executable, "-u", SCRIPT, target("libgpu_frames.so"), FOLDER, 3, 4, "--frames", 6)
        assert said.startswith("armed True\nown early start: -2 the program has not made a VkInstance yet\nown early stop: -4 "), said
        assert "own start: 0\nown stop: 0\n" in said and said.endswith(bare_output("--frames", 6)), said
        record, = wait_for_all(client, 1)
        assert test_gpu_documents.frames_in(record) == [3, 4] and record["label"] == "phase \N{SNOWMAN}"


def test_a_program_that_may_not_does_nothing():
    with test_gpu_documents.stage() as (_, client):
        calls, rest = own(run(client, *frames_program("--frames", 4, "--own-phases", "start=2,stop=3"), gpu={"program": False}))
        assert {status for status, _ in calls.values()} == {NOT_ARMED} and rest == bare_output("--frames", 4), calls
        assert records(client) == []


if __name__ == "__main__":
    main(globals())
