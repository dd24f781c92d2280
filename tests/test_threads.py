"""Threads that find no core of their own: they cost little more than one thread."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

# A small fabric with short windows: threads that waited for each other would do nothing else.
EXPERIMENT = """
schema = 1
name = "small"
[run]
duration = "5 ms"
warm_up = "0 us"
[fabric]
build = "leaf-spine:leaves=6,hosts=6,spines=3"
[subnet]
engine = "min-hop"
[sim]
preset = "qdr"
[[traffic]]
name = "all"
class = "background"
pattern = { kind = "uniform" }
load = 0.5
size = "2 KiB"
"""


def cpu_seconds(binary: Path, folder: Path, threads: int) -> float:
    """CPU time of a run on so many threads, in as many partitions, all on one core."""
    core = min(os.sched_getaffinity(0))
    words = [str(binary), "run", "small.toml", "--out", f"on-{threads}"]
    words += ["--partitions", str(threads)]
    process = subprocess.Popen(
        [*words, "--threads", str(threads)],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),
    )
    _, status, used = os.wait4(process.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    return used.ru_utime + used.ru_stime


def test_two_threads_on_one_core_cost_at_most_three_times_one(
    binary: Path, tmp_path: Path
) -> None:
    (tmp_path / "small.toml").write_text(EXPERIMENT)
    one, two = (cpu_seconds(binary, tmp_path, threads) for threads in (1, 2))
    assert two <= 3 * one, f"{two:.2f} CPU s on two threads, {one:.2f} on one"
    summaries = [(tmp_path / f"on-{threads}/summary.json").read_bytes() for threads in (1, 2)]
    assert summaries[0] == summaries[1]
