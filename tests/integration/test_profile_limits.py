"""What a profile lacks is told, and what is hostile in it breaks nothing."""
import json
import os
import re
import shutil
import subprocess
import tempfile
import xml.parsers.expat

from harness import Daemon, capture_end, main, read_folded, skip, target
from nobody import NOBODY, ordinary_user
from profiles import finished, launch, record


def test_a_program_with_other_rights_is_told_as_privileged():
    with Daemon(user=ordinary_user()) as daemon:
        client = daemon.connect()
        for name, mode in (("set_user_id", 0o4755), ("unreadable", 0o111)):
            path = os.path.join(daemon.root, name)
            shutil.copy(target("steady"), path)
            os.chmod(path, mode)
            launched = client.call("LaunchProcess", argv=[path, "300"], profile={})
            method, params = capture_end(client, launched["capture_id"])
            assert method == "SamplingProfileFailed" and params["error"]["data"]["code"] == "target_privileged", (name, params)
            assert str(launched["pid"]) in params["error"]["message"], params
            exited = client.wait_event("ProcessExited", build_id=launched["build_id"])
            assert exited["exit_code"] == 0 and exited["user_us"] > 200000, exited
        # What is over at once is no more than that, and what becomes another later keeps what was gathered.
        for _ in range(5):
            launched = client.call("LaunchProcess", argv=["true"], profile={})
            _, params = capture_end(client, launched["capture_id"])
            assert "target_privileged" not in json.dumps(params), params
        script = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; exec %s 300" % os.path.join(daemon.root, "set_user_id")
        profile = record(client, ["sh", "-c", script])
        assert profile.params["reason"] == "target_privileged" and profile.count > 10, profile.params


def test_to_root_too_a_program_with_other_rights_is_told_as_privileged():
    if os.geteuid() != 0:
        skip("needs root, to make programs of another user")
    with Daemon() as daemon:
        client = daemon.connect()
        os.chmod(daemon.root, 0o755)
        for name, mode, privileged in (("set_user_id", 0o4755, True), ("set_group_id", 0o2755, True), ("neither", 0o755, False)):
            path = os.path.join(daemon.root, name)
            shutil.copy(target("steady"), path)
            os.chown(path, NOBODY, NOBODY)
            os.chmod(path, mode)
            _, params = capture_end(client, client.call("LaunchProcess", argv=[path, "300"], profile={})["capture_id"])
            error = params.get("error")
            assert (error is not None and error["data"]["code"] == "target_privileged" and "copy of the program without" in error["data"]["hint"]) == privileged, params


def test_what_a_profile_lacks_is_told():
    with Daemon() as daemon:
        client = daemon.connect()
        profile = record(client, ["sh", "-c", "true & true & wait; i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"])
        warnings = {warning["code"]: warning["message"] for warning in profile.params["warnings"]}
        assert " 2 child processes" in warnings["children_not_sampled"], warnings
        profile = record(client, [target("recursion")], max_depth=10)
        warnings = {warning["code"]: warning["message"] for warning in profile.params["warnings"]}
        assert "depth limit" in warnings["stacks_cut"] and "children_not_sampled" not in warnings, warnings


def test_no_frames_are_invented_where_a_frame_pointer_is_something_else():
    """Threads are born by libc's clone3, in which the register holds something else: the kernel follows that."""
    with Daemon() as daemon:
        client = daemon.connect()
        result = client.call("LaunchProcess", argv=[target("swarm"), "400"], profile={"hz": 20000})
        profile = finished(client, result["capture_id"])
        invented = {stack for stack in profile.folded if stack.count("[unknown]") > 1}
        assert not invented, invented


def test_hostile_names_break_no_artifact():
    with Daemon() as daemon, tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        client = daemon.connect()
        name = "ev;il <&>\n"
        shutil.copy(target("hostile"), os.path.join(folder, name))
        subprocess.run(["strip", os.path.join(folder, name)], check=True)
        for path, files in ((target("hostile"), None), (os.path.join(folder, name), {})):
            launched = launch(client, [path])
            method, params = capture_end(client, launched["capture_id"])
            assert method == "SamplingProfileFinished", params
            with open(params["folded_path"], "rb") as file:
                text = file.read().decode("utf-8")
            lines = text.split("\n")
            assert lines.pop() == ""
            for line in lines:
                assert re.fullmatch(r"[^\x00-\x1f\x7f]+ [1-9][0-9]*", line), ascii(line)
            with open(params["svg_path"], "rb") as file:
                xml.parsers.expat.ParserCreate().ParseFile(file)
            with open(params["metadata_path"], "rb") as file:
                data = json.load(file)
            folded = read_folded(params["folded_path"])
            threads = {stack[0] for stack in folded}
            assert {"a:b <&\"'>", "two lines", "]]>\ufffd[31m\ufffd", "12 34"} <= threads, threads
            assert any(re.fullmatch("\ufffd{1,4} bytes", thread) for thread in threads), threads
            assert len(data["threads"]) == 6, data["threads"]
            frames = {frame for stack in folded for frame in stack[1:]}
            if files is None:
                assert "bad:name <&'>]]>" in frames and "honest_work" in frames, frames
                chain = [stack[-3:] for stack in folded if stack[-1] == "honest_work"]
                assert ("run", "bad:name <&'>]]>", "honest_work") in chain, chain
            else:
                assert any(re.fullmatch(r"\[ev:il <&> \+0x[0-9a-f]+\]", frame) for frame in frames), frames


if __name__ == "__main__":
    main(globals())
