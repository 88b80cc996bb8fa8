"""docs/protocol.md, chapter 6: folders and files of captures."""
import ctypes
import json
import os
import re
import shutil
import signal
import stat
import struct
import subprocess
import tempfile
import time
import xml.parsers.expat
import zlib

import capture_schema
from analyzers import Analyzer
from contract import SENTENCE
from harness import FOREVER, Client, Daemon, ProfdError, capture_end, main, program, read_folded, skip, target, wait_sampled, wait_until, write
from journals import BASE, KERNEL, NATIVE, JournalFile, small
from nobody import NOBODY, as_nobody


def launch(client, argv, **params):
    return client.call("LaunchProcess", argv=argv, **{"stdio": "null", **params})


def make(client, argv=None, **options):
    made = launch(client, argv or [target("steady"), "60"], profile={"hz": 2000, **options})
    name, params = capture_end(client, made["capture_id"])
    assert name == "SamplingProfileFinished", params
    return client.call("GetCapture", capture_id=made["capture_id"])


def mode(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


@SENTENCE("One folder per capture, `<data-dir>/captures/<capture_id>/` (`--data-dir`, by default `$XDG_DATA_HOME/profd`; made 0700 when "
          "missing),", "Folder 0700, files 0600,")
def test_the_folder_of_a_capture():
    with tempfile.TemporaryDirectory() as root:
        os.mkdir(root + "/run", 0o700)
        os.mkdir(root + "/share", 0o755)
        for args, place in ((["--data-dir", root + "/data"], root + "/data"), ([], root + "/share/profd")):
            process = subprocess.Popen([program("profd"), "--socket", root + "/run/s", *args], env={**os.environ, "XDG_DATA_HOME": root + "/share"},
                                       stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=lambda: os.umask(0))
            try:
                wait_until(lambda: os.path.exists(root + "/run/s"), 10, "the socket")
                client = Client(root + "/run/s")
                record = make(client)
                assert record["folder"] == "%s/captures/%s" % (place, record["capture_id"])
                assert mode(place) == mode(place + "/captures") == mode(record["folder"]) == 0o700
                names = sorted(os.listdir(record["folder"]))
                assert names == ["capture.folded", "capture.journal", "capture.json", "capture.svg", "capture.symbols", "record.json"], names
                assert {mode(os.path.join(record["folder"], name)) for name in names} == {0o600}
                client.close()
            finally:
                process.terminate()
                assert process.wait(20) == 0


@SENTENCE("or the request's `output_dir` (an absolute path to a folder that is ours, opened once and worked on through that descriptor; "
          "the capture's own folder is made inside it, and the data folder keeps a pointer so that the capture is still listed after a "
          "restart).", "`record.json` (in the data folder, also when the artifacts are elsewhere): the capture as `GetCapture` tells it, "
          "for the daemon's next start.")
def test_an_output_folder_and_the_record():
    with Daemon() as daemon, tempfile.TemporaryDirectory() as elsewhere:
        client = daemon.connect()
        here = make(client)
        record = make(client, output_dir=elsewhere)
        assert record["folder"] == "%s/%s" % (elsewhere, record["capture_id"]) and mode(record["folder"]) == 0o700
        assert sorted(os.listdir(record["folder"])) == ["capture.folded", "capture.journal", "capture.json", "capture.svg", "capture.symbols"]
        for each in (here, record):
            with open("%s/captures/%s/record.json" % (daemon.data_dir, each["capture_id"])) as file:
                assert {name: value for name, value in json.load(file).items() if name in each} == each
        # Its path leads elsewhere while it runs: the descriptor does not.
        os.mkdir(elsewhere + "/a", 0o700)
        made = launch(client, FOREVER, profile={"output_dir": elsewhere + "/a"})
        os.rename(elsewhere + "/a", elsewhere + "/b")
        os.mkdir(elsewhere + "/a", 0o700)
        wait_sampled(client, made["capture_id"])
        client.call("StopCapture", capture_id=made["capture_id"])
        assert os.listdir(elsewhere + "/a") == [] and os.path.getsize("%s/b/%s/capture.folded" % (elsewhere, made["capture_id"]))
        daemon.stop()
        daemon.start()
        listed = daemon.connect().call("ListCaptures")["captures"]
        assert here in listed and record in listed


CREATE, MOVED_TO = 0x100, 0x80


def happened(fd):
    """[(mask, name)] of an inotify descriptor."""
    found, data = [], b""
    try:
        data = os.read(fd, 1 << 16)
    except BlockingIOError:
        pass
    while data:
        _, mask, _, length = struct.unpack_from("iIII", data)
        found.append((mask & 0xfff, data[16:16 + length].rstrip(b"\0").decode()))
        data = data[16 + length:]
    return found


@SENTENCE("written to a temporary name,", "and renamed.")
def test_files_appear_whole():
    libc = ctypes.CDLL(None)
    with Daemon() as daemon:
        client = daemon.connect()
        made = launch(client, FOREVER, profile={})
        folder = os.path.join(daemon.data_dir, "captures", made["capture_id"])
        precious = os.path.join(daemon.root, "precious")
        with open(precious, "w") as file:
            file.write("mine")
        for name in ("capture.folded", "capture.svg", "capture.json", "capture.symbols"):
            os.symlink(precious, os.path.join(folder, name))
        watch = libc.inotify_init1(os.O_NONBLOCK)
        libc.inotify_add_watch(watch, folder.encode(), CREATE | MOVED_TO)
        wait_sampled(client, made["capture_id"])
        client.call("StopCapture", capture_id=made["capture_id"])
        events = happened(watch)
        os.close(watch)
        moved = [name for mask, name in events if mask == MOVED_TO]
        created = [name for mask, name in events if mask == CREATE]
        assert {"capture.folded", "capture.svg", "capture.json", "capture.symbols", "record.json"} <= set(moved) and not set(moved) & set(created), events
        with open(precious) as file:
            assert file.read() == "mine"
        assert all(stat.S_ISREG(os.lstat(os.path.join(folder, name)).st_mode) for name in os.listdir(folder))


def traced_capture():
    """What the kernel was asked for during a capture: its id and strace's lines."""
    if not shutil.which("strace"):
        skip("strace is missing")
    with Daemon(env={"ASAN_OPTIONS": "detect_leaks=0"}) as daemon:
        daemon.check_exit, daemon.log = False, lambda: ""
        client, path = daemon.connect(), daemon.root + "/trace"
        trace = subprocess.Popen(["strace", "-f", "-y", "-e", "trace=openat,open,creat,fsync,fdatasync,rename,renameat,renameat2,"
                                  "write,writev,sendmsg,sendto", "-s", "200", "-o", path, "-p", str(daemon.process.pid)], stderr=subprocess.DEVNULL)
        wait_until(lambda: trace.poll() is not None or daemon.status("TracerPid") == trace.pid, 10, "the tracer")
        if trace.poll() is not None:
            skip("strace may not look at others here")
        record = make(client)
        daemon.stop()
        trace.wait(10)
        with open(path) as file:
            return record["capture_id"], file.read()


@SENTENCE("made with `openat`, `O_EXCL` and `O_NOFOLLOW`,", "written to a temporary name, synced and renamed.")
def test_artifacts_are_synced_before_they_have_their_names():
    capture_id, text = traced_capture()
    opened = [line for line in text.splitlines() if "O_CREAT" in line and capture_id in line]
    assert len(opened) >= 5 and all("O_EXCL" in line and "O_NOFOLLOW" in line and " openat(" in line for line in opened), opened
    check_synced(text, "capture.folded", "capture.svg", "capture.json", "capture.symbols")


@SENTENCE("It is renamed into its place at each change of state; the last one is synced behind the terminal event, which waits for the "
          "artifacts only.")
def test_the_record_is_renamed_at_each_state_and_synced_at_last():
    text = traced_capture()[1]
    told = text.index("SamplingProfileFinished")
    renamed = [match.start() for match in re.finditer(r'rename\w*\([^\n]*"record.json"', text) if match.start() < told]
    assert len(renamed) >= 3, "sampling, symbolizing, finished: %s" % renamed
    written = text.rindex("record.json.tmp>, \"", 0, renamed[-1])
    synced = [match.start() for match in re.finditer(r"f(?:data)?sync\(\d+<[^>\n]*record.json", text)]
    assert [at for at in synced if written < at], [line[:160] for line in text.splitlines() if "record.json" in line or "Finished" in line]


def check_synced(text, *names):
    for name in names:
        renamed = re.search(r'rename\w*\([^\n]*?"([^"\n]+)"[^\n]*"%s"' % re.escape(name), text)
        synced = re.search(r"f(?:data)?sync\(\d+<[^>\n]*%s" % re.escape(renamed[1]), text)
        assert synced and synced.start() < renamed.start(), (name, [line for line in text.splitlines() if name in line])


@SENTENCE("An `output_dir` is refused (`bad_params`, `not_permitted`) when it is relative, missing, a symbolic link or no folder; when "
          "it is another user's; when a symbolic link on the way to it belongs to another user than us and root (`foreign_link`); when "
          "everyone may write in it and it is not sticky (`open_to_all`: others could rename our folder);")
def test_output_folders_that_are_refused():
    with tempfile.TemporaryDirectory() as root, Daemon() as daemon:
        client = daemon.connect()
        os.chmod(root, 0o755)
        launch(client, FOREVER, build_id="b")

        def refused(path, code, detail=None):
            error = client.fails("StartSamplingProfile", build_id="b", output_dir=path)
            assert error.code == code and (detail is None or error.detail == detail), (path, error.error)
            error = client.fails("LaunchProcess", argv=["touch", root + "/ran"], profile={"output_dir": path})
            assert error.code == code and not os.path.exists(root + "/ran"), (path, error.error)
        os.mkdir(root + "/real")
        os.symlink("real", root + "/link")
        open(root + "/file", "w").close()
        for path in ("real", "./real", root + "/missing", root + "/link", root + "/file"):
            refused(path, "bad_params")
        os.mkdir(root + "/open")
        os.chmod(root + "/open", 0o777)
        refused(root + "/open", "not_permitted", "open_to_all")
        os.chmod(root + "/open", 0o1777)
        capture = client.call("StartSamplingProfile", build_id="b", output_dir=root + "/open")["capture_id"]
        client.call("StopCapture", capture_id=capture, discard=True)
        os.symlink(".", root + "/ours")
        capture = client.call("StartSamplingProfile", build_id="b", output_dir=root + "/ours/real")["capture_id"]
        client.call("StopCapture", capture_id=capture, discard=True)
        assert os.listdir(root + "/real") == os.listdir(root + "/open") == []
        as_nobody()
        os.mkdir(root + "/theirs")
        os.chown(root + "/theirs", NOBODY, NOBODY)
        refused(root + "/theirs", "not_permitted")
        os.symlink(".", root + "/foreign")
        os.lchown(root + "/foreign", NOBODY, NOBODY)
        refused(root + "/foreign/real", "not_permitted", "foreign_link")


@SENTENCE("and with `io` when its path leads elsewhere by the time the capture's folder was made (`replaced`).")
def test_an_output_folder_that_is_replaced_meanwhile():
    with tempfile.TemporaryDirectory() as root, Daemon() as daemon:
        client = daemon.connect()
        launch(client, ["sleep", "60"], build_id="b", hold=True)
        os.mkdir(root + "/one", 0o700)
        os.mkdir(root + "/two", 0o700)
        # Exchanges the two folders without a pause (RENAME_EXCHANGE), while captures are begun in one of them.
        pid = os.fork()
        if pid == 0:
            libc, one, two = ctypes.CDLL(None), (root + "/one").encode(), (root + "/two").encode()
            while os.getppid() != 1:
                libc.renameat2(-100, one, -100, two, 2)
        try:
            found, end = None, time.monotonic() + 15
            while found is None and time.monotonic() < end:
                try:
                    made = client.call("StartSamplingProfile", build_id="b", output_dir=root + "/one", subscribe=False)
                    client.call("StopCapture", capture_id=made["capture_id"], discard=True)
                except ProfdError as error:
                    found = error
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        assert found is not None, "a folder was never replaced in time"
        assert (found.code, found.detail) == ("io", "replaced"), found.error
        assert os.listdir(root + "/one") == os.listdir(root + "/two") == [] and os.listdir(daemon.data_dir + "/captures") == []


def varints(data):
    values, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            values.append(value)
            value = shift = 0
    return values


class Records(JournalFile):
    """A journal with the bodies of its records."""

    def read_records(self, payload):
        self.bodies = getattr(self, "bodies", [])
        at = 0
        while at < len(payload):
            kind = payload[at]
            length, at = self.number(payload, at + 1)
            self.bodies.append((kind, payload[at:at + length]))
            self.counts[kind] += 1
            at += length


@SENTENCE("`capture.journal`: the source of truth, appended while sampling (at least every second or 256 KiB): processes, threads, "
          "mappings (start, length, file offset, device and inode or build id, path), stacks (frames with a kind: native, kernel, "
          "interpreted, marker), samples (time, process, thread, state, stack, weight and its unit), losses, end reasons.", "In "
          "self-contained segments of checksummed chunks, so that whatever was written before a crash can be read,")
def test_the_journal():
    with Daemon() as daemon:
        client = daemon.connect()
        busy = launch(client, FOREVER, profile={"hz": 2000})
        path = os.path.join(daemon.data_dir, "captures", busy["capture_id"], "capture.journal")
        sizes, end = [], time.monotonic() + 4.4
        while time.monotonic() < end:
            sizes.append((time.monotonic(), os.path.getsize(path)))
            time.sleep(0.02)
        grown = [at for (at, size), (_, before) in zip(sizes[1:], sizes) if size > before]
        assert len(grown) >= 3 and all(0 < b - a < 1.3 for a, b in zip(grown, grown[1:])), grown
        with open("/proc/%d/maps" % busy["pid"]) as file:
            mapped = [line.split() for line in file if " r-xp " in line and line.rstrip().endswith(("libc.so.6", "dash", "/sh", "bash"))]
        daemon.process.kill()
        daemon.process.wait()
        left = Records(path)
        assert left.samples > 1000 and left.good > 0.9 * len(left.data) and left.counts[5] == 1 and left.counts[7] >= 1 and left.counts[13] > 1
        mappings = [varints(body) for kind, body in left.bodies if kind == 10]
        texts = b"".join(body for kind, body in left.bodies if kind == 3)
        for line in mapped:
            low, high = (int(word, 16) for word in line[0].split("-"))
            assert any(numbers[1:5] == [busy["pid"], low, high - low, int(line[2], 16)] for numbers in mappings), (line, mappings)
            assert line[5].encode() in texts
        # A broken byte in the last chunk costs that chunk alone.
        whole = Records(path)
        with open(path, "r+b") as file:
            file.seek(whole.good - 3)
            byte = file.read(1)[0]
            file.seek(whole.good - 3)
            file.write(bytes([byte ^ 1]))
        daemon.start()
        client = daemon.connect()
        record = client.call("WaitCapture", capture_id=busy["capture_id"])
        assert 0 < Records(path).samples == record["samples"] < whole.samples, record


@SENTENCE("`capture.symbols`: what the addresses were called when it was finished (names, files, lines, inlines, sources).", "Written whatever "
          "`formats` says, and described, byte by byte, in `daemon/analyzer/symbol/kept.h`.", "(Names only; files, lines and inlines not yet.)")
def test_names_are_kept():
    with Daemon() as daemon:
        record = make(daemon.connect(), formats=["folded"])
        assert sorted(os.listdir(record["folder"])) == ["capture.folded", "capture.journal", "capture.symbols", "record.json"], os.listdir(record["folder"])
        with open(os.path.join(record["folder"], "capture.symbols"), "rb") as file:
            data = file.read()
        magic, version, length, crc, reserved = struct.unpack("<4sIQII", data[:24])
        assert (magic, version, length, reserved) == (b"PSY1", 1, len(data) - 24, 0) and crc == zlib.crc32(data[24:])
        assert b"burn" in data or b"_start" in data or b"main" in data, data


@SENTENCE("Journal and symbols together make everything else; a later symbolization only improves it.", "`SymbolizeCapture` | capture_id, "
          "symbol_path?, debuginfod? | final record, with names made again and artifacts rewritten: from the journal, the files that are still the "
          "same, and, where one is gone or changed, the names that `capture.symbols` kept.")
def test_names_are_made_again_from_what_is_left():
    with Daemon() as daemon:
        client = daemon.connect()
        program = shutil.copy(target("shares"), daemon.root)
        made = client.call("LaunchProcess", argv=[program, "1", "100", "0"], stdio="null", profile={})
        record = client.call("WaitCapture", capture_id=made["capture_id"])
        stacks = read_folded(record["folded_path"])
        assert any("heavy" in stack for stack in stacks), stacks
        os.unlink(program)
        for path in ("folded_path", "svg_path", "metadata_path"):
            os.unlink(record[path])
        again = client.call("SymbolizeCapture", capture_id=record["capture_id"])
        assert read_folded(again["folded_path"]) == stacks and again == client.call("GetCapture", capture_id=record["capture_id"])
        assert all(os.path.getsize(again[path]) > 0 for path in ("svg_path", "metadata_path"))


@SENTENCE("A capture that had failed although its journal holds samples is finished by it.", "What fails leaves the capture as it was; no event tells of "
          "it; at most 4 at once, and until it has ended the capture is `capture_busy` for `DeleteCapture` and itself")
def test_what_naming_again_changes():
    with tempfile.TemporaryDirectory() as folder:
        script = "#!/bin/sh\n[ -e %s/broken ] && exit 3\nwhile [ -e %s/wait ]; do sleep 0.02; kill -0 $PPID || exit 1; done\nexec %s \"$@\"\n"
        analyzer = write(folder, "analyzer", script % (folder, folder, program("profd-analyzer")), 0o755)
        with Daemon(env={"PROFD_ANALYZER": analyzer}) as daemon:
            client, other = daemon.connect(), daemon.connect()
            write(folder, "broken", "", 0o644)
            launched = launch(client, [target("steady"), "60"], profile={"hz": 2000})
            failed = client.call("WaitCapture", capture_id=launched["capture_id"])
            assert failed["state"] == "failed", failed
            assert client.fails("SymbolizeCapture", capture_id=failed["capture_id"]).code == "internal"
            assert client.call("GetCapture", capture_id=failed["capture_id"]) == failed
            os.unlink(os.path.join(folder, "broken"))
            other.call("Subscribe")
            assert client.call("SymbolizeCapture", capture_id=failed["capture_id"])["state"] == "finished"
            records = [make(client) for _ in range(5)]
            other.call("Ping")
            other.events.clear()
            write(folder, "wait", "", 0o644)
            numbers = [client.send("SymbolizeCapture", capture_id=record["capture_id"]) for record in records[:4]]
            client.call("Ping")
            error = client.fails("SymbolizeCapture", capture_id=records[4]["capture_id"])
            assert error.code == "limit_exceeded" and "4" in error.message, error.error
            for method in ("DeleteCapture", "SymbolizeCapture"):
                assert client.fails(method, capture_id=records[0]["capture_id"]).code == "capture_busy"
            os.unlink(os.path.join(folder, "wait"))
            for number, record in zip(numbers, records):
                assert client.wait_reply(number)["folded_path"] == record["folded_path"]
            other.call("Ping")
            assert other.events == [], other.events


@SENTENCE("`capture.svg`: an interactive flame graph in one file, no network.")
def test_the_picture():
    with Daemon() as daemon:
        record = make(daemon.connect())
        with open(record["svg_path"], "rb") as file:
            data = file.read()
        seen = []
        parser = xml.parsers.expat.ParserCreate()
        parser.StartElementHandler = lambda name, given: seen.append((name, given))
        parser.Parse(data, True)
        assert seen[0][0] == "svg" and any(name == "script" for name, _ in seen)
        for name, given in seen:
            for key, value in given.items():
                assert key.startswith("xmlns") or not re.match(r"(https?:|//|ftp:|data:text/html)", value), (name, key, value)
        assert not re.search(rb"fetch\(|XMLHttpRequest|import\(|@import|WebSocket|sendBeacon|url\(\s*['\"]?(http|//)", data)


def folded_lines(journal):
    """What the analyzer makes of a journal."""
    analyzer = Analyzer(journal.end())
    reply = analyzer.finish()
    assert reply and reply["type"] != "error", reply
    with open(analyzer.path("folded"), "rb") as file:
        data = file.read()
    analyzer.stop()
    lines = data.decode("utf-8").splitlines()
    assert data.endswith(b"\n") and lines == sorted(lines, key=str.encode) and len({line.rsplit(" ", 1)[0] for line in lines}) == len(lines)
    return lines


@SENTENCE("`capture.folded`: `thread;outermost;…;innermost count`, sorted, one stack a line, valid UTF-8 (in names `;` becomes `:`, "
          "control characters and broken bytes U+FFFD, line ends a space); counts samples", "Kernel frames end in `_[k]`; blanks around "
          "a name are cut;")
def test_folded_stacks():
    journal = small()
    for number, name in enumerate((b"a;b", b"#c", b"{j", b"line\nend", b"ctl\x01\x1bx", b"bad\xff\xfe", b"  blanks  ", b"z"), 20):
        journal.thread(10, number, name)
    journal.stack(1, 10, [(BASE + 0x20, NATIVE), (BASE + 0x10, NATIVE)])
    journal.stack(2, 10, [(0xffffffff81000010, KERNEL), (BASE + 0x10, NATIVE)])
    for number in range(20, 28):
        journal.sample(number, 1, number - 19)
    journal.sample(10, 2, 3)
    lines = folded_lines(journal)
    counts = {line.split(";")[0]: int(line.rsplit(" ", 1)[1]) for line in lines if "[k]" not in line}
    assert counts == {"a:b": 1, "_c": 2, "_j": 3, "line end": 4, "ctl\ufffd\ufffdx": 5, "bad\ufffd\ufffd": 6, "blanks": 7, "z": 8}, counts
    one, = [line for line in lines if line.startswith("z;")]
    assert re.fullmatch(r"z;\[?prog\+0x10\]?;\[?prog\+0x20\]? 8", one), "outermost first: " + one
    kernel, = [line for line in lines if "[k]" in line]
    assert re.fullmatch(r"prog;[^;]*;[^;]*_\[k\] 3", kernel), kernel


@SENTENCE("an innermost name that ends in a number of its own gets a `_` behind it, because readers would take the number for a count; "
          "a `#` or `{` that a line would begin with becomes `_` (a comment or JSON to readers); names are cut at 8 KiB,", "and lines stay below 64 KiB (`[... N frames elided]`).")
def test_long_names_and_names_that_end_in_a_number():
    name = "n" * 10000
    source = "#include <time.h>\n#define burn() do { for (volatile int i = 0; i < 1000; i++) {} } while (0)\nvoid numbered(void) { burn(); }\n" \
             "void %s(int depth) { if (depth > 1) { %s(depth - 1); } else { burn(); numbered(); } burn(); }\n" \
             "int main(void) { while (clock() < CLOCKS_PER_SEC / 4) { %s(20); } return 0; }\n" % (name, name, name)
    if not shutil.which("cc") or not shutil.which("objcopy"):
        skip("needs cc and objcopy")
    with Daemon() as daemon:
        path = daemon.root + "/prog"
        subprocess.run(["cc", "-O0", "-fno-omit-frame-pointer", "-x", "c", "-", "-c", "-o", path + ".o"], input=source, text=True, check=True)
        subprocess.run(["objcopy", "--redefine-sym", "numbered=work 12", path + ".o"], check=True)
        subprocess.run(["cc", path + ".o", "-o", path], check=True)
        record = make(daemon.connect(), [path])
        frames = {frame for stack in read_folded(record["folded_path"]) for frame in stack}
        assert "work 12_" in frames and not [frame for frame in frames if re.search(r" \d+$", frame)], sorted(frame[:40] for frame in frames)
        long, = [frame for frame in frames if frame.startswith("nnn")]
        assert 8000 < len(long) <= 8192 and set(long[:8000]) == {"n"}, len(long)
        with open(record["folded_path"]) as file:
            lines = file.read().splitlines()
        assert max(map(len, lines)) < 65536 and max(map(len, lines)) > 32768
        full = [line for line in lines if line.rsplit(" ", 1)[0].endswith(";work 12_") and "elided" in line]
        assert full, [len(line) for line in lines]
        depths = {int(re.search(r";\[\.\.\. (\d+) frames elided\];", line)[1]) + line.rsplit(" ", 1)[0].count(long) for line in full}
        # In its prologue a function has its caller's frame pointer: the caller is missing.
        assert depths <= {19, 20} and 20 in depths, depths


@SENTENCE("the unit stands in `capture.json`).", "`capture.json`: metadata. `schema`, `version`, target, options asked for and "
          "effective, clocks, sample accounting, threads with names, images with build ids, quality (complete, stitched, truncated, "
          "unsymbolised, per image, with the fix), warnings.")
def test_the_metadata():
    with Daemon() as daemon:
        client, before = daemon.connect(), time.time()
        argv = ["sh", "-c", "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done", "argument"]
        made = launch(client, argv, profile={"hz": 2000, "label": "l"}, cwd=daemon.root)
        _, params = capture_end(client, made["capture_id"])
        with open(params["metadata_path"]) as file:
            data = json.load(file)
        assert data["schema"] == "profd.capture" and data["version"] == 1 and data["target"]["pid"] == made["pid"] and data["target"]["argv"] == argv
        assert data["target"]["cwd"] == daemon.root and data["options"]["hz"] == 2000 and data["effective"]["hz"] == 2000 and data["label"] == "l"
        assert data["effective"]["sampler"] == "perf" and data["effective"]["unwinder"] == "dwarf"
        assert before * 1e6 - 1e6 < data["clock"]["begin_unix_us"] < time.time() * 1e6
        assert data["clock"]["begin_ns"] < time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        folded = sum(read_folded(params["folded_path"]).values())
        assert data["samples"]["count"] == folded and data["samples"]["unit"] == "samples" and data["samples"]["lost"] == 0
        assert [(thread["tid"], thread["name"], thread["samples"]) for thread in data["threads"]] == [(made["pid"], "sh", folded)]
        images = [image for image in data["images"] if image["kind"] == "elf" and os.path.exists(image["path"])]
        assert images and set(data["quality"]) >= {"complete", "stitched", "truncated"} and isinstance(data["warnings"], list)
        for image in images:
            said = subprocess.run(["readelf", "-n", image["path"]], capture_output=True, text=True, check=False).stdout
            assert image["build_id"] == re.search(r"Build ID: (\w+)", said)[1], image
            assert 0 <= image["unsymbolized"] <= 1 and (image["unsymbolized"] < 0.5 or image["fix"]), image


CAUSES = ("lost", "throttled", "not_permitted", "too_short", "unexplained")


@SENTENCE("In `samples` exactly `expected` (the CPU time by the kernel's accounting, in periods) = `count` + `lost` + `throttled` + "
          "`not_permitted` + `too_short` + `unexplained`;", "A thread's `expected` = `samples` + `not_permitted` + `too_short` + `unexplained`.",
          "The `self` of all `images` and the numbers in `samples.elsewhere` are `count`.",
          "`quality.remedies` is [{what, share, images?, message, hint}]: for each reason for which stacks or names are less good than they could "
          "be, the largest share first, the files that it is about and what would help.")
def test_the_accounting_and_the_remedies():
    with Daemon() as daemon:
        client = daemon.connect()
        made = launch(client, [target("shares_stripped"), "2", "150", "0"], profile={"hz": 2000})
        _, params = capture_end(client, made["capture_id"])
        exited = client.wait_event("ProcessExited", build_id=made["build_id"])
        with open(params["metadata_path"]) as file:
            data = json.load(file)
        samples = data["samples"]
        own = (exited["user_us"] + exited["system_us"]) * 1000 / samples["period"]  # by wait4(2)
        assert abs(samples["expected"] - own) < 0.25 * own + 4, (samples, own)
        assert samples["expected"] == samples["count"] + sum(samples[cause] for cause in CAUSES), samples
        told = [thread for thread in data["threads"] if "expected" in thread]
        assert len(told) >= 2 and len(data["threads"]) == 3, data["threads"]
        for thread in told:
            assert thread["expected"] == thread["samples"] + sum(thread[cause] for cause in CAUSES[2:]), thread
        assert sum(image["self"] for image in data["images"]) + sum(samples["elsewhere"].values()) == samples["count"], data["images"]
        remedies = data["quality"]["remedies"]
        assert sorted((remedy["share"] for remedy in remedies), reverse=True) == [remedy["share"] for remedy in remedies]
        assert {"stripped", "stripped_system", "end_unknown"} >= {remedy["what"] for remedy in remedies} and remedies, remedies
        stripped, = [remedy for remedy in remedies if remedy["what"] == "stripped"]
        assert stripped["share"] > 0.25 and target("shares_stripped") in stripped["images"] and "-Dstrip=false" in stripped["hint"], stripped
        unnamed = sum(remedy["share"] for remedy in remedies if remedy["what"] != "end_unknown")
        assert unnamed > 0.5 and abs(unnamed - data["quality"]["unsymbolized"]) < 1e-3, (remedies, data["quality"])
        for remedy in remedies:
            assert set(remedy) == {"what", "share", "images", "message", "hint"} and remedy["hint"], remedy


@SENTENCE("when that CPU time is not known only `count`, `lost` and `throttled` are there.")
def test_the_accounting_without_the_kernels_word():
    journal = small()
    journal.stack(1, 10, [(BASE + 0x100, NATIVE)])
    journal.sample(10, 1, 7)
    analyzer = Analyzer(journal.end())
    assert analyzer.finish()["type"] == "done"
    with open(analyzer.path("json")) as file:
        samples = json.load(file)["samples"]
    analyzer.stop()
    assert samples["count"] == 7 and samples["lost"] == samples["throttled"] == 0, samples
    assert not set(samples) & {"expected", *CAUSES[2:], "cpu_time_ns"}, samples


@SENTENCE("`capture.schema.json` (JSON Schema, draft 2020-12; installed in `share/doc/profd`) says what each member is; members are only ever added.")
def test_the_schema_of_the_metadata():
    if capture_schema.validator() is None:
        skip("python3-jsonschema is missing")
    with Daemon() as daemon:
        with open(make(daemon.connect())["metadata_path"]) as file:
            data = json.load(file)
    capture_schema.check(data)
    assert "2020-12" in capture_schema.schema()["$schema"]
    # None of those that were there when it was first written down is gone.
    assert set(capture_schema.schema()["required"]) >= {"schema", "version", "target", "options", "effective", "clock", "samples", "threads",
                                                        "images", "quality", "warnings"}


if __name__ == "__main__":
    main(globals())
