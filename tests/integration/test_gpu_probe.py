"""Doctor's word on GPU traces: each part that can be missing is named, with what to install; and what is there, is told."""
import os
import shutil
import tempfile

from fake_gpu_layer import Parts
from harness import Daemon, main, skip

LAVAPIPE = "/usr/share/vulkan/icd.d/lvp_icd.x86_64.json"


def said(env):
    """Doctor's check of a daemon with these variables."""
    with Daemon(env=dict({"PROFD_GPU_LAYER": "", "PROFD_RENDERDOC": ""}, **env)) as daemon:
        check, = [check for check in daemon.connect().call("Doctor")["checks"] if check["id"] == "gpu"]
        return check


def with_parts(case):
    root = tempfile.mkdtemp(prefix="profd-gpu-parts-")
    try:
        case(Parts(root), root)
    finally:
        shutil.rmtree(root)


def warns(env, *words):
    check = said(env)
    assert check["status"] == "warn" and check["fix"], check
    for word in words:
        assert word in check["message"] + check["fix"], (word, check)


def test_what_is_missing_of_the_layer_is_told():
    def case(parts, root):
        warns(parts.environment(PROFD_GPU_LAYER=root), "VkLayer_profd_gpu.json", root, "PROFD_GPU_LAYER")
        os.remove(parts.nobind)
        warns(parts.environment(), "libprofd_gpu_nobind.so", parts.folder)
        with open(parts.manifest, "w") as file:
            file.write("[}")
        warns(parts.environment(), parts.folder)
    with_parts(case)


def test_a_missing_renderdoc_is_told_with_its_package():
    def case(parts, root):
        gone = os.path.join(root, "gone.so")
        warns(parts.environment(PROFD_RENDERDOC=gone), gone, "librenderdoc")
        warns(parts.environment(PROFD_RENDERDOC="/etc/passwd"), "PROFD_RENDERDOC is /etc/passwd", "no shared library")
    with_parts(case)


def test_a_missing_loader_is_told_with_its_package():
    def case(parts, root):
        broken = os.path.join(root, "libraries")
        os.mkdir(broken)
        with open(os.path.join(broken, "libvulkan.so.1"), "w"):
            pass
        warns(parts.environment(LD_LIBRARY_PATH=broken), "Vulkan loader", "libvulkan1")
    with_parts(case)


def test_a_missing_driver_is_told_with_where_it_was_looked_for():
    if shutil.which("vulkaninfo") is None and not os.path.exists(LAVAPIPE):
        skip("no Vulkan loader is installed")
    def case(parts, root):
        nowhere = os.path.join(root, "no_icd.json")
        warns(parts.environment(VK_ICD_FILENAMES=nowhere), "no Vulkan driver", nowhere, "0 drivers' manifests", "mesa-vulkan-drivers")
    with_parts(case)


def test_what_works_is_told_with_its_devices():
    if not os.path.exists(LAVAPIPE):
        skip("mesa-vulkan-drivers is not installed")
    def case(parts, root):
        check = said(parts.environment(VK_ICD_FILENAMES=LAVAPIPE))
        assert check["status"] == "ok" and check["fix"] is None, check
        assert "llvmpipe" in check["message"] and check["value"].startswith("renderdoc ") and check["value"].endswith("1 device"), check
        reader = os.path.join(root, "renderdoccmd")
        with open(reader, "w", encoding="utf-8"):
            pass
        os.chmod(reader, 0o700)
        for path, words in ((root, "each is verified by " + reader), ("relative:/nowhere:", "renderdoccmd is not in profd's PATH (package renderdoccmd")):
            check = said(parts.environment(VK_ICD_FILENAMES=LAVAPIPE, PATH=path))
            assert check["status"] == "ok" and words in check["message"], check
    with_parts(case)


if __name__ == "__main__":
    main(globals())
