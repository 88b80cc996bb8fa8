"""Folders that a case makes with tempfile: none outlives it, whatever becomes of the case. Importing this begins the watch."""
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


def remove():
    """The paths of those that were there still; they are gone now."""
    left = [path for path in _made if os.path.lexists(path)]
    _made.clear()
    for path in left:
        shutil.rmtree(path, ignore_errors=True)
    return left
