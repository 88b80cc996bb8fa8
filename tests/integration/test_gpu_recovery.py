"""GPU traces of a killed daemon: what the program that lives on has left of them, and what the next daemon makes of it."""
import contextlib
import json
import os
import re
import signal
import subprocess
import time

from gpu_modules import frames_module, sha256
from gpu_stage import READER, Stage, begin, record, start, write_document
from harness import main, wait_until
from test_gpu_documents import PROGRAM
from test_gpu_documents import stage as real_stage

EXE = os.path.realpath("/proc/self/exe")
WHOLE = b"RDOC" + bytes(range(256)) * 4


def kill(daemon):
    daemon.process.kill()
    daemon.process.wait()
    daemon.clients.clear()


def restart(daemon):
    """A client of the next daemon."""
    daemon.start()
    return daemon.connect()


@contextlib.contextmanager
def recording(begun=True, reader=READER, elsewhere=False, **params):
    """(stage, start line, capture id) of a trace that is under way; the program is this one, and lives on. elsewhere: in an output_dir."""
    with Stage(reader=reader, check_exit=False) as stage:
        if elsewhere:
            params["output_dir"] = stage.root + "/elsewhere"
            os.mkdir(params["output_dir"], 0o700)
        pid = stage.launch(on_daemon_exit="leave", stdio="null")
        try:
            with stage.layer(pid, exe=EXE) as layer:
                layer.device()
                capture_id = start(stage, **dict({"start_frame": 3}, **params))["capture_id"]
                asked = layer.wait_for("start")
                if begun:
                    begin(layer, 3)
                    stage.client.wait_event("GpuTraceStarted")
                yield stage, asked, capture_id
        finally:
            os.kill(pid, signal.SIGKILL)


def names_in(final):
    return sorted(os.listdir(final["folder"]))


def test_the_document_that_a_real_program_writes_then_is_kept():
    with real_stage() as (daemon, client):
        daemon.check_exit = False
        pid = client.call("LaunchProcess", argv=[PROGRAM, "--frames", "1000000"], gpu={}, build_id="engine", on_daemon_exit="leave", stdio="null")["pid"]
        try:
            capture_id = client.call("StartGpuTrace", build_id="engine", frame_by="submit")["capture_id"]
            client.wait_event("GpuTraceStarted")
            kill(daemon)
            # At once: the program has not even noticed.
            client = restart(daemon)
            client.call("Subscribe", capture_id=capture_id)
            final = client.call("WaitCapture", capture_id=capture_id)
            assert (final["state"], final["reason"], final["verified"], final["last_frame"]) == ("finished", "recovered", True, None), final
            assert [warning["code"] for warning in final["warnings"]] == ["shader_no_source", "recovered"], final["warnings"]
            client.wait_event("CaptureRecovered", capture_id=capture_id)
            told = [line["method"] for line in client.lines if line.get("params", {}).get("capture_id") == capture_id]
            assert told == ["GpuTraceFinished", "CaptureRecovered"], told
            labels = re.findall(r'name="pLabelName"[^>]*>frame (\d+)<', convert_text(final["trace_path"]))
            assert int(labels[0]) == final["first_frame"] and len(labels) > 0, (labels, final)
            with open(final["folder"] + "/shaders.json", encoding="utf-8") as file:
                listed = json.load(file)["shaders"]
            assert len(listed) == final["shaders"]["total"] == 3 and all(shader["used"] == [] and shader["entry_points"] for shader in listed)
            assert names_in(final) == ["capture.rdc", "record.json", "shaders", "shaders.json"]
            assert os.path.exists("/proc/%d" % pid), "the program goes on"
            client.call("DeleteCapture", capture_id=capture_id)
            assert not os.path.exists(final["folder"])
        finally:
            os.kill(pid, signal.SIGKILL)


def convert_text(path):
    subprocess.run(["renderdoccmd", "convert", "-f", path, "-o", path + ".xml", "-c", "xml"], check=True, stdout=subprocess.DEVNULL)
    with open(path + ".xml", encoding="utf-8") as file:
        text = file.read()
    os.remove(path + ".xml")
    return text


def test_a_document_is_waited_for_as_long_as_it_is_being_written():
    with recording() as (stage, asked, capture_id):
        kill(stage.daemon)
        client = restart(stage.daemon)
        time.sleep(0.3)
        assert client.call("GetCapture", capture_id=capture_id)["state"] == "symbolizing"
        with open(asked["template"] + "_capture.rdc", "wb", buffering=0) as file:
            for piece in (WHOLE[:100], WHOLE[100:]):
                file.write(piece)
                time.sleep(0.3)
                assert client.call("GetCapture", capture_id=capture_id)["state"] == "symbolizing"
        # The shaders come behind it.
        modules = [frames_module(name) for name in ("fill_comp", "triangle_vert", "triangle_frag")]
        os.mkdir(asked["template"] + ".shaders")
        for code in modules:
            time.sleep(0.1)
            with open("%s.shaders/%s.spv" % (asked["template"], sha256(code)), "wb") as file:
                file.write(code)
        final = client.call("WaitCapture", capture_id=capture_id)
        assert final["state"] == "finished" and final["artifacts"][0] == {
            "name": "capture.rdc", "path": final["folder"] + "/capture.rdc", "bytes": len(WHOLE)}, final
        assert final["shaders"] == {"total": 3, "with_source": 0, "with_lines": 0, "left_out": 0}, final
        assert sorted(os.listdir(final["folder"] + "/shaders")) == sorted(sha256(code) + ".spv" for code in modules)


def test_a_document_that_is_cut_is_told_as_such():
    with recording(reader="#!/bin/sh\necho it is cut at 17\nexit 1\n") as (stage, asked, capture_id):
        kill(stage.daemon)
        write_document(asked)
        final = restart(stage.daemon).call("WaitCapture", capture_id=capture_id)
        error = final["error"]
        assert final["state"] == "failed" and (error["data"]["code"], error["data"]["detail"]) == ("io", "document_broken"), final
        assert "it is cut at 17" in error["message"] and final["trace_path"] in error["data"]["hint"] and final["verified"] is False
        assert names_in(final) == ["capture.rdc", "record.json"]
    with recording() as (stage, asked, capture_id):
        kill(stage.daemon)
        write_document(asked, data=b"not a document")
        error = restart(stage.daemon).call("WaitCapture", capture_id=capture_id)["error"]
        assert error["data"]["detail"] == "document_broken" and "profd ended before" in error["message"], error


def test_a_document_that_nobody_can_read_is_kept_but_no_success():
    with recording(reader="", verify=False) as (stage, asked, capture_id):
        kill(stage.daemon)
        write_document(asked)
        final = restart(stage.daemon).call("WaitCapture", capture_id=capture_id)
        error = final["error"]
        assert final["state"] == "failed" and (error["data"]["code"], error["data"]["detail"]) == ("interrupted", "not_verified"), final
        assert "not in profd's PATH" in error["message"] and final["trace_path"] in error["data"]["hint"]
        assert os.path.exists(final["trace_path"]) and final["verified"] is False


def test_without_a_document_the_trace_is_lost():
    # A program that is gone writes none; what had not begun has none.
    for begun, why in ((True, "is lost"), (False, "had not begun")):
        with recording(begun=begun) as (stage, _, capture_id):
            kill(stage.daemon)
            began = time.monotonic()
            client = restart(stage.daemon)
            final = client.call("WaitCapture", capture_id=capture_id)
            error = final["error"]
            assert final["kind"] == "gpu" and final["state"] == "failed" and final["first_frame"] == (3 if begun else None), final
            assert error["data"]["code"] == "interrupted" and why in error["message"] and final["trace_path"] is None, error
            assert (4.5 if begun else 0) < time.monotonic() - began < (15 if begun else 3), "it is waited for, but not for ever"
            assert client.fails("SymbolizeCapture", capture_id=capture_id).code == "unsupported"
            assert names_in(final) == ["record.json"]


def test_a_daemon_that_ends_meanwhile_leaves_it_to_the_next():
    with recording() as (stage, asked, capture_id):
        kill(stage.daemon)
        restart(stage.daemon)
        time.sleep(0.2)
        assert stage.daemon.stop(3) == 0
        stage.daemon.clients.clear()
        write_document(asked)
        assert restart(stage.daemon).call("WaitCapture", capture_id=capture_id)["state"] == "finished"


def test_what_is_thrown_away_is_not_waited_for():
    with recording() as (stage, _, capture_id):
        kill(stage.daemon)
        client = restart(stage.daemon)
        began = time.monotonic()
        assert client.call("StopCapture", capture_id=capture_id, discard=True)["error"]["data"]["code"] == "cancelled"
        assert time.monotonic() - began < 3 and client.fails("GetCapture", capture_id=capture_id).code == "capture_not_found"


def test_a_daemon_that_was_killed_while_a_document_was_read_loses_nothing():
    hangs = "#!/bin/sh\ntest -e ROOT/go && { %s; exit; }\ntouch ROOT/reads\nsleep 300\n" % READER.split("\n")[1]
    with Stage(reader=hangs, check_exit=False) as stage:
        pid = stage.launch(on_daemon_exit="leave", stdio="null")
        try:
            with stage.layer(pid, exe=EXE) as layer:
                layer.device()
                capture_id = start(stage, start_frame=3, end_frame=5)["capture_id"]
                record(layer, layer.wait_for("start"), 3, 4)
                wait_until(lambda: os.path.exists(stage.root + "/reads"), 10, "the reader")
                kill(stage.daemon)
                with open(stage.root + "/go", "w", encoding="utf-8"):
                    pass
                final = restart(stage.daemon).call("WaitCapture", capture_id=capture_id)
                assert (final["state"], final["reason"], final["verified"]) == ("finished", "recovered", True), final
                assert (final["first_frame"], final["last_frame"]) == (3, 4), final
                assert [warning["code"] for warning in final["warnings"]] == ["range_cut", "recovered"], final["warnings"]
                assert "being written" in final["warnings"][1]["message"] and names_in(final) == ["capture.rdc", "record.json"]
                assert final["shaders"] is not None and [artifact["name"] for artifact in final["artifacts"]] == ["capture.rdc"]
        finally:
            os.kill(pid, signal.SIGKILL)


def test_a_document_with_its_name_of_which_the_record_does_not_know_is_read_too():
    with recording(verify=False, elsewhere=True) as (stage, asked, capture_id):
        kill(stage.daemon)
        path = write_document(asked)
        os.rename(path, os.path.join(os.path.dirname(path), "capture.rdc"))
        final = restart(stage.daemon).call("WaitCapture", capture_id=capture_id)
        assert (final["state"], final["verified"], final["shaders"]) == ("finished", True, None), final
        assert final["trace_path"] == "%s/elsewhere/%s/capture.rdc" % (stage.root, capture_id), final


if __name__ == "__main__":
    main(globals())
