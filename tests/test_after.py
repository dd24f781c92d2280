"""Instructions behind the last event of a run grow as hosts and flows do.

Allocations are counted by crates/lab/tests/it/doubling.rs; a search through a list, again for each
of its entries, allocates nothing."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from conftest import ROOT

TORI = ["32x16x16", "32x32x16", "32x32x32"]
"""Each has twice the hosts of the one before."""
ROUTED = ["8x8x4", "8x8x8", "16x8x8"]
"""The same, for what needs the tables of a subnet."""
MOST = 2.4
"""Twice, and something for trees and for caches of the allocator."""
LAST_EVENT = "*Progress*on_simulated*"
"""Function that is called when a run has served its last event; the dev profile keeps symbols."""


def instructions(binary: Path, folder: Path, torus: str, name: str) -> int:
    """Instructions that follow the last event of the last run."""
    text = (ROOT / "fixtures" / "doubling" / f"{name}.toml").read_text()
    grown = text.replace('"torus:4x4x4"', f'"torus:{torus}"')
    assert grown != text, f'{name}.toml has no "torus:4x4x4"'
    (folder / "doubling.toml").write_text(grown)
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
@pytest.mark.parametrize(
    ("name", "tori"), [("programs", TORI), ("controlled", TORI), ("balanced", ROUTED)]
)
def test_what_follows_the_last_event_grows_as_hosts_do(
    name: str, tori: list[str], binary: Path, tmp_path: Path
) -> None:
    counted = [instructions(binary, tmp_path, torus, name) for torus in tori]
    print(" ".join(f"{torus}: {count:,}" for torus, count in zip(tori, counted, strict=True)))
    for less, more in zip(counted, counted[1:], strict=False):
        assert more <= MOST * less, counted
