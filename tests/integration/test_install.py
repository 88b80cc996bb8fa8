"""What is installed, used as installed: the library by its pkg-config file, the manual's example, units, manual pages."""
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import leftovers
from harness import BUILD, SANITIZED, main, skip
from test_profctl import home, profctl


@functools.cache
def install():
    """(root, prefix): the project installed below a new folder, which goes with this process."""
    root = leftovers.shared("profd-install-")
    subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", root], check=True, capture_output=True)
    options = json.loads(subprocess.run(["meson", "introspect", "--buildoptions", BUILD], capture_output=True, check=True).stdout)
    return root, root + [option["value"] for option in options if option["name"] == "prefix"][0]


def find(folder, name):
    found = [os.path.join(place, name) for place, _, names in os.walk(folder) if name in names]
    assert len(found) == 1, (name, found)
    return found[0]


def flags(root, prefix, *args):
    pc = find(prefix, "profclient.pc")
    env = dict(os.environ, PKG_CONFIG_PATH=os.path.dirname(pc), PKG_CONFIG_SYSROOT_DIR=root)
    return subprocess.run(["pkg-config", *args, "profclient"], env=env, capture_output=True, text=True, check=True).stdout.split()


def example(prefix):
    """The program in the manual page, as somebody would copy it from there."""
    with open(find(prefix, "libprofclient.3")) as file:
        text = re.search(r"\.SH EXAMPLES.*?\.EX\n(.*?)\.EE", file.read(), re.S).group(1)
    return text.replace("\\-", "-").replace("\\e", "\\")


def compile_example(root, prefix, *libraries):
    source, output = os.path.join(root, "example.c"), os.path.join(root, "example")
    with open(source, "w") as file:
        file.write(example(prefix))
    # The compiler that built the library: a sanitized one needs its own.
    targets = json.loads(subprocess.run(["meson", "introspect", "--targets", BUILD], capture_output=True, check=True).stdout)
    compiler = [one["target_sources"][0]["compiler"] for one in targets if one["name"] == "profctl"][0]
    command = [*compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", "-o", output, source]
    command += flags(root, prefix, "--cflags") + list(libraries)
    if SANITIZED:
        command.append("-fsanitize=address,undefined")
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return output


def run_example(root, prefix, output):
    with home() as (folder, env):
        env = dict(env, LD_LIBRARY_PATH=os.path.dirname(find(prefix, "libprofclient.so.0")),
                   PROFD_DAEMON=find(prefix, "profd"), PROFD_GATE=find(prefix, "profd-gate"), PROFD_ANALYZER=find(prefix, "profd-analyzer"))
        done = subprocess.run([output, "sh", "-c", "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done"], env=env, capture_output=True,
                              text=True, timeout=60)
        assert done.returncode == 0 and os.path.isfile(done.stdout.strip()), done
        done = subprocess.run([output, "/no/such/program"], env=env, capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and "/no/such/program" in done.stderr, done


def test_the_manuals_example_works_with_the_shared_library():
    root, prefix = install()
    output = compile_example(root, prefix, *flags(root, prefix, "--libs"))
    needed = subprocess.run(["readelf", "-d", output], capture_output=True, text=True).stdout
    assert "libprofclient.so.0]" in needed, needed
    run_example(root, prefix, output)


def test_the_manuals_example_works_with_the_static_library():
    root, prefix = install()
    output = compile_example(root, prefix, find(prefix, "libprofclient.a"), "-ljansson")
    run_example(root, prefix, output)


def test_both_libraries_show_the_headers_functions_and_no_others():
    root, prefix = install()
    with open(find(prefix, "profclient.h")) as file:
        text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
    assert re.findall(r'#include "', text) == []
    declared = set(re.findall(r"\b(profclient_\w+)\(", text))
    for options, name in ((["-D"], "libprofclient.so.0"), (["-g"], "libprofclient.a")):
        shown = subprocess.run(["nm", *options, "--defined-only", find(prefix, name)], capture_output=True, text=True).stdout
        symbols = {line.split()[2].split("@")[0] for line in shown.splitlines() if len(line.split()) == 3 and line.split()[1] == "T"}
        assert symbols == declared, (name, symbols ^ declared)


def test_the_header_is_cplusplus_too():
    if shutil.which("c++") is None:
        skip("needs a C++ compiler")
    root, prefix = install()
    done = subprocess.run(["c++", "-x", "c++", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", *flags(root, prefix, "--cflags"), "-"],
                          input="#include <profd/profclient.h>\nint main() { return profclient_version() == nullptr; }\n",
                          capture_output=True, text=True)
    assert done.returncode == 0, done


def test_the_manual_tells_every_command_function_and_exit_status():
    root, prefix = install()
    with home() as (_, env):
        with open(find(prefix, "profctl.1")) as file:
            page = file.read().replace("\\-", "-")
        for line in profctl(env, "--help").stdout.splitlines():
            if line.startswith("  "):
                command = line.split()[0]
                assert re.search(r"^\.SS .*\b%s\b" % command, page, re.M), command
                for option in re.findall(r"^ +(?:-\w, +)?(--[a-z-]+)", profctl(env, command, "--help").stdout, re.M):
                    assert option in page, (command, option)
        statuses = page[page.index(".SH EXIT STATUS"):page.index(".SH ENVIRONMENT")]
        assert re.findall(r"^\.B (\d)$", statuses, re.M) == list("012345678")
        with open(find(prefix, "profclient.h")) as file:
            declared = set(re.findall(r"\b(profclient_\w+)\(", re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)))
        with open(find(prefix, "libprofclient.3")) as file:
            page = file.read()
        assert all(name in page for name in declared), [name for name in declared if name not in page]


def test_the_protocols_manual_names_every_method_and_event_that_describe_has():
    root, prefix = install()
    with home() as (_, env):
        with open(find(prefix, "profd-protocol.7")) as file:
            page = file.read()
        cursor, missing = None, []
        while True:
            params = {"cursor": cursor} if cursor else {}
            told = json.loads(profctl(env, "call", "Describe", json.dumps(params)).stdout)
            for method in told.get("methods", []):
                if method["supported"] and method["name"] not in page:
                    missing.append(method["name"])
            missing += [event["name"] for event in told.get("events", []) if event["name"] not in page]
            cursor = told.get("next_cursor")
            if not cursor:
                break
        assert not missing, missing


def test_manual_pages_have_no_faults():
    if shutil.which("groff") is None:
        skip("needs groff")
    root, prefix = install()
    for name in ("profctl.1", "profd.1", "libprofclient.3", "profd_gpu.3", "profd-protocol.7"):
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", find(prefix, name)], capture_output=True, text=True)
        assert done.returncode == 0 and done.stderr == "", done


def test_systemd_finds_no_fault_in_the_units():
    if shutil.which("systemd-analyze") is None:
        skip("needs systemd-analyze")
    root, prefix = install()
    names = [name for _, _, names in os.walk(root) for name in names]
    if "profd.service" not in names:
        skip("the units are not installed: pkg-config does not know systemd")
    # Where the programs will be is not there yet: they are looked for in the folder of this test.
    folder = os.path.join(root, "units")
    os.mkdir(folder)
    for name in ("profd.service", "profd.socket"):
        with open(find(root, name)) as file:
            text = file.read()
        assert "@" not in text, text
        with open(os.path.join(folder, name), "w") as file:
            file.write(re.sub(r"^ExecStart=.*$", "ExecStart=" + find(prefix, "profd"), text, flags=re.M))
    env = dict(os.environ, XDG_RUNTIME_DIR=root, MANPATH=os.path.join(prefix, "share", "man"))
    done = subprocess.run(["systemd-analyze", "verify", "--user", os.path.join(folder, "profd.service"),
                           os.path.join(folder, "profd.socket")], env=env, capture_output=True, text=True, timeout=60)
    if "Failed to" in done.stderr and "profd" not in done.stderr:
        skip("systemd-analyze cannot run here: " + done.stderr.strip()[:200])
    assert done.returncode == 0 and not [line for line in done.stderr.splitlines() if "profd." in line], done


def test_completions_are_where_the_shells_look():
    root, prefix = install()
    for path in ("bash-completion/completions/profctl", "zsh/site-functions/_profctl", "fish/vendor_completions.d/profctl.fish"):
        assert os.path.isfile(os.path.join(prefix, "share", path)), path


def test_the_schema_of_captures_is_installed():
    _, prefix = install()
    with open(os.path.join(prefix, "share", "doc", "profd", "capture.schema.json")) as file:
        assert json.load(file)["properties"]["schema"]["const"] == "profd.capture"


def test_what_programs_call_is_where_compilers_and_pythons_find_it():
    _, prefix = install()
    assert find(prefix, "profd_gpu.h") == os.path.join(prefix, "include", "profd_gpu.h")
    folder = os.path.dirname(find(prefix, "profd_gpu.py"))
    assert folder == os.path.join(prefix, "share", "profd", "python")
    with open(find(prefix, "profd_gpu.3")) as file:
        page = file.read().replace("\\-", "-").replace("\\e", "\\")
    c, python = re.findall(r"\.EX\n(.*?)\.EE", page, re.S)
    env = {key: value for key, value in os.environ.items() if not key.startswith("PROFD_GPU")}
    done = subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-I", os.path.join(prefix, "include"), "-x", "c", "-", "-o",
                           os.path.join(prefix, "phases")], input=c, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    done = subprocess.run([os.path.join(prefix, "phases")], env=env, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", ""), done
    done = subprocess.run([sys.executable, "-c", python], env=dict(env, PYTHONPATH=folder), capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", ""), done


def test_the_layer_is_found_from_where_it_is_installed():
    if not os.path.exists(os.path.join(BUILD, "daemon", "gpu", "layer", "libprofd_gpu.so")):
        skip("the layer is not built: no headers of Vulkan (libvulkan-dev)")
    _, prefix = install()
    path = find(prefix, "VkLayer_profd_gpu.json")
    assert path == os.path.join(prefix, "share", "profd", "gpu", "vulkan", "implicit_layer.d", "VkLayer_profd_gpu.json"), path
    with open(path) as file:
        layer = json.load(file)["layer"]
    library = os.path.join(os.path.dirname(path), layer["library_path"])
    assert os.path.samefile(library, find(prefix, "libprofd_gpu.so"))
    assert os.path.dirname(os.path.realpath(library)) == os.path.dirname(find(prefix, "libprofd_gpu_nobind.so"))
    names = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout.split()
    calls = ["profd_gpu_layer_" + name for name in ("error", "is_armed", "start", "stop")]  # what profd_gpu.h looks for
    assert sorted(names[2::3]) == calls + ["vkNegotiateLoaderLayerInterfaceVersion"], names
    needed = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
    libraries = {name for name in re.findall(r"NEEDED.*\[(.*)\]", needed) if not name.startswith("ld-linux")}
    assert "libc.so.6" in libraries and libraries <= {"libc.so.6", "libdl.so.2", "libpthread.so.0"}, libraries


if __name__ == "__main__":
    main(globals())
