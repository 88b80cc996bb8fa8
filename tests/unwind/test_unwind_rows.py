"""Every row of call-frame information against binutils' reader of the same tables."""
import glob
import os
import shutil

from harness import BUILD, main, skip
from readelf_rows import compare

LONG = os.environ.get("PROFD_LONG") == "1"
ROWS = os.path.join(BUILD, "tests", "unwind", "unwind-rows")


def built(name):
    return os.path.join(BUILD, "tests", "unwind", name)


def same(path, fp="rbp", least=1):
    if not os.path.exists(path):
        skip("there is no %s here" % path)
    count, differences = compare(ROWS, path, fp)
    print("# %s: %d rows" % (path, count))
    assert count >= least, count
    assert not differences, "%d of %d rows differ: %s" % (len(differences), count, differences[:5])


def library(name):
    paths = glob.glob("/lib/*/" + name) + glob.glob("/lib64/" + name)
    if not paths:
        skip("there is no %s here" % name)
    return os.path.realpath(paths[0])


def test_the_c_library():
    same(library("libc.so.6"), least=10000)


def test_the_dynamic_linker():
    same(library("ld-linux-x86-64.so.2"))


def test_programs_of_gcc_and_clang_without_frame_pointers():
    for name in ("recursion-gcc", "recursion-clang", "chains-gcc", "chains-clang"):
        same(built(name))


def test_a_program_without_a_search_table():
    same(built("recursion-no-table"), least=50)


def test_a_program_with_debug_frame_alone_and_packed():
    for name in ("chains-debug-frame", "chains-debug-frame-zlib"):
        same(built(name), least=50)


def test_a_program_of_aarch64():
    if not os.path.exists(built("chains-aarch64")):
        skip("gcc-aarch64-linux-gnu is not installed")
    same(built("chains-aarch64"), fp="x29", least=50)


def test_large_files():
    if not LONG:
        skip("tools/verify looks at large files: some seconds each")
    names = [shutil.which(name) for name in ("python3.11", "python3", "node", "xz", "sqlite3", "clang")]
    names += glob.glob("/usr/lib/*/libstdc++.so.6") + glob.glob("/usr/lib/*/libLLVM-*.so*") + glob.glob("/usr/lib/gcc/*/*/cc1")
    names += [built("recursion-static"), built("recursion-static-pie")]
    for name in {os.path.realpath(name) for name in names if name and os.path.exists(name)}:
        with open(name, "rb") as file:
            if file.read(4) == b"\x7fELF":
                same(name)


if __name__ == "__main__":
    main(globals())
