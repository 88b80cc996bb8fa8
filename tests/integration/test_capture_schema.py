"""docs/capture.schema.json: each capture.json is as it says, and it says enough to refuse what is not one."""
import copy
import json
import os
import shutil
import signal
import subprocess
import tempfile

from capture_schema import check, schema, validator
from harness import FOREVER, Daemon, capture_end, main, program, skip, target, wait_sampled, wait_until
from journals import JournalFile
from nobody import ordinary_user

# What the schema describes and no capture of these tests has: it needs what is not built, not here, or not told.
UNSEEN = {
    "/processes//executable", "/processes//executable_b64", "/warnings//code_b64", "/warnings//message_b64", "/warnings//hint_b64",
}


def wanted():
    if validator() is None:
        skip("python3-jsonschema is missing")
    return validator()


def read(record):
    with open(record["metadata_path"]) as file:
        data = json.load(file)
    check(data)
    return data


def recorded(client, argv, **profile):
    launched = client.call("LaunchProcess", argv=argv, stdio="null", profile=profile)
    name, params = capture_end(client, launched["capture_id"], 60)
    assert name == "SamplingProfileFinished", params
    return read(params)


def of_usual_programs(client):
    yield recorded(client, [target("shares"), "1", "60", "0"], hz=1999, label="usual", duration_ms=60000)
    yield recorded(client, [target("syscalls")], kernel=True, hz=499)
    yield recorded(client, [target("shares"), "3", "40", "0"], hz=1999)
    yield recorded(client, [target("shares_stripped"), "1", "60", "0"], hz=1999)
    yield recorded(client, [target("recursion")], hz=1999, max_depth=8)
    yield recorded(client, [target("copies"), "small", "200"], unwind="fp")
    yield recorded(client, [target("forks")], hz=499)  # a warning: its child is not sampled
    yield recorded(client, [target("hostile")], hz=1999)
    yield recorded(client, [target("brief"), "30", "200", "60"], hz=999)


def of_builds_and_ends(daemon, client):
    held = client.call("LaunchProcess", argv=FOREVER, stdio="null", hold=True)
    started = client.call("StartSamplingProfile", build_id=held["build_id"])
    client.call("ResumeProcess", build_id=held["build_id"])
    wait_sampled(client, started["capture_id"])
    yield read(client.call("StopCapture", capture_id=started["capture_id"]))
    client.call("SignalProcess", build_id=held["build_id"], signal="KILL")
    short = client.call("LaunchProcess", argv=FOREVER + ["x" * 5000], stdio="null",
                        profile={"duration_ms": 100, "output_dir": daemon.root, "max_bytes": 1 << 30, "formats": ["json", "folded"]})
    yield read(capture_end(client, short["capture_id"])[1])
    killed = client.call("LaunchProcess", argv=FOREVER, stdio="null", profile={})
    wait_sampled(client, killed["capture_id"])
    client.call("SignalProcess", build_id=killed["build_id"], signal="KILL")
    data = read(capture_end(client, killed["capture_id"])[1])
    assert data["target"]["signal"] == "SIGKILL", data["target"]
    yield data


def of_bytes_that_are_no_text(daemon):
    """By profctl, which passes any bytes on: path, argument, folder."""
    with tempfile.TemporaryDirectory() as folder:
        odd = os.path.join(os.fsencode(folder), b"od\xffd")
        os.mkdir(odd)
        shutil.copy(target("shares_stripped"), os.path.join(odd, b"sha\xferes"))
        done = subprocess.run([program("profctl"), "record", "-F", "1999", os.path.join(odd, b"sha\xferes"), b"1", b"60", b"0\xfd"],
                              env=dict(os.environ, PROFD_SOCKET=daemon.socket_path), cwd=odd, capture_output=True, check=False)
        assert done.returncode == 0, done
        record = daemon.connect().call("ListCaptures")["captures"][-1]
        data = read(record)
        assert data["build_id"] is None and len(data["target"]["argv_b64"]) == 4 and "cwd_b64" in data["target"], data["target"]
        assert any("path_b64" in image for image in data["images"]), data["images"]
        return data


def of_a_killed_daemon(daemon, client):
    killed = client.call("LaunchProcess", argv=FOREVER, stdio="null", profile={})
    journal = os.path.join(daemon.data_dir, "captures", killed["capture_id"], "capture.journal")
    wait_until(lambda: JournalFile(journal).samples > 0, 20, "samples on the disk")
    daemon.process.send_signal(signal.SIGKILL)
    daemon.process.wait()
    daemon.clients.clear()
    client = daemon.start().connect()
    data = read(client.call("WaitCapture", capture_id=killed["capture_id"], timeout_ms=20000))
    assert data["reason"] == "recovered" and data["clock"]["end_ns"] == 0, data["reason"]
    samples = data["samples"]
    # As far as the kernel was looked at, and on by the samples that came after.
    assert samples["expected"] == sum(
        samples[name] for name in ("count", "lost", "throttled", "not_permitted", "too_short", "unexplained")), samples
    assert abs(samples["unexplained"]) <= 0.05 * samples["expected"] + 5, samples
    return data


def members(node, where=""):
    """Paths of every member of a document, items of lists as one."""
    found = set()
    for name, value in node.items() if isinstance(node, dict) else []:
        found |= {where + "/" + name} | members(value, where + "/" + name)
    for value in node if isinstance(node, list) else []:
        found |= members(value, where + "/")
    return found


def described(node, where=""):
    """Paths of every member that the schema describes."""
    definitions, found = schema()["$defs"], set()
    while "$ref" in node:
        node = definitions[node["$ref"].split("/")[-1]]
    for name, value in node.get("properties", {}).items():
        found |= {where + "/" + name} | described(value, where + "/" + name)
    return found | (described(node["items"], where + "/") if "items" in node else set())


def test_every_capture_is_as_the_schema_says_and_uses_all_of_it():
    wanted()
    documents = []
    with Daemon() as daemon:
        client = daemon.connect()
        documents += of_usual_programs(client)
        documents += of_builds_and_ends(daemon, client)
        documents.append(of_bytes_that_are_no_text(daemon))
        documents.append(of_a_killed_daemon(daemon, client))
        daemon.check_exit = False
    with Daemon(user=ordinary_user()) as daemon:
        # Nearly all of it is in the kernel: so many samples that some are not.
        documents.append(recorded(daemon.connect(), [target("syscalls")], hz=1999))
    seen = set().union(*(members(document) for document in documents))
    assert described(schema()) - seen == UNSEEN, (sorted(described(schema()) - seen - UNSEEN), sorted(UNSEEN & seen))
    assert not {path for path in seen - described(schema()) if not path.startswith("/options/")}


def test_the_schema_is_one_and_describes_every_object_closed():
    wanted().check_schema(schema())

    def look(node, where):
        if isinstance(node, dict):
            if node.get("type") == "object" and where != "/$defs/options":
                assert node.get("additionalProperties") is False, where
                assert set(node.get("required", [])) <= set(node["properties"]), where
            for name, value in node.items():
                look(value, where + "/" + name)
    look(schema(), "")


def places(node, where=()):
    """(path of the object that has it, member) of every member below, one item of each list, none below the options."""
    if isinstance(node, dict):
        for name, value in node.items():
            yield where, name
            if name != "options":
                yield from places(value, where + (name,))
    elif isinstance(node, list) and node:
        yield from places(node[0], where + (0,))


def changed(document, where, change):
    document = copy.deepcopy(document)
    node = document
    for step in where:
        node = node[step]
    change(node)
    return document


def small(document):
    """One item of each list is enough."""
    return {name: value[:1] if isinstance(value, list) else value for name, value in document.items()}


# No member has the first; the others are right for flags and for the options alone.
WRONG = [{}], True, {"x": 1}


def test_the_schema_refuses_what_is_no_capture():
    ask = wanted()
    with Daemon() as daemon:
        document = small(recorded(daemon.connect(), [target("hostile")], hz=1999, label="x"))
    assert document["quality"]["remedies"] and document["threads"][0]["expected"] and ask.is_valid(document)
    optional = {"hint", "fix", "build_id", "path", "name", "name_b64", "image", "images", "function_b64", "cpu_time_estimated_ns",
                "folded", "svg", "json", "bytes", "stacks", "cpu_time_ns", "label"}
    accepted = []
    for where, name in places(document):
        if not (where and name in optional) and ask.is_valid(changed(document, where, lambda node: node.pop(name))):
            accepted.append((where, name, "left out"))
        for wrong in WRONG:
            is_right = wrong is True and isinstance(lookup(document, where)[name], bool) or wrong == {"x": 1} and name == "options"
            if not is_right and ask.is_valid(changed(document, where, lambda node: node.__setitem__(name, wrong))):
                accepted.append((where, name, wrong))
        if ask.is_valid(changed(document, where, lambda node: node.__setitem__("unknown_member", 1))):
            accepted.append((where, "unknown_member"))
    assert not accepted, accepted
    for where, name, value in ((("samples",), "count", -1), (("samples",), "count", 1.5), (("quality",), "complete", 1.5),
                               (("samples",), "period", 2 ** 54), ((), "version", 2), ((), "reason", "bored"), ((), "capture_id", "x"),
                               (("images", 0), "symbols", "dwarf"), (("images", 0), "build_id", "xyz"), (("target",), "signal", "KILL"),
                               (("threads", 0), "name_b64", "?"), (("quality", "remedies", 0), "what", "luck"), (("clock",), "name", "sun")):
        assert not ask.is_valid(changed(document, where, lambda node: node.__setitem__(name, value))), (where, name, value)


def lookup(document, where):
    for step in where:
        document = document[step]
    return document


if __name__ == "__main__":
    main(globals())
