"""Signals at any moment: a command ends soon, keeps what is finished, and leaves nothing under a
temporary name; what a killed one left goes with the next.

A busy machine must not decide: a signal is sent when the files or the log of a call have come to
some state, and how soon a call ends is counted in CPU seconds that it takes afterwards."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from conftest import ROOT, Clearlane
from peers import cpu_s

INTERRUPTED = 4
"""Exit code."""
SOON_CPU_S = 2.0
"""CPU seconds that a call may take after a signal."""
TRIES = 10
"""Calls after which one should have met a signal while it did what a test is about."""
HELD_S = 1.5
"""Twice the time that a call gives itself for making results: `PATIENCE` of
crates/cli/src/interrupt.rs."""


@dataclass
class Running:
    """A call under way."""

    process: subprocess.Popen[str]
    folder: Path
    there: set[str]
    """Names of files that were there before."""

    def cpu_s(self) -> float | None:
        """CPU seconds so far; `None` if it has ended."""
        return cpu_s(self.process.pid)

    def new(self) -> list[str]:
        """Names that were not there before, hidden ones included."""
        return sorted(path.name for path in self.folder.iterdir() if path.name not in self.there)

    def temporary(self) -> list[Path]:
        """Files and folders under temporary names."""
        try:
            return list(self.folder.rglob(".*.unfinished"))
        except FileNotFoundError:
            # It went while it was looked at.
            return []

    def until(self, reached: Callable[[], bool]) -> bool:
        """Waits until something is so. Returns whether it was before the call ended."""
        while self.process.poll() is None:
            if reached():
                return True
            time.sleep(0.0005)
        return False


@dataclass
class Ended:
    """End of a call after a signal."""

    code: int
    err: str
    cpu_s: float
    """CPU seconds after the signal; 0 if it had ended."""


def begun(clearlane: Clearlane, command: list[str]) -> Running:
    """Starts a command."""
    there = {path.name for path in clearlane.folder.iterdir()}
    process = subprocess.Popen(
        [str(clearlane.binary), *command],
        cwd=clearlane.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    return Running(process, clearlane.folder, there)


def held(running: Running) -> str:
    """Suspends a call for `HELD_S` as soon as it has answered a signal: time passes in which it
    makes nothing. Returns what it said until then."""
    assert running.process.stderr is not None
    said = ""
    while line := running.process.stderr.readline():
        said += line
        if "interrupted" in line:
            running.process.send_signal(signal.SIGSTOP)
            try:
                time.sleep(HELD_S)
            finally:
                running.process.send_signal(signal.SIGCONT)
            break
    return said


def stopped(running: Running, number: int, *, is_held: bool = False) -> Ended:
    """Sends a signal and waits for the end. A call that is held makes nothing while the time for
    results passes."""
    before = running.cpu_s()
    if before is not None:
        running.process.send_signal(number)
    assert running.process.stderr is not None
    err = held(running) if is_held else ""
    err += running.process.stderr.read()
    if running.process.returncode is not None:
        # It had ended, and was looked at since.
        return Ended(running.process.returncode, err, 0.0)
    _, status, usage = os.wait4(running.process.pid, 0)
    code = os.waitstatus_to_exitcode(status)
    running.process.returncode = code
    total = usage.ru_utime + usage.ru_stime
    return Ended(code, err, 0.0 if before is None else max(0.0, total - before))


WRITERS = {
    "route": ["route", "fat-tree:3456", "--engine", "fat-tree", "-o", "out"],
    "deploy": ["deploy", "fat-tree:3456", "--engine", "fat-tree", "-o", "out"],
    "build": ["fabric", "build", "hypercube:15", "-o", "out"],
    "convert": ["fabric", "convert", "fat-tree:11664", "-o", "out", "--format", "dot"],
    "docs": ["docs", "-o", "out"],
}
"""Commands that write a file or a folder."""
FEW_OR_MANY = pytest.mark.parametrize("rounds", [6, pytest.param(60, marks=pytest.mark.long)])


def written(paths: list[Path]) -> int:
    """Bytes under temporary names."""

    def size(path: Path) -> int:
        files = path.iterdir() if path.is_dir() else [path]
        return sum(file.stat().st_size for file in files)

    try:
        return sum(size(path) for path in paths)
    except OSError:
        return 0


def contents(folder: Path) -> dict[str, bytes]:
    """Files of a folder, by name."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def assert_whole(clearlane: Clearlane, name: str) -> None:
    """Compares what a call has written with what one writes that nobody stops. Takes both away."""
    out, was = clearlane.folder / "out", clearlane.folder / "was"
    out.rename(was)
    clearlane(*WRITERS[name])
    subprocess.run(["diff", "-r", str(was), str(out)], check=True)
    subprocess.run(["rm", "-r", str(was), str(out)], check=True)


@FEW_OR_MANY
@pytest.mark.parametrize("name", WRITERS)
def test_nothing_half_written_stays(name: str, rounds: int, clearlane: Clearlane) -> None:
    """At the beginning, after some bytes, or at some moment before."""
    draw = random.Random(name)
    met = 0
    for number in range(rounds):
        running = begun(clearlane, WRITERS[name])
        bytes_least = draw.choice([0, 1, 10_000, 1_000_000])
        met += running.until(
            lambda: bool(found := running.temporary()) and written(found) >= bytes_least
        )
        ended = stopped(running, [signal.SIGTERM, signal.SIGINT, signal.SIGHUP][number % 3])
        assert ended.code in (0, INTERRUPTED), ended
        assert ended.cpu_s <= SOON_CPU_S, ended
        # Whole, or not there. A signal may come when it is whole and the call has not ended yet.
        assert running.new() in ([["out"]] if ended.code == 0 else [[], ["out"]]), ended
        if running.new():
            assert_whole(clearlane, name)
    assert met, "no call was interrupted while it wrote"


@pytest.mark.parametrize("name", ["route", "build"])
def test_what_was_there_stays_if_the_new_is_not_finished(name: str, clearlane: Clearlane) -> None:
    """With --force, the old is whole until the new is."""
    out = clearlane.folder / "out"
    small = {
        "route": ["route", "star:4", "--engine", "min-hop", "-o", "out", "--force"],
        "build": ["fabric", "build", "star:4", "-o", "out", "--force"],
    }

    def files() -> dict[str, bytes]:
        return {out.name: out.read_bytes()} if out.is_file() else contents(out)

    clearlane(*WRITERS[name])
    new = files()
    clearlane(*small[name])
    old = files()
    assert old != new
    met = 0
    for _ in range(6):
        running = begun(clearlane, [*WRITERS[name], "--force"])
        is_writing = running.until(lambda: bool(running.temporary()))
        ended = stopped(running, signal.SIGTERM)
        assert ended.code in (0, INTERRUPTED), ended
        assert running.new() == []
        found = files()
        is_old, is_new = found == old, found == new
        # A signal may come when the new is whole and the call has not ended yet.
        assert is_new or is_old and ended.code == INTERRUPTED, ended
        met += is_old and is_writing
        if is_new:
            clearlane(*small[name])
    assert met, "no call was interrupted while it wrote"


@pytest.mark.parametrize("name", ["route", "build"])
def test_what_a_killed_call_left_goes_with_the_next(name: str, clearlane: Clearlane) -> None:
    running = begun(clearlane, WRITERS[name])
    assert running.until(lambda: bool(running.temporary()))
    stopped(running, signal.SIGKILL)
    left = running.temporary()
    assert len(left) == 1
    # One that another process still writes is not touched: that process ends well.
    other = begun(clearlane, [*WRITERS[name], "--force"])
    assert other.until(lambda: any(path != left[0] for path in other.temporary()))
    clearlane(*WRITERS[name], "--force")
    assert other.process.wait() == 0
    assert sorted(path.name for path in clearlane.folder.iterdir()) == ["out"]


TORUS = """schema = 1
name = "torus"
fabric = { build = "torus:12x12x12" }
subnet = { forwarding = "dimension-order" }
sim = { preset = "qdr" }
run = { duration = "40 us", warm_up = "0 us", seeds = 2 }
[[traffic]]
name = "all"
class = "background"
pattern = { kind = "uniform" }
load = 0.2
size = "2 KiB"
[[variant]]
name = "one"
[[variant]]
name = "two"
traffic = [{ name = "all", load = 0.3 }]
"""
RUN = ["run", "torus.toml", "--out", "out", "--jobs", "1"]


def used_cpu_s(clearlane: Clearlane, command: list[str]) -> float:
    """CPU seconds of a call that nobody stops."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    clearlane(*command)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def used_by(running: Running, ended_s: float) -> float:
    """CPU seconds of a call so far; `ended_s` if it has ended."""
    used_s = running.cpu_s()
    return ended_s if used_s is None else used_s


def is_kept(running: Running, ended: Ended) -> bool:
    """Checks what an interrupted run left. Returns whether it can be gone on with."""
    assert not running.temporary(), running.temporary()
    out = running.folder / "out"
    if ended.code == 0 or not out.exists():
        return False
    # Files that are there are whole, and say that they are partial if anything is missing.
    summary = json.loads((out / "summary.json").read_text())
    assert summary["status"] == "partial", summary["status"]
    for path in out.glob("*.parquet"):
        raw = path.read_bytes()
        assert raw[:4] == raw[-4:] == b"PAR1", path
    return (running.folder / "out.checkpoint").exists()


@pytest.mark.parametrize("moments", [6, pytest.param(60, marks=pytest.mark.long)])
def test_a_run_stops_soon_at_any_moment_and_keeps_what_is_finished(
    moments: int, clearlane: Clearlane
) -> None:
    """Moments are shares of the CPU seconds of the whole call: set-up, runs, results, report."""
    (clearlane.folder / "torus.toml").write_text(TORUS)
    whole_s = used_cpu_s(clearlane, RUN)
    whole = contents(clearlane.folder / "out")
    subprocess.run(["rm", "-r", str(clearlane.folder / "out")], check=True)
    draw = random.Random(7)
    met, resumed = 0, 0
    # The end of the call, where results are made, is short: it has a third of the moments. Before
    # the first hundredth the program is still being loaded, and nobody could answer.
    shares = [draw.uniform(0.01, 0.9) for _ in range(moments * 2 // 3)]
    shares += [draw.uniform(0.9, 1.0) for _ in range(moments - len(shares))]
    for share in shares:
        running = begun(clearlane, RUN)
        running.until(lambda: used_by(running, whole_s) >= share * whole_s)
        ended = stopped(running, signal.SIGTERM)
        assert ended.code in (0, INTERRUPTED), ended
        assert ended.cpu_s <= SOON_CPU_S, (share, ended)
        met += ended.code == INTERRUPTED
        if is_kept(running, ended) and resumed < moments // 6:
            resumed += 1
            clearlane("resume", "out")
            assert contents(clearlane.folder / "out") == whole
        for name in running.new():
            subprocess.run(["rm", "-r", str(clearlane.folder / name)], check=True)
    assert met >= moments // 2 and resumed, (met, resumed)


def test_results_are_begun_and_interrupted(clearlane: Clearlane) -> None:
    """A signal when the folder of the results is there. What is not made in time is left out, and
    the summary names it. All else is as in a run that nobody stops."""
    # Results of runs that took long would be waited for.
    short = TORUS.replace('duration = "40 us"', 'duration = "10 us"')
    assert short != TORUS
    (clearlane.folder / "torus.toml").write_text(short)
    out = clearlane.folder / "out"
    clearlane(*RUN)
    whole = contents(out)
    subprocess.run(["rm", "-r", str(out)], check=True)
    for _ in range(TRIES):
        running = begun(clearlane, RUN)
        assert running.until(lambda: any(path.is_dir() for path in running.temporary()))
        ended = stopped(running, signal.SIGTERM, is_held=True)
        assert ended.code in (0, INTERRUPTED), ended
        assert ended.cpu_s <= SOON_CPU_S, ended
        if ended.code == INTERRUPTED:
            break
        for name in running.new():
            subprocess.run(["rm", "-r", str(clearlane.folder / name)], check=True)
    assert ended.code == INTERRUPTED, "no call was interrupted while it made results"
    is_kept(running, ended)
    there = contents(out)
    summary, of_whole = (json.loads(files["summary.json"]) for files in (there, whole))
    left_out = set(summary.pop("left_out"))
    assert left_out and not left_out & there.keys(), (left_out, there.keys())
    assert whole.keys() <= left_out | there.keys(), (left_out, there.keys())
    assert summary == of_whole | {"status": "partial"}
    for name in there.keys() - {"summary.json"}:
        assert there[name] == whole[name], name


@pytest.mark.headline
@pytest.mark.alone
def test_the_largest_ring_stops_within_two_seconds(clearlane: Clearlane) -> None:
    """On a quiet machine, by the program of `make demo`. Both variants, two threads, 20 moments."""
    ring = ROOT / "experiments" / "random-ring-128k.toml"
    command = ["run", str(ring), "--out", "out", "--threads", "2", "--jobs", "1"]
    began = time.monotonic()
    clearlane(*command, limit_s=3600)
    whole_s = time.monotonic() - began
    subprocess.run(["rm", "-r", str(clearlane.folder / "out")], check=True)
    draw = random.Random(128)
    late = []
    for _ in range(20):
        share = draw.uniform(0.01, 1)
        running = begun(clearlane, command)
        began = time.monotonic()
        running.until(lambda: time.monotonic() - began >= share * whole_s)
        pressed = time.monotonic()
        ended = stopped(running, signal.SIGTERM)
        took_s = time.monotonic() - pressed
        print(f"at {share * whole_s:.0f} of {whole_s:.0f} s: {took_s:.2f} s, code {ended.code}")
        assert ended.code in (0, INTERRUPTED), ended
        is_kept(running, ended)
        if took_s > 2:
            late.append((share, took_s))
        for name in running.new():
            subprocess.run(["rm", "-r", str(clearlane.folder / name)], check=True)
    assert not late, late
