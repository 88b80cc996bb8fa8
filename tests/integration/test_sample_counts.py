"""As many samples as the program used CPU time, on the way from the wish to the artifacts."""
import os
import stat

from capture_runs import FOREVER, busy, names_of, profile, warm_up, Unchanged
from harness import Daemon, capture_end, main, read_folded


def test_a_program_that_ends_becomes_artifacts():
    with Daemon() as daemon:
        client = daemon.connect()
        warm_up(client)
        with Unchanged(daemon):
            result, (name, params) = profile(client, busy(0.5), hz=999)
            assert name == "SamplingProfileFinished", params
            assert params["reason"] == "target_exited"
            assert names_of(client, result["capture_id"]) == ["Started", "Progress", "Finished"]
            exited = client.wait_event("ProcessExited", build_id=result["build_id"])
            # The kernel's own account of the process against samples times period.
            cpu = (exited["user_us"] + exited["system_us"]) / 1e6
            assert abs(params["samples"] / 999 - cpu) < 0.2 * cpu + 0.02, (params["samples"], cpu)
            assert sum(read_folded(params["folded_path"]).values()) == params["samples"]
            record = client.call("GetCapture", capture_id=result["capture_id"])
            record = record.get("capture", record)
            for key in params:
                assert key == "seq" or record[key] == params[key], key
            assert record["exit_code"] == 0
            assert sorted(os.listdir(record["folder"])) == ["capture.folded", "capture.journal", "capture.json", "capture.svg", "capture.symbols", "record.json"]
            for artifact in params["artifacts"]:
                status = os.stat(artifact["path"])
                assert status.st_size == artifact["bytes"] and stat.S_IMODE(status.st_mode) == 0o600
            assert stat.S_IMODE(os.stat(record["folder"]).st_mode) == 0o700


def test_a_running_build_can_be_sampled_and_stopped():
    with Daemon() as daemon:
        client = daemon.connect()
        warm_up(client)
        with Unchanged(daemon):
            build = client.call("LaunchProcess", argv=FOREVER, stdio="null")
            started = client.call("StartSamplingProfile", build_id=build["build_id"], label="a label")
            assert started["state"] == "sampling" and started["hz"] == 999 and started["unwinder"] == "dwarf"
            again = client.fails("StartSamplingProfile", build_id=build["build_id"])
            assert again.code == "capture_busy" and started["capture_id"] in again.message, again.error
            for _ in range(2):
                client.wait_event("SamplingProfileProgress", capture_id=started["capture_id"])
            final = client.call("StopCapture", capture_id=started["capture_id"])
            assert final["reason"] == "stopped" and final["samples"] > 50 and final["label"] == "a label"
            assert client.call("StopCapture", capture_id=started["capture_id"]) == final
            # It can be sampled again at once.
            second = client.call("StartSamplingProfile", build_id=build["build_id"], duration_ms=300)
            name, params = capture_end(client, second["capture_id"])
            assert params["reason"] == "duration" and 10 < params["samples"] < 400, params
            client.call("StopProcess", build_id=build["build_id"], grace_ms=0)


def test_a_held_build_is_armed_until_it_runs():
    with Daemon() as daemon:
        client = daemon.connect()
        build = client.call("LaunchProcess", argv=busy(0.3), stdio="null", hold=True)
        started = client.call("StartSamplingProfile", build_id=build["build_id"], progress_ms=100)
        assert started["state"] == "armed"
        client.drain(0.3)
        assert names_of(client, started["capture_id"]) == []
        client.call("ResumeProcess", build_id=build["build_id"])
        name, params = capture_end(client, started["capture_id"])
        assert params["reason"] == "target_exited" and params["samples"] > 200, params
        assert params["summary"]["duration_ms"] < 5000


if __name__ == "__main__":
    main(globals())
