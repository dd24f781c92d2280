"""What is done behind the last event of a run grows as hosts and flows do: instructions, counted.

Allocations are counted by crates/lab/tests/it/doubling.rs; a search through a list, again for each
of its entries, allocates nothing."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

TORI = ["32x16x16", "32x32x16", "32x32x32"]
"""Each has twice the hosts of the one before."""
MOST = 2.4
"""Twice, and something for trees and for caches of the allocator."""
HEAD = """schema = 1
name = "doubling"
fabric = { build = "torus:TORUS" }
subnet = { forwarding = "dimension-order" }
sim = { preset = "nsim-2014" }
"""
PROGRAMS = """
run = { duration = "1 s", ends = "programs", slices = 20 }
[[traffic]]
name = "ring"
class = "background"
program = { kind = "ring-exchange", size = "8 B", order = "random", rounds = 1 }
transport = "ud"
"""
CONTROLLED = """
run = { duration = "2 us", warm_up = "0 us", slices = 20 }
[control]
when = "iba-cc"
iba-cc = { preset = "gran-2010" }
[[traffic]]
name = "hot"
class = "hot"
pattern = { kind = "incast", to = 0 }
senders = { every = 64, offset = 1 }
load = 1.0
size = "2 KiB"
[[traffic]]
name = "others"
class = "victim"
pattern = { kind = "random-permutation", seed = 1 }
senders = { except = [0] }
load = 0.3
size = "2 KiB"
"""
LAST_EVENT = "*Progress*on_simulated*"
"""What is called when a run has served its last event. Symbols of the dev profile have it."""


def instructions(binary: Path, folder: Path, torus: str, text: str) -> int:
    """Instructions that follow the last event of the last run."""
    (folder / "doubling.toml").write_text(HEAD.replace("TORUS", torus) + text)
    valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=profile"]
    subprocess.run(
        [*valgrind, f"--dump-before={LAST_EVENT}", str(binary), "run", "doubling.toml"]
        + ["--out", "out", "--jobs", "1", "--force"],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    parts = sorted(folder.glob("profile*"), key=lambda part: part.stat().st_mtime_ns)
    counted = re.search(r"^(?:summary|totals): (\d+)", parts[-1].read_text(), re.M)
    assert len(parts) > 1 and counted, f"the last event was not met: {parts}"
    for part in parts:
        part.unlink()
    return int(counted[1])


@pytest.mark.long
@pytest.mark.parametrize("text", [PROGRAMS, CONTROLLED], ids=["programs", "controlled"])
def test_what_follows_the_last_event_grows_as_hosts_do(
    text: str, binary: Path, tmp_path: Path
) -> None:
    counted = [instructions(binary, tmp_path, torus, text) for torus in TORI]
    print(" ".join(f"{torus}: {count:,}" for torus, count in zip(TORI, counted, strict=True)))
    for less, more in zip(counted, counted[1:], strict=False):
        assert more <= MOST * less, counted
