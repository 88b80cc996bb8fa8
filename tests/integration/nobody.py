"""A user without rights to become."""
import os
import subprocess

from harness import program, skip, target

NOBODY = 65534


def closed_to(user):
    """Why the programs cannot be run by that user, or None."""
    for name in ("profd", "profd-gate", "profctl", "profd-analyzer"):
        if subprocess.run([program(name), "--help"], user=user, group=user, extra_groups=[], capture_output=True, cwd="/",
                          check=False).returncode not in (0, 1, 2, 126):
            return program(name)
    return None


def as_nobody():
    if os.geteuid() != 0:
        skip("needs root to become another user")
    try:
        closed = closed_to(NOBODY)
    except PermissionError as error:
        closed = error
    if closed:
        skip("the build folder is closed to other users: %s" % closed)


def ordinary_user():
    """Whom a daemon without rights runs as; None: as us."""
    user = NOBODY if os.geteuid() == 0 else None
    if user and subprocess.run(["test", "-x", target("shares")], user=user, group=user, check=False).returncode != 0:
        skip("an ordinary user cannot reach the build folder")
    return user
