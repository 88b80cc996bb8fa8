"""Doctor: what it says against what the kernel says, and what happens when it is done."""
import os
import resource

from harness import Daemon, main, skip
from kernel_layers import has_seccomp, landlock_version

NOBODY = 65534
IDS = {"sampling", "perf_event_paranoid", "capabilities", "seccomp", "max_sample_rate", "clock", "max_stack", "kernel_symbols",
       "locked_memory", "descriptors", "data_folder", "programs", "analyzer_sandbox", "versions", "gpu"}


def checks(daemon):
    found = daemon.connect().call("Doctor")["checks"]
    for check in found:
        assert set(check) == {"id", "status", "value", "message", "fix"}, check
        assert check["status"] in ("ok", "warn", "fail") and check["value"] and check["message"], check
        # Whatever is not well has a remedy, and what is well needs none.
        assert (check["fix"] is None) == (check["status"] == "ok"), check
    return {check["id"]: check for check in found}


def kernel(name):
    with open("/proc/sys/kernel/" + name) as file:
        return int(file.read())


def own_status(name):
    with open("/proc/self/status") as file:
        return next(line.split()[1] for line in file if line.startswith(name + ":"))


def test_it_tells_what_the_kernel_tells():
    with Daemon() as daemon:
        found = checks(daemon)
        assert IDS <= set(found), IDS - set(found)
        assert found["perf_event_paranoid"]["value"] == str(kernel("perf_event_paranoid"))
        assert found["max_sample_rate"]["value"] == "%d Hz" % kernel("perf_event_max_sample_rate")
        assert found["max_stack"]["value"] == "%d frames" % kernel("perf_event_max_stack")
        assert found["kernel_symbols"]["value"] == "kptr_restrict %d" % kernel("kptr_restrict")
        assert found["descriptors"]["value"] == "%d open files" % resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        assert found["seccomp"]["value"] == ["none", "strict", "filter"][int(own_status("Seccomp"))]
        assert os.uname().release in found["versions"]["value"]
        assert found["analyzer_sandbox"]["value"] == "%s, Landlock %d" % ("seccomp" if has_seccomp() else "no seccomp", landlock_version())
        assert (found["analyzer_sandbox"]["status"] == "ok") == (has_seccomp() and landlock_version() > 0), found["analyzer_sandbox"]
        free = os.statvfs(daemon.data_dir)
        told = int(found["data_folder"]["value"].split()[0])
        assert abs(told - (free.f_bavail * free.f_frsize >> 20)) < 2048, (told, found)
        # What it says of sampling is what happens.
        client = daemon.connect()
        launch = dict(argv=["sh", "-c", "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done"], profile={})
        if found["sampling"]["status"] == "ok":
            client.call("LaunchProcess", **launch)
            finished = client.wait_event("SamplingProfileFinished")
            warned = any("kernel" in warning["code"] for warning in finished["warnings"])
            assert warned == (found["perf_event_paranoid"]["status"] != "ok"), (finished["warnings"], found)
        else:
            assert client.fails("LaunchProcess", **launch).code in ("not_permitted", "backend_unavailable")


def test_an_ordinary_user_is_told_what_is_missing():
    if os.geteuid() != 0:
        skip("needs root, to become another user")
    with Daemon(user=NOBODY) as daemon:
        found = checks(daemon)
        paranoid = kernel("perf_event_paranoid")
        if paranoid < 2:
            skip("kernel.perf_event_paranoid is %d: nothing is kept from users" % paranoid)
        check = found["perf_event_paranoid"]
        assert check["status"] == ("warn" if paranoid == 2 else "fail") and "sysctl kernel.perf_event_paranoid=" in check["fix"]
        assert found["sampling"]["status"] == ("ok" if paranoid == 2 else "fail"), found["sampling"]
        assert found["capabilities"]["value"].startswith("CAP_PERFMON no")


def test_a_target_cannot_be_asked_about_yet():
    with Daemon() as daemon:
        assert daemon.connect().fails("Doctor", pid=os.getpid()).code == "unsupported"


if __name__ == "__main__":
    main(globals())
