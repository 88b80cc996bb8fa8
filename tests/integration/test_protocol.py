"""What the daemon says of itself over the socket, and that it is what its dispatcher does."""
import subprocess
import time

from harness import Daemon, main, program


# Chapter 4 of the contract: the methods of this version, and those of later ones.
BUILT = """Hello Ping GetStatus Describe Doctor Subscribe Unsubscribe Cancel Shutdown LaunchProcess ResumeProcess
    StopProcess ListProcesses GetProcess StartSamplingProfile StopCapture WaitCapture ListCaptures GetCapture
    DeleteCapture UpdateCapture SymbolizeCapture AdoptProcess SignalProcess WriteStdin ResizePty GetOutput
    StartGpuTrace""".split()
LATER = """QueryFrameTree QueryFunctions QueryCallers QueryLines QueryThreads
    QueryImages QueryTimeline DiffCaptures ExportCapture ImportCapture""".split()


def describe(client):
    """All pages of Describe."""
    page = client.call("Describe")
    whole = page
    while "next_cursor" in page:
        page = client.call("Describe", cursor=page["next_cursor"])
        whole["methods"] += page["methods"]
    return whole


def test_hello_says_who_answers_and_what_works():
    with Daemon() as daemon:
        hello = daemon.connect().call("Hello", client="test", version="1", protocol={"major": 1, "minor": 0})
        version = subprocess.run([program("profd"), "--version"], capture_output=True, text=True, check=True).stdout
        assert version == "profd %s\n" % hello["version"], version
        assert hello["server"] == "profd" and hello["pid"] == daemon.process.pid
        assert hello["protocol"] == {"major": 1, "minor": 0}
        assert len(hello["instance_id"]) == 32
        assert sorted(hello["capabilities"]["methods"]) == sorted(BUILT)
        assert hello["capabilities"]["stdio"] == ["pipe", "null", "file", "pty"] and hello["capabilities"]["gpu"] == ["document"]
        assert hello["limits"]["request_bytes"] == 1 << 20 and hello["limits"]["builds"] == 64


def test_another_daemon_has_another_instance_id():
    ids = set()
    for _ in range(2):
        with Daemon() as daemon:
            ids.add(daemon.connect().call("GetStatus")["instance_id"])
    assert len(ids) == 2


def test_ping_tells_the_wall_clock():
    with Daemon() as daemon:
        before = time.time_ns() // 1000
        now = daemon.connect().call("Ping")["now_unix_us"]
        assert before <= now <= time.time_ns() // 1000


def test_status_counts_what_is_there():
    with Daemon() as daemon:
        client, other = daemon.connect(), daemon.connect()
        other.call("Ping")
        launched = client.call("LaunchProcess", argv=["sleep", "60"], stdio="null")
        status = client.call("GetStatus")
        assert (status["clients"], status["builds"], status["captures"]) == (2, 1, 0), status
        assert abs(status["rss_anon_bytes"] // 1024 - daemon.status("RssAnon")) < 4096
        assert 0 <= status["uptime_ms"] < 60000
        client.call("StopProcess", build_id=launched["build_id"])
        assert client.call("GetStatus")["builds"] == 0


def test_describe_tells_the_methods_that_the_dispatcher_knows():
    with Daemon() as daemon:
        client = daemon.connect()
        whole = describe(client)
        said = {method["name"]: method for method in whole["methods"]}
        assert sorted(said) == sorted(BUILT + LATER)
        for name in LATER:
            assert said[name]["supported"] is False
            assert client.fails(name).code == "unsupported"
        for name in BUILT:
            assert said[name]["supported"] is True
            error = client.fails(name, no_such_parameter=1)
            assert (error.code, error.detail) == ("bad_params", "unknown_parameter") and name in error.message
            if any(param["required"] for param in said[name]["params"]):
                error = client.fails(name)
                assert (error.code, error.detail) == ("bad_params", "missing_parameter"), (name, error)
            assert client.call("Describe", method=name)["methods"] == [said[name]]
        codes = {error["code"]: error["number"] for error in whole["errors"]}
        assert codes["build_not_found"] == -32001 and codes["unknown_method"] == -32601
        assert "ProcessOutput" in [event["name"] for event in whole["events"]]


def test_describe_shows_the_ranges_that_are_checked():
    with Daemon() as daemon:
        client = daemon.connect()
        params = client.call("Describe", method="StartSamplingProfile")["methods"][0]["params"]
        checked = 0
        for param in params:
            if param["type"] != "integer" or not param["supported"]:
                continue
            for value in (param["min"] - 1, param["max"] + 1):
                error = client.fails("StartSamplingProfile", **{"build_id": "none", param["name"]: value})
                assert error.code == "bad_params" and error.message.startswith(param["name"] + " "), error
                assert str(value) in error.message and str(param["max"]) in error.message, error
            checked += 1
        assert checked >= 5


def test_an_unknown_method_is_told_with_its_number():
    with Daemon() as daemon:
        error = daemon.connect().fails("GetStatsu")
        assert (error.number, error.code) == (-32601, "unknown_method") and '"GetStatsu"' in error.message


if __name__ == "__main__":
    main(globals())
