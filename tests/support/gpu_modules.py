"""The SPIR-V that the Vulkan programs of the tests have in them, as their source holds it (tests/targets/gpu/*.inc). Standard library only."""
import functools
import hashlib
import os
import re
import struct

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "targets", "gpu")


@functools.lru_cache(maxsize=None)
def arrays(file):
    """{name: bytes} of the arrays of words in a file."""
    with open(os.path.join(FOLDER, file), encoding="ascii") as source:
        found = re.findall(r"uint32_t (\w+)\[\] = \{([^}]*)\}", source.read())
    return {name: b"".join(struct.pack("<I", int(word, 16)) for word in re.findall(r"0x[0-9a-f]+", words)) for name, words in found}


def module(name):
    """A shader of gpu_shaders."""
    return arrays("modules.inc")["module_" + name]


def frames_module(name):
    """A shader of gpu_frames: fill_comp, triangle_vert, triangle_frag."""
    return arrays("shaders.inc")["gpu_" + name]


def source(name):
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        return file.read()


def sha256(data):
    return hashlib.sha256(data).hexdigest()
