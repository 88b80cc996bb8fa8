"""Folders that a case makes with tempfile: none outlives it, whatever becomes of the case. Importing this begins the watch."""
import atexit
import os
import shutil
import tempfile

_make = tempfile.mkdtemp
_made = []


def _mkdtemp(*args, **options):
    path = _make(*args, **options)
    _made.append(path)
    return path


tempfile.mkdtemp = _mkdtemp


def shared(prefix):
    """A new folder for all cases of this process; it goes with that."""
    path = _make(prefix=prefix)
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def remove():
    """The paths of those that were there still; they are gone now."""
    left = [path for path in _made if os.path.lexists(path)]
    _made.clear()
    for path in left:
        shutil.rmtree(path, ignore_errors=True)
    return left
