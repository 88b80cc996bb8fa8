"""profd's layer in a GPU program, played by the test: it says on the wire (protocol/gpu_wire.h) whatever a case wants said.

The program is any; the test reads the socket and the token from its environment and connects as the layer in it would.
"""
import json
import os
import re
import socket

UUID = "0123456789abcdef0123456789abcdef"
LINE_BYTES = 4096


def find_library(name):
    """Any shared library of the system, which the dynamic linker takes without a word."""
    with open("/proc/self/maps") as file:
        found = re.search(r"/\S*/%s[-.0-9]*so\S*" % name, file.read())
    return found.group()


class Parts:
    """A layer's folder and a RenderDoc that are only there: what profd looks for, in a folder of the test's."""

    def __init__(self, root):
        self.folder, self.renderdoc = os.path.join(root, "layer"), os.path.join(root, "librenderdoc.so")
        os.makedirs(self.folder)
        self.nobind = os.path.join(self.folder, "libprofd_gpu_nobind.so")
        self.library = os.path.join(self.folder, "libprofd_gpu.so")
        self.gl = os.path.join(self.folder, "libprofd_gpu_gl.so")
        self.manifest = os.path.join(self.folder, "VkLayer_profd_gpu.json")
        for path in (self.nobind, self.library, self.gl, self.renderdoc):
            os.symlink(find_library("libc"), path)
        with open(self.manifest, "w") as file:
            json.dump({"file_format_version": "1.1.2", "layer": {
                "name": "VK_LAYER_PROFD_gpu", "type": "GLOBAL", "library_path": "/nowhere/libprofd_gpu.so", "api_version": "1.3.0",
                "implementation_version": "1", "description": "played by a test", "enable_environment": {"PROFD_GPU": "1"},
                "disable_environment": {"DISABLE_PROFD_GPU": "1"}}}, file)

    def environment(self, **more):
        return dict({"PROFD_GPU_LAYER": self.folder, "PROFD_RENDERDOC": self.renderdoc}, **more)


def environment_of(pid):
    with open("/proc/%d/environ" % pid, "rb") as file:
        pairs = file.read().decode().split("\0")
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


def escaped(value):
    return "".join(chr(byte) if re.match(rb"[A-Za-z0-9._/:+,-]", bytes([byte])) else "%%%02X" % byte for byte in str(value).encode())


def line(word, **pairs):
    return " ".join([word] + ["%s=%s" % (key, escaped(value)) for key, value in pairs.items()]).encode() + b"\n"


class Layer:
    """One connection to an armed program's socket."""

    def __init__(self, pid, greet=True, environment=None, **more):
        self.environment = environment or environment_of(pid)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(20)
        self.socket.connect(self.environment["PROFD_GPU_SOCKET"])
        self.kept = b""
        if greet:
            self.hello(**more)

    def say(self, word, **pairs):
        self.socket.sendall(line(word, **pairs))

    def say_raw(self, data):
        self.socket.sendall(data)

    def hello(self, **more):
        self.say("hello", **dict({"token": self.environment["PROFD_GPU_TOKEN"], "pid": os.getpid(), "ppid": os.getppid(), "exe": "/usr/bin/engine",
                                  "api": "vulkan", "order": "above", "renderdoc": "/usr/lib/librenderdoc.so", "renderdoc_api": "1.6.0"},
                                 **more))

    def device(self, **more):
        self.say("device", **dict({"name": "llvmpipe (LLVM 15.0.6, 256 bits)", "type": "cpu", "driver": "llvmpipe", "uuid": UUID, "index": 0},
                                  **more))

    def frame(self, number, by="submit"):
        self.say("frame", n=number, by=by)

    def read(self):
        """(word, {key: value}) of the next line; None: profd closed the connection."""
        while b"\n" not in self.kept:
            try:
                piece = self.socket.recv(LINE_BYTES)
            except ConnectionResetError:
                piece = b""
            if not piece:
                return None
            self.kept += piece
        said, self.kept = self.kept.split(b"\n", 1)
        assert len(said) < LINE_BYTES, said
        word, *pairs = said.decode("ascii").split(" ")
        decoded = {}
        for pair in pairs:
            key, value = pair.split("=", 1)
            assert re.fullmatch(r"(%[0-9A-F]{2}|[A-Za-z0-9._/:+,-])*", value), said
            decoded[key] = re.sub("%(..)", lambda found: chr(int(found[1], 16)), value).encode("latin-1").decode()
        return word, decoded

    def wait_for(self, word):
        """The pairs of the next line of that word; status lines, which ask for nothing new, are passed over."""
        while True:
            said = self.read()
            assert said is not None, "profd closed the connection; %s was expected" % word
            if said[0] == word:
                return said[1]
            assert said[0] == "status", said

    def is_closed(self):
        said = self.read()
        while said is not None and said[0] == "status":
            said = self.read()
        return said is None

    def end(self):
        self.socket.close()
