"""Names are right, in C++ and Rust, and where one program or library takes another's place."""
import os

from harness import Daemon, main, read_folded, target
from profiles import near, record, symbols


def test_a_library_that_takes_anothers_place_keeps_its_own_names():
    with Daemon() as daemon:
        client = daemon.connect()
        profile = record(client, [target("late_library"), target("library_first.so"), "library_first", target("library_other.so"),
                                  "library_other"])
        assert profile.exited["exit_code"] == 0, profile.errors
        first, other = profile.output.split()
        assert first == other, "the libraries lie at different addresses: nothing could be confused"
        for name in ("library_first", "library_other"):
            assert near(profile.self_count(name), 200), (name, profile.self_frames())
            profile.stands_below(name, ("main", "run_library"))
        assert {"library_first.so", "library_other.so"} <= {os.path.basename(image["path"]) for image in profile.data["images"]}


def test_a_library_that_is_overwritten_in_place_has_no_wrong_names():
    with Daemon() as daemon:
        client = daemon.connect()
        path = os.path.join(daemon.root, "current.so")
        first, other = target("library_first.so"), target("library_other.so")
        profile = record(client, [target("late_library"), "=" + first, path, path, "library_first", "=" + other, path, path, "library_other"])
        assert profile.exited["exit_code"] == 0, profile.errors
        addresses = profile.output.split()
        assert addresses[0] == addresses[1], "the libraries lie at different addresses: nothing could be confused"
        # What was there first is gone: it is told so, and not called by the names of what was written over it.
        assert near(profile.self_count("library_other"), 200), profile.self_frames()
        profile.stands_below("library_other", ("main", "run_library"))
        unnamed = {frame: count for frame, count in profile.self_frames().items() if frame.startswith("[current.so+")}
        assert near(sum(unnamed.values()), 200), profile.self_frames()
        images = [image for image in profile.data["images"] if image["path"] == path]
        assert sorted(image["opened"] for image in images) == [False, True], images
        assert "overwritten" in next(image["fix"] for image in images if not image["opened"]), images
        assert "images_overwritten" in [warning["code"] for warning in profile.params["warnings"]], profile.params["warnings"]
        # Nor when it is named again.
        again = client.call("SymbolizeCapture", capture_id=profile.params["capture_id"])
        assert read_folded(again["folded_path"]) == read_folded(profile.params["folded_path"])


def test_both_programs_of_an_exec_have_their_own_names():
    with Daemon() as daemon:
        client = daemon.connect()
        profile = record(client, [target("exec_first"), target("exec_other")])
        places = [{address for address, _, name in symbols(target(program)) if name == function}
                  for program, function in (("exec_first", "chain_first"), ("exec_other", "chain_other"))]
        assert places[0] == places[1] and len(places[0]) == 1, "the functions lie at different addresses: nothing could be confused"
        for name in ("chain_first", "chain_other"):
            assert near(profile.self_count(name), 200), (name, profile.self_frames())
            profile.stands_below(name, ("main",))
        assert profile.params["reason"] == "target_exited"
        assert abs(profile.data["samples"]["sampled_ns"] - profile.data["samples"]["cpu_time_ns"]) < 0.05 * 400e6, profile.data["samples"]


def test_a_forked_child_is_another_process_and_runs_on_undisturbed():
    with Daemon() as daemon:
        client = daemon.connect()
        profile = record(client, [target("forks")])
        said = dict(line.split() for line in profile.output.splitlines())
        assert said["ended"] == "7" and int(said["child"]) >= 600e6, said
        assert near(profile.self_count("parent_work"), 300), profile.self_frames()
        assert profile.total_count("child_work") == 0 and profile.total_count("run_child") == 0
        samples = profile.data["samples"]
        # The child's 600 ms are in neither; a part of that may be what a busy host took from the parent.
        for told in (samples["cpu_time_ns"], samples["sampled_ns"]):
            assert 0.9 * int(said["parent"]) < told < int(said["parent"]) + 0.25 * int(said["child"]), (samples, said)
        assert len(profile.data["threads"]) == 1 and len(profile.data["processes"]) == 1, profile.data["threads"]


def test_names_of_cplusplus_and_rust_are_readable():
    # What rustc calls them, by RFC 2603 and its older manner; the rest is what "nm -C" shows.
    rust = ["mycrate::example", "std::mem::align_of::<usize, f64>", "core::fmt::Write::write_fmt"]
    expected = rust + [
        "shop::shelf<int, 3>::fill() const",
        "shop::shelf<shop::shelf<char, 1>, 7>::fill() const",
        "shop::shelf<int, 3>::operator<(shop::shelf<int, 3> const&) const",
        "shop::shelf<shop::shelf<char, 1>, 7>::operator()(shop::shelf<char, 1> const*, unsigned char) const",
        "shop::shelf<int, 3>::operator bool() const",
        "void shop::variadic<int, double, shop::shelf<int, 3>*>(int, double, shop::shelf<int, 3>*)",
        "shop::in_lambda()::{lambda(int)#1}::operator()(int) const",
        "(anonymous namespace)::hidden(unsigned long)",
        "local(char)",
    ]
    with Daemon() as daemon:
        client = daemon.connect()
        profile = record(client, [target("names")])
        known = {name for _, _, name in symbols(target("names"))}
        assert set(expected) <= known, set(expected) - known
        for name in expected:
            assert near(profile.self_count(name), 60), (name, profile.self_frames().most_common(20))
        for name in rust:
            profile.stands_below(name, ("main",))
        profile.stands_below("shop::in_lambda()::{lambda(int)#1}::operator()(int) const", ("main", "shop::in_lambda()"))


if __name__ == "__main__":
    main(globals())
