"""From LaunchProcess to a document, with the real layer and RenderDoc: RenderDoc's own tool says which frames are in it."""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

from gpu_listener import listening_ports
from harness import BUILD, Daemon, main, skip, target, wait_until

LAVAPIPE = "/usr/share/vulkan/icd.d/lvp_icd.x86_64.json"
PROGRAM = target("gpu_frames")
LAYER = os.environ.get("PROFD_GPU_LAYER") or os.path.join(BUILD, "daemon", "gpu", "layer")


@contextlib.contextmanager
def stage(**more):
    for need, path in (("the layer was not built (libvulkan-dev)", os.path.join(LAYER, "libprofd_gpu.so")),
                       ("its program was not built", PROGRAM), ("mesa-vulkan-drivers is not installed", LAVAPIPE),
                       ("librenderdoc is not installed", "/usr/share/vulkan/implicit_layer.d/renderdoc_capture.json")):
        if not os.path.exists(path):
            skip(need)
    if shutil.which("renderdoccmd") is None:
        skip("renderdoccmd is not installed")
    with Daemon(env=dict({"VK_ICD_FILENAMES": LAVAPIPE}, **more)) as daemon:
        yield daemon, daemon.connect()


def launch(client, *args, **options):
    argv = options.pop("argv", None) or [PROGRAM, *map(str, args)]
    return client.call("LaunchProcess", **dict({"argv": argv, "gpu": True, "hold": True, "build_id": "engine"}, **options))["pid"]


def trace(client, **params):
    """The final record of a trace; a program that is held runs now."""
    capture_id = client.call("StartGpuTrace", build_id="engine", **params)["capture_id"]
    if client.call("GetProcess", build_id="engine")["state"] == "held":
        client.call("ResumeProcess", build_id="engine")
    return client.call("WaitCapture", capture_id=capture_id)


def frames_in(record):
    """The numbers of the frames whose labels are in the document, as RenderDoc reads it."""
    assert record["state"] == "finished" and record["verified"] is True, record
    path = record["trace_path"]
    assert os.path.getsize(path) == record["artifacts"][0]["bytes"]
    told = path + ".xml"
    subprocess.run(["renderdoccmd", "convert", "-f", path, "-o", told, "-c", "xml"], check=True, stdout=subprocess.DEVNULL)
    with open(told) as file:
        labels = re.findall(r'name="pLabelName"[^>]*>frame (\d+)<', file.read())
    os.remove(told)
    return [int(label) for label in labels]


def codes_of(record):
    return [warning["code"] for warning in record["warnings"]]


def test_exactly_the_frames_that_are_asked_for():
    with stage() as (_, client):
        for argv in ([PROGRAM, "--frames", "6"], ["sh", "-c", "env %s --frames 6; exit 0" % PROGRAM]):
            for params, frames in (({"start_frame": 2, "end_frame": 3}, [2, 3]), ({"start_frame": 0}, [0]), ({"frames": 2}, [0, 1]),
                                   ({"frame_by": "label:frame", "start_frame": 4, "end_frame": 4}, [4])):
                pid = launch(client, argv=argv)
                record = trace(client, **params)
                assert frames_in(record) == frames and (record["first_frame"], record["last_frame"]) == (frames[0], frames[-1]), record
                assert record["reason"] == "frames" and "llvmpipe" in record["device"]["name"] and codes_of(record) == ["shader_no_source"]
                assert record["traced_exe"] == os.path.realpath(PROGRAM) and (record["traced_pid"] == pid) == (argv[0] == PROGRAM)
                client.wait_event("ProcessExited")


def test_each_trace_counts_in_its_own_way():
    with stage() as (_, client):
        launch(client, "--frames", 2000, "--frame-ms", 5, hold=False)
        for params in ({"frames": 2}, {"duration_ms": 30}, {"frames": 2}):
            # The program's names of its frames are the numbers of its submits; those by label are counted from the first time on that they are asked for.
            record = trace(client, **params)
            assert record["frame_by"] == "submit" and frames_in(record)[0] == record["first_frame"], record
            labelled = trace(client, frames=2, frame_by="label:frame")
            assert labelled["frame_by"] == "label:frame" and frames_in(labelled)[0] > labelled["first_frame"]
        client.call("StopProcess", build_id="engine", signal="KILL")


def bare(*args):
    """What the program writes without profd."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("VK_", "PROFD_GPU"))}
    return subprocess.run([PROGRAM, *map(str, args)], env=dict(env, VK_ICD_FILENAMES=LAVAPIPE), check=True, capture_output=True, text=True).stdout


def test_a_program_that_is_recorded_writes_what_it_writes_without():
    with stage() as (_, client):
        for args, params, frames in ((["--frames", 6], {"start_frame": 2, "end_frame": 3, "frame_by": "submit"}, [2, 3]),
                                     (["--frames", 4, "--submit2"], {"start_frame": 1, "frame_by": "submit"}, [1]),
                                     (["--frames", 4, "--no-labels"], {"frames": 2}, [])):
            # Through other programs once.
            for wrap in ([], ["env", "X=1"], ["timeout", "60"], ["sh", "-c", '"$0" "$@"; exit $?'])[:4 if len(frames) == 2 else 1]:
                launch(client, argv=[*wrap, PROGRAM, *map(str, args)])
                record = trace(client, **params)
                assert frames_in(record) == frames and record["frame_by"] == "submit", record
                assert client.wait_event("ProcessExited")["exit_code"] == 0
                said = client.call("GetOutput", build_id="engine", stream="stdout")["data"]
                assert said == bare(*args) and " right\n" in said, (wrap, said)


def test_a_program_that_ends_first_leaves_what_it_has():
    with stage() as (_, client):
        launch(client, "--frames", 6)
        record = trace(client, start_frame=4, end_frame=30)
        assert frames_in(record) == [4, 5] and record["reason"] == "target_exited"
        assert codes_of(record) == ["range_cut", "shader_no_source"]
        client.wait_event("ProcessExited")
        launch(client, "--frames", 6)
        error = trace(client, start_frame=20)["error"]
        assert (error["data"]["code"], error["data"]["detail"]) == ("gpu_frame_not_reached", "frames_not_reached") and "frame 5" in error["message"]


def test_exit_in_the_middle_saves_what_there_is():
    with stage() as (_, client):
        # exit(), with nothing of Vulkan destroyed.
        launch(client, "--frames", 9, "--exit-at", 5)
        record = trace(client, start_frame=3, end_frame=7)
        assert frames_in(record) == [3, 4] and record["reason"] == "target_exited", record
        warning = record["warnings"][0]
        assert warning["code"] == "range_cut" and "2" in warning["message"] and "5" in warning["message"], warning


def test_a_running_program_is_recorded_until_it_is_stopped():
    with stage() as (_, client):
        pid = launch(client, "--frames", 100000, "--frame-ms", 5, hold=False)
        for number in range(2):
            capture_id = client.call("StartGpuTrace", build_id="engine", **({} if number else {"duration_ms": 100}))["capture_id"]
            client.wait_event("GpuTraceStarted", capture_id=capture_id)
            record = client.call("StopCapture" if number else "WaitCapture", capture_id=capture_id)
            assert record["reason"] == ("stopped" if number else "duration")
            frames = frames_in(record)
            assert frames == list(range(record["first_frame"], record["last_frame"] + 1)) and frames
        # Its port is closed to everybody.
        assert listening_ports(pid) == set()
        client.call("StartGpuTrace", build_id="engine")
        client.wait_event("GpuTraceStarted")
        os.kill(pid, signal.SIGKILL)
        error = client.wait_event("GpuTraceFailed")["error"]
        assert (error["data"]["code"], error["data"]["detail"]) == ("interrupted", "exited_mid_capture") and "SIGKILL" in error["message"]


def test_frames_that_are_over_are_told_so():
    with stage() as (_, client):
        launch(client, "--frames", 100000, "--frame-ms", 2, hold=False)
        client.call("StartGpuTrace", build_id="engine", frames=1)
        client.wait_event("GpuTraceFinished")
        time.sleep(0.3)
        for _ in range(2):
            try:
                capture_id = client.call("StartGpuTrace", build_id="engine", start_frame=3)["capture_id"]
                error = client.call("WaitCapture", capture_id=capture_id)["error"]
            except Exception as refused:  # pylint: disable=broad-except
                error = refused.error
            assert (error["data"]["code"], error["data"]["detail"]) == ("gpu_frame_not_reached", "frame_passed"), error


def test_what_a_user_has_set_for_renderdoc_does_no_harm():
    with stage() as (_, client):
        for env in ({"ENABLE_VULKAN_RENDERDOC_CAPTURE": "1"}, {"VK_INSTANCE_LAYERS": "VK_LAYER_RENDERDOC_Capture"}):
            launch(client, "--frames", 6, env=env)
            assert frames_in(trace(client, start_frame=2)) == [2]
            client.wait_event("ProcessExited")


def test_a_program_that_uses_every_extension_runs_and_is_recorded():
    # As an explicit layer RenderDoc would refuse the instance, for extensions that it does not know.
    with stage() as (_, client):
        launch(client, "--frames", 4, "--every-extension")
        assert frames_in(trace(client, start_frame=1)) == [1]
        assert client.wait_event("ProcessExited")["exit_code"] == 0


def test_a_renderdoc_of_the_users_own_does_no_harm():
    with stage() as (daemon, client):
        folder = os.path.join(daemon.root, "home", "vulkan", "implicit_layer.d")
        os.makedirs(folder)
        shutil.copy("/usr/share/vulkan/implicit_layer.d/renderdoc_capture.json", folder)
        for own in ({}, {"ENABLE_VULKAN_RENDERDOC_CAPTURE": "1"}):
            launch(client, "--frames", 4, env=dict(own, XDG_DATA_HOME=os.path.join(daemon.root, "home")))
            assert frames_in(trace(client, start_frame=1)) == [1]
            client.wait_event("ProcessExited")


def test_a_profile_beside_it_has_the_same_clock():
    with stage() as (_, client):
        launch(client, "--frames", 100, "--frame-ms", 5, profile={"hz": 500})
        before = time.monotonic_ns() // 1000
        record = trace(client, start_frame=10, end_frame=12)
        assert frames_in(record) == [10, 11, 12] and before < record["started_mono_us"] < time.monotonic_ns() // 1000
        profile = client.wait_event("SamplingProfileFinished")
        assert profile["samples"] > 0
        kept = client.call("GetCapture", capture_id=profile["capture_id"])
        assert kept["started_unix_us"] < record["started_unix_us"] < kept["ended_unix_us"]
        with open(profile["metadata_path"]) as file:
            clock = json.load(file)["clock"]
        # The same clock in both records, not two that are near each other: its differences are those of the wall clock.
        assert clock["name"] == "monotonic" and clock["begin_ns"] < record["started_mono_us"] * 1000 < clock["end_ns"], (clock, record)
        by_wall_us, by_mono_us = record["started_unix_us"] - clock["begin_unix_us"], record["started_mono_us"] - clock["begin_ns"] // 1000
        assert abs(by_wall_us - by_mono_us) < 20000, (by_wall_us, by_mono_us)


def fails(record, code, detail, *words):
    """The error of a failed trace: as the contract has it, with a remedy; and no document anywhere."""
    error = record["error"]
    assert (error["data"]["code"], error["data"]["detail"]) == (code, detail) and error["data"]["hint"], error
    assert all(word in error["message"] + error["data"]["hint"] for word in words), (words, error)
    assert record["state"] == "failed" and record["trace_path"] is None and record["artifacts"] == [], record
    assert [name for name in os.listdir(record["folder"]) if "rdc" in name] == [], os.listdir(record["folder"])


def test_programs_that_cannot_be_recorded_say_why():
    with stage() as (daemon, client):
        nowhere = os.path.join(daemon.root, "icd.json")
        probe = os.path.join(BUILD, "daemon", "profd-gpu-probe")
        for argv, env, params, expected in (
                (["sleep", "0.1"], {}, {}, ("gpu_no_calls", "layer_not_loaded", "sandbox")),
                (["sleep", "60"], {}, {"timeout_ms": 200}, ("gpu_no_calls", "layer_not_loaded", "within 2")),
                ([probe], {}, {}, ("gpu_no_calls", "no_device")),
                ([PROGRAM, "--frames", "0"], {}, {}, ("gpu_no_calls", "gpu_idle", "llvmpipe")),
                ([PROGRAM, "--frames", "4"], {"VK_ICD_FILENAMES": nowhere}, {}, ("backend_unavailable", "vulkan_no_driver", nowhere)),
                ([PROGRAM, "--frames", "4"], {}, {"start_frame": 9}, ("gpu_frame_not_reached", "frames_not_reached", "frame 9", "frame 3")),
                ([PROGRAM, "--frames", "4"], {}, {"start_frame": 1, "frame_by": "present"}, ("gpu_frame_not_reached", "frames_not_reached", "submit")),
                ([PROGRAM, "--frames", "4"], {}, {"start_frame": 1, "frame_by": "label:none"}, ("gpu_frame_not_reached", "frames_not_reached", "submit"))):
            launch(client, argv=argv, env=env)
            fails(trace(client, **params), *expected)
            client.call("StopProcess", build_id="engine", signal="KILL")


def test_a_renderdoc_that_cannot_be_loaded_is_told():
    with tempfile.NamedTemporaryFile(prefix="librenderdoc") as broken, stage(PROFD_RENDERDOC=broken.name) as (_, client):
        broken.write(b"\x7fELF, and no more")
        broken.flush()
        launch(client, "--frames", 4)
        fails(trace(client, start_frame=1), "backend_unavailable", "renderdoc_missing", "librenderdoc")
        assert client.wait_event("ProcessExited")["exit_code"] == 0


def test_a_capture_folder_that_is_gone_is_told():
    with stage() as (daemon, client):
        launch(client, "--frames", 8)
        capture_id = client.call("StartGpuTrace", build_id="engine", start_frame=3)["capture_id"]
        folder = client.call("GetCapture", capture_id=capture_id)["folder"]
        os.rename(folder, folder + ".away")
        client.call("ResumeProcess", build_id="engine")
        error = client.call("WaitCapture", capture_id=capture_id)["error"]
        assert error["data"]["code"] == "io" and error["data"]["detail"] in ("output_not_writable", "document_missing"), error
        assert client.wait_event("ProcessExited")["exit_code"] == 0


def test_a_second_start_is_refused_while_one_is_recorded():
    with stage() as (_, client):
        launch(client, "--frames", 100000, "--frame-ms", 2, hold=False)
        first = client.call("StartGpuTrace", build_id="engine")["capture_id"]
        client.wait_event("GpuTraceStarted")
        error = client.fails("StartGpuTrace", build_id="engine", frames=1)
        assert (error.code, error.detail) == ("capture_busy", "gpu_busy") and first in error.message
        assert client.call("StopCapture", capture_id=first)["state"] == "finished"
        # One that is thrown away leaves nothing, and the program free for the next.
        second = client.call("StartGpuTrace", build_id="engine")["capture_id"]
        client.wait_event("GpuTraceStarted", capture_id=second)
        folder = client.call("GetCapture", capture_id=second)["folder"]
        client.call("StopCapture", capture_id=second, discard=True)
        wait_until(lambda: not os.path.exists(folder), 10, "the end of the folder")
        record = client.call("WaitCapture", capture_id=client.call("StartGpuTrace", build_id="engine", frames=2)["capture_id"])
        assert len(frames_in(record)) == 2


if __name__ == "__main__":
    main(globals())
