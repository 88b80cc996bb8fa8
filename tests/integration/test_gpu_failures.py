"""Every way in which a GPU trace has no document: each has its code, its cause and what helps, and none is silent or a success."""
import os
import signal
import time

from disks import small_disk
from gpu_stage import Stage, begin, failure, record, start, write_document
from harness import main, skip

LAVAPIPE = "/usr/share/vulkan/icd.d/lvp_icd.x86_64.json"


def check(ended, code, detail, *words):
    """The error of a record or an event: as the contract has it, with a remedy, and the words in its sentence."""
    error = ended["error"]
    assert (error["data"]["code"], error["data"].get("detail")) == (code, detail), error
    assert error["data"]["hint"], error
    for word in words:
        assert word in error["message"] + error["data"]["hint"], (word, error)


def ended(stage, capture_id, state="failed"):
    """The final record; its event was told once, and nothing is left of a document."""
    final = stage.client.call("WaitCapture", capture_id=capture_id)
    assert final["state"] == state, final
    told = stage.client.wait_event("GpuTraceFailed", capture_id=capture_id)
    assert told["error"] == final["error"]
    assert os.listdir(final["folder"]) == ["record.json"], os.listdir(final["folder"])
    assert final["trace_path"] is None and final["artifacts"] == []
    return final


def test_a_build_that_is_not_armed():
    with Stage() as stage:
        stage.launch("plain", gpu=False)
        error = stage.client.fails("StartGpuTrace", build_id="plain", frames=1)
        assert error.code == "gpu_not_armed" and "gpu" in error.hint and "plain" in error.message
        assert stage.client.fails("StartGpuTrace", build_id="none").code == "build_not_found"
        stage.launch("short", argv=["true"])
        stage.client.wait_event("ProcessExited", build_id="short")
        assert stage.client.fails("StartGpuTrace", build_id="short").code == "build_not_running"


def machine(stage, **options):
    """The failure of a program that never loads the layer."""
    stage.launch(argv=["sleep", "0.05"], hold=True, **options)
    capture_id = start(stage, frames=1)["capture_id"]
    stage.client.call("ResumeProcess", build_id="engine")
    return ended(stage, capture_id)


def test_a_program_that_goes_to_the_background_is_named():
    with Stage() as stage:
        # Before it has used the GPU; in its group, and out of it.
        for away in ("sleep 60 & echo $!", "setsid sleep 60 & echo $!"):
            stage.launch(argv=["sh", "-c", away + "; exit 3"], hold=True)
            capture_id = start(stage, frames=1)["capture_id"]
            stage.client.call("ResumeProcess", build_id="engine")
            final = ended(stage, capture_id)
            pid = int(stage.client.call("GetOutput", build_id="engine", stream="stdout")["data"])
            check(final, "gpu_no_calls", "background", "status 3", "process %d " % pid, "foreground")
            assert final["reason"] == "target_exited"
            os.kill(pid, signal.SIGKILL)
        # While it waits for its frame, and while it is recorded.
        for begun in (False, True):
            pid = stage.launch(argv=["sh", "-c", "read go"])
            with stage.layer(pid) as layer:
                layer.device()
                capture_id = start(stage, start_frame=3, end_frame=900)["capture_id"]
                asked = layer.wait_for("start")
                layer.frame(2)
                if begun:
                    begin(layer, 3)
                    stage.client.wait_event("GpuTraceStarted")
                stage.client.call("WriteStdin", build_id="engine", data="go\n")
                if begun:
                    layer.wait_for("stop")
                    layer.say("document", path=write_document(asked), bytes=64, first=3, last=30)
                    final = stage.client.call("WaitCapture", capture_id=capture_id)
                    assert (final["state"], final["reason"], final["last_frame"]) == ("finished", "target_exited", 30), final
                    assert [warning["code"] for warning in final["warnings"]] == ["background", "range_cut"], final["warnings"]
                    assert "process %d " % os.getpid() in final["warnings"][0]["message"]
                else:
                    check(ended(stage, capture_id), "gpu_frame_not_reached", "background", "status 0", "process %d " % os.getpid(), "in frame 2")


def test_who_lives_on_is_no_reason_when_the_program_has_ended():
    with Stage() as stage:
        pid = stage.launch(argv=["sh", "-c", "sleep 60 & echo $!; read go"])
        with stage.layer(pid) as layer:
            layer.device()
            capture_id = start(stage, start_frame=900)["capture_id"]
            layer.wait_for("start")
            layer.frame(2)
            stage.client.wait_event("GpuTraceProgress", frame=2)
        stage.client.call("WriteStdin", build_id="engine", data="go\n")
        check(ended(stage, capture_id), "gpu_frame_not_reached", "frames_not_reached", "frame 2")
        os.kill(int(stage.client.call("GetOutput", build_id="engine", stream="stdout")["data"]), signal.SIGKILL)


def test_a_missing_loader_or_driver_is_found_when_nobody_says_hello():
    with Stage() as stage:
        broken = os.path.join(stage.root, "libraries")
        os.mkdir(broken)
        with open(os.path.join(broken, "libvulkan.so.1"), "w"):
            pass
        check(machine(stage, env={"LD_LIBRARY_PATH": broken}), "backend_unavailable", "vulkan_loader_missing", "libvulkan1")
    if not os.path.exists(LAVAPIPE):
        skip("mesa-vulkan-drivers is not installed")
    with Stage() as stage:
        nowhere = os.path.join(stage.root, "icd.json")
        check(machine(stage, env={"VK_ICD_FILENAMES": nowhere}), "backend_unavailable", "vulkan_no_driver", nowhere)


def test_a_program_without_vulkan():
    if not os.path.exists(LAVAPIPE):
        skip("mesa-vulkan-drivers is not installed")
    with Stage(env={"VK_ICD_FILENAMES": LAVAPIPE}) as stage:
        final = machine(stage)
        check(final, "gpu_no_calls", "layer_not_loaded", "ended with status 0", "set-user-id", "sandbox")
        assert final["reason"] == "target_exited" and final["exit_code"] == 0
        # As long as it lives it is waited for.
        stage.launch("lives")
        began = time.monotonic()
        capture_id = stage.client.call("StartGpuTrace", build_id="lives", timeout_ms=300)["capture_id"]
        check(ended(stage, capture_id), "gpu_no_calls", "layer_not_loaded", "within 3")
        assert 0.29 < time.monotonic() - began < 3
        capture_id = stage.client.call("StartGpuTrace", build_id="lives")["capture_id"]
        check(stage.client.call("StopCapture", capture_id=capture_id), "gpu_frame_not_reached", "stopped", "no process of the build had used Vulkan")


def test_a_program_that_makes_no_device_or_gives_it_no_work():
    with Stage() as stage:
        pid = stage.launch()
        with stage.layer(pid) as layer:
            capture_id = start(stage, timeout_ms=100)["capture_id"]
            layer.wait_for("start")
            layer.wait_for("stop")
            layer.say("fault", code="not_capturing", text="its first frame had not begun")
            check(ended(stage, capture_id), "gpu_no_calls", "no_device", "/usr/bin/engine")
            layer.device()
            capture_id = start(stage, timeout_ms=100)["capture_id"]
            layer.wait_for("start")
            layer.wait_for("stop")
            layer.say("fault", code="not_capturing", text="its first frame had not begun")
            check(ended(stage, capture_id), "gpu_no_calls", "gpu_idle", "llvmpipe", "frame 0")
            # What it worked with before is no device of this trace's.
            layer.end()
            capture_id = start(stage, timeout_ms=100)["capture_id"]
            check(ended(stage, capture_id), "gpu_no_calls", "gpu_idle")
        with stage.layer(pid) as layer:
            layer.device()
            # It has worked before, and does not any more.
            layer.frame(812)
            time.sleep(0.2)  # it is another connection than the client's
            capture_id = start(stage, frames=1, timeout_ms=100)["capture_id"]
            layer.wait_for("start")
            layer.wait_for("stop")
            layer.say("fault", code="not_capturing", text="")
            check(ended(stage, capture_id), "gpu_no_calls", "gpu_idle", "beyond frame 812")


def test_frames_that_are_never_reached():
    with Stage() as stage:
        for ends_by in ("timeout", "stop", "exit"):
            with stage.program() as (pid, layer):
                capture_id = start(stage, start_frame=400, timeout_ms=150 if ends_by == "timeout" else 60000)["capture_id"]
                layer.wait_for("start")
                layer.frame(17, "present")
                stage.client.wait_event("GpuTraceProgress", frame=17) if ends_by != "timeout" else None
                if ends_by == "exit":
                    os.kill(pid, signal.SIGTERM)
                    layer.say("bye", why="exit")
                    layer.end()
                else:
                    stopping = stage.client.send("StopCapture", capture_id=capture_id) if ends_by == "stop" else None
                    layer.wait_for("stop")
                    layer.say("fault", code="not_capturing", text="its first frame had not begun")
                final = ended(stage, capture_id)
                if ends_by == "stop":
                    check(final, "gpu_frame_not_reached", "stopped", "frame 400", "frame 17 (by present)")
                else:
                    check(final, "gpu_frame_not_reached", "frames_not_reached", "frame 400", "frame 17 (by present)", "frame_by: submit")
                assert final["reason"] == {"timeout": "timeout", "stop": "stopped", "exit": "target_exited"}[ends_by]
                if ends_by == "exit":
                    check(final, "gpu_frame_not_reached", "frames_not_reached", "SIGTERM")
                if ends_by == "stop":
                    assert stage.client.wait_reply(stopping) == final
        # A program that never presents is all in frame 0: that is no word of how much it works.
        for by, told in (("present", "present"), ("label:draw", "label")):
            with stage.program() as (_, layer):
                capture_id = start(stage, start_frame=1, frame_by=by, timeout_ms=100)["capture_id"]
                layer.wait_for("start")
                layer.frame(0, told)
                layer.wait_for("stop")
                layer.say("fault", code="not_capturing", text="its first frame had not begun")
                check(ended(stage, capture_id), "gpu_frame_not_reached", "frames_not_reached", "frame 0 (by %s)" % told, "frame_by: submit")


        # A label that never came is not one that has begun.
        for params in ({"start_frame": 0}, {"frames": 2}):
            with stage.program() as (_, layer):
                capture_id = start(stage, frame_by="label:draw", timeout_ms=100, **params)["capture_id"]
                layer.wait_for("start")
                layer.frame(0, "label")
                layer.wait_for("stop")
                layer.say("fault", code="not_capturing", text="its first frame had not begun")
                check(ended(stage, capture_id), "gpu_frame_not_reached", "frames_not_reached", 'no label began with "draw"', "debug_utils")


def test_a_frame_that_has_passed_is_told_so_whatever_ended_the_trace():
    with Stage() as stage:
        for ends_by in ("timeout", "stop", "exit"):
            with stage.program() as (pid, layer):
                capture_id = start(stage, start_frame=2, timeout_ms=150 if ends_by == "timeout" else 60000)["capture_id"]
                layer.wait_for("start")
                layer.frame(4)
                if ends_by == "exit":
                    os.kill(pid, signal.SIGTERM)
                    layer.say("bye", why="exit")
                    layer.end()
                else:
                    if ends_by == "stop":
                        stage.client.wait_event("GpuTraceProgress", frame=4)
                        stage.client.send("StopCapture", capture_id=capture_id)
                    layer.wait_for("stop")
                    layer.say("fault", code="not_capturing", text="its first frame had not begun")
                check(ended(stage, capture_id), "gpu_frame_not_reached", "frame_passed", "frame 2 has begun already", "in frame 4")


def test_the_end_of_profd_is_no_fault_of_the_program():
    with Stage() as stage, stage.layer(stage.launch()) as layer:
        layer.device()
        start(stage, start_frame=60)
        layer.wait_for("start")
        layer.frame(20)
        stage.client.wait_event("GpuTraceProgress", frame=20)
        stage.daemon.process.send_signal(signal.SIGTERM)
        layer.wait_for("stop")
        layer.say("fault", code="not_capturing", text="its first frame had not begun")
        error = stage.client.wait_event("GpuTraceFailed")["error"]
        assert (error["data"]["code"], error["data"]["detail"]) == ("gpu_frame_not_reached", "stopped"), error
        assert "by the end of profd" in error["message"] and "when profd runs" in error["data"]["hint"], error


def test_frames_that_have_passed():
    with Stage() as stage, stage.program() as (_, layer):
        # The program says that it is in frame 0 before that has begun: only the layer knows.
        layer.frame(0)
        capture_id = start(stage, start_frame=0)["capture_id"]
        layer.wait_for("start")
        layer.say("fault", code="frame_passed", text="frame 0 has begun already")
        check(ended(stage, capture_id), "gpu_frame_not_reached", "frame_passed", "frame 0")
        layer.frame(100)
        capture_id = start(stage, start_frame=200)["capture_id"]  # and the frame is read
        layer.wait_for("start")
        # What the layer sees is newer than what was told.
        layer.frame(200)
        layer.say("fault", code="frame_passed", text="frame 200 has begun already")
        check(ended(stage, capture_id), "gpu_frame_not_reached", "frame_passed", "frame 200", "start_frame")
        error = stage.client.fails("StartGpuTrace", build_id="engine", start_frame=200)
        assert (error.code, error.detail) == ("gpu_frame_not_reached", "frame_passed") and "in frame 200 (by submit)" in error.message
        assert len(stage.client.call("ListCaptures")["captures"]) == 2
        # Frames that are counted in another way have not.
        capture_id = start(stage, start_frame=200, frame_by="present")["capture_id"]
        layer.wait_for("start")
        layer.say("fault", code="start_failed", text="no")
        check(ended(stage, capture_id), "backend_unavailable", "start_failed", "no")


def test_a_program_that_dies_while_it_is_recorded():
    with Stage() as stage:
        for how, words in ((signal.SIGKILL, "SIGKILL"), (signal.SIGSEGV, "SIGSEGV")):
            with stage.program() as (pid, layer):
                capture_id = start(stage, start_frame=2, end_frame=9)["capture_id"]
                asked = layer.wait_for("start")
                begin(layer, 2)
                layer.frame(4)
                stage.client.wait_event("GpuTraceStarted")
                write_document(asked, data=b"RDOC half of it")
                os.kill(pid, how)
                layer.end()
                final = ended(stage, capture_id)
                check(final, "interrupted", "exited_mid_capture", words, "frame 4", "frame 2")
                assert final["signal"] == words and final["first_frame"] == 2 and final["last_frame"] is None


def test_a_trace_that_is_stopped_before_its_first_frame_says_so():
    with Stage() as stage:
        pid = stage.launch()
        with stage.layer(pid) as layer:
            for params, words in (({}, ("before its first frame", "/usr/bin/engine had made no device yet")),
                                  ({"start_frame": 7}, ("before frame 7", "was in frame 0 (by auto)")), ({"start_frame": 70}, ("frame 70", "in frame 5 (by submit)"))):
                if words[1].startswith("was"):
                    layer.device()
                elif words[1].startswith("in"):
                    layer.frame(5)
                capture_id = start(stage, **params)["capture_id"]
                layer.wait_for("start")
                stopping = stage.client.send("StopCapture", capture_id=capture_id)
                layer.wait_for("stop")
                layer.say("fault", code="not_capturing", text="its first frame had not begun")
                final = stage.client.wait_reply(stopping)
                check(final, "gpu_frame_not_reached", "stopped", "was stopped after ", *words)
                assert final["state"] == "failed" and final["reason"] == "stopped", final


def test_a_program_that_becomes_another_is_told_with_its_own_frames():
    with Stage() as stage, stage.program() as (pid, layer):
        capture_id = start(stage, start_frame=2, end_frame=9)["capture_id"]
        layer.wait_for("start")
        begin(layer, 2)
        layer.frame(4)
        stage.client.wait_event("GpuTraceProgress", frame=4)
        layer.end()
        with stage.layer(pid, exe="/usr/bin/another") as other:
            other.device(name="another GPU")
            other.frame(77)
            final = ended(stage, capture_id)
            check(final, "interrupted", "exited_mid_capture", "in frame 4 of")
            assert final["traced_exe"] == "/usr/bin/engine" and "llvmpipe" in final["device"]["name"], final


def test_a_child_that_dies_alone():
    with Stage() as stage, stage.program() as (_, layer):
        capture_id = start(stage, start_frame=2)["capture_id"]
        layer.wait_for("start")
        layer.frame(0)
        begin(layer, 2)
        layer.end()
        check(ended(stage, capture_id), "interrupted", "exited_mid_capture", "closed its connection", "in frame 2 of")
        # Another one can be recorded.
        with stage.layer(stage.client.call("GetProcess", build_id="engine")["pid"]) as other:
            other.device()
            capture_id = start(stage, frames=1)["capture_id"]
            record(other, other.wait_for("start"), 0, 0)
            assert stage.client.call("WaitCapture", capture_id=capture_id)["state"] == "finished"


def test_what_the_layer_finds_wrong():
    rows = (("layer_order", "backend_unavailable", "VK_INSTANCE_LAYERS"), ("renderdoc_missing", "backend_unavailable", "librenderdoc"),
            ("renderdoc_too_old", "backend_unavailable", "1.4"), ("start_failed", "backend_unavailable", "log"), ("busy", "capture_busy", "end"),
            ("document_missing", "io", "log"), ("output_not_writable", "io", "output_dir"))
    with Stage() as stage, stage.program() as (_, layer):
        for detail, code, word in rows:
            check(failure(stage, layer, detail, text="the layer's own words"), code, detail, word, "the layer's own words")
        check(failure(stage, layer, "gremlins", text="\x1b[2J\xff"), "io", "unknown_fault", "the program")
        # document_missing comes when it had begun, too.
        capture_id = start(stage, frames=1)["capture_id"]
        layer.wait_for("start")
        begin(layer, 0)
        layer.say("fault", code="document_missing", text="EndFrameCapture said 1")
        check(ended(stage, capture_id), "io", "document_missing", "EndFrameCapture said 1")


def test_a_document_that_is_none():
    with Stage() as stage, stage.program() as (_, layer):
        secret = os.path.join(stage.root, "secret")
        with open(secret, "wb") as file:
            file.write(b"RDOC of somebody")
        def told(make):
            capture_id = start(stage, frames=1)["capture_id"]
            asked = layer.wait_for("start")
            begin(layer, 0)
            layer.say("document", path=make(asked["template"]), bytes=64, first=0, last=0)
            return ended(stage, capture_id)
        def link(template):
            os.symlink(secret, template + "_capture.rdc")
            return template + "_capture.rdc"
        def fifo(template):
            os.mkfifo(template + "_capture.rdc")
            return template + "_capture.rdc"
        check(told(lambda template: template + "_capture.rdc"), "io", "document_missing", "_capture.rdc")
        check(told(lambda template: secret), "io", "document_missing", secret)
        check(told(lambda template: os.path.dirname(template) + "/record.json"), "io", "document_missing", "record.json")
        check(told(link), "io", "document_missing")
        check(told(fifo), "io", "document_missing")
        for data, detail in ((b"", "document_missing"), (b"RDO", "document_broken"), (b"PK\3\4" + bytes(60), "document_broken")):
            check(told(lambda template, data=data: write_document({"template": template}, data=data)), "io", detail)
        with open(secret, "rb") as file:
            assert file.read() == b"RDOC of somebody"


def test_a_second_start_while_one_runs():
    with Stage() as stage, stage.program() as (_, layer):
        first = start(stage, start_frame=3)["capture_id"]
        for begins in (False, True):
            error = stage.client.fails("StartGpuTrace", build_id="engine", frames=1)
            assert (error.code, error.detail) == ("capture_busy", "gpu_busy") and first in error.message, error.error
            if not begins:
                asked = layer.wait_for("start")
                begin(layer, 3)
                stage.client.wait_event("GpuTraceStarted")
        layer.say("document", path=write_document(asked), bytes=64, first=3, last=3)
        stage.client.wait_event("GpuTraceFinished")
        assert len(stage.client.call("ListCaptures")["captures"]) == 1


def test_an_output_folder_that_cannot_be_had():
    with Stage() as stage, stage.program() as (_, layer):
        for wrong, code in (("/proc/1/none", "bad_params"), ("/dev/null/none", "bad_params"), ("relative", "bad_params")):
            error = stage.client.fails("StartGpuTrace", build_id="engine", output_dir=wrong)
            assert error.code == code and wrong.split("/")[-1] in error.message, error.error
        # One that the program cannot be told: the wire has 1,024 bytes for a path.
        deep = stage.root
        while len(deep) < 1000:
            deep = os.path.join(deep, "d" * 200)
            os.mkdir(deep, 0o700)
        error = stage.client.fails("StartGpuTrace", build_id="engine", output_dir=deep)
        assert error.code == "bad_params" and "output_dir" in error.hint, error.error
        assert os.listdir(deep) == [] and stage.client.call("ListCaptures")["captures"] == []
        capture_id = start(stage, frames=1)["capture_id"]  # and it is free for the next
        record(layer, layer.wait_for("start"), 0, 0)
        assert stage.client.call("WaitCapture", capture_id=capture_id)["state"] == "finished"


def test_a_disk_without_room():
    with small_disk(8192) as folder, Stage() as stage, stage.program():
        error = stage.client.fails("StartGpuTrace", build_id="engine", output_dir=folder)
        assert error.code == "disk_full" and folder in error.message and "16777216" in error.message, error.error
        assert os.listdir(folder) == []


def test_a_program_that_does_not_answer():
    with Stage() as stage, stage.program() as (_, layer):
        capture_id = start(stage, start_frame=30)["capture_id"]
        layer.wait_for("start")
        began = time.monotonic()
        final = stage.client.call("StopCapture", capture_id=capture_id)
        check(final, "timeout", "no_answer", "5000 ms")
        assert 4.5 < time.monotonic() - began < 9


def waits(layer, place, seconds):
    layer.say("waits", **{"for": place, "mono_ns": time.monotonic_ns() - seconds * 10**9, "text": "its reason"})


def test_a_device_that_never_comes_to_its_end():
    with Stage() as stage:
        # One that never begins; what it waited for does not last beyond its trace.
        with stage.program() as (_, layer):
            capture_id = start(stage, timeout_ms=200)["capture_id"]
            layer.wait_for("start")
            layer.frame(3)
            waits(layer, "begin", 7)
            layer.wait_for("stop")
            layer.say("fault", code="not_capturing", text="its first frame had not begun")
            check(ended(stage, capture_id), "gpu_frame_not_reached", "device_waits", "could not begin for 7", "its reason")
            check(failure(stage, layer, "device_waits", "another"), "gpu_frame_not_reached", "device_waits", "another")
            capture_id = start(stage, timeout_ms=200)["capture_id"]
            layer.wait_for("start")
            layer.wait_for("stop")
            layer.say("fault", code="not_capturing", text="its first frame had not begun")
            check(ended(stage, capture_id), "gpu_no_calls", "gpu_idle")
        # RenderDoc holds the program, which somebody kills, in the beginning or in the end; or nobody does.
        for place, code in (("begin", "gpu_frame_not_reached"), ("end", "interrupted")):
            with stage.program(place) as (pid, layer):
                capture_id = start(stage, build_id=place, start_frame=2)["capture_id"]
                layer.wait_for("start")
                if place == "end":
                    waits(layer, "begin", 1)
                    begin(layer, 2)
                waits(layer, place, 7)
                stage.client.call("Ping")
                os.kill(pid, signal.SIGKILL)
                layer.end()
                check(ended(stage, capture_id), code, "device_waits", "could not %s for 7" % place, "until the program was ended by SIGKILL", "its reason")
        with stage.program("hangs") as (_, layer):
            capture_id = start(stage, build_id="hangs")["capture_id"]
            layer.wait_for("start")
            waits(layer, "begin", 7)
            check(stage.client.call("StopCapture", capture_id=capture_id), "timeout", "device_waits", "could not begin for 1", "its reason")


def test_a_program_that_closes_the_connection():
    with Stage() as stage, stage.program() as (pid, layer):
        capture_id = start(stage, start_frame=2)["capture_id"]
        layer.wait_for("start")
        begin(layer, 2)
        layer.end()
        # The process is there again, and is told what it has lost of what had not begun.
        with stage.layer(pid, again="closed") as second:
            second.device()
            check(ended(stage, capture_id), "interrupted", "connection_closed", "from frame 2 on", "closefrom")
            capture_id = start(stage, start_frame=9)["capture_id"]
            second.wait_for("start")
            second.end()
            with stage.layer(pid, again="closed") as third:
                third.device()
                third.wait_for("start")
                third.say("fault", code="descriptor_closed", text="the program has closed descriptor 3")
                check(ended(stage, capture_id), "backend_unavailable", "descriptor_closed", "descriptor 3", "closefrom")
        # Who is gone while it is recorded, and not there again, is not it.
    with Stage() as stage, stage.program() as (pid, layer):
        capture_id = start(stage, start_frame=2)["capture_id"]
        layer.wait_for("start")
        begin(layer, 2)
        layer.end()
        check(ended(stage, capture_id), "interrupted", "exited_mid_capture", "closed its connection")


def test_a_wait_that_is_over_is_no_reason():
    with Stage() as stage, stage.program() as (pid, layer):
        capture_id = start(stage, frames=2)["capture_id"]
        layer.wait_for("start")
        waits(layer, "begin", 7)
        begin(layer, 2)
        stage.client.wait_event("GpuTraceStarted")
        os.kill(pid, signal.SIGKILL)
        layer.end()
        check(ended(stage, capture_id), "interrupted", "exited_mid_capture")


if __name__ == "__main__":
    main(globals())
