"""What profd believes of a document: what RenderDoc's own reader has read. Readers that lie, fail, hang and are not there are played by scripts."""
import os
import signal
import time

from gpu_stage import READER, Stage, begin, record, start
from harness import alive, main, wait_until
from test_gpu_documents import launch, trace
from test_gpu_documents import stage as real_stage

HANGS = "#!/bin/sh\nsleep 300 &\necho $$ $! > ROOT/pids.tmp\nmv ROOT/pids.tmp ROOT/pids\nwait\n"


def recorded(stage, layer, data=b"RDOC" + bytes(60), **params):
    """The capture's id; its document is told."""
    capture_id = start(stage, **dict({"frames": 1}, **params))["capture_id"]
    record(layer, layer.wait_for("start"), 3, 3, data=data)
    return capture_id


def broken(stage, capture_id, *words):
    """A trace that failed because its document cannot be read, and has it."""
    final = stage.client.call("WaitCapture", capture_id=capture_id)
    told = stage.client.wait_event("GpuTraceFailed", capture_id=capture_id)
    error = final["error"]
    assert final["state"] == "failed" and final["verified"] is False and told["error"] == error, final
    assert (error["data"]["code"], error["data"]["detail"]) == ("io", "document_broken"), error
    assert all(word in error["message"] for word in words) and final["trace_path"] in error["data"]["hint"], (words, error)
    assert os.path.exists(final["trace_path"]) and [artifact["name"] for artifact in final["artifacts"]] == ["capture.rdc"]
    # It is the capture's, and goes with it.
    stage.client.call("DeleteCapture", capture_id=capture_id)
    assert not os.path.exists(final["folder"])


def test_a_real_document_is_read_and_a_part_of_it_is_not():
    with real_stage() as (_, client):
        launch(client, "--frames", 6)
        final = trace(client, start_frame=2)
        assert final["state"] == "finished" and final["verified"] is True, final
        with open(final["trace_path"], "rb") as file:
            document = file.read()
    with Stage(reader=None) as stage, stage.program() as (_, layer):
        whole = recorded(stage, layer, data=document)
        assert stage.client.call("WaitCapture", capture_id=whole)["verified"] is True
        for data in (document[:len(document) // 2], document[:-64], document[:40], b"RDOC" + bytes(range(256)) * 16):
            broken(stage, recorded(stage, layer, data=data), "renderdoccmd")


def test_readers_that_fail_each_in_its_way():
    for script, words in (("echo no such thing; echo 'it is cut at 17' >&2; echo; exit 3", ("ended with status 3", "it is cut at 17")),
                          ("printf '\\033[31mred\\n'; exit 1", ("status 1", "?[31mred")), ("exit 0", ("made nothing of it",)),
                          ("echo '{}' > \"$5\"", ("made nothing of it",)), ("kill -SEGV $$", ("was ended by SIGSEGV",)),
                          ("head -c 100000 /dev/zero | tr '\\0' x; exit 1", ("status 1", "xxxx"))):
        with Stage(reader="#!/bin/sh\n%s\n" % script) as stage, stage.program() as (_, layer):
            broken(stage, recorded(stage, layer), *words)


def test_a_reader_has_nothing_of_ours_and_limits():
    # It is limited in the moment in which it begins; a shell may be faster.
    script = ("#!/bin/sh\nexec > ROOT/facts 2>&1\nprintf '%s\\n' \"$@\" \"$HOME\" \"$TMPDIR\" \"$RENDERDOC_TEMP$SECRET$LD_PRELOAD\"\ncut -d' ' -f5 /proc/$$/stat\n"
              "echo $$\nls /proc/$$/fd | tr '\\n' ' '\necho\ncat\nwhile [ $(ulimit -v) = unlimited ]; do sleep 0.01; done\nulimit -f\nulimit -t\nulimit -v\ntouch $HOME/left; mkdir $HOME/more\nprintf '<?xml' > \"$5\"\n")
    with Stage(reader=script, env={"SECRET": "told", "LD_PRELOAD": ""}) as stage, stage.program() as (_, layer):
        final = stage.client.call("WaitCapture", capture_id=recorded(stage, layer))
        assert final["verified"] is True and final["warnings"] == [], final
        with open(stage.root + "/facts", encoding="utf-8") as file:
            facts = file.read().split("\n")
        output = facts[4]
        home = os.path.dirname(output)
        assert facts[:7] == ["convert", "-f", "capture.rdc", "-o", output, "-c", "xml"], facts
        assert facts[7:10] == [home, home, home] and os.path.dirname(home) == stage.runtime, facts
        assert facts[10] == facts[11] and set(facts[12].split()) <= {"0", "1", "2", "3", "10", "255"}, facts
        assert [int(fact) for fact in facts[13:16]] == [1 << 30 >> 9, 31, (4 << 20) + 1], facts
        assert os.listdir(stage.runtime) and not os.path.exists(home)


def replaced(folder, target):
    os.rename(folder, folder + "-away")
    os.symlink(target, folder)


def changed_in_place(path):
    with open(path, "r+b") as file:
        file.seek(10)
        file.write(b"!")


def test_a_trace_never_names_what_was_not_verified():
    waits = "#!/bin/sh\ntouch ROOT/reads\nwhile ! test -e ROOT/go; do sleep 0.02; done\n" + READER.split("\n")[1]
    hostile = (lambda folder, decoy: replaced(folder, decoy), lambda folder, decoy: replaced(folder, folder + "-away"),
               lambda folder, _: os.remove(folder + "/capture.rdc"), lambda folder, decoy: os.replace(decoy + "/other", folder + "/capture.rdc"),
               lambda folder, decoy: os.link(folder + "/capture.rdc", decoy + "/again"), lambda folder, _: changed_in_place(folder + "/capture.rdc"))
    for number, act in enumerate(hostile):
        with Stage(reader=waits) as stage, stage.program() as (_, layer):
            decoy = stage.root + "/decoy"
            os.mkdir(decoy)
            for name in ("capture.rdc", "other"):
                with open(decoy + "/" + name, "wb") as file:
                    file.write(b"RDOC" + bytes(60))
            capture_id = recorded(stage, layer)
            folder = stage.client.call("GetCapture", capture_id=capture_id)["folder"]
            wait_until(lambda: os.path.exists(stage.root + "/reads"), 10, "the reader")
            act(folder, decoy)
            with open(stage.root + "/go", "w", encoding="utf-8"):
                pass
            final = stage.client.call("WaitCapture", capture_id=capture_id)
            error = final["error"]
            assert (final["state"], error["data"]["code"], error["data"]["detail"]) == ("failed", "io", "document_replaced"), (number, final)
            assert final["trace_path"] is None and final["artifacts"] == [] and final["verified"] is False, final
            with open(decoy + "/capture.rdc", "rb") as file:
                assert file.read() == b"RDOC" + bytes(60), "it is somebody else's"


def test_a_document_is_a_file_of_its_own_in_the_captures_folder():
    with Stage() as stage, stage.program() as (_, layer):
        outside = stage.root + "/outside"
        os.mkdir(outside)
        for how in ("hard link", "symbolic link", "folder"):
            with open(outside + "/mine", "wb") as file:
                file.write(b"RDOC" + bytes(60))
            capture_id = start(stage, frames=1)["capture_id"]
            asked = layer.wait_for("start")
            begin(layer, 0)
            path, folder = asked["template"] + "_capture.rdc", os.path.dirname(asked["template"])
            if how == "folder":
                replaced(folder, outside)
                os.rename(outside + "/mine", path)
            else:
                {"hard link": os.link, "symbolic link": os.symlink}[how](outside + "/mine", path)
            layer.say("document", path=path, bytes=64, first=0, last=0)
            final = stage.client.call("WaitCapture", capture_id=capture_id)
            assert (final["error"]["data"]["code"], final["error"]["data"]["detail"]) == ("io", "document_missing"), (how, final)
            assert final["trace_path"] is None and len(os.listdir(outside)) == 1, (how, final)
            with open(os.path.join(outside, os.listdir(outside)[0]), "rb") as file:
                assert file.read() == b"RDOC" + bytes(60) and os.fstat(file.fileno()).st_nlink == 1, how


def test_without_a_reader_it_is_said_so():
    with Stage(reader="") as stage, stage.program() as (_, layer):
        final = stage.client.call("WaitCapture", capture_id=recorded(stage, layer))
        warning, = final["warnings"]
        assert final["state"] == "finished" and final["verified"] is False and warning["code"] == "not_verified", final
        assert "not in profd's PATH" in warning["message"] and "package renderdoccmd" in warning["hint"], warning
    with Stage(reader="#!/nowhere/interpreter\n") as stage, stage.program() as (_, layer):
        final = stage.client.call("WaitCapture", capture_id=recorded(stage, layer))
        warning, = final["warnings"]
        assert warning["code"] == "not_verified" and "cannot be run" in warning["message"] and stage.root in warning["message"], warning


def test_who_does_not_want_it_does_not_wait_for_it():
    with Stage(reader="#!/bin/sh\ntouch ROOT/called\nexit 1\n") as stage, stage.program() as (_, layer):
        final = stage.client.call("WaitCapture", capture_id=recorded(stage, layer, verify=False))
        assert final["state"] == "finished" and final["verified"] is False and final["warnings"] == [], final
        assert not os.path.exists(stage.root + "/called")
        broken(stage, recorded(stage, layer), "status 1")


def pids(stage):
    """Of a reader that hangs, and of what it started."""
    path = stage.root + "/pids"
    wait_until(lambda: os.path.exists(path), 10, "the reader")
    with open(path, encoding="utf-8") as file:
        found = [int(pid) for pid in file.read().split()]
    os.remove(path)
    return found


def gone(found):
    wait_until(lambda: not any(alive(pid) for pid in found), 10, "the end of %s" % found)


def test_a_reader_that_hangs_does_not_hold_the_daemons_end():
    for mode in ("stop", "now"):
        with Stage(reader=HANGS) as stage:
            stage.launch()
            with stage.layer(stage.client.call("GetProcess", build_id="engine")["pid"]) as layer:
                layer.device()
                capture_id = recorded(stage, layer)
                found = pids(stage)
                assert stage.client.call("GetCapture", capture_id=capture_id)["state"] == "writing"
                began = time.monotonic()
                stage.client.call("Shutdown", mode=mode)
                told = stage.client.wait_event("GpuTraceFinished", capture_id=capture_id)
                warning, = told["warnings"]
                assert told["verified"] is False and warning["code"] == "not_verified" and "profd was ended" in warning["message"], told
                stage.daemon.process.wait(10)
                assert time.monotonic() - began < 5 and os.path.exists(told["trace_path"])
            gone(found)


def test_a_reader_that_hangs_dies_with_a_daemon_that_is_killed():
    with Stage(reader=HANGS, check_exit=False) as stage, stage.layer(stage.launch()) as layer:
        layer.device()
        recorded(stage, layer)
        found = pids(stage)
        stage.daemon.process.kill()
        stage.daemon.process.wait()
        gone(found)
        stage.before = stage.folders()


def test_a_reader_that_hangs_is_ended_with_a_trace_that_is_thrown_away():
    with Stage(reader=HANGS) as stage, stage.program() as (_, layer):
        capture_id = recorded(stage, layer)
        found = pids(stage)
        folder = stage.client.call("GetCapture", capture_id=capture_id)["folder"]
        # Another trace of the build does not wait for it, and a stop leaves it alone.
        other = start(stage, start_frame=9)["capture_id"]
        stage.client.call("StopCapture", capture_id=capture_id, discard=True)
        assert stage.client.wait_event("GpuTraceFailed", 10, capture_id=capture_id)["error"]["data"]["code"] == "cancelled"
        gone(found)
        assert not os.path.exists(folder)
        layer.wait_for("start")
        layer.say("fault", code="start_failed", text="no")
        stage.client.wait_event("GpuTraceFailed", capture_id=other)


def test_a_reader_that_somebody_kills_has_said_nothing():
    with Stage(reader=HANGS) as stage, stage.program() as (_, layer):
        capture_id = recorded(stage, layer)
        found = pids(stage)
        os.kill(found[0], signal.SIGKILL)
        final = stage.client.call("WaitCapture", capture_id=capture_id)
        warning, = final["warnings"]
        assert final["state"] == "finished" and final["verified"] is False and "killed" in warning["message"], final
        gone(found)


if __name__ == "__main__":
    main(globals())
