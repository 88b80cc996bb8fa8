"""docs/protocol.md, chapter 2: how everything that fails is told. And the contract itself: no sentence without its case."""
import os
import re

import contract
from contract import SENTENCE, Raw
from harness import FOREVER, Daemon, capture_end, main, wait_until

STANDARD = {"parse_error": -32700, "invalid_request": -32600, "unknown_method": -32601, "bad_params": -32602}
TRUE = ["true"]


def listed():
    """The codes that chapter 2 lists."""
    text = contract.chapters(contract.read_document())[2]
    return set(re.search(r"\n\n`(build_not_found [a-z_\s]+)`", text).group(1).split())


def check_shape(error):
    """The members of an error object that programs and people read."""
    assert isinstance(error["code"], int) and isinstance(error["message"], str), error
    data = error["data"]
    assert error["code"] == STANDARD.get(data["code"], -32001) and data["code"] in listed() | set(STANDARD), error
    assert isinstance(data["retryable"], bool), error
    assert isinstance(data["hint"], str) and len(data["hint"]) > 5, error
    assert re.fullmatch("[a-z][a-z0-9_]*", data.get("detail", "absent")), error
    text = error["message"]
    assert len(text) > 10 and "\n" not in text and not re.search(r"[.!?] [A-Z]", text), error


def test_every_sentence_has_its_case():
    document, quoted = contract.read_document(), contract.quotes()
    quoted += [("UNTESTABLE", quote) for quote in contract.UNTESTABLE]
    assert all(contract.UNTESTABLE.values()), "a reason is missing"
    wrong, missing = contract.misquoted(document, quoted), contract.unquoted(document, quoted)
    print("# %d sentences, %d quotes" % (len(contract.sentences(document)), len(quoted)))
    assert not wrong, "misquoted:\n" + "\n".join(wrong)
    assert not missing, "without a case:\n" + "\n".join(missing)


def test_a_sentence_without_case_and_a_case_without_sentence_are_found():
    document, quoted = contract.read_document(), contract.quotes()
    before = set(contract.unquoted(document, quoted))
    more = document.replace("- No transport fault", "- A new rule. No transport fault").replace("lock, not a probe)", "lock, no probe)")
    assert set(contract.unquoted(more, quoted)) - before == {"«A new rule.»", "«One daemon per socket (a lock, no probe»)."}
    assert len(contract.misquoted(more, quoted)) == 1 + len(contract.misquoted(document, quoted))


@SENTENCE("Standard numbers: -32700 parse, -32600 invalid request, -32601 unknown method, -32602 bad params (missing, wrong type, out of "
          "range, **unknown name**: refused with the name, nothing done).", "(The four standard numbers have the `data.code` "
          "`parse_error`, `invalid_request`, `unknown_method` and `bad_params`.)")
def test_the_standard_numbers():
    with Daemon() as daemon, Raw(daemon.socket_path) as raw:
        touch = ["touch", daemon.root + "/ran"]
        for line, number, word in (
                (b"{\n", -32700, ""), (b"[]\n", -32600, ""), ({"id": 1}, -32600, "method"), ({"id": 1, "method": 5}, -32600, "method"),
                ({"id": 1, "method": "Pong"}, -32601, "Pong"), ({"id": 1, "method": "ping"}, -32601, "ping"),
                ({"id": 1, "method": "GetProcess"}, -32602, "build_id"),
                ({"id": 1, "method": "LaunchProcess", "params": {"argv": "true"}}, -32602, "argv"),
                ({"id": 1, "method": "LaunchProcess", "params": {"argv": []}}, -32602, "argv"),
                ({"id": 1, "method": "LaunchProcess", "params": {"argv": touch, "stdio": "tape"}}, -32602, "tape"),
                ({"id": 1, "method": "LaunchProcess", "params": {"argv": touch, "hold": 1}}, -32602, "hold"),
                ({"id": 1, "method": "LaunchProcess", "params": {"argv": touch, "colour": "red"}}, -32602, "colour"),
                ({"id": 1, "method": "LaunchProcess", "params": {"argv": touch, "profile": {"colour": 1}}}, -32602, "colour"),
                ({"id": 1, "method": "LaunchProcess", "params": {"argv": touch, "profile": {"duration_ms": 0}}}, -32602, "duration_ms"),
                ({"id": 1, "method": "LaunchProcess", "params": {"argv": touch, "profile": {"duration_ms": 604800001}}}, -32602, "604800001")):
            error = raw.ask(line)["error"]
            check_shape(error)
            assert error["code"] == number and word in error["message"], (line, error)
        assert raw.ask({"id": 1, "method": "ListProcesses"})["result"]["processes"] == []
        assert not os.path.exists(daemon.root + "/ran")


@SENTENCE('`{"jsonrpc":"2.0","id":7,"error":{"code":-32001,"message":"…","data":{"code":"build_not_found", "hint":"…","retryable":false, '
          '"detail":"…", …}}}`.', "`data.code` is the stable name that programs test; `data.detail` a finer snake_case name from an open "
          "list; `message` is one sentence for a person that names the thing and the number;", '`hint` is what to do (`"set '
          'kernel.perf_event_paranoid to 2 or lower"`).')
def test_an_error_has_this_shape():
    with Daemon() as daemon, Raw(daemon.socket_path) as raw:
        reply = raw.ask({"id": 7, "method": "GetProcess", "params": {"build_id": "nosuch"}})
        assert set(reply) == {"jsonrpc", "id", "error"} and reply["jsonrpc"] == "2.0" and reply["id"] == 7, reply
        error = reply["error"]
        check_shape(error)
        assert set(error) == {"code", "message", "data"} and error["code"] == -32001 and "nosuch" in error["message"]
        assert error["data"]["code"] == "build_not_found" and error["data"]["retryable"] is False
        with open("/proc/sys/kernel/perf_event_max_sample_rate") as file:
            most = int(file.read())
        error = raw.ask({"id": 1, "method": "LaunchProcess", "params": {"argv": TRUE, "profile": {"hz": most + 1}}})["error"]
        assert error["data"]["code"] == "hz_too_high" and str(most) in error["message"] and str(most + 1) in error["message"], error
        error = raw.ask({"id": 1, "method": "LaunchProcess", "params": {"argv": ["./no-such-program"]}})["error"]
        assert error["data"]["code"] == "launch_failed" and "no-such-program" in error["message"] and error["data"]["detail"], error


@SENTENCE("All others use -32001 with `data.code` one of:", "`build_not_found build_exists build_not_running process_not_found "
          "capture_not_found capture_busy capture_not_running launch_failed not_permitted unsupported backend_unavailable hz_too_high "
          "limit_exceeded target_exited target_privileged no_samples timeout cancelled disk_full io interrupted shutting_down "
          "gpu_not_armed gpu_no_calls gpu_frame_not_reached internal`")
def test_the_codes_are_those_of_the_list():
    with Daemon() as daemon:
        client = daemon.connect()
        page = client.call("Describe")
        errors = page["errors"]
        assert {error["code"] for error in errors} == listed() | set(STANDARD), errors
        assert all(error["number"] == STANDARD.get(error["code"], -32001) for error in errors)
        client.call("LaunchProcess", argv=["sleep", "60"], build_id="b", hold=True)
        capture = client.call("StartSamplingProfile", build_id="b")["capture_id"]
        client.call("LaunchProcess", argv=["sh", "-c", "exec <&-; echo up; sleep 60"], build_id="deaf")
        wait_until(lambda: any(event["method"] == "ProcessOutput" for event in client.events) or client.read_some(0.1) and False)
        got = set()

        def fails(code, method, **params):
            error = client.fails(method, **params)
            check_shape(error.error)
            assert error.code == code, (method, error.error)
            got.add(code)
        fails("build_not_found", "GetProcess", build_id="none")
        fails("build_exists", "LaunchProcess", argv=TRUE, build_id="b")
        fails("build_not_running", "SignalProcess", build_id="b", signal="TERM")
        fails("process_not_found", "AdoptProcess", pid=2 ** 22 + 1)
        fails("capture_not_found", "GetCapture", capture_id="none")
        fails("capture_busy", "StartSamplingProfile", build_id="b")
        fails("launch_failed", "LaunchProcess", argv=["/nonexistent"])
        fails("not_permitted", "StartSamplingProfile", pid=os.getpid()) if os.geteuid() else None
        fails("unsupported", "QueryLines")
        fails("gpu_not_armed", "StartGpuTrace", build_id="b")
        fails("hz_too_high", "LaunchProcess", argv=TRUE, profile={"hz": 2 ** 40})
        fails("timeout", "WaitCapture", capture_id=capture, timeout_ms=1)
        fails("io", "WriteStdin", build_id="deaf", data="x")
        waiting = client.send("WaitCapture", capture_id=capture)
        assert client.call("Cancel", request_id=waiting)["cancelled"] is True
        try:
            client.wait_reply(waiting)
        except Exception as error:
            assert error.code == "cancelled", error
        client.call("Shutdown", mode="drain")
        fails("shutting_down", "LaunchProcess", argv=TRUE)
        client.call("Shutdown", mode="now")
        daemon.process.wait(20)


@SENTENCE("The `error` object in events (`…Failed`) has the same shape.", "A capture that got no samples is never reported as a success: "
          "it is `no_samples` with the cause.")
def test_without_samples_a_capture_fails_with_the_cause():
    with Daemon() as daemon:
        client = daemon.connect()
        client.call("LaunchProcess", argv=FOREVER, build_id="b", stdio="null", hold=True)
        never = client.call("StartSamplingProfile", build_id="b")["capture_id"]
        client.call("StopCapture", capture_id=never)
        idle = client.call("LaunchProcess", argv=["sleep", "60"], stdio="null", profile={"duration_ms": 100, "hz": 1})["capture_id"]
        short = client.call("LaunchProcess", argv=TRUE, stdio="null", profile={"hz": 1})["capture_id"]
        causes = set()
        for capture_id in (never, idle, short):
            name, params = capture_end(client, capture_id)
            assert name == "SamplingProfileFailed", params
            check_shape(params["error"])
            assert params["error"]["data"]["code"] == "no_samples", params
            causes.add(re.sub(r"[\d.]+", "N", params["error"]["message"]))
            folder = os.path.join(daemon.data_dir, "captures", capture_id)
            assert not [name for name in os.listdir(folder) if name in ("capture.folded", "capture.svg", "capture.json")]
        assert len(causes) >= 2, causes


if __name__ == "__main__":
    main(globals())
