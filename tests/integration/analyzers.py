"""The analyzer program as the daemon starts it: a channel at descriptor 3, every file as a descriptor."""
import json
import os
import shutil
import socket
import subprocess
import tempfile

from harness import program


class Analyzer:
    """The running program, its channel, and its outputs in a folder."""

    def __init__(self, journal, symbols=True, outputs=("folded", "svg", "json", "symbols"), facts=None, writable=True, onto=None,
                 memory_kib=None):
        self.folder = tempfile.mkdtemp(prefix="profd-analyzer-")
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.channel.settimeout(60)
        self.errors = open(os.path.join(self.folder, "stderr"), "w+b")
        theirs_fd = theirs.fileno()
        command = ["sh", "-c", 'exec "$0" 3<&%d %d<&-' % (theirs_fd, theirs_fd), program("profd-analyzer")]
        if theirs_fd == 3:
            command = ["sh", "-c", 'exec "$0"', program("profd-analyzer")]
        if memory_kib is not None:
            command[2] = "ulimit -v %d && %s" % (memory_kib, command[2])
        self.process = subprocess.Popen(command, pass_fds=[theirs_fd], stdin=subprocess.DEVNULL, stdout=self.errors,
                                        stderr=self.errors)
        theirs.close()
        files = [self.memory(journal)]
        for name in outputs:
            flags = os.O_WRONLY | os.O_CREAT if writable else os.O_RDONLY | os.O_CREAT
            files.append(os.open(onto or self.path(name), flags, 0o600))
        self.send({"type": "begin", "version": 2, "capture_id": "c1", "symbols": symbols, "outputs": list(outputs),
                   "facts": facts or {}}, files)

    def path(self, name):
        return os.path.join(self.folder, "capture." + name)

    def memory(self, data):
        fd = os.memfd_create("journal")
        with open(fd, "wb", closefd=False) as file:
            file.write(data)
        return fd

    def send(self, body, files=()):
        socket.send_fds(self.channel, [json.dumps(body).encode()], list(files))
        for fd in files:
            os.close(fd)

    def kept(self, path):
        self.send({"type": "kept_symbols"}, [os.open(path, os.O_RDONLY)])

    def image(self, number, path):
        self.send({"type": "image", "image": number}, [os.open(path, os.O_RDONLY)])

    def receive(self):
        """The next message that is no progress; None at the end of the channel."""
        while True:
            data = self.channel.recv(1 << 20)
            if not data:
                return None
            message = json.loads(data)
            if message["type"] != "progress":
                return message
            assert 0 <= message["permille"] <= 1000 and message["phase"] in ("symbolizing", "writing"), message

    def finish(self):
        self.send({"type": "finish"})
        return self.receive()

    def stop(self):
        """Ends the channel; the exit status must be 0, and nothing was said."""
        self.channel.close()
        status = self.process.wait(30)
        self.errors.seek(0)
        said = self.errors.read().decode("utf-8", "replace")
        self.errors.close()
        shutil.rmtree(self.folder)
        assert "Sanitizer" not in said and "runtime error" not in said, said
        assert status == 0, (status, said)
