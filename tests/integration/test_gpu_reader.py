"""Documents as RenderDoc's own Python module finds them when it replays them: events, labels, a buffer's contents and a stepped thread are what gpu_frames did,
which this file computes again."""
import json
import os
import shutil
import struct
import subprocess
import tempfile

from gpu_listener import LAVAPIPE, armed, need
from harness import main, skip

PYTHON = "/usr/bin/python3"  # the distribution's, which its module is made for
READER = os.path.join(os.path.dirname(__file__), "..", "support", "inspect_rdc.py")
MODULES = os.path.join(os.path.dirname(__file__), "..", "targets", "gpu")
GENERATOR_NAGA = 28
NUMBERS, GROUP, ROUNDS, MASK = 1024, 64, 16, 0xffffffff


def values_of(number, i, frame):
    """What `value` of tests/targets/gpu/fill.comp is, one after the other."""
    value = number ^ ((i * 2654435761 + frame * 40503 + 1) & MASK)
    found = [value]
    for _ in range(ROUNDS):
        for change in (lambda v: v << 13 & MASK, lambda v: v >> 17, lambda v: v << 5 & MASK):
            value ^= change(value)
            found.append(value)
    return found


def numbers_behind(frame):
    numbers = [0] * NUMBERS
    for before in range(frame + 1):
        numbers = [values_of(number, i, before)[-1] for i, number in enumerate(numbers)]
    return numbers


def inspect(path, group, thread):
    if subprocess.run([PYTHON, "-c", "import renderdoc"], capture_output=True).returncode != 0:
        skip("no RenderDoc module for %s (python3-renderdoc)" % PYTHON)
    folder = os.path.dirname(path)
    env = dict(os.environ, VK_ICD_FILENAMES=LAVAPIPE[0], HOME=folder, TMPDIR=folder, XDG_RUNTIME_DIR=folder)
    env.pop("PYTHONPATH", None)
    done = subprocess.run([PYTHON, READER, path, str(group), str(thread)], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done
    return json.loads(done.stdout)


def check_values(step, expected):
    """One of the thread's variables goes through just these; a compiler may give it any name."""
    assert expected in [values[-len(expected):] for values in step["values"].values()], step


def test_a_document_is_what_the_program_did():
    need()
    group, thread = 7, 13
    with armed("--frames", 6) as (listener, program, connection):
        connection.wait("hello")
        connection.send("start", by="submit", first=2, last=3, template=listener.out("doc"))
        connection.drain()
        assert program.wait(20) == 0
        found = inspect(connection.find("document")[0]["path"], group, thread)
    assert [event[:-1] + [event[-1].split("(")[0]] for event in found["events"]] == [
        ["frame %d" % frame, part, call] for frame in (2, 3) for part, call in (
            ("fill", "vkCmdDispatch"), ("triangle", "vkCmdDraw"), ("triangle", "vkCmdCopyImageToBuffer"))], found["events"]
    for frame, data in zip((2, 3), found["buffers"], strict=True):
        assert list(struct.unpack("<%dI" % NUMBERS, bytes.fromhex(data))) == numbers_behind(frame), frame
    i = group * GROUP + thread
    expected = values_of(numbers_behind(1)[i], i, 2)
    assert found["step"]["steps"] > len(expected)
    check_values(found["step"], expected)


def assembled(folder):
    """The module that naga makes of fill.wgsl with its debug flag, as a file."""
    if not shutil.which("spirv-as"):
        skip("spirv-tools is not installed")
    code = subprocess.run(["spirv-as", "--target-env", "spv1.5", os.path.join(MODULES, "fill.wgsl.spvasm"), "-o", "-"], capture_output=True, check=True).stdout
    subprocess.run(["spirv-val", "--target-env", "vulkan1.2", "-"], input=code, check=True)
    path = os.path.join(folder, "fill.spv")
    with open(path, "wb") as file:
        file.write(code[:8] + struct.pack("<I", GENERATOR_NAGA) + code[12:])
    return path


def test_wgsl_is_stepped_as_it_was_written():
    need()
    group, thread = 3, 60
    with tempfile.TemporaryDirectory(prefix="profd-test-wgsl-") as folder, \
            armed("--frames", 4, "--compute-only", "--fill", assembled(folder)) as (listener, program, connection):
        connection.wait("hello")
        connection.send("start", by="submit", first=1, last=1, template=listener.out("doc"))
        connection.drain()
        assert program.wait(20) == 0
        found = inspect(connection.find("document")[0]["path"], group, thread)
    with open(os.path.join(MODULES, "fill.wgsl"), encoding="utf-8") as file:
        text = file.read()
    assert found["step"]["files"] == {"fill.wgsl": text}
    # The lines of the source that this thread goes through: before the loop, its head and its body in turns, behind it.
    lines = text.splitlines()
    head = next(number for number, line in enumerate(lines, 1) if "for (" in line)
    body = [head + 1, head + 2, head + 3]
    expected = [head - 2, head - 1] + [head, *body] * ROUNDS + [head, head + 5]
    assert [line for name, line in found["step"]["lines"] if name == "fill.wgsl"] == expected, found["step"]["lines"]
    i = group * GROUP + thread
    check_values(found["step"], values_of(numbers_behind(0)[i], i, 1))
    data, = found["buffers"]
    assert list(struct.unpack("<%dI" % NUMBERS, bytes.fromhex(data))) == numbers_behind(1)


if __name__ == "__main__":
    main(globals())
