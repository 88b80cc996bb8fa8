"""Programs that cannot run: each is told with its clear error, and the daemon stays exactly as it was."""
import os
import subprocess
import tempfile

from footprint import check_as_before, settled
from harness import Daemon, main, profctl, program, write
from refusals import check_error, check_told


def unrunnable(folder):
    """argv, the wire's code and detail, a word of the message, and the exit status that a shell would give."""
    write(folder, "plain", "#!/bin/sh\n", 0o644)
    write(folder, "nothing", "\0 no program\n", 0o755)
    orphan = write(folder, "orphan", "#!/no/such/interpreter\n", 0o755)
    os.mkdir(os.path.join(folder, "sub"))
    os.mkfifo(os.path.join(folder, "pipe"), 0o755)
    os.symlink("nowhere", os.path.join(folder, "dangling"))
    os.symlink("loop", os.path.join(folder, "loop"))
    return [(["no-such-program"], "not_found", "no-such-program", 127),
            ([folder + "/no-such-program", "argument"], "not_found", folder + "/no-such-program", 127),
            ([folder + "/plain/below"], "not_found", folder + "/plain/below", 127),
            ([folder + "/dangling"], "not_found", folder + "/dangling", 127),
            ([folder + "/plain"], "not_executable", folder + "/plain", 126),
            ([folder + "/pipe"], "not_executable", folder + "/pipe", 126),
            ([folder + "/nothing"], "not_executable", folder + "/nothing", 126),
            ([folder + "/sub"], "is_directory", folder + "/sub", 126),
            ([folder + "/loop"], None, folder + "/loop", 126),
            ([orphan], "no_interpreter", "/no/such/interpreter", 126)]


def test_a_program_that_cannot_run_is_told_through_both_users_of_the_gate():
    with Daemon() as daemon, tempfile.TemporaryDirectory() as folder:
        client = daemon.connect()
        cases = unrunnable(folder)
        before = settled(daemon, client)
        for argv, detail, word, status in cases:
            for extra in ({}, {"stdio": "null"}, {"profile": {}}, {"profile": {"kernel": True}, "build_id": "refused"}):
                error = client.fails("LaunchProcess", argv=argv, **extra)
                check_error(error, "launch_failed", word, (argv, extra))
                assert detail is None or error.detail == detail, (argv, extra, error.error)
                check_as_before(daemon, client, before, (argv, extra))
            check_told(profctl(daemon, "record", *argv), status, word, argv)
            check_as_before(daemon, client, before, ("profctl", argv))
        assert client.events == []


def test_an_empty_argv_is_told_through_both_users_of_the_gate():
    with Daemon() as daemon:
        client = daemon.connect()
        before = settled(daemon, client)
        for argv in ([], [""], ["", "true"]):
            for extra in ({}, {"profile": {}}):
                check_error(client.fails("LaunchProcess", argv=argv, **extra), "bad_params", "argv", argv)
                check_as_before(daemon, client, before, argv)
            check_told(profctl(daemon, "record", *argv), 125, "usage: profctl record", argv)
            check_as_before(daemon, client, before, ("profctl", argv))
        check_told(profctl(daemon, "record", "--"), 125, "usage: profctl record", "--")


def test_a_missing_working_folder_is_told():
    with Daemon() as daemon, tempfile.TemporaryDirectory() as folder:
        client = daemon.connect()
        write(folder, "file", "", 0o644)
        os.symlink("nowhere", os.path.join(folder, "dangling"))
        before = settled(daemon, client)
        for cwd, code in ((folder + "/missing", "launch_failed"), (folder + "/file", "launch_failed"),
                          (folder + "/dangling", "launch_failed"), ("relative", "bad_params"), ("", "bad_params")):
            for extra in ({}, {"hold": True}, {"profile": {}}):
                error = client.fails("LaunchProcess", argv=["true"], cwd=cwd, **extra)
                check_error(error, code, cwd if code == "launch_failed" else "cwd", (cwd, extra))
                check_as_before(daemon, client, before, (cwd, extra))


def test_a_program_in_a_deleted_folder_runs_as_from_a_shell():
    with Daemon() as daemon, tempfile.TemporaryDirectory() as folder:
        gone = os.path.join(folder, "gone")
        os.mkdir(gone)
        command = "cd %s && rmdir %s && exec \"$@\"" % (gone, gone)
        words = [program("profctl"), "--socket", daemon.socket_path, "--no-start", "record", "--quiet", "sh", "-c", "exit 9"]
        done = subprocess.run(["sh", "-c", command, "sh", *words], capture_output=True, text=True, timeout=60)
        assert done.returncode == 9, done


if __name__ == "__main__":
    main(globals())
