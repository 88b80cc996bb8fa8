"""Files are opened at first sight: programs whose files go away, or were never where others look, have their names all the same."""
import contextlib
import os
import shutil
import subprocess
import tempfile

from harness import Daemon, capture_end, main, read_folded, skip, target
from nobody import ordinary_user

HZ = 1999
LONG_MS, SHORT_MS = 400, 25 # longer than a round of reading the rings, and far shorter


@contextlib.contextmanager
def desk(user=None):
    """A daemon, a client, and a folder of that user's with copies of what is profiled."""
    with Daemon(user=user) as daemon, tempfile.TemporaryDirectory() as folder:
        for name in ("vanish", "vanish_static", "library_first.so"):
            shutil.copy(target(name), folder)
        if user:
            for path in [folder] + [os.path.join(folder, name) for name in os.listdir(folder)]:
                os.chown(path, user, user)
        yield daemon.connect(), folder


def samples_in(client, argv, function):
    """How many of a program's samples are in the function, by its capture."""
    launched = client.call("LaunchProcess", argv=argv, profile={"hz": HZ})
    _, end = capture_end(client, launched["capture_id"])
    exit_code = client.wait_event("ProcessExited", build_id=launched["build_id"])["exit_code"]
    assert exit_code == 0 and "error" not in end, (exit_code, end)
    return sum(count for stack, count in read_folded(end["folded_path"]).items() if function in stack)


def named(client, argv, ms, function="stay"):
    """It has computed for ms of its own CPU clock in that function."""
    found, due = samples_in(client, argv, function), ms * HZ / 1000
    assert found >= 0.85 * due - 4, (argv, found, due)


def cases(client, folder, modes):
    for mode in modes:
        for ms in (LONG_MS, SHORT_MS):
            program = os.path.join(folder, "vanish-%s-%d" % (mode, ms))
            library = os.path.join(folder, "library-%s-%d.so" % (mode, ms))
            for copy, name in ((program, "vanish"), (library, "library_first.so")):
                shutil.copy(os.path.join(folder, name), copy)
                os.chown(copy, os.stat(folder).st_uid, os.stat(folder).st_gid)
            named(client, [program, mode, str(ms), library], ms, "library_first" if "library" in mode else "stay")


def test_what_deletes_or_replaces_itself_or_its_library_or_has_no_file_is_named():
    with desk() as (client, folder):
        # Only who may see the links of all mappings can be in time for a library that goes at once.
        root_only = ["library"] if os.geteuid() == 0 else []
        cases(client, folder, ["plain", "unlink", "replace", "memory", "slow-library"] + root_only)


def test_an_ordinary_user_sees_as_much():
    with desk(ordinary_user()) as (client, folder):
        cases(client, folder, ["unlink", "replace", "memory", "slow-library"])


def in_a_mount_of_its_own(client, folder, prepare):
    """A file system that only the program sees, made by a shell command, with the program at mnt/inside."""
    if os.geteuid() != 0:
        skip("needs root to mount")
    if subprocess.run(["unshare", "-m", "sh", "-ec", prepare], cwd=folder, capture_output=True).returncode != 0:
        skip("this system does not let us mount: %s" % prepare)
    for ms in (LONG_MS, SHORT_MS):
        script = "cd '%s'; %s; exec mnt/inside plain %d" % (folder, prepare, ms)
        named(client, ["unshare", "-m", "sh", "-ec", script], ms)


def test_a_program_in_a_private_mount_is_named():
    with desk() as (client, folder):
        os.mkdir(os.path.join(folder, "mnt"))
        in_a_mount_of_its_own(client, folder, "mount -t tmpfs none mnt; cp vanish mnt/inside")


def test_a_program_on_an_overlay_is_named():
    with desk() as (client, folder):
        for name in ("low", "mnt", "scratch"):
            os.mkdir(os.path.join(folder, name))
        shutil.copy(os.path.join(folder, "vanish"), os.path.join(folder, "low", "inside"))
        in_a_mount_of_its_own(client, folder, "mount -t tmpfs none scratch; mkdir scratch/up scratch/work; "
                              "mount -t overlay overlay -o lowerdir=low,upperdir=scratch/up,workdir=scratch/work mnt")


def test_a_program_in_another_root_is_named():
    if os.geteuid() != 0:
        skip("needs root to change the root")
    with desk() as (client, folder):
        for ms in (LONG_MS, SHORT_MS):
            named(client, ["chroot", folder, "/vanish_static", "plain", str(ms)], ms)
        # A file of that name in our root is not taken for it.
        decoy = "/vanish_static"
        if not os.path.exists(decoy):
            shutil.copy("/bin/true", decoy)
            try:
                named(client, ["chroot", folder, decoy, "plain", str(LONG_MS)], LONG_MS)
            finally:
                os.unlink(decoy)


if __name__ == "__main__":
    main(globals())
