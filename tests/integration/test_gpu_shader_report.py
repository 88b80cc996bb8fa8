"""The shaders of a GPU trace beside it: with a layer that the test plays, honest or not, and with the real one. What a module says is asked of
spirv-dis and spirv-val too."""
import contextlib
import json
import os
import re
import shutil
import stat
import subprocess

from gpu_modules import arrays, frames_module, module, sha256, source
from gpu_stage import Stage, begin, start, write_document
from harness import BUILD, Daemon, main, skip, target

LAVAPIPE = "/usr/share/vulkan/icd.d/lvp_icd.x86_64.json"
LAYER = os.environ.get("PROFD_GPU_LAYER") or os.path.join(BUILD, "daemon", "gpu", "layer")
ENTRIES = {"plain": "main", "glsl": "main", "debug": "main", "hlsl": "step", "wgsl": "step"}
SOURCES = {"glsl": ("glsl", "step.comp"), "debug": ("glsl", "step.comp"), "hlsl": ("hlsl", "step.hlsl"), "wgsl": ("wgsl", "step.wgsl")}


def put(asked, code, name=None):
    """Writes a module where the layer does; its hash."""
    folder = asked["template"] + ".shaders"
    if not os.path.isdir(folder):
        os.mkdir(folder, 0o700)
    with open(os.path.join(folder, name or sha256(code) + ".spv"), "wb") as file:
        file.write(code)
    return sha256(code)


def say(layer, hash_, size, stage="compute", entry="main"):
    layer.say("shader", hash=hash_, bytes=size, stage=stage, entry=entry)


def finish(stage, layer, asked, capture_id):
    """The final record, and shaders.json (None when there is none)."""
    layer.say("document", path=write_document(asked), bytes=64, first=3, last=3)
    final = stage.client.call("WaitCapture", capture_id=capture_id)
    assert final["state"] == "finished", final
    path = os.path.join(final["folder"], "shaders.json")
    listed = None
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            listed = json.load(file)
        assert {"name": "shaders.json", "path": path, "bytes": os.path.getsize(path)} in final["artifacts"]
        check_list(final, listed)
    assert len(final["artifacts"]) == (2 if listed else 1)
    assert not [name for name in os.listdir(final["folder"]) if name.startswith(".capture.document")]
    return final, listed


def check_list(final, listed):
    """The list names the files that are there, all of them, closed to others, and they are what it says."""
    assert (listed["format"], listed["version"]) == ("profd-shaders", 1) and listed["left_out"] == final["shaders"]["left_out"]
    named = {}
    for shader in listed["shaders"]:
        named[shader["path"]] = shader["bytes"]
        named.update({one["path"]: one["bytes"] for one in shader["sources"]})
        with open(os.path.join(final["folder"], shader["path"]), "rb") as file:
            assert sha256(file.read()) == shader["hash"] and shader["path"] == "shaders/%s.spv" % shader["hash"]
    folder = os.path.join(final["folder"], "shaders")
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    found = {"shaders/" + name: os.lstat(os.path.join(folder, name)) for name in os.listdir(folder)}
    assert {path: status.st_size for path, status in found.items()} == named
    assert all(stat.S_ISREG(status.st_mode) and stat.S_IMODE(status.st_mode) == 0o600 for status in found.values())
    shaders = listed["shaders"]
    assert final["shaders"] == {"total": len(shaders), "with_source": sum(bool(one["sources"]) for one in shaders),
                                "with_lines": sum(one["line_records"] > 0 for one in shaders), "left_out": listed["left_out"]}


@contextlib.contextmanager
def recording():
    """(stage, layer, what the start said, the capture's id) of a recording that has begun."""
    with Stage() as stage, stage.program() as (_, layer):
        capture_id = start(stage, start_frame=3)["capture_id"]
        asked = layer.wait_for("start")
        begin(layer, 3)
        stage.client.wait_event("GpuTraceStarted")
        yield stage, layer, asked, capture_id


def warnings(final):
    return {warning["code"]: warning for warning in final["warnings"]}


def text_of(final, shader, number=0):
    with open(os.path.join(final["folder"], shader["sources"][number]["path"]), encoding="utf-8") as file:
        return file.read()


def test_modules_and_their_sources_are_beside_the_trace():
    with recording() as (stage, layer, asked, capture_id):
        for name, entry in ENTRIES.items():
            say(layer, put(asked, module(name)), len(module(name)), entry=entry)
        final, listed = finish(stage, layer, asked, capture_id)
        shaders = {shader["hash"]: shader for shader in listed["shaders"]}
        assert set(shaders) == {sha256(module(name)) for name in ENTRIES}
        for name, entry in ENTRIES.items():
            shader = shaders[sha256(module(name))]
            assert shader["entry_points"] == [{"stage": "compute", "name": entry}] and shader["used"] == [{"stage": "compute", "entry": entry}]
            assert shader["spirv_version"] == "1.0" and (shader["line_records"] > 0) == (name != "plain")
            if name == "plain":
                assert shader["sources"] == []
                continue
            language, file = SOURCES[name]
            one, = shader["sources"]
            assert (one["language"], one["file"]) == (language, file) and one["path"] == "shaders/%s.%s" % (shader["hash"], language)
            assert text_of(final, shader).endswith(source(file))
        assert final["shaders"] == {"total": 5, "with_source": 4, "with_lines": 4, "left_out": 0}
        kept = stage.client.call("GetCapture", capture_id=capture_id)
        assert kept["shaders"] == final["shaders"] and stage.client.wait_event("GpuTraceFinished")["shaders"] == final["shaders"]
        stage.client.call("DeleteCapture", capture_id=capture_id)
        assert not os.path.exists(final["folder"])


def test_a_module_without_source_is_warned_of_with_the_switch_that_adds_it():
    by_naga = bytearray(module("plain"))
    by_naga[8:12] = (28).to_bytes(4, "little")
    by_tint = bytearray(module("plain"))
    by_tint[8:12] = (23 << 16).to_bytes(4, "little")
    for codes, count, parts in (([module("plain"), module("wgsl")], "1 of 2", ["glslangValidator: -g"]),
                                ([bytes(by_naga)], "1 of 1", ["InstanceFlags::DEBUG", "WGPUInstanceFlag_Debug", 'set_instance_extras(flags=["Debug"])']),
                                ([bytes(by_tint), bytes(by_naga)], "2 of 2", ["wgpu: InstanceFlags::DEBUG", "dump_shaders"])):
        with recording() as (stage, layer, asked, capture_id):
            for code in codes:
                say(layer, put(asked, code), len(code))
            final, _ = finish(stage, layer, asked, capture_id)
            warning = warnings(final)["shader_no_source"]
            assert count in warning["message"] and all(part in warning["hint"] for part in parts), warning
    with recording() as (stage, layer, asked, capture_id):
        say(layer, put(asked, module("wgsl")), len(module("wgsl")), entry="step")
        final, _ = finish(stage, layer, asked, capture_id)
        assert final["warnings"] == []


def test_uses_of_one_module_are_together():
    with recording() as (stage, layer, asked, capture_id):
        code = module("glsl")
        for stage_name, entry in (("vertex", "a"), ("fragment", "b; %s \u00e9"), ("other", "")):
            say(layer, put(asked, code), len(code), stage_name, entry)
        layer.say("shaders", left_out=7)
        final, listed = finish(stage, layer, asked, capture_id)
        shader, = listed["shaders"]
        assert [(use["stage"], use["entry"]) for use in shader["used"]] == [("vertex", "a"), ("fragment", "b; %s \u00e9"), ("other", "")]
        assert final["shaders"]["left_out"] == 7 and "7 shaders" in warnings(final)["shaders_left_out"]["message"]


def refused(plant, part, hash_=None, size=None):
    """The module that plant(asked) puts somewhere is left out, with this in the warning; another one is not."""
    with recording() as (stage, layer, asked, capture_id):
        good, bad = module("wgsl"), module("glsl")
        plant(asked)
        say(layer, hash_ or sha256(bad), len(bad) if size is None else size)
        say(layer, put(asked, good), len(good), entry="step")
        final, listed = finish(stage, layer, asked, capture_id)
        assert [shader["hash"] for shader in listed["shaders"]] == [sha256(good)]
        assert final["shaders"]["left_out"] == 1 and part in warnings(final)["shaders_left_out"]["message"], final["warnings"]


def test_what_is_not_as_it_was_told_is_left_out():
    bad = module("glsl")
    name = sha256(bad) + ".spv"

    def link(asked):
        with open(asked["template"] + "-elsewhere", "wb") as file:
            file.write(bad)
        os.mkdir(asked["template"] + ".shaders")
        os.symlink(asked["template"] + "-elsewhere", os.path.join(asked["template"] + ".shaders", name))

    def fifo(asked):
        os.mkdir(asked["template"] + ".shaders")
        os.mkfifo(os.path.join(asked["template"] + ".shaders", name))
    noise = bytes(range(256)) * 4
    cut = bad[:400]
    for plant, part, more in ((lambda asked: None, "cannot open", {}), (link, "cannot open", {}), (fifo, "regular", {}),
                              (lambda asked: put(asked, bad), "1008 bytes, 1007 were told", {"size": 1007}),
                              (lambda asked: put(asked, bad[:-4] + b"abcd", name), "its hash is", {}),
                              (lambda asked: put(asked, noise), "no SPIR-V: word 0", {"hash_": sha256(noise), "size": len(noise)}),
                              (lambda asked: put(asked, b""), "no SPIR-V: 0 bytes", {"hash_": sha256(b""), "size": 0}),
                              (lambda asked: put(asked, cut), "reaches beyond the end", {"hash_": sha256(cut), "size": len(cut)})):
        refused(plant, part, **more)


def test_a_program_that_puts_other_things_there_harms_nothing():
    with recording() as (stage, layer, asked, capture_id):
        base, code = os.path.dirname(asked["template"]), module("glsl")
        outside = os.path.join(stage.root, "outside")
        os.mkdir(outside)
        with open(os.path.join(outside, sha256(code) + ".spv"), "wb") as file:
            file.write(code)
        # Its folder is a link to another, and the final one is there before it is made.
        os.symlink(outside, asked["template"] + ".shaders")
        os.symlink(outside, os.path.join(base, "shaders"))
        say(layer, sha256(code), len(code))
        final, listed = finish(stage, layer, asked, capture_id)
        assert listed is None and final["shaders"]["left_out"] == 1 and "folder is not there" in warnings(final)["shaders_left_out"]["message"]
        assert os.listdir(outside) == [sha256(code) + ".spv"]
        left = stage.client.call("DeleteCapture", capture_id=capture_id)
        assert os.listdir(outside) == [sha256(code) + ".spv"] and left["left"] == final["folder"]
    with recording() as (stage, layer, asked, capture_id):
        code = module("glsl")
        os.mkdir(os.path.join(os.path.dirname(asked["template"]), "shaders"))
        say(layer, put(asked, code), len(code))
        final, listed = finish(stage, layer, asked, capture_id)
        assert listed is None and final["shaders"]["left_out"] == 1 and "shaders" in warnings(final)["shaders_left_out"]["message"]


def test_a_line_that_names_another_place_closes_the_connection():
    good = "a" * 64
    for pairs in ({"hash": "../" + "a" * 61}, {"hash": "a" * 63}, {"hash": "A" * 64}, {"hash": "a" * 63 + "/"}, {"stage": "pixel"}, {"entry": "x" * 128},
                  {"bytes": -1}, {"path": "/etc/passwd"}):
        with recording() as (stage, layer, _, capture_id):
            layer.say("shader", **dict({"hash": good, "bytes": 4, "stage": "compute", "entry": "main"}, **pairs))
            assert layer.is_closed(), pairs
            stage.client.call("StopCapture", capture_id=capture_id)
    with recording() as (stage, layer, _, capture_id):
        layer.say("shaders", left_out="many")
        assert layer.is_closed()
        stage.client.call("StopCapture", capture_id=capture_id)


def test_more_than_the_limits_is_left_out():
    code = module("glsl")
    for large, extra, left_out in ((3, 0, 3), (4, 0, 5), (0, 1, 1)):
        with recording() as (stage, layer, asked, capture_id):
            put(asked, code)
            for number in range(large):
                # Read, because it has no more than 16 MiB, and then not what was told.
                hash_ = put(asked, b"%d" % number)
                os.truncate(os.path.join(asked["template"] + ".shaders", hash_ + ".spv"), 16 << 20)
                say(layer, hash_, 4)
            if extra:
                hash_ = put(asked, b"large")
                os.truncate(os.path.join(asked["template"] + ".shaders", hash_ + ".spv"), (16 << 20) + 4)
                say(layer, hash_, (16 << 20) + 4)
            say(layer, sha256(code), len(code))
            final, _ = finish(stage, layer, asked, capture_id)
            assert (final["shaders"]["total"], final["shaders"]["left_out"]) == (1 if left_out != 5 else 0, left_out), final["shaders"]
            assert not extra or "at most 16777216" in warnings(final)["shaders_left_out"]["message"]
    with recording() as (stage, layer, asked, capture_id):
        hash_ = put(asked, code)
        for number in range(1000):
            say(layer, hash_, len(code), entry="entry %d" % number)
        for number in range(3):
            say(layer, put(asked, module("wgsl")), len(module("wgsl")), entry="above %d" % number)
        final, listed = finish(stage, layer, asked, capture_id)
        assert len(listed["shaders"][0]["used"]) == 1000 and final["shaders"]["total"] == 1 and final["shaders"]["left_out"] == 3


def test_a_trace_that_fails_leaves_no_shaders():
    with recording() as (stage, layer, asked, capture_id):
        say(layer, put(asked, module("glsl")), len(module("glsl")))
        layer.say("document", path=write_document(asked, data=b"none"), bytes=4, first=3, last=3)
        final = stage.client.call("WaitCapture", capture_id=capture_id)
        assert final["state"] == "failed" and final["shaders"] is None and os.listdir(final["folder"]) == ["record.json"]
    with recording() as (stage, layer, asked, capture_id):
        say(layer, put(asked, module("glsl")), len(module("glsl")))
        layer.say("fault", code="document_missing", text="none")
        final = stage.client.call("WaitCapture", capture_id=capture_id)
        assert final["state"] == "failed" and os.listdir(final["folder"]) == ["record.json"]


@contextlib.contextmanager
def real_stage():
    for reason, path in (("the layer was not built (libvulkan-dev)", os.path.join(LAYER, "libprofd_gpu.so")),
                         ("its program was not built", target("gpu_shaders")), ("mesa-vulkan-drivers is not installed", LAVAPIPE),
                         ("librenderdoc is not installed", "/usr/share/vulkan/implicit_layer.d/renderdoc_capture.json")):
        if not os.path.exists(path):
            skip(reason)
    with Daemon(env={"VK_ICD_FILENAMES": LAVAPIPE}) as daemon:
        yield daemon.connect()


def trace(client, argv, **params):
    client.call("LaunchProcess", argv=argv, gpu=True, hold=True, build_id="engine")
    capture_id = client.call("StartGpuTrace", build_id="engine", **params)["capture_id"]
    client.call("ResumeProcess", build_id="engine")
    final = client.call("WaitCapture", capture_id=capture_id)
    assert final["state"] == "finished", final
    client.wait_event("ProcessExited")
    with open(os.path.join(final["folder"], "shaders.json"), encoding="utf-8") as file:
        listed = json.load(file)
    check_list(final, listed)
    return final, {shader["hash"]: shader for shader in listed["shaders"]}


def test_shaders_of_real_programs_are_beside_their_traces():
    with real_stage() as client:
        final, shaders = trace(client, [target("gpu_frames"), "--frames", "5"], start_frame=2, end_frame=3)
        assert {hash_: shader["used"] for hash_, shader in shaders.items()} == {
            sha256(frames_module("fill_comp")): [{"stage": "compute", "entry": "main"}],
            sha256(frames_module("triangle_vert")): [{"stage": "vertex", "entry": "main"}],
            sha256(frames_module("triangle_frag")): [{"stage": "fragment", "entry": "main"}]}
        assert all([{"stage": use["stage"], "name": use["entry"]} for use in shader["used"]] == shader["entry_points"] for shader in shaders.values())
        assert "3 of 3" in warnings(final)["shader_no_source"]["message"]
        final, shaders = trace(client, [target("gpu_shaders"), "plain", "/glsl+!hlsl", "wgsl+*glsl", "none"], start_frame=1, end_frame=2)
        assert set(shaders) == {sha256(module(name)) for name in ("glsl", "hlsl", "wgsl")}
        for name in ("glsl", "hlsl", "wgsl"):
            assert text_of(final, shaders[sha256(module(name))]).endswith(source(SOURCES[name][1]))
        assert "1 shader " in warnings(final)["shaders_left_out"]["message"] and "shader_no_source" not in warnings(final)


def disassembled(code):
    return subprocess.run(["spirv-dis", "--raw-id", "--no-color", "-"], input=code, capture_output=True, check=True).stdout.decode()


def test_khronos_tools_say_the_same_of_modules():
    if not (shutil.which("spirv-dis") and shutil.which("spirv-val")):
        skip("spirv-tools is not installed")
    codes = dict(arrays("modules.inc"), **arrays("shaders.inc"))
    with recording() as (stage, layer, asked, capture_id):
        for code in codes.values():
            say(layer, put(asked, code), len(code))
        final, listed = finish(stage, layer, asked, capture_id)
        assert len(listed["shaders"]) == len(codes) == 8
        for shader in listed["shaders"]:
            with open(os.path.join(final["folder"], shader["path"]), "rb") as file:
                code = file.read()
            subprocess.run(["spirv-val", "--target-env", "vulkan1.0", "-"], input=code, check=True)
            said = disassembled(code)
            models = {"GLCompute": "compute", "Vertex": "vertex", "Fragment": "fragment"}
            assert [(entry["stage"], entry["name"]) for entry in shader["entry_points"]] == \
                [(models[model], name) for model, name in re.findall(r'OpEntryPoint (\w+) %\d+ "([^"]*)"', said)]
            assert shader["line_records"] == len(re.findall(r"\bOpLine |\bDebugLine ", said)), said
            strings = dict(re.findall(r'(%\d+) = OpString "((?:[^"\\]|\\.)*)"', said))
            texts = re.findall(r'OpSource \w+ \d+ (%\d+) "((?:[^"\\]|\\.)*)"', said)
            texts += [(file, strings[text]) for file, text in re.findall(r"DebugSource (%\d+) (%\d+)", said)]
            assert [(one["file"], text_of(final, shader, number)) for number, one in enumerate(shader["sources"])] == \
                [(strings[file], re.sub(r"\\(.)", r"\1", text)) for file, text in texts]


if __name__ == "__main__":
    main(globals())
