"""Captures that cannot be: each wish is told with its clear error on every road, and the daemon stays exactly as it was."""
import os
import tempfile

from footprint import check_as_before, settled
from harness import FOREVER, Daemon, Gate, main, profctl, write
from nobody import NOBODY, as_nobody
from refusals import check_error, check_told


# The sampling's options


WRONG_OPTIONS = [
    ({"hz": 0}, "bad_params", "hz is 0"),
    ({"hz": -1}, "bad_params", "hz is -1"),
    ({"hz": "999"}, "bad_params", 'hz is "999"'),
    ({"hz": 1.5}, "bad_params", "hz is 1.5"),
    ({"hz": 10 ** 9}, "hz_too_high", "1000000000"),
    ({"hz": 2 ** 53}, "hz_too_high", str(2 ** 53)),
    ({"hz": 2 ** 53 + 1}, "bad_params", "hz"),
    ({"duration_ms": 0}, "bad_params", "duration_ms is 0"),
    ({"duration_ms": -1}, "bad_params", "duration_ms is -1"),
    ({"duration_ms": "1"}, "bad_params", 'duration_ms is "1"'),
    ({"duration_ms": 604800001}, "bad_params", "604800000"),
    ({"max_depth": 0}, "bad_params", "max_depth is 0"),
    ({"max_depth": 4097}, "bad_params", "4096"),
    ({"unwind": "lbr"}, "bad_params", "unwind"),
    ({"stitch": 1}, "bad_params", "stitch"),
    ({"formats": []}, "bad_params", "formats"),
    ({"formats": ["pdf"]}, "bad_params", "formats[0]"),
    ({"on_client_exit": "die"}, "bad_params", "on_client_exit"),
    ({"hertz": 99}, "bad_params", "hertz"),
    ({"scope": "tree"}, "unsupported", "scope"),
    ({"label": "x" * 257}, "bad_params", "label"),
]


def test_wrong_options_of_a_capture_are_told_on_every_road_and_nothing_runs():
    with Daemon() as daemon, tempfile.TemporaryDirectory() as folder, Gate(daemon, FOREVER) as gate:
        client = daemon.connect()
        mark = os.path.join(folder, "mark")
        running = client.call("LaunchProcess", argv=FOREVER, stdio="null", build_id="running")
        client.call("LaunchProcess", argv=FOREVER, stdio="null", build_id="held", hold=True)
        before = settled(daemon, client)
        for options, code, word in WRONG_OPTIONS:
            for target in ({"build_id": "running"}, {"build_id": "held"}, {"pid": running["pid"]}, {"pid": gate.pid}):
                error = client.fails("StartSamplingProfile", **target, **options)
                check_error(error, code, word, (target, options))
                check_as_before(daemon, client, before, (target, options))
            check_error(client.fails("LaunchProcess", argv=["touch", mark], profile=options), code, word, options)
            check_as_before(daemon, client, before, options)
        for options, word in ((["-F", "0"], "0"), (["-F", "-1"], "-1"), (["-F", "1.5"], "1.5"), (["-F", "x"], "x"),
                              (["-F", "1000000000"], "1000000000"), (["-d", "0"], "0"), (["-d", "-1"], "-1"), (["-d", "x"], "x"),
                              (["-d", "nan"], "nan"), (["-d", "604801"], "604800"), (["-l", "x" * 257], "label")):
            check_told(profctl(daemon, "record", *options, "touch", mark), 125, word, options)
            check_as_before(daemon, client, before, ("profctl", options))
        assert not os.path.exists(mark)


def test_a_capture_has_one_target_that_is_there():
    with Daemon() as daemon:
        client = daemon.connect()
        ended = client.call("LaunchProcess", argv=["true"], stdio="null", build_id="ended")
        client.wait_event("ProcessExited")
        running = client.call("LaunchProcess", argv=FOREVER, stdio="null", build_id="running")
        before = settled(daemon, client)
        for target, code, word in [
            ({}, "bad_params", "neither"), ({"build_id": None, "pid": None}, "bad_params", "neither"),
            ({"build_id": "running", "pid": running["pid"]}, "bad_params", "both"),
            ({"build_id": "nobody"}, "build_not_found", "nobody"), ({"build_id": 7}, "build_not_found", "7"),
            ({"build_id": "ended"}, "build_not_running", "ended"),
            ({"pid": ended["pid"]}, "process_not_found", str(ended["pid"])),
            ({"pid": 0}, "bad_params", "pid is 0"), ({"pid": -1}, "bad_params", "pid is -1"),
            ({"pid": 2 ** 31 - 1}, "process_not_found", str(2 ** 31 - 1)), ({"pid": 1}, None, "1"),
            ({"pid": daemon.process.pid}, "unsupported", str(daemon.process.pid)), ({"pid": "1"}, "bad_params", 'pid is "1"'),
        ]:
            error = client.fails("StartSamplingProfile", **target)
            check_error(error, code or error.code, word, target)
            check_as_before(daemon, client, before, target)
        check_error(client.fails("ResumeProcess", build_id="ended"), "build_not_running", "ended", "resume")
        assert client.call("StopProcess", build_id="ended") == {"exit_code": 0, "signal": None}
        check_error(client.fails("LaunchProcess", argv=["true"], build_id="running", profile={}), "build_exists", "running", "again")
        check_as_before(daemon, client, before, "the same name again")


def test_a_second_capture_of_the_same_target_names_the_first():
    with Daemon() as daemon, Gate(daemon, FOREVER) as gate:
        client = daemon.connect()
        running = client.call("LaunchProcess", argv=FOREVER, stdio="null", build_id="running")
        client.call("LaunchProcess", argv=FOREVER, stdio="null", build_id="held", hold=True)
        targets = [{"build_id": "running"}, {"build_id": "held"}, {"pid": gate.pid}]
        first = [client.call("StartSamplingProfile", **target)["capture_id"] for target in targets]
        before = settled(daemon, client)
        for target, capture_id in zip(targets + [{"pid": running["pid"]}], first + first[:1]):
            error = client.fails("StartSamplingProfile", **target)
            check_error(error, "capture_busy", capture_id, target)
            assert error.detail == "already_sampled" and capture_id in error.message, error.error
            assert error.error["data"]["retryable"] is True, error.error
            check_as_before(daemon, client, before, target)
        assert client.call("GetCapture", capture_id=first[0])["state"] == "sampling"
        assert client.call("GetCapture", capture_id=first[1])["state"] == "armed"
        client.call("StopCapture", all=True, discard=True)


# output_dir


def wrong_folders(folder):
    """output_dir, code, word of the message; whether profctl, which makes paths absolute and real, refuses it too."""
    write(folder, "file", "", 0o600)
    os.mkdir(os.path.join(folder, "real"))
    os.symlink("real", os.path.join(folder, "link"))
    os.symlink("nowhere", os.path.join(folder, "dangling"))
    cases = [("relative", "bad_params", "output_dir", False), ("", "bad_params", "output_dir", False),
             (folder + "/missing", "bad_params", folder + "/missing is missing", True),
             (folder + "/missing/too", "bad_params", folder + "/missing/too", True),
             (folder + "/file", "bad_params", folder + "/file is not a folder", True),
             (folder + "/link", "bad_params", folder + "/link is a symbolic link", False),
             (folder + "/dangling", "bad_params", folder + "/dangling is a symbolic link", True),
             (folder + "/" + "x" * 300, "bad_params", "x" * 300, True), ("/proc", None, "/proc", True)]
    if os.geteuid() == 0:
        other = os.path.join(folder, "other")
        os.mkdir(other)
        os.chown(other, NOBODY, NOBODY)
        cases.append((other, "not_permitted", "user %d" % NOBODY, True))
    return cases


def check_output_folders(daemon, client, folder, cases, gate, run_profctl):
    client.call("LaunchProcess", argv=FOREVER, stdio="null", build_id="running")
    mark = os.path.join(folder, "mark")
    before, listed = settled(daemon, client), sorted(os.listdir(folder))
    for path, code, word, profctl_too in cases:
        for target in ({"build_id": "running"}, {"pid": gate.pid}):
            error = client.fails("StartSamplingProfile", output_dir=path, **target)
            check_error(error, code or error.code, word, (path, target))
            assert "output_dir" in error.message or code == "bad_params", error.error
            check_as_before(daemon, client, before, (path, target))
        error = client.fails("LaunchProcess", argv=["touch", mark], profile={"output_dir": path})
        check_error(error, code or error.code, word, path)
        check_as_before(daemon, client, before, path)
        if profctl_too:
            check_told(run_profctl("record", "-o", path, "touch", mark), 125, path, path)
            check_as_before(daemon, client, before, ("profctl", path))
    assert sorted(os.listdir(folder)) == listed and not os.path.exists(mark)


def test_a_wrong_output_dir_is_told_on_every_road():
    with Daemon() as daemon, tempfile.TemporaryDirectory() as folder, Gate(daemon, FOREVER) as gate:
        check_output_folders(daemon, daemon.connect(), folder, wrong_folders(folder), gate,
                             lambda *args: profctl(daemon, *args))


def test_an_ordinary_users_output_dir_that_may_not_be_written_is_told():
    as_nobody()
    with Daemon(user=NOBODY) as daemon, tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        for name, mode in (("readonly", 0o500), ("noentry", 0o600), ("nothing", 0)):
            os.mkdir(os.path.join(folder, name), mode)
            os.chown(os.path.join(folder, name), NOBODY, NOBODY)
        cases = [(folder + "/readonly", "not_permitted", folder + "/readonly", True),
                 (folder + "/noentry", "not_permitted", folder + "/noentry", True),
                 (folder + "/nothing", "not_permitted", folder + "/nothing", True),
                 (folder, "not_permitted", "user 0", True)]
        client = daemon.connect()
        client.call("LaunchProcess", argv=FOREVER, stdio="null", build_id="running")
        before = settled(daemon, client)
        mark = os.path.join(daemon.root, "mark")
        for path, code, word, _ in cases:
            error = client.fails("StartSamplingProfile", output_dir=path, build_id="running")
            check_error(error, code, word, path)
            check_as_before(daemon, client, before, path)
            check_error(client.fails("LaunchProcess", argv=["touch", mark], profile={"output_dir": path}), code, word, path)
            check_as_before(daemon, client, before, path)
            done = profctl(daemon, "record", "-o", path, "touch", mark, user=NOBODY, group=NOBODY, extra_groups=[], cwd="/")
            check_told(done, 125, path, path)
            check_as_before(daemon, client, before, ("profctl", path))
        assert not os.path.exists(mark)


if __name__ == "__main__":
    main(globals())
