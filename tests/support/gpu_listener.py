"""Stands in for profd at the other end of the layer in GPU programs (protocol/gpu_wire.h), and reads RenderDoc's documents. Standard library only.

    with Listener() as listener:
        program = listener.run(["gpu_frames", "--frames", "8"])
        listener.accept().send("start", by="submit", first=2, last=3, template="/tmp/x/doc")
"""
import contextlib
import glob
import json
import os
import re
import select
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.parse
import xml.etree.ElementTree as ElementTree

from harness import BUILD, skip, target

LAYER_SHARE = os.path.join(BUILD, "daemon", "gpu", "layer")
MANIFESTS = os.path.join("vulkan", "implicit_layer.d")
LAVAPIPE = glob.glob("/usr/share/vulkan/icd.d/lvp_icd*.json")
RENDERDOC = "/usr/share/" + MANIFESTS + "/renderdoc_capture.json"
TOKEN = "0123456789abcdef0123456789abcdef"
PLAIN = re.compile(r"^[A-Za-z0-9._/:+,-]*$")


def need(renderdoc=True):
    """Skips where a package is absent."""
    if not os.path.exists(os.path.join(LAYER_SHARE, "libprofd_gpu.so")):
        skip("the layer is not built: no headers of Vulkan (libvulkan-dev)")
    if not LAVAPIPE:
        skip("no lavapipe (mesa-vulkan-drivers)")
    if renderdoc and not (os.path.exists(RENDERDOC) and shutil.which("renderdoccmd")):
        skip("no RenderDoc (librenderdoc, renderdoccmd)")


def librenderdoc():
    """The library that RenderDoc's own manifest names."""
    with open(RENDERDOC, encoding="utf-8") as file:
        path = json.load(file)["layer"]["library_path"]
    return os.path.normpath(os.path.join(os.path.dirname(RENDERDOC), path))


class Line:
    """One line of the wire: its word, and its values by key."""

    def __init__(self, text):
        words = text.split(" ")
        self.word, self.values = words[0], {}
        for pair in words[1:]:
            key, _, value = pair.partition("=")
            assert PLAIN.match(re.sub(r"%[0-9A-Fa-f]{2}", "", value)), text
            assert key not in self.values, text
            self.values[key] = urllib.parse.unquote(value)

    def __getitem__(self, key):
        value = self.values[key]
        return int(value) if value.isdigit() and key not in ("token", "uuid", "driver", "name") else value

    def __repr__(self):
        return "%s %s" % (self.word, self.values)


class Connection:
    """One process with the layer in it. lines: all that it has said so far."""

    def __init__(self, connected):
        self.socket, self.lines, self.rest, self.is_open, self.seen = connected, [], b"", True, 0

    def send(self, word, **values):
        pairs = "".join(" %s=%s" % (key, urllib.parse.quote(str(value), safe="/:+,")) for key, value in values.items())
        self.socket.sendall((word + pairs + "\n").encode().replace(b"~", b"%7E"))

    def read_some(self, timeout):
        if not self.is_open or not select.select([self.socket], [], [], timeout)[0]:
            return
        try:
            data = self.socket.recv(65536)
        except ConnectionError:
            data = b""
        self.is_open = data != b""
        self.rest += data
        while b"\n" in self.rest:
            line, self.rest = self.rest.split(b"\n", 1)
            assert len(line) < 4096
            self.lines.append(Line(line.decode("ascii")))

    def wait(self, *words, timeout=20):
        """The next line with one of these words behind those that wait() gave before."""
        end = time.monotonic() + timeout
        while True:
            while self.seen < len(self.lines):
                self.seen += 1
                if self.lines[self.seen - 1].word in words:
                    return self.lines[self.seen - 1]
            assert self.is_open, "closed; no %s in %s" % (words, self.lines)
            assert time.monotonic() < end, "no %s in %s s: %s" % (words, timeout, self.lines)
            self.read_some(end - time.monotonic())

    def drain(self, timeout=20):
        """Reads until the program closes."""
        end = time.monotonic() + timeout
        while self.is_open:
            assert time.monotonic() < end, self.lines
            self.read_some(end - time.monotonic())
        return self.lines

    def find(self, word):
        return [line for line in self.lines if line.word == word]


class Listener:
    """The socket, a folder for documents, and the environment that arms a program."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="profd-gpu-")
        self.path = os.path.join(self.folder, "socket")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.bind(self.path)
        self.socket.listen(8)
        self.programs, self.connections = [], []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for connection in self.connections:
            connection.socket.close()
        self.socket.close()
        for program in self.programs:
            if program.poll() is None:
                program.kill()
            program.wait()
            for stream in (program.stdout, program.stderr):
                stream.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def out(self, name):
        return os.path.join(self.folder, name)

    def renderdoc_share(self, library=None):
        """A folder for XDG_DATA_DIRS, behind the layer's: RenderDoc's own manifest with a switch of ours. It stays an implicit layer, because only of those
        does the loader ask which extensions they hide: as an explicit one it makes vkCreateInstance fail in programs that use others.
        library: one that stands in for RenderDoc."""
        share = self.out("renderdoc")
        os.makedirs(os.path.join(share, MANIFESTS), exist_ok=True)
        if library:
            manifest = {"file_format_version": "1.1.2", "layer": {
                "name": "VK_LAYER_RENDERDOC_Capture", "type": "GLOBAL", "library_path": library, "api_version": "1.3.131",
                "implementation_version": "1", "description": "a RenderDoc of the tests", "disable_environment": {"NO_FAKE_RENDERDOC": "1"}}}
        else:
            with open(RENDERDOC, encoding="utf-8") as file:
                manifest = json.load(file)
        manifest["layer"]["enable_environment"] = {"PROFD_GPU_RENDERDOC": "1"}
        with open(os.path.join(share, MANIFESTS, "renderdoc.json"), "w", encoding="utf-8") as file:
            json.dump(manifest, file)
        return share

    def environment(self, renderdoc=True, gl=False, **more):
        """renderdoc: False for none, or the way in which tests/targets/fake_renderdoc.c fails. gl: for a program of EGL or GLX, without the Vulkan layer."""
        env = {key: value for key, value in os.environ.items() if not key.startswith(("VK_", "PROFD_GPU"))}
        env.update(PROFD_GPU="1", PROFD_GPU_LIBRARY=os.path.join(LAYER_SHARE, "libprofd_gpu.so"), PROFD_GPU_SOCKET=self.path, PROFD_GPU_TOKEN=TOKEN, VK_ICD_FILENAMES=LAVAPIPE[0],
                   XDG_RUNTIME_DIR=self.folder, TMPDIR=self.folder, RENDERDOC_TEMP=self.folder, HOME=self.folder,
                   XDG_DATA_DIRS=LAYER_SHARE + ":/usr/local/share:/usr/share")
        if renderdoc:
            fake = target("librenderdoc.so") if isinstance(renderdoc, str) else None
            env.update(XDG_DATA_DIRS=":".join((LAYER_SHARE, self.renderdoc_share(fake), "/usr/local/share", "/usr/share")), PROFD_GPU_RENDERDOC="1",
                       FAKE_RENDERDOC=str(renderdoc),
                       LD_PRELOAD=os.path.join(LAYER_SHARE, "libprofd_gpu_nobind.so"))
        if gl:
            names = ("libprofd_gpu_gl.so", "libprofd_gpu_nobind.so")
            env.update(PROFD_GPU_LIBRARY=os.path.join(LAYER_SHARE, names[0]), XDG_DATA_DIRS="/usr/local/share:/usr/share",
                       LD_PRELOAD=":".join([os.path.join(LAYER_SHARE, name) for name in names] + [librenderdoc()]))
            del env["PROFD_GPU_RENDERDOC"]
        env.update(more)
        return {key: value for key, value in env.items() if value is not None}

    def run(self, argv, env=None):
        program = subprocess.Popen(argv, env=env or self.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.programs.append(program)
        return program

    def accept(self, timeout=20):
        assert select.select([self.socket], [], [], timeout)[0], "no layer connected"
        connection = Connection(self.socket.accept()[0])
        self.connections.append(connection)
        return connection


def frames_program(*args):
    return [target("gpu_frames"), *map(str, args)]


def convert(path):
    """The document's calls as XML, by RenderDoc's own tool."""
    out = path + ".xml"
    done = subprocess.run(["renderdoccmd", "convert", "-f", path, "-o", out, "-c", "xml"], capture_output=True, text=True, timeout=60,
                          env=dict(os.environ, VK_ICD_FILENAMES=LAVAPIPE[0]))
    assert done.returncode == 0, done.stdout + done.stderr
    return ElementTree.parse(out).getroot()


def listening_ports(pid):
    """TCP ports of all addresses on which the process listens, by /proc."""
    inodes, ports = set(), set()
    for fd in os.listdir("/proc/%d/fd" % pid):
        link = os.readlink("/proc/%d/fd/%s" % (pid, fd))
        if link.startswith("socket:["):
            inodes.add(link[8:-1])
    for table in ("tcp", "tcp6"):
        with open("/proc/%d/net/%s" % (pid, table), encoding="ascii") as file:
            for row in file.read().splitlines()[1:]:
                fields = row.split()
                if fields[3] == "0A" and fields[9] in inodes:
                    ports.add(int(fields[1].split(":")[1], 16))
    return ports


def labels_of(path):
    """The labels that the document's commands are in, in their order."""
    found = []
    for chunk in convert(path).iter("chunk"):
        if chunk.get("name") == "vkCmdBeginDebugUtilsLabelEXT":
            found += [text.text for text in chunk.iter("string") if text.get("name") == "pLabelName"]
    return found


def frames_in(path):
    return [label for label in labels_of(path) if label.startswith("frame ")]


def groups_of(path):
    """The debug groups of a document of GL, in their order, and "swap" where it has one."""
    found = []
    for chunk in convert(path).iter("chunk"):
        if chunk.get("name") == "glPushDebugGroup":
            found += [text.text for text in chunk.iter("string") if text.get("name") == "message"]
        elif chunk.get("name") in ("eglSwapBuffers", "glXSwapBuffers"):
            found.append("swap")
    return found


@contextlib.contextmanager
def armed(*args, env=None):
    """A listener, the program gpu_frames under it, and its connection behind hello."""
    with Listener() as listener:
        program = listener.run(frames_program(*args), listener.environment(**(env or {})))
        connection = listener.accept()
        yield listener, program, connection
