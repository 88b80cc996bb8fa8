"""What profctl gpu says when there is no trace: every message and hint in the words of its options, never in the protocol's."""
import contextlib
import os
import re
import subprocess

from fake_gpu_layer import Layer
from gpu_stage import Stage, begin
from harness import main, program
from test_profctl import profctl
from test_profctl_gpu import gpu, stage


def words_of_the_protocol():
    """Methods, and parameters whose names nobody else would use."""
    methods = Stage.describe()["methods"]
    params = {name for method in methods for name in parameters(method.get("params", {}))}
    return [method["name"] for method in methods if method["name"] not in ("Hello", "Ping", "Doctor")] + sorted(name for name in params if "_" in name)


def parameters(params):
    rows = params if isinstance(params, list) else [dict(row, name=name) for name, row in params.items()]
    return [row["name"] for row in rows]


WORDS = []


def check(told, *texts):
    """No word of the protocol's in it; what is told is one line."""
    WORDS.extend([] if WORDS else words_of_the_protocol())
    assert "start_frame" in WORDS and "StartGpuTrace" in WORDS and "on_client_exit" in WORDS
    found = [word for word in WORDS if re.search(r"(?<![\w/-])%s\b" % word, told)]
    assert not found and "gpu {" not in told and "in gpu" not in told and "Hello" not in told and "Describe" not in told, (found, told)
    assert all(text in told for text in texts), (texts, told)
    assert told.count("RenderDoc's own log") + told.count("its log is") <= 1, told


@contextlib.contextmanager
def running(env, *options):
    """(profctl, pid) of a program that waits, under profctl gpu."""
    process = subprocess.Popen([program("profctl"), "gpu", *options, "sh", "-c", "echo $$; read line"], env=env, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process, int(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


def told_of(env, act, *options, **more):
    """What profctl says of a program whose layer does that; the program is ended by it."""
    with running(env, *options) as (process, pid):
        layer = Layer(pid, **more)
        act(layer)
        line = process.stderr.readline()
        os.kill(pid, 9)
        layer.end()
        return line


def fault(code):
    def act(layer):
        layer.device()
        layer.wait_for("start")
        layer.say("fault", code=code, text="the layer's own words")
    return act


def test_what_the_layer_finds_wrong():
    rows = (("layer_order", "VK_INSTANCE_LAYERS"), ("renderdoc_missing", "librenderdoc.so"), ("renderdoc_too_old", "1.4"), ("start_failed", "log is"),
            ("busy", "already"), ("document_missing", "log is"), ("output_not_writable", "choose a folder (-o) that the program can reach"),
            ("nothing_recorded", "record an earlier frame"), ("device_waits", "done all its work"), ("descriptor_closed", "closefrom"),
            ("frame_passed", "later --gpu-trace-start-frame"), ("no_such_boundary", "choose another --frame-by, or none"), ("device_not_found", "sees all"), ("device_ambiguous", "sees all"),
            ("not_capturing", "before its first frame"), ("gremlins", "the recording failed in the program"))
    with stage(real=False) as (_, env):
        for code, text in rows:
            check(told_of(env, fault(code), "--gpu-trace-start-frame", "900"), text, "the layer's own words")


def waiting(act):
    """What the layer does until the trace is given up, and that nothing had begun then."""
    def until(layer):
        act(layer)
        layer.wait_for("start")
        layer.wait_for("stop")
        layer.say("fault", code="not_capturing", text="its first frame had not begun")
    return until


def test_what_a_program_did_not_do():
    def early(layer):
        layer.device()
        layer.frame(3, by="present")

    def late(layer):
        layer.device()
        asked = layer.wait_for("start")
        assert asked["first"] == "2", asked
        layer.frame(7)
        layer.say("fault", code="frame_passed", text="frame 2 has begun already")

    def gone(layer):
        layer.device()
        layer.wait_for("start")
        begin(layer, 2)
        layer.end()

    frames = ("--gpu-trace-start-frame", "2", "--gpu-trace-end-frame", "9")
    with stage(real=False) as (_, env):
        for act, texts in ((lambda layer: None, ("no device", "profctl doctor tells")), (Layer.device, ("no work", "works with the GPU")),
                           (early, ("in frame 3 (by present)", "count by --frame-by submit"))):
            check(told_of(env, waiting(act), *("--gpu-trace-start-frame", "900"), "--timeout", "0.3"), *texts)
        check(told_of(env, late, *frames), "ask for a later --gpu-trace-start-frame, or for the next frames with --frames")
        check(told_of(env, gone, *frames), "its document is lost")
        check(told_of(env, waiting(Layer.device), "--api", "gl", "--timeout", "0.3", "--frames", "1", api="gl"), "--frame-by label:PREFIX, or manual")
        check(told_of(env, waiting(Layer.device), "--api", "gl", "--device", "nope", "--timeout", "0.3", api="gl"), "did not use a GPU nope", "DRI_PRIME")
        for options, texts in (([], ("that uses OpenGL is run with --api gl",)), (["--api", "gl"], ("that uses Vulkan is run with --api vulkan",))):
            check(gpu(env, *options, "true").stderr, *texts)


def test_what_is_refused():
    with stage(real=False) as (root, env):
        locked = os.path.join(root, "file")
        os.close(os.open(locked, os.O_CREAT))
        for options, texts in ((["--api", "metal"], ('--api is "metal" but must be one of "vulkan", "gl"',)),
                               (["--frame-by", "x"], ('--frame-by is "x" but must be auto, present',)), (["--label", "x" * 2000], ("--label is",)),
                               (["--timeout", "604800"], ("--timeout 604800", "86400 seconds at most")),
                               (["--frame-by", "manual", "--frames", "3"], ("with --frame-by manual no frames", "give --duration, or neither")),
                               (["-o", "/proc"], ("-o /proc: cannot make the folder",)), (["-o", locked], (locked,))):
            done = gpu(env, *options, "true")
            assert done.returncode == 125, done
            check(done.stderr, *texts)


def test_what_the_user_says_in_the_protocols_words_is_answered_in_them():
    with stage(real=False) as (_, env):
        done = profctl(env, "call", "StartGpuTrace", '{"build_id": "x", "frame_by": 1}')
        assert "frame_by is 1" in done.stderr, done


if __name__ == "__main__":
    main(globals())
