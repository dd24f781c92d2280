"""One run on several processes: what Open MPI starts comes to the bytes of one process."""

from __future__ import annotations

import filecmp
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from conftest import Clearlane
from peers import HANG_S, run_bounded

RING = """
schema = 1
name = "ring"
[fabric]
build = "torus:8x8"
[subnet]
forwarding = "dimension-order"
[sim]
preset = "nsim-2014"
[[traffic]]
name = "shift"
class = "background"
program = { kind = "ring-alltoall", size = "4 KiB" }
transport = "ud"
[run]
duration = "20 ms"
ends = "programs"
seeds = 2
"""


def mpirun(clearlane: Clearlane, processes: int, *words: object) -> list[str]:
    """The command line. Open MPI asks whether root may, and for more processes than cores."""
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    start = ["mpirun", *root, "--oversubscribe", "-n", str(processes)]
    return [*start, str(clearlane.binary), *map(str, words)]


def call(
    clearlane: Clearlane, processes: int, *words: object
) -> subprocess.CompletedProcess[str]:
    command = mpirun(clearlane, processes, *words)
    return run_bounded(command, env=os.environ, cwd=clearlane.folder)


def start(clearlane: Clearlane, processes: int, *words: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        mpirun(clearlane, processes, *words),
        cwd=clearlane.folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_any_number_of_processes_writes_the_bytes_of_one(clearlane: Clearlane) -> None:
    (clearlane.folder / "ring.toml").write_text(RING)
    clearlane("run", "ring.toml", "--out", "one")
    for processes in (2, 3):
        out = f"of-{processes}"
        done = call(clearlane, processes, "run", "ring.toml", "--out", out)
        assert done.returncode == 0, done.stderr
        # The first alone has anything to say.
        assert done.stdout.count("report: ") == 1
        same_folders(clearlane.folder / "one", clearlane.folder / out)


def same_folders(one: Path, other: Path) -> None:
    names = sorted(path.name for path in one.iterdir())
    assert names == sorted(path.name for path in other.iterdir())
    same = filecmp.cmpfiles(one, other, names, shallow=False)
    assert same[0] == names, same


def test_what_runs_in_one_process_says_so_once(clearlane: Clearlane) -> None:
    (clearlane.folder / "ring.toml").write_text(RING)
    refused = call(clearlane, 2, "sweep", "ring.toml", "--over", "run.seed=1,2")
    assert refused.returncode == 2
    said = [line for line in refused.stderr.splitlines() if line.startswith("clearlane: ")]
    assert said == [
        "clearlane: mpirun started 2 processes, and `clearlane sweep` runs in one; of several "
        "processes only run, compare and resume make one run"
    ]
    # The other process is ended by a signal, of which it says nothing.
    (clearlane.folder / "flow.toml").write_text(RING.replace("[run]", '[run]\nmode = "flow"'))
    refused = call(clearlane, 2, "run", "flow.toml")
    assert refused.returncode == 2
    said = [line for line in refused.stderr.splitlines() if line.startswith("clearlane: ")]
    assert said == ["clearlane: flow mode runs in one process; start it without mpirun"]
    assert not (clearlane.folder / "runs").exists()


def test_all_end_when_one_is_lost(clearlane: Clearlane) -> None:
    long = RING.replace("4 KiB", "4 MiB").replace("20 ms", "10 s")
    (clearlane.folder / "ring.toml").write_text(long)
    started = start(clearlane, 3, "run", "ring.toml")
    try:
        processes = ranks(started.pid)
        os.kill(processes[1], signal.SIGKILL)
        started.communicate(timeout=HANG_S)
        assert started.returncode != 0
        # mpirun asks the others to end, and kills them where they wait for the one that is lost.
        end = time.monotonic() + 60
        while left := [process for process in processes if Path(f"/proc/{process}").exists()]:
            assert time.monotonic() < end, f"{left} are left"
            time.sleep(0.1)
        assert not (clearlane.folder / "runs/ring/report.html").exists()
    finally:
        started.kill()


def test_fewer_processes_go_on_after_one_is_lost(clearlane: Clearlane) -> None:
    # One process takes seconds for it: a checkpoint comes after one.
    long = RING.replace("4 KiB", "256 KiB").replace("20 ms", "10 s")
    long = long.replace("seeds = 2", "seeds = 1")
    (clearlane.folder / "ring.toml").write_text(long)
    clearlane("run", "ring.toml", "--out", "one")
    kept = clearlane.folder / "lost.checkpoint"
    started = start(
        clearlane, 3, "run", "ring.toml", "--out", "lost", "--checkpoint-every", "1s"
    )
    try:
        processes = ranks(started.pid)
        end = time.monotonic() + 60
        while not (kept / "0-1.state").exists():
            assert started.poll() is None and time.monotonic() < end, "no checkpoint"
            time.sleep(0.05)
        os.kill(processes[2], signal.SIGKILL)
        started.communicate(timeout=HANG_S)
        assert started.returncode != 0
    finally:
        started.kill()
    assert len(list(kept.glob("0-1.*-2.part"))) in (1, 2)
    done = call(clearlane, 2, "resume", "lost")
    assert done.returncode == 0, done.stderr
    assert not kept.exists()
    same_folders(clearlane.folder / "one", clearlane.folder / "lost")


def ranks(parent: int) -> list[int]:
    """The three processes that mpirun has started, once each has worked for 0.3 s."""
    ticks = 0.3 * os.sysconf("SC_CLK_TCK")
    for _ in range(300):
        works = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                name, rest = stat.read_text().rsplit(")", 1)
            except OSError:  # It has ended meanwhile.
                continue
            fields = rest.split()
            if "(clearlane" in name and int(fields[1]) == parent and int(fields[11]) > ticks:
                works.append(int(stat.parent.name))
        if len(works) == 3:
            return works
        time.sleep(0.1)
    pytest.fail("mpirun has not started three processes that work")


def test_the_readme_s_path_needs_no_mpi(clearlane: Clearlane) -> None:
    """A process that was started by itself does not wait for others."""
    (clearlane.folder / "ring.toml").write_text(RING)
    done = clearlane("run", "ring.toml", "--out", "one")
    assert "report: " in done.stdout
    assert Path(clearlane.folder / "one/summary.json").is_file()
