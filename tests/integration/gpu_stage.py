"""A daemon with a layer and a RenderDoc that are only there, and armed programs for a test to be the layer of."""
import contextlib
import glob
import os
import shutil
import tempfile

from fake_gpu_layer import Layer, Parts
from harness import Daemon

PROGRAM = ["sleep", "60"]


class Stage:
    """with Stage() as stage: stage.daemon, stage.client, stage.parts, and stage.launch()."""

    def __init__(self, env=None, **options):
        self.root = tempfile.mkdtemp(prefix="profd-gpu-stage-")
        self.parts = Parts(self.root)
        self.runtime = os.path.join(self.root, "run")
        os.mkdir(self.runtime, 0o700)
        self.daemon = Daemon(env=self.parts.environment(XDG_RUNTIME_DIR="", **(env or {})), **options)

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

    @staticmethod
    def folders():
        """Private folders of armed programs, of all daemons of this machine that have no $XDG_RUNTIME_DIR of their own."""
        return set(glob.glob("/tmp/profd-gpu-??????"))

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
