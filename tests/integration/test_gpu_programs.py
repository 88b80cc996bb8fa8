"""Programs that nobody wrote for profd: Deno and Node computing by WebGPU, from LaunchProcess to documents that RenderDoc's own tools read.

With PROFD_LONG=1 alone; `tools/setup gpu-programs` installs what it needs.
"""
import json
import os
import re
import shutil
import subprocess

from gpu_listener import LAVAPIPE, Listener, convert, frames_program, need
from harness import Daemon, main, skip

PROGRAMS = os.environ.get("PROFD_GPU_PROGRAMS") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "profd", "gpu-programs")
MODULES = os.path.join(PROGRAMS, "node_modules")
SCRIPT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "programs", "fill.mjs"))
SWIFTSHADER = "/usr/lib/chromium/libvk_swiftshader.so"
FRAMES = 6


def need_programs():
    if os.environ.get("PROFD_LONG") != "1":
        skip("real programs only with PROFD_LONG=1 (tools/verify)")
    need()


def deno():
    for system in ("linux-x64-glibc", "linux-arm64-glibc"):
        path = os.path.join(MODULES, "@deno", system, "deno")
        if os.path.exists(path):
            return [path, "run", "--allow-all", "--no-lock", SCRIPT, str(FRAMES)]
    skip("no Deno in %s (tools/setup gpu-programs)" % PROGRAMS)


def node(*backend):
    webgpu, program = os.path.join(MODULES, "webgpu", "index.js"), shutil.which("node")
    if not program or not os.path.exists(webgpu):
        skip("no node, or no webgpu in %s (tools/setup gpu-programs)" % PROGRAMS)
    return [program, SCRIPT, str(FRAMES), webgpu, *backend]


def swiftshader(folder):
    """A driver's manifest for the SwiftShader that Chromium brings: its own names another folder."""
    if not os.path.exists(SWIFTSHADER):
        skip("no SwiftShader (chromium)")
    path = os.path.join(folder, "swiftshader_icd.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"file_format_version": "1.0.0", "ICD": {"library_path": SWIFTSHADER, "api_version": "1.3.0"}}, file)
    return path


def environment(driver, **more):
    return dict({"VK_ICD_FILENAMES": driver, "NO_COLOR": "1", "EGL_PLATFORM": "surfaceless"}, **more)


def bare(argv, env):
    """What the program says without profd."""
    done = subprocess.run(argv, env=dict(os.environ, **env), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done
    return done.stdout


class Run:
    """A daemon for one program after the other; folder: a place for files."""

    def __enter__(self):
        self.daemon = Daemon()
        self.daemon.__enter__()
        self.client = self.daemon.connect()
        self.folder = self.daemon.root
        return self

    def __exit__(self, *failure):
        self.daemon.__exit__(*failure)

    def launch(self, argv, env, gpu=True, **params):
        """Its capture's final record (None without params), and what it printed; it has to end well."""
        build = self.client.call("LaunchProcess", argv=argv, env=env, gpu=gpu, hold=True)["build_id"]
        capture = self.client.call("StartGpuTrace", build_id=build, **params)["capture_id"] if params else None
        self.client.call("ResumeProcess", build_id=build)
        exited = self.client.wait_event("ProcessExited", build_id=build, timeout=60)
        assert exited["exit_code"] == 0, exited
        record = self.client.call("WaitCapture", capture_id=capture) if capture else None
        said = {stream: self.client.call("GetOutput", build_id=build, stream=stream).get("data", "") for stream in ("stdout", "stderr")}
        return record, said


def calls_of(path):
    """Its submits, and its dispatches by the second number of their groups, which tells the frame; in their order."""
    found = []
    for chunk in convert(path).iter("chunk"):
        name = chunk.get("name")
        if name in ("vkCmdDispatch", "glDispatchCompute"):
            x, y, z = [int(number.text) for number in chunk.iter("uint")]
            assert (x, z) == (16, 1)
            found.append(y - 1)
        elif name in ("vkQueueSubmit", "vkQueueSubmit2", "vkQueueSubmit2KHR"):
            found.append("submit")
    return found


def check(run, argv, env, expected, **params):
    """The frames that were asked for are in the document, no others, and the result is what it is without profd. Returns the record."""
    record, said = run.launch(argv, env, **params)
    assert record["state"] == "finished", record
    assert (record["first_frame"], record["last_frame"]) == (expected[0], expected[-1]), record
    assert calls_of(record["trace_path"]) == [word for frame in expected for word in (frame, "submit")]
    assert said["stdout"] == bare(argv, env) and re.match(r"6 frames, numbers [0-9a-f]{8}\n$", said["stdout"]), said
    return record


def test_deno_on_lavapipe():
    need_programs()
    argv, env = deno(), environment(LAVAPIPE[0])
    with Run() as run:
        record = check(run, argv, env, [2, 3], start_frame=2, end_frame=3)
        assert "llvmpipe" in record["device"]["name"] and record["frame_by"] == "submit" and record["traced_exe"] == os.path.realpath(argv[0])
        check(run, argv, env, [0], start_frame=0)
        check(run, ["sh", "-c", 'env "$@"', "sh", *argv], env, [4], start_frame=4, frame_by="submit")


def test_deno_and_node_on_swiftshader():
    need_programs()
    with Run() as run:
        env = environment(swiftshader(run.folder))
        for argv in (deno(), node()):
            record = check(run, argv, env, [2, 3], start_frame=2, end_frame=3)
            assert "SwiftShader" in record["device"]["name"]
        # Dawn hands debug groups on as labels.
        check(run, node(), env, [2, 3], start_frame=2, end_frame=3, frame_by="label:frame ")


def test_node_on_opengl_es():
    need_programs()
    argv, env = node("opengles"), environment(LAVAPIPE[0])
    with Run() as run:
        record, said = run.launch(argv, env, gpu={"api": "gl"}, frame_by="manual")
        assert record["state"] == "finished", record
        assert calls_of(record["trace_path"]) == list(range(FRAMES)), "all of it: Dawn swaps nothing"
        assert said["stdout"] == bare(argv, env)


def validating(env, folder, more=""):
    """env with the validation layer, whose log says all but how it is doing; and the log's path."""
    log = os.path.join(folder, "validation.log")
    with open(os.path.join(folder, "vk_layer_settings.txt"), "w", encoding="utf-8") as file:
        file.write("khronos_validation.debug_action = VK_DBG_LAYER_ACTION_LOG_MSG\nkhronos_validation.report_flags = error,warn,perf\n"
                   "khronos_validation.log_filename = %s\n%s" % (log, more))
    return dict(env, VK_INSTANCE_LAYERS="VK_LAYER_KHRONOS_validation", VK_LAYER_SETTINGS_PATH=folder), log


def read_away(path):
    """What the validation layer said; it makes its log when it is loaded."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    os.remove(path)
    return text


def errors_of(said):
    """Its errors, without the handles of this run."""
    return {re.sub("0x[0-9a-f]+", "", line) for line in said.splitlines() if "(ERROR" in line}


def told_without_profd(listener, argv, driver):
    """Its errors when the program runs under RenderDoc's layer alone."""
    env, log = validating(listener.environment(renderdoc=True, **environment(driver)), listener.folder)
    env = {name: value for name, value in env.items() if name == "PROFD_GPU_RENDERDOC" or not name.startswith("PROFD_GPU")}
    assert listener.run(argv, env).wait(20) == 0
    return errors_of(read_away(log))


def test_the_validation_layer_has_nothing_to_say():
    need_programs()
    if not os.path.exists("/usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json"):
        skip("no validation layer (vulkan-validationlayers)")
    with Listener() as listener:
        swift = swiftshader(listener.folder)
        env, log = validating(environment(LAVAPIPE[0]), listener.folder, "khronos_validation.enables = VK_VALIDATION_FEATURE_ENABLE_BEST_PRACTICES_EXT\n")
        bare(frames_program("--frames", 3), env)
        assert "BestPractices" in read_away(log), "it speaks when there is something to say"
        for argv, driver in ((frames_program("--frames", 3), LAVAPIPE[0]), (deno(), LAVAPIPE[0]), (node(), swift)):
            for renderdoc in (False, True):
                env, _ = validating(listener.environment(renderdoc=renderdoc, **environment(driver)), listener.folder)
                program = listener.run(argv, env)
                connection = listener.accept()
                connection.wait("hello")
                connection.send("start", by="submit", first=1, last=1, template=listener.out("doc"))
                connection.drain()
                assert program.wait(20) == 0
                said = read_away(log)
                # With RenderDoc there is just what RenderDoc alone is told (of its own shaders, and of what the program does without what it hides).
                expected = told_without_profd(listener, argv, driver) if renderdoc else set()
                assert errors_of(said) == expected if renderdoc else said == "", (argv, said, expected)
                assert len(connection.find("document")) == renderdoc, connection.lines


if __name__ == "__main__":
    main(globals())
