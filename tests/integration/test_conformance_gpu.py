"""docs/protocol.md on GPU traces, with a layer that the test plays (the real one has tests of its own)."""
import contextlib
import json
import os
import re
import signal
import stat
import time

import test_gpu_waits
from contract import SENTENCE
from fake_gpu_layer import environment_of
from gpu_modules import module, sha256
from gpu_stage import PROGRAM, READER, Stage, begin, failure, record, start, write_document
from harness import Gate, main, skip, wait_until

LAVAPIPE = "/usr/share/vulkan/icd.d/lvp_icd.x86_64.json"


@SENTENCE("`StartGpuTrace` | build_id; start_frame?, end_frame? (numbered from 0, both included) or frames? (from the next on) or "
          "duration_ms? (none of them: until stopped); frame_by?: `auto` (default), `present`, `submit`, `label:PREFIX`, `manual`; kind?: "
          "`document` (default), `timeline`; device?; output_dir?; verify? (true);", "timeout_ms? (60,000: how long the first frame is waited for), label?, "
          "progress_ms? (250), subscribe? (true), on_client_exit?: `continue` (default), `stop`; request_key? |")
def test_what_a_trace_can_be_asked_for():
    with Stage() as stage, stage.program() as (_, layer):
        described, = stage.client.call("Describe", method="StartGpuTrace")["methods"]
        defaults = {param["name"]: param.get("default") for param in described["params"]}
        assert (defaults["frame_by"], defaults["kind"], defaults["timeout_ms"], defaults["progress_ms"], defaults["subscribe"],
                defaults["on_client_exit"], defaults["verify"]) == ("auto", "document", 60000, 250, True, "continue", True)
        error = stage.client.fails("StartGpuTrace", build_id="engine", kind="timeline")
        assert error.code == "unsupported" and "timeline" in error.message, error.error
        for wrong in ({"start_frame": -1}, {"start_frame": 4, "end_frame": 3}, {"end_frame": 3}, {"frames": 0}, {"frames": 1, "start_frame": 1},
                      {"frames": 1, "duration_ms": 1}, {"start_frame": 1, "duration_ms": 1}, {"frame_by": "draw"}, {"frame_by": "label:"},
                      {"frame_by": "manual", "frames": 1}, {"frame_by": "manual", "start_frame": 1}, {"timeout_ms": 0}):
            assert stage.client.fails("StartGpuTrace", build_id="engine", **wrong).code == "bad_params", wrong
        for wished, said in (({"start_frame": 0}, {"by": "auto", "first": "0", "last": "0"}),
                             ({"start_frame": 2, "end_frame": 9, "frame_by": "present"}, {"by": "present", "first": "2", "last": "9"}),
                             ({"frames": 5, "frame_by": "submit"}, {"by": "submit", "next": "5"}),
                             ({"frames": 2, "device": "LLVMpipe"}, {"by": "auto", "next": "2", "device": "LLVMpipe"}),
                             ({"frames": 1, "frame_by": "label:x"}, {"by": "label", "label": "x", "next": "1"}),
                             ({"duration_ms": 60000}, {"by": "manual"}), ({}, {"by": "manual"})):
            capture_id = start(stage, **wished)["capture_id"]
            asked = layer.wait_for("start")
            assert dict(asked, template=None) == dict(said, template=None), asked
            record(layer, asked, 0, 0)
            assert stage.client.call("WaitCapture", capture_id=capture_id)["state"] == "finished"
        # A repeated request is the same trace; one whose client has gone with on_client_exit stop is stopped.
        other = stage.daemon.connect()
        first = other.call("StartGpuTrace", build_id="engine", on_client_exit="stop", request_key="k", subscribe=False)
        assert other.call("StartGpuTrace", build_id="engine", on_client_exit="stop", request_key="k", subscribe=False) == first
        layer.wait_for("start")
        other.close()
        layer.wait_for("stop")
        layer.say("fault", code="not_capturing", text="")


@SENTENCE("| capture_id, state, backend, and the other effective values that `GpuTraceStarted` tells, null where not known yet; warnings.",
          "The reply comes once the program is asked: state `armed` until the first frame is recorded",
          "`GpuTraceStarted {capture_id, build_id, pid, backend, backend_version, trace_kind, frame_by, start_frame, end_frame, frames, "
          "duration_ms, timeout_ms, first_frame, last_frame, traced_pid, traced_exe, device, started_mono_us, trace_path, artifacts, shaders, verified}` (with "
          "the first frame that is recorded; `started_mono_us` is its CLOCK_MONOTONIC, as the samples' times) · `GpuTraceProgress {capture_id, "
          "build_id, state, elapsed_ms, frame, bytes}` (only when something has changed; frame is the program's, also before the first that "
          "is recorded) · `GpuTraceFinished {capture_id, build_id, pid, label, reason, backend, backend_version, trace_kind, frame_by, "
          "start_frame, end_frame, frames, duration_ms, timeout_ms, first_frame, last_frame, traced_pid, traced_exe, device, started_mono_us, "
          "trace_path, artifacts, shaders, verified, warnings}` where reason is `frames`, `duration`, `stopped`, `target_exited` (it, its device or its window is gone), `client_exited`, "
          "`daemon_shutdown`, `timeout` or `recovered`, device is {name, type, driver, uuid, index}, and `backend_version` is RenderDoc's interface ·",
          "`GpuTraceFailed {capture_id, build_id, pid, error, label}`; the record's kind is `gpu`")
def test_what_is_told_of_a_trace():
    members = {event["name"]: set(event["members"].split(", ")) | {"seq"}
               for event in Stage.describe()["events"]}
    with Stage() as stage, stage.program() as (pid, layer):
        reply = start(stage, start_frame=3, progress_ms=50)
        assert set(reply) == members["GpuTraceStarted"] - {"build_id", "pid", "seq"} | {"state", "warnings"}
        assert reply["state"] == "armed" and reply["first_frame"] is None and reply["backend"] == "renderdoc"
        asked = layer.wait_for("start")
        layer.frame(1)
        told = stage.client.wait_event("GpuTraceProgress")
        assert set(told) == members["GpuTraceProgress"] and (told["frame"], told["state"]) == (1, "armed")
        stage.client.drain(0.2)
        assert not [event for event in stage.client.events if event["method"] == "GpuTraceProgress"]
        at_us = time.monotonic_ns() // 1000
        begin(layer, 3)
        began = stage.client.wait_event("GpuTraceStarted")
        assert set(began) == members["GpuTraceStarted"] and began["pid"] == pid and abs(began["started_mono_us"] - at_us) < 5000000
        assert set(began["device"]) == {"name", "type", "driver", "uuid", "index"} and began["backend_version"] == "1.6.0"
        layer.say("document", path=write_document(asked), bytes=64, first=3, last=3)
        finished = stage.client.wait_event("GpuTraceFinished")
        assert set(finished) == members["GpuTraceFinished"] and finished["reason"] == "frames"
        failed = failure(stage, layer, "start_failed")
        assert set(failed) == members["GpuTraceFailed"]
        assert stage.client.call("GetCapture", capture_id=failed["capture_id"])["kind"] == "gpu"


@SENTENCE("A GPU trace needs a build that was launched with `gpu`; a program that runs cannot be armed any more (`gpu_not_armed`).",
          "An armed program finds profd's Vulkan layer, RenderDoc's and a socket of its own in its environment (`PROFD_GPU`, "
          "`PROFD_GPU_SOCKET`, `PROFD_GPU_TOKEN`, `PROFD_GPU_DEVICE`, `PROFD_GPU_RENDERDOC`, `XDG_DATA_DIRS`, `LD_PRELOAD`, `WGPU_DEBUG`), before what these "
          "variables have already; `WGPU_DEBUG` only when it is not set.",
          "Where its environment keeps layers out (`VK_LOADER_LAYERS_DISABLE`) these two are excepted by `VK_LOADER_LAYERS_ENABLE`, and "
          "`VK_IMPLICIT_LAYER_PATH` gets their folders where it is set.",
          "What is missing for that refuses the launch with `backend_unavailable` (detail `layer_missing`, `renderdoc_missing`; `layer_off` when "
          "its environment has `DISABLE_PROFD_GPU`), and nothing runs.")
def test_a_program_is_armed_at_its_launch():
    own = {"XDG_DATA_DIRS": "/own", "LD_PRELOAD": "libc.so.6", "WGPU_DEBUG": "0"}
    filters = {"VK_LOADER_LAYERS_DISABLE": "~all~", "VK_LOADER_LAYERS_ENABLE": "VK_LAYER_own", "VK_IMPLICIT_LAYER_PATH": "/only"}
    with Stage() as stage:
        stage.launch("plain", gpu=False)
        assert stage.client.fails("StartGpuTrace", build_id="plain").code == "gpu_not_armed"
        found = environment_of(stage.launch(env=own))
        assert {"PROFD_GPU", "PROFD_GPU_SOCKET", "PROFD_GPU_TOKEN", "PROFD_GPU_DEVICE", "PROFD_GPU_RENDERDOC"} <= set(found) and found["WGPU_DEBUG"] == "0"
        assert all(found[name].endswith(":" + value) for name, value in own.items() if name != "WGPU_DEBUG")
        assert not set(filters) & set(found)
        found = environment_of(stage.launch("filtered", env=filters))
        assert found["VK_LOADER_LAYERS_ENABLE"].split(",")[-2:] == ["VK_LAYER_RENDERDOC_Capture", "VK_LAYER_own"]
        folders = found["VK_IMPLICIT_LAYER_PATH"].split(":")
        assert [os.listdir(folder)[0] for folder in folders[:2]] == ["VkLayer_profd_gpu.json", "renderdoc.json"] and folders[2:] == ["/only"]
        error = stage.client.fails("LaunchProcess", argv=PROGRAM, gpu=True, env={"DISABLE_PROFD_GPU": "0"})
        assert (error.code, error.detail) == ("backend_unavailable", "layer_off") and "DISABLE_PROFD_GPU" in str(error)
        assert "PROFD_GPU" in environment_of(stage.launch("gl", gpu={"api": "gl"}, env={"DISABLE_PROFD_GPU": "0"}))
        os.remove(stage.parts.nobind)
        error = stage.client.fails("LaunchProcess", argv=PROGRAM, gpu=True)
        assert (error.code, error.detail) == ("backend_unavailable", "layer_missing")
    with Stage() as stage:
        os.remove(stage.parts.renderdoc)
        error = stage.client.fails("LaunchProcess", argv=PROGRAM, gpu=True)
        assert (error.code, error.detail) == ("backend_unavailable", "renderdoc_missing")
        assert stage.client.call("ListProcesses")["processes"] == []


@SENTENCE("A program that was launched so may start a trace of its build itself (`profd_gpu_start` of `profd_gpu.h`, by the layer that "
          "`PROFD_GPU_LIBRARY` names; empty when `program` is false): a capture like any other, with `frame_by` `manual`, the label that the "
          "program gives, and the events for whoever subscribed to the build. It begins on the thread that asks, before the call returns, and "
          "has all that is submitted until the program stops it (reason `stopped`); its process alone is recorded. The program is refused what "
          "a client would be (`capture_busy`, `disk_full`, `shutting_down` …), `not_permitted` when it may not, `build_not_running` once the "
          "build has ended, and `limit_exceeded` after 1,000 traces of one build.")
def test_a_program_asks_itself():
    # test_gpu_asking.py has every refusal, test_gpu_program.py what is in the documents of real programs.
    with Stage() as stage:
        with stage.program() as (pid, layer):
            assert environment_of(pid)["PROFD_GPU_LIBRARY"] == stage.parts.library
            layer.say("ask", n=1, label="own")
            asked = layer.wait_for("start")
            layer.say("ask", n=2, label="")
            assert layer.wait_for("refused")["code"] == "capture_busy"
            begin(layer, 4)
            capture_id = stage.client.wait_event("GpuTraceStarted", frame_by="manual")["capture_id"]
            layer.say("document", path=write_document(asked), bytes=64, first=4, last=5, by="program")
            finished = stage.client.wait_event("GpuTraceFinished", capture_id=capture_id)
            assert (finished["label"], finished["reason"], finished["first_frame"], finished["last_frame"]) == ("own", "stopped", 4, 5)
        with stage.program("quiet", gpu={"program": False}) as (pid, layer):
            assert environment_of(pid)["PROFD_GPU_LIBRARY"] == ""
            layer.say("ask", n=1, label="own")
            assert layer.wait_for("refused")["code"] == "not_permitted"


@SENTENCE("A build launched or adopted with `gpu: {api: \"gl\"}` is armed for OpenGL and OpenGL ES by EGL or GLX, instead of for Vulkan (`vulkan`, the "
          "default): profd's library for them and RenderDoc are in `LD_PRELOAD`, no layers.",
          "There a frame ends with each eglSwapBuffers or glXSwapBuffers of the context that is recorded (each counts its own), also of a pbuffer, and a label is a debug group's; `submit` fails with "
          "`unsupported` (detail `no_such_boundary`), and what is recorded without frames begins with the next swap or call that draws, clears or "
          "computes.")
def test_a_program_of_gl_is_armed_without_layers():
    # What a swap and a debug group are, and where a recording begins, test_gpu_gl.py sees in documents.
    with Stage() as stage:
        preloaded = [stage.parts.gl, stage.parts.nobind, stage.parts.renderdoc]
        pid = stage.launch(gpu={"api": "gl"}, env={"LD_PRELOAD": "libc.so.6", "XDG_DATA_DIRS": "/own"})
        found = environment_of(pid)
        assert found["LD_PRELOAD"].split(":") == preloaded + ["libc.so.6"] and found["XDG_DATA_DIRS"] == "/own"
        assert "PROFD_GPU_RENDERDOC" not in found and found["PROFD_GPU_LIBRARY"] == stage.parts.gl
        assert sorted(os.listdir(os.path.dirname(found["PROFD_GPU_SOCKET"]))) == ["owner", "socket"]
        with stage.layer(pid) as layer:
            layer.device()
            failed = failure(stage, layer, "no_such_boundary", frame_by="submit")
            assert (failed["error"]["data"]["code"], failed["error"]["data"]["detail"]) == ("unsupported", "no_such_boundary"), failed
        assert environment_of(stage.launch("other", gpu={"api": "vulkan"}))["LD_PRELOAD"].split(":")[0] == stage.parts.nobind
        assert stage.client.fails("LaunchProcess", argv=PROGRAM, gpu={"api": "metal"}).code == "bad_params"
        with Gate(stage.daemon, PROGRAM) as gate:
            record = stage.client.call("AdoptProcess", pid=gate.pid, build_id="gated", gpu={"api": "gl"})
            assert record["environment"]["LD_PRELOAD"].split(":")[:3] == preloaded


@SENTENCE("`device` in `gpu` names the GPU that a program of Vulkan is to see; it sees no other.", "A GPU is named by its whole name, else by digits (its "
          "index: the place in which Vulkan tells of it), by 32 hexadecimal digits with dashes anywhere (its `deviceUUID`), or by a part of its name, in any "
          "case of letters, that no GPU of another name has. GPUs of one name are meant together.", "A probe looks for it before anything runs: "
          "`backend_unavailable` (detail `device_not_found`, with what there is, or `device_ambiguous`, with what it may be).", "What the program finds "
          "otherwise than the probe it sees as without `device`, and its traces fail with the same.", "With `api: \"gl\"` it is `unsupported` (detail "
          "`device_not_chosen`).")
def test_the_gpu_that_a_program_sees_is_chosen_at_its_launch():
    # What the program sees, and names of every form, are test_gpu_devices.py's and test_gpu_pick.c's.
    with Stage(env={"VK_ICD_FILENAMES": LAVAPIPE}) as stage:
        error = stage.client.fails("LaunchProcess", argv=PROGRAM, gpu={"api": "gl", "device": "0"})
        assert (error.code, error.detail) == ("unsupported", "device_not_chosen"), error.error
        if not os.path.exists(LAVAPIPE):
            skip("mesa-vulkan-drivers is not installed")
        for wrong in ("Voodoo 2", "1", "f" * 32):
            error = stage.client.fails("LaunchProcess", argv=PROGRAM, gpu={"device": wrong})
            assert (error.code, error.detail) == ("backend_unavailable", "device_not_found") and "0: llvmpipe" in error.message, error.error
        assert stage.client.call("ListProcesses")["processes"] == []
        for good in ("0", "LLVMpipe", "llvm"):
            pid = stage.launch(good, gpu={"device": good})
            assert environment_of(pid)["PROFD_GPU_DEVICE"] == good
        assert environment_of(stage.launch("each"))["PROFD_GPU_DEVICE"] == ""
        with stage.program() as (_, layer):
            for detail in ("device_not_found", "device_ambiguous"):
                failed = failure(stage, layer, detail)["error"]["data"]
                assert (failed["code"], failed["detail"]) == ("backend_unavailable", detail), failed


@SENTENCE("`device` of `StartGpuTrace` is one of those that the program uses, named in the same way: of several the others are not recorded.",
          "When it has made devices and none is meant, the answer is `gpu_no_calls` (detail `device_not_used`, with those that it uses); until it has made "
          "one the trace waits, and fails so when the program ends or at `timeout_ms`.", "A name that may be several of them is `bad_params` (detail "
          "`device_ambiguous`).")
def test_a_trace_is_of_the_device_that_is_named():
    # That the others are not recorded, test_gpu_devices.py sees in documents.
    with Stage() as stage, stage.program() as (_, layer):
        layer.device(name="Big GPU", uuid="f" * 32, index=1)
        time.sleep(0.2)
        error = stage.client.fails("StartGpuTrace", build_id="engine", device="Voodoo 2")
        assert (error.code, error.detail) == ("gpu_no_calls", "device_not_used"), error.error
        assert all(text in error.message for text in ("Voodoo 2", "0: llvmpipe", "1: Big GPU (" + "f" * 32 + ")")), error.error
        error = stage.client.fails("StartGpuTrace", build_id="engine", device="p")
        assert (error.code, error.detail) == ("bad_params", "device_ambiguous"), error.error
        for wish, index in (("0", 0), ("big", 1), ("F" * 32, 1)):
            capture_id = start(stage, frames=1, device=wish)["capture_id"]
            asked = layer.wait_for("start")
            assert asked["device"] == wish
            name, uuid = ("Big GPU", "f" * 32) if index else ("llvmpipe (LLVM 15.0.6, 256 bits)", "0123456789abcdef" * 2)
            layer.say("capturing", frame=0, wall_ns=time.time_ns(), mono_ns=time.monotonic_ns(), name=name, uuid=uuid, index=index)
            layer.say("document", path=write_document(asked), bytes=64, first=0, last=0)
            assert stage.client.call("WaitCapture", capture_id=capture_id)["device"]["name"] == name
    with Stage() as stage:
        for ends in ("at timeout_ms", "with the program"):
            pid = stage.launch()
            capture_id = start(stage, frames=1, device="Big GPU", timeout_ms=300 if ends == "at timeout_ms" else 60000)["capture_id"]
            with stage.layer(pid) as layer:
                layer.wait_for("start")
                layer.device()
                layer.frame(7)
                if ends == "at timeout_ms":
                    layer.wait_for("stop")
                    layer.say("fault", code="not_capturing", text="")
                else:
                    stage.client.call("StopProcess", build_id="engine", signal="KILL")
            failed = stage.client.call("WaitCapture", capture_id=capture_id)["error"]["data"]
            assert (failed["code"], failed["detail"]) == ("gpu_no_calls", "device_not_used"), failed
            stage.client.call("StopProcess", build_id="engine", signal="KILL") if ends == "at timeout_ms" else None


@SENTENCE("Frames count from 0 since the program made its device: a frame is what lies between two presents (`present`), each submit with "
          "command buffers (`submit`), or what begins with a submit that has a debug label with that prefix (`label:PREFIX`, 1 to 127 bytes); "
          "`auto` is `present` once the program presents, until then `submit`.", "Labels are counted from the first trace by that prefix on.", "With `manual`, `duration_ms` or no range no frames are "
          "chosen: all is recorded from the next submit or present on.")
def test_who_counts_is_the_layer():
    # What a present and a submit are, the layer's own tests see in documents; here that each is asked for, and told as it was counted.
    with Stage() as stage, stage.program() as (_, layer):
        assert stage.client.fails("StartGpuTrace", build_id="engine", frame_by="label:" + "x" * 128).code == "bad_params"
        for frame_by, by, frame in (("present", "present", 0), ("submit", "submit", 5), ("label:" + "x" * 127, "label", 0)):
            capture_id = start(stage, frame_by=frame_by, start_frame=frame)["capture_id"]
            asked = layer.wait_for("start")
            assert asked["by"] == by and asked["first"] == str(frame)
            record(layer, asked, frame, frame)
            assert stage.client.call("WaitCapture", capture_id=capture_id)["frame_by"] == frame_by
        for by in ("submit", "present"):
            capture_id = start(stage, frames=1)["capture_id"]
            asked = layer.wait_for("start")
            layer.frame(9, by)
            begin(layer, 10)
            layer.say("document", path=write_document(asked), bytes=64, first=10, last=10)
            assert stage.client.call("WaitCapture", capture_id=capture_id)["frame_by"] == by
        for params in ({"frame_by": "manual"}, {"duration_ms": 100000}, {}):
            capture_id = start(stage, **params)["capture_id"]
            asked = layer.wait_for("start")
            assert asked["by"] == "manual" and "first" not in asked
            record(layer, asked, 12, 20)
            stage.client.call("WaitCapture", capture_id=capture_id)


@SENTENCE("The time of `timeout_ms` begins with the program's first instruction, that of `duration_ms` with the first recorded frame.",
          "Of several processes of a build the one that works with the GPU is recorded.",
          "One GPU trace per build at a time (`capture_busy`, detail `gpu_busy`, names the first); a sampling capture may overlap it.")
def test_times_and_processes():
    with Stage() as stage:
        pid = stage.launch(hold=True, profile={"hz": 100})
        first = start(stage, duration_ms=200, timeout_ms=400)["capture_id"]
        time.sleep(0.6)
        assert stage.client.call("GetCapture", capture_id=first)["state"] == "armed"
        error = stage.client.fails("StartGpuTrace", build_id="engine")
        assert (error.code, error.detail) == ("capture_busy", "gpu_busy") and first in error.message
        stage.client.call("ResumeProcess", build_id="engine")
        with stage.layer(pid) as idle, stage.layer(pid, exe="/bin/works") as works:
            works.device()
            asked = works.wait_for("start")
            began = time.monotonic()
            begin(works, 4)
            works.wait_for("stop")
            assert 0.19 < time.monotonic() - began < 2
            works.say("document", path=write_document(asked), bytes=64, first=4, last=5)
            final = stage.client.call("WaitCapture", capture_id=first)
            assert (final["state"], final["traced_exe"]) == ("finished", "/bin/works")
            began = time.monotonic()
            start(stage, timeout_ms=200)
            works.wait_for("start")
            works.wait_for("stop")
            assert 0.19 < time.monotonic() - began < 2
            works.say("fault", code="not_capturing", text="")
            idle.end()


@SENTENCE("A GPU trace has finished only when its document is there as `capture.rdc`, not empty, and begins with `RDOC`.",
          "A program that ends by itself while it is recorded leaves what it has, and so does one that destroys the swapchain that it presented to last, "
          "which RenderDoc needs to the end: a warning `range_cut` says how much of the range that is.")
def test_a_success_has_a_document():
    with Stage() as stage, stage.program() as (_, layer):
        for data, good in ((b"", False), (b"RDO", False), (b"PK\3\4" * 9, False), (b"RDOC", True)):
            capture_id = start(stage, start_frame=3, end_frame=6)["capture_id"]
            asked = layer.wait_for("start")
            begin(layer, 3)
            layer.say("document", path=write_document(asked, data=data), bytes=4, first=3, last=4)
            final = stage.client.call("WaitCapture", capture_id=capture_id)
            assert final["state"] == ("finished" if good else "failed"), final
            assert os.path.exists(final["folder"] + "/capture.rdc") == good
        assert final["reason"] == "target_exited" and [warning["code"] for warning in final["warnings"]] == ["range_cut"] and "2 of the 4" in final["warnings"][0]["message"]
        assert stat.S_IMODE(os.stat(final["trace_path"]).st_mode) == 0o600
        capture_id = start(stage, start_frame=5, end_frame=6, frame_by="present")["capture_id"]
        asked = layer.wait_for("start")
        begin(layer, 5)
        layer.say("document", path=write_document(asked), bytes=64, first=5, last=6, open=1)
        final = stage.client.call("WaitCapture", capture_id=capture_id)
        warning, = final["warnings"]
        assert warning["code"] == "range_cut" and "within frame 6" in warning["message"], warning
        capture_id = start(stage, start_frame=5, end_frame=9)["capture_id"]
        asked = layer.wait_for("start")
        begin(layer, 5)
        layer.say("document", path=write_document(asked), bytes=64, first=5, last=6, by="window")
        final = stage.client.call("WaitCapture", capture_id=capture_id)
        warning, = final["warnings"]
        assert (final["state"], final["reason"], warning["code"]) == ("finished", "target_exited", "range_cut"), final
        capture_id = start(stage, duration_ms=60000)["capture_id"]
        asked = layer.wait_for("start")
        begin(layer, 7)
        layer.say("document", path=write_document(asked), bytes=64, first=7, last=8, by="window")
        assert [each["code"] for each in stage.client.call("WaitCapture", capture_id=capture_id)["warnings"]] == ["range_cut"]
        assert "was about to go" in warning["message"] and "2 of the 5" in warning["message"] and "one window" in warning["hint"]


@SENTENCE("Then `renderdoccmd` reads all of it, when it is in the daemon's PATH, unless `verify` is false: `verified` is true when it could.",
          "When it could not, the trace has failed with `io`, detail `document_broken` and the last line of what it said, and the document is kept "
          "and listed.",
          "When there is no `renderdoccmd`, when it takes longer than 30 s, and when the daemon ends meanwhile, the trace has finished, `verified` "
          "is false, and a warning `not_verified` says why.")
def test_a_document_is_read_when_it_is_there():
    # The time limit: tests/unit/test_verifying.c. The daemon's end, and real documents: test_gpu_verifying.py.
    for reader, verify, verified, codes in ((READER, True, True, []), (READER, False, False, []), ("", True, False, ["not_verified"]),
                                            ("#!/bin/sh\necho first; echo it is cut >&2; exit 3\n", True, False, None)):
        with Stage(reader=reader) as stage, stage.program() as (_, layer):
            capture_id = start(stage, start_frame=3, verify=verify)["capture_id"]
            record(layer, layer.wait_for("start"), 3, 3)
            final = stage.client.call("WaitCapture", capture_id=capture_id)
            assert final["verified"] == verified and final["state"] == ("failed" if codes is None else "finished"), final
            assert os.path.exists(final["trace_path"]) and final["artifacts"][0]["path"] == final["trace_path"]
            if codes is None:
                error = final["error"]
                assert (error["data"]["code"], error["data"]["detail"]) == ("io", "document_broken") and "it is cut" in error["message"], error
            else:
                assert [warning["code"] for warning in final["warnings"]] == codes, final


@SENTENCE("A program that lives on when profd is killed ends what is recorded of it by itself, and writes the document.",
          "The next daemon waits for it (at most 5 s until it begins to be written, 60 s until it is complete), reads it, also with `verify` false, "
          "and finishes the trace with reason `recovered`: `last_frame` is then null, and `used` in `shaders.json` empty, because nobody was told of "
          "them.", "When it could not be read, the trace has failed as any other; when nobody could say whether it is whole, with `interrupted` (detail "
          "`not_verified`), and the document is kept and listed; and without a document with `interrupted`.",
          "A document that was complete when profd was killed is read again, and nothing of its record is missing.")
def test_a_killed_daemon_does_not_take_the_document_with_it():
    # Real programs, the waiting, shaders, and a daemon that is killed while it reads: test_gpu_recovery.py.
    reader = "#!/bin/sh\ngrep -q broken \"$3\" && exit 1\ngrep -q unread \"$3\" && kill -KILL $$\n" + READER.split("\n")[1]
    wanted = {"whole": ("finished", None, None), "broken": ("failed", "io", "document_broken"), "unread": ("failed", "interrupted", "not_verified"),
              "none": ("failed", "interrupted", None)}
    with Stage(reader=reader, check_exit=False) as stage, contextlib.ExitStack() as layers:
        pids = {build_id: stage.launch(build_id, on_daemon_exit="leave", stdio="null") for build_id in wanted}
        try:
            captures = {}
            for build_id, pid in pids.items():
                layer = layers.enter_context(stage.layer(pid))
                layer.device()
                captures[build_id] = start(stage, build_id=build_id, start_frame=3, verify=False)["capture_id"]
                asked = layer.wait_for("start")
                begin(layer, 3)
                stage.client.wait_event("GpuTraceStarted", build_id=build_id)
                if build_id != "none":
                    write_document(asked, data=b"RDOC, which is " + build_id.encode())
            stage.daemon.process.kill()
            stage.daemon.process.wait()
            stage.daemon.clients.clear()
            stage.daemon.start()
            client = stage.daemon.connect()
            for build_id, (state, code, detail) in wanted.items():
                final = client.call("WaitCapture", capture_id=captures[build_id])
                data = final.get("error", {}).get("data", {})
                assert (final["state"], data.get("code"), data.get("detail")) == (state, code, detail), final
                assert (final["reason"], final["last_frame"], final["verified"]) == ("recovered", None, {"whole": True, "none": None}.get(build_id, False)), final
                assert build_id == "none" and final["trace_path"] is None or os.path.exists(final["trace_path"]) and final["artifacts"], final
        finally:
            for pid in pids.values():
                os.kill(pid, signal.SIGKILL)


@SENTENCE("Beside the document are the shaders that the recorded frames used: `shaders/HASH.spv`, where HASH is the SHA-256 of the SPIR-V; the source "
          "where the module carries it (`HASH.wgsl`, `.glsl`, `.hlsl`, `.slang` or `.txt`, further files of one module as `HASH-1.wgsl` and so on); and "
          "`shaders.json`: {format: `profd-shaders`, version: 1, left_out, shaders: [{hash, bytes, path, spirv_version, generator (Khronos' number of the "
          "compiler), used: [{stage, entry}], entry_points: [{stage, name}], line_records, sources: [{language, file, bytes, path}]}]}, with paths in the "
          "capture's folder. The record's `shaders` is {total, with_source, with_lines, left_out}; where nothing was used there is no list.",
          "Only what has its hash and is SPIR-V is kept, at most 16 MiB of a module, 64 MiB and 1,000 entry points of a trace: a warning "
          "`shaders_left_out` says how many others there were, and why.",
          "A warning `shader_no_source` says how many carry no source, and its hint names the switch that adds it, of the compilers that made them: wgpu's "
          "`InstanceFlags::DEBUG`, Dawn's `dump_shaders` (which prints it), glslang's `-g`, dxc's `-fspv-debug=vulkan-with-source`.")
def test_shaders_are_beside_the_document():
    # The limits and what else may be wrong: test_gpu_shader_report.py.
    def made_by(number):
        code = bytearray(module("plain"))
        code[8:12] = (number << 16).to_bytes(4, "little")
        return bytes(code)
    code = module("glsl")
    cut = code[:400]
    # A second source: the words of an OpSource without a file's name, in WGSL.
    text = b"fn a() {}\0\0\0"
    several = code + ((4 + len(text) // 4) << 16 | 3).to_bytes(4, "little") + (10).to_bytes(4, "little") + bytes(4) + (1).to_bytes(4, "little") + text
    makers = {28: "InstanceFlags::DEBUG", 23: "dump_shaders", 8: "-g", 14: "-fspv-debug=vulkan-with-source"}
    with Stage() as stage, stage.program() as (_, layer):
        for codes, total, sources, left_out in (([], 0, 0, 0), ([several, cut], 1, 1, 1), ([made_by(number) for number in makers], 4, 0, 0)):
            capture_id = start(stage, start_frame=3)["capture_id"]
            asked = layer.wait_for("start")
            begin(layer, 3)
            for one in codes:
                os.makedirs(asked["template"] + ".shaders", exist_ok=True)
                with open(os.path.join(asked["template"] + ".shaders", sha256(one) + ".spv"), "wb") as file:
                    file.write(one)
                layer.say("shader", hash=sha256(one), bytes=len(one), stage="compute", entry="main")
            layer.say("document", path=write_document(asked), bytes=64, first=3, last=3)
            final = stage.client.call("WaitCapture", capture_id=capture_id)
            assert final["shaders"] == {"total": total, "with_source": sources, "with_lines": sources, "left_out": left_out}, final
            folder = final["folder"]
            assert os.path.exists(folder + "/shaders.json") == (total > 0)
            hints = {warning["code"]: warning.get("hint") for warning in final["warnings"]}
            assert set(hints) == ({"shaders_left_out"} if left_out else set()) | ({"shader_no_source"} if total > sources else set())
            if total > sources:
                assert all(switch in hints["shader_no_source"] for switch in makers.values())
            if sources:
                with open(folder + "/shaders.json", encoding="utf-8") as file:
                    listed = json.load(file)
                shader, = listed["shaders"]
                assert set(listed) == {"format", "version", "left_out", "shaders"} and (listed["format"], listed["version"]) == ("profd-shaders", 1)
                assert set(shader) == {"hash", "bytes", "path", "spirv_version", "generator", "used", "entry_points", "line_records", "sources"}
                assert set(shader["sources"][0]) == {"language", "file", "bytes", "path"} and shader["generator"] == 8
                assert sorted(os.listdir(folder + "/shaders")) == [sha256(several) + end for end in ("-1.wgsl", ".glsl", ".spv")]
                with open(os.path.join(folder, shader["sources"][1]["path"]), "rb") as file:
                    assert file.read() == text.rstrip(b"\0")


@SENTENCE("Otherwise it has failed, and its error says why:",
          "| `gpu_no_calls` | `layer_not_loaded`: no process of the build used Vulkan with profd's layer in it, although the "
          "machine could; `no_device`: it made none; `device_not_used`: it works with other GPUs than the trace's; `gpu_idle`: "
          "it gave its device no work |",
          "| `gpu_frame_not_reached` | `frame_passed`: the first frame had begun before; `frames_not_reached`; `stopped` before "
          "its first frame; `nothing_recorded`: it had begun, and nothing was submitted to the end; `device_waits` |",
          "| `backend_unavailable` | `vulkan_loader_missing`, `vulkan_no_driver`, `layer_order`, `renderdoc_missing`, "
          "`renderdoc_too_old`, `start_failed`, `device_not_found`, `device_ambiguous`; `descriptor_closed`: the program closed "
          "what it had not opened, RenderDoc's log |",
          "| `capture_busy` | `busy`: RenderDoc itself records the program |",
          "| `io` | `document_missing`, `document_broken`; `document_replaced`: the file, or its folder, is another one than "
          "when it was read; `output_not_writable` |",
          "| `disk_full` | while the document or its shaders were written |",
          "| `timeout` | `no_answer`: the program does not end what it records; `device_waits` |",
          "| `interrupted` | `exited_mid_capture`: the program was killed while it was recorded; `connection_closed`: it closed "
          "what it had not opened, profd's socket; `device_waits`; `not_verified`: after a killed daemon nobody could say "
          "whether the document is whole |")
def test_each_failure_has_its_code():
    # The others: test_gpu_failures.py, test_gpu_verifying.py.
    with Stage() as stage:
        with stage.program() as (pid, layer):
            for detail, code in (("layer_order", "backend_unavailable"), ("renderdoc_missing", "backend_unavailable"),
                                 ("renderdoc_too_old", "backend_unavailable"), ("start_failed", "backend_unavailable"), ("busy", "capture_busy"),
                                 ("descriptor_closed", "backend_unavailable"),
                                 ("document_missing", "io"), ("nothing_recorded", "gpu_frame_not_reached"), ("output_not_writable", "io"), ("frame_passed", "gpu_frame_not_reached")):
                data = failure(stage, layer, detail)["error"]["data"]
                assert (data["code"], data["detail"]) == (code, detail)
            capture_id = start(stage, start_frame=2)["capture_id"]
            layer.wait_for("start")
            stopping = stage.client.send("StopCapture", capture_id=capture_id)
            layer.wait_for("stop")
            layer.say("fault", code="not_capturing", text="its first frame had not begun")
            data = stage.client.wait_reply(stopping)["error"]["data"]
            assert (data["code"], data["detail"]) == ("gpu_frame_not_reached", "stopped")
            capture_id = start(stage, start_frame=2)["capture_id"]
            layer.wait_for("start")
            begin(layer, 2)
            stage.client.wait_event("GpuTraceStarted")
            os.kill(pid, signal.SIGKILL)
            layer.end()
            data = stage.client.call("WaitCapture", capture_id=capture_id)["error"]["data"]
            assert (data["code"], data["detail"]) == ("interrupted", "exited_mid_capture")


@SENTENCE("RenderDoc begins and ends only when the device has done all its work. Where submitted work waits for a value of a timeline semaphore that "
          "the program has still to signal, or to submit the signal of, a trace with `frames`, `duration_ms` or no range begins at the next boundary where "
          "none does, and one with `start_frame` fails (`device_waits`), after a second for the program's other threads. An end is put off until none does: "
          "what is submitted before that is recorded too, and a warning `range_exceeded` says so when that is more frames than were asked for.")
def test_what_waits_for_the_program_keeps_the_recording_waiting():
    test_gpu_waits.check_traces()


@SENTENCE("What waits otherwise, for an event that the host sets, is not known before: then RenderDoc does not come back, and neither does the program's "
          "call. A trace that fails meanwhile has the detail `device_waits`, and says for how long.")
def test_a_renderdoc_that_does_not_come_back_is_what_the_trace_tells():
    # test_gpu_waits.py has the program that hangs; here what its layer says of it, and the trace.
    with Stage() as stage, stage.program() as (pid, layer):
        capture_id = start(stage, start_frame=2)["capture_id"]
        layer.wait_for("start")
        layer.say("waits", **{"for": "begin", "mono_ns": time.monotonic_ns() - 5 * 10**9, "text": "RenderDoc waits for the device"})
        stage.client.call("Ping")
        os.kill(pid, signal.SIGKILL)
        layer.end()
        error = stage.client.call("WaitCapture", capture_id=capture_id)["error"]
        assert error["data"]["detail"] == "device_waits" and re.search(r"for 5\d\d\d ms.*RenderDoc waits", error["message"]), error


@SENTENCE("A trace ends with its build, as a sampling capture does, and that with its first process.",
          "Of a program that has gone to the background what was recorded until then is kept, with a warning `background` that names it; what had not "
          "begun has failed with `gpu_no_calls` or `gpu_frame_not_reached`, detail `background`.")
def test_a_trace_ends_with_its_build():
    # Each of them also in test_gpu_failures.py.
    with Stage() as stage:
        for frame, code in ((None, None), (2, "gpu_frame_not_reached"), (0, "gpu_no_calls")):
            with stage.layer(stage.launch(argv=["sh", "-c", "read go"], profile={"hz": 500})) as layer:
                layer.device()
                capture_id = start(stage, start_frame=3, end_frame=900)["capture_id"]
                asked = layer.wait_for("start")
                if code is None:
                    begin(layer, 3)
                    stage.client.wait_event("GpuTraceStarted")
                else:
                    layer.frame(frame)
                stage.client.call("WriteStdin", build_id="engine", data="go\n")
                if code is None:
                    layer.wait_for("stop")
                    layer.say("document", path=write_document(asked), bytes=64, first=3, last=30)
                final = stage.client.call("WaitCapture", capture_id=capture_id)
                assert final["reason"] == "target_exited" and stage.client.call("GetProcess", build_id="engine")["state"] == "exited"
                if code is None:
                    assert final["state"] == "finished" and final["warnings"][0]["code"] == "background", final
                    assert "/usr/bin/engine" in final["warnings"][0]["message"]
                else:
                    assert (final["error"]["data"]["code"], final["error"]["data"]["detail"]) == (code, "background"), final
                sampled, = [each for each in stage.client.call("GetProcess", build_id="engine")["captures"] if each != capture_id]
                sampled = stage.client.call("WaitCapture", capture_id=sampled)
                assert sampled["reason"] == "target_exited", sampled


def test_an_adopted_program_is_armed_by_its_client():
    # test_conformance_processes.py has the sentence; here what is in the environment, and that it arms.
    with Stage() as stage, Gate(stage.daemon, ["sleep", "60"]) as gate:
        before = environment_of(gate.pid)
        stage.client.call("Subscribe")
        result = stage.client.call("AdoptProcess", pid=gate.pid, build_id="engine", gpu={})
        assert result["state"] == "held" and result["adopted"] is True
        given = result["environment"]
        assert given["PROFD_GPU"] == "1" and given["XDG_DATA_DIRS"].endswith(":" + (before.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share"))
        capture_id = start(stage, start_frame=1)["capture_id"]
        for name, value in given.items():
            gate.set(name, value)
        gate.go()
        stage.client.wait_event("ProcessStarted")
        assert environment_of(gate.pid) == dict(before, **given)
        with stage.layer(None, environment=given) as layer:
            layer.device()
            record(layer, layer.wait_for("start"), 1, 1)
            assert stage.client.call("WaitCapture", capture_id=capture_id)["state"] == "finished"
        gate.end()
        stage.client.wait_event("ProcessExited")
        wait_until(lambda: stage.folders() == stage.before, 10, "the private folder's end")


if __name__ == "__main__":
    main(globals())
