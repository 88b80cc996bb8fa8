"""StartGpuTrace, with a layer that the test plays: what is asked of the program, told meanwhile, and kept at the end."""
import os
import signal
import stat
import time

from gpu_stage import Stage, begin, record, start, write_document
from harness import main

DOCUMENT = b"RDOC" + bytes(range(256)) * 4
TRACE = {"backend", "backend_version", "trace_kind", "frame_by", "start_frame", "end_frame", "frames", "duration_ms", "timeout_ms",
         "first_frame", "last_frame", "traced_pid", "traced_exe", "device", "started_mono_us", "trace_path", "artifacts",
         "shaders", "verified"}


def test_frames_that_are_asked_for_become_a_document():
    with Stage() as stage, stage.program() as (pid, layer):
        effective = start(stage, start_frame=2, end_frame=4, label="the glow")
        capture_id = effective["capture_id"]
        assert set(effective) == TRACE | {"capture_id", "state", "warnings"}, effective
        assert (effective["state"], effective["backend"], effective["start_frame"], effective["end_frame"]) == ("armed", "renderdoc", 2, 4)
        asked = layer.wait_for("start")
        assert (asked["by"], asked["first"], asked["last"]) == ("auto", "2", "4") and "next" not in asked
        running, = stage.client.call("ListCaptures")["captures"]
        assert running["kind"] == "gpu" and running["state"] == "armed" and running["trace_path"] is None
        assert os.path.dirname(asked["template"]) == running["folder"] and running["options"]["start_frame"] == 2
        began = time.monotonic_ns()
        record(layer, asked, 2, 4, data=DOCUMENT)
        started = stage.client.wait_event("GpuTraceStarted")
        assert started["capture_id"] == capture_id and started["first_frame"] == 2 and started["frame_by"] == "auto"
        assert abs(started["started_mono_us"] - began // 1000) < 2000000
        assert started["device"] == {"name": "llvmpipe (LLVM 15.0.6, 256 bits)", "type": "cpu", "driver": "llvmpipe",
                                     "uuid": "0123456789abcdef0123456789abcdef", "index": 0}
        finished = stage.client.wait_event("GpuTraceFinished")
        assert (finished["reason"], finished["first_frame"], finished["last_frame"]) == ("frames", 2, 4)
        assert finished["label"] == "the glow" and finished["warnings"] == [] and finished["frame_by"] == "submit"
        assert finished["traced_pid"] == os.getpid() and finished["traced_exe"] == "/usr/bin/engine" and finished["backend_version"] == "1.6.0"
        assert finished["trace_path"] == running["folder"] + "/capture.rdc"
        assert finished["artifacts"] == [{"name": "capture.rdc", "path": finished["trace_path"], "bytes": len(DOCUMENT)}]
        with open(finished["trace_path"], "rb") as file:
            assert file.read() == DOCUMENT
        assert sorted(os.listdir(running["folder"])) == ["capture.rdc", "record.json"]
        assert finished["shaders"] == {"total": 0, "with_source": 0, "with_lines": 0, "left_out": 0}
        kept = stage.client.call("GetCapture", capture_id=capture_id)
        assert kept["state"] == "finished" and kept["build_id"] == "engine" and kept["pid"] == pid
        assert all(kept[name] == finished[name] for name in set(finished) - {"seq"}), (kept, finished)
        assert stage.client.call("GetProcess", build_id="engine")["captures"] == [capture_id]
        # Again, in the same program.
        start(stage, frames=3)
        asked = layer.wait_for("start")
        assert asked["next"] == "3" and "first" not in asked and "last" not in asked
        record(layer, asked, 9, 11)
        assert stage.client.wait_event("GpuTraceFinished")["last_frame"] == 11
        # What is kept survives the daemon, and is deleted with everything.
        stage.client.call("DeleteCapture", capture_id=capture_id)
        assert not os.path.exists(running["folder"])


def test_what_a_frame_is_is_told_to_the_program():
    with Stage() as stage, stage.program(subscribe=False) as (_, layer):
        for frame, (frame_by, by, label) in enumerate((("present", "present", None), ("submit", "submit", None), ("auto", "auto", None),
                                                       ("label:a frame %", "label", "a frame %"))):
            frame = 10 * frame + 7
            effective = start(stage, frame_by=frame_by, start_frame=frame, subscribe=False)
            assert effective["frame_by"] == frame_by and effective["end_frame"] == frame
            asked = layer.wait_for("start")
            assert asked["by"] == by and asked.get("label") == label and asked["first"] == asked["last"] == str(frame)
            record(layer, asked, frame, frame)
            assert stage.client.call("WaitCapture", capture_id=effective["capture_id"])["state"] == "finished"
        assert not [event for event in stage.client.events if event["method"].startswith("GpuTrace")]


def test_a_stop_ends_what_has_no_end():
    with Stage() as stage, stage.program() as (_, layer):
        for frame_by in ("manual", "auto"):
            capture_id = start(stage, frame_by=frame_by)["capture_id"]
            asked = layer.wait_for("start")
            assert asked["by"] == "manual" and not {"first", "last", "next"} & set(asked)
            begin(layer, 5)
            stage.client.wait_event("GpuTraceStarted")
            stopping = stage.client.send("StopCapture", capture_id=capture_id)
            assert layer.wait_for("stop") == {}
            path = write_document(asked)
            layer.say("document", path=path, bytes=64, first=5, last=30)
            final = stage.client.wait_reply(stopping)
            assert (final["state"], final["reason"], final["last_frame"]) == ("finished", "stopped", 30)


def test_a_duration_begins_with_the_first_frame():
    with Stage() as stage, stage.program() as (_, layer):
        start(stage, duration_ms=300)
        asked = layer.wait_for("start")
        time.sleep(0.4)
        began = time.monotonic()
        begin(layer, 5)
        layer.wait_for("stop")
        assert 0.29 < time.monotonic() - began < 2
        layer.say("document", path=write_document(asked), bytes=64, first=5, last=6)
        finished = stage.client.wait_event("GpuTraceFinished")
        assert finished["reason"] == "duration" and finished["duration_ms"] == 300


def test_progress_tells_frames_and_bytes():
    with Stage() as stage, stage.program() as (_, layer):
        start(stage, start_frame=40, progress_ms=50)
        asked = layer.wait_for("start")
        layer.frame(12)
        assert stage.client.wait_event("GpuTraceProgress", frame=12)["state"] == "armed"
        begin(layer, 40)
        path = write_document(asked, data=b"RDOC" + bytes(996))
        layer.frame(40)
        told = stage.client.wait_event("GpuTraceProgress", frame=40, bytes=1000)
        assert told["state"] == "sampling" and told["elapsed_ms"] >= 0
        stage.client.drain(0.4)
        assert not [event for event in stage.client.events if event["method"] == "GpuTraceProgress" and event["params"] == told]
        layer.say("document", path=path, bytes=1000, first=40, last=40)
        stage.client.wait_event("GpuTraceFinished")


def test_at_launch_the_first_frame_can_be_had():
    with Stage() as stage:
        pid = stage.launch(hold=True)
        capture_id = start(stage, start_frame=0, timeout_ms=60000)["capture_id"]
        time.sleep(0.3)
        stage.client.call("ResumeProcess", build_id="engine")
        with stage.layer(pid) as layer:
            # Its first line is the start: the program waits for one before it makes its device.
            word, asked = layer.read()
            assert word == "start" and asked["first"] == "0"
            layer.device()
            record(layer, asked, 0, 0)
            assert stage.client.call("WaitCapture", capture_id=capture_id)["first_frame"] == 0
        stage.client.call("StopProcess", build_id="engine")


def test_the_process_that_works_is_recorded():
    with Stage() as stage:
        pid = stage.launch()
        with stage.layer(pid, exe="/usr/bin/launcher") as idle:
            assert idle.read()[0] == "status"
            capture_id = start(stage, start_frame=3)["capture_id"]
            idle.wait_for("start")
            with stage.layer(pid, exe="/usr/bin/engine") as worker:
                worker.device()
                asked = worker.wait_for("start")
                assert idle.wait_for("stop") == {}
                idle.say("fault", code="not_capturing", text="its first frame had not begun")
                record(worker, asked, 3, 3)
                final = stage.client.call("WaitCapture", capture_id=capture_id)
                assert final["state"] == "finished" and final["traced_exe"] == "/usr/bin/engine"


def test_the_last_words_of_a_program_are_heard():
    with Stage() as stage:
        for cut in (False, True):
            with stage.program() as (pid, layer):
                capture_id = start(stage, start_frame=2, end_frame=4)["capture_id"]
                asked = layer.wait_for("start")
                begin(layer, 2)
                stage.client.wait_event("GpuTraceStarted")
                os.kill(pid, signal.SIGKILL)
                # The exit is seen before it is read.
                layer.say("document", path=write_document(asked), bytes=64, first=2, last=3 if cut else 4)
                layer.say("bye", why="exit")
                final = stage.client.call("WaitCapture", capture_id=capture_id)
                assert final["state"] == "finished" and final["signal"] in ("SIGKILL", None), final
                codes = [warning["code"] for warning in final["warnings"]]
                assert codes == (["range_cut"] if cut else []), final
                if cut:
                    assert "2 of the 3" in final["warnings"][0]["message"]


def test_output_goes_where_it_is_wished_for():
    with Stage() as stage, stage.program() as (_, layer):
        wished = os.path.join(stage.root, "a folder; with %s")
        os.mkdir(wished, 0o700)
        capture_id = start(stage, frames=1, output_dir=wished)["capture_id"]
        asked = layer.wait_for("start")
        assert os.path.dirname(asked["template"]) == os.path.join(wished, capture_id)
        record(layer, asked, 0, 0)
        path = stage.client.wait_event("GpuTraceFinished")["trace_path"]
        assert path == os.path.join(wished, capture_id, "capture.rdc") and stat.S_ISREG(os.stat(path).st_mode)
        kept = stage.client.call("DeleteCapture", capture_id=capture_id)
        assert os.listdir(wished) == [] and "left" not in kept


def test_a_discarded_trace_leaves_nothing():
    with Stage() as stage, stage.program() as (_, layer):
        for begins in (False, True):
            capture_id = start(stage, start_frame=3)["capture_id"]
            folder = stage.client.call("GetCapture", capture_id=capture_id)["folder"]
            asked = layer.wait_for("start")
            if begins:
                begin(layer, 3)
                stage.client.wait_event("GpuTraceStarted")
            stopping = stage.client.send("StopCapture", capture_id=capture_id, discard=True)
            layer.wait_for("stop")
            if begins:
                layer.say("document", path=write_document(asked), bytes=64, first=3, last=3)
            else:
                layer.say("fault", code="not_capturing", text="its first frame had not begun")
            assert stage.client.wait_reply(stopping)["error"]["data"]["code"] == "cancelled"
            assert stage.client.wait_event("GpuTraceFailed")["error"]["data"]["code"] == "cancelled"
            assert not os.path.exists(folder) and stage.client.fails("GetCapture", capture_id=capture_id).code == "capture_not_found"


def test_a_profile_and_a_trace_of_one_build_run_together():
    with Stage() as stage, stage.program(argv=["sh", "-c", "while :; do :; done"], profile={"hz": 200}) as (pid, layer):
        trace = start(stage, start_frame=3)["capture_id"]
        asked = layer.wait_for("start")
        time.sleep(0.2)
        record(layer, asked, 3, 3)
        assert stage.client.call("WaitCapture", capture_id=trace)["state"] == "finished"
        profile, = [c["capture_id"] for c in stage.client.call("ListCaptures")["captures"] if c["kind"] == "sampling"]
        assert stage.client.call("StopCapture", capture_id=profile)["state"] == "finished"


def test_the_daemons_end_ends_a_trace():
    with Stage() as stage, stage.layer(stage.launch()) as layer:
        layer.device()
        capture_id = start(stage)["capture_id"]
        asked = layer.wait_for("start")
        begin(layer, 5)
        stage.client.wait_event("GpuTraceStarted")
        stage.client.call("Shutdown", mode="stop")
        layer.wait_for("stop")
        layer.say("document", path=write_document(asked), bytes=64, first=5, last=6)
        finished = stage.client.wait_event("GpuTraceFinished")
        assert finished["capture_id"] == capture_id and finished["reason"] == "daemon_shutdown"
        stage.client.wait_event("DaemonStopping")


if __name__ == "__main__":
    main(globals())
