"""Programs that ask to be recorded, with a layer that the test plays: what becomes of a wish, and every refusal."""
import os

from disks import small_disk
from fake_gpu_layer import environment_of, line
from gpu_stage import Stage, begin, record, start, write_document
from harness import main

ASKS = 1000


def ask(layer, number, label=""):
    layer.say("ask", n=number, label=label)


def refusal(layer, number, code, *words):
    said = layer.wait_for("refused")
    assert said["asked"] == str(number) and said["code"] == code, said
    for word in words:
        assert word in said["text"], (word, said)


def stop_by_itself(layer, asked, first, last):
    """The program records these frames, and ends it itself."""
    begin(layer, first)
    path = write_document(asked)
    layer.say("document", path=path, bytes=os.path.getsize(path), first=first, last=last, by="program")


def test_a_wish_is_a_trace_like_any_other():
    with Stage() as stage, stage.program() as (pid, layer):
        assert environment_of(pid)["PROFD_GPU_LIBRARY"] == stage.parts.library
        ask(layer, 1, "pre-render")
        asked = layer.wait_for("start")
        folder = os.path.dirname(asked["template"])
        assert asked == {"by": "manual", "asked": "1", "template": asked["template"]}
        capture_id = os.path.basename(folder)
        running = stage.client.call("GetCapture", capture_id=capture_id)
        assert (running["state"], running["kind"], running["label"], running["build_id"]) == ("armed", "gpu", "pre-render", "engine"), running
        stop_by_itself(layer, asked, 7, 9)
        final = stage.client.call("WaitCapture", capture_id=capture_id)
        assert (final["state"], final["reason"], final["first_frame"], final["last_frame"], final["frame_by"]) == ("finished", "stopped", 7, 9, "manual")
        assert final["options"] == {"build_id": "engine", "frame_by": "manual", "label": "pre-render"}, final["options"]
        assert final["trace_path"] == os.path.join(folder, "capture.rdc") and os.path.getsize(final["trace_path"]) == 64
        # The launcher hears of it, as of all that is of its build.
        for event in ("GpuTraceStarted", "GpuTraceFinished"):
            assert stage.client.wait_event(event)["capture_id"] == capture_id
        assert stage.client.call("GetProcess", build_id="engine")["captures"] == [capture_id]
        # Without a label, and with one that is no text, and too long.
        for number, label, kept in ((2, b"", None), (3, b"%FFx", "\N{REPLACEMENT CHARACTER}x"), (4, b"y" * 400, "y" * 256)):
            layer.say_raw(b"ask n=%d label=%s\n" % (number, label))
            asked = layer.wait_for("start")
            stop_by_itself(layer, asked, 1, 1)
            assert stage.client.call("WaitCapture", capture_id=os.path.basename(os.path.dirname(asked["template"])))["label"] == kept


def test_a_program_that_ends_or_is_stopped_has_its_reason():
    with Stage() as stage, stage.program() as (_, layer):
        ask(layer, 1)
        asked = layer.wait_for("start")
        capture_id = os.path.basename(os.path.dirname(asked["template"]))
        record(layer, asked, 3, 4)  # without by=program: its device has ended
        assert stage.client.call("WaitCapture", capture_id=capture_id)["reason"] == "target_exited"
        ask(layer, 2)
        asked = layer.wait_for("start")
        capture_id = os.path.basename(os.path.dirname(asked["template"]))
        begin(layer, 5)
        stage.client.wait_event("GpuTraceStarted", capture_id=capture_id)
        sent = stage.client.send("StopCapture", capture_id=capture_id)
        layer.wait_for("stop")
        layer.say("document", path=write_document(asked), bytes=64, first=5, last=6)
        assert stage.client.wait_reply(sent)["reason"] == "stopped"


def test_the_process_that_asks_is_recorded_and_no_other():
    with Stage() as stage, stage.program() as (pid, busy), stage.layer(pid) as asker:
        asker.device()
        busy.frame(812)
        stage.client.wait_event("ProcessStarted")
        ask(asker, 9)
        asked = asker.wait_for("start")
        capture_id = os.path.basename(os.path.dirname(asked["template"]))
        # A process that comes now is not given what is another's.
        with stage.layer(pid) as late:
            late.device()
            assert late.read()[0] == "status"
            ask(busy, 1)
            refusal(busy, 1, "capture_busy", capture_id)
        asker.end()
        final = stage.client.call("WaitCapture", capture_id=capture_id)
        assert final["state"] == "failed" and final["reason"] == "target_exited", final
        ask(busy, 2)
        record(busy, busy.wait_for("start"), 813, 813)


def test_one_at_a_time():
    with Stage() as stage, stage.program() as (_, layer):
        by_command = start(stage, start_frame=900)["capture_id"]
        layer.wait_for("start")
        ask(layer, 1)
        refusal(layer, 1, "capture_busy", by_command)
        layer.say("fault", code="start_failed", text="")
        stage.client.wait_event("GpuTraceFailed", capture_id=by_command)
        ask(layer, 2)
        asked = layer.wait_for("start")
        ask(layer, 3)
        refusal(layer, 3, "capture_busy")
        assert stage.client.fails("StartGpuTrace", build_id="engine").code == "capture_busy"
        # What waits no longer says so.
        layer.say("fault", code="not_capturing", text="the program does not wait for this start any more")
        failed = stage.client.wait_event("GpuTraceFailed", capture_id=os.path.basename(os.path.dirname(asked["template"])))
        assert failed["error"]["data"]["code"] == "gpu_frame_not_reached" and "does not wait" in failed["error"]["message"]


def test_a_program_that_may_not_is_refused():
    with Stage() as stage, stage.program(gpu={"program": False}) as (pid, layer):
        assert environment_of(pid)["PROFD_GPU_LIBRARY"] == ""
        ask(layer, 1)
        refusal(layer, 1, "not_permitted", "engine", "program: false", "gpu: true")
        assert stage.client.call("ListCaptures")["captures"] == []
        # Commands may still.
        capture_id = start(stage, frames=1)["capture_id"]
        record(layer, layer.wait_for("start"), 1, 1)
        assert stage.client.call("WaitCapture", capture_id=capture_id)["state"] == "finished"
        assert stage.client.fails("LaunchProcess", argv=["true"], gpu={"program": 1}).code == "bad_params"


def test_a_build_that_has_ended_and_a_daemon_that_ends_refuse():
    with Stage() as stage:
        pid = stage.launch()
        with stage.layer(pid) as layer:
            layer.device()
            capture_id = start(stage, start_frame=5)["capture_id"]
            layer.wait_for("start")
            begin(layer, 5)
            stage.client.wait_event("GpuTraceStarted", capture_id=capture_id)
            stage.client.call("StopProcess", build_id="engine", signal="KILL")
            stage.client.wait_event("ProcessExited")
            # The trace holds what a child that lives on would speak to.
            ask(layer, 1)
            refusal(layer, 1, "build_not_running")
    with Stage() as stage, stage.program() as (_, layer):
        capture_id = start(stage, start_frame=5)["capture_id"]
        layer.wait_for("start")
        stage.client.call("Shutdown", mode="drain")
        ask(layer, 1)
        refusal(layer, 1, "shutting_down")
        begin(layer, 5)
        layer.say("fault", code="document_missing", text="")


def test_a_disk_without_room_refuses():
    with small_disk(8192) as folder, Stage(data_dir=folder) as stage, stage.program() as (_, layer):
        ask(layer, 1)
        refusal(layer, 1, "disk_full", "bytes free")


def test_a_build_may_ask_a_thousand_times():
    with Stage() as stage, stage.program(subscribe=False) as (_, layer):
        for number in range(1, ASKS + 1):
            ask(layer, number)
            layer.wait_for("start")
            layer.say("fault", code="not_capturing", text="")
        ask(layer, ASKS + 1)
        refusal(layer, ASKS + 1, "limit_exceeded", "1000", "StartGpuTrace")
        capture_id = start(stage, frames=1)["capture_id"]
        record(layer, layer.wait_for("start"), 1, 1)
        assert stage.client.call("WaitCapture", capture_id=capture_id)["state"] == "finished"


def test_wishes_that_are_none_are_closed():
    with Stage() as stage:
        pid = stage.launch()
        for data in (b"ask\n", b"ask n=1\n", b"ask label=x\n", line("ask", n=-1, label=""), line("ask", n=2 ** 60, label=""),
                     line("ask", n=1, label="", colour="red"), line("document", path="/x", bytes=1, first=1, last=1, by="me")):
            with stage.layer(pid) as layer:
                layer.say_raw(data)
                assert layer.is_closed(), data
        assert stage.client.call("ListCaptures")["captures"] == []


if __name__ == "__main__":
    main(globals())
