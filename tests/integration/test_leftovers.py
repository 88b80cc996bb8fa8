"""The tests' own: a case leaves no folder behind, also when it fails, is skipped, or is out of time."""
import os
import signal
import subprocess
import sys
import tempfile

from harness import main

CASES = """
import os, signal, tempfile, time
from harness import main, skip
def make():
    with open(os.environ["MADE"], "a") as file:
        print(tempfile.mkdtemp(), file=file)
def test_tidy():
    with tempfile.TemporaryDirectory():
        pass
def test_untidy():
    make()
def test_failing():
    make()
    assert False
def test_skipped():
    make()
    skip("no reason")
def test_out_of_time():
    make()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(10)
main(globals(), together=os.environ["TOGETHER"] == "1")
"""


def test_no_case_leaves_a_folder_behind():
    for together in ("0", "1"):
        with tempfile.TemporaryDirectory() as folder:
            made = os.path.join(folder, "made")
            done = subprocess.run([sys.executable, "-c", CASES], env=dict(os.environ, MADE=made, TOGETHER=together, TMPDIR=folder,
                                                                         PYTHONPATH=os.pathsep.join(sys.path)),
                                  capture_output=True, text=True, timeout=60)
            with open(made, encoding="utf-8") as file:
                paths = file.read().split()
            assert len(paths) == 4 and all(os.path.dirname(path) == folder for path in paths), (paths, done)
            assert [path for path in paths if os.path.exists(path)] == [], done
            verdicts = [line.split(" - ")[0] for line in done.stdout.splitlines() if line.startswith(("ok", "not ok"))]
            assert verdicts == ["ok 1", "not ok 2", "not ok 3", "ok 4"] and "left behind: ['" in done.stdout, done
            assert done.returncode == (1 if together == "1" else 128 + signal.SIGTERM), done


if __name__ == "__main__":
    main(globals())
