"""Which GPU: of two drivers on this machine, lavapipe and SwiftShader, a program sees the one that is named, and no other."""
import contextlib
import json
import os
import subprocess

from gpu_listener import LAVAPIPE, Listener, labels_of, need
from gpu_stage import Stage
from harness import Daemon, ProfdError, main, skip, target, wait_until

SWIFTSHADER = "/usr/lib/chromium/libvk_swiftshader.so"
PROGRAM = target("gpu_devices")


def drivers(listener):
    """Both, for VK_ICD_FILENAMES."""
    manifest = listener.out("swiftshader.json")
    with open(manifest, "w", encoding="utf-8") as file:
        json.dump({"file_format_version": "1.0.0", "ICD": {"library_path": SWIFTSHADER, "api_version": "1.1.0"}}, file)
    return LAVAPIPE[0] + ":" + manifest


def need_two():
    need(renderdoc=False)
    if not os.path.exists(SWIFTSHADER):
        skip("no SwiftShader beside lavapipe (chromium)")


def said(listener, how="1.1", **more):
    """What the program lists, and its connection when it has one."""
    env = listener.environment(**dict({"renderdoc": False, "VK_ICD_FILENAMES": drivers(listener)}, **more))
    program = listener.run([PROGRAM, "list", how], env)
    connection = listener.accept() if "PROFD_GPU" in env else None
    out, err = program.communicate(timeout=60)
    assert program.returncode == 0, err
    if connection:
        connection.drain()
    return out, connection


def bare(listener, how="1.1"):
    env = {key: value for key, value in os.environ.items() if not key.startswith(("VK_", "PROFD_GPU"))}
    env.update(VK_ICD_FILENAMES=drivers(listener), XDG_RUNTIME_DIR=listener.folder)
    return subprocess.run([PROGRAM, "list", how], env=env, capture_output=True, text=True, timeout=60, check=True).stdout


def names_of(listing):
    """In the order in which Vulkan tells of them."""
    line, = [line for line in listing.splitlines() if line.startswith("room 2:")]
    return line.split("; ")[1:]


def expected(name, how):
    """What a program prints that has this device alone: an answer of the specification's, not ours."""
    lines = ["devices: 1", "room 0: 5, 0", "room 1: 0, 1; " + name, "room 2: 0, 1; " + name]
    if how != "1.0":
        lines += ["groups: 1", "groups, room 0: 5, 0", "groups, room 1: 0, 1; " + name, "groups, room 2: 0, 1; " + name]
    return "\n".join(lines) + "\n"


def test_a_program_sees_the_device_alone_that_is_named():
    need_two()
    with Listener() as listener:
        names = names_of(bare(listener))
        assert len(names) == 2 and any("llvmpipe" in name for name in names) and any("SwiftShader" in name for name in names), names
        for how in ("1.0", "1.1", "khr"):
            for index, name in enumerate(names):
                for wish in (str(index), name, "LLVMPIPE" if "llvmpipe" in name else "swift"):
                    out, connection = said(listener, how, PROFD_GPU_DEVICE=wish)
                    assert out == expected(name, how), (how, wish, out)
                    assert connection.find("fault") == [], connection.lines


def test_without_a_name_all_are_seen_as_without_the_layer():
    need_two()
    with Listener() as listener:
        for how in ("1.0", "1.1", "khr"):
            assert said(listener, how)[0] == said(listener, how, PROFD_GPU_DEVICE="")[0] == bare(listener, how)


def made(listener, **more):
    """The devices that the program makes of all that it sees."""
    env = listener.environment(**dict({"renderdoc": False, "VK_ICD_FILENAMES": drivers(listener)}, **more))
    program = listener.run([PROGRAM, "work", "2", "0"], env)
    connection = listener.accept()
    assert program.wait(60) == 0, program.stderr.read()
    connection.drain()
    return connection.find("device")


def test_a_uuid_names_a_device_and_indexes_stay_those_of_all():
    need_two()
    with Listener() as listener:
        both = made(listener)
        assert [device["index"] for device in both] == [0, 1] and both[0].values["uuid"] != both[1].values["uuid"]
        for device in both:
            uuid = device.values["uuid"]
            dashed = "-".join((uuid[:8], uuid[8:12], uuid[12:16], uuid[16:20], uuid[20:])).upper()
            for wish in (uuid, dashed):
                alone, = made(listener, PROFD_GPU_DEVICE=wish)
                assert alone.values == device.values, (alone, device)


def test_a_name_that_nothing_has_or_several_have_hides_nothing_and_is_told_at_each_start():
    need_two()
    with Listener() as listener:
        names = names_of(bare(listener))
        for wish, code, there in (("Voodoo 2", "device_not_found", names), ("7", "device_not_found", names),
                                  ("0" * 32, "device_not_found", names), ("V", "device_ambiguous", names)):
            out, connection = said(listener, PROFD_GPU_DEVICE=wish)
            assert out == bare(listener), (wish, out)
            fault, = connection.find("fault")
            assert fault["code"] == code and '"%s"' % wish in fault.values["text"], fault
            assert all("%d: %s" % (index, name) in fault.values["text"] for index, name in enumerate(there)), fault
        # An instance of Vulkan 1.0 does not tell uuids.
        out, connection = said(listener, "1.0", PROFD_GPU_DEVICE=made(listener)[0].values["uuid"])
        assert out == bare(listener, "1.0") and "Vulkan 1.1" in connection.find("fault")[0].values["text"]
        env = listener.environment(renderdoc=False, VK_ICD_FILENAMES=drivers(listener), PROFD_GPU_DEVICE="Voodoo 2")
        listener.run([PROGRAM, "work", "200", "10"], env)
        connection = listener.accept()
        connection.send("status")
        assert connection.wait("fault")["code"] == "device_not_found"
        connection.send("start", by="submit", first=5, last=5, template=listener.out("doc"))
        assert connection.wait("fault")["code"] == "device_not_found"


def recorded(listener, env, wish):
    """The labels in the one document that a start for this device makes, and the lines of the wire."""
    program = listener.run([PROGRAM, "work", "6", "20"], env)
    connection = listener.accept()
    connection.wait("hello")
    connection.send("start", by="submit", first=2, last=3, device=wish, template=listener.out("doc"))
    connection.drain()
    out, err = program.communicate(timeout=60)
    assert program.returncode == 0 and out.count(": 6 frames") == 2, (out, err)
    document, = connection.find("document")
    return labels_of(document["path"]), connection


def test_of_several_devices_the_one_that_is_meant_is_recorded():
    need_two()
    need()
    with Listener() as listener:
        names = names_of(bare(listener))
        env = listener.environment(VK_ICD_FILENAMES=drivers(listener))
        for index, name in enumerate(names):
            # Each has frames 2 and 3 in its own counting, and comes to them in turn with the other.
            labels, connection = recorded(listener, env, str(index) if index else name)
            assert labels == ["%s frame %d" % (name, frame) for frame in (2, 3)], labels
            begun, = connection.find("capturing")
            assert begun.values["name"] == name and begun["index"] == index, begun
            assert connection.find("fault") == []
        # Whoever is not there is waited for.
        listener.run([PROGRAM, "work", "20", "10"], env)
        connection = listener.accept()
        connection.send("start", by="submit", first=2, last=3, device="Voodoo 2", template=listener.out("doc"))
        connection.drain()
        assert not connection.find("document") and not connection.find("capturing") and not connection.find("fault"), connection.lines


@contextlib.contextmanager
def held_launch(stage, mark):
    """A client whose launch waits for a probe, which reads a driver's manifest that comes with the end of the block; and the launch's id."""
    client, fifo = stage.daemon.connect(), os.path.join(stage.root, "icd.json")
    os.mkfifo(fifo)
    number = client.send("LaunchProcess", argv=["touch", mark], gpu={"device": "0"}, env={"VK_ICD_FILENAMES": fifo})
    writer = os.open(fifo, os.O_WRONLY)  # once the probe has opened it
    try:
        yield client, number
    finally:
        os.close(writer)
        os.remove(fifo)


def test_what_is_launched_waits_for_the_probe_and_nobody_else_does():
    with Stage() as stage:
        mark = os.path.join(stage.root, "ran")
        with held_launch(stage, mark) as (client, number):
            assert stage.client.call("Ping")["now_unix_us"] > 0
        try:
            raise AssertionError(client.wait_reply(number))
        except ProfdError as error:
            assert (error.code, error.detail) == ("backend_unavailable", "vulkan_no_driver"), error.error
        # Whoever goes meanwhile, or whose daemon ends, has started nothing.
        with held_launch(stage, mark) as (gone, _):
            before = stage.client.call("GetStatus")["clients"]
            gone.close()
            wait_until(lambda: stage.client.call("GetStatus")["clients"] < before, 5, "the client's end")
        with held_launch(stage, mark):
            stage.client.call("Shutdown")
        assert stage.daemon.process.wait(20) == 0 and not os.path.exists(mark)


def finish(client, **params):
    capture_id = client.call("StartGpuTrace", build_id="engine", **params)["capture_id"]
    client.call("ResumeProcess", build_id="engine")
    final = client.call("WaitCapture", capture_id=capture_id)
    client.wait_event("ProcessExited")
    return final


def test_from_launch_to_document():
    need_two()
    need()
    with Listener() as listener, Daemon(env={"VK_ICD_FILENAMES": drivers(listener)}) as daemon:
        client, names = daemon.connect(), names_of(bare(listener))
        uuids = {device["name"]: device.values["uuid"] for device in made(listener)}
        def launch(gpu):
            client.call("LaunchProcess", argv=[PROGRAM, "work", "6", "20"], build_id="engine", gpu=gpu, hold=True)
        for name in names:
            # The program sees one, by its uuid; or both, and one is recorded.
            for gpu, params in (({"device": uuids[name]}, {}), (True, {"device": name}), ({"device": name}, {"device": uuids[name]})):
                launch(gpu)
                final = finish(client, frame_by="submit", start_frame=2, **params)
                assert final["state"] == "finished" and labels_of(final["trace_path"]) == [name + " frame 2"], final
                assert (final["device"]["name"], final["device"]["uuid"]) == (name, uuids[name]), final
        launch({"device": names[0]})
        error = finish(client, frame_by="submit", start_frame=2, device=names[1])["error"]["data"]
        assert (error["code"], error["detail"]) == ("gpu_no_calls", "device_not_used"), error
        assert client.fails("LaunchProcess", argv=[PROGRAM], gpu={"device": "V"}).detail == "device_ambiguous"


if __name__ == "__main__":
    main(globals())
