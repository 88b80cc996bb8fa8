"""profctl about captures and events: capture, wait, show, label, pin, delete, events, --last, exit statuses."""
import json
import os
import subprocess

from harness import main, program, read_folded, target, wait_until
from pictures import Picture
from test_profctl import home, profctl

BURN = "i=0; while [ $i -lt %d ]; do i=$((i+1)); done"
FOREVER = "while :; do :; done"


def get(env, capture):
    return json.loads(profctl(env, "call", "GetCapture", json.dumps({"capture_id": capture})).stdout)


def profiled(env, *more):
    """The capture of a program that has run."""
    done = profctl(env, "launch", "--profile", *more, "sh", "-c", BURN % 60000)
    assert done.returncode == 0 and done.stderr.startswith("profctl: capture "), done
    return done.stderr.split()[2]


def test_a_program_is_profiled_waited_for_and_shown():
    with home() as (root, env):
        capture = profiled(env, "-F", "997")
        done = profctl(env, "wait", capture)
        assert done.returncode == 0, done
        record = get(env, capture)
        assert record["samples"] > 0 and record["hz"] == 997, record
        for text in ("capture %s: finished (target_exited)" % capture, "%d samples" % record["samples"], "   self   total  function",
                     record["svg_path"], record["folded_path"], "command: sh -c i=0;"):
            assert text in done.stdout, (text, done.stdout)
        for args in (["show", capture], ["show", "--last"], ["show", capture[:-1]], ["wait", "--last"]):
            assert profctl(env, *args).stdout == done.stdout, args
        assert json.loads(profctl(env, "show", "--json", "--last").stdout) == record
        lines = profctl(env, "--json", "captures").stdout.splitlines()
        assert [json.loads(line)["capture_id"] for line in lines] == [capture]


SVG = ["--svg", "title=a & \u20ac", "--svg", "width_px=500", "--svg", "layout=flame", "--svg", "min_share_ppm=0", "--svg", "order=weight",
       "--svg", "colors=image", "--svg", "threads=separate", "--svg", "threads=merged"]
ASKED = {"title": "a & \u20ac", "width_px": 500, "layout": "flame", "min_share_ppm": 0, "order": "weight", "colors": "image", "threads": "merged"}


def test_the_flame_graph_looks_as_the_options_say():
    with home() as (root, env):
        build = profctl(env, "launch", "--hold", "sh", "-c", BURN % 60000).stdout.strip()
        commands = (["record", *SVG, "--", "sh", "-c", BURN % 60000], ["launch", *SVG, "sh", "-c", BURN % 60000], ["capture", *SVG, build])
        for command in commands:
            done = profctl(env, *command)
            assert done.returncode == 0, (command, done)
            assert command[0] != "capture" or profctl(env, "resume", build).returncode == 0
            assert profctl(env, "wait", "--last").returncode == 0
            record = json.loads(profctl(env, "--json", "show", "--last").stdout)
            assert record["options"]["svg"] == ASKED, (command, record["options"])
            picture = Picture(record["svg_path"])
            assert (picture.title, picture.width, picture.layout) == ("a & \u20ac", 500, "flame") and picture.legend[0][0], command


def test_a_wrong_option_of_the_flame_graph_is_told_with_the_right_ones():
    keys = "title, width_px, min_share_ppm, order, layout, colors or threads"
    with home() as (root, env):
        for wrong, told in (("titel=x", keys), ("title", keys), ("=x", keys), ("", keys), ("layout=round", "icicle or flame"),
                            ("colors=", "kind, image or name"), ("width_px=199", "from 200 to 20000"), ("width_px=12x", "from 200 to 20000"),
                            ("min_share_ppm=1000001", "from 0 to 1000000"), ("title=" + "x" * 257, "257 bytes, at most 256"), (b"title=\xff", "not UTF-8")):
            for command, status in (("record", 125), ("launch", 2), ("capture", 2)):
                done = profctl(env, command, "--svg", wrong, "true")
                assert done.returncode == status and told in done.stderr and done.stdout == "", (command, wrong, done)
        assert not os.listdir(root) or profctl(env, "--no-start", "ps").returncode == 3, "nothing was started"


def test_stacks_are_made_as_the_options_say():
    with home() as (root, env):
        asked = ["--unwind", "fp", "--max-depth", "7", "--no-stitch"]
        build = profctl(env, "launch", "--hold", target("recursion")).stdout.strip()
        for command in (["record", *asked, "--", target("recursion")], ["launch", *asked, target("recursion")], ["capture", *asked, build]):
            done = profctl(env, *command)
            assert done.returncode == 0, (command, done)
            assert command[0] != "capture" or profctl(env, "resume", build).returncode == 0
            assert profctl(env, "wait", "--last").returncode == 0
            record = json.loads(profctl(env, "--json", "show", "--last").stdout)
            assert {name: record["options"][name] for name in ("unwind", "max_depth", "stitch")} == {"unwind": "fp", "max_depth": 7, "stitch": False}, record
            assert record["unwinder"] == "fp" and max(len(stack) for stack in read_folded(record["folded_path"])) == 8, command
        for wrong, told in ((["--unwind", "lbr"], "auto, fp or dwarf"), (["--max-depth", "0"], "from 1 to 4096"), (["--max-depth", "4097"], "from 1 to 4096")):
            for command, status in (("record", 125), ("launch", 2), ("capture", 2)):
                done = profctl(env, command, *wrong, "true")
                assert done.returncode == status and told in done.stderr and done.stdout == "", (command, wrong, done)


def test_last_is_the_newest_and_a_beginning_must_be_one_captures():
    with home() as (root, env):
        done = profctl(env, "show", "--last")
        assert done.returncode == 5 and "no capture" in done.stderr, done
        first, second = profiled(env), profiled(env)
        for capture in (first, second):
            assert profctl(env, "wait", capture).returncode == 0
        assert second in profctl(env, "show", "--last").stdout
        done = profctl(env, "show", first[:4])
        assert done.returncode == 5 and first in done.stderr and second in done.stderr, done
        for wrong in ("nothing", "", "x" * 200, b"\xff"):
            assert profctl(env, "show", wrong).returncode == 5, wrong


def test_a_running_program_is_captured_by_build_and_by_pid():
    with home() as (root, env):
        build = profctl(env, "launch", "sh", "-c", FOREVER).stdout.strip()
        done = profctl(env, "capture", "-d", "0.6", "--label", "mine", "--wait", build)
        assert done.returncode == 0 and "label: mine" in done.stdout and "(duration)" in done.stdout, done
        capture = profctl(env, "capture", build).stdout.strip()
        assert get(env, capture)["state"] in ("armed", "sampling")
        done = profctl(env, "wait", "--timeout", "0.1", capture)
        assert done.returncode == 7 and capture in done.stderr, done
        done = profctl(env, "capture", build)
        assert done.returncode == 1 and capture in done.stderr, done
        done = profctl(env, "delete", capture) # what the daemon advises is said in commands
        assert done.returncode == 1 and "profctl stop --capture" in done.stderr and "StopCapture" not in done.stderr, done
        wait_until(lambda: get(env, capture)["samples"] > 0, 20, "a sample") # on a busy machine it may not have run yet
        done = profctl(env, "stop", "--capture", capture)
        assert done.returncode == 0 and done.stdout == "capture %s: finished\n" % capture, done
        pid = json.loads(profctl(env, "--json", "ps").stdout.splitlines()[0])["pid"]
        done = profctl(env, "capture", "--pid", str(pid))
        assert done.returncode in (0, 1), done
        done = profctl(env, "capture", "4000000")
        assert done.returncode == 5, done
        done = profctl(env, "capture", "no-build")
        assert done.returncode == 5 and "no-build" in done.stderr, done
        gone = profctl(env, "stop", "--capture", "--discard", capture)
        assert gone.returncode == 0, gone


def test_a_capture_without_samples_has_failed():
    with home() as (root, env):
        build = profctl(env, "launch", "--hold", "--profile", "sleep", "100")
        capture = build.stderr.split()[2]
        assert profctl(env, "stop", build.stdout.strip()).returncode == 0
        done = profctl(env, "wait", capture)
        assert done.returncode == 6 and "capture %s: failed" % capture in done.stdout and "error: " in done.stdout, done
        assert profctl(env, "show", capture).returncode == 0
        red = profctl(env, "--color=always", "captures").stdout
        assert "\033[31m" in red and "\033" not in profctl(dict(env, NO_COLOR="1"), "captures").stdout
        assert "\033" not in profctl(env, "--color=never", "captures").stdout


def test_labels_pins_and_deletion():
    with home() as (root, env):
        capture = profiled(env)
        profctl(env, "wait", capture)
        folder = os.path.dirname(get(env, capture)["svg_path"])
        assert profctl(env, "label", capture[:12], "before the change").returncode == 0
        assert profctl(env, "pin", "--last").returncode == 0
        record = get(env, capture)
        assert record["label"] == "before the change" and record["pinned"] is True, record
        done = profctl(env, "show", "--last")
        assert "label: before the change" in done.stdout and ", pinned" in done.stdout, done
        assert "[before the change]" in profctl(env, "captures").stdout
        assert profctl(env, "unpin", capture).returncode == 0 and get(env, capture)["pinned"] is False
        assert profctl(env, "label", "--last", "x" * 300).returncode == 2
        other = profiled(env)
        profctl(env, "wait", other)
        done = profctl(env, "delete", "nothing", capture, other)
        assert done.returncode == 5 and "nothing" in done.stderr, done
        assert not os.path.exists(folder)
        assert profctl(env, "--json", "captures").stdout == ""
        assert profctl(env, "show", capture).returncode == 5


def test_events_are_printed_as_they_come_and_from_before():
    with home() as (root, env):
        profctl(env, "daemon", "start")
        follower = subprocess.Popen([program("profctl"), "--json", "events", "-n", "2", "-b", "later", "--since", "0"], env=env, stdout=subprocess.PIPE,
                                    text=True)
        wait_until(lambda: json.loads(profctl(env, "--json", "status").stdout)["clients"] >= 2, 20, "the subscriber")
        profctl(env, "launch", "--id", "other", "true")
        profctl(env, "launch", "--id", "later", "true")
        events = [json.loads(line) for line in follower.stdout]
        assert follower.wait(20) == 0
        assert [event["method"] for event in events] == ["ProcessStarted", "ProcessExited"], events
        assert all(event["params"]["build_id"] == "later" for event in events)
        for name in (b"\xff\xfe", "", "x" * 500):
            done = profctl(env, "events", "-b", name, "-n", "1")
            assert done.returncode == 5 and "a build id is a text of 1 to" in done.stderr, done
        done = profctl(env, "events", "--since", "0", "-n", "2")
        words = [line.split() for line in done.stdout.splitlines()]
        assert [word[1] for word in words] == ["ProcessStarted", "ProcessExited"] and int(words[0][0]) < int(words[1][0]), done
        assert 'build_id="other"' in words[0]
        follower = subprocess.Popen([program("profctl"), "events"], env=env, stdout=subprocess.PIPE, text=True)
        wait_until(lambda: json.loads(profctl(env, "--json", "status").stdout)["clients"] >= 2, 20, "the subscriber")
        profctl(env, "daemon", "stop")
        assert "DaemonStopping" in follower.stdout.read() and follower.wait(20) == 0


def test_doctor_passes_on_the_checks():
    with home() as (root, env):
        done = profctl(env, "--json", "doctor")
        checks = [json.loads(line) for line in done.stdout.splitlines()]
        assert checks and all(check["status"] in ("ok", "warn", "fail") for check in checks), done
        assert done.returncode == (1 if any(check["status"] == "fail" for check in checks) else 0)
        told = profctl(env, "doctor").stdout
        assert all(check["id"] in told and check["message"] in told for check in checks), told


if __name__ == "__main__":
    main(globals())
