"""Real stacks of real programs, walked by us, by libdw and by libunwind, and against what a program knows of itself.

A difference is allowed only when its kind has been proved from the stack itself (difference.h).
"""
import glob
import json
import os
import shutil
import subprocess
import tempfile

from harness import BUILD, SANITIZED, main, skip

LONG = os.environ.get("PROFD_LONG") == "1"
SECONDS = "6" if LONG else "0.4"
SAMPLES = "2500" if LONG else "300"
IDENTICAL = 0.995  # of the stacks that a peer can walk at all


def built(name):
    path = os.path.join(BUILD, "tests", "unwind", name)
    if not os.path.exists(path):
        skip("%s was not built: its compiler is missing" % name)
    return path


def walk(command, *options):
    tool = os.path.join(BUILD, "tests", "unwind", "unwind-stacks")
    if not os.path.exists(tool):
        skip("needs libdw, libunwind and x86-64")
    done = subprocess.run([tool, "--hz", "997", "--samples", SAMPLES, "--show", "2", *options, "--", *command],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", check=False)
    if done.returncode == 77:
        skip("this kernel lets us sample nothing: " + done.stderr.strip())
    assert done.returncode == 0, done.stderr
    *shown, line = done.stdout.splitlines()
    return json.loads(line[line.index('{"stacks"'):]), "\n".join(shown[-200:])


def identical(command, complete=0.98, least=None):
    result, shown = walk(command)
    line = "# %s: %d stacks, %.1f frames each, %d to the root" % (
        os.path.basename(command[0]), result["stacks"], result["frames"] / max(1, result["stacks"]), result["root"])
    for peer in ("libdw", "libunwind"):
        line += "; %s %s" % (peer, {kind: count for kind, count in result[peer].items() if count})
    print(line)
    assert result["stacks"] >= (least or (500 if LONG else 30)), result
    assert result["root"] >= complete * result["stacks"], result
    for peer in ("libdw", "libunwind"):
        assert result[peer]["unexplained"] == 0, "%s\n%s" % (result[peer], shown)
        walked = result["stacks"] - result[peer]["no_table"]
        # a handful of stacks says nothing about shares: two are let through. Of programs with frame pointers (node) 0.6 % are epilogues.
        others = walked - result[peer]["identical"] - result[peer]["epilogue"]
        assert others <= max(2, (1 - IDENTICAL) * walked), result[peer]
        assert result[peer]["epilogue"] <= max(2, 0.02 * walked), result[peer]


def booked(name):
    result, shown = walk([built(name), SECONDS], "--book")
    print("# %s: %s" % (name, result))
    assert result["stacks"] >= 30 and result["exact"] >= 0.8 * result["stacks"], result
    assert result["wrong"] == 0, shown
    assert result["no_book"] <= 3, result


def test_chains_of_gcc_are_exactly_what_the_program_knows():
    booked("chains-gcc")


def test_chains_of_clang_are_exactly_what_the_program_knows():
    booked("chains-clang")


def test_chains_told_by_debug_frame_alone_are_exact():
    booked("chains-debug-frame")


def test_programs_of_other_linkers():
    for linker in ("lld", "mold"):
        booked("chains-" + linker)
        identical([built("recursion-" + linker), SECONDS])


def test_recursion_and_exceptions():
    identical([built("recursion-gcc"), SECONDS])
    identical([built("recursion-clang"), SECONDS])


def test_static_programs():
    identical([built("recursion-static"), SECONDS])
    identical([built("recursion-static-pie"), SECONDS])


def test_a_program_without_a_search_table():
    identical([built("recursion-no-table"), SECONDS])


def test_signal_handlers_on_another_stack_and_the_vdso():
    # A stack of a handler on main's own stack is cut where the pages below were never touched.
    identical([built("signals-gcc"), SECONDS], complete=0.5)
    identical([built("signals-clang"), SECONDS], complete=0.5)


def test_the_python_of_the_distribution():
    python = shutil.which("python3", path="/usr/bin")
    if python is None:
        skip("there is no python3 in /usr/bin")
    identical([python, os.path.join(os.path.dirname(__file__), "sort.py"), SECONDS])


def compiled(folder, name, compiler, *options):
    """A program of the source name beside this file."""
    if not shutil.which(compiler):
        skip("needs " + compiler)
    here = os.path.dirname(os.path.abspath(__file__))
    path = os.path.join(folder, os.path.splitext(name)[0])
    subprocess.run([compiler, *options, "-o", path, os.path.join(here, name)], cwd=folder, check=True)
    return path


def test_a_rust_program_with_panics():
    with tempfile.TemporaryDirectory() as folder:
        identical([compiled(folder, "panics.rs", "rustc", "-O"), SECONDS])


def test_programs_with_musl():
    """musl's start has no tables, and nothing stands outside of it: no stack is known to reach the root."""
    tests = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for how in ([], ["-static"]):
        with tempfile.TemporaryDirectory() as folder:
            program = compiled(folder, "chains.c", "musl-gcc", "-std=gnu11", "-O2", "-fomit-frame-pointer", "-I" + tests, *how)
            identical([program, SECONDS], complete=0)


def snapshots(name, has_peer):
    """A program of aarch64 takes snapshots of itself under an emulator."""
    program, tool = built(name), os.path.join(BUILD, "tests", "unwind", "unwind-snapshots")
    emulator = shutil.which("qemu-aarch64")
    if emulator is None or not os.path.exists(tool):
        skip("needs qemu-user and libdw")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "snapshots")
        subprocess.run([emulator, "-cpu", "max", "-E", "SNAPSHOTS=" + path, program, "4" if LONG else "1"], check=True)
        result = json.loads(subprocess.run([tool, program, path], stdout=subprocess.PIPE, check=True).stdout)
    print("# %s: %s" % (name, result))
    # An emulator delivers a timer at the ends of blocks: often between the book's entry and the call.
    assert result["stacks"] >= 30 and result["exact"] >= 0.4 * result["stacks"], result
    assert result["wrong"] == 0 and result["root"] == result["stacks"] and result["no_book"] <= 3, result
    if has_peer:
        assert result["libdw"] + result["libdw_in_stubs"] == result["stacks"], result
        assert result["libdw_in_stubs"] <= max(3, 0.02 * result["stacks"]), result


def test_snapshots_of_aarch64():
    snapshots("chains-aarch64", True)


def test_snapshots_of_aarch64_with_signed_return_addresses():
    snapshots("chains-aarch64-signed", False)  # libdw 0.188 does not know them


def test_large_programs():
    if not LONG or SANITIZED:
        skip("tools/verify walks large programs: a minute")
    commands = [["xz", "-T1", "-3", "-k", "-c", "/usr/bin/python3.11"],
                ["sqlite3", ":memory:", "with recursive c(x) as (select 1 union all select x+1 from c where x<6000000) "
                 "select count(*), sum(x*x), max(hex(x)) from c"],
                ["node", "-e", "const e=Date.now()+6000;let o=0;function f(n){return n<2?n:f(n-1)+f(n-2)}"
                 "while(Date.now()<e){o+=f(18);JSON.parse(JSON.stringify(Array.from({length:300},(_,i)=>({i,s:'x'+i}))));"
                 "'abc'.repeat(100).replace(/b/g,x=>x+o)}"]]
    with tempfile.NamedTemporaryFile("w", suffix=".cpp") as source:
        source.write("#include <bits/stdc++.h>\n#include <regex>\nint main() { std::regex r(\"a(b|c)*d\"); std::map<std::string, "
                     "std::vector<int>> m; m[\"x\"].push_back(std::regex_match(\"abcd\", r)); return m.size(); }\n")
        source.flush()
        for compiler in glob.glob("/usr/lib/gcc/x86_64-linux-gnu/*/cc1plus"):
            commands.append([compiler, "-O2", "-quiet", source.name, "-o", "/dev/null", "-imultiarch", "x86_64-linux-gnu"])
        if shutil.which("clang++"):
            commands.append(["clang++", "-O2", "-fintegrated-cc1", "-c", source.name, "-o", "/dev/null"])
        for command in commands:
            if shutil.which(command[0]):
                identical(command, complete=0.9, least=100)


if __name__ == "__main__":
    main(globals())
