"""Shaders of the captured frames, as the layer writes them and tells of them (protocol/gpu_wire.h). What they are is known from the programs' sources."""
import os
import stat
import subprocess

from gpu_listener import LAVAPIPE, Listener, frames_program, need
from gpu_modules import frames_module, module, sha256
from harness import main, skip, target


def finish(program):
    out, err = program.communicate(timeout=60)
    assert program.returncode == 0, (program.returncode, out, err)
    return out


def capture(argv, first, last, listener, prepare=None, **environment):
    """The connection of a program whose frames first to last were captured, from its end."""
    program = listener.run(argv, listener.environment(**environment))
    connection = listener.accept()
    connection.wait("hello")
    if prepare:
        prepare()
    connection.send("start", by="submit", first=first, last=last, template=listener.out("doc"))
    connection.drain(timeout=60)
    finish(program)
    assert connection.find("fault") == [], connection.lines
    return connection


def told(connection):
    """The shaders that were told of, and how many were left out. Behind them is the document."""
    shaders, left_out = connection.find("shader"), connection.find("shaders")
    words = [line.word for line in connection.lines if line.word in ("shader", "shaders", "document")]
    assert words == ["shader"] * len(shaders) + ["shaders"] * len(left_out) + ["document"], words
    assert len(left_out) <= 1 and all(line["left_out"] > 0 for line in left_out)
    return ([(line.values["hash"], line["bytes"], line["stage"], line["entry"]) for line in shaders],
            left_out[0]["left_out"] if left_out else 0)


def expected(*uses):
    """What is told of (code, stage, entry)."""
    return sorted((sha256(code), len(code), stage, entry) for code, stage, entry in uses)


def files_of(listener):
    """{name: bytes} of the files that were written, each closed to others."""
    folder = listener.out("doc.shaders")
    if not os.path.exists(folder):
        return {}
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    files = {}
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        assert stat.S_ISREG(os.lstat(path).st_mode) and stat.S_IMODE(os.lstat(path).st_mode) == 0o600
        with open(path, "rb") as file:
            files[name] = file.read()
    return files


def shaders_program(*frames):
    return [target("gpu_shaders"), *frames]


ENTRIES = {"plain": "main", "glsl": "main", "hlsl": "step", "wgsl": "step"}


def uses(frames, first, last, names, left_out=0, **environment):
    """Of these frames exactly the shaders of those names are told of, and written."""
    with Listener() as listener:
        connection = capture(shaders_program(*frames), first, last, listener, **environment)
        shaders, missing = told(connection)
        assert shaders == expected(*((module(name), "compute", ENTRIES[name]) for name in names)), (frames, shaders)
        assert missing == left_out, (frames, missing)
        assert files_of(listener) == {sha256(module(name)) + ".spv": module(name) for name in names}


def test_all_stages_of_a_frame_are_told_of_and_written():
    need()
    with Listener() as listener:
        connection = capture(frames_program("--frames", 6), 2, 3, listener)
        fill, vertex, fragment = (frames_module(name) for name in ("fill_comp", "triangle_vert", "triangle_frag"))
        assert told(connection) == (expected((fill, "compute", "main"), (vertex, "vertex", "main"), (fragment, "fragment", "main")), 0)
        assert files_of(listener) == {sha256(code) + ".spv": code for code in (fill, vertex, fragment)}


def test_only_what_the_captured_frames_use_is_told_of():
    need()
    frames = ["plain", "glsl", "none", "plain+hlsl", "wgsl"]
    uses(frames, 1, 1, ["glsl"])
    uses(frames, 3, 4, ["plain", "hlsl", "wgsl"])
    uses(frames, 2, 2, [])


def test_shaders_of_secondary_buffers_and_of_destroyed_pipelines_are_used_too():
    need()
    uses(["none", "/plain+!glsl", "!/wgsl", "none", "none"], 1, 3, ["plain", "glsl", "wgsl"])


def test_equal_code_is_one_shader():
    need()
    uses(["none", "plain+plain", "!plain"], 1, 2, ["plain"])


def test_code_that_is_given_without_a_module_is_kept_too():
    # RenderDoc hides the extension; the one that is played does not.
    need(renderdoc=False)
    bare = subprocess.run(shaders_program("=plain"), env=dict(os.environ, VK_ICD_FILENAMES=LAVAPIPE[0]), capture_output=True, text=True, check=False)
    if "vkCreateDevice" in bare.stderr:
        skip("this driver has no VK_EXT_graphics_pipeline_library")
    uses(["none", "=glsl", "none"], 1, 1, ["glsl"], renderdoc="good")


def test_a_module_above_the_limit_is_counted():
    need()
    uses(["none", "*glsl+plain", "none"], 1, 1, ["plain"], left_out=1)


def test_what_cannot_be_written_is_counted():
    need(renderdoc=False)
    for make in (lambda path: os.symlink("/tmp", path), lambda path: os.close(os.open(path, os.O_CREAT | os.O_WRONLY))):
        with Listener() as listener:
            before = set(os.listdir("/tmp"))
            connection = capture(shaders_program("plain+glsl"), 0, 0, listener, lambda make=make, listener=listener: make(listener.out("doc.shaders")),
                                 renderdoc="good")
            assert told(connection) == ([], 2)
            assert not [name for name in set(os.listdir("/tmp")) - before if name.endswith(".spv")]


def test_a_link_in_the_place_of_a_file_is_not_followed():
    need(renderdoc=False)
    with Listener() as listener:
        name = sha256(module("plain")) + ".spv"

        def plant():
            os.mkdir(listener.out("doc.shaders"), 0o700)
            os.symlink(listener.out("victim"), os.path.join(listener.out("doc.shaders"), name))
        capture(shaders_program("plain"), 0, 0, listener, plant, renderdoc="good")
        assert files_of(listener) == {name: module("plain")} and not os.path.exists(listener.out("victim"))


if __name__ == "__main__":
    main(globals())
