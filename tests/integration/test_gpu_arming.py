"""LaunchProcess {gpu}: what an armed program finds in its environment, and who is listened to on its socket."""
import json
import os
import signal
import socket
import stat
import time

from fake_gpu_layer import LINE_BYTES, Layer, environment_of, line
from gpu_stage import PROGRAM, Stage
from harness import Daemon, main, skip, wait_until

ARMING = {"PROFD_GPU", "PROFD_GPU_SOCKET", "PROFD_GPU_TOKEN", "PROFD_GPU_LIBRARY", "PROFD_GPU_DEVICE", "PROFD_GPU_RENDERDOC",
          "XDG_DATA_DIRS", "LD_PRELOAD", "WGPU_DEBUG"}
NOBODY = 65534


def read_json(*path):
    with open(os.path.join(*path)) as file:
        return json.load(file)


def test_an_armed_program_finds_both_layers_and_the_socket():
    with Stage(env={"WGPU_DEBUG": "", "XDG_DATA_DIRS": "", "LD_PRELOAD": ""}) as stage:
        pid = stage.launch(env={name: None for name in ARMING if not name.startswith("PROFD_")})
        found = environment_of(pid)
        folder = os.path.dirname(found["PROFD_GPU_SOCKET"])
        assert found["PROFD_GPU"] == "1" and found["WGPU_DEBUG"] == "1"
        assert found["PROFD_GPU_RENDERDOC"] == "1"
        assert found["XDG_DATA_DIRS"] == "%s:%s/renderdoc:/usr/local/share:/usr/share" % (folder, folder)
        assert found["LD_PRELOAD"] == stage.parts.nobind and found["PROFD_GPU_LIBRARY"] == stage.parts.library
        assert len(found["PROFD_GPU_TOKEN"]) == 32 and int(found["PROFD_GPU_TOKEN"], 16)
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700 and stat.S_IMODE(os.stat(found["PROFD_GPU_SOCKET"]).st_mode) == 0o600
        ours = read_json(folder, "vulkan/implicit_layer.d/VkLayer_profd_gpu.json")["layer"]
        assert ours["library_path"] == stage.parts.library and ours["enable_environment"] == {"PROFD_GPU": "1"}
        renderdoc = read_json(folder, "renderdoc/vulkan/implicit_layer.d/renderdoc.json")["layer"]
        assert renderdoc["library_path"] == stage.parts.renderdoc and renderdoc["name"] == "VK_LAYER_RENDERDOC_Capture"
        assert renderdoc["enable_environment"] == {"PROFD_GPU_RENDERDOC": "1"}
        # Nobody else's token helps.
        other = environment_of(stage.launch("other"))
        assert other["PROFD_GPU_TOKEN"] != found["PROFD_GPU_TOKEN"] and other["PROFD_GPU_SOCKET"] != found["PROFD_GPU_SOCKET"]


def test_what_the_program_has_of_its_own_stays_behind_ours():
    own = {"XDG_DATA_DIRS": "/opt/share", "VK_ADD_LAYER_PATH": "/opt/layers", "VK_LAYER_PATH": "/opt/only", "LD_PRELOAD": "libc.so.6",
           "VK_INSTANCE_LAYERS": "VK_LAYER_KHRONOS_validation", "WGPU_DEBUG": "0", "OWN": "kept"}
    for mode in ("overlay", "exact"):
        with Stage() as stage:
            found = environment_of(stage.launch(argv=["/bin/sleep", "60"], env=own, env_mode=mode))
            folder = os.path.dirname(found["PROFD_GPU_SOCKET"])
            assert found["XDG_DATA_DIRS"] == "%s:%s/renderdoc:/opt/share" % (folder, folder)
            assert found["LD_PRELOAD"] == stage.parts.nobind + ":libc.so.6"
            assert all(found[name] == own[name] for name in own if name not in ("XDG_DATA_DIRS", "LD_PRELOAD"))
            if mode == "exact":
                assert set(found) - set(own) == {"PROFD_GPU", "PROFD_GPU_SOCKET", "PROFD_GPU_TOKEN", "PROFD_GPU_LIBRARY", "PROFD_GPU_DEVICE",
                                                 "PROFD_GPU_RENDERDOC"}, found


def test_a_program_that_is_not_armed_has_nothing_of_it():
    with Stage() as stage:
        for gpu in (False, None):
            pid = stage.client.call("LaunchProcess", argv=PROGRAM, gpu=gpu)["pid"]
            assert not [name for name in environment_of(pid) if name.startswith("PROFD_")]
        assert stage.folders() == stage.before
        assert stage.launch("by-true", gpu=True) and len(stage.folders() - stage.before) == 1
        for wrong in (1, "yes", []):
            assert stage.client.fails("LaunchProcess", argv=PROGRAM, gpu=wrong).code == "bad_params"
        assert stage.client.fails("LaunchProcess", argv=PROGRAM, gpu={"colour": 1}).code == "bad_params"
        for wrong in ("", "x" * 256, 0):
            assert stage.client.fails("LaunchProcess", argv=PROGRAM, gpu={"device": wrong}).code == "bad_params"


def test_what_arming_lacks_is_named_and_nothing_runs():
    with Stage() as stage:
        for path, detail in ((stage.parts.renderdoc, "renderdoc_missing"), (stage.parts.nobind, "layer_missing")):
            os.remove(path)
            error = stage.client.fails("LaunchProcess", argv=PROGRAM, build_id="engine", gpu={})
            assert (error.code, error.detail) == ("backend_unavailable", detail) and error.hint, error.error
            assert stage.client.call("ListProcesses")["processes"] == []
        assert stage.folders() == stage.before


def test_a_program_that_does_not_start_leaves_nothing():
    with Stage() as stage:
        stage.client.call("LaunchProcess", argv=["true"], build_id="first")  # and the guard, which stays
        stage.client.wait_event("ProcessExited")
        before = stage.daemon.descriptors()
        assert stage.client.fails("LaunchProcess", argv=["/nowhere/program"], gpu={}).code == "launch_failed"
        pid = stage.launch()
        with stage.layer(pid) as layer:
            layer.read()
            assert len(stage.folders() - stage.before) == 1
            stage.client.call("StopProcess", build_id="engine", signal="KILL")
            assert layer.is_closed() and stage.folders() == stage.before
        end = time.monotonic() + 5
        while stage.daemon.descriptors() != before and time.monotonic() < end:
            time.sleep(0.05)
        assert stage.daemon.descriptors() == before


def test_a_killed_daemons_folders_are_removed_by_the_next_and_no_others():
    with Stage(check_exit=False) as stage:
        pid = stage.launch(on_daemon_exit="leave", stdio="null")
        left = stage.folders()
        with Daemon(env=stage.daemon.env) as other:
            # A program that lives on while its daemon does.
            client = other.connect()
            client.call("LaunchProcess", argv=PROGRAM, build_id="engine", gpu={})
            used = stage.folders() - left
            assert len(left) == len(used) == 1
            stage.daemon.process.kill()
            stage.daemon.process.wait()
            stage.daemon.clients.clear()
            try:
                stage.daemon.start()
                wait_until(lambda: stage.folders() == used, 10, "the end of the folder that was left")
                assert "1 private folder of GPU traces removed" in stage.daemon.log()
            finally:
                os.kill(pid, signal.SIGKILL)


def refused(stage, pid, data, greet=True):
    """Whether the connection is closed for saying data, and the daemon goes on."""
    with stage.layer(pid, greet=greet) as layer:
        layer.say_raw(data)
        assert layer.is_closed(), data
    assert stage.client.call("Ping")["now_unix_us"] > 0


def test_who_does_not_keep_to_the_wire_is_closed():
    with Stage() as stage:
        pid = stage.launch()
        token = environment_of(pid)["PROFD_GPU_TOKEN"]
        hello = {"token": token, "pid": 1, "ppid": 1, "exe": "x", "api": "vulkan", "order": "above", "renderdoc": "", "renderdoc_api": ""}
        wrong = "0" * 32 if token[0] != "0" else "1" * 32
        for data in (line("hello", **dict(hello, token=wrong)), line("hello", **dict(hello, token=token[:31])), line("hello", token=token),
                     line("hello", **dict(hello, order="beside")), line("hello", **dict(hello, pid=-1)), line("frame", n=0, by="submit"),
                     line("hello", **dict(hello, colour="red")), b"\n", b"\0\0\0\n", b"x" * LINE_BYTES):
            refused(stage, pid, data, greet=False)
        for data in (line("hello", **hello), line("colour"), line("frame", n=-1, by="submit"), line("frame", n=2 ** 64, by="submit"),
                     line("frame", n=1, by="draw"), line("frame", n=1, by="submit", more=1), line("device", name="x", type="cpu"),
                     line("device", name="x", type="warm", driver="", uuid="0" * 32, index=0),
                     line("document", path="/x", bytes=1, first=2, last=1), line("fault", text="x"), b"frame n=1 n=2 by=submit\n",
                     b"frame  n=1\n", b"frame n=%4 by=submit\n", b"frame n=%00 by=submit\n", b"start by=auto\n",
                     b"device name=" + b"x" * LINE_BYTES):
            refused(stage, pid, data)
        assert stage.daemon.log().count("no longer listened to") == 26
        with stage.layer(pid) as layer:  # a good one still is
            assert layer.read()[0] == "status"


def test_who_says_too_much_or_nothing_is_closed():
    with Stage() as stage:
        pid = stage.launch()
        with stage.layer(pid, greet=False) as silent, stage.layer(pid) as loud:
            began = time.monotonic()
            said = line("fault", code="x", text="y" * 3900)
            try:
                for _ in range(2 * 1024 * 1024 // len(said)):
                    loud.say_raw(said)
            except (BrokenPipeError, ConnectionResetError):
                pass
            assert loud.is_closed()
            assert silent.is_closed() and 4 < time.monotonic() - began < 10


def test_eight_processes_of_a_program_are_listened_to():
    with Stage() as stage:
        pid = stage.launch()
        layers = [Layer(pid) for _ in range(8)]
        assert [layer.read()[0] for layer in layers] == ["status"] * 8
        with stage.layer(pid, greet=False) as ninth:
            assert ninth.is_closed() and "8 processes" in stage.daemon.log()
        layers.pop().end()
        time.sleep(0.1)
        with stage.layer(pid) as again:
            assert again.read()[0] == "status"
        for layer in layers:
            layer.end()


def test_another_user_is_not_listened_to():
    if os.geteuid() != 0:
        skip("needs root, to become another user")
    with Stage() as stage:
        pid = stage.launch()
        path = environment_of(pid)["PROFD_GPU_SOCKET"]
        for folder in (stage.root, stage.runtime, os.path.dirname(path)):
            os.chmod(folder, 0o755)
        os.chmod(path, 0o666)
        child = os.fork()
        if child == 0:
            try:
                os.setuid(NOBODY)
                peer = socket.socket(socket.AF_UNIX)
                peer.connect(path)
                peer.settimeout(4)
                os._exit(0 if peer.recv(1) == b"" else 1)
            finally:
                os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
        assert "no longer listened to" in stage.daemon.log()


if __name__ == "__main__":
    main(globals())
