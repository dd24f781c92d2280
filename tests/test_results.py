"""Tables of results are as the reference says, and the example of the documentation reads them."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import polars as pl
import pytest
from conftest import ROOT
from peers import run_bounded

EXPERIMENT = """schema = 1
name = "tables"
run = { duration = "400 us", seeds = 2 }
fabric = { build = "star:4" }
subnet = { engine = "min-hop" }
sim = { preset = "qdr" }
control = { when = "iba-cc" }
[[traffic]]
name = "all"
class = "background"
pattern = { kind = "incast", to = 0 }
senders = { except = [0] }
load = 0.5
size = "2 KiB"
[[variant]]
name = "one"
[[variant]]
name = "two"
subnet = { lanes = 2 }
[sweep]
traffic.load = [0.1, 0.3]
"""


@pytest.fixture(scope="module")
def folder(binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a run and a sweep have left their files, in `out` and `swept`."""
    folder = tmp_path_factory.mktemp("results")
    (folder / "tables.toml").write_text(EXPERIMENT)
    for words in [["run", "--out", "out"], ["sweep", "--out", "swept"]]:
        command = [str(binary), words[0], "tables.toml", *words[1:]]
        done = run_bounded(command, env=os.environ, cwd=folder)
        assert done.returncode == 0, done.stderr[-2000:]
    return folder


def described() -> dict[str, list[str]]:
    """By file, the columns that the reference names."""
    text = (ROOT / "docs/reference/results.md").read_text()
    parts = re.split(r"^## (.*)$", text, flags=re.MULTILINE)[1:]
    columns = [re.findall(r"^\* (\w+): ", part, flags=re.MULTILINE) for part in parts[1::2]]
    return dict(zip(parts[::2], columns, strict=True))


def test_every_column_is_in_the_reference(folder: Path) -> None:
    known = described()
    for table in ["control", "flows", "links", "series"]:
        name = f"{table}.parquet"
        assert pl.read_parquet(folder / "out" / name).columns == known[name]
    # Those of a sweep are made of its keys and measures.
    columns = pl.read_parquet(folder / "swept/points.parquet").columns
    assert columns[:3] == ["traffic_load", "variant", "status"]
    assert {"accepted_load", "latency_mean_us", "latency_mean_us_half_width"} <= set(columns)
    assert "latency_mean_converged" in columns and "points.parquet" in known


def test_the_example_of_the_documentation_runs(folder: Path) -> None:
    text = (ROOT / "docs/results.md").read_text()
    [example] = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    done = run_bounded([sys.executable, "-c", example], env=os.environ, cwd=folder)
    assert done.returncode == 0, done.stderr[-2000:]
    # Three links to the switch and one from it, by how long they were held back.
    assert "held_back" in done.stdout and "accepted_gbps" in done.stdout
    assert "one" in done.stdout and "two" in done.stdout
