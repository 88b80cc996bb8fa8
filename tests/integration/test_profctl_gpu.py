"""profctl gpu: what it is told by options, environment and settings, the program in the user's terminal, and the document that is there at the end."""
import contextlib
import json
import os
import pty
import re
import signal
import subprocess

from fake_gpu_layer import Layer, Parts
from gpu_listener import LAVAPIPE, convert, frames_in, frames_program, groups_of, need
from gpu_stage import begin, write_document
from harness import alive, main, program, skip, target, wait_until
from xserver import display
from test_profctl import Terminal, daemons, home, profctl

KNOWN = ("PROFD_GPU", "PROFD_ENABLE_GPU", "VK_", "ENABLE_VULKAN")


@contextlib.contextmanager
def stage(real=True):
    """A world of its own; real: with lavapipe and RenderDoc, otherwise a layer and a RenderDoc that are only there."""
    if real:
        need()
    with home() as (root, env):
        env = {name: value for name, value in env.items() if not name.startswith(KNOWN)}
        # Where the private folders of armed programs are, also of a daemon that is killed.
        env.update({"XDG_RUNTIME_DIR": os.path.join(root, "rt"), "RENDERDOC_TEMP": root})
        os.mkdir(env["XDG_RUNTIME_DIR"], 0o700)
        env.update({"VK_ICD_FILENAMES": LAVAPIPE[0]} if real else Parts(os.path.join(root, "parts")).environment())
        yield root, env


def gpu(env, *args, **more):
    return profctl(env, "gpu", *map(str, args), **more)


def document(done):
    """The path that was printed, which is the last line."""
    path = done.stderr.rstrip("\n").rsplit("\n", 1)[-1]
    assert path.startswith("/") and path.endswith("/capture.rdc") and os.path.exists(path), done
    return path


def record(env):
    """Of the newest capture."""
    done = profctl(env, "--json", "show", "--last")
    assert done.returncode == 0, done
    return json.loads(done.stdout)


def bare(env, *args):
    return subprocess.run(frames_program(*args), env=env, capture_output=True, text=True, timeout=60, check=True).stdout


def test_the_frames_that_are_asked_for_are_in_the_document_and_the_program_is_as_ever():
    with stage() as (root, env):
        for argv in (frames_program("--frames", 6), ["sh", "-c", "env %s; exit 5" % " ".join(frames_program("--frames", 6))]):
            done = gpu(env, "--gpu-trace-start-frame", 2, "--gpu-trace-end-frame", 3, "-o", root, "--label", "the label", "--", *argv)
            assert done.returncode == (5 if argv[0] == "sh" else 0) and done.stdout == bare(env, "--frames", 6), done
            assert re.search(r"^profctl: recorded frames 2 to 3 \(asked for: frames 2 to 3\) by submit on llvmpipe", done.stderr), done
            assert frames_in(document(done)) == ["frame 2", "frame 3"] and document(done).startswith(root + "/")
            assert record(env)["label"] == "the label"
        shown = profctl(env, "show", "--last")
        assert document(done) in shown.stdout and "recorded frames 2 to 3" in shown.stdout and " -- sh" not in shown.stdout, shown
        assert document(done) in profctl(env, "captures").stdout
        assert record(env)["argv"] == ["sh", "-c", "env %s; exit 5" % " ".join(frames_program("--frames", 6))]


def test_who_keeps_layers_out_has_these_two_all_the_same():
    with stage() as (_, env):
        for variables in ({"VK_LOADER_LAYERS_DISABLE": "~all~"}, {"VK_LOADER_LAYERS_DISABLE": "*renderdoc*,*profd*", "VK_LOADER_LAYERS_ENABLE": "*mesa*"}):
            done = gpu(dict(env, **variables), "--gpu-trace-start-frame", 2, "--no-verify", *frames_program("--frames", 4))
            assert done.returncode == 0 and frames_in(document(done)) == ["frame 2"], (variables, done)


def test_a_program_of_opengl():
    if not os.path.exists(target("gl_frames")):
        skip("gl_frames is not built: no headers of EGL and GLES (libegl-dev, libgles-dev)")
    with stage() as (_, env):
        done = gpu(env, "--api", "gl", "--gpu-trace-start-frame", 2, "--gpu-trace-end-frame", 3, target("gl_frames"), "--frames", 6)
        assert done.returncode == 0 and "recorded frames 2 to 3 (asked for: frames 2 to 3) by present on llvmpipe" in done.stderr, done
        assert [word for word in groups_of(document(done)) if word.startswith("frame")] == ["frame 2", "frame 3"]
        done = gpu(env, "--api", "metal", "true")
        assert done.returncode != 0 and "metal" in done.stderr and "vulkan" in done.stderr, done


def test_each_kind_of_range():
    with stage() as (_, env):
        for options, frames, told in ((["--frames", 1], [0], "asked for: 1 frame from the first on"),
                                      (["--gpu-trace-start-frame", 1, "--frame-by", "label:frame"], [1], "by label:frame on "),
                                      (["--gpu-trace-start-frame", 4, "--gpu-trace-end-frame", 90], [4, 5], "warning: "),
                                      ([], [0, 1, 2, 3, 4, 5], "asked for: all until it is ended")):
            done = gpu(env, *options, *frames_program("--frames", 6))
            assert done.returncode == 0 and told in done.stderr, done
            assert frames_in(document(done)) == ["frame %d" % number for number in frames], done
        done = gpu(env, "-d", "0.05", *frames_program("--frames", 100, "--frame-ms", 5))
        assert done.returncode == 0 and "asked for: 0.05 s" in done.stderr and 1 < len(frames_in(document(done))) < 100, done


def test_a_window_on_the_users_display_is_recorded_by_its_presents():
    with stage() as (_, env), display() as name:
        done = gpu(dict(env, DISPLAY=name), "--gpu-trace-start-frame", 5, "--gpu-trace-end-frame", 6, "vkcube", "--c", 20)
        assert done.returncode == 0 and "recorded frames 5 to 6 (asked for: frames 5 to 6) by present on llvmpipe" in done.stderr, done
        calls = [chunk.get("name") for chunk in convert(document(done)).iter("chunk")]
        assert calls.count("vkQueuePresentKHR") == 2 and calls.count("vkQueueSubmit") == 2, calls


def test_quiet_and_json():
    with stage() as (_, env):
        done = gpu(env, "--quiet", "--frames", 1, *frames_program("--frames", 2))
        assert (done.returncode, done.stderr) == (0, "") and done.stdout == bare(env, "--frames", 2)
        done = gpu(env, "--json", "--frames", 1, *frames_program("--frames", 2))
        event = json.loads(done.stderr)
        assert event["method"] == "GpuTraceFinished" and os.path.exists(event["params"]["trace_path"]) and event["params"]["first_frame"] == 0
        assert event["params"]["verified"] is True, event
        done = gpu(env, "--json", "--no-verify", "--frames", 1, *frames_program("--frames", 2))
        assert json.loads(done.stderr)["params"]["verified"] is False and record(env)["options"]["verify"] is False, done


def test_a_progress_line_is_drawn_where_it_spoils_nothing():
    with stage() as (_, env):
        mine, theirs = pty.openpty()
        done = subprocess.run([program("profctl"), "gpu", "--gpu-trace-start-frame", "60", "--gpu-trace-end-frame", "120",
                               *frames_program("--frames", 130, "--frame-ms", 10)], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=theirs, timeout=60)
        os.close(theirs)
        text = b""
        with contextlib.suppress(OSError):
            while piece := os.read(mine, 65536):
                text += piece
        os.close(mine)
        lines = text.decode().split("\r\033[K")
        assert done.returncode == 0 and re.match(r"profctl: recorded frames 60 to 120", lines[-1]), lines
        assert any(re.fullmatch(r"armed: \d+\.\d s, frame \d+", line) for line in lines), lines
        assert any(re.fullmatch(r"recording: \d+\.\d s, frame \d+.*", line) for line in lines), lines


def test_the_program_runs_on_when_the_daemon_is_killed():
    with stage() as (_, env):
        argv = frames_program("--frames", 300, "--frame-ms", 5)
        running = subprocess.Popen([program("profctl"), "gpu", *argv], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_until(lambda: daemons(env) and tracing(env), 30, "the first frame")
        os.kill(daemons(env)[0], signal.SIGKILL)
        out, err = running.communicate(timeout=60)
        assert running.returncode == 6 and out == bare(env, "--frames", 300), (running.returncode, out, err)
        assert "the GPU trace was not completed; the program was not disturbed" in err, err


def test_a_trace_that_is_lost_says_by_which_signal_its_program_died():
    with stage() as (_, env):
        for number in (signal.SIGKILL, signal.SIGSEGV):
            running = subprocess.Popen([program("profctl"), "gpu", "--gpu-trace-start-frame", "3", "--gpu-trace-end-frame", "90000",
                                        *frames_program("--frames", 100000, "--frame-ms", 5)], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            wait_until(lambda: daemons(env) and tracing(env), 30, "the first frame")
            os.kill(record(env)["traced_pid"], number)
            _, err = running.communicate(timeout=60)
            assert running.returncode == 128 + number and "its document is lost" in err, err
            assert err.endswith("profctl: the program was ended by %s (signal %d)\n" % (number.name, number)), err


def test_ctrl_c_ends_a_trace_without_a_range_and_then_the_program():
    with stage() as (_, env):
        terminal = Terminal([program("profctl"), "gpu", *frames_program("--frames", 100000, "--frame-ms", 5)], env)
        try:
            wait_until(lambda: daemons(env) and tracing(env), 30, "the first frame")
            terminal.insist(b"\x03", lambda: "ending the trace" in terminal.poll_text(), "Ctrl-C")
            terminal.wait_text("/capture.rdc\r\n")
            found = record(env)
            assert found["reason"] == "stopped" and alive(found["traced_pid"]) and "\033[K" not in terminal.text, terminal.text
            assert frames_in(found["trace_path"]) == ["frame %d" % n for n in range(found["first_frame"], found["last_frame"] + 1)]
            terminal.type(b"\x03")
            status = terminal.wait()
            assert os.WEXITSTATUS(status) == 128 + signal.SIGTERM and not alive(found["traced_pid"]), terminal.text
        finally:
            terminal.close()


def test_ctrl_c_again_ends_all_that_is_in_the_foreground():
    with stage() as (_, env):
        script = "%s; echo after" % " ".join(frames_program("--frames", 100000, "--frame-ms", 5))
        terminal = Terminal([program("profctl"), "gpu", "--no-verify", "sh", "-c", script], env)
        try:
            wait_until(lambda: daemons(env) and tracing(env), 30, "the first frame")
            terminal.insist(b"\x03", lambda: "ending the trace" in terminal.poll_text(), "Ctrl-C")
            terminal.wait_text("/capture.rdc\r\n")
            pid = record(env)["traced_pid"]
            assert alive(pid)
            terminal.type(b"\x03")
            status = terminal.wait()
            wait_until(lambda: not alive(pid), 10, "the end of what the shell had started")
            assert os.WEXITSTATUS(status) == 128 + signal.SIGTERM and "after" not in terminal.text, terminal.text
        finally:
            terminal.close()


@contextlib.contextmanager
def recorded(env):
    """(terminal, pid, layer, template) of a program that a played layer records until it is stopped."""
    terminal = Terminal([program("profctl"), "gpu", "--no-verify", "sh", "-c", "echo p-$$-; read line"], env)
    try:
        pid = int(re.search(r"p-(\d+)-\r\n", terminal.wait_text("-\r\n"))[1])
        layer = Layer(pid)
        layer.device()
        asked = layer.wait_for("start")
        begin(layer, 0)
        wait_until(lambda: tracing(env), 10, "the first frame")
        yield terminal, pid, layer, asked
        layer.end()
    finally:
        terminal.close()


def test_ctrl_c_again_waits_for_the_document():
    with stage(real=False) as (_, env), recorded(env) as (terminal, pid, layer, asked):
        terminal.type(b"\x03")
        layer.wait_for("stop")
        terminal.type(b"\x03")
        terminal.wait_text("the program is ended when the trace is written")
        assert alive(pid)
        path = write_document(asked)
        layer.say("document", path=path, bytes=os.path.getsize(path), first=0, last=0)
        assert os.WEXITSTATUS(terminal.wait()) == 128 + signal.SIGTERM and "/capture.rdc\r\n" in terminal.text, terminal.text
        assert record(env)["state"] == "finished" and not alive(pid)


def test_ctrl_c_a_third_time_does_not_wait():
    with stage(real=False) as (_, env), recorded(env) as (terminal, pid, layer, asked):
        for text in ("ending the trace", "Ctrl-C again ends it now"):
            terminal.type(b"\x03")
            terminal.wait_text(text)
        terminal.type(b"\x03")
        wait_until(lambda: not alive(pid), 10, "the program's end")
        layer.end()
        assert os.WEXITSTATUS(terminal.wait()) == 128 + signal.SIGTERM and "there is no GPU trace" in terminal.text, terminal.text


def test_with_a_range_ctrl_c_is_the_programs():
    with stage() as (_, env):
        argv = frames_program("--frames", 100000, "--frame-ms", 5)
        terminal = Terminal([program("profctl"), "gpu", "--gpu-trace-start-frame", "3", "--gpu-trace-end-frame", "90000", *argv], env)
        try:
            wait_until(lambda: daemons(env) and tracing(env), 30, "the first frame")
            terminal.type(b"\x03")
            assert os.WTERMSIG(terminal.wait()) == signal.SIGINT, terminal.text
            # What was recorded was in the program's memory.
            assert "there is no GPU trace" in terminal.text and "its document is lost" in terminal.text, terminal.text
            assert int(re.search(r"in frame (\d+) of a recording from frame 3 on", terminal.text)[1]) >= 3, terminal.text
        finally:
            terminal.close()


def test_a_terminal_that_is_closed_ends_the_program():
    with stage(real=False) as (_, env):
        for options in ([], ["-d", "30"], ["--gpu-trace-start-frame", "3"]):
            terminal = Terminal([program("profctl"), "gpu", *options, "sh", "-c", "echo p-$$-; exec sleep 60"], env)
            pid = int(re.search(r"p-(\d+)-\r\n", terminal.wait_text("-\r\n"))[1])
            os.close(terminal.master)
            wait_until(lambda: not alive(pid), 10, "the program's end")
            assert os.waitstatus_to_exitcode(os.waitpid(terminal.pid, 0)[1]) == 128 + signal.SIGHUP, options


def tracing(env):
    return [line for line in profctl(env, "--json", "captures").stdout.splitlines() if json.loads(line)["state"] == "sampling"]


def test_what_a_setting_is_comes_from_option_environment_or_file():
    with stage(real=False) as (root, env):
        other, settings = os.path.join(root, "other"), os.path.join(root, "settings.json")
        os.mkdir(other)
        with open(settings, "w") as file:
            json.dump({"gpu_trace_start_frame": 7, "gpu_trace_end_frame": 9, "gpu_trace_output_directory": other, "enable_gpu_tracing": True,
                       "window_title": "an engine's own", "frames": 3}, file)
        file, start, end = ["--settings", settings], "PROFD_GPU_TRACE_START_FRAME", "PROFD_GPU_TRACE_END_FRAME"
        for variables, options, expected in (
                ({}, file, (7, 9, None, other)), ({end: "8"}, file, (7, 8, None, other)), ({start: "", end: ""}, file, (7, 9, None, other)),
                ({start: "1", end: "2"}, file + ["--gpu-trace-end-frame", "5"], (1, 5, None, other)), ({start: "4"}, [], (4, 4, None, None)),
                ({"PROFD_GPU_TRACE_OUTPUT_DIRECTORY": root}, file, (7, 9, None, root)), ({"PROFD_ENABLE_GPU_TRACING": "YES"}, file, (7, 9, None, other)),
                # An end that was meant for another start.
                ({}, file + ["--gpu-trace-start-frame", "10"], (10, 10, None, other)), ({start: "11"}, file, (11, 11, None, other)),
                ({end: "3"}, ["--gpu-trace-start-frame", "4"], (4, 4, None, None)), ({}, file + ["--gpu-trace-start-frame", "8"], (8, 9, None, other)),
                ({"PROFD_GPU_TRACE_STARTFRAME": "", "PROFD_GPU_LAYERS": "x", "GPU_TRACE_START": "1"}, file, (7, 9, None, other)),
                ({start: "1"}, file + ["-o", ".", "--frames", "2"], (None, None, 2, root)),
                # What is beaten is not looked at.
                ({start: "x"}, ["--gpu-trace-start-frame", "0"], (0, 0, None, None))):
            done = gpu(dict(env, **variables), *options, "--timeout", "0.2", "true", cwd=root)
            assert done.returncode == 6 and "there is no GPU trace" in done.stderr, done
            found = record(env)
            assert (found["start_frame"], found["end_frame"], found["frames"]) == expected[:3], (variables, options, found)
            assert os.path.dirname(found["folder"]) == (expected[3] or os.path.join(root, "share", "profd", "captures")), (variables, options, found)


def test_what_is_wrong_is_named_with_its_value_and_the_remedy():
    with stage(real=False) as (root, env):
        mark, settings = os.path.join(root, "mark"), os.path.join(root, "settings.json")

        def refused(variables, options, *texts):
            done = gpu(dict(env, **variables), *options, "touch", mark, cwd=root)
            assert done.returncode == 125 and not os.path.exists(mark) and done.stdout == "", (options, done)
            assert all(text in done.stderr for text in texts) and done.stderr.count("\n") == 1, (texts, done.stderr)

        for text, texts in (('{"gpu_trace_start_frame": "2"}', ("gpu_trace_start_frame in settings.json is \"2\"", "a frame's number")),
                            ('{"gpu_trace_start_frame": -1}', ("gpu_trace_start_frame", "-1", "from 0")),
                            ('{"gpu_trace_end_frame": 2.5}', ("gpu_trace_end_frame", "2.5")), ('{"gpu_trace_end_frame": 2}', ("gpu_trace_end_frame", "first frame")),
                            ('{"gpu_trace_start_frame": 3, "gpu_trace_end_frame": 2}', ("gpu_trace_end_frame in settings.json is 2", "before", "3")),
                            ('{"enable_gpu_tracing": "yes"}', ("enable_gpu_tracing", '"yes"', "true or false")),
                            ('{"gpu_trace_output_directory": "/no/such"}', ("gpu_trace_output_directory", "/no/such", "mkdir")),
                            ('{"gpu_trace_output_directory": 1}', ("gpu_trace_output_directory", "a folder's path")),
                            ('{"gpu_trace_device": ""}', ("gpu_trace_device", "name, index or uuid")),
                            ('{"gpu_trace_startframe": 1}', ("gpu_trace_startframe in settings.json", "gpu_trace_start_frame")),
                            ('{"gpu_trace_device": "%s"}' % ("x" * 300 + '", "gpu_trace_start_frame": {"a": "' + "y" * 5000 + '"}, "z": "'), ("…", "frame's number")),
                            ('{"gpuTraceStartFrame": 1}', ("gpuTraceStartFrame in settings.json", "gpu_trace_start_frame")),
                            ('\ufeff{"gpu_trace_start_frame": "mark"}', ("gpu_trace_start_frame in settings.json is \"mark\"",)),
                            ('', ("settings.json: it is empty",)), (' \n', ("settings.json: it is empty",)), ('{"a": 1, "a": 2}', ("line 1", "duplicate")),
                            ('{"a": "%s"}' % ("x" * 1024 * 1024), ("settings.json: it is larger than 1024 KiB",)),
                            ('{"a": 1}\0', ("settings.json: line 1",)),
                            ('[]', ("settings.json", "no JSON object")), ('{\n"a": 1,\n}', ("settings.json: line 3",)),
                            ('{"gpu_trace_start_frame": "\\u001b[31m"}', ("gpu_trace_start_frame",))):
            with open(settings, "w") as file:
                file.write(text)
            refused({}, ["--settings", "settings.json"], *texts)
        refused({}, ["--settings", "/no/such.json"], "settings file /no/such.json: No such file or directory\n")
        refused({}, ["--settings", "."], "settings file .: it is a folder", "name the file in it")
        refused({}, ["--settings", "/dev/zero"], "larger than 1024 KiB")
        refused({}, ["--settings", "/dev/stdin"], "settings file /dev/stdin: it is empty")
        with open(settings, "w", encoding="utf-16") as file:
            file.write("{}")
        refused({}, ["--settings", settings], "it is UTF-16; save it as UTF-8")
        for name in ("PROFD_GPU_TRACE_STARTFRAME", "PROFD_GPU_TRACE", "PROFD_GPU_TRACING", "profd_gpu_trace_start_frame", "PROFD_GPU_START_FRAME", "PROFD_ENABLE_GPU",
                     "PROFD_TRACE_OUTPUT_DIR", "PROFD_END_FRAME"):
            refused({name: "2"}, [], name + " in the environment is no setting", "PROFD_GPU_TRACE_START_FRAME")
        refused({}, ["--settings", "settings.json", "--gpu-trace-start-frame", "3", "--gpu-trace-end-frame", "2"], "UTF-16")
        refused({}, ["--gpu-trace-start-frame", "3", "--gpu-trace-end-frame", "2"], "--gpu-trace-end-frame is 2, before")
        for variables, texts in (({"PROFD_GPU_TRACE_START_FRAME": "two"}, ("PROFD_GPU_TRACE_START_FRAME is \"two\"", "a frame's number")),
                                 ({"PROFD_GPU_TRACE_START_FRAME": " 2"}, ('" 2"',)), ({"PROFD_GPU_TRACE_START_FRAME": "99999999999999999999"}, ("99999999999999999999",)),
                                 ({"PROFD_ENABLE_GPU_TRACING": "maybe"}, ("PROFD_ENABLE_GPU_TRACING", "maybe", "on or off")),
                                 ({"PROFD_GPU_TRACE_OUTPUT_DIRECTORY": "nowhere"}, ("PROFD_GPU_TRACE_OUTPUT_DIRECTORY", "nowhere", "No such file"))):
            refused(variables, [], *texts)
        for options, texts in ((["--gpu-trace-start-frame", "x"], ("--gpu-trace-start-frame", '"x"')), (["--frames", "0"], ("--frames 0",)),
                               (["-d", "0"], ("--duration 0",)), (["--gpu-trace-end-frame", "1"], ("--gpu-trace-end-frame", "first frame")),
                               (["--frames", "1", "--gpu-trace-start-frame", "1"], ("--gpu-trace-start-frame", "--frames")),
                               (["--frame-by", "draw"], ("--frame-by is \"draw\"", "label")), (["--frames", "1", "-d", "1"], ("--frames", "--duration"))):
            refused({}, options, *texts)
        refused({}, ["--frame-by", "manual", "--frames", "1"], "with --frame-by manual")
        refused({"PROFD_GPU_TRACE_DEVICE": "\udcff"}, [], "PROFD_GPU_TRACE_DEVICE", "UTF-8")
        assert gpu(env, "--frames", "1").returncode == 125
        # What the daemon says of a device is passed on.
        env["VK_ICD_FILENAMES"] = LAVAPIPE[0] if LAVAPIPE else "/nowhere"
        refused({}, ["--device", "no such GPU"], "no such GPU" if LAVAPIPE else "no Vulkan driver")


def test_without_a_layer_the_program_does_not_run():
    with stage(real=False) as (root, env):
        mark = os.path.join(root, "mark")
        done = gpu(dict(env, PROFD_GPU_LAYER=root), "touch", mark)
        assert done.returncode == 125 and "layer" in done.stderr and "PROFD_GPU_LAYER" in done.stderr and not os.path.exists(mark), done
        done = profctl(dict(env, PROFD_SOCKET=os.path.join(root, "other.sock")), "--no-start", "gpu", "touch", mark)
        assert done.returncode == 125 and "no profd listens" in done.stderr and not os.path.exists(mark), done


def test_exit_statuses_are_the_programs():
    with stage(real=False) as (root, env):
        for argv, status, text in ((["sh", "-c", "exit 7"], 7, "there is no GPU trace"), (["true"], 6, "there is no GPU trace"),
                                   (["sh", "-c", "kill -KILL $$"], 128 + 9, "there is no GPU trace"), ([root], 126, "directory"),
                                   (["no-such-program-anywhere"], 127, "no-such-program-anywhere")):
            done = gpu(env, "--frames", 1, *argv)
            assert done.returncode == status and text in done.stderr, (argv, done)
        listed = [json.loads(line) for line in profctl(env, "--json", "captures").stdout.splitlines()]
        assert len(listed) == 3 and all(each["state"] == "failed" for each in listed), listed


def test_switched_off_the_program_runs_as_if_it_had_been_started_itself():
    with home() as (root, env):
        settings = os.path.join(root, "off.json")
        with open(settings, "w") as file:
            json.dump({"enable_gpu_tracing": False, "gpu_trace_start_frame": 1}, file)
        for variables, options in (({"PROFD_ENABLE_GPU_TRACING": "off"}, []), ({}, ["--settings", settings]),
                                   ({"PROFD_ENABLE_GPU_TRACING": "0"}, ["--settings", settings])):
            done = gpu(dict(env, **variables), *options, "sh", "-c", "cat; echo $PROFD_GPU.$LD_PRELOAD; exit 3", input="in\n", stdin=None)
            assert (done.returncode, done.stdout) == (3, "in\n.\n") and "enable" in done.stderr.lower() and done.stderr.count("\n") == 1, done
        assert gpu(dict(env, PROFD_ENABLE_GPU_TRACING="false"), "--quiet", "true").stderr == ""
        assert gpu(dict(env, PROFD_ENABLE_GPU_TRACING="no"), "no-such-program-anywhere").returncode == 127
        assert gpu(dict(env, PROFD_ENABLE_GPU_TRACING="no"), root).returncode == 126
        assert not daemons(env), "a daemon was asked"


def test_what_the_program_has_in_its_environment_is_kept_byte_by_byte():
    with stage(real=False) as (root, env):
        strange = os.fsencode(root) + b"/\xff\n\"$x"
        own = dict({os.fsencode(name): os.fsencode(value) for name, value in env.items()}, XDG_DATA_DIRS=strange, OTHER=strange)
        done = subprocess.run([program("profctl"), "gpu", "--frames", "1", "--quiet", "env", "-0"], env=own, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              timeout=60)
        found = dict(pair.split(b"=", 1) for pair in done.stdout.split(b"\0") if pair)
        assert found[b"OTHER"] == strange and found[b"XDG_DATA_DIRS"].endswith(b"/renderdoc:" + strange), found
        assert found[b"PROFD_GPU"] == b"1" and found[b"LD_PRELOAD"].endswith(b"libprofd_gpu_nobind.so"), found
        assert set(os.fsencode(name) for name in env) <= set(found)


if __name__ == "__main__":
    main(globals())
