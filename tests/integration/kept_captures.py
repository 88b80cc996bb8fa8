"""What is true of every capture that has ended, by its record, its files and the kernel."""
import os
import subprocess
import sys

from harness import read_folded
from journals import JournalFile

# A checker of the formats by somebody else, where there is one.
FORMATS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "shared", "tools", "check_formats.py")
PATHS = ("folded_path", "svg_path", "metadata_path")


def check_formats(paths):
    if os.path.exists(FORMATS) and paths:
        done = subprocess.run([sys.executable, FORMATS, *paths], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def check_ended(record):
    """It is finished with whole files, or failed with a reason; nothing else lies beside."""
    names = set(os.listdir(record["folder"])) if os.path.isdir(record["folder"]) else set()
    assert not [name for name in names if name.endswith(".tmp")], names
    if record["state"] == "failed":
        error = record["error"]
        assert error["message"] and error["data"]["code"], record
        assert not any(record.get(path) for path in PATHS) and not record.get("artifacts"), record
        assert names <= {"capture.journal", "record.json"}, names
        return
    assert record["state"] == "finished" and "error" not in record, record
    for artifact in record["artifacts"]:
        assert os.path.getsize(artifact["path"]) == artifact["bytes"] > 0, artifact
    symbols = os.path.join(record["folder"], "capture.symbols")
    assert [artifact["path"] for artifact in record["artifacts"]] == [record[path] for path in PATHS] + [symbols], record
    journal = JournalFile(os.path.join(record["folder"], "capture.journal"))
    samples = sum(read_folded(record["folded_path"]).values())
    assert journal.samples == samples == record["samples"] > 0, (journal.samples, samples, record["samples"])
    check_formats([record["folded_path"]])


def has_warning(record, code):
    return code in [warning["code"] for warning in record["warnings"]]


def check_recovered(record):
    check_ended(record)
    assert record["state"] == "finished" and record["reason"] == "recovered" and has_warning(record, "recovered"), record


def wait_all_ended(client):
    """Every capture once it has ended, checked."""
    records = [client.call("WaitCapture", capture_id=record["capture_id"], timeout_ms=60000)
               for record in client.everything("ListCaptures", "captures")]
    for record in records:
        check_ended(record)
    return records
