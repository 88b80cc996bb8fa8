"""kill -9 at random moments of launch, capture and writing. PROFD_LONG=1 tries ten times as often; PROFD_SEED repeats a run."""
import collections
import os
import random
import signal
import tempfile
import threading
import time

from harness import Client, Daemon, alive, main, wait_until
from kept_captures import wait_all_ended

ROUNDS = 200 if os.environ.get("PROFD_LONG") else 20
SEED = int(os.environ.get("PROFD_SEED") or random.SystemRandom().randrange(1 << 32))
ENDED = ("finished", "failed")


def environment_of(pid):
    try:
        with open("/proc/%d/environ" % pid, "rb") as file:
            return file.read()
    except OSError:
        return b""


def programs_with(mark):
    """Every living process whose environment bears the mark: targets and gates."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [pid for pid in pids if mark in environment_of(pid) and alive(pid)]


def state_of(pid):
    try:
        with open("/proc/%d/stat" % pid) as file:
            return file.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "gone"


def keep_busy(path, mark, random_, elsewhere, told):
    """A client that launches, records, stops, discards and deletes until its daemon is gone. told: what it was told of each capture."""
    try:
        client = Client(path)
        env = {"PROFD_TEST_MARK": mark.decode()}
        while True:
            script = random_.choice(["i=0; while [ $i -lt %d ]; do i=$((i+1)); done" % random_.choice((10, 20000, 100000)),
                                     "while :; do :; done", "sleep 60 & wait", "exit 3"])
            options = {"progress_ms": 50, "hz": random_.choice((99, 999, 4000))}
            if random_.random() < 0.3:
                options["output_dir"] = elsewhere
            if random_.random() < 0.4:
                options["duration_ms"] = random_.randrange(1, 80)
            launched = client.call("LaunchProcess", argv=["sh", "-c", script], env=env, stdio="null", profile=options,
                                   hold=random_.random() < 0.2)
            capture_id = launched["capture_id"]
            told[capture_id] = "begun"
            time.sleep(random_.random() * 0.05)
            if random_.random() < 0.5:
                record = client.call("StopCapture", capture_id=capture_id, discard=random_.random() < 0.2)
                told[capture_id] = record
                if record["state"] == "finished" and random_.random() < 0.3:
                    told[capture_id] = "deleting"
                    client.call("DeleteCapture", capture_id=capture_id)
            client.call("StopProcess", build_id=launched["build_id"], grace_ms=0)
    except (OSError, AssertionError, ValueError):
        return


def check_told(records, told):
    """What a client was told of an end is true after the restart too; what was not deleted is there."""
    for capture_id, what in told.items():
        record = records.get(capture_id)
        if isinstance(what, dict) and what["state"] == "failed" and what["error"]["data"]["code"] == "cancelled":
            assert record is None, (what, record)
        elif isinstance(what, dict):
            assert record == what, (what, record)
        elif what == "deleting":
            assert record is None or record["state"] == "finished", record
    for record in records.values():
        assert record["state"] in ENDED, record


def check_folders(daemon, elsewhere, records):
    """Nothing lies about that no record names."""
    places = {record["folder"] for record in records.values()}
    for name in os.listdir(elsewhere):
        assert os.path.join(elsewhere, name) in places, name
    assert sorted(os.listdir(os.path.join(daemon.data_dir, "captures"))) == sorted(records)


def one_round(daemon, number, elsewhere):
    random_ = random.Random("%d/%d" % (SEED, number))
    mark = b"%d-%d-%d" % (os.getpid(), SEED, number)
    told, clients = {}, []
    for index in range(2):
        clients.append(threading.Thread(target=keep_busy, args=(daemon.socket_path, mark, random.Random(random_.random()), elsewhere,
                                                                told)))
        clients[index].start()
    # Often in the middle of the first launches, sometimes when journals have been written for a while.
    time.sleep(random_.choice((random_.random() * 0.02, random_.random() * 0.3, random_.random() * 1.3)))
    daemon.process.send_signal(signal.SIGKILL)
    daemon.process.wait()
    for client in clients:
        client.join()
    daemon.start()
    client = daemon.connect()
    records = {record["capture_id"]: record for record in wait_all_ended(client)}
    check_told(records, told)
    wait_until(lambda: not client.call("GetStatus")["captures"], 10, "the end of the recoveries")
    wait_until(lambda: sorted(os.listdir(os.path.join(daemon.data_dir, "captures"))) == sorted(records), 10,
               "the end of the deletions: %s" % sorted(records))
    check_folders(daemon, elsewhere, records)
    wait_until(lambda: not any(state_of(pid) in "Tt" for pid in programs_with(mark)), 5, "no program that is left stopped")
    for capture_id in records:
        client.call("DeleteCapture", capture_id=capture_id)
    assert os.listdir(elsewhere) == [] and daemon.files() == ["captures"]
    client.close()
    daemon.clients.clear()
    return collections.Counter(record["reason"] if record["state"] == "finished" else record["error"]["data"]["code"]
                               for record in records.values()), mark


def run_rounds(check_programs):
    print("# PROFD_SEED=%d" % SEED, flush=True)
    with tempfile.TemporaryDirectory() as elsewhere, Daemon() as daemon:
        ends = collections.Counter()
        for number in range(ROUNDS):
            found, mark = one_round(daemon, number, elsewhere)
            ends += found
            check_programs(mark)
        print("# ends after %d kills: %s" % (ROUNDS, ", ".join("%s %d" % end for end in ends.most_common())))
        assert ends["interrupted"] + ends["recovered"] >= ROUNDS // 4, ends


def test_whatever_moment_the_daemon_is_killed_at_every_capture_ends():
    def wait_for_the_programs_themselves(mark):
        # Children of the programs are another case's.
        for pid in programs_with(mark):
            os.kill(pid, signal.SIGKILL)
    run_rounds(wait_for_the_programs_themselves)


def test_no_process_of_a_killed_daemons_builds_lives():
    with tempfile.TemporaryDirectory() as folder, Daemon() as daemon:
        random_ = random.Random(SEED)
        print("# PROFD_SEED=%d" % SEED, flush=True)
        for number in range(ROUNDS // 4):
            mark = b"group-%d-%d-%d" % (os.getpid(), SEED, number)
            client = daemon.connect()
            ups = []
            for _ in range(2):
                up = os.path.join(folder, "up-%d-%d" % (number, len(ups)))
                client.call("LaunchProcess", argv=["sh", "-c", "(sleep 60 & echo >%s; wait) & sleep 60 & wait" % up], stdio="null",
                            env={"PROFD_TEST_MARK": mark.decode()})
                ups.append(up)
            if random_.random() < 0.7:
                wait_until(lambda: all(os.path.exists(up) for up in ups), 10, "the programs")
            time.sleep(random_.random() * 0.05)
            daemon.process.send_signal(signal.SIGKILL)
            daemon.process.wait()
            daemon.clients.clear()
            wait_until(lambda: not programs_with(mark), 5, "the end of every process of the builds")
            daemon.start()


if __name__ == "__main__":
    main(globals(), together=True)
