"""A daemon with a layer and a RenderDoc that are only there, and armed programs for a test to be the layer of."""
import contextlib
import os
import shutil
import tempfile
import time

from fake_gpu_layer import Layer, Parts
from harness import Daemon

PROGRAM = ["sleep", "60"]
# In the place of renderdoccmd, because the documents of a played layer are none.
READER = "#!/bin/sh\nprintf '<?xml' > \"$5\"\n"


class Stage:
    """with Stage() as stage: stage.daemon, stage.client, stage.parts, and stage.launch(). reader: the script that is renderdoccmd; None: the system's; "": none."""

    def __init__(self, env=None, reader=READER, **options):
        self.root = tempfile.mkdtemp(prefix="profd-st-")
        self.parts = Parts(self.root)
        self.runtime = os.path.join(self.root, "run")
        os.mkdir(self.runtime, 0o700)
        env = dict({"PATH": self.path(reader)}, **(env or {}))
        self.daemon = Daemon(env=self.parts.environment(XDG_RUNTIME_DIR=self.runtime, **env), **options)

    def path(self, reader):
        """A PATH with that renderdoccmd, and without any when it is empty."""
        if reader is None:
            return os.environ["PATH"]
        folder = os.path.join(self.root, "bin")
        os.mkdir(folder)
        if not reader:
            os.symlink(shutil.which(PROGRAM[0]), os.path.join(folder, PROGRAM[0]))
            return folder
        path = os.path.join(folder, "renderdoccmd")
        with open(path, "w", encoding="utf-8") as file:
            file.write(reader.replace("ROOT", self.root))
        os.chmod(path, 0o700)
        return folder + ":" + os.environ["PATH"]

    def __enter__(self):
        self.before = self.folders()
        self.daemon.__enter__()
        self.client = self.daemon.connect()
        return self

    def __exit__(self, *failure):
        try:
            self.daemon.__exit__(*failure)
            if failure[0] is None:
                assert self.folders() == self.before, "a private folder was left behind"
        finally:
            shutil.rmtree(self.root)

    def folders(self):
        """Private folders of armed programs."""
        return set(os.listdir(self.runtime))

    @staticmethod
    def describe():
        with Daemon() as daemon:
            return daemon.connect().call("Describe")

    def launch(self, build_id="engine", argv=PROGRAM, **options):
        return self.client.call("LaunchProcess", **dict({"argv": argv, "build_id": build_id, "gpu": {}}, **options))["pid"]

    @contextlib.contextmanager
    def layer(self, pid, **more):
        layer = Layer(pid, **more)
        try:
            yield layer
        finally:
            layer.end()

    @contextlib.contextmanager
    def program(self, build_id="engine", **options):
        """(pid, layer) of a program that has said hello and has a device; ended with the block."""
        pid = self.launch(build_id, **options)
        try:
            with self.layer(pid) as layer:
                layer.device()
                yield pid, layer
        finally:
            self.client.call("StopProcess", build_id=build_id, signal="KILL")


def write_document(start, data=b"RDOC" + bytes(60), name="_capture.rdc"):
    """As RenderDoc names what it writes; its path."""
    path = start["template"] + name
    with open(path, "wb") as file:
        file.write(data)
    return path


def record(layer, start, first, last, mono_ns=None, **more):
    """A good recording: capturing, frames, the document. Returns the document's path."""
    layer.say("capturing", frame=first, wall_ns=time.time_ns(), mono_ns=mono_ns or time.monotonic_ns())
    for number in range(first, last + 1):
        layer.frame(number)
    path = write_document(start, **more)
    layer.frame(last + 1)
    layer.say("document", path=path, bytes=os.path.getsize(path), first=first, last=last)
    return path


def start(stage, **params):
    return stage.client.call("StartGpuTrace", **dict({"build_id": "engine"}, **params))


def begin(layer, frame):
    """The recording begins."""
    layer.say("capturing", frame=frame, wall_ns=time.time_ns(), mono_ns=time.monotonic_ns())


def failure(stage, layer, code, text="as the layer says", **params):
    """The event of a trace that ends with this fault of the layer's."""
    capture_id = start(stage, **dict({"start_frame": 900}, **params))["capture_id"]
    layer.wait_for("start")
    layer.say("fault", code=code, text=text)
    return stage.client.wait_event("GpuTraceFailed", capture_id=capture_id)
